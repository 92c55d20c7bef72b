"""regretta on hosts of their own: what runs there, its logs, and what it says of itself."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from network import Host, Network

PORT = 7070
METRICS = "http://127.0.0.1:9090/metrics"  # on loopback of the coordinator's host
FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


def wait_for(what: str, holds, seconds: float = 30) -> None:
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            raise RuntimeError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.1)


def dataset(folder: Path) -> tuple[str, dict[str, bytes]]:
    """The digest, and the bytes of the records by file."""
    digest = json.loads((folder / "manifest.json").read_text())["digest"]
    records = {path.name: path.read_bytes() for path in sorted((folder / "records").glob("*.parquet"))}
    assert records, f"{folder} has no records"
    return digest, records


class Fleet:
    """Processes of regretta on hosts of a network, with their logs in a folder."""

    def __init__(self, binary: str, folder: Path, network: Network):
        self.binary = binary
        self.folder = folder
        self.network = network
        self.running: list[subprocess.Popen] = []

    def start(self, host: Host, name: str, *words: str) -> subprocess.Popen:
        """Starts regretta; what it says goes to the end of its log."""
        command = ["env", "RUST_LOG=info,coordinator::server=debug", self.binary, *words]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = host.spawn(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running.append(process)
        return process

    def call(self, host: Host, *words: str, seconds: float = 60) -> subprocess.CompletedProcess:
        """Runs regretta to its end, which must come in time."""
        return host.run([self.binary, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)

    def ask(self, host: Host, *words: str):
        """The JSON that a command prints."""
        done = self.call(host, *words, "--json")
        if done.returncode != 0:
            raise RuntimeError(f"regretta {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def coordinator(self, host: Host, name: str, *words: str, port: int = PORT) -> subprocess.Popen:
        """Starts a coordinator, and returns when it serves."""
        before = self.said(name).count("coordinator at ")
        place = ("--dir", str(self.folder / name), "--listen", f"{host.address}:{port}")
        process = self.start(host, name, "coordinator", *place, *words)
        wait_for(f"{name} to serve", lambda: self.said(name).count("coordinator at ") > before or process.poll() is not None)
        assert process.poll() is None, f"{name} ended with {process.returncode}"
        return process

    def said(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def metrics(self, host: Host) -> dict[str, int]:
        """What a coordinator counts, asked on its own host."""
        page = host.run([sys.executable, "-c", FETCH, METRICS], capture_output=True, text=True, timeout=20, check=True).stdout
        lines = (line.split() for line in page.splitlines() if line.startswith("regretta_"))
        return {name.removeprefix("regretta_").removesuffix("_total"): int(value) for name, value in lines}

    def stop(self, process: subprocess.Popen) -> int:
        process.send_signal(signal.SIGTERM)
        return process.wait(20)

    def kill(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()

    def words(self) -> str:
        """The ends of all logs, for a failure."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-15:]) for log in logs)
