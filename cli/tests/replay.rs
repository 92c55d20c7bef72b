//! `regretta replay`: a trial is the same without a dataset, and its trace can be checked by hand.

mod common;
#[path = "replay/traced.rs"]
mod traced;

use std::fs;

use analysis::dataset::Reader;
use common::{Bench, STUDY, stderr};
use serde_json::Value;
use study::record::{COLUMNS, Kind};
use traced::{Traced, near};

const WHITE: &str = r#"{ kind = "sum", terms = [{ kind = "matern52", lengthscale = 0.3 }, { kind = "white", variance = 0.1 }] }"#;

/// All methods on a prior with a white part.
fn study() -> String {
    let kernel = r#"{ kind = "squared-exponential", lengthscale = 0.2 }"#;
    STUDY
        .replace(kernel, WHITE)
        .replace("replicates = 300", "replicates = 10")
        .replace(
            "noise_variance",
            "mean = { kind = \"sine\", amplitude = 0.7, frequency = 1.0 }\nnoise_variance",
        )
        .replace("N = [60, 200]", "N = [60]")
        .replace(r#"["pem-bo", "random"]"#, r#"["pem-bo", "known-prior", "random"]"#)
        + "acquisition = [\"gp-ucb\", \"pi\"]\n"
}

fn replay(bench: &Bench, address: &str, more: &[&str]) -> Value {
    let output = bench.output(&[&["replay", "study.toml", address, "--json"], more].concat());
    assert!(output.status.success(), "{address}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn refusal(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.output(&[&["replay", "study.toml"], arguments].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

/// The plan's cells: id and label.
fn cells(bench: &Bench) -> (String, Vec<(String, String)>) {
    let output = bench.output(&["plan", "study.toml", "--json"]);
    let plan: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let cells = plan["cells"].as_array().expect("cells");
    let cells = cells.iter().map(|cell| (text(&cell["cell"]), text(&cell["label"]))).collect();
    (text(&plan["study"]), cells)
}

/// The cell whose label begins so.
fn address(bench: &Bench, label: &str, replicate: u64) -> String {
    let (study, cells) = cells(bench);
    let cell =
        cells.iter().find(|(_, found)| found.starts_with(label)).expect("a cell of that label");
    format!("{study}/{}/{replicate}", cell.0)
}

#[test]
fn a_replayed_trial_is_the_one_in_the_dataset() {
    let bench = Bench::new();
    bench.write("study.toml", &study());
    bench.run("study.toml", "out", &["--quiet"]);
    let (study, _) = cells(&bench);
    let mut compared = 0;
    for batch in Reader::open(&bench.path("out")).expect("a dataset") {
        let batch = batch.expect("records");
        let replicate = 3;
        let told = replay(&bench, &format!("{study}/{}/{replicate}", batch.cell()), &[]);
        let rows = (0..batch.len()).filter(|&row| batch.replicates()[row] == replicate);
        for (record, row) in told["records"].as_array().expect("records").iter().zip(rows) {
            assert_eq!(record["t"], batch.checkpoints()[row]);
            assert_eq!(record["status"], "ok");
            for (values, column) in batch.columns().iter().zip(COLUMNS) {
                let stored = match column.kind {
                    Kind::Bool => values.bools().nth(row).flatten().map(Value::from),
                    Kind::Integer => values.integers().nth(row).flatten().map(Value::from),
                    Kind::Float => values.floats().nth(row).flatten().map(Value::from),
                };
                assert_eq!(record[column.name], stored.unwrap_or_default(), "{}", column.name);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 6 * 2 * COLUMNS.len(), "six cells, two checkpoints");
}

#[test]
fn text_shows_the_trial_and_its_claims() {
    let bench = Bench::new();
    bench.write("study.toml", &study());
    let address = address(&bench, "pem-bo gp-ucb", 2);
    let output = bench.output(&["replay", "study.toml", &address]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        format!("trial {address} of study \"small\", seed 7\n").as_str(),
        "cell   pem-bo gp-ucb, N = 60, delta = 0.1, policy_constants = printed\n",
        "prior  M = 20 points in dimension 1, rank ",
        "best_sample_regret  simple_regret",
        "\nclaims: ",
        "lemma1.mean",
        "theorem2.ucb",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let claims = replay(&bench, &address, &[])["claims"].clone();
    let outcomes: Vec<&str> = claims
        .as_array()
        .expect("claims")
        .iter()
        .map(|row| row["outcome"].as_str().expect("text"))
        .collect();
    let violated = outcomes.iter().take_while(|outcome| **outcome == "violated").count();
    assert_eq!(violated, outcomes.iter().filter(|outcome| **outcome == "violated").count());
    assert!(outcomes.len() > 40 && outcomes.contains(&"holds"), "{outcomes:?}");
    assert!(text.contains(&format!("claims: {violated} violated, ")), "{text}");
}

#[test]
fn addresses_that_are_not_of_the_study_are_refused() {
    let bench = Bench::new();
    bench.write("study.toml", &study());
    let (id, cells) = cells(&bench);
    let (cell, label) = &cells[0];
    let said = refusal(&bench, &[&format!("0123456789ab/{cell}/0")]);
    assert!(said.contains("of study 0123456789ab") && said.contains(&id), "{said}");
    assert!(said.contains("(\"small\", seed 7)"), "{said}");
    let said = refusal(&bench, &[&format!("{id}/0123456789abcdef/0")]);
    assert!(said.contains("has no cell 0123456789abcdef"), "{said}");
    assert!(said.contains(&format!("{cell}  {label}")), "{said}");
    let slip = format!("{}{}", &cell[..15], if cell.ends_with('0') { '1' } else { '0' });
    let said = refusal(&bench, &[&format!("{id}/{slip}/0")]);
    assert!(said.contains(&format!("did you mean {cell}?")), "{said}");
    let said = refusal(&bench, &[&format!("{id}/{cell}/10")]);
    assert!(said.contains("use a replicate from 0 to 9, not 10"), "{said}");
    assert!(refusal(&bench, &[&format!("{id}/{cell}")]).contains("2 parts and not 3"));
    let good = format!("{id}/{cell}/0");
    fs::create_dir(bench.path("full")).expect("created");
    bench.write("full/something", "");
    let said = refusal(&bench, &[&good, "--trace", "full"]);
    assert!(said.contains("full exists and is not an empty folder"), "{said}");
    assert!(refusal(&bench, &[&good, "--trace", "study.toml"]).contains("give --trace a new one"));
}

/// The true posterior and K of the record, from factor, x, y and mu alone.
fn check_truth(traced: &Traced, report: &Value) {
    let horizon = traced.steps.len();
    for t in 0..=horizon {
        for point in 0..traced.mu.len() {
            let (mean, variance, _) = traced.posterior(t, point);
            let told = traced.truth[&(t, point)];
            near(told.0, mean, "mu_t");
            near(told.1, variance, "k_t");
        }
    }
    for record in report["records"].as_array().expect("records") {
        let number = |key: &str| record[key].as_f64().expect("a number");
        let t = number("t") as usize;
        let tau = number("tau") as usize;
        let x = traced.steps[tau - 1].0;
        let (mean, variance, _) = traced.posterior(tau - 1, x);
        near(number("mu_tau"), mean, "mu_{tau-1}(x_tau)");
        near(number("k_tau"), variance, "k_{tau-1}(x_tau)");
        near(number("k_xy"), traced.posterior(t, x).2, "K");
        let best = traced.f.iter().copied().max_by(f64::total_cmp);
        assert_eq!(Some(number("f_star")), best);
        assert_eq!((number("x") as usize, number("y")), traced.steps[t - 1]);
        assert_eq!(number("f"), traced.f[traced.steps[t - 1].0]);
    }
}

/// The estimator interpolates, its steps are those of a projection, and its argmax is the next point.
fn check_estimator(traced: &Traced, report: &Value) {
    let at = |t: usize, i: usize| traced.estimate[&(t, i)];
    let policy = &report["parameters"];
    let n = policy["N"].as_f64();
    for (t, &(x, y)) in traced.steps.iter().enumerate() {
        let unseen = |i: &usize| traced.steps[..t].iter().all(|(seen, _)| seen != i);
        if let Some(told) = traced.acquisition[t] {
            let record = &report["records"][0];
            let value = |i: usize| {
                let (mean, variance) = at(t, i);
                match traced.zeta[t] {
                    Some(zeta) => mean + zeta * variance.sqrt(),
                    None => (mean - record["target"].as_f64().expect("a target")) / variance.sqrt(),
                }
            };
            let best = (0..traced.mu.len())
                .filter(unseen)
                .max_by(|&i, &j| value(i).total_cmp(&value(j)).then(j.cmp(&i)));
            assert_eq!(best, Some(x), "the choice of x_{}", t + 1);
            near(told, value(x), "the acquisition value");
        }
        let Some(n) = n else { continue };
        assert_eq!(at(t + 1, x), (y, 0.0), "mu_hat interpolates");
        let residual = |t: usize, i: usize| at(t, i).1 * (n - t as f64 - 1.0);
        for i in (0..traced.mu.len()).filter(unseen) {
            // g_i^2/g_p^2 from the variances, and from the means.
            let share = (residual(t, i) - residual(t + 1, i)) / residual(t, x);
            let (moved, surprise) = (at(t + 1, i).0 - at(t, i).0, y - at(t, x).0);
            near(moved * moved, share * surprise * surprise, "the update");
        }
    }
}

#[test]
fn a_trace_can_be_checked_by_hand() {
    let bench = Bench::new();
    bench.write("study.toml", &study());
    for label in [
        "pem-bo gp-ucb",
        "pem-bo pi",
        "known-prior gp-ucb",
        "known-prior pi",
        "fixed design",
        "random",
    ] {
        let report = replay(&bench, &address(&bench, label, 4), &["--trace", "trace"]);
        let traced = Traced::take(&bench);
        assert_eq!(traced.steps.len(), 5);
        assert_eq!(traced.summary["points"], "all");
        assert_eq!(traced.summary["failure"], Value::Null);
        assert_eq!(traced.estimate.is_empty(), label == "random");
        assert_eq!(traced.acquisition[0].is_some(), label.contains(' ') && label != "fixed design");
        check_truth(&traced, &report);
        if label != "random" {
            check_estimator(&traced, &report);
        }
    }
}
