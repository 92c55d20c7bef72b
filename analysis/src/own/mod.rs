//! Claims of one's own: SQL expressions over record columns and the study's scalars.
//!
//! An expression is compiled to a polars expression and evaluated lazily by the streaming engine, so
//! that a dataset larger than memory works. A trial in which it is null answers nothing; a trial that
//! failed is a failure, as for every claim.

mod check;
mod guard;
mod probe;
mod scalars;

use std::collections::BTreeMap;

use polars::prelude::{
    DataFrame, DataType, Engine, Expr, IntoLazy, JoinArgs, JoinType, LazyFrame, PlRefPath,
    PolarsError, PolarsResult, ScanArgsParquet, ScanSources, col, lit,
};
use study::file::{Quantifier, Study};
use study::rows::{OwnRow, own_rows};
use study::tally::RowCounts;
use theory::Delta;

use crate::dataset::{DataCell, Dataset};
use crate::parquet::FileError;
use crate::pass::Span;

pub use check::{Error, check, check_budgets};

use check::Compiled;
use guard::guarded;

/// What the records say about a row of one's own.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnResult {
    /// The earlier family that has the row, as an index into [`Dataset::earlier`]; `None` for the present one.
    pub family: Option<usize>,
    /// The cell's place in [`Dataset::cells`].
    pub cell: usize,
    /// The row.
    pub row: OwnRow,
    /// The failure probability that it allows, or why its claim cannot be evaluated.
    pub budget: Result<f64, String>,
    /// In the order of the trials.
    pub spans: Vec<(Span, RowCounts)>,
}

/// Evaluates all claims of one's own, those of earlier families too.
pub fn evaluate(dataset: &Dataset) -> Result<Vec<OwnResult>, Error> {
    let mut results = of_family(dataset, &dataset.study, None)?;
    let earlier = dataset.earlier.iter().enumerate().filter(|_| dataset.is_changed());
    for (family, earlier) in earlier {
        results.extend(of_family(dataset, &earlier.study, Some(family))?);
    }
    Ok(results)
}

/// What an earlier family planned is about the cells that had trials then. Claims were checked for the cells and by
/// the version of their time, and datasets come from anywhere, so that one that cannot be evaluated has rows that
/// say so, and the others keep their verdicts.
fn of_family(
    dataset: &Dataset,
    study: &Study,
    family: Option<usize>,
) -> Result<Vec<OwnResult>, Error> {
    if study.claims.is_empty() {
        return Ok(vec![]);
    }
    let swept = dataset.swept_types();
    let compiled = check::each(study, &swept);
    let reason = |error: Error| reason(&error, family);
    let claims = compiled.map(|claim| claim.map_err(reason)).collect();
    let Counted { claims, mut spans } = counts(dataset, study, family, claims)?;
    let had_trials = |cell: &DataCell| family.is_none_or(|family| cell.replaced_at[family] > 0);
    let cells = || dataset.cells.iter().enumerate().filter(|(_, cell)| had_trials(cell));
    let places = cells().map(|(_, cell)| (&cell.cell, Some(dataset.prior(cell))));
    let mut budgets = scalars::budgets(study, &claims, places)?.into_iter();
    let mut results = Vec::new();
    for (place, cell) in cells() {
        for row in own_rows(study, &cell.cell) {
            let key = (cell.id.to_string(), row.claim, row.t, row.delta.get().to_bits());
            let spans = spans.remove(&key).unwrap_or_default().into_iter().collect();
            let budget = budgets.next().expect("every row has a budget");
            let budget = match &claims[row.claim] {
                Err(reason) => Err(reason.clone()),
                Ok(claim) => budget.and_then(|b| claim.allowed(b, &cell.id)).map_err(reason),
            };
            results.push(OwnResult { family, cell: place, row, budget, spans });
        }
    }
    Ok(results)
}

/// Why a row has no verdict. The study file's folder is left out: an analysis is the same in any.
fn reason(error: &Error, family: Option<usize>) -> String {
    match (error, family) {
        (Error::Expression { line, key, expression, reason, .. }, None) => {
            format!("it cannot be evaluated: line {line}: {key} = \"{expression}\" {reason}")
        }
        (Error::Expression { key, expression, reason, .. }, Some(_)) => {
            format!("it cannot be evaluated any more: {key} = \"{expression}\" {reason}")
        }
        (Error::File(error), _) => format!("it cannot be evaluated: {error}"),
    }
}

type Claims = Vec<Result<Compiled, String>>;

/// Claims with what their trials say; one that cannot be evaluated has its reason instead.
struct Counted {
    claims: Claims,
    spans: BTreeMap<Key, BTreeMap<Span, RowCounts>>,
}

fn counts(
    dataset: &Dataset,
    study: &Study,
    family: Option<usize>,
    mut claims: Claims,
) -> Result<Counted, Error> {
    let mut spans = BTreeMap::new();
    for &delta in &study.grid.delta {
        for quantifier in [Quantifier::EachT, Quantifier::AllT] {
            let chosen = |claims: &Claims| {
                let each = claims.iter().enumerate();
                let each = each.filter_map(|(at, claim)| Some((at, claim.as_ref().ok()?.clone())));
                each.filter(|(_, one)| one.quantifier == quantifier).collect::<Vec<_>>()
            };
            let at = Place { family, delta, quantifier };
            let mut pass = |claims: &[(usize, Compiled)]| match claims {
                [] => Ok(()),
                _ => one_pass(dataset, study, at, claims, &mut spans),
            };
            // Together they are read once; where that fails, each by itself shows which one is at fault.
            let together = chosen(&claims);
            let Err(error) = pass(&together) else { continue };
            // What cannot be read is no claim's fault.
            if matches!(error, PolarsError::IO { .. }) {
                return Err(read_error(dataset)(error));
            }
            guarded(|| count(dataset, study, at, &[])).map_err(read_error(dataset))?;
            for (place, claim) in together {
                if let Err(error) = pass(&[(place, claim.clone())]) {
                    let error = error.to_string();
                    let error = error.lines().next().unwrap_or_default();
                    let refused = claim.refuse("holds", format!("cannot be evaluated: {error}"));
                    claims[place] = Err(reason(&refused, family));
                }
            }
        }
    }
    Ok(Counted { claims, spans })
}

/// What is counted in one pass.
#[derive(Clone, Copy)]
struct Place {
    family: Option<usize>,
    delta: Delta,
    quantifier: Quantifier,
}

fn one_pass(
    dataset: &Dataset,
    study: &Study,
    at: Place,
    claims: &[(usize, Compiled)],
    spans: &mut BTreeMap<Key, BTreeMap<Span, RowCounts>>,
) -> PolarsResult<()> {
    let counted = guarded(|| count(dataset, study, at, claims))?;
    collect(&counted, at.delta, claims, spans)
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
const PERIOD: &str = "own period";

/// Violations, answers and failures of the chosen claims at one delta, by cell, batch and t.
fn count(
    dataset: &Dataset,
    study: &Study,
    Place { family, delta, quantifier }: Place,
    claims: &[(usize, Compiled)],
) -> PolarsResult<DataFrame> {
    let level = lit(delta.get());
    let mut own = col("delta").is_null().or(col("delta").eq(level.clone()));
    // A claim is not asked of records that its family never had: it may fail on them.
    if let Some(family) = family {
        own = own.and(col("replicate").lt(col(scalars::replaced_at(family))));
    }
    let batch = dataset.study.replicates.batch_size().cast_signed();
    let holds = claims.iter().map(|(place, claim)| claim.holds.clone().alias(name(*place)));
    let mut columns: Vec<Expr> = holds.collect();
    columns.push(col("status").neq(lit("ok")).alias(FAILED));
    columns.push(col("replicate").floor_div(lit(batch)).alias(BATCH));
    let period = (0..dataset.earlier.len())
        .map(|family| {
            col("replicate").gt_eq(col(scalars::replaced_at(family))).cast(DataType::UInt64)
        })
        .fold(lit(0_u64), |sum, one| sum + one);
    columns.push(period.alias(PERIOD));
    columns.extend([col("cell"), col("replicate"), col("t")]);
    let mut records =
        records(dataset, study)?.filter(own).with_column(level.alias("delta")).select(columns);
    let mut keys = vec![col("cell"), col(BATCH), col(PERIOD)];
    if quantifier == Quantifier::AllT {
        // A trial violates the claim where any t does, and holds where all that have an answer do.
        let all = claims.iter().map(|(place, _)| col(name(*place)).min());
        let all = all
            .chain([col(FAILED).max(), col(BATCH).first(), col(PERIOD).first()])
            .collect::<Vec<_>>();
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
fn records(dataset: &Dataset, study: &Study) -> PolarsResult<LazyFrame> {
    let paths = dataset.record_files().into_iter().map(|file| dataset.dir.join(&file.name));
    let paths: Vec<PlRefPath> =
        paths.map(|path| PlRefPath::try_from_path(&path)).collect::<PolarsResult<_>>()?;
    let args = ScanArgsParquet { glob: false, ..ScanArgsParquet::default() };
    let records = LazyFrame::scan_parquet_sources(ScanSources::Paths(paths.into()), args)?;
    let keys = [col("cell"), col("t")];
    let scalars = scalars::frame(dataset, study)?.lazy();
    Ok(records.join(scalars, keys.clone(), keys, JoinArgs::new(JoinType::Inner)))
}

fn collect(
    counted: &DataFrame,
    delta: Delta,
    claims: &[(usize, Compiled)],
    counts: &mut BTreeMap<Key, BTreeMap<Span, RowCounts>>,
) -> PolarsResult<()> {
    let numbers = |name: &str| -> PolarsResult<Vec<u64>> {
        let cast = counted.column(name)?.cast(&DataType::UInt64)?;
        Ok(cast.u64()?.iter().map(|value| value.unwrap_or(0)).collect())
    };
    let cells = counted.column("cell")?.str()?;
    let (batches, periods) = (numbers(BATCH)?, numbers(PERIOD)?);
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
            let span = Span { batch: batches[row], period: periods[row] as usize };
            counts.entry(key).or_default().insert(span, found);
        }
    }
    Ok(())
}
