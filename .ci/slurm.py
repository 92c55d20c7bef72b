#!/usr/bin/env python3
"""A study on a real Slurm of one node: the same digest from one process, from an array of parts and from workers.

    python3 .ci/slurm.py target/release/regretta [--replicates 20000] [--interrupt]

Needs root and Debian's slurm-wlm and munge. Daemons, keys, ports and state are the test's own, in a folder that it
deletes. Arrays are limited to four jobs, so that the parts need three.
"""

import argparse
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STUDY = """\
[study]
name = "slurm"
seed = 7
replicates = {replicates}
[prior]
domain = {{ kind = "grid", points = 60, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.1 }}
noise_variance = 0.01
[grid]
N = [100, 400]
T = [5, 20]
delta = 0.1
design = ["fixed", "adaptive"]
"""

CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
MaxArraySize=5
JobRequeue=1
KillWait=10
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0
SchedulerTimeSlice=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=30
PartitionName=high Nodes={host} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Slurm:
    """munged, slurmctld and slurmd of this test."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.daemons: list[subprocess.Popen] = []

    def start(self) -> None:
        folder, host = self.folder, socket.gethostname().split(".")[0]
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        conf = folder / "slurm.conf"
        conf.write_text(CONF.format(host=host, folder=folder, ctld=free_port(), slurmd=free_port()))
        os.environ["SLURM_CONF"] = str(conf)
        munge = ["munged", "--foreground", "--force", "--syslog"] + [
            f"--{name}={folder / value}"
            for name, value in (("key-file", "munge.key"), ("socket", "munge.socket"), ("pid-file", "munge.pid"),
                                ("seed-file", "munge.seed"), ("log-file", "munge.log"))
        ]
        self.spawn([word for word in munge if word != "--syslog"])
        wait_for("munge", lambda: (folder / "munge.socket").exists())
        self.spawn(["slurmctld", "-D", "-f", str(conf)])
        self.spawn(["slurmd", "-D", "-f", str(conf), "-N", host])
        wait_for("the node", lambda: "idle" in run(["sinfo", "-h", "-o", "%T"], check=False))

    def spawn(self, command: list[str]) -> None:
        log = (self.folder / f"{command[0]}.out").open("w")
        self.daemons.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))

    def stop(self) -> None:
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def words(self) -> str:
        """The ends of all logs, for a failure."""
        logs = sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out"))
        return "\n".join(f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-15:]) for log in logs)


def run(command: list[str], check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def wait_for(what: str, holds, seconds: float = 240) -> None:
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            raise RuntimeError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.3)


def queued() -> list[str]:
    return run(["squeue", "-h", "-o", "%i %j %T %r"]).splitlines()


def digest(out: Path) -> str:
    return json.loads((out / "manifest.json").read_text())["digest"]


def logs(out: Path) -> str:
    return "\n".join(path.read_text() for path in sorted((out / "slurm").glob("*.log")))


def finished(out: Path) -> None:
    """Waits for the dataset and its report, and for all jobs to leave the queue."""
    try:
        wait_for("the report", lambda: (out / "report.html").exists())
        wait_for("an empty queue", lambda: not queued(), 60)
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n" + "\n".join(queued()) + "\n" + logs(out)) from None


def parts(binary: str, study: Path, out: Path, interrupt: bool) -> int:
    """An array of parts, preempted while it runs if so wanted; how often jobs queued themselves again."""
    submit = [binary, "slurm", "submit", str(study), "--out", str(out), "--parts", "10", "--time", "5", "--grace", "30"]
    shown = run([*submit, "--dry-run"])
    assert shown.count("#!/bin/bash") == 4 and "--array=1-4" in shown, shown
    assert not out.exists(), "--dry-run writes nothing"
    jobs = json.loads(run([*submit, "--json"]))["jobs"]
    assert [job["name"] for job in jobs] == ["parts-1", "parts-2", "parts-3", "merge"], jobs
    wait_for("a part", lambda: any(" RUNNING" in line for line in queued()))
    refused = subprocess.run(submit, capture_output=True, text=True)
    assert refused.returncode == 2 and "scancel" in refused.stderr, refused
    status = run([binary, "slurm", "status", str(out)])
    print(status, end="")
    assert re.search(r"RUNNING|sealed, digest", status), status
    if interrupt:  # a job that wants both cores, from a partition that preempts
        time.sleep(1)
        run(["sbatch", "--partition=high", "--cpus-per-task=2", "--output=/dev/null", "--wrap", "sleep 2"])
        wait_for("the preemption", lambda: "PREEMPTION" in logs(out) or "queued again" in logs(out), 90)
    finished(out)
    assert "sealed, digest" in run([binary, "slurm", "status", str(out)])
    return logs(out).count("queued again")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--replicates", type=int, default=20000)
    parser.add_argument("--interrupt", action="store_true", help="preempt the parts; needs jobs of some seconds: --replicates 400000")
    arguments = parser.parse_args()
    binary = str(Path(arguments.binary).resolve())
    folder = Path(tempfile.mkdtemp(prefix="regretta-slurm-"))
    slurm = Slurm(folder)
    try:
        slurm.start()
        print(run(["sbatch", "--version"]).strip())
        study = folder / "study.toml"
        study.write_text(STUDY.format(replicates=arguments.replicates))
        began = time.monotonic()
        run([binary, "run", str(study), "--out", str(folder / "whole"), "--quiet"])
        whole = digest(folder / "whole")
        print(f"one process: {whole[:12]}, {time.monotonic() - began:.0f} s")
        interruptions = parts(binary, study, folder / "parts", arguments.interrupt)
        assert digest(folder / "parts") == whole, "parts"
        print(f"array of 10 parts, {interruptions} interruptions: {digest(folder / 'parts')[:12]}")
        submit = [binary, "slurm", "submit", str(study), "--out", str(folder / "service")]
        run([*submit, "--mode", "coordinator", "--workers", "1", "--time", "5"])
        finished(folder / "service")
        assert digest(folder / "service") == whole, "coordinator"
        print(f"coordinator and workers: {digest(folder / 'service')[:12]}")
    except Exception:
        print(slurm.words(), file=sys.stderr)
        raise
    finally:
        slurm.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
