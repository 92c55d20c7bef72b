#!/usr/bin/env python3
"""A cluster under faults: nothing lost, nothing twice, and the digests of undisturbed runs.

    python3 bench/soak.py target/release/regretta [--minutes 20] [--seed 1] [--log bench/soak.log] [--s3]

Two coordinators share a PostgreSQL ledger and a folder on a small disk; five workers and a client call them over TLS;
each has a host of its own (.ci/network.py). What the fifth worker hands in is doubled, reordered and forged
(soaking/rogue.py). Studies are handed in one after another, while processes are killed, stopped and drained, networks cut
and slowed, PostgreSQL restarted and crashed, and the disk filled, frozen, slowed and broken, at random from a seed. Every
study is fetched, verified and compared with what one process gives without faults. Whatever ends is started again, as
systemd or Kubernetes would.

Needs root, Debian's postgresql and iproute2, Python's grpcio, grpcio-reflection and polars, and some 2 GB in the folder of temporary files.
Exit code 0 where all checks held.
"""

import argparse
import json
import re
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent / ".ci")]

from network import Network  # noqa: E402
from soaking.cluster import Cluster  # noqa: E402
from soaking.faults import SERVED_WITHIN, Faults  # noqa: E402
from soaking.journal import Journal  # noqa: E402
from soaking.machines import Disk  # noqa: E402
from soaking.studies import Driver, undisturbed  # noqa: E402

DISK = 3072  # MiB: all datasets, and the 64 MiB that sealing wants to find
DRIVERS = 2
AFTERWARDS = 300  # seconds in which all has to be well again
MEMORY = 256  # MiB that a coordinator may take


def soak(journal: Journal, cluster: Cluster, expected: dict, minutes: float, seed: int) -> Faults:
    cluster.start()
    began = time.monotonic()
    while not cluster.is_whole():
        if time.monotonic() > began + 60:
            raise RuntimeError("the cluster does not come up")
        time.sleep(0.2)
    journal.say(f"the cluster is up; faults for {minutes:g} minutes, seed {seed}")
    until = time.monotonic() + 60 * minutes
    faults = Faults(cluster, until, seed)
    drivers = [Driver(cluster, number, expected, until, seed + number) for number in range(1, DRIVERS + 1)]
    for thread in (*drivers, faults):
        thread.start()
    faults.join()
    seconds = time.monotonic() - until + 60 * minutes
    journal.count("faults", "in all", faults.begun)
    journal.say(f"no more faults after {seconds / 60:.1f} minutes: all has to be well within {AFTERWARDS} s")
    calm = time.monotonic()
    for driver in drivers:
        driver.join(max(0.0, calm + AFTERWARDS - time.monotonic()))
        driver.over.set()
        driver.join()
        journal.check(driver.error is None, f"driver {driver.number}, {time.monotonic() - calm:.0f} s after the last fault: {driver.error}")
    journal.check(faults.error is None, f"faults: {faults.error}")
    while not cluster.is_whole() and time.monotonic() < calm + AFTERWARDS:
        time.sleep(0.2)
    journal.check(cluster.is_whole(), "one serves, the other stands by, all workers run")
    journal.say(f"all is well {time.monotonic() - calm:.0f} s after the last fault")
    return faults


def summary(journal: Journal, cluster: Cluster, faults: Faults) -> None:
    """Counts and what has to hold of all of them."""
    alone = [takeover for takeover in faults.takeovers if takeover.alone]
    for how in sorted({takeover.how for takeover in faults.takeovers}):
        times = [takeover.seconds for takeover in alone if takeover.how == how]
        beside = [takeover.seconds for takeover in faults.takeovers if takeover.how == how and not takeover.alone]
        words = [f"{len(some)} {text}, {min(some):.1f} to {max(some):.1f} s" for some, text in ((times, "alone"), (beside, "beside other faults")) if some]
        journal.say(f"served again after {how}: {'; '.join(words)}")
    killed = [takeover.seconds for takeover in alone if takeover.how == "SIGKILL of the leader"]
    journal.check(bool(killed), "a leader was killed while nothing else was wrong")
    journal.check(max(killed, default=0) <= SERVED_WITHIN, f"a standby serves within {SERVED_WITHIN:g} s after a leader's SIGKILL: {max(killed, default=0):.1f} s")
    segments = list((cluster.disk.mount / "service/ledger").glob("**/*.seg"))
    journal.say(f"left of the segments: {', '.join(file.name for file in segments) or 'nothing'}")
    journal.check(len(segments) <= 2, f"segments are deleted when their studies are sealed: {len(segments)} are left")
    for member in (*cluster.coordinators, *cluster.workers):
        journal.say(f"{member.name}: {member.lives} lives, {member.peak / 1024:.0f} MiB at most")
    peak = max(member.peak for member in cluster.coordinators) / 1024
    journal.check(peak < MEMORY, f"a coordinator takes at most {MEMORY} MiB: {peak:.0f} MiB")
    logs = {log: log.read_text(errors="replace") for log in cluster.logs() if log.exists()}
    for log, text in logs.items():
        panics = re.findall(r".*panicked at.*", text)
        journal.check(not panics, f"no panic in {log.name}: {panics[:3]}")
    leads = sum(len(re.findall(r"store::opening: leads", text)) for text in logs.values())
    journal.count("seen in logs", "leads taken", leads)
    journal.count("seen in logs", "shards that lost their worker", sum(text.count("a worker was lost") for text in logs.values()))
    journal.count("seen in logs", "writes that failed", sum(text.count("a write failed") for text in logs.values()))
    journal.count("seen in logs", "times that a leader stopped serving", sum(text.count("does not lead any more") for text in logs.values()))
    for line in re.findall(r"^misuse (.*)$", logs[cluster.rogue.log], re.MULTILINE):
        for way, times in json.loads(line).items():
            journal.count("done by the hostile worker", way, times)
    misused = sum(journal.counts.get("done by the hostile worker", {}).values())
    journal.check(misused > 0, f"the hostile worker has done something: {misused}")
    journal.check(cluster.metrics["regretta_alarms_total"] == 0, "no two computations of a shard differ")
    for name, amount in cluster.metrics.items():
        journal.count("seen in metrics", name.removeprefix("regretta_").removesuffix("_total").replace("_", " "), amount)
    for group, counts in journal.counts.items():
        journal.say(f"{group}: " + "; ".join(f"{name}: {amount}" for name, amount in sorted(counts.items())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--s3", action="store_true", help="keep records in an object store (Python's moto[server]), which is cut, slowed and stopped too")
    parser.add_argument("--keep", type=Path, help="a folder for the logs of all processes")
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    # An interruption ends it in order, so that nothing stays behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    journal = Journal(arguments.log)
    folder = Path(tempfile.mkdtemp(prefix="regretta-soak-"))
    folder.chmod(0o755)  # PostgreSQL's user has to get in
    try:
        expected = undisturbed(binary, folder, journal)
        with Disk(folder, DISK) as disk, Network() as network:
            cluster = Cluster(journal, network, binary, folder, disk, arguments.s3, arguments.seed)
            try:
                faults = soak(journal, cluster, expected, arguments.minutes, arguments.seed)
                journal.count("seen in the ledger", "leaders", int(cluster.database.sql("SELECT restarts FROM store") or 0))
                cluster.supervisor.stop()
                summary(journal, cluster, faults)
            finally:
                cluster.close()
    finally:
        if arguments.keep:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            for log in folder.glob("*.log"):
                shutil.copy(log, arguments.keep)
        shutil.rmtree(folder, ignore_errors=True)
    for failure in journal.failures:
        journal.say(f"failed: {failure}")
    journal.say(f"{journal.passed} checks passed, {len(journal.failures)} failed")
    sys.exit(1 if journal.failures else 0)


if __name__ == "__main__":
    main()
