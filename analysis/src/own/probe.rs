//! Records that might be, on which a claim is evaluated before anything runs: one that fails on some of them would
//! fail after the run.

use polars::prelude::{Expr, FunctionExpr, IntoLazy, PowFunction};
use study::Study;

use super::guard::guarded;
use crate::parquet::{Datum, Table};
use crate::schema::Type;

/// Enough that two columns have any two of their values in one row, as good as always.
const ROWS: u64 = 512;

/// Refuses an expression that fails on some records.
pub(super) fn probe(
    expression: &Expr,
    study: &Study,
    columns: &[(String, Type)],
) -> Result<(), String> {
    let all: Vec<Vec<Datum>> =
        columns.iter().map(|(name, kind)| values(study, name, *kind)).collect();
    let mut table = Table::new(columns, ROWS as usize);
    for row in 0..ROWS {
        let pick = |(column, values): (usize, &Vec<Datum>)| {
            let drawn = blake3::hash(&(row << 32 | column as u64).to_le_bytes());
            values[usize::from(drawn.as_bytes()[0]) % values.len()].clone()
        };
        table.row(&all.iter().enumerate().map(pick).collect::<Vec<_>>());
    }
    let evaluate = || table.finish()?.lazy().select([expression.clone().alias("it")]).collect();
    guarded(evaluate).map(|_| ()).map_err(|error| {
        let error = error.to_string();
        let error = error.lines().next().unwrap_or_default();
        format!("can fail on records: {error}{}", advice(expression))
    })
}

fn advice(expression: &Expr) -> &'static str {
    let has = |which: fn(&Expr) -> bool| expression.into_iter().any(which);
    let is_power = |part: &Expr| {
        matches!(part, Expr::Function { function: FunctionExpr::Pow(PowFunction::Generic), .. })
    };
    if has(|part| matches!(part, Expr::Cast { .. })) {
        "; try_cast(.. as ..) is null where a value does not fit, and a trial has no say there"
    } else if has(is_power) {
        "; a whole number has no negative powers, power(2.0, ..) has"
    } else {
        ""
    }
}

/// Values that a column may have, the extremes among them: those of the study where it says them.
fn values(study: &Study, name: &str, kind: Type) -> Vec<Datum> {
    let grid = &study.grid;
    let swept = study.priors.iter().flat_map(|prior| &prior.swept);
    let swept: Vec<Datum> =
        swept.filter(|(key, _)| key == name).map(|(_, value)| datum(value)).collect();
    let mut values: Vec<Datum> = match (name, kind) {
        _ if !swept.is_empty() => swept,
        ("t", _) => grid.t.iter().map(|&t| Datum::Integer(t.into())).collect(),
        ("N", _) => grid.n.iter().map(|&n| Datum::Integer(n.cast_signed())).collect(),
        ("delta", _) => grid.delta.iter().map(|delta| Datum::Float(delta.get())).collect(),
        ("replicate", _) => {
            let last = study.replicates.max().saturating_sub(1);
            [0, last].map(|replicate| Datum::Integer(replicate.cast_signed())).into()
        }
        // No flag makes anything fail.
        (_, Type::Bool) => vec![],
        (_, Type::Integer) => [1, 1_000_000].map(Datum::Integer).into(),
        (_, Type::Float) => [-1e300, -1.0, -0.5, 0.0, 1.0, 1e300].map(Datum::Float).into(),
        (_, Type::Text) => ["ok", "none"].map(|text| Datum::Text(text.to_owned())).into(),
    };
    values.push(Datum::Null);
    values
}

fn datum(value: &study::plan::Scalar) -> Datum {
    match value {
        study::plan::Scalar::Integer(value) => Datum::Integer(*value),
        study::plan::Scalar::Float(value) => Datum::Float(*value),
        study::plan::Scalar::Text(value) => Datum::Text(value.clone()),
    }
}
