#!/usr/bin/env python3
"""A study on several hosts, cut off from each other, slowed and healed while it runs; and who is let in.

    python3 .ci/hosts.py target/release/regretta [--seconds 40]

A coordinator and three workers on addresses of their own, with TLS and client certificates, have to give the digest and the
bytes of records that one process gives. A run in which no fault was felt fails. Needs root, iproute2 and Python's
cryptography and grpcio.
"""

import argparse
import re
import shutil
import signal
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

LEASE = 3.0
COUNTED = ("leases", "retries", "worker_deaths", "checks", "alarms")


def say(text: str) -> None:
    print(f"{time.monotonic() - BEGAN:5.1f} s  {text}", flush=True)


class Cluster:
    """A coordinator, three workers and two clients, each on a host of its own."""

    def __init__(self, fleet: Fleet):
        network = fleet.network
        self.fleet, self.network = fleet, network
        self.home = network.add("coordinator")
        self.hosts = [network.add(f"worker-{number}") for number in (1, 2, 3)]
        self.client, self.laptop = network.add("client"), network.add("laptop")
        certs = fleet.folder / "certs"
        made = fleet.call(self.home, "cert", "--out", str(certs), "--host", self.home.address)
        assert made.returncode == 0, made.stderr
        self.keys = ("--tls-ca", str(certs / "ca.pem"), "--tls-cert", str(certs / "client.pem"), "--tls-key", str(certs / "client.key"))
        self.at = ("--coordinator", f"https://{self.home.address}:{PORT}", *self.keys)
        self.serve = (
            "--tls-cert", str(certs / "server.pem"), "--tls-key", str(certs / "server.key"), "--tls-ca", str(certs / "ca.pem"),
            "--metrics", "127.0.0.1:9090", "--lease-seconds", str(LEASE), "--shard-seconds", "0.3", "--check", "0.05",
        )
        self.before = dict.fromkeys(COUNTED, 0)  # counted by lives of the coordinator that ended

    def start(self) -> None:
        self.coordinator = self.fleet.coordinator(self.home, "service", *self.serve)
        self.workers = {host: self.work(host) for host in self.hosts}

    def work(self, host: Host) -> subprocess.Popen:
        return self.fleet.start(host, host.name, "worker", *self.at, "--name", host.name, "--slots", "1", "--cache", str(self.fleet.folder / "cache"))

    def counts(self) -> dict[str, int]:
        now = self.fleet.metrics(self.home)
        return {name: self.before[name] + now[name] for name in COUNTED}

    def deaths(self) -> int:
        return self.counts()["worker_deaths"]

    def registered(self, host: Host) -> int:
        return self.fleet.said("service").count(f'a worker registered worker=')

    def joined(self, host: Host) -> int:
        return len(re.findall(r"INFO .*\bjoined\b", self.fleet.said(host.name)))

    def refused(self) -> int:
        """Results and leases that the coordinator turned away because their lease had ended."""
        return sum(len(re.findall("the coordinator (?:ended|took) a lease|a lease back", self.fleet.said(host.name))) for host in self.hosts)

    def status(self) -> dict:
        return self.fleet.ask(self.client, "study", "status", "several-hosts", *self.at)


def missed(cluster: Cluster, host: Host, what: str, ways: str = "both") -> None:
    """Cut off until the coordinator misses the host's worker, and healed until it is back."""
    network, deaths, joined = cluster.network, cluster.deaths(), cluster.joined(host)
    network.cut(host, ways)
    wait_for(f"{host.name} to be missed", lambda: cluster.deaths() > deaths)
    network.heal(host)
    wait_for(f"{host.name} to be back", lambda: cluster.joined(host) > joined)
    say(f"{host.name} {what}: {cluster.deaths() - deaths} leases expired, back again")


def faults(cluster: Cluster) -> int:
    """All faults, one after the other; how many."""
    network, (one, two, three) = cluster.network, cluster.hosts
    network.cut(one)
    time.sleep(LEASE / 3)
    network.heal(one)
    say("worker-1 was cut off for less than a lease")
    missed(cluster, one, "was cut off")
    missed(cluster, two, "heard nothing", "in")
    missed(cluster, three, "was not heard", "out")

    for host in cluster.hosts:
        network.slow(host, delay=0.2, jitter=0.05, loss=0.03)
    done = cluster.status()["trials_done"]
    wait_for("trials over a slow network", lambda: cluster.status()["trials_done"] > done)
    time.sleep(4)
    say(f"all workers 200 ms away, 3 % lost: {cluster.status()['trials_done'] - done} trials came through")
    for host in cluster.hosts:
        network.heal(host)

    # Heartbeats come so late that leases expire, and their answers early enough that the worker stays.
    refused = cluster.refused()
    network.slow(one, delay=LEASE - 0.25, ways="out")
    try:
        wait_for("a result that is too late", lambda: cluster.refused() > refused, 15)
    except RuntimeError as error:
        say(f"{error}")
    network.heal(one)
    say(f"worker-1 late by {LEASE - 0.25} s: {cluster.refused() - refused} leases refused or taken back")

    deaths, joined = cluster.deaths(), sum(map(cluster.joined, cluster.hosts))
    network.cut(cluster.home)
    wait_for("all workers to be missed", lambda: cluster.deaths() >= deaths + 3)
    network.heal(cluster.home)
    wait_for("all workers to be back", lambda: sum(map(cluster.joined, cluster.hosts)) >= joined + 3)
    say(f"the coordinator was cut off: {cluster.deaths() - deaths} leases expired")

    network.cut(three)
    cluster.workers[three].kill()
    cluster.workers[three].wait()
    wait_for("worker-3 to be missed", lambda: cluster.deaths() > deaths)
    network.heal(three)
    cluster.workers[three] = cluster.work(three)
    say("worker-3 was cut off, killed and started again")

    joined = [cluster.joined(host) for host in cluster.hosts]
    network.cut(cluster.home)
    cluster.before = cluster.counts()
    cluster.coordinator.kill()
    cluster.coordinator.wait()
    network.heal(cluster.home)
    cluster.coordinator = cluster.fleet.coordinator(cluster.home, "service", *cluster.serve)
    wait_for("all workers to be back", lambda: all(cluster.joined(host) > was for host, was in zip(cluster.hosts, joined)))
    say("the coordinator was cut off, killed and started again")
    return 10


def study(cluster: Cluster, file: Path, truth: tuple[str, dict[str, bytes]]) -> None:
    fleet = cluster.fleet
    cluster.start()
    fleet.ask(cluster.client, "study", "submit", str(file), *cluster.at)
    wait_for("trials", lambda: cluster.status()["trials_done"] > 0)
    say("three workers compute")
    laptop = fleet.start(cluster.laptop, "laptop", "study", "watch", "several-hosts", *cluster.at)
    wait_for("somebody to watch", lambda: cluster.status()["workers"] == 3)
    time.sleep(1)
    cluster.network.cut(cluster.laptop)
    count = faults(cluster)
    status = cluster.status()
    assert status["state"] == "running", f"the study was over before the faults were: {status['state']}; give more --seconds"
    watched = fleet.ask(cluster.client, "study", "watch", "several-hosts", *cluster.at)
    assert (watched["state"], watched["quarantined"]) == ("done", 0), watched
    counts = cluster.counts()
    say(f"done after {count} faults: " + ", ".join(f"{value} {name}" for name, value in counts.items()) + f", {cluster.refused()} refused as too late")
    assert counts["worker_deaths"] >= 8 and counts["alarms"] == 0, counts
    fetch = ("study", "fetch", "several-hosts", "--out", str(fleet.folder / "fetched"), *cluster.at)
    fetched = fleet.call(cluster.client, *fetch)
    assert fetched.returncode == 0, fetched.stderr
    digest, records = dataset(fleet.folder / "fetched")
    assert digest == truth[0], f"digest {digest} in place of {truth[0]}"
    assert records == truth[1], "the records have other bytes"
    say(f"digest {digest[:12]} and {sum(map(len, records.values())):,} bytes of records, as from one process")
    said = laptop.wait(60), fleet.said("laptop")
    assert said[0] == 1 and "the connection to the coordinator broke" in said[1], said
    say("a watcher that was cut off for good ended by itself")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--only", choices=("study", "access"))
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="regretta-hosts-"))
    with Network() as network:
        fleet = Fleet(str(Path(arguments.binary).resolve()), folder, network)
        try:
            if arguments.only != "access":
                file = folder / "study.toml"
                file.write_text(STUDY.format(replicates=arguments.replicates))
                subprocess.run([fleet.binary, "run", str(file), "--out", str(folder / "truth"), "--quiet"], check=True, capture_output=True)
                truth = dataset(folder / "truth")
                say(f"one process: digest {truth[0][:12]}")
                cluster = Cluster(fleet)
                study(cluster, file, truth)
                for host, worker in cluster.workers.items():
                    assert fleet.stop(worker) == 0, host.name
            if arguments.only != "study":
                access.check(fleet, say)
        except Exception:
            print(fleet.words(), file=sys.stderr)
            raise
        finally:
            fleet.kill()
            shutil.rmtree(folder, ignore_errors=True)
    say("all as it should be")


if __name__ == "__main__":
    BEGAN = time.monotonic()
    main()
