#!/usr/bin/env python3
"""Runs the generators of the reference values anew and compares with what is committed."""
import json
import math
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def number(value):
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def differences(committed, fresh, where):
    """Places where the two differ by more than a rounding of the last digit."""
    if isinstance(committed, dict) and isinstance(fresh, dict) and committed.keys() == fresh.keys():
        return [d for key in committed for d in differences(committed[key], fresh[key], f"{where}.{key}")]
    if isinstance(committed, list) and isinstance(fresh, list) and len(committed) == len(fresh):
        return [d for i, pair in enumerate(zip(committed, fresh)) for d in differences(*pair, f"{where}[{i}]")]
    a, b = number(committed), number(fresh)
    same = committed == fresh if a is None or b is None else math.isclose(a, b, rel_tol=4e-16, abs_tol=1e-300)
    return [] if same else [f"{where}: committed {committed}, generated {fresh}"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        theory = os.path.join(folder, "theory.json")
        subprocess.run([sys.executable, f"{ROOT}/theory/tests/reference.py", theory], check=True, stderr=subprocess.DEVNULL)
        pairs = [(f"{ROOT}/theory/tests/reference.json", theory)]
        for generator, values in (("worker/tests/reference_prior.py", "worker/tests/reference_prior.json"),
                                  ("analysis/tests/statistics.py", "analysis/tests/statistics.json")):
            fresh = os.path.join(folder, os.path.basename(values))
            with open(fresh, "w") as out:
                subprocess.run([sys.executable, f"{ROOT}/{generator}"], check=True, stdout=out)
            pairs.append((f"{ROOT}/{values}", fresh))
        failed = 0
        for committed, fresh in pairs:
            with open(committed) as a, open(fresh) as b:
                found = differences(json.load(a), json.load(b), os.path.basename(committed))
            print(f"{os.path.relpath(committed, ROOT)}: {'as generated' if not found else found[:5]}")
            failed += bool(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
