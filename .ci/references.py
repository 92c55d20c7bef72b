#!/usr/bin/env python3
"""Runs the generators of the reference values anew and compares with what is committed."""
import json
import math
import os
import subprocess
import sys
import tempfile

# Of the last digit; what passes through BLAS or an optimiser differs between machines by more.
ROUNDING = 4e-16
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def differences(committed, fresh, where, tolerance):
    """Places where the two differ by more than the tolerance."""
    if isinstance(committed, dict) and isinstance(fresh, dict) and committed.keys() == fresh.keys():
        return [d for key in committed for d in differences(committed[key], fresh[key], f"{where}.{key}", tolerance)]
    if isinstance(committed, list) and isinstance(fresh, list) and len(committed) == len(fresh):
        return [d for i, pair in enumerate(zip(committed, fresh)) for d in differences(*pair, f"{where}[{i}]", tolerance)]
    a, b = number(committed), number(fresh)
    same = committed == fresh if a is None or b is None else math.isclose(a, b, rel_tol=tolerance, abs_tol=1e-300 if tolerance == ROUNDING else tolerance)
    return [] if same else [f"{where}: committed {committed}, generated {fresh}"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        theory = os.path.join(folder, "theory.json")
        subprocess.run([sys.executable, f"{ROOT}/theory/tests/reference.py", theory], check=True, stderr=subprocess.DEVNULL)
        pairs = [(f"{ROOT}/theory/tests/reference.json", theory, ROUNDING)]
        for generator, values, tolerance in (
            ("worker/tests/reference_prior.py", "worker/tests/reference_prior.json", ROUNDING),
            ("worker/tests/completion.py", "worker/tests/completion.json", 1e-6),
            ("worker/tests/gp.py", "worker/tests/gp.json", 1e-6),
            ("analysis/tests/statistics.py", "analysis/tests/statistics.json", ROUNDING),
        ):
            fresh = os.path.join(folder, os.path.basename(values))
            with open(fresh, "w") as out:
                subprocess.run([sys.executable, f"{ROOT}/{generator}"], check=True, stdout=out)
            pairs.append((f"{ROOT}/{values}", fresh, tolerance))
        failed = 0
        for committed, fresh, tolerance in pairs:
            with open(committed) as a, open(fresh) as b:
                found = differences(json.load(a), json.load(b), os.path.basename(committed), tolerance)
            print(f"{os.path.relpath(committed, ROOT)}: {'as generated' if not found else found[:5]}")
            failed += bool(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
