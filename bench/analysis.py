#!/usr/bin/env python3
"""`regretta analyze` on ten million records, in turns with DuckDB doing the same counting on the same files.

    python3 -m pip install duckdb numpy scipy
    python3 bench/analysis.py target/release/regretta SCRATCH [--rounds 5] [--check]

Makes the dataset in SCRATCH (some 2 GB, a few minutes) unless it is there. Both programs get two cores and files
that are in memory. DuckDB's seconds are those of its queries alone: for every row of verdicts.json that has a
coverage the trials, failures and violations, with the constants computed beforehand. regretta's are those of its
process, of two: `--only verdicts`, which is what is compared (the same counts, invariants of every record, and all
else that verdicts.json has: evidence, intervals, quantiles of regret over bound), and the whole analysis (also
digests of all files, rates, tables, figures and report). The counts have to be equal, and verdicts.json the same
bytes from both, or there is no result. "CPU" is user and system time, which other programs on the machine disturb
less. With --check the exit code is 1 when a target is missed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from itertools import groupby
from math import log, log1p, sqrt
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

SECONDS, MEMORY, CORES = 10, 2 << 30, 2
HORIZONS = [1, 2, 4, 8]
SPACE = 6 << 30  # of shards, records and what is made of them
STUDY = """\
[study]
name = "analysis"
seed = 1
replicates = {replicates}
[prior]
domain = {{ kind = "grid", points = 24, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.2 }}
noise_variance = 0.01
[grid]
N = [100, 400]
T = {horizons}
delta = [0.1]
design = ["fixed", "adaptive"]
method = ["pem-bo", "known-prior", "random"]
acquisition = ["gp-ucb", "pi"]
"""
POINTS = {"probe": "probe", "x_star": "star", "x_next": "next", "x_observed": "observed"}
COUNTS = ("trials", "failures", "violations", "violations_refuting")


def dataset(binary: str, scratch: Path, replicates: int) -> Path:
    """The folder of the dataset, made if it is not there."""
    folder, study = scratch / f"analysis-{replicates}", scratch / f"analysis-{replicates}.toml"
    text = STUDY.format(replicates=replicates, horizons=HORIZONS)
    if (folder / "manifest.json").exists() and study.exists() and study.read_text() == text:
        return folder
    scratch.mkdir(parents=True, exist_ok=True)
    if shutil.disk_usage(scratch).free < SPACE:
        sys.exit(f"{scratch} has less than {SPACE >> 30} GiB of free space")
    study.write_text(text)
    command = [binary, "run", str(study), "--out", str(folder), "--check", "0", "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


# The constants, as in recheck.py.


@cache
def nodes():
    from numpy.polynomial.legendre import leggauss

    return leggauss(2000)


@cache
def error_quantile(N: int, t: int, tail: float) -> float:
    from scipy.optimize import brentq
    from scipy.stats import chi2, f as fisher

    if t == 0:
        return chi2.isf(tail, 1) / N
    at, weights = nodes()
    scale = 1 / N + (1 + 1 / N) * t / (N - t) * fisher.ppf((at + 1) / 2, t, N - t)
    return brentq(lambda a: weights @ chi2.sf(a / scale, 1) / 2 - tail, 1e-9, 1e6, xtol=1e-15, rtol=1e-14)


def interval(b: float) -> tuple[float, float]:
    return 1 - 2 * sqrt(b), 1 + 2 * sqrt(b) + 2 * b


@cache
def lemma(N: int, t: int, delta: float, form: str) -> tuple[float, float, float]:
    """a_t and the interval of the ratio, given t observations."""
    from scipy.stats import chi2

    L, n = log(4 / delta), N - t - 1
    if form == "sharp":
        return error_quantile(N, t, delta / 2), chi2.ppf(delta / 4, n) / n, chi2.isf(delta / 4, n) / n
    K = t + 2 * sqrt(t * L) + 2 * L
    return 4 * (N - 2 + (N if form == "corrected" else 1) * K) / (delta * N * (n - 1)), *interval(L / n)


@cache
def theorem(N: int, t: int, delta: float, form: str) -> tuple[float, float, float]:
    """iota_{t-1} and the interval of the ratio, for evaluation t."""
    from scipy.stats import chi2

    L, s = log(6 / delta), t - 1
    if form == "sharp":
        ends = chi2.ppf(delta / 6, N - t), chi2.isf(delta / 6, N - t)
        return sqrt(error_quantile(N, s, delta / 3)), ends[0] / (N - t), ends[1] / (N - t)
    printed, corrected = N - 3 + t + 2 * sqrt(t * L) + 2 * L, N - 2 + N * (s + 2 * sqrt(s * L) + 2 * L)
    return sqrt(6 * (corrected if form == "corrected" else printed) / (delta * N * (N - t - 1))), *interval(L / (N - t))


def predicate(row: dict, prior: dict, tau: int) -> tuple[str, dict[str, float]]:
    """When a row's claim holds, in SQL with `{end}` for rho's end, and its constants for trials with this tau."""
    claim, N, t, delta, form = row["claim"], row["N"], row["t"], row["delta"], row["constants"] or "printed"
    step, s2, c = claim.split("/step.")[-1], prior["noise_variance"], prior["c"]
    if claim.startswith("lemma1"):
        if step == "K":
            return "k_xy <= K", {"K": t + 2 * sqrt(t * log(4 / delta)) + 2 * log(4 / delta)}
        at = POINTS[row["at"]]
        values = dict(zip((f"a_{form}", f"low_{form}", f"high_{form}"), lemma(N, t, delta, form)))
        if step == "chebyshev":
            values = {f"scale_{form}": delta * N * (N - t - 2), "less": N - 2.0, "functions": float(N)}
            times = "functions * k_xy" if form == "corrected" else "k_xy"
            return f"error_{at} < 4 * (less + {times}) / scale_{form}", values
        mean = f"error_{at} < a_{form}"
        variance = f"low_{form} < ratio_{at} AND ratio_{at} < high_{form}"
        one = {"lemma1.mean": mean, "lemma1.variance": variance}
        return one.get(claim, f"{mean} AND {variance}"), values
    reach = sqrt(2 * log(1 / delta) * s2)
    if claim.startswith("lemma5"):
        steps = {"tau": "f_at_y_max + reach >= y_max", "tau-prime": "y_at_f_max >= f_max - reach"}
        return steps.get(step, "simple_regret <= best_sample_regret + twice"), {"reach": reach, "twice": 2 * reach}
    pi = row["acquisition"] == "pi"
    z = sqrt(2 * log(3 / (2 * delta if pi else delta)))
    iota, low, high = theorem(N, tau if pi or step != claim else t, delta, form)
    names = {f"iota_{form}": iota, f"lower_{form}": low, f"upper_{form}": high, "z": z, "s2": s2}
    steps = {
        "f-star": "f_star <= mu_star_tau + z * sqrt(k_star_tau)",
        "f-tau": "f_tau >= mu_tau - z * sqrt(k_tau)",
        "mean": f"mu_star_tau < mu_hat_star_tau + iota_{form} * sqrt(k_star_tau + s2) "
        f"AND mu_hat_tau - mu_tau < iota_{form} * sqrt(k_tau + s2)",
        "variance-star": f"k_hat_star_tau > lower_{form} * (k_star_tau + s2)",
        "variance-tau": f"k_hat_tau < upper_{form} * (k_tau + s2)",
        "numerator": f"(target - mu_star_tau) / sqrt(k_star_tau + s2) + iota_{form} >= 0",
    }
    if step in steps:
        return steps[step], names
    kappa, shift = sqrt(high / low), z * s2 / ((1 + pi) * sqrt(c + s2))
    rho = next(entry for entry in prior["rho"] if entry["t"] == t)
    roots = {end: sqrt(2 * c * rho[end] / (t * log1p(c / s2)) + s2) for end in ("lo", "hi")}
    if pi:
        names |= {f"kappa_{form}": kappa, "shift": shift, "twice": 2 * reach}
        names |= {f"root_{end}": root for end, root in roots.items()}
        gain = "(target - mu_star_tau) / sqrt(k_star_tau + s2)"
        bound = f"(({gain} + iota_{form}) * kappa_{form} + iota_{form} + z) * root_{{end}} - shift"
        return (f"simple_regret <= {bound} + twice" if "lemma5" in claim else f"best_sample_regret <= {bound}"), names
    simple = "lemma5" in claim
    ends = {end: (iota + z) * (kappa + 1) * root - shift + simple * 2 * reach for end, root in roots.items()}
    name, regret = ("simple", "simple_regret") if simple else ("best", "best_sample_regret")
    return f"{regret} <= {name}_{form}_{{end}}", {f"{name}_{form}_{end}": bound for end, bound in ends.items()}


def key(row: dict) -> tuple:
    return row["claim"], row["constants"], row["at"], row["among"], row["delta"]


def queries(folder: Path) -> list[dict]:
    """What DuckDB is asked: for each kind of cells a table of constants by cell, t and tau, and a query that joins it.

    Of what was tried this takes the least time. One query for all kinds evaluates predicates where they do not apply;
    one for each cell has shorter scans; `count(*) FILTER` instead of `count_if` is slower in all of them.
    """
    read = lambda name: json.loads((folder / name).read_text())
    priors = read("priors.json")
    cells = {cell["cell"]: cell for cell in read("manifest.json")["cells"]}
    rows = [row for row in read("verdicts.json") if row["coverage"] is not None]
    by_cell = {cell: [row for row in rows if row["cell"] == cell] for cell in cells}
    kind = lambda cell: sorted({str(key(row)) for row in by_cell[cell]})
    return [
        query([(cells[cell], priors[cells[cell]["prior"]], by_cell[cell]) for cell in group], folder)
        for _, group in groupby(sorted(cells, key=kind), kind)
    ]


def query(asked: list, folder: Path) -> dict:
    """The table and the query for cells of one kind, given with their priors and rows."""
    aggregates: dict[str, str] = {}
    places: list[dict] = []  # by group: where verdict rows find their counts
    table: list[dict] = []

    def place(expression: str) -> str:
        return aggregates.setdefault(expression, f"c{len(aggregates)}")

    def number(condition: str) -> str:
        return place(f"count_if({condition})")

    by_tau = any(row["claim"].startswith("theorem2") for _, _, rows in asked for row in rows)
    for cell, prior, rows in asked:
        for t in cell["checkpoints"]:
            here = [row for row in rows if row["t"] == t]
            for tau in range(1, t + 1) if by_tau else (1,):
                values = {"cell": cell["cell"], "t": t, "tau": tau, "place": len(places)}
                for row in here:
                    values |= predicate(row, prior, tau)[1]
                table.append(values)
            found = []
            for row in here:
                holds = predicate(row, prior, 1)[0]
                unseen = "NOT star_seen_tau AND " if row["among"] == "x_star_unseen" else ""
                if unseen:
                    trials = number("NOT star_seen_tau")
                elif row["at"]:
                    trials = place(f"count(error_{POINTS[row['at']]})")
                else:
                    trials = place("count(best_sample_regret)")
                violated = [number(f"{unseen}NOT ({holds.format(end=end)})") for end in ("lo", "hi")]
                found.append([trials, place("count(*) - count(best_sample_regret)"), *violated])
            places.append({"rows": here, "found": found})
    names = list(dict.fromkeys(name for values in table for name in values))
    only = sorted({values["cell"] for values in table})
    selected = ",\n  ".join(f"{expression} AS {name}" for expression, name in aggregates.items())
    # A trial that failed has no tau.
    on = "r.cell = k.cell AND r.t = k.t" + " AND coalesce(r.tau, 1) = k.tau" * by_tau
    where = "WHERE r.cell IN (" + ", ".join(f"'{cell}'" for cell in only) + ")"
    taken = [name for name in names if name not in ("cell", "t", "tau")]
    sql = f"SELECT place,\n  {selected}\nFROM '{folder}/records/*.parquet' r\n"
    columns = ", ".join(["cell", "t"] + ["tau"] * by_tau + taken)
    sql += f"JOIN (SELECT {columns} FROM constants) k ON {on}\n{where}\nGROUP BY place"
    types = {"cell": "VARCHAR", "t": "BIGINT", "tau": "BIGINT", "place": "UTINYINT"}
    typed = ", ".join(f"{name} {types.get(name, 'DOUBLE')}" for name in names)
    return {
        "create": f"CREATE OR REPLACE TABLE constants ({typed})",
        "insert": f"INSERT INTO constants VALUES ({', '.join('?' * len(names))})",
        "table": [[values.get(name) for name in names] for values in table],
        "sql": sql,
        "places": places,
    }


def duckdb_process() -> None:
    """Reads queries from stdin; prints their seconds and results. The tables of constants are not timed."""
    import duckdb

    asked = json.load(sys.stdin)
    connection = duckdb.connect(config={"threads": CORES})
    seconds, cpu, results = 0.0, 0.0, []
    for query in asked:
        connection.execute(query["create"])
        connection.executemany(query["insert"], query["table"])
        began, cpu_began = perf_counter(), process_time()
        result = connection.execute(query["sql"]).fetchall()
        seconds, cpu = seconds + perf_counter() - began, cpu + process_time() - cpu_began
        results.append(([column[0] for column in connection.description], result))
    json.dump({"seconds": seconds, "cpu": cpu, "results": results}, sys.stdout)


def measured(command: list[str], given: str = "") -> dict:
    """Runs a program: its seconds, CPU seconds, peak memory and output."""
    began = perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child.stdin.write(given)
    child.stdin.close()
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command[:2]} exited with {child.returncode}")
    seconds = perf_counter() - began
    return {"seconds": seconds, "cpu": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss << 10, "output": output}


def differences(asked: list[dict], results: list) -> tuple[int, int]:
    """How many rows of the verdicts were counted, and how many differently."""
    counted = wrong = 0
    for query, (names, result) in zip(asked, results, strict=True):
        by_place = {line[0]: dict(zip(names, line)) for line in result}
        for number, place in enumerate(query["places"]):
            for row, found in zip(place["rows"], place["found"], strict=True):
                mine = [by_place[number][name] for name in found]
                said = [row[name] for name in COUNTS]
                counted, wrong = counted + 1, wrong + (mine != said)
                if mine != said and wrong < 5:
                    print(f"{key(row)} {row['cell']} t={row['t']}: DuckDB {mine}, regretta {said}", file=sys.stderr)
    return counted, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--replicates", type=int, default=278_000, help="trials of each of the nine cells")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    folder = dataset(arguments.binary, arguments.scratch, arguments.replicates)
    analyze = [arguments.binary, "analyze", str(folder), "--quiet"]
    peer = [sys.executable, __file__, "--duckdb"]
    subprocess.run(analyze, check=True)  # verdicts.json is this binary's, and files are in memory
    verdicts = folder / "verdicts.json"
    written = verdicts.read_bytes()
    asked = queries(folder)
    given = json.dumps([{name: query[name] for name in ("create", "insert", "table", "sql")} for query in asked])
    commands = {"verdicts": [*analyze, "--only", "verdicts"], "whole": analyze}
    runs = {"verdicts": [], "duckdb": [], "whole": []}
    loads = [os.getloadavg()[0]]
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            verdicts.unlink()
            runs[name].append(measured(command))
            if verdicts.read_bytes() != written:
                sys.exit(f"{command[3:]} writes another verdicts.json")
        answer = measured(peer, given)
        answer |= json.loads(answer.pop("output"))
        counted, wrong = differences(asked, answer["results"])
        if wrong:
            sys.exit(f"{wrong} of {counted} counts differ")
        runs["duckdb"].append(answer)
        loads.append(os.getloadavg()[0])
    records = json.loads((folder / "manifest.json").read_text())["records"]
    print(f"{records} records, {counted} rows counted alike, {CORES} cores, load {min(loads):.1f} to {max(loads):.1f}\n")
    print("| | s, best | s, median | CPU s, best | CPU s, median | GiB |\n|---|---|---|---|---|---|")
    titles = {"verdicts": "regretta --only verdicts", "duckdb": "DuckDB, counts", "whole": "regretta, all"}
    of = lambda name, what: [run[what] for run in runs[name]]
    for name, title in titles.items():
        numbers = [choose(of(name, what)) for what in ("seconds", "cpu") for choose in (min, median)]
        numbers.append(max(of(name, "memory")) / (1 << 30))
        print(f"| {title} | " + " | ".join(f"{number:.2f}" for number in numbers) + " |")
    ratio = lambda name, what: median(a / b for a, b in zip(of(name, what), of("duckdb", what)))
    print("\nover DuckDB, median of rounds:", end="")
    for name in commands:
        print(f" {titles[name]} {ratio(name, 'seconds'):.2f} (CPU {ratio(name, 'cpu'):.2f})", end=";")
    print()
    targets = {
        f"at most {SECONDS} s": median(of("whole", "seconds")) <= SECONDS,
        f"at most {MEMORY >> 30} GiB": max(of("whole", "memory")) <= MEMORY,
        "not slower than DuckDB": ratio("verdicts", "seconds") <= 1,
    }
    missed = [target for target, is_met in targets.items() if not is_met]
    print("missed: " + ", ".join(missed) if missed else "met: " + ", ".join(targets))
    sys.exit(bool(missed) and arguments.check)


if __name__ == "__main__":
    duckdb_process() if sys.argv[1:] == ["--duckdb"] else main()
