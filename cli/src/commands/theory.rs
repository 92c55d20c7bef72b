//! `regretta theory`: the paper's constants in three forms, and Lemma 1's exact coverage.

use clap::Args;
use serde::Serialize;
use theory::{Delta, Form, lemma1, theorem2};

use crate::exit::BadInput;
use crate::table::{Table, number};

/// Print the paper's constants in three forms, and Lemma 1's exact coverage
///
/// `printed` is the statement's own line, `corrected` the same proof with the factor N restored in
/// the variance of the posterior mean, `sharp` the quantile of the exact law.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta theory --n 500 --t 20 --delta 0.1
  regretta theory --n 200 --t 20 --delta 0.1 --json")]
pub(crate) struct Arguments {
    /// Number of training functions N
    #[arg(long, short, value_name = "N")]
    n: u64,
    /// Observations t for Lemma 1, and the evaluation t of iota_{t-1} and zeta_t in Theorem 2
    #[arg(long, short, value_name = "T")]
    t: u32,
    /// Failure probability, strictly between 0 and 1
    #[arg(long, short, value_name = "DELTA", allow_negative_numbers = true)]
    delta: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Forms {
    printed: Option<f64>,
    corrected: Option<f64>,
    sharp: Option<f64>,
}

#[derive(Serialize)]
struct PolicyForms {
    printed: Option<f64>,
    corrected: Option<f64>,
}

#[derive(Serialize)]
struct Intervals {
    printed: Option<(f64, f64)>,
    sharp: Option<(f64, f64)>,
}

#[derive(Serialize)]
struct Coverage {
    mean: PolicyForms,
    variance: Option<f64>,
    joint: PolicyForms,
}

#[derive(Serialize)]
struct Report {
    #[serde(rename = "N")]
    n: u64,
    t: u32,
    delta: f64,
    a: Forms,
    b: Option<f64>,
    variance_interval: Intervals,
    iota: Forms,
    zeta: PolicyForms,
    exact_coverage: Coverage,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let report = report(arguments)?;
    if arguments.json { super::print_json(&report) } else { super::print(&text(&report)) }
}

fn report(&Arguments { n, t, delta, .. }: &Arguments) -> Result<Report, BadInput> {
    let level = Delta::new(delta).map_err(|error| BadInput(error.to_string()))?;
    if n < u64::from(t) + 2 {
        let least = u64::from(t) + 2;
        let why =
            format!("N = {n} is below t + 2 = {least}, which Lemma 1 asks for; use N >= {least}");
        return Err(BadInput(why));
    }
    let forms = |f: &dyn Fn(Form) -> Option<f64>| Forms {
        printed: f(Form::Printed),
        corrected: f(Form::Corrected),
        sharp: f(Form::Sharp),
    };
    let policy = |f: &dyn Fn(Form) -> Option<f64>| PolicyForms {
        printed: f(Form::Printed),
        corrected: f(Form::Corrected),
    };
    Ok(Report {
        n,
        t,
        delta,
        a: forms(&|form| lemma1::a(n, t, level, form)),
        b: lemma1::b(n, t, level),
        variance_interval: Intervals {
            printed: lemma1::variance_interval(n, t, level, Form::Printed),
            sharp: lemma1::variance_interval(n, t, level, Form::Sharp),
        },
        iota: forms(&|form| theorem2::iota(n, t, level, form)),
        zeta: policy(&|form| theorem2::zeta(n, t, level, form)),
        exact_coverage: Coverage {
            mean: policy(&|form| lemma1::coverage_mean(n, t, level, form)),
            variance: lemma1::coverage_variance(n, t, level, Form::Printed),
            joint: policy(&|form| lemma1::coverage_joint(n, t, level, form)),
        },
    })
}

fn text(report: &Report) -> String {
    let Report { n, t, delta, .. } = report;
    let mut table = Table::new(&[
        &format!("N = {n}, t = {t}, delta = {delta}"),
        "printed",
        "corrected",
        "sharp",
    ]);
    let forms = |name: &str, f: &Forms| {
        vec![name.to_owned(), number(f.printed), number(f.corrected), number(f.sharp)]
    };
    let policy =
        |name: &str, f: &PolicyForms| vec![name.to_owned(), number(f.printed), number(f.corrected)];
    let end = |interval: Option<(f64, f64)>, upper: bool| {
        number(interval.map(|(low, high)| if upper { high } else { low }))
    };
    let Intervals { printed, sharp } = report.variance_interval;
    let interval = |name: &str, upper| {
        vec![name.to_owned(), end(printed, upper), end(printed, upper), end(sharp, upper)]
    };
    let coverage = &report.exact_coverage;
    let both = number(coverage.variance);
    table.row(forms("a_t              Lemma 1, error of the mean below", &report.a));
    table.row(interval("1 - 2 sqrt(b_t)  Lemma 1, variance ratio above", false));
    table.row(interval("1 + 2 sqrt(b_t) + 2 b_t            ... and below", true));
    table.row(forms("iota_{t-1}       Theorem 2", &report.iota));
    table.row(policy("zeta_t           Theorem 2, weight of GP-UCB", &report.zeta));
    table.row(policy("P(mean)          exact coverage of Lemma 1", &coverage.mean));
    table.row(vec!["P(variance)".to_owned(), both.clone(), both]);
    table.row(policy("P(both)", &coverage.joint));
    let required = 1.0 - delta;
    let Some(joint) = coverage.joint.printed else {
        return table.to_string();
    };
    let verdict = if joint < required { "false" } else { "true" };
    format!(
        "{table}\nLemma 1 as printed asks for P(both) >= {required}: here it is {verdict} \
         ({joint:.6}), for a design fixed in advance.\n"
    )
}
