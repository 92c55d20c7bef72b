//! The binary as a user sees it: output, JSON keys, exit codes.

use std::process::{Command, Output};

fn regretta(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_regretta")).args(arguments).output().expect("the binary runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn json(arguments: &[&str]) -> serde_json::Value {
    let output = regretta(arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn refusal(arguments: &[&str]) -> String {
    let output = regretta(arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "errors go to stderr");
    String::from_utf8(output.stderr).expect("UTF-8")
}

fn close(value: &serde_json::Value, expected: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value - expected).abs() < 5e-7, "{value} against {expected}");
}

#[test]
fn theory_prints_constants_and_exact_coverage() {
    let report = json(&["theory", "--n", "200", "--t", "20", "--delta", "0.1", "--json"]);
    assert_eq!((report["N"].as_u64(), report["t"].as_u64()), (Some(200), Some(20)));
    close(&report["exact_coverage"]["mean"]["printed"], 0.874_386);
    close(&report["exact_coverage"]["variance"], 0.996_466);
    let report = json(&["theory", "--n", "500", "--t", "20", "--delta", "0.1", "--json"]);
    close(&report["a"]["printed"], 0.090_804_441_0);
    close(&report["a"]["corrected"], 3.811_927_635_3);
    close(&report["a"]["sharp"], 0.172_188_899);
    close(&report["iota"]["sharp"], 0.442_840_750);
    close(&report["zeta"]["corrected"], 5.541_926_125_5);
    close(&report["variance_interval"]["sharp"][1], 1.130_554_29);
    assert!(report["b"].is_number() && report["exact_coverage"]["joint"]["printed"].is_number());
}

#[test]
fn constants_that_do_not_exist_are_null() {
    let report = json(&["theory", "--n", "12", "--t", "10", "--delta", "0.1", "--json"]);
    assert!(report["a"]["printed"].is_null() && report["zeta"]["printed"].is_null());
    let report = json(&["theory", "--n", "50", "--t", "0", "--delta", "0.1", "--json"]);
    assert!(report["a"]["printed"].is_number() && report["iota"]["printed"].is_null());
}

#[test]
fn theory_in_text_says_whether_the_lemma_holds() {
    let text = stdout(&regretta(&["theory", "--n", "500", "--t", "20", "--delta", "0.1"]));
    assert!(text.contains("here it is false (0.849569)"), "{text}");
    let text = stdout(&regretta(&["theory", "--n", "500", "--t", "5", "--delta", "0.1"]));
    assert!(text.contains("here it is true"), "{text}");
    let text = stdout(&regretta(&["theory", "--n", "30", "--t", "20", "--delta", "0.1"]));
    assert!(text.contains("that is N >= 39 for T = 20"), "{text}");
}

#[test]
fn bad_input_is_refused_with_what_would_be_valid() {
    let delta = refusal(&["theory", "--n", "500", "--t", "20", "--delta", "1.5"]);
    assert!(delta.contains("delta = 1.5 is not a probability strictly between 0 and 1"), "{delta}");
    let negative = refusal(&["theory", "--n", "500", "--t", "20", "--delta", "-0.1"]);
    assert!(negative.contains("delta = -0.1"), "{negative}");
    let n = refusal(&["theory", "--n", "10", "--t", "20", "--delta", "0.1"]);
    assert!(n.contains("use N >= 23"), "{n}");
    let huge = refusal(&["theory", "--n", "18446744073709551615", "--t", "20", "--delta", "0.1"]);
    assert!(huge.contains("from 0 to 1000000000000"), "{huge}");
    assert!(
        refusal(&["theory", "--n", "-5", "--t", "2", "--delta", "0.1"]).contains("whole number")
    );
    assert!(
        refusal(&["theory", "--n", "50", "--t", "2", "--delta", "abc"]).contains("such as 0.1")
    );
    assert!(refusal(&["claims", "theorem2"]).contains("theorem2*"));
    assert!(refusal(&["claims", "lemma9.*"]).contains("no claim matches"));
    assert!(refusal(&["bench", "--only", "m7"]).contains("use one of m1000"));
    assert!(refusal(&["bench", "--seconds", "-1"]).contains("--seconds -1"));
    assert!(refusal(&["theroy"]).contains("theory"), "clap suggests the nearest command");
}

#[test]
fn every_claim_of_the_registry_is_listed() {
    let claims = json(&["claims", "--json"]);
    let claims = claims.as_array().expect("a list");
    assert_eq!(claims.len(), theory::claims::all().count());
    for key in ["id", "place", "origin", "statement", "latex", "hypotheses", "budget"] {
        assert!(claims.iter().all(|claim| claim[key].is_string()), "{key}");
    }
    let text = stdout(&regretta(&["claims", "theorem2.ucb"]));
    assert!(text.starts_with("theorem2.ucb\n") && text.contains("GP-UCB"), "{text}");
}

#[test]
fn the_doctor_finds_the_pinned_digest() {
    let report = json(&["doctor", "--json"]);
    assert_eq!(report["sound"], true);
    assert_eq!(report["numerics_digest"], worker::golden::DIGEST);
}

#[test]
fn bench_reports_trial_and_floor() {
    let rows = json(&["bench", "--only", "m162", "--seconds", "0", "--json"]);
    let row = &rows[0];
    assert_eq!((row["case"].as_str(), row["M"].as_u64()), (Some("m162"), Some(162)));
    assert_eq!((row["N"].as_u64(), row["T"].as_u64()), (Some(1800), Some(100)));
    let number = |key: &str| row[key].as_f64().expect("a number");
    for key in ["ms_per_trial", "floor_ms", "times_floor"] {
        assert!(number(key) > 0.0, "{key}");
    }
    assert!(number("rank") > 1.0);
}
