//! The scalars of a study that claims of one's own may use, by cell and t.

use polars::prelude::{DataFrame, DataType, IntoLazy, PolarsResult};
use study::rows::own_rows;
use study::{Cell, Study};

use super::check::{Compiled, Error};
use super::guard::guarded;
use crate::dataset::Dataset;
use crate::description::PriorSummary;
use crate::parquet::{Datum, FileError, Table};
use crate::schema::Type;

/// Names and types; N, t and delta are columns of records too.
pub(super) const COLUMNS: [(&str, Type); 11] = [
    ("N", Type::Integer),
    ("t", Type::Integer),
    ("delta", Type::Float),
    ("M", Type::Integer),
    ("d", Type::Integer),
    ("c", Type::Float),
    ("sigma", Type::Float),
    ("noise_variance", Type::Float),
    ("rank", Type::Integer),
    ("rho_lo", Type::Float),
    ("rho_hi", Type::Float),
];

/// Those that a prior has to be built for.
pub(super) const OF_PRIOR: [&str; 6] = ["M", "d", "c", "rank", "rho_lo", "rho_hi"];

/// The column with the replicates of a cell that existed when an earlier family was replaced.
pub(super) fn replaced_at(family: usize) -> String {
    format!("own replaced {family}")
}

/// What records lack, by cell and t of a study.
pub(super) fn frame(dataset: &Dataset, study: &Study) -> PolarsResult<DataFrame> {
    let mut columns = vec![("cell".to_owned(), Type::Text), ("t".to_owned(), Type::Integer)];
    columns.extend(COLUMNS[3..].iter().map(|(name, kind)| ((*name).to_owned(), *kind)));
    columns.extend((0..dataset.earlier.len()).map(|family| (replaced_at(family), Type::Integer)));
    let mut table = Table::new(&columns, dataset.cells.len() * study.grid.t.len());
    for cell in &dataset.cells {
        for &t in &study.grid.t {
            let mut row = vec![Datum::Text(cell.id.to_string()), Datum::Integer(t.into())];
            row.extend(values(&cell.cell, Some(dataset.prior(cell)), t));
            row.extend(cell.replaced_at.iter().map(|&at| Datum::Integer(at.cast_signed())));
            table.row(&row);
        }
    }
    table.finish()
}

fn values(cell: &Cell, prior: Option<&PriorSummary>, t: u32) -> [Datum; 8] {
    let integer = |of: fn(&PriorSummary) -> u64| {
        prior.map_or(Datum::Null, |prior| Datum::Integer(of(prior).cast_signed()))
    };
    let rho = prior.and_then(|prior| prior.rho_at(t));
    let float = |value: Option<f64>| value.map_or(Datum::Null, Datum::Float);
    [
        integer(|prior| prior.size),
        integer(|prior| prior.d.into()),
        float(prior.map(|prior| prior.c)),
        Datum::Float(cell.noise_variance.sqrt()),
        Datum::Float(cell.noise_variance),
        integer(|prior| prior.rank),
        float(rho.map(|(low, _)| low)),
        float(rho.map(|(_, high)| high)),
    ]
}

/// The budget of every row of one's own, in the order of cells and rows: `None` where it is null, an error where
/// it cannot be evaluated or its claim is refused. A claim about all t has the longest T as its t.
pub(super) fn budgets<'a>(
    study: &Study,
    claims: &[Result<Compiled, String>],
    cells: impl IntoIterator<Item = (&'a Cell, Option<&'a PriorSummary>)>,
) -> Result<Vec<Result<Option<f64>, Error>>, Error> {
    let columns = COLUMNS.map(|(name, kind)| (name.to_owned(), kind));
    let mut table = Table::new(&columns, 16);
    let mut of = Vec::new();
    let longest = study.grid.t.last().copied().unwrap_or(1);
    for (cell, prior) in cells {
        let n = cell.policy.training().map(|training| training.n);
        for row in own_rows(study, cell) {
            let t = row.t.unwrap_or(longest);
            let n = n.map_or(Datum::Null, |n| Datum::Integer(n.cast_signed()));
            let mut datums = vec![n, Datum::Integer(t.into()), Datum::Float(row.delta.get())];
            datums.extend(values(cell, prior, t));
            table.row(&datums);
            of.push(row.claim);
        }
    }
    let frame = table.finish().map_err(FileError::parquet("make", "scalars".as_ref()))?;
    let evaluate = |claim: &Compiled| -> PolarsResult<Vec<Option<f64>>> {
        let budget = claim.budget.clone().cast(DataType::Float64).alias("budget");
        // A plain number is one value for all rows.
        let frame = guarded(|| frame.clone().lazy().with_column(budget).collect())?;
        Ok(frame.column("budget")?.f64()?.iter().collect())
    };
    let all: Vec<Option<PolarsResult<Vec<Option<f64>>>>> =
        claims.iter().map(|claim| claim.as_ref().ok().map(evaluate)).collect();
    let budget = |(row, &claim): (usize, &usize)| match (&claims[claim], &all[claim]) {
        (Ok(_), Some(Ok(budgets))) => Ok(budgets.get(row).copied().flatten()),
        (Ok(compiled), Some(Err(error))) => {
            Err(compiled.refuse("budget", format!("cannot be evaluated: {error}")))
        }
        _ => Ok(None),
    };
    Ok(of.iter().enumerate().map(budget).collect())
}
