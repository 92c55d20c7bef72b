#!/usr/bin/env python3
"""How long heartbeats take while others submit, watch and attack.

    python3 bench/heartbeats.py target/release/regretta SCRATCH [--workers 100] [--seconds 15] [--json FILE]

Starts a coordinator with a token and one real worker that computes a study. Beside it, workers that hold a lease each and
compute nothing send a heartbeat every half second, first alone, then beside 200 watchers, beside submissions of 400 MiB, and
beside every attack of hostile.py, last of all beside all of them at once. Prints the latency of their heartbeats in
milliseconds, the heartbeats that failed, the leases that they lost, and the coordinator's peak of memory until then.
Exit code 0 if the 99th percentile is below a second in every row, none failed, and none lost a lease.

Everything runs on this machine: the attackers take processor time from whom they attack. Needs grpcio, grpcio-reflection
and numpy.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import grpc

sys.dont_write_bytecode = True
from hostile import KINDS, program  # noqa: E402
from service import Service, peak  # noqa: E402
from wire import Wire  # noqa: E402

EVERY = 0.5  # seconds between a worker's heartbeats
PATIENCE = 60.0
GOAL = 1000.0  # ms
CHANNELS = 20

STUDY = """
[study]
name = "background"
seed = 5
replicates = 1000000
[prior]
domain = { kind = "grid", points = 300, dimension = 1 }
kernel = { kind = "matern52", lengthscale = 0.1 }
noise_variance = 0.01
[grid]
N = [400, 800]
T = [20, 80]
delta = [0.1]
"""


@dataclass
class Row:
    """Heartbeats of all workers in one phase."""

    phase: str
    milliseconds: list[float] = field(default_factory=list)
    failed: int = 0
    lost: int = 0
    peak: int = 0

    def quantile(self, share: float) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")

    def is_good(self) -> bool:
        return bool(self.milliseconds) and self.quantile(0.99) < GOAL and not self.failed and not self.lost

    def summary(self) -> dict:
        values = {name: round(self.quantile(share), 1) for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))}
        return {"phase": self.phase, "heartbeats": len(self.milliseconds), **values, "failed": self.failed, "lost": self.lost, "peak": self.peak}


class Worker:
    """Holds a lease, and says so."""

    def __init__(self, wire: Wire, channel: grpc.aio.Channel, number: int):
        self.wire, self.number = wire, number
        self.calls = {name: wire.method(channel, "Workers", name) for name in ("Register", "Lease", "Heartbeat")}
        self.held: list[int] = []

    async def join(self, version: str, numerics: str) -> None:
        request = self.wire.registration(f"beat-{self.number}", version, numerics)
        self.id = (await self.calls["Register"](request, timeout=PATIENCE)).worker_id
        while not self.held:
            reply = await self.calls["Lease"](self.wire.message("LeaseRequest", worker_id=self.id, wanted=1), timeout=PATIENCE)
            self.held = [lease.epoch for lease in reply.leases]
            await asyncio.sleep(0.05)

    async def beat(self, rows: list[Row]) -> None:
        # Each at a time of its own.
        await asyncio.sleep(EVERY * (self.number % 100) / 100)
        while True:
            row, began = rows[-1], time.perf_counter()
            request = self.wire.message("HeartbeatRequest", worker_id=self.id, leases=[{"lease": lease} for lease in self.held])
            try:
                reply = await self.calls["Heartbeat"](request, timeout=PATIENCE)
                row.milliseconds.append(1e3 * (time.perf_counter() - began))
                gone = {revoked.lease for revoked in reply.revoked} & set(self.held)
                row.lost += len(gone)
                self.held = [lease for lease in self.held if lease not in gone]
            except grpc.RpcError:
                row.failed += 1
            await asyncio.sleep(max(0.0, began + EVERY - time.perf_counter()))


async def measure(service: Service, binary: str, workers: int, seconds: float) -> list[Row]:
    address, token = f"127.0.0.1:{service.port}", service.folder / "token"
    wire = Wire(address, token.read_text())
    channels = [wire.aio_channel() for _ in range(CHANNELS)]
    fleet = [Worker(wire, channels[number % CHANNELS], number) for number in range(workers)]
    await asyncio.gather(*(worker.join(*program(binary)) for worker in fleet))
    rows = [Row("before")]
    beats = [asyncio.create_task(worker.beat(rows)) for worker in fleet]
    phases = [(), *((kind,) for kind in (*KINDS[-2:], *KINDS[:-2])), KINDS]
    here = Path(__file__).resolve().parent
    for kinds in phases:
        command = [sys.executable, "-B", str(here / "hostile.py")]
        more = [address, "--token-file", str(token), "--binary", binary, "--seconds", str(seconds + 2)]
        others = [subprocess.Popen([*command, kind, *more], stdout=subprocess.DEVNULL) for kind in kinds]
        await asyncio.sleep(2)  # they begin
        rows.append(Row({0: "alone", 1: "".join(kinds)}.get(len(kinds), "all at once")))
        await asyncio.sleep(seconds)
        row = rows[-1]
        rows.append(Row("between"))
        for other in others:
            other.terminate()
        await asyncio.to_thread(lambda: [end(other) for other in others])
        await asyncio.sleep(1)
        row.peak = peak(service.coordinator)
        print(line(row.summary()), flush=True)
    for beat in beats:
        beat.cancel()
    return [row for row in rows if row.phase not in ("before", "between")]


def end(process: subprocess.Popen) -> None:
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def line(summary: dict) -> str:
    return (f"{summary['phase']:12} {summary['heartbeats']:9} {summary['p50']:9.1f} {summary['p99']:9.1f} {summary['max']:9.1f}"
            f" {summary['failed']:7} {summary['lost']:5} {summary['peak']:9}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=15, help="of each phase")
    parser.add_argument("--json", type=Path, help="a file for the table")
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        service = Service(arguments.binary, Path(folder))
        try:
            (service.folder / "study.toml").write_text(STUDY)
            service.study("submit", str(service.folder / "study.toml"))
            print(f"{'beside':12} {'heartbeats':>9} {'p50, ms':>8} {'p99':>9} {'max':>9} {'failed':>7} {'lost':>5} {'peak, MiB':>9}", flush=True)
            rows = asyncio.run(measure(service, arguments.binary, arguments.workers, arguments.seconds))
        finally:
            service.stop()
    if arguments.json:
        arguments.json.write_text(json.dumps([row.summary() for row in rows], indent=1) + "\n")
    bad = [row.phase for row in rows if not row.is_good()]
    if bad:
        sys.exit(f"heartbeats fail, lose leases, or take {GOAL / 1e3:g} s and more at the 99th percentile: {', '.join(bad)}")


if __name__ == "__main__":
    main()
