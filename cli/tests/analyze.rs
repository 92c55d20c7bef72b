//! `regretta analyze` and `regretta table` on small datasets: further deltas, worst trials, shapes, and
//! what cannot be analysed.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Bench, STUDY, stderr};
use serde_json::Value;

fn sealed() -> Bench {
    let bench = Bench::new();
    bench.write("s.toml", STUDY);
    bench.run("s.toml", "out", &["--quiet"]);
    bench
}

fn verdicts(bench: &Bench, more: &[&str]) -> Vec<Value> {
    let output = bench.output(&[&["analyze", "out", "--json"], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn keys_are_those_that_others_rely_on() {
    let bench = sealed();
    let verdicts = verdicts(&bench, &[]);
    let keys = [
        "claim",
        "origin",
        "constants",
        "at",
        "among",
        "N",
        "t",
        "delta",
        "setting",
        "design",
        "method",
        "acquisition",
        "policy_constants",
        "cell",
        "trials",
        "failures",
        "violations",
        "coverage",
        "ci_low",
        "ci_high",
        "required",
        "log_e_refute",
        "log_e_confirm",
        "verdict",
        "reason",
        "exact_coverage",
        "tightness",
        "vacuous",
        "sentence",
    ];
    for row in &verdicts {
        let row = row.as_object().unwrap();
        assert!(keys.iter().all(|key| row.contains_key(*key)), "{row:?}");
        assert!(!row["sentence"].as_str().unwrap().is_empty());
    }
    let written = std::fs::read(bench.path("out/verdicts.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Vec<Value>>(&written).unwrap(), verdicts);
}

#[test]
fn a_further_delta_is_exploratory_and_needs_no_trials() {
    let bench = sealed();
    let before = verdicts(&bench, &[]);
    let after = verdicts(&bench, &["--delta", "0.02,0.1"]);
    let planned: Vec<&Value> = after.iter().filter(|row| row["exploratory"] == false).collect();
    assert!(planned.into_iter().eq(before.iter()), "planned rows keep their verdicts");
    let new: Vec<&Value> = after.iter().filter(|row| row["exploratory"] == true).collect();
    assert!(!new.is_empty() && new.iter().all(|row| row["delta"] == 0.02));
    // GP-UCB's policy uses delta: its cells cannot answer.
    assert!(new.iter().all(|row| row["acquisition"] != "gp-ucb"));
    assert!(new[0]["sentence"].as_str().unwrap().contains("Exploratory"));
    let output = bench.output(&["analyze", "out", "--delta", "0.02", "--quiet"]);
    assert!(stderr(&output).contains("delta = [0.02, 0.1]"), "{}", stderr(&output));
}

#[test]
fn where_all_policies_use_delta_the_grids_line_is_printed() {
    let bench = Bench::new();
    bench.write(
        "s.toml",
        &STUDY.replace("design = [\"fixed\", \"adaptive\"]", "").replace(", \"random\"", ""),
    );
    bench.run("s.toml", "out", &["--quiet"]);
    let output = bench.output(&["analyze", "out", "--delta", "0.2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("[grid]\ndelta = [0.1, 0.2]"), "{}", stderr(&output));
    let output = bench.output(&["analyze", "out", "--delta", "1.5"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn verdicts_alone_are_those_of_the_whole_analysis() {
    let bench = sealed();
    let whole = std::fs::read(bench.path("out/verdicts.json")).unwrap();
    for name in ["verdicts.json", "report.html", "recheck.py"] {
        std::fs::remove_file(bench.path("out").join(name)).unwrap();
    }
    for name in ["tables", "figures"] {
        std::fs::remove_dir_all(bench.path("out").join(name)).unwrap();
    }
    let output = bench.output(&["analyze", "out", "--only", "verdicts"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(std::fs::read(bench.path("out/verdicts.json")).unwrap() == whole);
    for name in ["report.html", "recheck.py", "tables", "figures"] {
        assert!(!bench.path("out").join(name).exists(), "{name}");
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("claims were tested") && text.contains("lemma1.mean"), "{text}");
    assert!(text.contains("verdicts.json") && !text.contains("report.html"), "{text}");
    // Digests are not compared first, but what cannot be read is found to be damaged.
    let part = bench.path("out/records/part-00000.parquet");
    let mut bytes = std::fs::read(&part).unwrap();
    let third = bytes.len() / 3;
    bytes[third..2 * third].fill(0);
    std::fs::write(&part, bytes).unwrap();
    let output = bench.output(&["analyze", "out", "--only", "verdicts"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("was changed since it was sealed"), "{}", stderr(&output));
}

#[test]
fn the_worst_trials_have_addresses() {
    let bench = sealed();
    let arguments = ["analyze", "out", "--worst", "5", "--claim", "theorem2.ucb", "--json"];
    let output = bench.output(&arguments);
    let trials: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(trials.len(), 5);
    let used: Vec<f64> = trials.iter().map(|trial| trial["used"].as_f64().unwrap()).collect();
    assert!(used.is_sorted_by(|a, b| a >= b) && used[0] < 1.0, "{used:?}");
    assert_eq!(trials[0]["address"].as_str().unwrap().split('/').count(), 3);
    let output = bench.output(&["analyze", "out", "--worst", "5", "--claim", "theorem2.uc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean theorem2.ucb?"), "{}", stderr(&output));
}

#[test]
fn tables_take_the_shape_that_is_asked_for() {
    let bench = sealed();
    let table = |more: &[&str]| {
        let fixed = ["table", "out", "--claim", "lemma1.mean", "--rows", "N", "--cols", "t"];
        bench.output(&[&fixed, more].concat())
    };
    let conditions = ["--where", "constants=printed", "--where", "design=fixed"];
    let output = table(&[&conditions[..], &["--format", "csv"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let head = text.lines().next().unwrap();
    assert_eq!(head, "N,t=1,t=1_se,t=5,t=5_se");
    assert_eq!(text.lines().count(), 3);
    let latex = table(&[&conditions[..], &["--format", "tex", "--caption", "Mine"]].concat());
    let latex = String::from_utf8(latex.stdout).unwrap();
    assert!(latex.contains("\\toprule") && latex.contains("Mine") && latex.contains("digest"));
    // Several verdicts at one place: what would separate them is named.
    let output = table(&["--where", "design=fixed"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("differ in constants"), "{}", stderr(&output));
    let output = table(&["--where", "N=61"]);
    assert!(stderr(&output).contains("valid are 60, 200"), "{}", stderr(&output));
}

#[test]
fn a_summary_has_verdicts_from_its_counts() {
    let bench = Bench::new();
    bench.write("s.toml", STUDY);
    bench.run("s.toml", "whole", &["--quiet"]);
    bench.write(
        "t.toml",
        &STUDY.replace("replicates = 300", "replicates = 300\ndetail = \"summary\""),
    );
    bench.run("t.toml", "out", &["--quiet"]);
    let whole = std::fs::read(bench.path("whole/verdicts.json")).unwrap();
    let whole: Vec<Value> = serde_json::from_slice(&whole).unwrap();
    let counted = |rows: &[Value]| -> Vec<String> {
        let rows =
            rows.iter().filter(|row| row["log_e_refute"].is_number() && row["mean"].is_null());
        rows.map(|row| format!("{} {} {}", row["claim"], row["violations"], row["log_e_confirm"]))
            .collect()
    };
    assert_eq!(counted(&verdicts(&bench, &[])), counted(&whole));
    let output = bench.output(&["analyze", "out", "--delta", "0.3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("summary"), "{}", stderr(&output));
}

#[test]
fn stopped_studies_have_confidence_sequences_and_no_tests_of_means() {
    let bench = Bench::new();
    let replicates = "replicates = { batch = 100, max = 400 }";
    bench.write("s.toml", &STUDY.replace("replicates = 300", replicates));
    bench.run("s.toml", "out", &["--quiet"]);
    for row in verdicts(&bench, &[]) {
        if row["claim"] == "lemma1.unbiased-mean" {
            assert_eq!(row["verdict"], "not-applicable");
            assert!(row["reason"].as_str().unwrap().contains("fixed number"), "{row}");
        } else if row["coverage"].is_number() && row["ci_low"].is_number() {
            assert_eq!(row["interval"], "confidence-sequence");
        }
    }
}

#[test]
fn damaged_datasets_are_named() {
    let bench = sealed();
    let refused = |code: i32, words: &[&str]| {
        let output = bench.output(&["analyze", "out"]);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        for word in words {
            assert!(stderr(&output).contains(word), "{word}: {}", stderr(&output));
        }
    };
    let part = bench.path("out/records/part-00000.parquet");
    let whole = std::fs::read(&part).unwrap();
    std::fs::write(&part, &whole[..whole.len() / 2]).unwrap();
    refused(3, &["part-00000.parquet", "was changed since it was sealed"]);
    std::fs::remove_file(&part).unwrap();
    refused(3, &["part-00000.parquet is missing"]);
    std::fs::write(&part, b"PAR1 but not really PAR1").unwrap();
    refused(3, &["part-00000.parquet"]);
    std::fs::write(&part, &whole).unwrap();

    let study = std::fs::read_to_string(bench.path("out/study.toml")).unwrap();
    let replace = |from: &str, to: &str| {
        std::fs::write(bench.path("out/study.toml"), study.replace(from, to)).unwrap();
    };
    replace("seed = 7", "seed = 8");
    refused(3, &["study.toml", "seed 8", "seed 7"]);
    replace("delta = [0.1]", "delta = [0.1, 0.2]");
    refused(3, &["study.toml was changed since the dataset was sealed"]);
    replace("", "");

    let manifest = std::fs::read_to_string(bench.path("out/manifest.json")).unwrap();
    let newer = manifest.replace("\"schema\": 2", "\"schema\": 9");
    std::fs::write(bench.path("out/manifest.json"), newer).unwrap();
    refused(2, &["schema 9"]);
    let wrong = manifest.replace("\"method\": \"random\"", "\"method\": \"known-prior\"");
    std::fs::write(bench.path("out/manifest.json"), &wrong).unwrap();
    refused(3, &["manifest.json was changed since it was sealed"]);
    std::fs::write(bench.path("out/manifest.json"), common::resealed(&wrong)).unwrap();
    refused(3, &["does not describe that cell"]);
    std::fs::remove_file(bench.path("out/manifest.json")).unwrap();
    refused(2, &["holds no dataset"]);
}

#[test]
fn claims_that_cannot_be_evaluated_are_refused_before_anything_runs() {
    let bench = Bench::new();
    let cases = [
        ("y + 1", "delta", "not a condition"),
        ("best_sample_regrets <= 1", "delta", "did you mean best_sample_regret?"),
        ("best_sample_regret <=", "delta", "not a SQL expression"),
        ("max(y) > 0", "delta", "aggregate"),
        ("y > 0", "epsilon", "names \"epsilon\""),
        ("y > 0", "'half'", "no number"),
    ];
    for (holds, budget, reason) in cases {
        let claim = format!(
            "{STUDY}\n[[claim]]\nid = \"mine\"\nholds = \"{holds}\"\nbudget = \"{budget}\"\n"
        );
        bench.write("s.toml", &claim);
        let output = bench.output(&["run", "s.toml", "--out", "out"]);
        assert_eq!(output.status.code(), Some(2), "{holds}: {}", stderr(&output));
        let message = stderr(&output);
        assert!(message.contains(reason) && message.contains("claim mine"), "{holds}: {message}");
        assert!(!bench.path("out").exists(), "{holds}");
    }
}

#[test]
fn own_claims_are_counted_as_the_registrys_are() {
    let bench = Bench::new();
    // The registry's own predicates, written in SQL.
    let claims = r#"
[[claim]]
id = "mine.simple"
holds = "simple_regret <= best_sample_regret + 2 * sqrt(2 * ln(1 / delta)) * sigma"
budget = "delta"
[[claim]]
id = "mine.always"
holds = "best_sample_regret <= f_range"
budget = "delta / 2"
quantifier = "all t"
[[claim]]
id = "mine.zero"
holds = "y > -100"
budget = 0
"#;
    // As long as they may be, in the two forms that nest deepest in an evaluator.
    let deep = [format!("t{} > 0", "+1".repeat(248)), format!("t > 0{}", " AND t > 0".repeat(124))];
    let claim = |(at, holds): (usize, &String)| {
        format!("[[claim]]\nid = \"mine.deep-{at}\"\nholds = \"{holds}\"\nbudget = 0.5\n")
    };
    let deep: String = deep.iter().enumerate().map(claim).collect();
    bench.write("s.toml", &format!("{STUDY}{claims}{deep}"));
    bench.run("s.toml", "out", &["--quiet"]);
    let verdicts = verdicts(&bench, &[]);
    let of = |claim: &str| -> Vec<(String, Value, Value, Value)> {
        let rows = verdicts.iter().filter(|row| row["claim"] == claim);
        let mut rows: Vec<_> = rows
            .map(|row| {
                let cell = row["cell"].as_str().unwrap().to_owned();
                (cell, row["t"].clone(), row["violations"].clone(), row["log_e_confirm"].clone())
            })
            .collect();
        rows.sort_by_key(|row| (row.0.clone(), row.1.as_u64()));
        rows
    };
    assert_eq!(of("mine.simple"), of("lemma5.simple"));
    let always = of("mine.always");
    assert!(always.iter().all(|row| row.1.is_null() && row.2 == 0), "{always:?}");
    let zero = verdicts.iter().find(|row| row["claim"] == "mine.zero").unwrap();
    assert_eq!(zero["verdict"], "undecided", "a budget of 0 is never confirmed");
    for claim in ["mine.deep-0", "mine.deep-1"] {
        let rows = of(claim);
        assert!(!rows.is_empty() && rows.iter().all(|row| row.2 == 0), "{rows:?}");
    }
}
