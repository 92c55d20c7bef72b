#!/usr/bin/env python3
"""The same number of trivial tasks through regretta, Dask and Ray, on this machine.

    python3 -m pip install dask distributed ray
    python3 bench/peers.py target/release/regretta --tasks 20000

A task of regretta is a trial: drawn, run, measured, streamed over gRPC and durable. Trials are leased in shards;
a shard of a single trial (--shard-records 1) costs a lease and a commit, some milliseconds. A task of Dask and
Ray returns its number, and nothing is made durable. Two workers each. Prints tasks per second and the ratio to
regretta. What is not installed is left out.
"""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

STUDY = """
[study]
name = "tasks"
seed = 1
replicates = {tasks}
[prior]
domain = {{ kind = "grid", points = 4, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.5 }}
noise_variance = 0.1
[grid]
N = [20]
T = [1]
delta = [0.1]
design = ["fixed"]
method = ["pem-bo"]
[claims]
test = ["lemma1.mean"]
"""


def regretta(binary: str, tasks: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder) / "study.toml"
        study.write_text(STUDY.format(tasks=tasks))
        command = [binary, "run", str(study), "--out", f"{folder}/out", "--workers", "2"]
        command += ["--check", "0", "--quiet", "--json"]
        report = subprocess.run(command, check=True, capture_output=True, text=True)
        return json.loads(report.stdout)["seconds"]


def dask(tasks: int) -> float:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            client.gather(client.map(lambda i: i, range(100), pure=False))
            began = time.perf_counter()
            client.gather(client.map(lambda i: i, range(tasks), pure=False))
            return time.perf_counter() - began


def ray(tasks: int) -> float:
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")

    @ray.remote
    def task(i: int) -> int:
        return i

    ray.get([task.remote(i) for i in range(100)])
    began = time.perf_counter()
    ray.get([task.remote(i) for i in range(tasks)])
    seconds = time.perf_counter() - began
    ray.shutdown()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--tasks", type=int, default=20_000)
    arguments = parser.parse_args()
    ours = regretta(arguments.binary, arguments.tasks)
    print(f"regretta  {arguments.tasks / ours:9.0f} tasks/s (sealing included)")
    for name, peer in (("dask", dask), ("ray", ray)):
        try:
            seconds = peer(arguments.tasks)
        except ImportError:
            print(f"{name:9} not installed")
            continue
        print(f"{name:9} {arguments.tasks / seconds:9.0f} tasks/s, regretta is {seconds / ours:.1f} times as fast")


if __name__ == "__main__":
    main()
