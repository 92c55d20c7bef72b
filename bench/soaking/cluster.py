"""Two coordinators that share a PostgreSQL ledger and a folder, workers, one of them hostile, and a client, each on a host of its own."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from pathlib import Path

from .journal import Journal
from .machines import Bucket, Clock, Database, Disk, Member, Supervisor

COORDINATORS = ("one", "two")
WORKERS = 4
ROGUE = 7171  # where the hostile worker's proxy listens, on its host
LEASE = 10.0  # seconds; the default of 30 would leave time for fewer faults
TLS = ["--tls-ca", "certs/ca.pem", "--tls-cert", "certs/client.pem", "--tls-key", "certs/client.key"]


class Cluster:
    """All of it, under one folder."""

    def __init__(self, journal: Journal, network, binary: str, folder: Path, disk: Disk, s3: bool, seed: int):
        self.journal, self.network, self.binary, self.folder, self.disk = journal, network, binary, folder, disk
        self.clock = Clock(journal)
        self.switching = threading.Lock()  # the switch takes one order at a time
        self.client = network.add("client")
        self.database = Database(network.add("database"), folder)
        hosts = {name: network.add(name) for name in COORDINATORS}
        self.addresses = [f"https://{host.address}:7070" for host in hosts.values()]
        named = [word for host in hosts.values() for word in ("--host", host.address)]
        subprocess.run([binary, "cert", "--out", "certs", *named], cwd=folder, check=True, capture_output=True)
        self.database.create()
        self.bucket = Bucket(network.add("store"), folder) if s3 else None
        self.coordinators = [self.coordinator(name, host) for name, host in hosts.items()]
        self.workers = [self.worker(f"worker-{number}") for number in range(1, WORKERS + 1)]
        self.rogue, hostile = self.hostile(seed)
        self.workers.append(hostile)
        self.health: dict[str, tuple[float, str]] = {name: (0.0, "silent") for name in COORDINATORS}
        self.served: deque[tuple[float, str]] = deque(maxlen=100_000)  # when who was found serving
        self.metrics: Counter[str] = Counter()
        self.known: dict[str, dict[str, int]] = {}
        self.faults: dict[str, float] = {}  # when the last fault of each kind ended; the time to come while it lasts
        self.supervisor = Supervisor(journal, [*self.coordinators, *self.workers, self.rogue], self.ended)

    def coordinator(self, name: str, host) -> Member:
        command = [
            self.binary, "coordinator", "--dir", "shared/service", "--ledger", self.database.url,
            "--listen", f"{host.address}:7070", "--metrics", f"{host.address}:9090", "--insecure",
            "--tls-cert", "certs/server.pem", "--tls-key", "certs/server.key", "--tls-ca", "certs/ca.pem",
            "--lease-seconds", str(LEASE), "--shard-seconds", "1",
        ]
        environment = {"RUST_LOG": "info"}
        if self.bucket:
            command += ["--store", self.bucket.url]
            environment |= self.bucket.environment
        return Member(self.journal, host, name, command, self.folder, environment)

    def worker(self, name: str) -> Member:
        # Half of them know the other coordinator first.
        addresses = self.addresses[:: 1 if int(name[-1]) % 2 else -1]
        command = [self.binary, "worker", "--coordinator", ",".join(addresses), *TLS, "--name", name, "--slots", "1"]
        return Member(self.journal, self.network.add(name), name, [*command, "--cache", f"cache-{name}"], self.folder, {"RUST_LOG": "info"})

    def hostile(self, seed: int) -> tuple[Member, Member]:
        """A worker's proxy that misuses what goes through it, and the worker."""
        host = self.network.add("hostile")
        addresses = [address.removeprefix("https://") for address in self.addresses]
        proxy = [sys.executable, "-B", str(Path(__file__).with_name("rogue.py")), "certs", str(ROGUE), str(seed), *addresses]
        worker = [self.binary, "worker", "--coordinator", f"http://127.0.0.1:{ROGUE}", "--name", "hostile", "--slots", "1"]
        environment = {"RUST_LOG": "info"}
        return (
            Member(self.journal, host, "rogue", proxy, self.folder, {}),
            Member(self.journal, host, "hostile", [*worker, "--cache", "cache-hostile"], self.folder, environment),
        )

    def start(self) -> None:
        self.clock.start()
        self.supervisor.start()
        pairs = [f"{member.name}={member.host.address}" for member in self.coordinators]
        probe = [sys.executable, "-B", str(Path(__file__).with_name("probe.py")), "certs", *pairs]
        self.probe = self.client.spawn(probe, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        """What the probe hears."""
        for line in self.probe.stdout:
            said = json.loads(line)
            name, at = said["name"], said["at"]
            self.health[name] = (at, said["health"])
            if said["health"] == "serving":
                self.served.append((at, name))
            if said.get("metrics"):
                before, now = self.known.get(name, {}), said["metrics"]
                # Counters of another life begin at nothing.
                if any(now[key] < before.get(key, 0) for key in now if key.endswith("_total")):
                    before = {}
                self.metrics.update({key: now[key] - before.get(key, 0) for key in now if key.endswith("_total")})
                self.known[name] = now

    def leader(self) -> Member | None:
        """Who was found serving last, if that is not long ago."""
        recent = [(at, name) for name, (at, state) in self.health.items() if state == "serving"]
        if not recent or max(recent)[0] < time.monotonic() - 3:
            return None
        return next(member for member in self.coordinators if member.name == max(recent)[1])

    def standby(self) -> Member | None:
        leader = self.leader()
        return next((member for member in self.coordinators if leader and member is not leader), None)

    def is_whole(self) -> bool:
        """One serves, the other stands by, and all workers run."""
        leader, standby = self.leader(), self.standby()
        if leader is None or standby is None or self.health[standby.name][1] != "standing by":
            return False
        return all(member.is_running() for member in self.workers)

    def first_served(self, after: float) -> tuple[float, str] | None:
        return next(((at, name) for at, name in self.served if at > after), None)

    def cut(self, host, ways: str = "both") -> None:
        with self.switching:
            self.network.cut(host, ways)

    def slow(self, host, delay: float, jitter: float, loss: float) -> None:
        with self.switching:
            self.network.slow(host, delay=delay, jitter=jitter, loss=loss)

    def heal(self, host) -> None:
        with self.switching:
            self.network.heal(host)

    def ended(self, member: Member, code: int) -> None:
        """A process ended by itself: a coordinator may, on what operations.md says; a worker never."""
        words = member.last_words()
        self.journal.say(f"{member.name} ended by itself with {code}: {words}")
        role = "a coordinator" if member in self.coordinators else "a worker"
        self.journal.count("processes that ended by themselves", f"{role} with exit code {code}")
        recently = time.monotonic() - 90
        causes = {1: ("database", "network"), 2: ("disk", "store")}.get(code, ())
        excused = member in self.coordinators and any(self.faults.get(cause, 0.0) > recently for cause in causes)
        self.journal.check(excused, f"{member.name} ended by itself with {code}: {words}")

    def command(self, words: list[str], patience: float) -> tuple[int, str, str]:
        """`regretta ..` on the client's host."""
        process = self.client.spawn(
            [self.binary, *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            out, error = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return -9, "", f"no end after {patience:.0f} s"
        return process.returncode, out, error

    def logs(self) -> list[Path]:
        return [member.log for member in (*self.coordinators, *self.workers, self.rogue)]

    def close(self) -> None:
        """Ends whatever runs."""
        self.supervisor.kill()
        if hasattr(self, "probe"):
            self.probe.kill()
        if self.bucket:
            self.bucket.process.kill()
        if self.database.process and self.database.process.poll() is None:
            self.database.stop(signal.SIGINT)
