"""Studies that are handed in one after another, and what becomes of them."""

import json
import random
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import polars

from .cluster import TLS, Cluster
from .journal import Journal

BODY = """\
[study]
name = "{name}"
seed = {seed}
replicates = {replicates}
detail = "{detail}"
[prior]
domain = {{ kind = "grid", points = 300, dimension = 1 }}
kernel = {{ kind = "matern52", lengthscale = 0.1 }}
noise_variance = 0.01
[grid]
N = {n}
T = {horizons}
delta = 0.1
design = {design}
method = {method}
[claims]
test = {claims}
"""


@dataclass(frozen=True)
class Kind:
    """A kind of study. All of a kind have the same records, because a trial knows its seed and not its study's name
    (but for a summary's random hundredth, which is why there is none here)."""

    name: str
    seed: int
    replicates: tuple[str, ...]  # as submitted, then as grown
    detail: str = "checkpoints"
    n: str = "[400, 800]"
    horizons: str = "[20, 80]"
    design: str = '["fixed", "adaptive"]'
    method: str = '["pem-bo"]'
    claims: str = '["lemma1.*", "theorem2.*"]'

    def text(self, name: str, step: int) -> str:
        values = vars(self) | {"name": name, "replicates": self.replicates[step]}
        return BODY.format(**values)


KINDS = (
    Kind("plain", 11, ("1200",)),
    Kind("grown", 12, ("500", "1200")),
    Kind("stopping", 13, ("{ batch = 100, max = 4000 }\nevidence = 1e30",), n="[200, 400, 800]", horizons="[20]", claims='"theorem2.ucb"'),
    Kind("steps", 14, ("300",), detail="steps"),
    Kind("methods", 16, ("500",), method='["pem-bo", "known-prior", "random"]'),
)


@dataclass(frozen=True)
class Result:
    """What two datasets of the same study have in common."""

    digest: str
    trials: int
    records: int
    failures: int

    @staticmethod
    def of(folder: Path) -> "Result":
        manifest = json.loads((folder / "manifest.json").read_text())
        return Result(*(manifest[key] for key in ("digest", "trials", "records", "failures")))


def undisturbed(binary: str, folder: Path, journal: Journal) -> dict[tuple[str, int], Result]:
    """What every kind gives in one process, without faults."""
    results = {}
    for kind in KINDS:
        for step in range(len(kind.replicates)):
            out = folder / f"{kind.name}-{step}"
            study = out.with_suffix(".toml")
            study.write_text(kind.text(out.name, step))
            began = time.monotonic()
            subprocess.run([binary, "run", str(study), "--out", str(out), "--quiet"], check=True, capture_output=True)
            result = results[kind.name, step] = Result.of(out)
            shutil.rmtree(out)
            journal.say(
                f"without faults: {study.stem}: {result.digest[:12]}, "
                f"{result.trials} trials, {result.records} records, {time.monotonic() - began:.0f} s"
            )
    return results


class Driver(threading.Thread):
    """Hands in a study, follows it, fetches it, compares it; then the next one, for as long as the time lasts."""

    def __init__(self, cluster: Cluster, number: int, expected: dict[tuple[str, int], Result], until: float, seed: int):
        super().__init__(daemon=True)
        self.cluster, self.number, self.expected, self.until = cluster, number, expected, until
        self.journal, self.random = cluster.journal, random.Random(seed)
        self.done = 0
        self.over = threading.Event()
        self.error: str | None = None

    def run(self) -> None:
        kinds: list[Kind] = []
        try:
            while time.monotonic() < self.until:
                kinds = kinds or self.random.sample(KINDS, len(KINDS))
                self.one(kinds.pop())
        except Exception as error:  # the main thread tells
            self.error = f"{type(error).__name__}: {error}"

    def one(self, kind: Kind) -> None:
        self.done += 1
        name = f"{kind.name}-{self.number}-{self.done}"
        study = self.cluster.folder / f"{name}.toml"
        for step in range(len(kind.replicates)):
            study.write_text(kind.text(name, step))
            began = time.monotonic()
            self.submit(study.name)
            self.finish(name, study.name)
            self.compare(kind, name, step, time.monotonic() - began)

    def ask(self, *words: str, patience: float = 30) -> tuple[int, str, str]:
        addresses = ",".join(self.random.sample(self.cluster.addresses, 2))
        code, out, error = self.cluster.command(["study", *words, "--coordinator", addresses, *TLS], patience)
        self.journal.count(f"`study {words[0]}`", "went on" if code == -9 else f"exit code {code}")
        if code not in (0, 1, 2, 3, -9):
            self.journal.check(False, f"study {words[0]} ended with {code}: {error}")
        return code, out, error

    def until_done(self, *words: str, patience: float = 30) -> None:
        """Tries again until it succeeds."""
        while self.ask(*words, patience=patience)[0] != 0:
            self.pause()

    def pause(self) -> None:
        if self.over.wait(0.5):
            raise TimeoutError("its study is not done")

    def submit(self, study: str) -> None:
        self.until_done("submit", study)

    def finish(self, name: str, study: str) -> None:
        """Until it is done. One that failed, because its shards lost too many workers, is handed in again."""
        while True:
            code, _, error = self.ask("watch", name, patience=20)
            if code == 0:
                return
            if code == 3:
                self.journal.say(f"{name} failed and is handed in again: {error.strip().splitlines()[-1]}")
                self.journal.count("studies", "failed and handed in again")
                self.submit(study)
            self.pause()

    def compare(self, kind: Kind, name: str, step: int, seconds: float) -> None:
        out = self.cluster.folder / "fetched" / f"{name}-{step}"
        self.until_done("fetch", name, "--out", str(out.relative_to(self.cluster.folder)), patience=60)
        verify = [self.cluster.binary, "verify", str(out.relative_to(self.cluster.folder)), "--recompute", "20"]
        verified = subprocess.run(verify, cwd=self.cluster.folder, capture_output=True, text=True)
        found, expected = Result.of(out), self.expected[kind.name, step]
        check = self.journal.check
        check(verified.returncode == 0, f"{name}: verify ended with {verified.returncode}: {verified.stderr}")
        check(found.digest == expected.digest, f"{name}: digest {found.digest}, without faults {expected.digest}")
        check(found == expected, f"{name}: {found}, without faults {expected}")
        records = polars.read_parquet(out / "records" / "*.parquet", columns=["cell", "replicate", "t"])
        distinct = records.n_unique()
        check(len(records) == expected.records, f"{name}: {expected.records - len(records)} records are lost")
        check(distinct == len(records), f"{name}: {len(records) - distinct} records are there twice")
        self.journal.count("studies", "done")
        self.journal.count("in them", "trials", found.trials)
        self.journal.count("in them", "records", found.records)
        self.journal.say(f"{name}: {found.digest[:12]}, {found.trials} trials, {found.records} records, {seconds:.0f} s")
        shutil.rmtree(out)
