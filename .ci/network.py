#!/usr/bin/env python3
"""Hosts of their own on one machine, on a network that can be cut and slowed.

    with Network() as network:
        host = network.add("worker-1")
        host.spawn(["ping", other.address])
        network.cut(host)
        network.slow(host, delay=0.2, jitter=0.05, loss=0.02)
        network.heal(host)

A host is a network namespace with one TAP device. Frames go through a switch in user space, a process of its own, which
delays, loses and drops them: no kernel module (netem) is needed. The switch removes the namespaces and ends what runs in
them when the test is gone, however it went. Needs root and iproute2.

    python3 .ci/network.py    measures round trips and throughput
"""

import fcntl
import heapq
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
MTU = 9000
QUEUE = 4000  # frames on their way to a host; more are lost, as in a router
BATCH = 64  # frames read from a host before others have a turn


@dataclass
class Way:
    """What happens to frames in one direction, to or from a host."""

    cut: bool = False
    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0


@dataclass
class Port:
    """A host as the switch sees it."""

    tap: int
    name: str
    ways: dict[str, Way] = field(default_factory=lambda: {"in": Way(), "out": Way()})
    waiting: int = 0
    last: float = 0.0  # when the last frame on its way will arrive: jitter does not change the order


class Switch:
    """Forwards frames by the last byte of their address, which is the number of the host."""

    def __init__(self, control: socket.socket):
        self.control = control
        self.ports: dict[int, Port] = {}
        self.numbers: dict[int, int] = {}  # host by file descriptor
        self.later: list[tuple[float, int, int, bytes]] = []  # when, order, host, frame
        self.order = 0
        self.seen: dict[bytes, int] = {}  # frames by the text that can be read in them

    def run(self) -> None:
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        while True:
            wait = None if not self.later else max(0.0, self.later[0][0] - time.monotonic()) * 1000
            for ready, _ in poll.poll(wait):
                if ready != self.control.fileno():
                    self.receive(self.numbers[ready])
                elif not self.command(poll):
                    return
            now = time.monotonic()
            while self.later and self.later[0][0] <= now:
                _, _, number, frame = heapq.heappop(self.later)
                self.ports[number].waiting -= 1
                self.deliver(self.ports[number], frame)

    def command(self, poll: select.poll) -> bool:
        """A message from the test, with a TAP for a new host; false where the test is gone."""
        text, taps, _, _ = socket.recv_fds(self.control, 65536, 1)
        if not text:
            return False
        said = json.loads(text)
        if taps:
            self.ports[said["number"]] = Port(taps[0], said["name"])
            self.numbers[taps[0]] = said["number"]
            os.set_blocking(taps[0], False)
            poll.register(taps[0], select.POLLIN)
        for direction, way in said.get("ways", {}).items():
            self.ports[said["number"]].ways[direction] = Way(**way)
        if "listen" in said:
            self.seen[said["listen"].encode()] = 0
        self.control.send(json.dumps({text.decode(): count for text, count in self.seen.items()}).encode())
        return True

    def receive(self, number: int) -> None:
        source = self.ports[number]
        for _ in range(BATCH):
            try:
                frame = os.read(source.tap, MTU + 64)
            except OSError:
                return
            for text in self.seen:
                self.seen[text] += text in frame
            if frame[0] & 1:  # to all, as in ARP's questions
                for other in self.ports:
                    if other != number:
                        self.forward(source, other, frame)
            elif frame[5] in self.ports:
                self.forward(source, frame[5], frame)

    def forward(self, source: Port, number: int, frame: bytes) -> None:
        target = self.ports[number]
        ways = (source.ways["out"], target.ways["in"])
        if any(way.cut or (way.loss and random.random() < way.loss) for way in ways):
            return
        delay = sum(way.delay + random.uniform(-way.jitter, way.jitter) for way in ways if way.delay or way.jitter)
        now = time.monotonic()
        if delay <= 0 and target.last <= now:
            self.deliver(target, frame)
        elif target.waiting < QUEUE:
            target.last = max(target.last, now + delay)
            target.waiting += 1
            self.order += 1
            heapq.heappush(self.later, (target.last, self.order, number, frame))

    def deliver(self, target: Port, frame: bytes) -> None:
        if target.ways["in"].cut:  # since the frame left
            return
        try:
            os.write(target.tap, frame)
        except OSError:
            pass  # the device is down or its queue is full: lost, as on a wire

    def remove(self) -> None:
        for port in self.ports.values():
            os.close(port.tap)
            remove(port.name)


def ip(*words: str, check: bool = True) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def remove(name: str) -> None:
    """Ends what runs in a namespace, and removes it."""
    for pid in ip("netns", "pids", name, check=False).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    ip("netns", "del", name, check=False)


class Host:
    """A namespace with one address."""

    def __init__(self, name: str, number: int):
        self.name = name
        self.number = number
        self.namespace = f"rg{os.getpid()}-{number}"
        self.address = f"10.77.0.{number}"

    def spawn(self, command: list[str], **options) -> subprocess.Popen:
        """Starts a program on this host. `ip netns exec` becomes the program: its id is the program's."""
        return subprocess.Popen(["ip", "netns", "exec", self.namespace, *command], **options)

    def run(self, command: list[str], **options) -> subprocess.CompletedProcess:
        return subprocess.run(["ip", "netns", "exec", self.namespace, *command], **options)

    def plug(self) -> int:
        """Makes the namespace and its device; what the switch reads and writes."""
        ip("netns", "add", self.namespace)
        if not os.path.exists("/dev/net/tun"):
            os.makedirs("/dev/net", exist_ok=True)
            os.mknod("/dev/net/tun", 0o666 | 0o020000, os.makedev(10, 200))
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH22x", self.namespace.encode(), IFF_TAP | IFF_NO_PI))
        ip("link", "set", self.namespace, "netns", self.namespace)
        inside = ("-n", self.namespace)
        ip(*inside, "link", "set", "lo", "up")
        ip(*inside, "link", "set", self.namespace, "name", "eth0")
        ip(*inside, "link", "set", "eth0", "address", f"02:00:00:00:00:{self.number:02x}", "mtu", str(MTU), "addrgenmode", "none")
        ip(*inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        ip(*inside, "link", "set", "eth0", "up")
        return tap


class Network:
    """Hosts and the switch between them."""

    def __init__(self) -> None:
        self.hosts: list[Host] = []
        self.turn = threading.Lock()

    def __enter__(self) -> "Network":
        self.control, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            # Neither an interrupt of the test nor its busy threads reach the switch.
            self.switch = subprocess.Popen(
                [sys.executable, "-B", __file__, "--switch", str(other.fileno())],
                pass_fds=[other.fileno()], start_new_session=True,
            )
        return self

    def __exit__(self, *_) -> None:
        self.control.close()
        self.switch.wait(30)

    def add(self, name: str) -> Host:
        host = Host(name, len(self.hosts) + 1)
        try:
            tap = host.plug()
            try:
                self.tell({"number": host.number, "name": host.namespace}, tap)
            finally:
                os.close(tap)
        except BaseException:
            remove(host.namespace)
            raise
        self.hosts.append(host)
        return host

    def cut(self, host: Host, ways: str = "both") -> None:
        """Nothing goes to the host (`in`), comes from it (`out`), or either."""
        self.set(host, ways, Way(cut=True))

    def slow(self, host: Host, delay: float = 0.0, jitter: float = 0.0, loss: float = 0.0, ways: str = "both") -> None:
        """Seconds, and the share of frames that is lost, in each direction: a round trip takes twice the delay."""
        self.set(host, ways, Way(delay=delay, jitter=jitter, loss=loss))

    def heal(self, host: Host) -> None:
        self.set(host, "both", Way())

    def set(self, host: Host, ways: str, way: Way) -> None:
        directions = ("in", "out") if ways == "both" else (ways,)
        self.tell({"number": host.number, "ways": {direction: vars(way) for direction in directions}})

    def listen(self, text: str) -> None:
        """Counts from now on the frames in which a text can be read."""
        self.tell({"listen": text})

    def overheard(self, text: str) -> int:
        """In how many frames it could."""
        return self.tell({})[text]

    def tell(self, what: dict, *taps: int) -> dict:
        """Returns when the switch has done it: what was overheard by then. From any thread."""
        with self.turn:
            socket.send_fds(self.control, [json.dumps(what).encode()], list(taps))
            answer = self.control.recv(4096)
        if not answer:
            raise RuntimeError("the switch is gone")
        return json.loads(answer)


ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], 7)) as listener:
    while True:
        with listener.accept()[0] as stream:
            while data := stream.recv(1 << 20):
                if len(data) < 100: stream.sendall(data)
"""

MEASURE = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 7), timeout=int(sys.argv[4])) as stream:
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(int(sys.argv[2])):
        began = time.monotonic()
        stream.sendall(b"x"); stream.recv(1)
        times.append(time.monotonic() - began)
    print(f"round trip {sorted(times)[len(times) // 2] * 1e3:.2f} ms", end="")
    if (size := int(sys.argv[3])):
        began = time.monotonic()
        stream.sendall(b"y" * size)
        stream.shutdown(socket.SHUT_WR); stream.recv(1)
        print(f", {size / (time.monotonic() - began) / 1e6:.2f} MB/s", end="")
    print()
"""


def measure() -> None:
    with Network() as network:
        server, client = network.add("server"), network.add("client")
        server.spawn([sys.executable, "-c", ECHO, server.address])
        time.sleep(0.5)

        def talk(rounds: int, size: int, patience: int = 20) -> str:
            words = (server.address, str(rounds), str(size), str(patience))
            seen = client.run([sys.executable, "-c", MEASURE, *words], capture_output=True, text=True)
            return seen.stdout.strip() or seen.stderr.splitlines()[-1]

        def look(what: str, rounds: int, size: int) -> None:
            print(f"{what}: {talk(rounds, size)}", flush=True)

        look("as it is", 300, 300_000_000)
        network.slow(client, delay=0.05)
        look("50 ms each way", 20, 20_000_000)
        network.slow(client, delay=0.2, jitter=0.05, loss=0.03)
        look("200 ms each way, 3 % lost", 10, 500_000)
        network.heal(client)
        look("healed", 300, 0)
        for ways in ("in", "out", "both"):
            network.cut(client, ways)
            assert "timed out" in talk(1, 0, 2), ways
            network.heal(client)
        look("cut and healed", 300, 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--switch"]:
        switch = Switch(socket.socket(fileno=int(sys.argv[2])))
        try:
            switch.run()
        finally:
            switch.remove()
    else:
        measure()
