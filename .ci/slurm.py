#!/usr/bin/env python3
"""A study on a real Slurm of one node, with everything that happens to jobs there: preemption, time limits, scancel, killed
programs, a node that fails. The digest is that of one process, nothing that was computed is lost, and `slurm status` says
what is the case.

    python3 .ci/slurm.py target/release/regretta [--replicates 10000] [--long]

Needs root and Debian's slurm-wlm and munge. Arrays are limited to four jobs, so that six parts need two.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from slurm_node import GRACE, Slurm, run, wait_for

# Trials that cost much and record little: some five seconds for each of six parts.
STUDY = """\
[study]
name = "slurm"
seed = 7
replicates = {replicates}
[prior]
domain = {{ kind = "grid", points = 400, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.02 }}
noise_variance = 0.01
[grid]
N = [100, 400]
T = [10, 60]
delta = 0.1
design = ["fixed", "adaptive"]
"""


class Study:
    """A study in an output folder on the cluster."""

    def __init__(self, binary: str, study: Path, out: Path):
        self.binary, self.out = binary, out
        self.command = [binary, "slurm", "submit", str(study), "--out", str(out)]
        self.held = 0

    def submit(self, *options: str) -> dict[str, str]:
        """The jobs by their names."""
        jobs = json.loads(run([*self.command, *options, "--json"]))["jobs"]
        return {job["name"]: job["id"] for job in jobs}

    def status(self) -> dict:
        """What `slurm status` says. Trials only ever become more."""
        status = json.loads(run([self.binary, "slurm", "status", str(self.out), "--json"]))
        counts = [status["parts"]["trials"]] if status["parts"] else []
        counts += [study["trials_done"] for study in status["studies"] or []]
        for trials in counts:
            assert trials >= self.held, f"{trials} trials, and there were {self.held}"
            self.held = trials
        return status

    def says(self, *words: str) -> bool:
        said = run([self.binary, "slurm", "status", str(self.out)])
        return all(word in said for word in words)

    def wait_to_say(self, *words: str, seconds: float = 60) -> None:
        wait_for(f"a status with {words}", lambda: self.says(*words), seconds)

    def wait_for_progress(self) -> None:
        """Until trials have been added to those that were there."""
        self.status()
        held = self.held
        wait_for("trials", lambda: self.status() is not None and self.held > held)

    def logs(self, name: str = "") -> str:
        return "\n".join(path.read_text() for path in sorted((self.out / "slurm").glob(f"{name}*.log")))

    def interruptions(self, name: str = "") -> int:
        return self.logs(name).count("interrupted; queued again")

    def programs(self, *words: str) -> list[int]:
        """Processes of the program with such words among its arguments; srun has them, too, but is another program."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                arguments = (place / "cmdline").read_text().split("\0")
            except OSError:
                continue
            if arguments[0] == self.binary and all(word in arguments for word in words):
                found.append(int(place.name))
        return found

    def finished(self, whole: str) -> None:
        """Waits for the dataset and its report and for all jobs to leave the queue."""
        try:
            wait_for("the report", lambda: (self.out / "report.html").exists())
            wait_for("an empty queue", lambda: not run(["squeue", "-h"]), 60)
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{run(['squeue'])}\n{self.logs()}") from None
        found = json.loads((self.out / "manifest.json").read_text())["digest"]
        assert found == whole, f"{found} is not {whole}"
        assert self.says(f"sealed, digest {whole}")


def field(process: int, name: str) -> str:
    """What the system says of a process; nothing where it is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return next(line.split(":\t")[1] for line in lines if line.startswith(f"{name}:"))


def frozen(process: int) -> bool:
    return field(process, "State").startswith("T")


def thawed(process: int) -> bool:
    """Whether a process that was frozen goes on, as it does where it is told to stop."""
    if int(field(process, "ShdPnd") or "0", 16) & 1 << (signal.SIGTERM - 1):
        os.kill(process, signal.SIGCONT)
    return not frozen(process)


def parts(study: Study, slurm: Slurm, whole: str) -> None:
    options = ["--parts", "6", "--time", "5", "--grace", "30"]
    dry = run([*study.command, *options, "--dry-run"])
    assert dry.count("#!/bin/bash") == 3 and "--array=1-4" in dry and "--array=1-2" in dry, dry
    assert not study.out.exists(), "--dry-run writes nothing"
    jobs = study.submit(*options)
    assert list(jobs) == ["parts-1", "parts-2", "merge"], jobs
    refused = subprocess.run([*study.command, *options], capture_output=True, text=True)
    assert refused.returncode == 2 and "scancel" in refused.stderr, refused
    study.wait_for_progress()
    study.wait_to_say("RUNNING", "PENDING (Dependency)", "not sealed yet")

    # Preempted: all stop long before the grace time is over, and are in the queue again.
    took = slurm.preempt()
    assert took < GRACE - 5, f"the node was free after {took:.0f} s of {GRACE}"
    wait_for("all parts to be queued again", lambda: study.interruptions() >= 4)
    study.wait_to_say("PENDING", "not sealed yet")
    study.wait_for_progress()
    print(f"preempted: the node was free after {took:.1f} s, {study.interruptions()} jobs were queued again")

    # Killed, for want of memory maybe: this would happen again, so that the job fails, and the merge goes with it.
    wait_for("a part", lambda: study.programs("--part", "1/6") != [])
    os.kill(study.programs("--part", "1/6")[0], signal.SIGKILL)
    study.wait_to_say("FAILED", f"failed, see {study.out}/slurm/parts-1-{jobs['parts-1']}-1.log")
    wait_for("the merge to be given up", lambda: not run(["squeue", "-h", "-j", jobs["merge"]], check=False))
    # Cancelled: no job comes back by itself.
    before = study.interruptions()
    run(["scancel", *jobs.values()])
    wait_for("an empty queue", lambda: not run(["squeue", "-h"]), 30)
    study.wait_to_say("CANCELLED", "not sealed, and no job is left")
    assert study.interruptions() == before, study.logs()
    print(f"killed and cancelled with {study.held} trials")

    # The same command goes on, without the number of parts being given; here with a time limit that a part, which is
    # frozen for that, does not keep.
    jobs = study.submit("--time", "2", "--grace", "90")
    before = study.interruptions()
    wait_for("a part", lambda: study.programs("--part", "1/6") != [])
    slow = study.programs("--part", "1/6")[0]
    os.kill(slow, signal.SIGSTOP)
    wait_for("a frozen part", lambda: frozen(slow))
    waited = wait_for("the warning before the time limit", lambda: thawed(slow), 75)
    wait_for("the part to be queued again", lambda: study.interruptions(f"parts-1-{jobs['parts-1']}-1") > 0)
    print(f"warned of the time limit after {waited:.0f} s, {study.interruptions() - before} jobs were queued again")
    study.finished(whole)


def coordinator(study: Study, slurm: Slurm, whole: str) -> None:
    jobs = study.submit("--mode", "coordinator", "--workers", "2", "--time", "5")
    assert list(jobs) == ["coordinator", "workers-1"], jobs
    address = study.out / "service" / "address"
    study.wait_for_progress()
    study.wait_to_say("RUNNING", "coordinator: slurm is running", "not sealed yet")

    # Preempted, coordinator and workers.
    took = slurm.preempt()
    assert took < GRACE - 5, f"the node was free after {took:.0f} s of {GRACE}"
    assert study.interruptions("coordinator") == 1 and study.interruptions("workers") == 2, study.logs()
    study.wait_for_progress()
    print(f"coordinator and workers preempted: the node was free after {took:.1f} s")

    # The coordinator alone: its workers run on, and find it at its new address.
    before, running = address.read_text(), study.programs("worker")
    run(["scontrol", "requeue", jobs["coordinator"]])
    wait_for("another address", lambda: address.exists() and address.read_text() != before)
    study.wait_for_progress()
    assert study.programs("worker") == running != [], "workers stay"
    print(f"the coordinator moved, and its workers followed: {study.held} trials")

    # A node that fails stops nobody gracefully, and leaves the address of the dead.
    slurm.fail_node()
    study.wait_for_progress()
    print(f"the node failed, and all came back: {study.held} trials")
    study.finished(whole)
    assert study.programs("worker") == [], "workers end with the study"


def cancelled_and_grown(study: Study, file: Path, grown: str) -> None:
    """A coordinator that is cancelled with its workers, another submission, and one of what the study has grown to."""
    options = ["--mode", "coordinator", "--workers", "2", "--time", "15"]
    jobs = study.submit(*options)
    study.wait_for_progress()
    run(["scancel", jobs["coordinator"]])
    wait_for("workers that end by themselves", lambda: not run(["squeue", "-h"]), 400)
    assert study.says("not sealed, and no job is left")
    study.submit(*options)
    study.wait_for_progress()
    wait_for("the end", lambda: study.says("sealed, digest"), 240)
    wait_for("an empty queue", lambda: not run(["squeue", "-h"]), 60)
    first = study.status()["digest"]
    file.write_text(grown)
    study.submit(*options)
    assert study.status()["digest"] is None, "the dataset is of before"
    wait_for("the end", lambda: study.says("sealed, digest"), 240)
    wait_for("an empty queue", lambda: not run(["squeue", "-h"]), 60)
    assert study.status()["digest"] != first
    run([study.binary, "run", str(file), "--out", f"{study.out}-whole", "--quiet"])
    whole = json.loads(Path(f"{study.out}-whole/manifest.json").read_text())["digest"]
    assert study.status()["digest"] == whole


def mistake(study: Study, file: Path) -> None:
    """A job with bad input fails, once: here the study file is spoilt while its jobs wait."""
    jobs = study.submit("--parts", "1", "--time", "5", "--sbatch=--begin=now+1hour")
    file.write_text(file.read_text().replace("replicates", "replicats"))
    run(["scontrol", "update", f"jobid={jobs['parts-1']}", "starttime=now"])
    study.wait_to_say("FAILED", "CANCELLED", "no job is left")
    assert "replicats" in study.logs("parts") and study.interruptions() == 0, study.logs()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--replicates", type=int, default=10000)
    parser.add_argument("--long", action="store_true", help="also what takes ten minutes: workers that lose patience, growth")
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    folder = Path(tempfile.mkdtemp(prefix="regretta-slurm-"))
    slurm = Slurm(folder)
    began = time.monotonic()
    try:
        slurm.start()
        print(run(["sbatch", "--version"]).strip())
        study = folder / "study.toml"
        study.write_text(STUDY.format(replicates=arguments.replicates))
        run([binary, "run", str(study), "--out", str(folder / "whole"), "--quiet"])
        whole = json.loads((folder / "whole" / "manifest.json").read_text())["digest"]
        print(f"one process: {whole[:12]}, {time.monotonic() - began:.0f} s")
        parts(Study(binary, study, folder / "parts"), slurm, whole)
        print(f"six parts: the same digest, {time.monotonic() - began:.0f} s")
        coordinator(Study(binary, study, folder / "service"), slurm, whole)
        print(f"coordinator and workers: the same digest, {time.monotonic() - began:.0f} s")
        if arguments.long:
            copy = folder / "grown.toml"
            copy.write_text(study.read_text())
            grown = STUDY.format(replicates=arguments.replicates + 1000)
            cancelled_and_grown(Study(binary, copy, folder / "grown"), copy, grown)
            print(f"cancelled, submitted again, grown: {time.monotonic() - began:.0f} s")
        mistake(Study(binary, study, folder / "mistake"), study)
        print(f"bad input fails once, {time.monotonic() - began:.0f} s")
    except Exception:
        print(slurm.words(), file=sys.stderr)
        raise
    finally:
        slurm.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
