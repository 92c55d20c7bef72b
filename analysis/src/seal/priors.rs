//! `domain.parquet` and `priors.json`.

use polars::prelude::DataFrame;

use super::Error;
use super::swap::Staging;
use crate::description::PriorSummary;
use crate::manifest::FileEntry;
use crate::parquet::{self, Datum, FileError, Table};
use crate::schema::Type;

const NAME: &str = "domain.parquet";

/// The text of `priors.json`.
pub(super) fn text(priors: &[PriorSummary]) -> String {
    let text = serde_json::to_string_pretty(priors);
    text.expect("priors have text keys") + "\n"
}

/// Writes the points of all priors: prior, point, coordinates (null beyond a prior's dimension), mean.
pub(super) fn write_domain(
    staging: &Staging,
    priors: &[PriorSummary],
    rows: usize,
) -> Result<FileEntry, Error> {
    priors.iter().try_for_each(check)?;
    let dimensions = priors.iter().map(|prior| prior.d).max().unwrap_or(1);
    let integer = |name: &str| (name.to_owned(), Type::Integer);
    let mut columns = vec![integer("prior"), integer("point")];
    columns.extend((0..dimensions).map(|axis| (format!("x{axis}"), Type::Float)));
    columns.push(("mean".to_owned(), Type::Float));
    let mut points =
        priors.iter().flat_map(|prior| (0..prior.mean.len()).map(move |at| (prior, at)));
    let path = staging.path(NAME);
    let frames = std::iter::from_fn(|| -> Option<Result<DataFrame, Error>> {
        let mut table = Table::new(&columns, rows);
        let mut filled = 0;
        for (prior, at) in points.by_ref().take(rows) {
            table.row(&row(prior, at, dimensions));
            filled += 1;
        }
        let finish = || Ok(table.finish().map_err(FileError::parquet("write", &path))?);
        (filled > 0).then(finish)
    });
    parquet::write(&path, NAME, &columns, frames)
}

fn check(prior: &PriorSummary) -> Result<(), Error> {
    let PriorSummary { index, size, d, .. } = *prior;
    let (points, means) = (prior.points.len(), prior.mean.len());
    if means as u64 == size && points as u64 == size * u64::from(d) {
        return Ok(());
    }
    Err(Error::Prior { index, points, means, size, d })
}

fn row(prior: &PriorSummary, at: usize, dimensions: u32) -> Vec<Datum> {
    let d = prior.d as usize;
    let coordinates = prior.points[at * d..(at + 1) * d].iter().map(|&x| Datum::Float(x));
    let beyond = std::iter::repeat_n(Datum::Null, dimensions as usize - d);
    let mut row = vec![Datum::Integer(prior.index.into()), Datum::Integer(at as i64)];
    row.extend(coordinates.chain(beyond));
    row.push(Datum::Float(prior.mean[at]));
    row
}
