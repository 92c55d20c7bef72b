#!/usr/bin/env python3
"""Reference values for theory/tests/reference.rs, from mpmath at 40 digits or more.

Run `python3 reference.py reference.json [group ..]` (two minutes for all groups). Every value is
computed by another route than the Rust code's: plain power series for the incomplete functions,
adaptive quadrature of the beta density for the laws, Kummer's function for the conditional law.
Inputs are f64 numbers, taken exactly; a row is [inputs .., values ..], all as strings, "none" where
a constant does not exist.
"""
import json
import sys
import time

from mpmath import (erf, erfc, erfinv, exp, hyp1f1, log, loggamma,
                    log1p, matrix, mp, mpf, nstr, pi, quad, sqrt)

mp.dps = 40
DIGITS = 20


def text(value):
    return "none" if value is None else nstr(mpf(value), DIGITS, min_fixed=-5, max_fixed=5)


def rows(function, cases):
    out = []
    for case in cases:
        inputs = [mpf(v) if isinstance(v, float) else v for v in case]
        value = function(*inputs)
        values = value if isinstance(value, (list, tuple)) else [value]
        out.append([repr(v) if isinstance(v, float) else str(v) for v in case] + [text(v) for v in values])
    return out


# ---- special functions ----

def stirling(x):
    return loggamma(x) - ((x - mpf(1) / 2) * log(x) - x + log(2 * pi) / 2)


def ln_beta(a, b):
    a, b = mpf(a), mpf(b)
    return loggamma(a) + loggamma(b) - loggamma(a + b)


def series(first, ratio):
    total, term, n = mpf(first), mpf(first), 0
    while True:
        term *= ratio(n)
        total += term
        n += 1
        if abs(term) < abs(total) * mpf(10) ** (-mp.dps) and ratio(n) < 1:
            return total


def lower_gamma(a, x):
    """P(a, x) by DLMF 8.7.1; the extra digits keep Q = 1 - P meaningful."""
    a, x = mpf(a), mpf(x)
    return exp(a * log(x) - x - loggamma(a + 1)) * series(1, lambda n: x / (a + n + 1))


def gamma_tails(a, x):
    with mp.workdps(90):
        p = lower_gamma(a, x)
        return [p, 1 - p]


def lower_beta(a, b, x):
    """I_x(a, b) by DLMF 8.17.8 on the side where it converges fast."""
    a, b, x = mpf(a), mpf(b), mpf(x)
    power = a * log(x) + b * log1p(-x) - ln_beta(a, b)
    return exp(power) / a * series(1, lambda n: (a + b + n) / (a + 1 + n) * x)


def beta_tails(a, b, x):
    a, b, x = mpf(a), mpf(b), mpf(x)
    with mp.workdps(120):
        if x * (a + b) <= a:
            p = lower_beta(a, b, x)
            return p, 1 - p
        q = lower_beta(b, a, 1 - x)
        return 1 - q, q


def ln_beta_tails(a, b, x):
    with mp.workdps(120):
        p, q = beta_tails(a, b, x)
        return [log(p), log(q)]


def solve(f, low, high, digits=DIGITS):
    """A root of a monotone function between two arguments, by the Illinois method."""
    a, b = mpf(low), mpf(high)
    fa, fb = f(a), f(b)
    if fa * fb > 0:
        raise ValueError("not a bracket")
    side = 0
    for step in range(200):
        x = (a * fb - b * fa) / (fb - fa) if step % 8 else (a + b) / 2
        fx = f(x)
        if fx == 0 or abs(b - a) < abs(x) * mpf(10) ** -digits or abs(fx) < mpf(10) ** -(digits + 1):
            return x
        if (fx > 0) == (fb > 0):
            b, fb = x, fx
            fa, side = (fa / 2 if side == 1 else fa), 1
        else:
            a, fa = x, fx
            fb, side = (fb / 2 if side == -1 else fb), -1
    raise ValueError("no convergence")


def bisect(f, inside, outside):
    """The zero between f(inside) < 0 and f(outside) > 0, for cheap f."""
    for _ in range(90):
        middle = (inside + outside) / 2
        if f(middle) < 0:
            inside = middle
        else:
            outside = middle
    return inside


def chi2_quantile(k, p):
    k, p = mpf(k), mpf(p)
    spread = 12 * sqrt(2 * k) + 60
    low = max(k - spread, k * exp(-1 - 2 * log(1 / p) / k) / 2)
    return solve(lambda x: log(lower_gamma(k / 2, x / 2) / p), low, k + spread)


def chi2_upper_quantile(k, p):
    k, p = mpf(k), mpf(p)
    spread = 12 * sqrt(2 * k) + 200
    with mp.workdps(120):
        low = max(k - spread, k * mpf("1e-3"))
        return solve(lambda x: log((1 - lower_gamma(k / 2, x / 2)) / p), low, k + spread)


def beta_quantile(a, b, p):
    a, b, p = mpf(a), mpf(b), mpf(p)
    mean, sd = a / (a + b), sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    low, high = max(mean - 9 * sd, mpf("1e-9")), min(mean + 12 * sd, 1 - mpf("1e-9"))
    # The series converges like x^n, so the smaller of x and 1 - x; no tail here is extreme.
    cdf = lambda x: lower_beta(a, b, x) if 2 * x < 1 else 1 - lower_beta(b, a, 1 - x)
    return solve(lambda x: cdf(x) - p, low, high)


def normal_quantile(p):
    with mp.workdps(350):
        return sqrt(mpf(2)) * erfinv(2 * mpf(p) - 1)


# ---- laws ----

def beta_quad(alpha, beta_, f):
    """E f(p), p ~ Beta(alpha, beta), by Gauss-Legendre on pieces about the mean."""
    mean = alpha / (alpha + beta_)
    sd = sqrt(alpha * beta_ / ((alpha + beta_) ** 2 * (alpha + beta_ + 1)))
    cuts = [mpf(0)] + [mean + k * sd for k in (-9, -6, -4, -2, 0, 2, 4, 7, 11, 16, 24, 40) if 0 < mean + k * sd < 1]
    tail = cuts[-1]
    cuts += [1 - (1 - tail) / 4, mpf(1)]
    # p = s^4 near 0 tames alpha = 1/2; tanh-sinh handles what is left at both ends.
    norm = ln_beta(alpha, beta_)

    def g(p):
        if p <= 0 or p >= 1:
            return mpf(0)
        return exp((alpha - 1) * log(p) + (beta_ - 1) * log1p(-p) - norm) * f(p)

    with mp.workdps(min(mp.dps, 25)):
        return quad(g, cuts)


def error_tails(n, t, a):
    n, t, a = mpf(n), mpf(t), mpf(a)
    if t == 0:
        z = sqrt(a * n / 2)
        return [erf(z), erfc(z)]
    scale = lambda p: 1 / n + (1 + 1 / n) * p / (1 - p)
    upper = beta_quad(t / 2, (n - t) / 2, lambda p: erfc(sqrt(a / (2 * scale(p)))))
    return [1 - upper, upper]


def given_tails(n, t, k, a):
    """error | D_t: p = Q/(Q + W) is non-central beta, the scale is 1/(N (1 - p))."""
    n, t, k, a = mpf(n), mpf(t), mpf(k), mpf(a)
    half = n * k / 2
    f = lambda p: hyp1f1(n / 2, t / 2, half * p) * exp(-half) * erfc(sqrt(a * n * (1 - p) / 2))
    mean = (t / 2 + half) / (n / 2 + half)
    sd = sqrt(mean * (1 - mean) / (n / 2 + half)) * 2
    cuts = [mpf(0)] + [mean + j * sd for j in (-8, -5, -3, -1, 1, 3, 5, 8) if 0 < mean + j * sd < 1] + [mpf(1)]
    norm = ln_beta(t / 2, (n - t) / 2)
    with mp.workdps(25):
        upper = quad(lambda p: exp((t / 2 - 1) * log(p) + ((n - t) / 2 - 1) * log1p(-p) - norm) * f(p) if 0 < p < 1 else mpf(0), cuts)
    return [1 - upper, upper]


def error_quantile(n, t, tail):
    """log of the a with P(error > a) = tail: a coarse root, then a fine one around it."""
    n, t, tail = mpf(n), mpf(t), mpf(tail)
    miss = lambda u: log(error_tails(n, t, exp(u))[1] / tail)
    size = log(1 / n + (1 + 1 / n) * t / (n - t - 2))
    with mp.workdps(12):
        coarse = solve(miss, size - 3, size + 4, 9)
    with mp.workdps(25):
        return solve(miss, coarse - mpf("1e-7"), coarse + mpf("1e-7"), 19)


# ---- constants ----

def chi_bound(d, l):
    return d + 2 * sqrt(d * l) + 2 * l


def a_t(n, t, delta, form):
    n, t, delta = mpf(n), mpf(t), mpf(delta)
    if n - t - 2 <= 0:
        return None
    if form == "sharp":
        return exp(error_quantile(n, t, delta / 2))
    k = chi_bound(t, log(4 / delta)) * (n if form == "corrected" else 1)
    return 4 * (n - 2 + k) / (delta * n * (n - t - 2))


def interval(n, t, delta, form, times):
    """times = 4 for Lemma 1 at t, 6 for Theorem 2 given t observations."""
    n, t, delta = mpf(n), mpf(t), mpf(delta)
    d = n - t - 1
    if d <= 0:
        return [None, None]
    if form == "sharp":
        return [chi2_quantile(d, delta / times) / d, chi2_upper_quantile(d, delta / times) / d]
    b = log(times / delta) / d
    return [1 - 2 * sqrt(b), 1 + 2 * sqrt(b) + 2 * b]


def iota(n, t, delta, form):
    n, t, delta = mpf(n), mpf(t), mpf(delta)
    if form == "sharp":
        return sqrt(exp(error_quantile(n, t - 1, delta / 3)))
    l6 = log(6 / delta)
    inner = n - 3 + chi_bound(t, l6) if form == "printed" else n - 2 + n * chi_bound(t - 1, l6)
    return sqrt(6 * inner / (delta * n * (n - t - 1)))


def zeta(n, t, delta, form):
    low, _ = interval(n, t - 1, delta, form, 6)
    if low <= 0:
        return None
    return (iota(n, t, delta, form) + sqrt(2 * log(3 / mpf(delta)))) / sqrt(low)


def lam(c, s2, rho, horizon):
    return sqrt(2 * c * rho / (horizon * log(1 + c / s2)) + s2)


def bounds(n, horizon, delta, form, c, s2, rho, tau, gap):
    """eta_UCB, UCB bound, eta_PI, PI bound."""
    zu, zp = sqrt(2 * log(3 / mpf(delta))), sqrt(2 * log(3 / (2 * mpf(delta))))
    low, high = interval(n, horizon - 1, delta, form, 6)
    eta_u = (iota(n, horizon, delta, form) + zu) * (sqrt(high / low) + 1)
    low, high = interval(n, tau - 1, delta, form, 6)
    i = iota(n, tau, delta, form)
    eta_p = (gap + i) * sqrt(high / low) + i + zp
    l = lam(c, s2, rho, horizon)
    return [eta_u, eta_u * l - zu * s2 / sqrt(c + s2), eta_p, eta_p * l - zp * s2 / (2 * sqrt(c + s2))]


def bounds4(n, horizon, delta, form, c, s2, rho, tau, gap, star, at_tau):
    zu, zp = sqrt(2 * log(3 / mpf(delta))), sqrt(2 * log(3 / (2 * mpf(delta))))
    eta_u, _, eta_p, _ = bounds(n, horizon, delta, form, c, s2, rho, tau, gap)
    l = sqrt(2 * c * rho / (horizon * log(1 + c / s2)) + at_tau)
    s = lambda v: v / sqrt(c + v)
    return [eta_u * l - zu / 2 * (s(star) + s(at_tau)), eta_p * l - zp / 2 * s(at_tau)]


def coverages(n, t, delta, form):
    mean = error_tails(n, t, a_t(n, t, delta, form))[0]
    low, high = interval(n, t, delta, form, 4)
    d = mpf(n) - t - 1
    below = lower_gamma(d / 2, d * low / 2) if low > 0 else 0
    variance = lower_gamma(d / 2, d * high / 2) - below
    return [mean, variance, mean * variance]


# ---- evidence ----

def tuned(q, alpha, n_opt):
    v = q * (1 - q)
    l = log(1 / (2 * alpha))
    rho = n_opt * v / (2 * l + log(1 + 2 * l))
    r = max(rho - v, v / 1000)
    return [r / (1 - q), r / q]


def ln_e(s, n, q, a, b):
    with mp.workdps(120):
        m = -s * log(q) - (n - s) * log1p(-q) + ln_beta(a + s, b + n - s) - ln_beta(a, b)
        p0, q0 = beta_tails(a, b, q)
        p1, q1 = beta_tails(a + s, b + n - s, q)
        return [m + log(q1 / q0), m + log(p1 / p0)]


def mixture(s, n, failures, q, alpha, n_opt):
    priors = [(mpf(1) / 2, mpf(1) / 2), tuned(q, alpha, n_opt)]
    total = n + failures
    refute = [ln_e(s, total, q, *p)[0] for p in priors]
    confirm = [ln_e(s + failures, total, q, *p)[1] for p in priors]
    return [log(sum(map(exp, refute)) / 2), log(sum(map(exp, confirm)) / 2)]


def clopper_pearson(s, n, alpha):
    low = mpf(0) if s == 0 else beta_quantile(s, n - s + 1, alpha / 2)
    high = mpf(1) if s == n else 1 - beta_quantile(n - s, s + 1, alpha / 2)
    return [low, high]


def sequence(s, n, q, n_opt, alpha):
    priors = [(mpf(1) / 2, mpf(1) / 2), tuned(q, alpha, n_opt)]

    def excess(p):
        ms = [-s * log(p) - (n - s) * log1p(-p) + ln_beta(a + s, b + n - s) - ln_beta(a, b) for a, b in priors]
        return log(sum(map(exp, ms)) / 2) + log(alpha)

    rate, edge = mpf(s) / n, mpf("1e-9")
    low = mpf(0) if s == 0 else bisect(excess, rate, edge)
    high = mpf(1) if s == n else bisect(excess, rate if s else edge, 1 - edge)
    return [low, high]


# ---- Lemma 3 ----

def lemma3(points, training, y, x, s2):
    """Features (1, x, x^2 - 3/10 as f64), u and Sigma as in reference.rs."""
    phi = lambda v: [mpf(1), mpf(v), mpf(v) * mpf(v) - mpf(0.3)]
    col = lambda vs: matrix([[phi(v)[i] for v in vs] for i in range(3)])
    u = matrix([mpf(0.2), mpf(-0.5), mpf(1.0)])
    cov = matrix(3, 3)
    for i in range(3):
        for j in range(3):
            cov[i, j] = mpf(1 + i) if i == j else mpf(0.3)
    train = col(training)
    extra = s2 * (train * train.T) ** -1
    f, design = matrix(phi(x)), col(points)

    def condition(c, noise):
        k = design.T * c * design
        for i in range(len(points)):
            k[i, i] += noise
        gain = (k ** -1 * (design.T * c * f)).T
        return (f.T * u + gain * (matrix(y) - design.T * u))[0], (f.T * c * f - gain * (design.T * c * f))[0]

    expected, claimed = condition(cov + extra, mpf(0)), condition(cov, s2)
    bar = (f.T * extra * f)[0]
    return [expected[0], claimed[0], expected[1], claimed[1] + bar]


def lemma3_rows():
    out = []
    for points, y in [([0.1, 0.8], [1.0, 0.4]), ([0.1], [-2.0]), ([0.35, 0.9], [0.25, 0.75])]:
        for training in [[0.0, 0.2, 0.5, 0.7, 1.0], [0.0, 0.4, 1.0]]:
            for x, s2 in [(0.3, 0.1), (0.6, 1e-4)]:
                value = lemma3(points, training, list(map(mpf, y)), x, mpf(s2))
                out.append([" ".join(map(repr, v)) for v in (points, training, y)] + [repr(x), repr(s2)] + list(map(text, value)))
    return out


FORMS = ["printed", "corrected", "sharp"]
CASES = [(500, 1, 0.1), (500, 20, 0.1), (200, 20, 0.1), (60, 5, 0.5), (10000, 50, 0.01), (25, 20, 0.05)]
LARGE = [(1000000, 100, 0.1), (10000000, 300, 0.05)]


def forms(cases):
    """Every form, the sharp one (a root of a quadrature) at three sizes only."""
    sharp = [CASES[1], CASES[3], CASES[5]]
    return [(*c, f) for c in cases for f in FORMS if f != "sharp" or c in sharp]


def groups():
    yield "stirling_error", lambda: rows(stirling, [(v,) for v in (0.25, 0.5, 1.0, 2.5, 9.75, 10.0, 100.5, 1e9)])
    yield "ln_1p_minus", lambda: rows(lambda x: log1p(x) - x, [(v,) for v in (-0.9, -0.4, -0.39, -1e-3, -1e-12, 1e-9, 0.05, 0.69, 0.71, 30.0)])
    yield "ln_beta", lambda: rows(ln_beta, [(0.5, 0.5), (0.5, 1e5), (3.0, 4.5), (9.5, 10.5), (12.0, 1e9), (1e9, 1e9), (1e9, 2.5e8),
                                    (0.5, 1e9), (150.0, 2850.5), (7.850317, 149.156032)])
    yield "normal_quantile", lambda: rows(normal_quantile, [(v,) for v in (1e-300, 1e-12, 0.01, 0.3, 0.75, 0.975, 0.999999)])
    yield "gamma_tails", lambda: rows(gamma_tails, [(0.5, 0.1), (0.5, 3.0), (1.5, 40.0), (10.0, 2.0), (10.0, 10.0), (10.0, 35.0), (239.5, 180.0),
                                            (239.5, 239.5), (239.5, 320.0), (5e4, 4.9e4), (5e4, 5.1e4), (5e6, 5.01e6), (5e6, 4.995e6)])
    yield "ln_beta_tails", lambda: rows(ln_beta_tails, [(0.5, 0.5, 0.05), (0.5, 100.5, 0.05), (0.5, 100000.5, 0.05), (30.5, 970.5, 0.05),
                                                (70.5, 930.5, 0.05), (5000.5, 95000.5, 0.05), (5100.5, 94900.5, 0.05), (4700.5, 95300.5, 0.05),
                                                (2.0, 9.0, 1e-12), (200.0, 3.0, 0.999), (1e6, 1e6, 0.5), (1e6, 2e6, 0.334), (40.0, 1e6, 1e-5)])
    yield "chi2_quantile", lambda: rows(chi2_quantile, [(1.0, 0.025), (1.0, 1e-6), (5.0, 0.5), (479.0, 0.025), (1e6, 0.01)])
    yield "chi2_upper_quantile", lambda: rows(chi2_upper_quantile, [(1.0, 0.025), (1.0, 1e-20), (5.0, 0.5), (479.0, 0.025), (1e6, 0.01)])
    yield "beta_quantile", lambda: rows(beta_quantile, [(5.0, 46.0, 0.025), (6.0, 45.0, 0.975), (0.5, 0.5, 0.1), (700.0, 9301.0, 0.025)])
    yield "a", lambda: rows(a_t, forms(CASES) + [(22, 20, 0.1, "printed")] + [(*c, f) for c in LARGE for f in FORMS[:2]])
    yield "variance_interval", lambda: rows(lambda n, t, d, f: interval(n, t, d, f, 4), [(*c, f) for c in CASES + LARGE[:1] for f in (FORMS[0], FORMS[2])])
    yield "theorem2_interval", lambda: rows(lambda n, t, d, f: interval(n, t - 1, d, f, 6), [(*c, f) for c in CASES for f in (FORMS[0], FORMS[2])])
    yield "iota", lambda: rows(iota, forms(CASES))
    yield "zeta", lambda: rows(zeta, [(*c, f) for c in CASES + LARGE for f in FORMS[:2]])
    prior = (1.0, 0.01, 30.0)
    yield "bounds", lambda: rows(bounds, [(n, t, d, f, *prior, t // 2 + 1, 1.5) for n, t, d in CASES[:5] for f in FORMS[:2]] + [(500, 20, 0.1, "sharp", *prior, 11, 0.25)])
    yield "theorem4", lambda: rows(bounds4, [(500, 20, 0.1, f, *prior, 7, 1.5, 0.004, 0.02) for f in FORMS[:2]])
    yield "coverages", lambda: rows(coverages, [(*c, f) for c in CASES + [(1000, 14, 0.1)] for f in FORMS[:2]] + [(*LARGE[0], "printed")])
    yield "error_tails", lambda: rows(error_tails, [(n, t, a) for n, t in [(4, 1), (10, 1), (10, 7), (100, 2), (1000, 1), (1000, 40), (1010, 1000), (100000, 3), (10000000, 1), (10000000, 1000)]
                                            for a in (0.3 * t / n, 1.0 * (t + 1) / n, 8.0 * (t + 2) / n, 60.0 * (t + 2) / n)])
    yield "given_tails", lambda: rows(given_tails, [(n, t, k, a) for n, t, k in [(20, 1, 0.5), (50, 3, 2.0), (50, 30, 25.0), (200, 20, 8.0), (1000, 2, 1.5)]
                                            for a in (0.2 * k / n, 2.0 * k / n, 12.0 * k / n)])
    yield "tuned", lambda: rows(tuned, [(0.05, 0.05, 1000.0), (0.05, 0.05, 2000.0), (0.5, 0.01, 2000.0), (1e-4, 0.05, 10.0)])
    half = mpf(1) / 2
    yield "ln_e_jeffreys", lambda: rows(lambda s, n, q: ln_e(s, n, q, half, half),
                                [(s, n, q) for s, n, q in [(0, 100, 0.05), (30, 1000, 0.05), (70, 1000, 0.05), (0, 100000, 0.05), (5000, 100000, 0.05),
                                                           (5200, 100000, 0.05), (4800, 100000, 0.05), (1, 1, 0.05), (0, 0, 0.05), (300, 300, 0.05), (1000, 10000, 0.5)]])
    yield "mixture", lambda: rows(mixture, [(0, 2000, 0, 0.05, 0.05, 2000.0), (5, 100, 2, 0.1, 0.05, 2000.0), (120, 2000, 0, 0.05, 0.05, 2000.0),
                                    (3, 100000, 1, 0.001, 0.05, 2000.0), (60, 1000, 10, 0.05, 0.01, 500.0)])
    yield "clopper_pearson", lambda: rows(clopper_pearson, [(5, 50, 0.05), (70, 1000, 0.05), (0, 100, 0.05), (1, 100000, 0.01), (100, 100, 0.1)])
    yield "sequence", lambda: rows(sequence, [(5, 50, 0.05, 2000.0, 0.05), (70, 1000, 0.05, 2000.0, 0.05), (0, 100, 0.05, 2000.0, 0.05), (3, 100000, 0.001, 2000.0, 0.01), (50, 50, 0.1, 1000.0, 0.05)])
    yield "lemma3", lambda: lemma3_rows()


def main():
    """Updates the groups named on the command line, or all, in the file named first."""
    path, *wanted = sys.argv[1:]
    out = {}
    if wanted:
        with open(path) as file:
            out = json.load(file)
    for name, compute in groups():
        if not wanted or name in wanted:
            start = time.time()
            out[name] = compute()
            print(f"{name}: {time.time() - start:.1f} s", file=sys.stderr, flush=True)
            with open(path, "w") as file:
                json.dump(out, file, indent=0)
                file.write("\n")


if __name__ == "__main__":
    main()
