#!/usr/bin/env python3
"""A study on several hosts, cut off from each other, slowed and healed while it runs; and who is let in.

    python3 .ci/hosts.py target/release/regretta [--only study|access]

A coordinator and three workers on addresses of their own, with TLS and client certificates, have to give the digest and the
bytes of records that one process gives. The study grows while it runs, so that it lasts as long as the faults do on any
machine. A run in which no lease expired or nothing came too late fails. Needs root, iproute2 and Python's cryptography and
grpcio.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import access
from fleet import PORT, Fleet, dataset, wait_for
from network import Host, Network

STUDY = """\
[study]
name = "several-hosts"
seed = 7
replicates = {replicates}
[prior]
domain = {{ kind = "grid", points = 500, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.02 }}
noise_variance = 0.01
[grid]
N = [200, 800]
T = [10, 50]
delta = 0.1
design = ["fixed", "adaptive"]
"""

CELLS = 4
LEASE = 2.0
AHEAD = 10  # seconds of work that there are at least when a fault begins
WORKERS = 3
COUNTED = ("leases", "retries", "worker_deaths", "checks", "alarms")
BEGAN = time.monotonic()


def say(text: str) -> None:
    print(f"{time.monotonic() - BEGAN:5.1f} s  {text}", flush=True)


class Cluster:
    """A coordinator, three workers and two users, each on a host of its own."""

    def __init__(self, fleet: Fleet):
        network = fleet.network
        self.fleet, self.network = fleet, network
        self.home = network.add("coordinator")
        self.hosts = [network.add(f"worker-{number}") for number in range(1, WORKERS + 1)]
        self.user, self.laptop = network.add("user"), network.add("laptop")
        certs = fleet.folder / "certs"
        made = fleet.call(self.home, "cert", "--out", str(certs), "--host", self.home.address)
        assert made.returncode == 0, made.stderr
        keys = ("--tls-ca", f"{certs}/ca.pem", "--tls-cert", f"{certs}/client.pem", "--tls-key", f"{certs}/client.key")
        self.at = ("--coordinator", f"https://{self.home.address}:{PORT}", *keys)
        tls = ("--tls-cert", f"{certs}/server.pem", "--tls-key", f"{certs}/server.key", "--tls-ca", f"{certs}/ca.pem")
        leases = ("--lease-seconds", str(LEASE), "--shard-seconds", "0.3", "--check", "0.05")
        self.serve = (*tls, *leases, "--metrics", "127.0.0.1:9090")
        self.file, self.replicates = fleet.folder / "study.toml", 0
        self.rate, self.fed = 0.0, (time.monotonic(), 0)  # the most trials a second, and when there were how many
        self.before = dict.fromkeys(COUNTED, 0)  # what lives of the coordinator that ended had counted
        self.coordinator = fleet.coordinator(self.home, "service", *self.serve)
        self.workers = {host: self.work(host) for host in self.hosts}

    def work(self, host: Host) -> subprocess.Popen:
        cache = ("--cache", str(self.fleet.folder / f"cache-{host.name}"))
        return self.fleet.start(host, host.name, "worker", *self.at, "--name", host.name, "--slots", "1", *cache)

    def study(self, action: str, *words: str) -> dict:
        return self.fleet.ask(self.user, "study", action, *words, *self.at)

    def status(self) -> dict:
        return self.study("status", "several-hosts")

    def trials(self) -> int:
        return self.status()["trials_done"]

    def submit(self, more: int) -> None:
        self.replicates += more
        self.file.write_text(STUDY.format(replicates=self.replicates))
        self.study("submit", str(self.file))

    def feed(self) -> None:
        """Lets the study grow where it would soon be over."""
        now, status = time.monotonic(), self.status()
        done, left = status["trials_done"], status["trials_planned"] - status["trials_done"]
        self.rate = max(self.rate, (done - self.fed[1]) / (now - self.fed[0]))
        self.fed = (now, done)
        if left < AHEAD * self.rate:
            self.submit(int(AHEAD * self.rate / CELLS) + 1)

    def counts(self) -> dict[str, int]:
        now = self.fleet.metrics(self.home)
        return {name: self.before[name] + now[name] for name in COUNTED}

    def workers_known(self) -> int:
        return self.fleet.metrics(self.home)["workers"]

    def deaths(self) -> int:
        return self.counts()["worker_deaths"]

    def late(self) -> int:
        """Parts and ends of results that were turned away because of the epoch of their lease."""
        return self.fleet.said("service").count("records came too late")

    def whole(self) -> None:
        """Waits until all workers work."""
        def working() -> bool:
            now = self.fleet.metrics(self.home)
            return now["workers"] == WORKERS and now["leases_held"] >= WORKERS
        self.feed()
        wait_for("all workers to work", working)


def missed(cluster: Cluster, host: Host, what: str, ways: str = "both") -> None:
    """Cut off until the coordinator misses the host's worker, and healed until it is back."""
    deaths, late = cluster.deaths(), cluster.late()
    cluster.network.cut(host, ways)
    # One that is still heard may have handed in all that it held: then it is missed, and no lease expires.
    wait_for(f"{host.name} to be missed", lambda: cluster.workers_known() < WORKERS)
    cluster.network.heal(host)
    cluster.whole()
    say(f"{host.name} {what}: {cluster.deaths() - deaths} leases expired, {cluster.late() - late} messages came too late")


def cut_off_for_a_moment(cluster: Cluster) -> None:
    deaths = cluster.deaths()
    cluster.network.cut(cluster.hosts[0])
    time.sleep(LEASE / 3)
    cluster.network.heal(cluster.hosts[0])
    cluster.whole()
    say(f"worker-1 was cut off for less than a lease: {cluster.deaths() - deaths} leases expired")


def cut_off(cluster: Cluster) -> None:
    missed(cluster, cluster.hosts[0], "was cut off")


def hears_nothing(cluster: Cluster) -> None:
    missed(cluster, cluster.hosts[1], "heard nothing", "in")


def is_not_heard(cluster: Cluster) -> None:
    missed(cluster, cluster.hosts[2], "was not heard", "out")


def all_are_slow(cluster: Cluster) -> None:
    for host in cluster.hosts:
        cluster.network.slow(host, delay=0.2, jitter=0.05, loss=0.03)
    trials = cluster.trials()
    time.sleep(2 * LEASE)
    wait_for("trials over a slow network", lambda: cluster.trials() > trials)
    say(f"all workers were 200 ms away with 3 % lost: {cluster.trials() - trials} trials came through")
    for host in cluster.hosts:
        cluster.network.heal(host)


def limps(cluster: Cluster) -> None:
    """Heartbeats come so late that leases expire, and their answers so early that the worker does not give up."""
    late, deaths, delay = cluster.late(), cluster.deaths(), LEASE - 0.25
    cluster.network.slow(cluster.hosts[0], delay=delay, ways="out")
    time.sleep(3 * LEASE)
    cluster.network.heal(cluster.hosts[0])
    deaths, late = cluster.deaths() - deaths, cluster.late() - late
    say(f"worker-1 was late by {delay} s: {deaths} leases expired, {late} messages came too late")


def coordinator_cut_off(cluster: Cluster) -> None:
    deaths = cluster.deaths()
    cluster.network.cut(cluster.home)
    wait_for("all workers to be missed", lambda: cluster.workers_known() == 0)
    cluster.network.heal(cluster.home)
    cluster.whole()
    say(f"the coordinator was cut off: {cluster.deaths() - deaths} leases expired")


def killed_while_cut_off(cluster: Cluster) -> None:
    host, deaths = cluster.hosts[2], cluster.deaths()
    cluster.network.cut(host)
    cluster.workers[host].kill()
    cluster.workers[host].wait()
    wait_for("worker-3 to be missed", lambda: cluster.workers_known() < WORKERS)
    cluster.network.heal(host)
    cluster.workers[host] = cluster.work(host)
    cluster.whole()
    say(f"worker-3 was cut off, killed and started again: {cluster.deaths() - deaths} leases expired")


def coordinator_killed(cluster: Cluster) -> None:
    """Nobody hears of its end: what the others believe to be connections are none."""
    cluster.network.cut(cluster.home)
    cluster.before = cluster.counts()
    cluster.coordinator.kill()
    cluster.coordinator.wait()
    cluster.network.heal(cluster.home)
    cluster.coordinator = cluster.fleet.coordinator(cluster.home, "service", *cluster.serve)
    cluster.whole()
    say("the coordinator was cut off, killed and started again")


FAULTS = (
    cut_off_for_a_moment, cut_off, hears_nothing, is_not_heard, limps, coordinator_cut_off, killed_while_cut_off,
    coordinator_killed, all_are_slow,
)


def gave_up(fleet: Fleet, process: subprocess.Popen, name: str) -> None:
    """A command whose connection is dead says so, and does not wait for ever."""
    ended = process.wait(60)
    assert ended == 1 and "the connection to the coordinator broke" in fleet.said(name), f"{name} ended with {ended}"


def study(cluster: Cluster) -> None:
    """A study from its submission to its end, with all faults."""
    fleet = cluster.fleet
    cluster.network.listen("several-hosts")
    cluster.submit(1500)
    laptop = fleet.start(cluster.laptop, "watch", "study", "watch", "several-hosts", *cluster.at)
    wait_for("somebody to watch", lambda: "several-hosts: " in fleet.said("watch"))
    cluster.network.cut(cluster.laptop)
    say("three workers compute; somebody watches, and is cut off for good")
    for fault in FAULTS:
        cluster.whole()
        fault(cluster)
    status = cluster.status()
    assert status["state"] == "running", f"the study was {status['state']} before the faults were over"
    watched = cluster.study("watch", "several-hosts")
    assert (watched["state"], watched["quarantined"]) == ("done", 0), watched
    counts, late = cluster.counts(), cluster.late()
    say(f"done after {len(FAULTS)} faults: {', '.join(f'{count} {name}' for name, count in counts.items())}, {late} too late")
    assert counts["worker_deaths"] >= 5 and late > 0, "the faults were hardly felt"
    assert counts["alarms"] == 0 and counts["checks"] > 0, counts
    gave_up(fleet, laptop, "watch")
    say("the watcher that was cut off ended by itself")
    for host, worker in cluster.workers.items():
        assert fleet.stop(worker) == 0, host.name


def begin_fetch(cluster: Cluster, out: Path) -> subprocess.Popen:
    """A download that is cut off among the records."""
    cluster.network.slow(cluster.laptop, delay=0.1)
    fetch = cluster.fleet.start(cluster.laptop, "fetch", "study", "fetch", "several-hosts", "--out", str(out), *cluster.at)
    wait_for("records", lambda: any(out.glob("sealing.tmp*/records/*")))
    cluster.network.cut(cluster.laptop)
    return fetch


def fetch_again(cluster: Cluster, broken: subprocess.Popen, out: Path) -> None:
    gave_up(cluster.fleet, broken, "fetch")
    assert not (out / "manifest.json").exists(), "half a download looks like a dataset"
    cluster.network.heal(cluster.laptop)
    fetched = cluster.fleet.call(cluster.laptop, "study", "fetch", "several-hosts", "--out", str(out), *cluster.at)
    assert fetched.returncode == 0, fetched.stderr
    say("a download that was cut off is no dataset, and the same command gets it whole")
    assert cluster.network.overheard("several-hosts") == 0, "the study's name can be read on the wire"
    assert cluster.fleet.stop(cluster.coordinator) == 0


def compare(fetched: Path, whole: Path) -> None:
    (digest, records), truth = dataset(fetched), dataset(whole)
    assert digest == truth[0], f"digest {digest} in place of {truth[0]}"
    assert records == truth[1], "the records have other bytes"
    say(f"digest {digest[:12]} and {sum(map(len, records.values())):,} bytes of records, as from one process")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--only", choices=("study", "access"))
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="regretta-hosts-"))
    fetched, whole = folder / "fetched", folder / "whole"
    with Network() as network:
        fleet = Fleet(str(Path(arguments.binary).resolve()), folder, network)
        try:
            if arguments.only != "access":
                cluster = Cluster(fleet)
                study(cluster)
                broken = begin_fetch(cluster, fetched)
                command = [fleet.binary, "run", str(cluster.file), "--out", str(whole), "--quiet"]
                alone = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                fleet.running.append(alone)
            if arguments.only != "study":
                access.check(fleet, say)
            if arguments.only != "access":
                fetch_again(cluster, broken, fetched)
                assert alone.wait(120) == 0, "the study in one process"
                compare(fetched, whole)
        except Exception:
            print(fleet.words(), file=sys.stderr)
            raise
        finally:
            fleet.kill()
            shutil.rmtree(folder, ignore_errors=True)
    say("all as it should be")


if __name__ == "__main__":
    main()
