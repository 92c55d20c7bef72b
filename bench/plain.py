#!/usr/bin/env python3
"""A trial of `plain`, hyper-parameters fitted at every step, against scikit-learn doing the same.

    python3 -m pip install scikit-learn
    python3 bench/plain.py BINARY [--rounds 3] [--starts 4] [--check]

BINARY runs one trial: M = 162 random candidates in five dimensions, T = 100 steps, GP-UCB with weight 3 on a synthetic
function, no candidate twice. scikit-learn's GaussianProcessRegressor then fits the same responses after each step, with the same kernel, the same
bounds (of the noise nearly: see NOISE) and as many starts, and predicts at every candidate, all on one core right after
BINARY. Its starts are the kernel's initial values and random ones; ours are the last step's optimum and spread ones, and
those that lead to a known optimum are cut short. Each round has another function. Both maximise the same likelihood, so
the table also says how far they came: nats by which one's optimum is above the other's, summed over the steps where it
is, and the worst step of ours. With --check the exit code is 1 when the ratio is below 20, or a tenth of the steps is worse.
"""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
import subprocess
import sys
import warnings
from statistics import median
from time import perf_counter

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

CANDIDATES, DIMENSION, HORIZON, REPEATS, REQUIRED = 162, 5, 100, 5, 20
NOISE = (1e-10, 10)  # regretta bounds noise/variance instead: 1e-10 to 1e4


def replay(trial: dict, starts: int) -> tuple[float, list[float]]:
    """scikit-learn's seconds for the trial's steps, and its optima."""
    x = np.array(trial["x"]).reshape(CANDIDATES, DIMENSION)
    points = [step[0] for step in trial["steps"]]
    responses = np.array([step[1] for step in trial["steps"]])
    bounds = trial["bounds"]
    kernel = ConstantKernel(1.0, bounds["variance"]) * RBF(1.0, bounds["length"]) + WhiteKernel(0.1, NOISE)
    found, seconds = [], 0.0
    for t in range(1, len(points) + 1):
        begin = perf_counter()
        model = GaussianProcessRegressor(kernel, alpha=0.0, normalize_y=True, n_restarts_optimizer=starts - 1,
                                         random_state=t)
        model.fit(x[points[:t]], responses[:t])
        model.predict(x, return_std=True)
        seconds += perf_counter() - begin
        found.append(model.log_marginal_likelihood_value_)
    return seconds, found


def one_round(args, seed: int) -> dict:
    numbers = [CANDIDATES, DIMENSION, HORIZON, args.starts, REPEATS, seed]
    done = subprocess.run([args.binary, *map(str, numbers)], check=True, capture_output=True, text=True)
    trial = json.loads(done.stdout)
    seconds, theirs = replay(trial, args.starts)
    above = [step[2] - value for step, value in zip(trial["steps"], theirs)]
    ours = median(trial["seconds"])
    return {"ours": ours, "theirs": seconds, "ratio": seconds / ours, "ahead": sum(d for d in above if d > 1e-6),
            "behind": -sum(d for d in above if d < -1e-6), "worse": sum(d < -1e-6 for d in above), "worst": -min(above)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rounds = [one_round(args, seed) for seed in range(1, args.rounds + 1)]
    print("| round | regretta, ms | scikit-learn, ms | ratio | nats ahead | nats behind | steps behind | worst step |")
    print("|---|---|---|---|---|---|---|---|")
    for i, r in enumerate(rounds, 1):
        print(f"| {i} | {1e3 * r['ours']:.1f} | {1e3 * r['theirs']:.0f} | {r['ratio']:.0f} | {r['ahead']:.3g} "
              f"| {r['behind']:.3g} | {r['worse']} | {r['worst']:.2g} |")
    ratio = median(r["ratio"] for r in rounds)
    behind = sum(r["worse"] for r in rounds) > 0.1 * HORIZON * len(rounds)
    print(f"\nratio {ratio:.0f}, required {REQUIRED}")
    return int(args.check and (ratio < REQUIRED or behind))


if __name__ == "__main__":
    sys.exit(main())
