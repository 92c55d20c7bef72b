#!/usr/bin/env python3
"""Reference values for analysis/src/statistics/tests.rs, from mpmath at 40 digits.

    python3 analysis/tests/statistics.py > analysis/tests/statistics.json

Every value is computed by another route than the Rust code's: fits as roots of the full normal
equations in (A, B, c), started and checked by scipy's least squares; standard errors from the inverse
of J^T J; Student's quantiles by quadrature of the density; ranks from binomial sums in integers;
quantiles and tests checked by numpy and scipy. Inputs are f64 numbers, taken exactly; a row is
[inputs .., values ..], all as strings, lists joined by blanks, "none" where there is no value.
"""
import json
from fractions import Fraction
from math import comb

import numpy
from mpmath import exp, findroot, gamma, gammainc, log, matrix, mp, mpf, nstr, pi, quad, sqrt
from scipy import optimize, stats

mp.dps = 40
DIGITS = 20


def text(value):
    if value is None or isinstance(value, (str, int)):
        return "none" if value is None else str(value)
    return nstr(mpf(value), DIGITS, min_fixed=-5, max_fixed=5)


def words(values):
    return " ".join("none" if v is None else repr(v) for v in values)


def agree(ours, theirs, tolerance):
    ours, theirs = float(ours), float(theirs)
    assert abs(ours - theirs) <= tolerance * max(1e-12, abs(theirs)), (ours, theirs)


class Noise:
    """Nearly normal numbers that no library can change: sums of twelve uniforms of Knuth's generator."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self):
        self.state = (6364136223846793005 * self.state + 1442695040888963407) % 2**64
        return (self.state >> 40) / 2**24

    def normal(self):
        return sum(self.uniform() for _ in range(12)) - 6.0


# ---- samples ----

def summary(values):
    x = [mpf(v) for v in values]
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / (len(x) - 1)
    return mean, variance, sqrt(variance / len(x))


def samples():
    noise = Noise(1)
    return [
        [0.1, 0.7, -2.5, 3.25, 1e-3],
        [round(noise.normal(), 6) for _ in range(60)],
        [1e6 + round(noise.normal(), 3) for _ in range(40)],
        [round(float(numpy.expm1(abs(noise.normal()))), 5) for _ in range(101)],
        [2.0, 2.0, 2.0, 5.0, 5.0, 1.0, 1.0, 9.0],
    ]


def type7(values, p):
    x = sorted(mpf(v) for v in values)
    h = (len(x) - 1) * mpf(p)
    k = int(h)
    value = x[k] if k + 1 == len(x) else x[k] + (h - k) * (x[k + 1] - x[k])
    agree(value, numpy.quantile(values, p), 1e-13)
    return value


def ranks(n, p, level):
    """The largest l with P(Bin < l) <= tail, the least u with P(Bin >= u) <= tail, in integers."""
    yes, whole = p.as_integer_ratio()
    tail, total = (1 - Fraction(level)) / 2, whole**n
    below, low, high = 0, None, None
    for k in range(1, n + 1):
        below += comb(n, k - 1) * yes ** (k - 1) * (whole - yes) ** (n - k + 1)
        if below * tail.denominator <= tail.numerator * total:
            low = k
        if high is None and (total - below) * tail.denominator <= tail.numerator * total:
            high = k
    return low, high


# ---- Student ----

def student(nu, p):
    nu, p = mpf(nu), mpf(p)
    scale = gamma((nu + 1) / 2) / (sqrt(nu * pi) * gamma(nu / 2))
    density = lambda t: scale * (1 + t * t / nu) ** (-(nu + 1) / 2)
    start = mpf(float(stats.t.ppf(float(p), float(nu))))
    # Newton on the distribution function, from scipy's answer.
    nodes = [start * k / 8 for k in range(9)]
    inner = quad(density, nodes)
    t = start
    for _ in range(4):
        mass = inner + quad(density, [start, t]) if t != start else inner
        t -= (mass + mpf(1) / 2 - p) / density(t)
    agree(t, start, 1e-9)
    return t


def paired(first, second, level):
    mean, _, error = summary([mpf(a) - mpf(b) for a, b in zip(first, second)])
    half = error * student(float(len(first) - 1), (1 + mpf(level)) / 2)
    found = stats.ttest_rel(first, second).confidence_interval(level)
    agree(mean - half, found.low, 1e-9)
    signs = [sum(a < b for a, b in zip(first, second)), sum(a == b for a, b in zip(first, second)),
             sum(a > b for a, b in zip(first, second))]
    return [mean, error, mean - half, mean + half] + signs


# ---- fits ----

def start(sizes, values, errors, floor):
    """The best of scipy's least squares from several starts."""
    n, y, e = (numpy.array([float(v) for v in x]) for x in (sizes, values, errors))
    centre = numpy.exp(numpy.log(n).mean())
    curve = lambda p: (p[2] if floor is None else float(floor)) + p[0] * (n / centre) ** -p[1]
    best = None
    for c in (0.1, 0.3, 0.6, 1.0, 1.8, 3.0):
        first = [y[0] - y[-1], c] + ([y[-1]] if floor is None else [])
        found = optimize.least_squares(lambda p: (y - curve(p)) / e, first, x_scale="jac",
                                       xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=20000)
        if 0.02 < found.x[1] < 4 and (best is None or found.cost < best.cost):
            best = found
    return best.x, centre


def fit(sizes, values, errors, floor):
    """(parameters, derivatives) at the root of the normal equations, (b, c[, A])."""
    n, y, w = [mpf(v) for v in sizes], [mpf(v) for v in values], [1 / mpf(v) ** 2 for v in errors]
    first, centre = start(sizes, values, errors, floor)
    centre = mpf(float(centre))
    l = [log(v / centre) for v in n]
    known = None if floor is None else mpf(floor)

    def rows(b, c, a=known):
        x = [exp(-c * v) for v in l]
        columns = [x, [-b * v * u for v, u in zip(l, x)]] + ([[mpf(1)] * len(x)] if floor is None else [])
        return [u - a - b * v for u, v in zip(y, x)], columns

    def equations(*p):
        residuals, columns = rows(*p)
        return [sum(wi * ri * ci for wi, ri, ci in zip(w, residuals, column)) for column in columns]

    root = findroot(equations, [mpf(float(v)) for v in first], tol=mpf(10) ** -50, maxsteps=60)
    for ours, theirs in zip(root, first):
        agree(ours, theirs, 1e-5)
    residuals, columns = rows(*root)
    chi_square = sum(wi * ri**2 for wi, ri in zip(w, residuals))
    return list(root), centre, chi_square, columns, w


def whole_fit(sizes, values, errors, floor):
    root, centre, chi_square, columns, w = fit(sizes, values, errors, floor)
    b, c = root[0], root[1]
    k = len(root)
    information = matrix(k, k)
    for i in range(k):
        for j in range(k):
            information[i, j] = sum(wi * p * q for wi, p, q in zip(w, columns[i], columns[j]))
    covariance = information**-1
    scale = centre**c
    by_b = [scale, b * scale * log(centre)]
    var_b = sum(by_b[i] * by_b[j] * covariance[i, j] for i in range(2) for j in range(2))
    a, error_a = (root[2], sqrt(covariance[2, 2])) if floor is None else (mpf(floor), mpf(0))
    degrees = len(sizes) - k
    p_value = gammainc(mpf(degrees) / 2, chi_square / 2, regularized=True)
    if floor is None:
        check_errors(sizes, values, errors, (a, b * scale, c), (error_a, sqrt(var_b), sqrt(covariance[1, 1])))
    agree(p_value, stats.chi2.sf(float(chi_square), degrees), 1e-9)
    return [a, b * scale, c, chi_square, degrees, p_value, error_a, sqrt(var_b), sqrt(covariance[1, 1])]


def check_errors(sizes, values, errors, estimate, found):
    """scipy's curve_fit on (A, B, c) itself gives the same errors."""
    n = numpy.array(sizes)
    law = lambda x, a, b, c: a + b * x**-c
    jacobian = lambda x, a, b, c: numpy.stack([numpy.ones_like(x), x**-c, -b * x**-c * numpy.log(x)], axis=1)
    _, covariance = optimize.curve_fit(law, n, numpy.array(values), [float(v) for v in estimate],
                                       sigma=numpy.array(errors), absolute_sigma=True, jac=jacobian)
    for ours, theirs in zip(found, numpy.sqrt(numpy.diag(covariance))):
        agree(ours, theirs, 1e-4)


def curves():
    noise = Noise(2)
    doubling = [25.0 * 2**k for k in range(8)]
    uneven = [13.5, 22.25, 47.0, 101.0, 333.0, 1024.0]
    out = []

    def add(sizes, a, b, c, relative, floor, wobble):
        errors = [round(relative * (1 + k / 4) * abs(b) * sizes[0] ** -c, 9) for k in range(len(sizes))]
        values = [round(a + b * n**-c + wobble * e * noise.normal(), 12) for n, e in zip(sizes, errors)]
        out.append((sizes, values, errors, floor))

    add(doubling, 0.35, 2.0, 0.5, 1e-2, None, 1)
    add(doubling, 0.35, 2.0, 0.5, 1e-2, 0.35, 1)
    add(doubling, 0.0, 4.0, 1.0, 2e-2, None, 1)
    add(doubling, 0.0, 4.0, 1.0, 2e-2, 0.0, 1)
    add(uneven, -1.0, 30.0, 1.5, 1e-3, None, 1)
    add(uneven, 12.0, 0.7, 0.25, 1e-3, None, 1)
    add(uneven, 1e-3, 5e-3, 0.4, 1e-4, 1e-3, 1)
    add(doubling[:5], 2.0, -3.0, 0.8, 5e-3, None, 1)
    add(doubling, 0.1, 1.0, 0.5, 1e-6, None, 1)
    add(doubling, 0.0, 1.0, 0.5, 3e-3, 0.0, 4)
    add([1e3, 1e4, 1e5, 1e6, 1e7], 5.0, 100.0, 0.5, 1e-2, None, 1)
    # An error of 0.5 % to 1.4 % in a curve of another kind: a misfit.
    values = [round(1 / (1 + float(numpy.log(n))), 12) for n in doubling]
    out.append((doubling, values, [round(0.005 * v, 9) for v in values], 0.0))
    return out


# ---- bootstrap ----

def resampled():
    """Fixed weights: everything but the drawing is compared."""
    noise = Noise(3)
    sizes, replicates = [20.0, 40.0, 80.0, 160.0, 320.0, 640.0], 24
    shared = [1 + 0.08 * noise.normal() for _ in range(replicates)]
    out = []
    for transform, floor, limit in (("identity", None, 0.5), ("square-root", 0.0, 0.0)):
        power = -0.6 if transform == "identity" else -1.0
        data = [[round((limit + 6 * n**power) * (shared[i] + 0.02 * noise.normal()), 9) for i in range(replicates)]
                for n in sizes]
        data[1][5] = data[4][0] = data[4][17] = None
        weights = []
        for _ in range(9):
            row = [0] * replicates
            for _ in range(replicates):
                row[int(noise.uniform() * replicates)] += 1
            weights.append(row)
        out.append((sizes, data, weights, transform, floor))
    return out


def bootstrap(sizes, data, weights, transform, floor):
    """The exponents of the resamples, their 95 % percentile interval, and the sample's own fit."""
    root = transform == "square-root"
    values, errors = [], []
    for series in data:
        mean, _, error = summary([v for v in series if v is not None])
        values.append(sqrt(mean) if root else mean)
        errors.append(error / (2 * sqrt(mean)) if root else error)
    own = fit(sizes, values, errors, floor)[0][1]
    exponents = []
    for row in weights:
        means = []
        for series in data:
            kept = [(w, mpf(v)) for w, v in zip(row, series) if v is not None]
            mean = sum(w * v for w, v in kept) / sum(w for w, _ in kept)
            means.append(sqrt(mean) if root else mean)
        exponents.append(fit(sizes, means, errors, floor)[0][1])
    x = sorted(exponents)

    def quantile(p):
        h = (len(x) - 1) * p
        k = int(h)
        return x[k] + (h - k) * (x[min(k + 1, len(x) - 1)] - x[k])

    return [own, quantile(mpf("0.025")), quantile(mpf("0.975"))] + exponents


def main():
    data = samples()
    floor = lambda f: "free" if f is None else repr(f)
    groups = {
        "summary": [[words(x)] + [text(v) for v in summary(x)] for x in data],
        "quantile": [[words(x), repr(p), text(type7(x, p))]
                     for x in data for p in (0.0, 0.1, 0.25, 0.5, 0.9, 0.95, 1.0)],
        "ranks": [[str(n), repr(p), repr(level)] + [text(v) for v in ranks(n, p, level)]
                  for n in (1, 5, 6, 30, 59, 100, 257, 1000) for p in (0.05, 0.5, 0.9, 0.95) for level in (0.9, 0.95, 0.999)],
        "limits": [[words(x), repr(p), repr(level)] + limits(x, p, level)
                   for x in data for p in (0.5, 0.9) for level in (0.8, 0.95)],
        "student": [[repr(nu), repr(p), text(student(nu, p))]
                    for nu in (1.0, 2.0, 3.0, 4.5, 10.0, 29.0, 999.0, 99999.0) for p in (0.01, 0.4, 0.6, 0.975, 0.9995)],
        "paired": [[words(x), words(y), repr(level)] + [text(v) for v in paired(x, y, level)]
                   for x, y in pairs() for level in (0.9, 0.95)],
        "fit": [[words(n), words(y), words(e), floor(f)] + [text(v) for v in whole_fit(n, y, e, f)]
                for n, y, e, f in curves()],
        "bootstrap": [[words(n), "; ".join(words(s) for s in d), "; ".join(words(w) for w in ws), t, floor(f)]
                      + [text(v) for v in bootstrap(n, d, ws, t, f)] for n, d, ws, t, f in resampled()],
    }
    print(json.dumps(groups, indent=0))


def limits(values, p, level):
    x = sorted(values)
    return [text(None if r is None else mpf(x[r - 1])) for r in ranks(len(x), p, level)]


def pairs():
    noise = Noise(4)
    first = [round(noise.normal(), 4) for _ in range(35)]
    second = [a if i % 9 == 0 else round(a + 0.2 + 0.5 * noise.normal(), 4) for i, a in enumerate(first)]
    return [([1.0, 2.5, 3.0], [0.5, 2.5, 4.5]), (first, second)]


if __name__ == "__main__":
    main()
