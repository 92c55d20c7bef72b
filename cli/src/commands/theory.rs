//! `regretta theory`: the paper's constants in three forms, and Lemma 1's exact coverage.

use clap::Args;
use serde::Serialize;
use theory::{Delta, Form, lemma1, theorem2};

use crate::exit::BadInput;
use crate::table::{Table, number, significant};

/// Print the paper's constants in three forms, and Lemma 1's exact coverage
///
/// Lemma 1's constants and coverage are those given t observations; iota_{t-1} and zeta_t are those of
/// Theorem 2's evaluation t.
///
/// `printed` is the statement's own line, `corrected` the same proof with the factor N restored in
/// the variance of the posterior mean, `sharp` the quantile of the exact law.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta theory --n 500 --t 20 --delta 0.1
  regretta theory --n 200 --t 20 --delta 0.1 --json")]
pub(crate) struct Arguments {
    /// Number of training functions N, up to 10^12
    #[arg(long, short, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    n: u64,
    /// Observations t for Lemma 1, and the evaluation t of iota_{t-1} and zeta_t in Theorem 2
    #[arg(long, short, value_name = "T", value_parser = step, allow_negative_numbers = true)]
    t: u32,
    /// Failure probability, strictly between 0 and 1
    #[arg(long, short, value_name = "DELTA", value_parser = number_between, allow_negative_numbers = true)]
    delta: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Beyond this the exact laws lose digits.
const MOST: u64 = 1_000_000_000_000;

fn whole(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|&n| n <= MOST);
    number.ok_or_else(|| "give a whole number from 0 to 1000000000000, digits only".to_owned())
}

fn step(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "give a whole number from 0 to 4294967295, digits only".to_owned())
}

fn number_between(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "give a number strictly between 0 and 1, such as 0.1".to_owned())
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
        return Err(BadInput(format!(
            "N = {n} is too small at t = {t}: Lemma 1 asks for N >= T + 2 with t < T; use N >= {}",
            u64::from(t) + 3
        )));
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
    let delta = significant(*delta, 10);
    let head = format!("N = {n}, t = {t}, delta = {delta}");
    let mut table = Table::new(&[&head, "printed", "corrected", "sharp"]);
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
    table.row(forms("Lemma 1: error of the mean below a_t", &report.a));
    table.row(interval("Lemma 1: variance ratio above (1 - 2 sqrt(b_t))", false));
    table.row(interval("... and below (1 + 2 sqrt(b_t) + 2 b_t)", true));
    table.row(forms("Theorem 2: iota_{t-1}", &report.iota));
    table.row(policy("Theorem 2: zeta_t, weight of GP-UCB", &report.zeta));
    table.row(policy("exact P(mean bound holds)", &coverage.mean));
    table.row(vec!["exact P(variance bounds hold)".to_owned(), both.clone(), both]);
    table.row(policy("exact P(both hold)", &coverage.joint));
    format!("{table}\n{}", notes(report).join("\n"))
}

/// What the numbers mean, and why some are missing.
fn notes(report: &Report) -> Vec<String> {
    let &Report { n, t, delta, .. } = report;
    let mut notes = Vec::new();
    if let Some(joint) = report.exact_coverage.joint.printed {
        let required = significant(1.0 - delta, 10);
        let verdict = if joint < 1.0 - delta { "false" } else { "true" };
        notes.push(format!(
            "Lemma 1 as printed asks for P(both) >= {required}: here it is {verdict} ({joint:.6}), for a \
             design fixed in advance, at an unobserved x, over y_t too."
        ));
    }
    if report.a.printed.is_none() {
        notes.push(format!("a_t exists from N = t + 3 = {} on.", u64::from(t) + 3));
    }
    if t == 0 {
        notes.push("iota_{t-1} and zeta_t belong to an evaluation t >= 1.".to_owned());
    } else if let Ok(level) = Delta::new(delta) {
        let least = theorem2::least_n(t, level);
        if n < least {
            notes.push(format!(
                "Theorem 2 asks for N >= 4 log(6/delta) + T + 2, that is N >= {least} for T = {t}; \
                 zeta_t exists while N - t > 4 log(6/delta)."
            ));
        }
    }
    notes
}
