//! The scalars of a study that claims of one's own may use, by cell and t.

use polars::prelude::{DataFrame, DataType, IntoLazy, PolarsResult};
use study::rows::own_rows;

use super::check::{Compiled, Error};
use super::read_error;
use crate::dataset::{DataCell, Dataset};
use crate::parquet::{Datum, Table};
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

/// What records lack, by cell and t.
pub(super) fn frame(dataset: &Dataset) -> PolarsResult<DataFrame> {
    let mut columns = vec![("cell".to_owned(), Type::Text), ("t".to_owned(), Type::Integer)];
    columns.extend(COLUMNS[3..].iter().map(|(name, kind)| ((*name).to_owned(), *kind)));
    let mut table = Table::new(&columns, dataset.cells.len() * dataset.study.grid.t.len());
    for cell in &dataset.cells {
        for &t in &dataset.study.grid.t {
            let mut row = vec![Datum::Text(cell.id.to_string()), Datum::Integer(t.into())];
            row.extend(values(dataset, cell, t));
            table.row(&row);
        }
    }
    table.finish()
}

fn values(dataset: &Dataset, cell: &DataCell, t: u32) -> [Datum; 8] {
    let prior = dataset.prior(cell);
    let integer = |value: u64| Datum::Integer(value.cast_signed());
    let rho = prior.rho_at(t);
    let end = |value: Option<f64>| value.map_or(Datum::Null, Datum::Float);
    [
        integer(prior.size),
        integer(prior.d.into()),
        Datum::Float(prior.c),
        Datum::Float(cell.cell.noise_variance.sqrt()),
        Datum::Float(cell.cell.noise_variance),
        integer(prior.rank),
        end(rho.map(|(low, _)| low)),
        end(rho.map(|(_, high)| high)),
    ]
}

/// The budget of every row of one's own, in the order of cells and rows. A claim about all t has the
/// longest T as its t.
pub(super) fn budgets(dataset: &Dataset, claims: &[Compiled]) -> Result<Vec<f64>, Error> {
    let columns = COLUMNS.map(|(name, kind)| (name.to_owned(), kind));
    let mut table = Table::new(&columns, 16);
    let mut of = Vec::new();
    let longest = dataset.study.grid.t.last().copied().unwrap_or(1);
    for cell in &dataset.cells {
        let n = cell.cell.policy.training().map(|training| training.n);
        for row in own_rows(&dataset.study, &cell.cell) {
            let t = row.t.unwrap_or(longest);
            let n = n.map_or(Datum::Null, |n| Datum::Integer(n.cast_signed()));
            let mut datums = vec![n, Datum::Integer(t.into()), Datum::Float(row.delta.get())];
            datums.extend(values(dataset, cell, t));
            table.row(&datums);
            of.push(row.claim);
        }
    }
    let frame = table.finish().map_err(read_error(dataset))?;
    let evaluate = |claim: &Compiled| -> PolarsResult<Vec<Option<f64>>> {
        let budget = claim.budget.clone().cast(DataType::Float64).alias("budget");
        // A plain number is one value for all rows.
        let frame = frame.clone().lazy().with_column(budget).collect()?;
        Ok(frame.column("budget")?.f64()?.iter().collect())
    };
    let all: Vec<Vec<Option<f64>>> = claims
        .iter()
        .map(|one| evaluate(one).map_err(read_error(dataset)))
        .collect::<Result<_, _>>()?;
    let valid = |(row, &claim): (usize, &usize)| {
        let found = all[claim].get(row).copied().flatten();
        found.filter(|budget| (0.0..1.0).contains(budget)).ok_or_else(|| {
            let found = found.map_or("null".to_owned(), |budget| budget.to_string());
            let reason = format!("is {found} in a cell; a budget is a probability below 1");
            claims[claim].refuse("budget", reason)
        })
    };
    of.iter().enumerate().map(valid).collect()
}
