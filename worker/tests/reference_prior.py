"""Writes reference_prior.json: kernel matrices in 40-digit arithmetic, and Sobol points from scipy.

    python3 worker/tests/reference_prior.py > worker/tests/reference_prior.json
"""

import json
import sys

from mpmath import mp, mpf, exp, sin, pi, sqrt
from scipy.stats import qmc

mp.dps = 40

# Exact in binary, so that both sides see the same points.
POINTS = [[0.0, 0.0], [0.125, 0.5], [0.25, 0.75], [0.5, 0.0625], [0.625, 0.625], [1.0, 0.875], [0.9375, 1.0]]


def scaled(x, y, l):
    return sum(((mpf(a) - mpf(b)) / mpf(c)) ** 2 for a, b, c in zip(x, y, l))


def se(x, y, l, v=1.0):
    return mpf(v) * exp(-scaled(x, y, l) / 2)


def matern12(x, y, l, v=1.0):
    return mpf(v) * exp(-sqrt(scaled(x, y, l)))


def matern32(x, y, l, v=1.0):
    r = sqrt(3 * scaled(x, y, l))
    return mpf(v) * (1 + r) * exp(-r)


def matern52(x, y, l, v=1.0):
    r = sqrt(5 * scaled(x, y, l))
    return mpf(v) * (1 + r + r * r / 3) * exp(-r)


def rq(x, y, l, alpha, v=1.0):
    return mpf(v) * (1 + scaled(x, y, l) / (2 * mpf(alpha))) ** (-mpf(alpha))


def periodic(x, y, l, p, v=1.0):
    s = sum((sin(pi * (mpf(a) - mpf(b)) / mpf(p)) / mpf(c)) ** 2 for a, b, c in zip(x, y, l))
    return mpf(v) * exp(-2 * s)


def linear(x, y, v=1.0, offset=0.0):
    return mpf(offset) + mpf(v) * sum(mpf(a) * mpf(b) for a, b in zip(x, y))


def white(x, y, v=1.0):
    return mpf(v) if x is y else mpf(0)


both = [0.3, 0.3]
KERNELS = [
    ({"kind": "squared-exponential", "lengthscale": 0.3}, lambda x, y: se(x, y, both)),
    ({"kind": "squared-exponential", "lengthscale": [0.2, 0.7], "variance": 2.5}, lambda x, y: se(x, y, [0.2, 0.7], 2.5)),
    ({"kind": "matern12", "lengthscale": 0.3}, lambda x, y: matern12(x, y, both)),
    ({"kind": "matern12", "lengthscale": [0.2, 0.7], "variance": 0.5}, lambda x, y: matern12(x, y, [0.2, 0.7], 0.5)),
    ({"kind": "matern32", "lengthscale": 0.3}, lambda x, y: matern32(x, y, both)),
    ({"kind": "matern52", "lengthscale": [1.5, 0.25]}, lambda x, y: matern52(x, y, [1.5, 0.25])),
    ({"kind": "rational-quadratic", "lengthscale": 0.3, "alpha": 0.7}, lambda x, y: rq(x, y, both, 0.7)),
    ({"kind": "periodic", "lengthscale": 0.8, "period": 0.7, "variance": 3.0}, lambda x, y: periodic(x, y, [0.8, 0.8], 0.7, 3.0)),
    ({"kind": "linear", "variance": 2.0, "offset": 0.5}, lambda x, y: linear(x, y, 2.0, 0.5)),
    ({"kind": "white", "variance": 0.25}, lambda x, y: white(x, y, 0.25)),
    (
        {"kind": "sum", "terms": [{"kind": "linear"}, {"kind": "white", "variance": 0.1}, {"kind": "matern32", "lengthscale": 0.3}]},
        lambda x, y: linear(x, y) + white(x, y, 0.1) + matern32(x, y, both),
    ),
    (
        {"kind": "product", "factors": [
            {"kind": "sum", "terms": [{"kind": "matern12", "lengthscale": 0.3}, {"kind": "white", "variance": 0.5}]},
            {"kind": "sum", "terms": [{"kind": "squared-exponential", "lengthscale": 0.3, "variance": 2.0}, {"kind": "white", "variance": 0.25}]},
        ]},
        lambda x, y: (matern12(x, y, both) + white(x, y, 0.5)) * (se(x, y, both, 2.0) + white(x, y, 0.25)),
    ),
    (
        {"kind": "product", "factors": [{"kind": "linear", "offset": 1.0}, {"kind": "matern52", "lengthscale": 0.3}]},
        lambda x, y: linear(x, y, 1.0, 1.0) * matern52(x, y, both),
    ),
]

SINE = {"kind": "sine", "amplitude": 1.5, "frequency": 0.75, "phase": 0.25}

json.dump(
    {
        "points": POINTS,
        "kernels": [
            {"kernel": spec, "matrix": [[float(k(x, y)) for y in POINTS] for x in POINTS]} for spec, k in KERNELS
        ],
        "sine": {
            "mean": SINE,
            "values": [float(mpf(1.5) * sin(2 * pi * mpf(0.75) * sum(map(mpf, x)) + mpf(0.25))) for x in POINTS],
        },
        # Multiples of 2^-30: whole numbers survive any JSON parser.
        "sobol": {
            str(d): [[round(v * 2**30) for v in row] for row in qmc.Sobol(d, scramble=False, bits=30).random(2**10)[:: 1 if d == 3 else 97]]
            for d in (1, 3, 21)
        },
    },
    sys.stdout,
)
print()
