"""A Slurm of one node, with daemons, keys, ports and state of its own in a folder. Needs root, slurm-wlm and munge."""

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

# Seconds from the word that a job is preempted to its end.
GRACE = 20

# CPUs are not those of the machine: four jobs at once are wanted everywhere. A job that is queued again begins once
# its credentials have expired, which takes two minutes unless it is said otherwise. Its last batch script has to be
# killed by then, as it is by default (KillWait is 30 s): Slurm drains the node and holds the job where it is not.
CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=8
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
KillWait=3
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=2,sched_min_interval=0
SchedulerTimeSlice=5
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=low Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime={grace}
PartitionName=high Nodes={host} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(command: list[str], check: bool = True) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def wait_for(what: str, holds: Callable[[], bool], seconds: float = 120) -> float:
    """Waits until something holds; how long it took."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            raise RuntimeError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.2)
    return time.monotonic() - began


class Slurm:
    """munged, slurmctld and slurmd."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.host = socket.gethostname().split(".")[0]
        self.daemons: list[subprocess.Popen] = []

    def start(self) -> None:
        folder, host = self.folder, self.host
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        conf = folder / "slurm.conf"
        conf.write_text(CONF.format(host=host, folder=folder, ctld=free_port(), slurmd=free_port(), grace=GRACE))
        os.environ["SLURM_CONF"] = str(conf)
        self.spawn(["munged", "--foreground", "--force"] + [
            f"--{name}={folder / value}"
            for name, value in (("key-file", "munge.key"), ("socket", "munge.socket"), ("pid-file", "munge.pid"),
                                ("seed-file", "munge.seed"), ("log-file", "munge.log"))
        ])
        wait_for("munge", lambda: (folder / "munge.socket").exists())
        self.spawn(["slurmctld", "-D", "-f", str(conf)])
        self.spawn(["slurmd", "-D", "-f", str(conf), "-N", host])
        wait_for("the node", lambda: "idle" in run(["sinfo", "-h", "-o", "%T"], check=False))

    def spawn(self, command: list[str]) -> None:
        log = (self.folder / f"{command[0]}.out").open("w")
        self.daemons.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))

    def stop(self) -> None:
        """Ends all jobs, then the daemons."""
        if len(self.daemons) == 3:
            run(["scancel", "--user=root"], check=False)
            run(["scancel", "--user=root", "--signal=KILL", "--full"], check=False)
            deadline = time.monotonic() + 15
            while run(["squeue", "-h"], check=False) and time.monotonic() < deadline:
                time.sleep(0.5)
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()

    def words(self) -> str:
        """What Slurm says of its jobs and node, and the ends of all logs, for a failure."""
        states = [(" ".join(ask), run(ask, check=False)) for ask in (["squeue", "-a"], ["scontrol", "show", "node"])]
        logs = [log for pattern in ("*.log", "*.out", "*/slurm/*.log") for log in sorted(self.folder.glob(pattern))]
        ends = [(str(log.relative_to(self.folder)), "\n".join(log.read_text().splitlines()[-25:])) for log in logs]
        return "\n".join(f"--- {name}\n{text}" for name, text in states + ends)

    def preempt(self) -> float:
        """A job that wants the whole node, from a partition that preempts; the seconds until it has it."""
        began = time.monotonic()
        wrap = ["sbatch", "--parsable", "--partition=high", "--cpus-per-task=4", "--output=/dev/null", "--wrap", "sleep 1"]
        job = run(wrap).strip()
        wait_for("the preempting job", lambda: run(["squeue", "-h", "-t", "all", "-o", "%T", "-j", job]).strip()
                 in ("RUNNING", "COMPLETING", "COMPLETED"), 2 * GRACE)
        return time.monotonic() - began

    def fail_node(self) -> None:
        """The node is gone, with all that ran on it, and comes back."""
        node = ["scontrol", "update", f"nodename={self.host}"]
        run([*node, "state=down", "reason=test"])
        wait_for("the jobs to be taken off", lambda: not run(["squeue", "-h", "-t", "running"]))
        run([*node, "state=resume"], check=False)  # it may have returned by itself
