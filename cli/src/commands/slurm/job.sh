# The program is a step of the job, because Slurm tells steps to stop when the grace time of a preemption begins, and
# scripts only when it is over. This script goes on then, to queue the job again.
trap : TERM
job="${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_}${SLURM_ARRAY_TASK_ID:-$SLURM_JOB_ID}"

step() { # runs a program as a step
    srun --ntasks=1 --cpus-per-task="${SLURM_CPUS_PER_TASK:-1}" "$@"
}

state() { # of a job; nothing where it has left the queue
    local said
    for _ in 1 2 3 4 5 6; do # Slurm's controller may be away for a while
        if said=$(squeue -h -j "$1" -o %T 2>&1); then
            echo "$said"
            return
        fi
        [[ $said == *"Invalid job id"* ]] && return
        sleep 10
    done
}

again() { # queues the job again, unless Slurm is ending it: it was cancelled, or Slurm queues it again
    [ "$(state "$job")" = RUNNING ] || return
    echo "interrupted; queued again"
    scontrol requeue "$job" && sleep 60
}

