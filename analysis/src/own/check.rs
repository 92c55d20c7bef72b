//! Whether a claim of one's own can be evaluated: known columns, a condition, no aggregate.

use polars::prelude::{
    DataFrame, DataType, Expr, Field, FunctionExpr, IntoLazy, PolarsError, Schema,
};
use polars::sql::sql_expr;
use std::fmt::Display;

use study::Plan;
use study::file::{OwnClaim, Quantifier, Study};
use study::rows::own_rows;

use crate::description::PriorSummary;
use crate::parquet::{FileError, data_type};
use crate::schema::{self, Type};

use super::guard::guarded;
use super::probe::probe;
use super::scalars;

/// Why a claim of one's own cannot be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The expression is refused.
    #[error("{file}:{line}: claim {id}: {key} = \"{expression}\" {reason}")]
    Expression {
        /// The study file.
        file: String,
        /// The line of its `[[claim]]`.
        line: usize,
        /// The claim.
        id: String,
        /// "holds" or "budget".
        key: &'static str,
        /// The expression.
        expression: String,
        /// What is wrong, and what would be valid.
        reason: String,
    },
    /// The records cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A claim that can be evaluated.
#[derive(Clone)]
pub(super) struct Compiled {
    pub(super) holds: Expr,
    pub(super) budget: Expr,
    pub(super) quantifier: Quantifier,
    pub(super) claim: OwnClaim,
    pub(super) file: String,
}

impl Compiled {
    /// The budget that was evaluated in a cell, if it is one. A budget of 0 says that the claim is never
    /// violated: one violation refutes it, and nothing confirms it.
    pub(super) fn allowed(&self, budget: Option<f64>, cell: &dyn Display) -> Result<f64, Error> {
        budget.filter(|budget| (0.0..1.0).contains(budget)).ok_or_else(|| {
            let found = budget.map_or("null".to_owned(), |budget| budget.to_string());
            let reason = format!("is {found} in cell {cell}; a budget is a probability below 1");
            self.refuse("budget", reason)
        })
    }

    /// Whether its budget can be known before priors are: it names none of their scalars.
    fn is_budget_of_grid(&self) -> bool {
        self.budget.into_iter().all(|part| match part {
            Expr::Column(name) => !scalars::OF_PRIOR.contains(&name.as_str()),
            Expr::Selector(_) => false,
            _ => true,
        })
    }

    pub(super) fn refuse(&self, key: &'static str, reason: String) -> Error {
        refuse(&self.file, &self.claim, key, reason)
    }
}

fn refuse(file: &str, claim: &OwnClaim, key: &'static str, reason: String) -> Error {
    Error::Expression {
        file: file.to_owned(),
        line: claim.line,
        id: claim.id.clone(),
        key,
        expression: if key == "holds" { claim.holds.clone() } else { claim.budget.clone() },
        reason,
    }
}

/// Refuses claims of one's own that could not be evaluated, before anything runs.
pub fn check(study: &Study, swept: &[(String, Type)]) -> Result<(), Error> {
    let columns = columns(swept);
    each(study, swept).try_for_each(|claim| {
        let claim = claim?;
        probe(&claim.holds, study, &columns).map_err(|reason| claim.refuse("holds", reason))
    })
}

/// Whether the budget of every claim is a probability in every cell of a plan; `None` where that depends on
/// priors that are not given.
///
/// # Panics
/// Never: every row has a budget.
pub fn check_budgets(
    plan: &Plan,
    swept: &[(String, Type)],
    priors: Option<&[PriorSummary]>,
) -> Result<Option<()>, Error> {
    let study = &plan.study;
    if study.claims.is_empty() {
        return Ok(Some(()));
    }
    let claims = each(study, swept).collect::<Result<Vec<Compiled>, Error>>()?;
    let is_given = |claim: &Compiled| priors.is_some() || claim.is_budget_of_grid();
    let is_known = claims.iter().all(is_given);
    let places = plan.cells.iter().map(|cell| {
        let prior = priors.and_then(|priors| priors.get(cell.prior));
        (&cell.cell, prior)
    });
    let claims: Vec<Result<Compiled, String>> = claims.into_iter().map(Ok).collect();
    let mut budgets = scalars::budgets(study, &claims, places)?.into_iter();
    for cell in &plan.cells {
        for row in own_rows(study, &cell.cell) {
            let budget = budgets.next().expect("every row has a budget");
            let Some(claim) = claims[row.claim].as_ref().ok().filter(|claim| is_given(claim))
            else {
                continue;
            };
            let t = row.t.map_or(String::new(), |t| format!(", t = {t}"));
            let at = format_args!("{} ({}{t})", cell.id, plan.label(cell)).to_string();
            let at = match cell.cell.policy.delta() {
                Some(_) => at,
                None => format!("{at}, at delta = {}", row.delta.get()),
            };
            claim.allowed(budget?, &at)?;
        }
    }
    Ok(is_known.then_some(()))
}

/// Every claim of a study, or why it cannot be evaluated.
pub(super) fn each<'a>(
    study: &'a Study,
    swept: &'a [(String, Type)],
) -> impl Iterator<Item = Result<Compiled, Error>> + use<'a> {
    study.claims.iter().map(|claim| one(&study.file, claim, swept))
}

fn one(file: &str, claim: &OwnClaim, swept: &[(String, Type)]) -> Result<Compiled, Error> {
    let refuse = |key| move |reason: String| refuse(file, claim, key, reason);
    let columns = columns(swept);
    let holds = parse(&claim.holds).map_err(refuse("holds"))?;
    match output(&holds, &columns).map_err(refuse("holds"))? {
        DataType::Boolean => {}
        other => {
            let reason = format!(
                "is of type {other}, not a condition; compare it with something, as in \
                 \"cumulative_regret <= 8 * sqrt(t * rho_hi)\""
            );
            return Err(refuse("holds")(reason));
        }
    }
    let budget = parse(&claim.budget).map_err(refuse("budget"))?;
    let kind = output(&budget, &scalars::COLUMNS.map(|(name, kind)| (name.to_owned(), kind)));
    if !kind.map_err(refuse("budget"))?.is_primitive_numeric() {
        let reason = "is no number; use a probability below 1, such as \"delta/2\"".to_owned();
        return Err(refuse("budget")(reason));
    }
    let (claim, file) = (claim.clone(), file.to_owned());
    Ok(Compiled { holds, budget, quantifier: claim.quantifier, claim, file })
}

/// All columns that an expression may use.
fn columns(swept: &[(String, Type)]) -> Vec<(String, Type)> {
    let records = schema::columns(swept).into_iter().map(|column| (column.name, column.kind));
    let mut columns: Vec<(String, Type)> = records.collect();
    for (name, kind) in scalars::COLUMNS {
        if columns.iter().all(|(known, _)| known != name) {
            columns.push((name.to_owned(), kind));
        }
    }
    columns
}

fn parse(text: &str) -> Result<Expr, String> {
    study::file::check_expression(text)?;
    // Queries are refused below, but the files that they name are opened while they are parsed.
    if text.to_ascii_lowercase().contains("read_") {
        return Err("reads files; a claim is about the columns of records".to_owned());
    }
    // Some calls without arguments make the parser panic.
    let expression = guarded(|| sql_expr(text)).map_err(|error| {
        let error = error.to_string();
        // A number with an exponent is read as a whole number unless it has a point.
        let hint = if error.contains("cannot parse literal") {
            "; a number with an exponent needs a point, as in 1.0e6"
        } else {
            ""
        };
        format!("is not a SQL expression: {error}{hint}")
    })?;
    for part in &expression {
        let refused = match part {
            Expr::SubPlan(..) => "holds a query; a claim is about one trial",
            Expr::Agg(_) | Expr::Over { .. } | Expr::Len => {
                "takes an aggregate over many records; a claim is about one trial"
            }
            // Padding, for one, takes as much memory as it says.
            Expr::Function { function: FunctionExpr::StringExpr(_), .. } => {
                "works on text; compare it as a whole, as in \"status = 'ok'\""
            }
            Expr::Selector(_) => "chooses columns by a pattern; name the one that is meant",
            Expr::Cast { dtype, .. } if !dtype.as_literal().is_some_and(is_of_records) => {
                "casts to a type that records do not have; valid are tinyint, smallint, integer, bigint, real, \
                 double and boolean"
            }
            _ => continue,
        };
        return Err(refused.to_owned());
    }
    Ok(expression)
}

/// Numbers and flags, of any size that the engine is built with. Text is compared as a whole.
fn is_of_records(kind: &DataType) -> bool {
    use DataType::{Boolean, Float32, Float64, Int8, Int16, Int32, Int64};
    matches!(kind, Int8 | Int16 | Int32 | Int64 | Float32 | Float64 | Boolean)
}

/// The type of an expression over columns.
fn output(expression: &Expr, columns: &[(String, Type)]) -> Result<DataType, String> {
    let schema: Schema = columns
        .iter()
        .map(|(name, kind)| Field::new(name.as_str().into(), data_type(*kind)))
        .collect();
    let frame =
        DataFrame::empty_with_schema(&schema).lazy().select([expression.clone().alias("it")]);
    let found = guarded(|| {
        let found = frame.clone().collect_schema()?;
        // Types are known now; functions that the engine lacks show when it runs, on no rows.
        frame.collect()?;
        Ok(found)
    });
    let found = found.map_err(|error| explain(&error, columns))?;
    Ok(found.get("it").cloned().unwrap_or(DataType::Null))
}

fn explain(error: &PolarsError, columns: &[(String, Type)]) -> String {
    let text = error.to_string();
    // The engine wraps this error in others, so that its text is all there is to go by.
    let missing =
        text.split_once("unable to find column \"").and_then(|(_, rest)| rest.split_once('"'));
    let Some((name, _)) = missing else {
        return format!("cannot be evaluated: {}", text.lines().next().unwrap_or_default());
    };
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let near = study::nearest(name, &names);
    let meant = near.map_or(String::new(), |near| format!("did you mean {near}? "));
    format!(
        "names {name:?}, which is no column of records and no scalar of the study; {meant}codebook.csv \
         lists the columns, and scalars are {}",
        scalars::COLUMNS.map(|(name, _)| name).join(", ")
    )
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use polars::prelude::{Column, ParquetWriter};

    use super::*;

    fn evaluated(text: &str) -> Result<DataType, String> {
        parse(text).and_then(|expression| output(&expression, &columns(&[])))
    }

    /// Records may come from anywhere, and claims with them.
    #[test]
    fn what_could_do_harm_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.parquet");
        let mut frame = DataFrame::new(1, vec![Column::new("t".into(), [1_i64])]).unwrap();
        ParquetWriter::new(File::create(&file).unwrap()).finish(&mut frame).unwrap();
        let file = file.display();
        for (text, reason) in [
            (format!("t IN (SELECT t FROM read_parquet('{file}'))"), "reads files"),
            (format!("t IN (FROM READ_Parquet('{file}'))"), "reads files"),
            (format!("t IN (SELECT t FROM \"read_parquet\"('{file}'))"), "reads files"),
            ("t IN (SELECT 1)".to_owned(), "holds a query"),
            ("length(lpad('x', 100000000000, 'y')) > 0".to_owned(), "works on text"),
            ("least() > 0".to_owned(), "is not a SQL expression"),
            ("COLUMNS('^y$') > 0".to_owned(), "chooses columns by a pattern"),
            ("t < 1e6".to_owned(), "is not a SQL expression: cannot parse literal"),
        ] {
            let error = evaluated(&text).unwrap_err();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }

    /// The engine panics at some types, and text of numbers is not the same in all of its versions.
    #[test]
    fn only_types_that_records_have_are_cast_to() {
        for kind in [
            "tinyint unsigned",
            "smallint unsigned",
            "utinyint",
            "uint1",
            "uint2",
            "uinteger",
            "ubigint",
            "hugeint",
            "uhugeint",
            "time",
            "date",
            "timestamp",
            "interval",
            "text",
            "blob",
            "double[]",
        ] {
            for cast in ["cast", "try_cast"] {
                let error = evaluated(&format!("{cast}(y as {kind}) is not null")).unwrap_err();
                assert!(
                    error.contains("casts to a type that records do not have"),
                    "{kind}: {error}"
                );
            }
        }
        for kind in
            ["tinyint", "smallint", "integer", "bigint", "int1", "real", "double", "boolean"]
        {
            let found = evaluated(&format!("cast(t as {kind}) is not null"));
            assert_eq!(found, Ok(DataType::Boolean), "{kind}");
        }
    }

    /// The longest expressions that a study file may have, on a test's 2 MiB of stack.
    #[test]
    fn what_nests_deeply_is_evaluated_or_refused() {
        for text in [
            format!("t > 0{}", " AND t > 0".repeat(124)),
            format!("t{} > 0", "+1".repeat(248)),
            format!("t > 0{}", " IS NULL".repeat(248)),
            format!("{}t{} > 0", "(".repeat(20), ")".repeat(20)),
        ] {
            assert_eq!(evaluated(&text), Ok(DataType::Boolean), "{text}");
        }
        // Claims that no study file has: they may come from a manifest.
        let error = evaluated(&format!("t > 0{}", " AND t > 0".repeat(4000))).unwrap_err();
        assert_eq!(error, "has 16003 words and symbols");
        for text in [
            format!("{}t > 0{}", "(".repeat(248), ")".repeat(248)),
            format!("{}t > 0", "NOT ".repeat(496)),
            format!("0 < {}t", "- ".repeat(496)),
            format!("0 < {}t{}", "abs(".repeat(160), ")".repeat(160)),
            format!("0 < {}1{}", "CASE WHEN t > 0 THEN ".repeat(60), " END".repeat(60)),
            format!("{}t{}", "[".repeat(248), "]".repeat(248)),
        ] {
            let error = evaluated(&text).unwrap_err();
            assert!(error.starts_with("is not a SQL expression"), "{error}");
        }
    }
}
