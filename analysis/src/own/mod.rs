//! Claims of one's own: SQL expressions over record columns and the study's scalars.
//!
//! An expression is compiled to a polars expression and evaluated lazily by the streaming engine, so
//! that a dataset larger than memory works. A trial in which it is null answers nothing; a trial that
//! failed is a failure, as for every claim.

mod check;
mod scalars;

use std::collections::BTreeMap;

use polars::prelude::{
    DataFrame, Engine, Expr, IntoLazy, JoinArgs, JoinType, LazyFrame, PlRefPath, PolarsError,
    PolarsResult, ScanArgsParquet, ScanSources, col, lit,
};
use study::file::Quantifier;
use study::rows::{OwnRow, own_rows};
use study::tally::RowCounts;
use theory::Delta;

use crate::dataset::Dataset;
use crate::parquet::FileError;

pub use check::{Error, check};

use check::{Compiled, compile};

/// What the records say about a row of one's own.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnResult {
    /// The cell's place in [`Dataset::cells`].
    pub cell: usize,
    /// The row.
    pub row: OwnRow,
    /// The failure probability that it allows.
    pub budget: f64,
    /// By batch of trials, in order.
    pub batches: Vec<RowCounts>,
}

/// Evaluates all claims of one's own.
pub fn evaluate(dataset: &Dataset) -> Result<Vec<OwnResult>, Error> {
    if dataset.study.claims.is_empty() {
        return Ok(vec![]);
    }
    let claims = compile(&dataset.study, &dataset.swept_types())?;
    let mut counts: BTreeMap<Key, BTreeMap<u64, RowCounts>> = BTreeMap::new();
    for &delta in &dataset.study.grid.delta {
        for quantifier in [Quantifier::EachT, Quantifier::AllT] {
            let chosen: Vec<(usize, &Compiled)> =
                claims.iter().enumerate().filter(|(_, one)| one.quantifier == quantifier).collect();
            if !chosen.is_empty() {
                let counted = count(dataset, delta, quantifier, &chosen);
                collect(&counted.map_err(read_error(dataset))?, delta, &chosen, &mut counts)
                    .map_err(read_error(dataset))?;
            }
        }
    }
    let budgets = scalars::budgets(dataset, &claims)?;
    let mut results = Vec::new();
    for (place, cell) in dataset.cells.iter().enumerate() {
        for row in own_rows(&dataset.study, &cell.cell) {
            let key = (cell.id.to_string(), row.claim, row.t, row.delta.get().to_bits());
            let batches = counts.remove(&key).unwrap_or_default().into_values().collect();
            let budget = budgets[results.len()];
            results.push(OwnResult { cell: place, row, budget, batches });
        }
    }
    Ok(results)
}

fn read_error(dataset: &Dataset) -> impl Fn(PolarsError) -> Error {
    let path = dataset.dir.join("records");
    move |error| FileError::parquet("read", &path)(error).into()
}

/// Cell, claim, t and delta.
type Key = (String, usize, Option<u32>, u64);

const CLAIM: &str = "own claim ";
const FAILED: &str = "own failed";
const BATCH: &str = "own batch";

/// Violations, answers and failures of the chosen claims at one delta, by cell, batch and t.
fn count(
    dataset: &Dataset,
    delta: Delta,
    quantifier: Quantifier,
    claims: &[(usize, &Compiled)],
) -> PolarsResult<DataFrame> {
    let level = lit(delta.get());
    let own = col("delta").is_null().or(col("delta").eq(level.clone()));
    let batch = dataset.study.replicates.batch_size().cast_signed();
    let holds = claims.iter().map(|(place, claim)| claim.holds.clone().alias(name(*place)));
    let mut columns: Vec<Expr> = holds.collect();
    columns.push(col("status").neq(lit("ok")).alias(FAILED));
    columns.push(col("replicate").floor_div(lit(batch)).alias(BATCH));
    columns.extend([col("cell"), col("replicate"), col("t")]);
    let mut records =
        records(dataset)?.filter(own).with_column(level.alias("delta")).select(columns);
    let mut keys = vec![col("cell"), col(BATCH)];
    if quantifier == Quantifier::AllT {
        // A trial violates the claim where any t does, and holds where all that have an answer do.
        let all = claims.iter().map(|(place, _)| col(name(*place)).min());
        let all = all.chain([col(FAILED).max(), col(BATCH).first()]).collect::<Vec<_>>();
        records = records.group_by([col("cell"), col("replicate")]).agg(all);
    } else {
        keys.push(col("t"));
    }
    let mut sums = vec![];
    for (place, _) in claims {
        let holds = || col(name(*place));
        let answered = holds().is_not_null().and(col(FAILED).not());
        sums.push(answered.clone().sum().alias(format!("{}:trials", name(*place))));
        let violated = answered.and(holds().not());
        sums.push(violated.sum().alias(format!("{}:violations", name(*place))));
    }
    sums.push(col(FAILED).sum());
    Ok(records.group_by(keys).agg(sums).collect_with_engine(Engine::Streaming)?.unwrap_single())
}

fn name(place: usize) -> String {
    format!("{CLAIM}{place}")
}

/// The records at the T of the grid, with the scalars of their cells.
fn records(dataset: &Dataset) -> PolarsResult<LazyFrame> {
    let paths = dataset.record_files().into_iter().map(|file| dataset.dir.join(&file.name));
    let paths: Vec<PlRefPath> =
        paths.map(|path| PlRefPath::try_from_path(&path)).collect::<PolarsResult<_>>()?;
    let args = ScanArgsParquet { glob: false, ..ScanArgsParquet::default() };
    let records = LazyFrame::scan_parquet_sources(ScanSources::Paths(paths.into()), args)?;
    let keys = [col("cell"), col("t")];
    let scalars = scalars::frame(dataset)?.lazy();
    Ok(records.join(scalars, keys.clone(), keys, JoinArgs::new(JoinType::Inner)))
}

fn collect(
    counted: &DataFrame,
    delta: Delta,
    claims: &[(usize, &Compiled)],
    counts: &mut BTreeMap<Key, BTreeMap<u64, RowCounts>>,
) -> PolarsResult<()> {
    let numbers = |name: &str| -> PolarsResult<Vec<u64>> {
        let cast = counted.column(name)?.cast(&polars::prelude::DataType::UInt64)?;
        Ok(cast.u64()?.iter().map(|value| value.unwrap_or(0)).collect())
    };
    let cells = counted.column("cell")?.str()?;
    let batches = numbers(BATCH)?;
    let failures = numbers(FAILED)?;
    let checkpoints = counted.column("t").is_ok().then(|| numbers("t")).transpose()?;
    for (place, _) in claims {
        let trials = numbers(&format!("{}:trials", name(*place)))?;
        let violations = numbers(&format!("{}:violations", name(*place)))?;
        for row in 0..counted.height() {
            let cell = cells.get(row).unwrap_or_default().to_owned();
            let t = checkpoints.as_ref().map(|all| all[row] as u32);
            let key = (cell, *place, t, delta.get().to_bits());
            let found = RowCounts {
                trials: trials[row],
                refuting: violations[row],
                confirming: violations[row],
                failures: failures[row],
            };
            counts.entry(key).or_default().insert(batches[row], found);
        }
    }
    Ok(())
}
