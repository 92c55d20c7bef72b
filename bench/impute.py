#!/usr/bin/env python3
"""Matrix completion against soft-impute in numpy, in turns on one core.

    python3 bench/impute.py [--binary PATH] [--rounds 3] [--check]

Both solve the same problems: columns centred, a path of lambdas on nine
tenths of the observed entries, the lambda with the smallest error on the
rest, and a last solution from all observed entries; the same held-out
entries, path, patience, stopping rule and warm starts. The numpy program
decomposes the whole matrix in every step (numpy.linalg.svd); one BLAS thread.
"residual" is how far one exact step of soft-impute moves the missing entries
of a result, as a share of the centred observed entries: both have to be below
the tolerance. With --check the exit code is 1 when a target is missed.
"""
import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ[_name + "_NUM_THREADS"] = "1"    # before numpy is imported

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "worker" / "tests"))
from completion import centred, impute, shrink  # noqa: E402

BINARY = HERE.parent / "target" / "release" / "examples" / "impute"
SEED, SHARE, COUNT, SMALLEST, TOLERANCE = 7, 0.1, 30, 1e-3, 1e-5   # the defaults
REQUIRED = 3                                    # numpy seconds / ours


def residual(values, done):
    """How far one exact step moves the missing entries of a result."""
    observed = ~np.isnan(values)
    means, x = centred(values, observed)
    z = done["values"] - means
    step = shrink(np.where(observed, x, z), done["lambda"]) - z
    return np.linalg.norm(step[~observed]) / np.linalg.norm(x)


def problem(kind, rows, columns, missing, rng):
    """The whole matrix without noise, and what is observed of it."""
    if kind == "low rank":
        whole = rng.standard_normal((rows, 3)) @ rng.standard_normal((3, columns))
        noise = 0.0
    else:                                       # functions of a Gaussian process
        x = np.linspace(0, 1, columns)
        k = np.exp(-0.5 * ((x[:, None] - x) / 0.1) ** 2)
        values, vectors = np.linalg.eigh(k)
        factor = vectors * np.sqrt(np.maximum(values, 0))
        whole = np.sin(6 * x) + rng.standard_normal((rows, columns)) @ factor.T
        noise = 0.1
    seen = whole + noise * rng.standard_normal(whole.shape)
    seen[rng.random(whole.shape) < missing] = np.nan
    return whole, seen


def cpu(who):
    """CPU seconds, which other work on the core does not add to."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def ours(binary, values):
    """The row of the Rust program, whose time includes its start and its files."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, "values"), Path(folder, "completed")
        before.write_bytes(values.astype("<f8").tobytes())
        command = [binary, *values.shape, SEED, TOLERANCE, COUNT, SMALLEST,
                   before, after]
        start = cpu(resource.RUSAGE_CHILDREN)
        done = subprocess.run([str(part) for part in command], check=True,
                              capture_output=True, text=True)
        row = json.loads(done.stdout)
        row["seconds"] = cpu(resource.RUSAGE_CHILDREN) - start
        row["values"] = np.fromfile(after, "<f8").reshape(values.shape)
    return row


def numpys(values):
    start = cpu(resource.RUSAGE_SELF)
    row = impute(values, SEED, SHARE, COUNT, SMALLEST, TOLERANCE)
    return row | {"seconds": cpu(resource.RUSAGE_SELF) - start}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--missing", type=float, default=0.6)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    try:                                        # children inherit it
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    except (AttributeError, OSError):
        pass
    print(f"{args.rows} x {args.columns}, {args.missing:.0%} missing, medians of "
          f"{args.rounds} rounds; error is relative, on the missing entries.\n")
    print("| matrix | program | CPU seconds | ratio | steps | lambda | rank | error "
          "| residual |\n|---|---|--:|--:|--:|--:|--:|--:|--:|")
    met = True
    for kind in ("low rank", "process"):
        rng = np.random.default_rng(1)
        whole, seen = problem(kind, args.rows, args.columns, args.missing, rng)
        gone = np.isnan(seen)
        rounds = [(numpys(seen), ours(args.binary, seen))
                  for _ in range(args.rounds)]
        ratio = median(peer["seconds"] / own["seconds"] for peer, own in rounds)
        for name, rows in zip(("numpy", "regretta"), zip(*rounds)):
            done = rows[0]
            error = np.linalg.norm((done["values"] - whole)[gone]) / \
                np.linalg.norm(whole[gone])
            left = residual(seen, done)
            met &= left <= 1.01 * TOLERANCE
            seconds = median(row["seconds"] for row in rows)
            print(f"| {kind} | {name} | {seconds:.3f} "
                  f"| {f'{ratio:.1f}' if name == 'regretta' else ''} "
                  f"| {done['iterations']} | {done['lambda']:.4g} "
                  f"| {done['rank']} | {error:.2e} | {left:.1e} |", flush=True)
        met &= ratio >= REQUIRED
    return 1 if args.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
