#!/usr/bin/env python3
"""regretta against the numpy/scipy peer, in turns on one core.

    python3 bench/compare.py [--regretta PATH] [--rounds 5] [--check]

Every round runs each case with both programs, one right after the other, so
that a noisy machine disturbs both alike. Prints medians over rounds as a
Markdown table; ratios are medians of the rounds' own ratios. "required" and
"limit" are the targets that the trial engine was built to; with --check the
exit code is 1 when one is missed or could not be measured.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
PEER = HERE / "peer.py"
BINARY = HERE.parent / "target" / "release" / "regretta"
REQUIRED = {"m1000": 130, "m500": 60, "m162": 16}   # peer ms / regretta ms
GROWTH = {"n1000000": ("N = 10^6 against N = 1500", 1.1),   # against m1000
          "m8000": ("M = 8000 against M = 1000", 9)}
FLOOR = 1.7                                         # times_floor
CASES = [*REQUIRED, *GROWTH]


def run(*command):
    """The rows that a command prints, by case; None when it fails."""
    try:
        done = subprocess.run([str(part) for part in command], check=True,
                              capture_output=True, text=True)
        return {row["case"]: row for row in json.loads(done.stdout)}
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        detail = getattr(error, "stderr", None) or ""
        print(f"{error}\n{detail.strip()}", file=sys.stderr)
        return None


def one_round(args):
    """Rows of both programs."""
    peer, ours = {}, {}
    # What is divided by one another runs close together.
    for case in ("m1000", *GROWTH, "m500", "m162"):
        if case in REQUIRED:
            peer.update(run(sys.executable, PEER, "--json", "--only", case,
                            "--seconds", args.seconds,
                            "--update", args.update) or {})
        ours.update(run(args.regretta, "bench", "--json", "--only", case) or {})
    return peer, ours


def middle(values):
    """Median of what was measured in every round, None where it was not."""
    values = list(values)
    return median(values) if values and None not in values else None


def value(rows, case, key="ms_per_trial"):
    return rows.get(case, {}).get(key)


def ratio(a, b):
    return a / b if a is not None and b else None


def show(number):
    return "-" if number is None else f"{number:.3g}"


def report(rounds):
    """Prints the tables; returns whether every limit was met."""
    met = []

    def verdict(number, limit, least=False):
        ok = number is not None and (
            number >= limit if least else number <= limit)
        met.append(ok)
        return f"{limit} | {'yes' if ok else 'no'}"

    print("| case | peer ms | peer user CPU ms | regretta ms | ratio "
          "| required | met | ms/floor | limit | met |")
    print("|---" + "|--:" * 5 + "|---|--:|--:|---|")
    for case in CASES:
        ours = middle(value(r, case) for _, r in rounds)
        floor = middle(value(r, case, "times_floor") for _, r in rounds)
        speed = "- | - | -"
        if case in REQUIRED:
            times = middle(ratio(value(p, case), value(r, case))
                           for p, r in rounds)
            speed = f"{show(times)} | {verdict(times, REQUIRED[case], True)}"
        print("| " + " | ".join((
            case, show(middle(value(p, case) for p, _ in rounds)),
            show(middle(value(p, case, "user_ms") for p, _ in rounds)),
            show(ours), speed, show(floor), verdict(floor, FLOOR))) + " |")
    print("\n| growth | ratio | limit | met |\n|---|--:|--:|---|")
    for case, (title, limit) in GROWTH.items():
        times = middle(ratio(value(r, case), value(r, "m1000"))
                       for _, r in rounds)
        print(f"| {title} | {show(times)} | {verdict(times, limit)} |")
    return all(met)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--regretta", type=Path, default=BINARY)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0,
                        help="time of the peer per case and round (3)")
    parser.add_argument("--update", choices=("columns", "full"),
                        default="full",
                        help="how the peer follows both posteriors: rank-one "
                        "updates of whole covariance matrices (full), or only "
                        "of means and variances, the fastest exact way in "
                        "numpy (columns)")
    parser.add_argument("--core", type=int, help="default: the last allowed")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not args.regretta.exists():
        parser.error(f"{args.regretta} is not there; run `cargo build "
                     "--release` first, or name the binary with --regretta")
    try:                                            # children inherit it
        allowed = os.sched_getaffinity(0)
        core = max(allowed) if args.core is None else args.core
        os.sched_setaffinity(0, {core})
        where = f"pinned to core {core}"
    except (AttributeError, OSError) as error:      # no Linux, no such core
        where = f"not pinned ({error})"
    rounds = []
    for number in range(max(args.rounds, 1)):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        rounds.append(one_round(args))
    print(f"Medians of {len(rounds)} rounds, {where}; the peer runs with "
          f"--update {args.update}.\n")
    met = report(rounds)
    # A long trial is interrupted more surely than a short one, so a busy core
    # flatters regretta: the peer's wall time then exceeds its CPU time.
    if any(row["ms_per_trial"] > 1.15 * row["user_ms"]
           for peer, _ in rounds for row in peer.values()):
        print("\nThe core was shared with other work (the peer's wall time "
              "exceeds its CPU time): the ratios are too high.")
    return 1 if args.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
