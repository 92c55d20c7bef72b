"""peer.py --selftest: a trial against the paper's formulas."""
import numpy as np

from peer import NOISE, UPDATES, Setting, printed_zeta, trial


def selftest():
    """A trial must agree with the paper's formulas, solved densely."""
    zeta = printed_zeta(500, 20)[[0, 19]]           # reference values of theory/tests
    assert np.allclose(zeta, [3.2697474555, 3.2971102257], atol=1e-9)
    s, worst = Setting(90, 200, 25), 0.0
    zeta = printed_zeta(s.n, s.horizon + 1)
    for update in UPDATES.values():
        trace = {}
        r = trial(s, np.random.default_rng(7), update, trace)
        x, y = trace["points"], trace["y"]

        def true(t, prior=s.k, mean=s.mean, noise=NOISE):
            seen = x[:t]
            gram = prior[np.ix_(seen, seen)] + noise * np.eye(t)
            gain = np.linalg.solve(gram, prior[seen]).T
            return (mean + gain @ (y[:t] - mean[seen]),
                    (prior - gain @ prior[seen]).diagonal())

        def estimated(t):
            mean, k = true(t, trace["k_hat"], trace["mu_hat"], 0.0)
            return mean, k.clip(0) * (s.n - 1) / (s.n - t - 1)

        for t, chosen in enumerate(x + [r["x_next"]]):
            mean, k = estimated(t)
            score = mean + zeta[t] * np.sqrt(k)
            score[x[:t]] = -np.inf
            assert chosen == score.argmax(), f"evaluation {t + 1}"
        tau = 1 + int(np.argmin([true(t)[1][p] for t, p in enumerate(x)]))
        before = np.array(true(tau - 1) + estimated(tau - 1))
        after = np.array(true(s.horizon) + estimated(s.horizon))
        mu, k, mu_hat, k_hat = after[:, r["x_next"]]
        gram = s.k[np.ix_(x, x)] / NOISE + np.eye(len(x))
        resid, unseen = y - s.mean[x], np.setdiff1d(np.arange(s.m), x)
        guess, truth = trace["guess"], trace["truth"]
        for ours, direct in (
                ([truth.mean, truth.variance], after[:2]),
                (guess.mean[unseen], after[2, unseen]),
                (guess.variance[unseen] * s.inflation[-1], after[3, unseen]),
                (r["next"], [(mu_hat - mu) ** 2 / (k + NOISE),
                             k_hat / (k + NOISE)]),
                (r["k_xy"], resid @ np.linalg.solve(gram, resid) / NOISE),
                (r["information"], 0.5 * np.linalg.slogdet(gram)[1]),
                (r["at_tau"][:9], [tau, *before[:, r["x_star"]],
                                   *before[:, x[tau - 1]]])):
            worst = max(worst, np.abs(np.subtract(ours, direct)).max())
    assert worst < 1e-10, worst
    print(f"selftest passed; largest difference {worst:.1e}")
