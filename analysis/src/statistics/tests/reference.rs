//! Compares with `tests/statistics.json`, which `tests/statistics.py` computed with mpmath.
//!
//! Each group has one named tolerance. `REFERENCE_ERRORS=1 cargo test -p analysis reference --
//! --nocapture` prints the worst error of each group.

use super::super::bootstrap::Replicates;
use super::super::fit::Fitter;
use super::super::interval::{Transform, around, points};
use super::super::{Floor, Place, Point, Sample};
use super::super::{fit_power_law, paired_differences, rank_limits, student_quantile, summary};
use serde_json::Value;

/// Sums of a hundred values or fewer.
const SUM: f64 = 5e-15;
/// Quantiles of Student's law.
const QUANTILE: f64 = 1e-14;
/// Parameters, chi-square and errors of fits: rounding, times the condition of the fit.
const FIT: f64 = 1e-10;
/// Refitted exponents.
const EXPONENT: f64 = 1e-13;

struct Row(Vec<String>);

impl Row {
    fn number(&self, i: usize) -> f64 {
        self.0[i].parse().expect("a number")
    }

    fn options(text: &str) -> Vec<Option<f64>> {
        text.split(' ').map(|word| word.parse().ok()).collect()
    }

    fn list(&self, i: usize) -> Vec<f64> {
        Self::options(&self.0[i]).into_iter().map(|value| value.expect("a number")).collect()
    }

    fn floor(&self, i: usize) -> Floor {
        if self.0[i] == "free" { Floor::Free } else { Floor::Known(self.number(i)) }
    }
}

fn rows(group: &str) -> Vec<Row> {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/statistics.json"));
    let all: Value = serde_json::from_str(text).expect("valid JSON");
    let rows = all[group].as_array().unwrap_or_else(|| panic!("no group {group}"));
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    rows.iter().map(|row| Row(row.as_array().expect("a row").iter().map(text).collect())).collect()
}

/// Checks `compute` against the columns from `inputs` on: relative errors.
fn check(group: &str, inputs: usize, tolerance: f64, compute: impl Fn(&Row) -> Vec<Option<f64>>) {
    let mut worst = 0.0;
    for (number, row) in rows(group).iter().enumerate() {
        let values = compute(row);
        assert_eq!(values.len(), row.0.len() - inputs, "{group}: columns");
        for (i, value) in values.into_iter().enumerate() {
            let place = format!("{group}, row {number}, column {i}");
            let expected: Option<f64> = row.0[inputs + i].parse().ok();
            let (Some(value), Some(expected)) = (value, expected) else {
                assert_eq!(value, expected, "{place}");
                continue;
            };
            let miss =
                if value == expected { 0.0 } else { (value - expected).abs() / expected.abs() };
            assert!(miss <= tolerance, "{place}: {value:e} is not {expected:e}, error {miss:.1e}");
            worst = if miss > worst { miss } else { worst };
        }
    }
    if std::env::var_os("REFERENCE_ERRORS").is_some() {
        println!("{group:10} {worst:.1e}");
    }
}

#[test]
fn samples() {
    check("summary", 1, SUM, |r| {
        let found = summary(r.list(0)).expect("values");
        vec![Some(found.mean), Some(found.variance), found.standard_error()]
    });
    check("quantile", 2, SUM, |r| {
        vec![Some(Sample::new(r.list(0)).expect("values").quantile(r.number(1)))]
    });
    check("ranks", 3, 0.0, |r| {
        let (low, high) = rank_limits(r.number(0) as usize, r.number(1), r.number(2));
        vec![low.map(|l| l as f64), high.map(|u| u as f64)]
    });
    check("limits", 3, 0.0, |r| {
        let limits = Sample::new(r.list(0)).expect("values").limits(r.number(1), r.number(2));
        vec![limits.low, limits.high]
    });
}

#[test]
fn student() {
    check("student", 2, QUANTILE, |r| vec![Some(student_quantile(r.number(0), r.number(1)))]);
    check("paired", 3, QUANTILE, |r| {
        let found = paired_differences(r.list(0).into_iter().zip(r.list(1)), r.number(2));
        let found = found.expect("pairs");
        let (ends, signs) = (found.interval.expect("two pairs"), found.signs);
        let numbers = [found.sample.mean, found.sample.standard_error().expect("two pairs")];
        let counts = [signs.wins, signs.ties, signs.losses].map(|count| count as f64);
        let all = [&numbers[..], &[ends.low, ends.high], &counts].concat();
        all.into_iter().map(Some).collect()
    });
}

#[test]
fn fits() {
    check("fit", 4, FIT, |r| {
        let rest = r.list(1).into_iter().zip(r.list(2));
        let point = |(size, (value, error))| Point { size, value, error };
        let data: Vec<Point> = r.list(0).into_iter().zip(rest).map(point).collect();
        let fit = fit_power_law(&data, r.floor(3)).expect("a fit");
        assert_eq!(fit.place, Place::Inside);
        let errors = fit.errors.expect("inside");
        let degrees = fit.degrees as f64;
        [fit.a, fit.b, fit.c, fit.chi_square, degrees, fit.p_value, errors.a, errors.b, errors.c]
            .map(Some)
            .to_vec()
    });
}

#[test]
fn refits_of_given_weights() {
    check("bootstrap", 5, EXPONENT, |r| {
        let series: Vec<Vec<Option<f64>>> = r.0[1].split("; ").map(Row::options).collect();
        let weights: Vec<Vec<u16>> = r.0[2]
            .split("; ")
            .map(|row| row.split(' ').map(|w| w.parse().expect("a weight")).collect())
            .collect();
        let transform = match r.0[3].as_str() {
            "identity" => Transform::Identity,
            _ => Transform::SquareRoot,
        };
        let data = Replicates::new(series.len(), series[0].len(), |s, i| series[s][i]);
        let points = points(&r.list(0), &data, transform).expect("usable series");
        let fitter = Fitter::new(&points, r.floor(4)).expect("six sizes");
        let fit = fitter.fit(&points.iter().map(|p| p.value).collect::<Vec<_>>()).expect("a fit");
        let weigh = |range: std::ops::Range<usize>| {
            let start = range.start;
            let under =
                data.weighted(range.len(), |k, units| units.copy_from_slice(&weights[start + k]));
            around(fit, &fitter, transform, &under)
        };
        let all = weigh(0..weights.len());
        // The interval of a single resample is its exponent, twice.
        let each = (0..weights.len()).map(|k| Some(weigh(k..k + 1).low));
        [Some(fit.c), Some(all.low), Some(all.high)].into_iter().chain(each).collect()
    });
}
