"""What goes wrong, at random from a seed.

Faults overlap, each on a target of its own. Those of the leader come alone every other time, so that a takeover is
measured that nothing else delays.
"""

import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass

from .cluster import LEASE, Cluster
from .machines import WITH_LOG, WITHOUT_LOG, Member

MEAN = 5.0  # seconds between faults
AT_ONCE = 3
SERVED_WITHIN = 10.0  # after a leader's SIGKILL
FOREVER = float("inf")

KILLED, STOPPED = (-signal.SIGKILL,), (0,)


@dataclass
class Takeover:
    """From the end of a leader to the first answer of the next."""

    how: str
    seconds: float
    alone: bool  # nothing else was wrong


class Faults(threading.Thread):
    """Inflicts faults until the time is over, then makes everything good again."""

    def __init__(self, cluster: Cluster, until: float, seed: int):
        super().__init__(daemon=True)
        self.cluster, self.until, self.journal = cluster, until, cluster.journal
        self.random = random.Random(seed)
        self.active: set[str] = set()  # targets of faults that last
        self.begun = 0
        self.lock = threading.Lock()
        self.takeovers: list[Takeover] = []
        self.threads: list[threading.Thread] = []
        self.error: str | None = None

    def kinds(self) -> list[Callable[[], None]]:
        """Every kind as often as it comes in a round."""
        of_store = [self.cut_store, self.stop_store, self.slow_store] if self.cluster.bucket else []
        return [
            *of_store,
            *[self.kill_worker] * 4, *[self.stop_worker] * 2, *[self.drain_worker] * 2,
            *[self.cut_worker] * 2, *[self.cut_worker_one_way] * 2, *[self.slow_worker] * 2,
            *[self.kill_leader] * 4, *[self.drain_leader] * 1, *[self.stop_leader] * 2,
            *[self.cut_leader] * 1, *[self.cut_leader_one_way] * 2, *[self.slow_leader] * 1,
            self.kill_standby, self.stop_standby, self.cut_standby, self.kill_both,
            self.restart_database, self.restart_database, self.crash_database, self.crash_database,
            self.cut_database, self.slow_database, *[self.fill_disk] * 3, *[self.freeze_disk] * 2, *[self.slow_disk] * 2, *[self.fail_disk] * 2,
        ]

    def run(self) -> None:
        kinds: list[Callable[[], None]] = []
        try:
            while time.monotonic() < self.until and not self.error:
                kinds = kinds or self.random.sample(self.kinds(), len(self.kinds()))
                while len(self.active) >= AT_ONCE:
                    time.sleep(0.1)
                kinds.pop()()
                time.sleep(min(self.random.expovariate(1 / MEAN), 3 * MEAN, max(0.0, self.until - time.monotonic())))
            for thread in self.threads:
                thread.join()
        except Exception as error:  # the main thread tells
            self.error = f"{type(error).__name__}: {error}"

    # How faults are inflicted.

    @contextmanager
    def fault(self, kind: str, target: str, cause: str = "", say: str = ""):
        """Notes a fault while it lasts. `cause` is what processes may end of."""
        with self.lock:
            self.active.add(target)
            self.begun += 1
        self.journal.count("faults", kind)
        self.journal.say(f"{kind}: {target}{say}")
        if cause:
            self.cluster.faults[cause] = FOREVER
        try:
            yield
        finally:
            with self.lock:
                self.active.discard(target)
            if cause:
                self.cluster.faults[cause] = time.monotonic()

    def later(self, work: Callable[[], None]) -> None:
        """Does something beside other faults."""

        def guarded() -> None:
            try:
                work()
            except Exception as error:
                self.error = f"{type(error).__name__}: {error}"
                self.journal.say(f"no more faults: {self.error}")

        thread = threading.Thread(target=guarded, daemon=True)
        self.threads.append(thread)
        thread.start()

    def any_worker(self) -> Member | None:
        free = [member for member in self.cluster.workers if member.name not in self.active and member.is_running()]
        return self.random.choice(free) if free else None

    def some_leader(self) -> tuple[Member, bool] | None:
        """The leader, every other time when nothing else is wrong and another stands by."""
        alone = self.random.random() < 0.6
        limit = time.monotonic() + (60 if alone else 10)
        while time.monotonic() < min(limit, self.until):
            leader = self.cluster.leader()
            if leader and leader.name not in self.active:
                if not alone or (not self.active and self.cluster.is_whole()):
                    return leader, alone
            time.sleep(0.1)
        return None

    def taken_over(self, how: str, since: float, alone: bool, before: str) -> None:
        """Waits until somebody serves again, and notes how long that took."""
        time.sleep(max(0.0, since - time.monotonic()))
        begun = self.begun
        while time.monotonic() < since + 120:
            found = self.cluster.first_served(since)
            if found:
                # Faults that began meanwhile may have delayed it.
                alone = alone and self.begun == begun and self.cluster.clock.ran(since, found[0])
                self.takeovers.append(Takeover(how, found[0] - since, alone))
                self.journal.say(f"{found[1]} serves {found[0] - since:.1f} s after {how} of {before}{'' if alone else ', beside other faults'}")
                return
            time.sleep(0.05)
        self.journal.check(False, f"nobody serves 120 s after {how} of {before}")

    def lasting(self, kind: str, member: Member, seconds: float, do: Callable[[], None], undo: Callable[[], None], cause: str = "") -> None:
        def work() -> None:
            with self.fault(kind, member.name, cause, f", {seconds:.0f} s"):
                do()
                time.sleep(seconds)
                undo()

        self.later(work)

    def stop_for(self, kind: str, member: Member, seconds: float) -> None:
        self.lasting(kind, member, seconds, lambda: member.signal(signal.SIGSTOP), lambda: member.signal(signal.SIGCONT), "network")

    def cut_for(self, kind: str, member: Member, seconds: float, ways: str = "both") -> None:
        cluster, host = self.cluster, member.host
        self.lasting(kind, member, seconds, lambda: cluster.cut(host, ways), lambda: cluster.heal(host), "network")

    def slow_for(self, kind: str, host, name: str, seconds: float) -> None:
        delay, loss = self.random.uniform(0.05, 0.3), self.random.uniform(0, 0.05)

        def work() -> None:
            with self.fault(kind, name, "network", f", {seconds:.0f} s, {2e3 * delay:.0f} ms, {100 * loss:.0f} % lost"):
                self.cluster.slow(host, delay, delay / 3, loss)
                time.sleep(seconds)
                self.cluster.heal(host)

        self.later(work)

    # Workers.

    def kill_worker(self) -> None:
        if member := self.any_worker():
            with self.fault("SIGKILL of a worker", member.name):
                member.signal(signal.SIGKILL, *KILLED)

    def drain_worker(self) -> None:
        if member := self.any_worker():
            with self.fault("SIGTERM of a worker", member.name):
                member.signal(signal.SIGTERM, *STOPPED)

    def stop_worker(self) -> None:
        if member := self.any_worker():
            self.stop_for("SIGSTOP of a worker", member, self.random.uniform(1.2 * LEASE, 2 * LEASE))

    def cut_worker(self) -> None:
        if member := self.any_worker():
            self.cut_for("cut of a worker", member, self.random.uniform(0.6 * LEASE, 2.2 * LEASE))

    def cut_worker_one_way(self) -> None:
        if member := self.any_worker():
            ways = self.random.choice(("in", "out"))
            self.cut_for("one-way cut of a worker", member, self.random.uniform(0.6 * LEASE, 2.2 * LEASE), ways)

    def slow_worker(self) -> None:
        if member := self.any_worker():
            self.slow_for("slow network of a worker", member.host, member.name, self.random.uniform(8, 20))

    # Coordinators.

    def end_leader(self, kind: str, number: signal.Signals, codes: tuple[int, ...]) -> None:
        if found := self.some_leader():
            leader, alone = found
            process = leader.process
            with self.fault(kind, leader.name):
                if alone:  # it is the other that has to take over
                    leader.rest = SERVED_WITHIN + 2
                leader.signal(number, *codes)

            def wait() -> None:
                process.wait(60)  # one that drains serves until then
                self.taken_over(kind, time.monotonic(), alone, leader.name)

            if alone:
                wait()
            else:
                self.later(wait)

    def kill_leader(self) -> None:
        self.end_leader("SIGKILL of the leader", signal.SIGKILL, KILLED)

    def drain_leader(self) -> None:
        self.end_leader("SIGTERM of the leader", signal.SIGTERM, STOPPED)

    def hold_leader(self, kind: str, hold: Callable[[str, Member, float], None]) -> None:
        """The leader is there and does not answer."""
        if found := self.some_leader():
            leader, alone = found
            hold(kind, leader, self.random.uniform(8, 16))
            since = time.monotonic() + 0.5  # when it is so in any case
            self.later(lambda: self.taken_over(kind, since, alone, leader.name))

    def stop_leader(self) -> None:
        self.hold_leader("SIGSTOP of the leader", self.stop_for)

    def cut_leader(self) -> None:
        self.hold_leader("cut of the leader", self.cut_for)

    def cut_leader_one_way(self) -> None:
        ways = self.random.choice(("in", "out"))
        self.hold_leader("one-way cut of the leader", lambda kind, leader, seconds: self.cut_for(kind, leader, seconds, ways))

    def slow_leader(self) -> None:
        if found := self.some_leader():
            self.slow_for("slow network of the leader", found[0].host, found[0].name, self.random.uniform(8, 16))

    def some_standby(self) -> Member | None:
        member = self.cluster.standby()
        return member if member and member.name not in self.active and member.is_running() else None

    def kill_standby(self) -> None:
        if member := self.some_standby():
            with self.fault("SIGKILL of the standby", member.name):
                member.signal(signal.SIGKILL, *KILLED)

    def stop_standby(self) -> None:
        if member := self.some_standby():
            self.stop_for("SIGSTOP of the standby", member, self.random.uniform(8, 16))

    def cut_standby(self) -> None:
        if member := self.some_standby():
            self.cut_for("cut of the standby", member, self.random.uniform(8, 16))

    def kill_both(self) -> None:
        with self.fault("SIGKILL of both coordinators", "one and two"):
            for member in self.cluster.coordinators:
                member.signal(signal.SIGKILL, *KILLED)
            since = time.monotonic()
        self.later(lambda: self.taken_over("SIGKILL of both coordinators", since, False, "both"))

    # What they stand on.

    def database_down(self, kind: str, number: signal.Signals) -> None:
        if "database" in self.active:
            return
        seconds = self.random.choice((0.5, 3, 9))

        def work() -> None:
            with self.fault(kind, "database", "database", f", back after {seconds:g} s"):
                self.cluster.database.stop(number)
                time.sleep(seconds)
                self.cluster.database.start()

        self.later(work)

    def restart_database(self) -> None:
        self.database_down("restart of PostgreSQL", signal.SIGINT)

    def crash_database(self) -> None:
        self.database_down("crash of PostgreSQL", signal.SIGQUIT)

    def cut_server(self, kind: str, name: str, host) -> None:
        if name in self.active:
            return
        seconds = self.random.uniform(3, 12)

        def work() -> None:
            with self.fault(kind, name, name, f", {seconds:.0f} s"):
                self.cluster.cut(host)
                time.sleep(seconds)
                self.cluster.heal(host)

        self.later(work)

    def cut_database(self) -> None:
        self.cut_server("cut of PostgreSQL", "database", self.cluster.database.host)

    def slow_database(self) -> None:
        if "database" not in self.active:
            self.slow_for("slow network of PostgreSQL", self.cluster.database.host, "database", self.random.uniform(8, 16))

    def cut_store(self) -> None:
        self.cut_server("cut of the object store", "store", self.cluster.bucket.host)

    def slow_store(self) -> None:
        if "store" not in self.active:
            self.slow_for("slow network of the object store", self.cluster.bucket.host, "store", self.random.uniform(8, 16))

    def stop_store(self) -> None:
        if "store" in self.active:
            return
        seconds, process = self.random.uniform(5, 40), self.cluster.bucket.process  # requests are tried again for 30 s

        def work() -> None:
            with self.fault("SIGSTOP of the object store", "store", "store", f", {seconds:.0f} s"):
                process.send_signal(signal.SIGSTOP)
                time.sleep(seconds)
                process.send_signal(signal.SIGCONT)

        self.later(work)

    def fill_disk(self) -> None:
        if "disk" in self.active:
            return
        seconds = self.random.uniform(4, 12)

        def work() -> None:
            with self.fault("full disk", "disk", "disk", f", {seconds:.0f} s"):
                end = time.monotonic() + seconds
                while time.monotonic() < end:  # also what others free meanwhile
                    self.cluster.disk.fill()
                    time.sleep(0.2)
                self.cluster.disk.free()

        self.later(work)

    def freeze_disk(self) -> None:
        if "disk" in self.active:
            return
        seconds = self.random.uniform(2, 1.2 * LEASE)

        def work() -> None:
            with self.fault("frozen disk", "disk", "disk", f", {seconds:.0f} s"):
                self.cluster.disk.freeze()
                time.sleep(seconds)
                self.cluster.disk.thaw()

        self.later(work)

    def slow_disk(self) -> None:
        """It stands still most of the time."""
        if "disk" in self.active:
            return
        seconds, stands, goes = self.random.uniform(8, 16), self.random.uniform(0.2, 0.8), self.random.uniform(0.05, 0.2)

        def work() -> None:
            with self.fault("slow disk", "disk", "disk", f", {seconds:.0f} s, {stands:.1f} s of {stands + goes:.1f} s"):
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    self.cluster.disk.freeze()
                    time.sleep(stands)
                    self.cluster.disk.thaw()
                    time.sleep(goes)

        self.later(work)

    def fail_disk(self) -> None:
        """Every write and sync fails for a while. Then the machines are reset, and the disk has what was synced."""
        if "disk" in self.active:
            return
        seconds, flags = self.random.uniform(1, 8), self.random.choice((WITH_LOG, WITHOUT_LOG))
        disk, coordinators = self.cluster.disk, self.cluster.coordinators

        def work() -> None:
            how = "" if flags == WITH_LOG else ", its log lost"
            with self.fault("failing disk", "disk", "disk", f", {seconds:.0f} s{how}"):
                disk.fail(flags)
                time.sleep(seconds)
                end = time.monotonic() + 30
                while True:
                    for member in coordinators:
                        member.rest = 3.0
                        member.signal(signal.SIGKILL, *KILLED)
                    time.sleep(0.2)
                    if disk.detach():
                        break
                    if time.monotonic() > end:
                        raise RuntimeError("the failed disk cannot be detached")
                disk.attach()

        self.later(work)
