"""Writes completion.json: soft-impute in numpy, one whole decomposition per step, without momentum.

    python3 worker/tests/completion.py > worker/tests/completion.json

Results are rounded to 7 decimals, because the last digits depend on the linear algebra library.
bench/impute.py uses the same functions.
"""

import json
import random
import sys

import numpy as np

MASK = (1 << 64) - 1
PATIENCE = 3


def mix(word):
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
    return word ^ (word >> 31)


def held_out(observed, seed, share):
    """The entries that are held out: those whose hashes are smallest."""
    step = 0x9E3779B97F4A7C15
    key = mix(seed + step & MASK)
    places = np.flatnonzero(observed)
    words = [mix(key + (int(at) + 1) * step & MASK) for at in places]
    order = sorted(zip(words, places))[: max(int(share * len(places)), 1)]
    out = np.zeros(observed.size, bool)
    out[[at for _, at in order]] = True
    return out.reshape(observed.shape)


def centred(values, observed):
    """Means of the columns' observed entries, and these entries less the means."""
    counts = observed.sum(0)
    sums = np.where(observed, values, 0).sum(0)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / counts.sum())
    return means, np.where(observed, values - means, 0)


def shrink(matrix, lam):
    """Every singular value less lambda, and those below it zero."""
    u, s, v = np.linalg.svd(matrix, full_matrices=False)
    kept = s > lam
    return (u[:, kept] * (s[kept] - lam)) @ v[kept]


def solve(x, observed, lam, z, tolerance):
    """The solution at one lambda, from z on, and the steps it took."""
    limit = tolerance * np.linalg.norm(x)
    for steps in range(1, 1_000_000):
        before, z = z, shrink(np.where(observed, x, z), lam)
        if np.linalg.norm((z - before)[~observed]) <= limit:
            return z, steps
    raise RuntimeError(f"lambda = {lam}: no convergence")


def path(x, count, smallest):
    largest = np.linalg.norm(x, 2)
    return [largest * smallest ** (step / (count - 1)) for step in range(count)]


def impute(values, seed, share, count, smallest, tolerance):
    """Lambda by hold-out, then a solution from all observed entries."""
    observed = ~np.isnan(values)
    out = held_out(observed, seed, share)
    kept = observed & ~out
    means, x = centred(values, kept)
    z = np.zeros_like(x)

    def error():
        return np.sqrt(np.mean((values - means - z)[out] ** 2))

    lambdas = path(x, count, smallest)
    best = (error(), lambdas[0], z)
    total = since = 0
    for lam in lambdas[1:]:
        z, steps = solve(x, kept, lam, z, tolerance)
        total += steps
        since += 1
        if error() < best[0]:
            best, since = (error(), lam, z), 0
        if since == PATIENCE:
            break
    means, x = centred(values, observed)
    z, steps = solve(x, observed, best[1], best[2], tolerance)
    return {
        "values": np.where(observed, values, means + z),
        "rank": int((np.linalg.svd(z, compute_uv=False) > 1e-6 * best[1]).sum()),
        "lambda": best[1],
        "iterations": total + steps,
        "held_out_error": best[0],
    }


def example(rows, columns, missing, noise, seed):
    """Rank two, plus noise, plus a mean for each column; three decimals, NaN where missing."""
    draw = random.Random(seed)

    def normals(*shape):
        return np.array([draw.gauss(0, 1) for _ in range(int(np.prod(shape)))]).reshape(shape)

    whole = normals(rows, 2) @ normals(2, columns) + 3 * normals(columns) + noise * normals(rows, columns)
    whole[np.array([draw.random() < missing for _ in range(whole.size)]).reshape(whole.shape)] = np.nan
    return np.round(whole, 3)


def rounded(values):
    return [None if np.isnan(v) else round(float(v), 7) for v in values.ravel()]


def main():
    given, chosen = [], []
    for rows, columns, share in ((30, 20, 0.3), (30, 20, 0.05), (12, 25, 0.1)):
        values = example(rows, columns, 0.5, 0.3, rows)
        observed = ~np.isnan(values)
        means, x = centred(values, observed)
        lam = round(share * np.linalg.norm(x, 2), 4)
        z, _ = solve(x, observed, lam, np.zeros_like(x), 1e-13)
        given.append({"rows": rows, "columns": columns, "lambda": lam, "values": rounded(values),
                      "completed": rounded(np.where(observed, values, means + z))})
    for rows, columns, noise in ((30, 20, 0.3), (18, 24, 0.02)):
        values = example(rows, columns, 0.4, noise, columns)
        options = {"seed": 5, "share": 0.1, "count": 12, "smallest": 0.02}
        done = impute(values, tolerance=1e-13, **options)
        chosen.append({"rows": rows, "columns": columns, **options, "values": rounded(values),
                       "completed": rounded(done["values"]), "rank": done["rank"],
                       "lambda": round(float(done["lambda"]), 9),
                       "held_out_error": round(float(done["held_out_error"]), 7)})
    json.dump({"given": given, "chosen": chosen}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
