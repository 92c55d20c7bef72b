#!/usr/bin/env python3
"""Attacks on a coordinator, one kind at a time, until it is told to stop (SIGTERM) or the seconds are over.

    python3 bench/hostile.py KIND ADDRESS --token-file FILE [--binary target/release/regretta] [--seconds 10]

KIND is
    silent      4,096 connections that say one byte or nothing, and come again when they are closed
    strangers   calls with a wrong token, uploads among them
    replies     parts of leases that nobody holds, on 8 streams whose answers are never read
    heartbeats  heartbeats that name the leases of others
    uploads     four submissions that send 200 MiB each and never end
    giant       a study of 120,000 cells, submitted and cancelled again and again
and, which is no attack,
    watchers    200 callers that watch a study
    large       a study with a file of 400 MiB, submitted and cancelled again and again

`heartbeats.py` measures what others feel of it.
"""

import argparse
import asyncio
import io
import json
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc

sys.dont_write_bytecode = True
from wire import Wire  # noqa: E402

CONNECTIONS, STREAMS, WATCHERS = 4096, 8, 200
NEIGHBOURS = 2000
UNFINISHED = 200  # MiB
ROWS, COLUMNS = 26_214, 2_000  # of float64: 400 MiB
PIECE = 1 << 20

SMALL = """
[study]
name = "{name}"
seed = 3
replicates = 1
[prior]
domain = {{ kind = "grid", points = 20, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.2 }}
noise_variance = 0.01
[grid]
T = [1]
delta = [0.1]
design = ["fixed", "adaptive"]
N = {n}
"""

LARGE = """
[study]
name = "large"
seed = 3
replicates = 10
[prior]
setting = "data"
rewards = "rewards.npy"
[grid]
T = [1]
delta = [0.1]
method = ["random"]
"""


class Attacker:
    """Carries out attacks of one kind; counts what it did."""

    def __init__(self, wire: Wire, version: str, numerics: str, until: float):
        self.wire, self.until, self.done = wire, until, 0
        self.registration = wire.registration("rogue", version, numerics)

    def goes_on(self) -> bool:
        return time.monotonic() < self.until

    def wait(self) -> None:
        while self.goes_on():
            time.sleep(0.1)

    def silent(self) -> None:
        asyncio.run(self.besiege())

    async def besiege(self) -> None:
        host, port = self.wire.address.split(":")

        async def caller(number: int) -> None:
            while self.goes_on():
                try:
                    # Every other one comes from an address of its own kind.
                    own = None if number % 2 else (f"127.0.0.{2 + number // 1024}", 0)
                    reader, writer = await asyncio.open_connection(host, int(port), local_addr=own)
                    writer.write(b"P" if number % 3 else b"")
                    self.done += 1
                    while await reader.read(512):
                        pass
                    writer.close()
                except OSError:
                    pass
                await asyncio.sleep(0.2)

        callers = [asyncio.create_task(caller(number)) for number in range(CONNECTIONS)]
        while self.goes_on():
            await asyncio.sleep(0.1)
        for one in callers:
            one.cancel()

    def strangers(self) -> None:
        self.wire.metadata = [("authorization", "Bearer 0123456789abcdef")]
        while self.goes_on():
            with self.wire.channel() as channel:
                upload = (self.wire.message("SubmitRequest", data=bytes(PIECE)) for _ in range(64))
                calls = (("Workers", "Register", self.registration), ("Studies", "List", self.wire.message("ListRequest")), ("Studies", "Submit", upload))
                for service, name, request in calls:
                    try:
                        self.wire.method(channel, service, name)(request, timeout=10)
                        raise SystemExit("a stranger was answered")
                    except grpc.RpcError:
                        self.done += 1

    def register(self, channel: grpc.Channel) -> int:
        return self.wire.method(channel, "Workers", "Register")(self.registration, timeout=30).worker_id

    def replies(self) -> None:
        def flood() -> None:
            channel = self.wire.channel()
            worker = self.register(channel)
            part = self.wire.message("RecordStream", part={"lease": 1 << 62, "sequence": 0, "batch": b"\0"})

            def parts():
                yield self.wire.message("RecordStream", open={"worker_id": worker})
                while self.goes_on():
                    self.done += 1
                    yield part

            unread = self.wire.method(channel, "Workers", "Stream")(parts())
            self.wait()
            unread.cancel()

        self.at_once(flood, STREAMS)

    def at_once(self, what, times: int) -> None:
        threads = [threading.Thread(target=what, daemon=True) for _ in range(times)]
        for thread in threads:
            thread.start()
        self.wait()
        for thread in threads:
            thread.join(1)

    def heartbeats(self) -> None:
        channel = self.wire.channel()
        worker = self.register(channel)
        newest = 1
        while self.goes_on():
            try:
                lease = self.wire.method(channel, "Workers", "Lease")(self.wire.message("LeaseRequest", worker_id=worker, wanted=1), timeout=30)
                newest = max([newest, *(one.epoch for one in lease.leases)])
                named = [{"lease": one} for one in range(max(0, newest - NEIGHBOURS), newest + NEIGHBOURS)]
                beat = self.wire.message("HeartbeatRequest", worker_id=worker, leases=named)
                self.wire.method(channel, "Workers", "Heartbeat")(beat, timeout=30)
                self.done += 1
            except grpc.RpcError:
                worker = self.register(channel)
            time.sleep(0.02)

    def submit(self, text: str, files: list[tuple[str, int]], content, timeout: float = 300):
        """Hands a study in; none where it is refused."""

        def pieces():
            named = [{"path": path, "size": size} for path, size in files]
            yield self.wire.message("SubmitRequest", study={"file_name": "study.toml", "text": text, "files": named})
            for piece in content:
                yield self.wire.message("SubmitRequest", data=piece)

        with self.wire.channel() as channel:
            try:
                return self.wire.method(channel, "Studies", "Submit")(pieces(), timeout=timeout).study
            except grpc.RpcError:
                return None

    def cancel(self, study: bytes) -> None:
        with self.wire.channel() as channel:
            self.wire.method(channel, "Studies", "Cancel")(self.wire.message("CancelRequest", study=study), timeout=60)

    def uploads(self) -> None:
        def upload() -> None:
            def content():
                for _ in range(UNFINISHED):
                    self.done += 1
                    yield bytes(PIECE)
                self.wait()

            self.submit("unfinished", [("rewards.npy", 1 << 30)], content())

        self.at_once(upload, 4)

    def giant(self) -> None:
        text = SMALL.format(name="giant", n=list(range(10_000, 70_000))).replace(" ", "")
        while self.goes_on():
            if study := self.submit(text, [], []):
                self.cancel(study)
            self.done += 1

    def large(self) -> None:
        import numpy

        file = io.BytesIO()
        numpy.save(file, numpy.random.default_rng(1).standard_normal((ROWS, COLUMNS)))
        content = file.getbuffer()
        while self.goes_on():
            pieces = (bytes(content[start:start + PIECE]) for start in range(0, len(content), PIECE))
            if study := self.submit(LARGE, [("rewards.npy", len(content))], pieces):
                self.cancel(study)
            self.done += 1

    def watchers(self) -> None:
        asyncio.run(self.watch())

    async def watch(self) -> None:
        channels = [self.wire.aio_channel() for _ in range(20)]
        listed = await self.wire.method(channels[0], "Studies", "List")(self.wire.message("ListRequest"))
        study = next(one.study for one in listed.studies if one.name not in ("large", "giant"))

        async def watcher(number: int) -> None:
            while self.goes_on():
                try:
                    watch = self.wire.method(channels[number % len(channels)], "Studies", "Watch")
                    async for _ in watch(self.wire.message("WatchRequest", study=study)):
                        self.done += 1
                except grpc.RpcError:
                    await asyncio.sleep(0.2)

        tasks = [asyncio.create_task(watcher(number)) for number in range(WATCHERS)]
        while self.goes_on():
            await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


KINDS = ("silent", "strangers", "replies", "heartbeats", "uploads", "giant", "watchers", "large")


def program(binary: str) -> tuple[str, str]:
    """The version and the numerics digest of a binary, which a worker that registers has to name."""
    said = subprocess.run([binary, "doctor"], capture_output=True, text=True).stdout
    return re.search(r"regretta (\S+)", said)[1], re.search(r"digest ([0-9a-f]{64})", said)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("address")
    parser.add_argument("--token-file", type=Path, required=True)
    parser.add_argument("--binary", default="target/release/regretta")
    parser.add_argument("--seconds", type=float, default=10)
    arguments = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    wire = Wire(arguments.address, arguments.token_file.read_text().strip())
    attacker = Attacker(wire, *program(arguments.binary), time.monotonic() + arguments.seconds)

    def stop(*_) -> None:
        attacker.until = 0.0

    signal.signal(signal.SIGTERM, stop)
    getattr(attacker, arguments.kind)()
    print(json.dumps({"kind": arguments.kind, "done": attacker.done}), flush=True)


if __name__ == "__main__":
    main()
