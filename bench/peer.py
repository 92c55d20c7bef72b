#!/usr/bin/env python3
"""One trial of adaptive GP-UCB with an estimated prior, in numpy and scipy.

This is what regretta's speed is compared with: a careful dense program that
draws the estimators from their exact law, runs T evaluations, follows the
estimated and the true posterior, and returns the main columns of a record.
Everything that trials share is computed once and is not timed; one BLAS
thread.

    python3 bench/peer.py [--json] [--seconds S] [--only CASE]
    python3 bench/peer.py --update columns   only means and variances, no M x M updates
    python3 bench/peer.py --selftest         against the dense formulas
"""
import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ[_name + "_NUM_THREADS"] = "1"    # before numpy is imported

import argparse
import json
import resource
import time
from math import log, log1p, sqrt

import numpy as np
from scipy.stats import wishart

CASES = {                                       # M, N, T
    "m1000": (1000, 1500, 100),
    "m500": (500, 1000, 50),
    "m162": (162, 1800, 100),
}
LENGTHSCALE, VARIANCE, NOISE, DELTA = 0.05, 1.0, 0.01, 0.1


def printed_zeta(n, steps):
    """zeta_1 .. zeta_steps of Theorem 2 as printed."""
    t, level = np.arange(1, steps + 1), log(6 / DELTA)
    spread = n - 3 + t + 2 * np.sqrt(t * level) + 2 * level
    iota = np.sqrt(6 * spread / (DELTA * n * (n - t - 1)))
    shrink = np.sqrt(1 - 2 * np.sqrt(level / (n - t)))
    return (iota + sqrt(2 * log(3 / DELTA))) / shrink


class Setting:
    """What all trials of a case share."""

    def __init__(self, m, n, horizon):
        self.m, self.n, self.horizon = m, n, horizon
        x = np.linspace(0, 1, m)
        distance = (x[:, None] - x) / LENGTHSCALE
        self.k = VARIANCE * np.exp(-0.5 * distance ** 2)
        self.mean = np.zeros(m)
        # k = F F^T; eigenvalues below rounding error are dropped.
        values, vectors = np.linalg.eigh(self.k)
        keep = values > 1e-14 * values[-1]
        self.factor = vectors[:, keep] * np.sqrt(values[keep])
        # Frozen: the Cholesky factor of the scale is computed here, once.
        noisy = self.k + NOISE * np.eye(m)
        self.k_hat_law = wishart(df=n - 1, scale=noisy / (n - 1))
        # Weight of sqrt(k_hat - ..) in the acquisition after t = 0 .. T
        # observations: zeta_{t+1} sqrt((N-1)/(N-t-1)).
        t = np.arange(horizon + 1)
        self.inflation = (n - 1) / (n - t - 1)
        self.weight = printed_zeta(n, horizon + 1) * np.sqrt(self.inflation)

    def draw(self, rng):
        """f ~ N(mu, k), mu_hat ~ N(mu, (k + sigma^2 I)/N) and k_hat."""
        z, z_hat = rng.standard_normal((2, self.factor.shape[1]))
        noise = sqrt(NOISE) * rng.standard_normal(self.m)
        mu_hat = self.mean + (self.factor @ z_hat + noise) / sqrt(self.n)
        k_hat = self.k_hat_law.rvs(random_state=rng)
        return self.mean + self.factor @ z, mu_hat, k_hat


class Columns:
    """Mean and variance of all points given the observations so far.

    The covariance itself is never updated: the t normalised columns that
    conditioning subtracts are kept, and a column is worked out on demand.
    """

    def __init__(self, covariance, mean, noise, horizon):
        self.covariance, self.noise = covariance, noise
        self.mean, self.variance = mean.copy(), covariance.diagonal().copy()
        self.columns, self.t = np.empty((horizon, len(mean))), 0

    def normalised(self, p, scale):
        done = self.columns[:self.t]
        g = (self.covariance[p] - done[:, p] @ done) / scale
        self.columns[self.t] = g
        self.t += 1
        return g

    def observe(self, p, y):
        scale = sqrt(self.variance[p] + self.noise)
        g = self.normalised(p, scale)
        self.mean += g * ((y - self.mean[p]) / scale)
        self.variance -= g * g


class Full(Columns):
    """The textbook way: the whole covariance, updated at every step."""

    def __init__(self, covariance, mean, noise, horizon):
        super().__init__(covariance.copy(), mean, noise, 0)

    def normalised(self, p, scale):
        g = self.covariance[p] / scale
        self.covariance -= np.outer(g, g)
        return g


UPDATES = {"columns": Columns, "full": Full}


def trial(setting, rng, update=Columns, trace=None):
    """Runs one trial; returns its record at T."""
    s, horizon = setting, setting.horizon
    f, mu_hat, k_hat = s.draw(rng)
    noise = sqrt(NOISE) * rng.standard_normal(horizon)
    guess = update(k_hat, mu_hat, 0.0, horizon)     # k_hat has the noise in it
    truth = update(s.k, s.mean, NOISE, horizon)
    star = int(f.argmax())
    points, values = [], []
    surprise = information = 0.0
    at_tau, k_min, y_star = None, np.inf, None

    def choose(t):
        ucb = guess.mean + s.weight[t] * np.sqrt(guess.variance)
        return int(ucb.argmax())                    # the lowest index on ties

    def estimate(x, t):
        return float(guess.mean[x]), float(guess.variance[x] * s.inflation[t])

    def true(x):
        return float(truth.mean[x]), float(truth.variance[x])

    for t in range(horizon):                        # t observations so far
        p = choose(t)
        y = float(f[p] + noise[t])
        mu, k = true(p)
        if k < k_min:
            # At an evaluated point the estimator interpolates.
            seen = y_star is not None
            at_star = (y_star, 0.0) if seen else estimate(star, t)
            k_min = k
            at_tau = (t + 1, *true(star), *at_star, mu, k, *estimate(p, t),
                      float(f[p]), seen)
        surprise += (y - mu) ** 2 / (k + NOISE)
        information += 0.5 * log1p(k / NOISE)
        guess.observe(p, y)
        truth.observe(p, y)
        # p is not selected again, and its variance, now 0 up to rounding,
        # must not become the root of a negative number.
        guess.mean[p], guess.variance[p] = -np.inf, 1.0
        points.append(p)
        values.append(y)
        if p == star:
            y_star = y

    def deviation(x):
        """Lemma 1's (error, ratio) at an unobserved point."""
        (mu, k), (m, v) = true(x), estimate(x, horizon)
        return (m - mu) ** 2 / (k + NOISE), v / (k + NOISE)

    unseen = np.flatnonzero(guess.mean > -np.inf)
    after = choose(horizon)
    seen_f, seen_y, f_star = f[points], np.array(values), float(f[star])
    best, top = int(seen_f.argmax()), int(seen_y.argmax())
    if trace is not None:
        trace.update(f=f, mu_hat=mu_hat, k_hat=k_hat, points=points, y=seen_y,
                     guess=guess, truth=truth)
    return {
        "x": p, "y": y, "f": float(f[p]), "x_star": star, "f_star": f_star,
        "f_range": f_star - float(f.min()),
        "best_sample_regret": f_star - float(seen_f[best]),
        "simple_regret": f_star - float(seen_f[top]),
        "cumulative_regret": float((f_star - seen_f).sum()),
        "probe": deviation(rng.choice(unseen)), "next": deviation(after),
        "star": None if y_star is not None else deviation(star),
        "x_next": after, "k_xy": surprise, "information": information,
        # tau, (mu, k, mu_hat, k_hat) at x* and at x_tau, f_tau, star_seen
        "at_tau": at_tau,
        "y_max": float(seen_y[top]), "f_at_y_max": float(seen_f[top]),
        "f_max": float(seen_f[best]), "y_at_f_max": float(seen_y[best]),
    }


def measure(name, update, seconds):
    """Median milliseconds per trial; the first trial is discarded."""
    setting, rng = Setting(*CASES[name]), np.random.default_rng(2018)
    trial(setting, rng, UPDATES[update])
    times, begin = [], time.perf_counter()
    user = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    while len(times) < 5 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        trial(setting, rng, UPDATES[update])
        times.append(1e3 * (time.perf_counter() - start))
    user = resource.getrusage(resource.RUSAGE_SELF).ru_utime - user
    m, n, horizon = CASES[name]
    return {"case": name, "M": m, "N": n, "T": horizon, "update": update,
            "ms_per_trial": float(np.median(times)),
            "min_ms": min(times), "user_ms": 1e3 * user / len(times),
            "trials": len(times)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=5.0,
                        help="time per case (5)")
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--update", choices=UPDATES, default="full",
                        help="rank-one updates of whole covariance matrices (full), or of means and variances alone (columns)")
    parser.add_argument("--selftest", action="store_true")
    args = parser.parse_args()
    if args.selftest:
        import peer_selftest
        return peer_selftest.selftest()
    rows = [measure(name, args.update, args.seconds)
            for name in ([args.only] if args.only else CASES)]
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    print("case        M     N    T  ms/trial       min  user CPU  trials")
    for r in rows:
        print("{case:6} {M:6} {N:5} {T:4} {ms_per_trial:9.2f} {min_ms:9.2f} "
              "{user_ms:9.2f} {trials:7}".format(**r))


if __name__ == "__main__":
    main()
