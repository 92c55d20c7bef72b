"""What the cluster runs on: a small disk that can be filled, frozen and broken, PostgreSQL, and processes that are started again."""

import errno
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from .journal import Journal

MEBIBYTE = 1 << 20

# Requests to a file system: FIFREEZE and FITHAW of linux/fs.h, EXT4_IOC_SHUTDOWN of linux/ext4.h with its flags.
FREEZE, THAW, SHUT_DOWN = 0xC0045877, 0xC0045878, 0x8004587D
WITH_LOG, WITHOUT_LOG = 1, 2


class Clock(threading.Thread):
    """Notes when the whole machine stands still, which is no fault of what is tested."""

    LEAST = 1.0

    def __init__(self, journal: Journal):
        super().__init__(daemon=True)
        self.journal = journal
        self.stood_still: list[tuple[float, float]] = []  # from, to

    def run(self) -> None:
        before = time.monotonic()
        while True:
            time.sleep(0.1)
            now = time.monotonic()
            if now - before > self.LEAST:
                self.stood_still.append((before, now))
                self.journal.say(f"the machine stood still for {now - before:.1f} s")
                self.journal.count("the machine stood still", "seconds", round(now - before))
            before = now

    def ran(self, start: float, end: float) -> bool:
        return all(to < start or start_of > end for start_of, to in self.stood_still)


class Disk:
    """A file system in a file, so that a full disk is a full disk, and one that fails has lost what was not synced."""

    def __init__(self, folder: Path, mebibytes: int):
        self.folder, self.image, self.mount = folder, folder / "disk.img", folder / "shared"
        self.filler = self.mount / "filler"
        self.mebibytes = mebibytes
        self.lock = threading.Lock()  # nothing is frozen any more once it is unmounted for good
        self.gone = False

    def __enter__(self) -> "Disk":
        with self.image.open("wb") as image:
            image.truncate(self.mebibytes * MEBIBYTE)
        self.mount.mkdir()
        # `ip netns exec` gives every process a copy of all mounts. What is attached and detached below a shared mount
        # is so in the copies, too; otherwise a file system that has failed would live on in them.
        subprocess.run(["mount", "--bind", str(self.folder), str(self.folder)], check=True)
        subprocess.run(["mount", "--make-shared", str(self.folder)], check=True)
        # Without room that is kept for root, which the coordinators may be.
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(self.image)], check=True)
        self.attach()
        return self

    def attach(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.mount)], check=True)
        os.listdir(self.mount)  # fails where it is still the one that was shut down

    def detach(self) -> bool:
        """Succeeds once nobody has a file open."""
        return subprocess.run(["umount", str(self.mount)], capture_output=True).returncode == 0

    def __exit__(self, *_) -> None:
        with self.lock:
            self.gone = True
        self.thaw()
        for _ in range(50):
            if self.detach():
                break
            time.sleep(0.2)
        else:
            subprocess.run(["umount", "--lazy", str(self.mount)])
        subprocess.run(["umount", "--lazy", str(self.folder)])

    def fill(self) -> None:
        """Takes what is free, to the last byte."""
        if not os.path.ismount(self.mount):  # or it would be the machine's own disk
            raise RuntimeError(f"nothing is attached at {self.mount}")
        with self.filler.open("ab", buffering=0) as file:
            piece = 256 * MEBIBYTE
            while piece:
                try:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, piece)
                except OSError:
                    piece //= 2

    def request(self, what: int, argument: bytes) -> None:
        folder = os.open(self.mount, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, what, argument)
        finally:
            os.close(folder)

    def freeze(self) -> None:
        """Whoever writes waits from now on."""
        with self.lock:
            if not self.gone:
                self.request(FREEZE, bytes(4))

    def thaw(self) -> None:
        try:
            self.request(THAW, bytes(4))
        except OSError as error:
            if error.errno != errno.EINVAL:  # it is not frozen
                raise

    def fail(self, flags: int) -> None:
        """Everything fails from now on, until the disk is detached and attached again. What was not synced is lost;
        without its log, as when the power fails."""
        self.request(SHUT_DOWN, struct.pack("I", flags))

    def free(self) -> None:
        self.filler.unlink(missing_ok=True)

    def used(self) -> int:
        return shutil.disk_usage(self.mount).used


class Member:
    """A process that is started again when it ends, as systemd or Kubernetes would."""

    def __init__(self, journal: Journal, host, name: str, command: list[str], folder: Path, environment: dict[str, str]):
        self.journal, self.host, self.name, self.command = journal, host, name, command
        self.folder, self.log = folder, folder / f"{name}.log"
        self.environment = {**os.environ, **environment}
        self.process: subprocess.Popen | None = None
        self.expected: set[int] = set()  # exit codes of what was done to it
        self.rest: float | None = None  # seconds until it is started again, where that is not left to chance
        self.again = 0.0  # when it is started next
        self.peak = 0  # KiB of memory at most, over all lives
        self.lives = 0

    def start(self) -> None:
        self.expected = set()
        self.lives += 1
        with self.log.open("ab") as log:
            self.process = self.host.spawn(
                self.command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )

    def signal(self, number: signal.Signals, *codes: int) -> None:
        """Sends a signal, after which an end with one of these codes is no surprise."""
        self.expected |= set(codes)
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def look_at_memory(self) -> None:
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                self.peak = max(self.peak, int(line.split()[1]))

    def last_words(self) -> str:
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 4000))
            lines = log.read().decode(errors="replace").splitlines()
        said = [line for line in lines if line.startswith("regretta:")]
        return (said or lines or [""])[-1].removeprefix("regretta: ")[:150]


class Supervisor(threading.Thread):
    """Starts members again a little after they ended, and hands every end that nobody caused to `ended`."""

    def __init__(self, journal: Journal, members: list[Member], ended: Callable[[Member, int], None]):
        super().__init__(daemon=True)
        self.journal, self.members, self.ended = journal, members, ended
        self.over = threading.Event()
        self.random = random.Random(1)

    def run(self) -> None:
        for member in self.members:
            member.start()
        while not self.over.wait(0.05):
            for member in self.members:
                self.look_after(member)

    def look_after(self, member: Member) -> None:
        if member.process is None:
            if time.monotonic() >= member.again:
                member.start()
            return
        member.look_at_memory()
        code = member.process.poll()
        if code is None:
            return
        if code not in member.expected:
            self.ended(member, code)
        member.process = None
        member.again = time.monotonic() + (member.rest or self.random.uniform(0.5, 3))
        member.rest = None

    def stop(self) -> None:
        """Ends all members, politely at first; their exit codes are checked."""
        self.over.set()
        self.join()
        for member in self.members:
            member.signal(signal.SIGCONT)
            member.signal(signal.SIGTERM)
        for member in self.members:
            if member.process is None:
                continue
            try:
                code = member.process.wait(40)
            except subprocess.TimeoutExpired:
                member.process.kill()
                code = member.process.wait()
            self.journal.check(code in {0, *member.expected}, f"{member.name} ended with {code} after SIGTERM")

    def kill(self) -> None:
        """For when nothing matters any more."""
        self.over.set()
        for member in self.members:
            if member.process and member.process.poll() is None:
                member.process.kill()
                member.process.wait()


class Bucket:
    """moto, which speaks S3 and keeps everything in memory: it can be out of reach, and must not end."""

    MAKE = "import boto3, sys; boto3.client('s3', endpoint_url=sys.argv[1]).create_bucket(Bucket='soak')"

    def __init__(self, host, folder: Path):
        self.host, self.url = host, "s3://soak/records"
        endpoint = f"http://{host.address}:5000"
        self.environment = {
            "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_ACCESS_KEY_ID": "soak",
            "AWS_SECRET_ACCESS_KEY": "soak", "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1",
        }
        with (folder / "moto.log").open("wb") as log:
            command = [sys.executable, "-m", "moto.server", "-H", host.address, "-p", "5000"]
            self.process = host.spawn(command, stdout=log, stderr=log, start_new_session=True)
        for _ in range(50):
            made = host.run([sys.executable, "-c", self.MAKE, endpoint], env={**os.environ, **self.environment}, capture_output=True)
            if made.returncode == 0:
                return
            time.sleep(0.5)
        raise RuntimeError("moto does not start: " + made.stderr.decode()[-500:])


class Database:
    """PostgreSQL with a cluster of its own, which refuses to run as root."""

    USER = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]

    def __init__(self, host, folder: Path):
        self.host, self.data, self.log = host, folder / "postgres", folder / "postgres.log"
        self.process: subprocess.Popen | None = None
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not programs:
            raise SystemExit("PostgreSQL is not installed (apt-get install postgresql)")
        self.programs = programs[-1].parent
        self.url = f"postgres://regretta@{host.address}/regretta"

    def create(self) -> None:
        self.data.mkdir()
        shutil.chown(self.data, "postgres", "postgres")
        initdb = [*self.USER, str(self.programs / "initdb"), "-D", str(self.data), "-U", "regretta", "-A", "trust", "-E", "UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, cwd="/")
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.0.0.0/8 trust\n")
        self.start()
        self.sql("CREATE DATABASE regretta", "postgres")

    def start(self) -> None:
        command = [*self.USER, str(self.programs / "postgres"), "-D", str(self.data), "-k", str(self.data)]
        with self.log.open("ab") as log:
            self.process = self.host.spawn(
                [*command, "-c", f"listen_addresses={self.host.address}"], stdout=log, stderr=log, cwd="/", start_new_session=True
            )
        for _ in range(300):
            if self.sql("SELECT 1", "postgres") is not None:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("PostgreSQL does not start: " + self.log.read_text()[-2000:])

    def stop(self, number: signal.Signals) -> None:
        """SIGINT: clients are disconnected; SIGQUIT: as in a crash, with recovery at the next start."""
        self.process.send_signal(number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def sql(self, statement: str, database: str = "regretta") -> str | None:
        command = ["psql", "-qtAX", "-h", str(self.data), "-U", "regretta", "-d", database, "-c", statement]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None
