"""Counts again, from the Parquet files alone, what verdicts.json says (needs numpy, scipy, polars): recheck.py [DIR]"""
import functools, json, pathlib, sys, tomllib, types
import numpy as np, polars as pl
from numpy import log, nan, sqrt
from scipy.optimize import brentq
from scipy.stats import chi2, f as fisher

DIR = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
read = lambda name: json.loads((DIR / name).read_text())
priors, cells = read("priors.json"), {cell["cell"]: cell for cell in read("manifest.json")["cells"]}
study = tomllib.loads((DIR / "study.toml").read_text())
own = {(None, claim["id"]): (claim["holds"], list(np.ravel(study["grid"]["T"]))) for claim in study.get("claim", [])}
for family in read("manifest.json").get("earlier_families", []):  # what was tested before the study was changed
    own |= {(family.get("digest"), claim["id"]): (claim["holds"], family["claims"]["T"]) for claim in family.get("claims", {}).get("own", [])}
NODES, WEIGHTS = np.polynomial.legendre.leggauss(2000)

@functools.cache
def error_quantile(N, t, tail):  # of Z^2 (1/N + (1 + 1/N) chi2_t/chi2_{N-t}), the exact law of the squared error
    scale = 1 / N + (1 + 1 / N) * t / (N - t) * fisher.ppf((NODES + 1) / 2, max(t, 1), N - t)
    return brentq(lambda a: WEIGHTS @ chi2.sf(a / scale, 1) / 2 - tail, 1e-9, 1e6, xtol=1e-15, rtol=1e-14)

interval = lambda b: (1 - 2 * sqrt(b), 1 + 2 * sqrt(b) + 2 * b)  # of the ratio

def lemma(N, t, delta, form):  # a_t and the interval of the ratio, given t observations
    L, n = log(4 / delta), N - t - 1
    if form == "sharp":
        return error_quantile(N, t, delta / 2), chi2.ppf(delta / 4, n) / n, chi2.isf(delta / 4, n) / n
    K = t + 2 * sqrt(t * L) + 2 * L
    return 4 * (N - 2 + (N if form == "corrected" else 1) * K) / (delta * N * (n - 1)), *interval(L / n)

@functools.cache
def theorem(N, t, delta, form):  # iota_{t-1} and the interval of the ratio, for evaluation t
    L, s = log(6 / delta), t - 1
    if form == "sharp":
        return sqrt(error_quantile(N, s, delta / 3)), chi2.ppf(delta / 6, N - t) / (N - t), chi2.isf(delta / 6, N - t) / (N - t)
    printed, corrected = N - 3 + t + 2 * sqrt(t * L) + 2 * L, N - 2 + N * (s + 2 * sqrt(s * L) + 2 * L)
    return sqrt(6 * (corrected if form == "corrected" else printed) / (delta * N * (N - t - 1))), *interval(L / (N - t))

def holds(row, r, prior, rho):  # one value per record: 1 holds, 0 violated, NaN no answer
    claim, N, t, delta, form = row["claim"].replace("lemma3", "lemma1"), row["N"], row["t"], row["delta"], row["constants"] or "printed"
    step, s2, c = claim.split("/step.")[-1], prior["noise_variance"], prior["c"]
    if claim.startswith("lemma1"):
        if step == "K":
            return 1.0 * (r.k_xy <= t + 2 * sqrt(t * log(4 / delta)) + 2 * log(4 / delta))
        at = {"probe": "probe", "x_star": "star", "x_next": "next", "x_observed": "observed"}[row["at"]]
        error, ratio = vars(r)["error_" + at], vars(r)["ratio_" + at]
        a, low, high = lemma(N, t, delta, form)
        a = 4 * (N - 2 + (N if form == "corrected" else 1) * r.k_xy) / (delta * N * (N - t - 2)) if step == "chebyshev" else a
        mean, variance = error < a, (low < ratio) & (ratio < high)
        both = {"lemma1.mean": mean, "lemma1/step.chebyshev": mean, "lemma1.variance": variance}.get(claim, mean & variance)
        return np.where(np.isnan(error), nan, both)
    reach = sqrt(2 * log(1 / delta) * s2)
    if claim.startswith("lemma5"):
        lemma5 = {"tau": r.f_at_y_max + reach >= r.y_max, "tau-prime": r.y_at_f_max >= r.f_max - reach}
        return 1.0 * lemma5.get(step, r.simple_regret <= r.best_sample_regret + 2 * reach)
    pi = row["acquisition"] == "pi"
    z = sqrt(2 * log(3 / (2 * delta if pi else delta)))
    table = np.array([(0, 0, 0)] + [theorem(N, s, delta, form) for s in range(1, t + 1)])
    iota, low, high = table[r.tau.astype(int)].T if pi or step != claim else table[t]
    s_star, s_tau = (np.where(np.isnan(v), s2, v) for v in (r.sigma_bar_star, r.sigma_bar_tau))  # of the compact setting
    star, tau, slack = sqrt(r.k_star_tau + s_star), sqrt(r.k_tau + s_tau), lambda v: v / sqrt(c + v)
    kappa, gain = sqrt(high / low), (r.target - r.mu_star_tau) / star
    steps = {"f-star": r.f_star <= r.mu_star_tau + z * sqrt(r.k_star_tau), "f-tau": r.f_tau >= r.mu_tau - z * sqrt(r.k_tau),
             "mean": (r.mu_star_tau < r.mu_hat_star_tau + iota * star) & (r.mu_hat_tau - r.mu_tau < iota * tau),
             "variance-star": r.k_hat_star_tau > low * star**2, "variance-tau": r.k_hat_tau < high * tau**2,
             "numerator": gain + iota >= 0}
    if step in steps:
        return 1.0 * steps[step]
    eta = (gain + iota) * kappa + iota + z if pi else (iota + z) * (kappa + 1)
    bound = eta * sqrt(2 * c * rho / (t * np.log1p(c / s2)) + s_tau) - z / 2 * (slack(s_tau) + (0 if pi else slack(s_star)))
    return 1.0 * (r.simple_regret <= bound + 2 * reach if "lemma5" in claim else r.best_sample_regret <= bound)

def count(row, frame, prior):  # trials, failures, violations with rho's lower and with its upper end
    holding, horizons = own.get((row["family"], row["claim"]), (None, []))  # a claim about all t is about the T of its family
    frame = frame.filter(pl.col("t").is_in(horizons if row["t"] is None else [row["t"]]))
    if row["replicates"]:
        frame = frame.filter(pl.col("replicate").is_between(*row["replicates"], closed="left"))
    failed, frame = frame.filter(pl.col("status") != "ok")["replicate"].n_unique(), frame.filter(pl.col("status") == "ok")
    if holding:
        scalars = {key: prior[key] for key in ("M", "d", "c", "noise_variance", "rank")} | {"delta": row["delta"], "sigma": prior["noise_variance"] ** 0.5}
        rho = pl.DataFrame([(e["t"], e["lo"], e["hi"]) for e in prior["rho"]], schema=["t", "rho_lo", "rho_hi"], orient="row")
        frame = frame.join(rho, on="t", how="left").with_columns(**{key: pl.lit(value) for key, value in scalars.items()})
        answers = frame.select("replicate", it=pl.sql_expr(holding)).group_by("replicate").agg(pl.col("it").min())
        low = high = answers["it"].cast(pl.Float64).fill_null(nan).to_numpy()
    else:
        frame = frame if row["among"] == "all" else frame.filter(~pl.col("star_seen_tau"))
        r = types.SimpleNamespace(**{s.name: s.cast(pl.Float64).fill_null(nan).to_numpy() for s in frame if s.dtype != pl.String})
        rho = next((e for e in prior["rho"] if e["t"] == row["t"]), {"lo": nan, "hi": nan})
        low, high = holds(row, r, prior, rho["lo"]), holds(row, r, prior, rho["hi"])
    return int(np.sum(~np.isnan(low))), failed, int(np.sum(low == 0)), int(np.sum(high == 0))

rows, checked, wrong = [row for row in read("verdicts.json") if row["coverage"] is not None], 0, 0
for cell in sorted({row["cell"] for row in rows}):
    frame = pl.scan_parquet(DIR / "records" / "*.parquet").filter(pl.col("cell") == cell).collect()
    for row in (row for row in rows if row["cell"] == cell):
        found = count(row, frame, priors[cells[cell]["prior"]])
        said = tuple(row[key] for key in ("trials", "failures", "violations", "violations_refuting"))
        same = found == said and abs(row["coverage"] - (1 - found[2] / found[0])) < 1e-12
        checked, wrong = checked + 1, wrong + (not same)
        same or print(f"{row['claim']} {row['constants']} {row['at']} {cell} t={row['t']} delta={row['delta']}: counted {found}, verdicts.json has {said}")
print(f"{checked} counts and coverages checked, {wrong} differ")
sys.exit(wrong > 0)
