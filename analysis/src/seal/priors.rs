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
    let mut row = vec![Datum::Integer(prior.index.into()), Datum::Integer(at.cast_signed() as i64)];
    row.extend(coordinates.chain(beyond));
    row.push(Datum::Float(prior.mean[at]));
    row
}

#[cfg(test)]
mod tests {
    use polars::prelude::{DataFrame, ParquetReader, SerReader};

    use super::*;
    use crate::fixture::prior;
    use crate::seal::Lock;

    fn domain(priors: &[PriorSummary], rows: usize) -> Result<DataFrame, Error> {
        let out = tempfile::tempdir().unwrap();
        let staging = Staging::create(&Lock::take(out.path()).unwrap()).unwrap();
        write_domain(&staging, priors, rows)?;
        let file = std::fs::File::open(staging.path(NAME)).unwrap();
        Ok(ParquetReader::new(file).finish().unwrap())
    }

    #[test]
    fn every_point_has_a_row() {
        let frame = domain(&[prior(0, 5, 1), prior(1, 4, 2)], 4).unwrap();
        assert_eq!(frame.get_column_names(), ["prior", "point", "x0", "x1", "mean"]);
        assert_eq!(frame.height(), 9);
        let (x0, x1) = (frame.column("x0").unwrap(), frame.column("x1").unwrap());
        assert_eq!(x1.null_count(), 5);
        assert_eq!(x0.f64().unwrap().get(7), Some(0.5));
        assert_eq!(x1.f64().unwrap().get(7), Some(0.625));
        assert_eq!(frame.column("mean").unwrap().f64().unwrap().get(8), Some(3.0));
    }

    #[test]
    fn no_priors_are_an_empty_domain() {
        assert_eq!(domain(&[], 4).unwrap().height(), 0);
    }

    #[test]
    fn points_must_fit_the_size() {
        let prior = PriorSummary { d: 3, ..prior(0, 5, 2) };
        assert!(matches!(domain(&[prior], 4), Err(Error::Prior { points: 10, means: 5, .. })));
    }

    #[test]
    fn a_prior_is_described_without_its_points() {
        let text = text(&[prior(3, 5, 1)]);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!([{
            "index": 3,
            "swept": { "prior.kernel.lengthscale": 0.5 },
            "spec": { "setting": "finite" },
            "M": 5,
            "d": 1,
            "c": 1.0,
            "rank": 3,
            "residual": 1e-13,
            "noise_variance": 0.01,
            "white": 0.0,
            "rho": [{ "t": 1, "lo": 0.5, "hi": 0.5 }],
        }]);
        assert_eq!(value, expected);
    }
}
