#!/usr/bin/env python3
"""What a record costs on its way: a coordinator and a worker as processes of their own, on this machine.

    python3 bench/service.py target/release/regretta SCRATCH [--trials 500000] [--detail checkpoints] [--claims '*']

The trials are very short, so that records are what it is about. Prints, for one study: processor time of worker and
coordinator for a record and a trial, bytes of a record on the wire (where `ss` is installed), in segments and in
Parquet, then processor time and seconds of sealing and of the analysis for a million records. Processor time is user
and system time, which other programs on the machine disturb less than seconds. SCRATCH is for the study's folder,
which is removed.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from analysis import HORIZONS, STUDY

TICKS = os.sysconf("SC_CLK_TCK")
CELLS = 9  # of the study
PATIENCE = 1800  # seconds for everything


def cpu(process: subprocess.Popen) -> float:
    """Seconds of processor time that a process has had."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak(process: subprocess.Popen) -> int:
    """The most memory that a process has had, in MiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1]) >> 10


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def received(port: int) -> int | None:
    """Bytes that came in over the connections that are open at a port."""
    if not shutil.which("ss"):
        return None
    listing = subprocess.run(["ss", "-tinH", f"sport = :{port}"], capture_output=True, text=True).stdout
    return sum(int(count) for count in re.findall(r"bytes_received:(\d+)", listing))


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds and processor time of a command."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


class Service:
    """A coordinator with metrics and one worker of one slot."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary, self.folder = binary, folder
        (folder / "token").write_text("a-token-for-the-benchmark")
        self.port, self.metrics_port = free_port(), free_port()
        self.access = ["--token-file", str(folder / "token"), "--coordinator", f"http://127.0.0.1:{self.port}"]
        self.coordinator = self.start(
            "coordinator", "--dir", f"{folder}/service", "--listen", f"127.0.0.1:{self.port}", "--check", "0",
            "--metrics", f"127.0.0.1:{self.metrics_port}", "--token-file", f"{folder}/token")
        self.wait(lambda: self.metrics() is not None)
        self.worker = self.start("worker", "--slots", "1", *self.access)

    def start(self, *arguments: str) -> subprocess.Popen:
        quiet = subprocess.DEVNULL
        return subprocess.Popen([self.binary, *arguments], cwd=self.folder, stdout=quiet, stderr=quiet)

    def stop(self) -> None:
        for process in (self.worker, self.coordinator):
            process.terminate()
            process.wait(60)

    def wait(self, done) -> None:
        end = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < end, "this takes too long"
            time.sleep(0.02)

    def metrics(self) -> dict[str, int] | None:
        try:
            page = urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics").read().decode()
        except OSError:
            return None
        return {name: int(value) for name, value in re.findall(r"^(\w+) (\d+)$", page, re.MULTILINE)}

    def study(self, *arguments: str) -> dict:
        command = [self.binary, "study", *arguments, *self.access, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(service: Service, trials: int, detail: str, claims: list[str]) -> None:
    file = service.folder / "study.toml"
    text = STUDY.format(replicates=trials // CELLS, horizons=HORIZONS)
    text = text.replace("[prior]", f'detail = "{detail}"\n[prior]', 1)
    file.write_text(text + f"[claims]\ntest = {json.dumps(claims)}\n")
    before, worker_before = cpu(service.coordinator), cpu(service.worker)
    began = time.perf_counter()
    service.study("submit", str(file))
    shards = service.folder / "service"
    service.wait(lambda: (numbers := service.metrics())["regretta_trials_total"] > 0 == numbers["regretta_studies_active"])
    seconds = time.perf_counter() - began
    after, numbers = cpu(service.coordinator), service.metrics()
    segments = sum(path.stat().st_size for path in shards.rglob("*.seg"))
    wire, worker = received(service.port), cpu(service.worker) - worker_before
    records, done = numbers["regretta_records_total"], numbers["regretta_trials_total"]
    print(f"{detail}: {done} trials, {records} records, {numbers['regretta_shards_total']} shards in {seconds:.1f} s")

    def each(what: str, amount: float, unit: str) -> None:
        print(f"  {what}: {amount / records:.2f} {unit} a record, {amount / done:.2f} a trial")

    each("worker", 1e6 * worker, "us")
    each("coordinator", 1e6 * (after - before), "us")
    each("segments", segments, "bytes")
    if wire is not None:
        each("wire", wire, "bytes")
    name = service.study("list")[0]["name"]
    service.wait(lambda: service.study("status", name)["state"] == "done")
    sealed = time.perf_counter() - began - seconds
    manifest = next(shards.rglob("manifest.json"))
    parquet = sum(path.stat().st_size for path in manifest.parent.rglob("records/*.parquet"))
    each("Parquet", parquet, "bytes")
    million = 1e6 / records
    print(f"  for 10^6 records: sealing {million * sealed:.2f} s, CPU {million * (cpu(service.coordinator) - after):.2f} s")
    print(f"  peak of the coordinator: {peak(service.coordinator)} MiB")
    for what in (["--only", "verdicts"], []):
        took, used = timed([service.binary, "analyze", str(manifest.parent), *what])
        name = " ".join(["analyze", *what])
        print(f"  for 10^6 records: {name} {million * took:.2f} s, CPU {million * used:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--trials", type=int, default=500_000)
    parser.add_argument("--detail", choices=["checkpoints", "steps", "summary"], default="checkpoints")
    parser.add_argument("--claims", nargs="+", default=["*"])
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        service = Service(arguments.binary, Path(folder))
        try:
            measure(service, arguments.trials, arguments.detail, arguments.claims)
        finally:
            service.stop()


if __name__ == "__main__":
    main()
