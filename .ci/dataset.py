#!/usr/bin/env python3
"""Opens a dataset with DuckDB, pandas and polars, counts it again with its own recheck.py, and sets its tables with LaTeX.

    dataset.py DIR [--latex]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import duckdb
import pandas
import polars

DIR = pathlib.Path(sys.argv[1])


def readers():
    manifest = json.loads((DIR / "manifest.json").read_text())
    by_pandas = pandas.read_parquet(DIR / "records")
    by_polars = polars.read_parquet(DIR / "records" / "*.parquet")
    query = f"SELECT count(*), count(DISTINCT cell || '/' || replicate), avg(best_sample_regret) FROM '{DIR}/records/*.parquet'"
    records, trials, mean = duckdb.sql(query).fetchall()[0]
    assert records == len(by_pandas) == by_polars.height == manifest["records"], records
    assert trials == manifest["trials"], trials
    for other in (by_pandas["best_sample_regret"].mean(), by_polars["best_sample_regret"].mean()):
        assert abs(other - mean) < 1e-9 * abs(mean), (other, mean)
    codebook = pandas.read_csv(DIR / "codebook.csv")
    assert list(codebook["column"]) == list(by_pandas.columns)
    print(f"DuckDB, pandas and polars read {records} records of {trials} trials alike")


def latex():
    tables = sorted((DIR / "tables").glob("*.tex"))
    body = "\n".join(f"\\input{{{table.resolve()}}}\n\\clearpage" for table in tables)
    document = (
        "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage[T1]{fontenc}\n"
        "\\usepackage{amsmath,amssymb,array,booktabs,longtable}\n\\begin{document}\n" + body + "\n\\end{document}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "tables.tex").write_text(document)
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
        assert run.returncode == 0, run.stdout[-3000:]
    print(f"LaTeX sets {len(tables)} tables")


readers()
subprocess.run([sys.executable, "-B", str(DIR / "recheck.py")], check=True)
if "--latex" in sys.argv:
    latex()
