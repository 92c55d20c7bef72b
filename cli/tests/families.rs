//! Claims that are changed after trials exist: what was planned keeps its verdict, and what was written
//! down later counts only the replicates since.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::process::Output;
use std::time::{Duration, Instant};

use common::{Bench, STUDY, resealed, stderr};
use serde_json::Value;

/// Refuted at most places, though not at all.
const BOUND: &str = r#"
[[claim]]
id = "mine.bound"
holds = "best_sample_regret <= 0.3"
budget = "delta"
"#;

fn study(replicates: u64, bound: &str) -> String {
    let text = STUDY.replace("replicates = 300", &format!("replicates = {replicates}"));
    format!("{text}{}", BOUND.replace("0.3", bound))
}

fn json(bench: &Bench, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(bench.path(name)).unwrap()).unwrap()
}

fn verdicts(bench: &Bench) -> Vec<Value> {
    json(bench, "out/verdicts.json").as_array().unwrap().clone()
}

/// What a command says, without line breaks.
fn lead(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).replace('\n', " ")
}

/// The rows of a claim: planned, exploratory, and of earlier families.
fn of<'a>(rows: &'a [Value], claim: &str) -> [Vec<&'a Value>; 3] {
    let of = |kind: fn(&Value) -> bool| {
        rows.iter().filter(|row| row["claim"] == claim && kind(row)).collect()
    };
    [
        of(|row| row["exploratory"] == false && row["family"].is_null()),
        of(|row| row["exploratory"] == true),
        of(|row| row["family"].is_string()),
    ]
}

fn refuted(rows: &[&Value]) -> BTreeSet<(String, u64)> {
    let refuted = rows.iter().filter(|row| row["verdict"] == "refuted");
    refuted.map(|row| (row["cell"].to_string(), row["t"].as_u64().unwrap())).collect()
}

#[test]
fn a_reworded_claim_is_exploratory_and_its_refutation_stays() {
    let bench = Bench::new();
    bench.write("s.toml", &study(60, "0.3"));
    bench.run("s.toml", "out", &["--quiet"]);
    let before = verdicts(&bench);
    let first = json(&bench, "out/manifest.json");
    let [planned, exploratory, earlier] = of(&before, "mine.bound");
    assert!(exploratory.is_empty() && earlier.is_empty());
    let was = refuted(&planned);
    assert!((2..planned.len()).contains(&was.len()), "{was:?}");

    // The same file again marks nothing, whatever its comments say.
    bench.write("s.toml", &format!("# again\n{}", study(60, "0.3")));
    bench.run("s.toml", "out", &["--quiet"]);
    assert_eq!(verdicts(&bench), before);
    assert_eq!(json(&bench, "out/manifest.json").get("earlier_families"), None);

    bench.write("s.toml", &study(60, "1.0e6"));
    let output = bench.output(&["run", "s.toml", "--out", "out", "--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap().replace('\n', " ");
    let expected = format!("mine.bound at {} of {} places", was.len(), planned.len());
    assert!(said.contains("Refuted before the claims were changed"), "{said}");
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains(&format!("{} rows are exploratory", planned.len())), "{said}");
    let after = verdicts(&bench);
    let [now, exploratory, earlier] = of(&after, "mine.bound");
    assert_eq!(refuted(&earlier), was, "the earlier family keeps its verdicts");
    assert!(earlier.iter().all(|row| row["family"] == first["family"]["digest"]));
    assert!(earlier.iter().all(|row| row["replicates"] == Value::from(vec![0, 60])));
    assert_eq!((now.len(), exploratory.len()), (planned.len(), planned.len()));
    assert!(exploratory.iter().all(|row| row["trials"] == 60 && row["coverage"] == 1.0));
    for row in now {
        assert_eq!((&row["trials"], &row["verdict"]), (&0.into(), &"undecided".into()), "{row}");
        assert!(row["reason"].as_str().unwrap().contains("60 replicates existed"), "{row}");
    }
    // All other claims were planned before any trial, and still are.
    let others = |rows: &[Value]| -> Vec<Value> {
        rows.iter().filter(|row| row["claim"] != "mine.bound").cloned().collect()
    };
    let others = [others(&after), others(&before)];
    assert_eq!(others[0].len(), others[1].len());
    for (row, was) in others[0].iter().zip(&others[1]) {
        for key in ["claim", "cell", "t", "trials", "log_e_refute", "log_e_confirm", "replicates"] {
            assert_eq!(row[key], was[key], "{row}");
        }
        // There are more rows to decide among now, so that a decision can only be lost.
        assert!(row["verdict"] == was["verdict"] || row["verdict"] == "undecided", "{row}");
    }
    let families = json(&bench, "out/manifest.json")["earlier_families"].clone();
    assert_eq!(families.as_array().unwrap().len(), 1);
    assert_eq!(families[0]["digest"], first["family"]["digest"]);
    assert_eq!(families[0]["claims"]["own"][0]["holds"], "best_sample_regret <= 0.3");
    let replicates = families[0]["replicates"].as_object().unwrap();
    assert!(replicates.len() == 5 && replicates.values().all(|count| *count == 60));
    for file in ["report.html", "tables/summary.csv", "tables/summary.md"] {
        let text = std::fs::read_to_string(bench.path("out").join(file)).unwrap();
        assert!(text.contains("mine.bound (exploratory)"), "{file}");
        assert!(text.contains("mine.bound (earlier)"), "{file}");
    }

    // Later replicates are what the new wording was planned for.
    bench.write("s.toml", &study(160, "1.0e6"));
    bench.run("s.toml", "out", &["--quiet"]);
    let grown = verdicts(&bench);
    let [now, exploratory, earlier] = of(&grown, "mine.bound");
    assert!(now.iter().all(|row| row["trials"] == 100));
    assert!(now.iter().all(|row| row["replicates"] == Value::from(vec![60, 160])));
    assert!(exploratory.iter().all(|row| row["trials"] == 160));
    assert!(exploratory.iter().any(|row| row["verdict"] == "confirmed"));
    assert_eq!(refuted(&earlier), was);

    // Going back to what was planned first restores nothing.
    bench.write("s.toml", &study(160, "0.3"));
    bench.run("s.toml", "out", &["--quiet"]);
    let back = verdicts(&bench);
    let [now, exploratory, earlier] = of(&back, "mine.bound");
    assert!(now.iter().all(|row| row["trials"] == 0 && row["verdict"] == "undecided"));
    assert!(exploratory.iter().all(|row| row["trials"] == 160));
    assert_eq!(earlier.len(), 2 * planned.len(), "both wordings had replicates of their own");
    let manifest = json(&bench, "out/manifest.json");
    assert_eq!(manifest["earlier_families"].as_array().unwrap().len(), 2);
    assert_eq!(manifest["family"]["digest"], first["family"]["digest"]);
}

#[test]
fn another_budget_or_level_begins_anew() {
    let bench = Bench::new();
    bench.write("s.toml", &study(60, "0.3"));
    bench.run("s.toml", "out", &["--quiet"]);
    let was = refuted(&of(&verdicts(&bench), "mine.bound")[0]);
    let budget = study(60, "0.3").replace("budget = \"delta\"", "budget = 0.99");
    bench.write("s.toml", &budget);
    bench.run("s.toml", "out", &["--quiet"]);
    let rows = verdicts(&bench);
    let [now, exploratory, earlier] = of(&rows, "mine.bound");
    assert!(now.iter().all(|row| row["trials"] == 0));
    assert!(!exploratory.is_empty() && refuted(&earlier) == was);

    bench.write("s.toml", &budget.replace("seed = 7", "seed = 7\nalpha = 0.4"));
    bench.run("s.toml", "out", &["--quiet"]);
    let rows = verdicts(&bench);
    let [now, exploratory, earlier] = of(&rows, "lemma1.observed");
    assert!(now.iter().all(|row| row["trials"] == 0));
    assert!(!exploratory.is_empty() && !refuted(&earlier).is_empty());
}

#[test]
fn a_delta_that_is_added_later_is_exploratory() {
    let bench = Bench::new();
    bench.write("s.toml", STUDY);
    bench.run("s.toml", "out", &["--quiet"]);
    let before = verdicts(&bench);
    let both = STUDY.replace("delta = [0.1]", "delta = [0.1, 0.3]");
    bench.write("s.toml", &both);
    bench.run("s.toml", "out", &["--quiet"]);
    let rows = verdicts(&bench);
    let tested = |row: &&Value| row["replicates"].is_array();
    for row in rows.iter().filter(tested) {
        let new = row["delta"] == 0.3;
        // GP-UCB has cells of its own at another delta, without trials until then.
        let late = new && row["acquisition"] != "gp-ucb";
        let planned = row["exploratory"] == false;
        assert!(planned || late, "{row}");
        let expected = if late && planned { [300, 300] } else { [0, 300] };
        assert_eq!(row["replicates"], Value::from(expected.to_vec()), "{row}");
    }
    assert!(rows.iter().any(|row| row["exploratory"] == true && row["verdict"] == "confirmed"));
    // What was planned before counts as before.
    let counts = |row: &Value| format!("{} {} {}", row["claim"], row["cell"], row["log_e_refute"]);
    let old = |rows: &[Value]| -> Vec<String> {
        rows.iter().filter(|row| row["delta"] == 0.1).map(counts).collect()
    };
    assert_eq!(old(&rows), old(&before));
    assert!(rows.iter().all(|row| row["family"].is_null()), "nothing was taken away");
}

#[test]
fn a_change_between_two_runs_of_which_the_first_was_killed_is_recorded() {
    let bench = Bench::new();
    bench.write("s.toml", &study(4000, "0.3"));
    let mut child = bench.spawn(&["run", "s.toml", "--out", "out", "--shard-records", "64"]);
    let began = Instant::now();
    loop {
        let output = bench.output(&["plan", "s.toml", "--out", "out", "--json"]);
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        if plan["existing"]["trials_reused"].as_u64() > Some(0) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{plan}: {}", stderr(&output));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    bench.write("s.toml", &study(4000, "1.0e6"));
    bench.run("s.toml", "out", &["--quiet"]);
    let manifest = json(&bench, "out/manifest.json");
    let replicates = manifest["earlier_families"][0]["replicates"].as_object().unwrap().clone();
    assert!(!replicates.is_empty());
    for row in &of(&verdicts(&bench), "mine.bound")[0] {
        let existed = replicates.get(row["cell"].as_str().unwrap());
        let existed = existed.and_then(Value::as_u64).unwrap_or(0);
        assert_eq!(row["replicates"], Value::from(vec![existed, 4000]), "{row}");
        assert_eq!(row["trials"], 4000 - existed);
    }
}

#[test]
fn a_dataset_tells_of_a_change_although_the_ledger_is_lost() {
    let bench = Bench::new();
    bench.write("s.toml", &study(60, "0.3"));
    bench.run("s.toml", "out", &["--quiet"]);
    let first = json(&bench, "out/manifest.json");
    // An edited file beside the dataset is no other family: nothing would record it.
    bench.write("out/study.toml", &study(60, "1.0e6"));
    let output = bench.output(&["analyze", "out"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("was changed since the dataset was sealed"));
    std::fs::remove_dir_all(bench.path("out/.regretta")).unwrap();
    bench.write("s.toml", &study(60, "1.0e6"));
    bench.run("s.toml", "out", &["--quiet"]);
    let manifest = json(&bench, "out/manifest.json");
    assert_eq!(manifest["earlier_families"][0]["digest"], first["family"]["digest"]);
    let [now, exploratory, earlier] = of(&verdicts(&bench), "mine.bound").map(|rows| rows.len());
    assert_eq!((now, exploratory, earlier), (10, 10, 10));
}

#[test]
fn a_summary_counts_from_the_first_whole_batch_after_a_change() {
    let bench = Bench::new();
    let replicates =
        "replicates = { batch = 100, max = 250 }\nevidence = 1e300\ndetail = \"summary\"";
    let summary = STUDY.replace("replicates = 300", replicates);
    bench.write("s.toml", &summary);
    bench.run("s.toml", "out", &["--quiet"]);
    let later = summary.replace("delta = [0.1]", "delta = [0.1, 0.3]");
    bench.write("s.toml", &later.replace("max = 250", "max = 350"));
    bench.run("s.toml", "out", &["--quiet"]);
    let rows = verdicts(&bench);
    let late = rows.iter().filter(|row| row["delta"] == 0.3 && row["acquisition"] != "gp-ucb");
    let late: Vec<&Value> = late.filter(|row| row["replicates"].is_array()).collect();
    assert!(late.iter().any(|row| row["exploratory"] == true));
    assert!(late.iter().any(|row| row["exploratory"] == false));
    for row in late {
        let counted = row["trials"].as_u64().unwrap() + row["failures"].as_u64().unwrap();
        // The batch from 200 on was begun when the row was written down.
        let [first, count] = if row["exploratory"] == true { [0, 350] } else { [300, 50] };
        assert_eq!(row["replicates"], Value::from(vec![first, 350]), "{row}");
        assert!(counted <= count, "{row}");
        if row["claim"] == "lemma5.simple" {
            assert_eq!(counted, count, "{row}");
        }
    }
}

#[test]
fn a_summary_says_how_many_verdicts_it_no_longer_has() {
    let bench = Bench::new();
    let summary = STUDY.replace("replicates = 300", "replicates = 60\ndetail = \"summary\"");
    bench.write("s.toml", &format!("{summary}\n[claims]\ntest = [\"lemma5.*\"]\n"));
    bench.run("s.toml", "out", &["--quiet"]);
    let before = verdicts(&bench).len();
    bench.write("s.toml", &format!("{summary}\n[claims]\ntest = [\"lemma5.simple\"]\n"));
    let output = bench.output(&["run", "s.toml", "--out", "out", "--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = String::from_utf8(output.stdout).unwrap().replace('\n', " ");
    let gone = before - verdicts(&bench).len();
    assert!(gone > 0);
    assert!(said.contains(&format!("{gone} rows that were planned before")), "{said}");
}

/// To keep the best rows of a family is a choice by their trials.
#[test]
fn rows_that_are_taken_away_keep_their_share_of_the_level() {
    let bench = Bench::new();
    bench.write("s.toml", STUDY);
    bench.run("s.toml", "out", &["--quiet"]);
    let before = verdicts(&bench);
    let rows_of = |rows: &[Value], claim: &str| -> Vec<Value> {
        of(rows, claim)[0].iter().map(|row| (*row).clone()).collect()
    };
    let claims: BTreeSet<&str> = before.iter().map(|row| row["claim"].as_str().unwrap()).collect();
    let tempting = claims.iter().find(|claim| {
        let rows = rows_of(&before, claim);
        let tested = rows.iter().filter(|row| row["verdict"] != "not-applicable").count();
        let alone = libm::log(tested as f64 / 0.025);
        rows.iter()
            .any(|row| row["verdict"] == "undecided" && row["log_e_confirm"].as_f64() > Some(alone))
    });
    let tempting = tempting.expect("a claim that would be confirmed by itself");
    bench.write("s.toml", &format!("{STUDY}\n[claims]\ntest = [\"{tempting}\"]\n"));
    let output = bench.output(&["plan", "s.toml", "--out", "out"]);
    let plan = String::from_utf8(output.stdout).unwrap();
    assert!(plan.contains("are planned no longer and keep their share of the level"), "{plan}");
    bench.run("s.toml", "out", &["--quiet"]);
    let after = verdicts(&bench);
    let (kept, was) = (rows_of(&after, tempting), rows_of(&before, tempting));
    assert_eq!(kept.len(), was.len());
    for (row, was) in kept.iter().zip(&was) {
        assert_eq!(row["log_e_confirm"], was["log_e_confirm"], "{row}");
        assert!(row["verdict"] == was["verdict"] || row["verdict"] == "undecided", "{row}");
    }
    assert!(after.iter().all(|row| row["exploratory"] == false));
    // What was taken away keeps its verdicts.
    let refuted = |rows: &[Value]| -> usize {
        let others = rows.iter().filter(|row| row["claim"] != *tempting);
        others.filter(|row| row["verdict"] == "refuted").count()
    };
    assert!(refuted(&before) > 0);
    assert_eq!(refuted(&after), refuted(&before));
    // A claim without present rows says where they are.
    let gone = claims.iter().find(|claim| *claim != tempting).unwrap();
    let output = bench.output(&["table", "out", "--claim", gone, "--rows", "N", "--cols", "t"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("was tested by an earlier family"), "{said}");
    let family = said.split("family=").nth(1).unwrap().split(' ').next().unwrap();
    let claimed = |row: &&Value| row["claim"] == **gone;
    let digest = after.iter().find(claimed).unwrap()["family"].as_str().unwrap();
    assert!(digest.starts_with(family) && family.len() == 12, "{family}");
}

#[test]
fn records_without_the_workers_counts_are_refused() {
    let bench = Bench::new();
    bench.write("s.toml", &study(60, "0.3"));
    bench.run("s.toml", "out", &["--quiet"]);
    let mut manifest = json(&bench, "out/manifest.json");
    let files = manifest["files"].as_array_mut().unwrap();
    files.retain(|file| file["name"] != "counts.parquet");
    let text = std::fs::read_to_string(bench.path("out/manifest.json")).unwrap();
    let at = text.find("counts.parquet").unwrap();
    let (start, end) = (text[..at].rfind("    {").unwrap(), at + text[at..].find('{').unwrap());
    let text = format!("{}{}", &text[..start], &text[end - 4..]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["files"], manifest["files"]);
    bench.write("out/manifest.json", &resealed(&text));
    std::fs::remove_file(bench.path("out/counts.parquet")).unwrap();
    let output = bench.output(&["analyze", "out"]);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("no counts.parquet"), "{}", stderr(&output));
}

#[test]
fn a_late_row_is_tested_although_its_cell_had_stopped() {
    let bench = Bench::new();
    let batched = STUDY
        .replace("replicates = 300", "replicates = { batch = 100, max = 1000 }")
        .replace("design = [\"fixed\", \"adaptive\"]", "design = [\"fixed\"]");
    let study = |deltas: &str, more: &str| {
        let text = batched.replace("delta = [0.1]", deltas);
        format!("{text}\n[claims]\ntest = [\"lemma5.simple\", \"mine.*\"]\n{more}")
    };
    let claim = |bound: &str| BOUND.replace("0.3", bound);
    let cells = |bench: &Bench| -> BTreeSet<u64> {
        let manifest = json(bench, "out/manifest.json");
        let cells = manifest["cells"].as_array().unwrap().clone();
        cells.iter().map(|cell| cell["replicates"].as_u64().unwrap()).collect()
    };
    bench.write("s.toml", &study("delta = [0.1]", &claim("0.3")));
    bench.run("s.toml", "out", &["--quiet"]);
    assert_eq!(cells(&bench), [100].into());

    bench.write("s.toml", &study("delta = [0.1, 0.3]", &claim("0.3")));
    let output = bench.output(&["run", "s.toml", "--out", "out", "--quiet"]);
    assert!(stderr(&output).contains("are exploratory on the trials that exist"));
    assert_eq!(cells(&bench), [200].into());
    let rows = verdicts(&bench);
    let [planned, ..] = of(&rows, "lemma5.simple");
    for row in planned {
        let first = if row["delta"] == 0.3 { 100 } else { 0 };
        assert_eq!(row["replicates"], Value::from(vec![first, 200]), "{row}");
        assert_eq!(row["verdict"], "confirmed", "{row}");
    }

    // The workers do not count one's own claims: where one is late, its cell begins anew.
    bench.write("s.toml", &study("delta = [0.1, 0.3]", &claim("1.0e6")));
    bench.run("s.toml", "out", &["--quiet"]);
    assert_eq!(cells(&bench), [300].into());
    let rows = verdicts(&bench);
    let [planned, exploratory, earlier] = of(&rows, "mine.bound");
    assert!(planned.iter().all(|row| row["trials"] == 100), "{planned:?}");
    assert_eq!(exploratory.len(), planned.len());
    assert!(!earlier.is_empty());
    // And the next run of the same file adds nothing.
    bench.run("s.toml", "out", &["--quiet"]);
    assert_eq!((cells(&bench), verdicts(&bench)), ([300].into(), rows));
}

#[test]
fn an_earlier_claim_is_not_asked_of_cells_that_came_later() {
    let bench = Bench::new();
    // A probability for the N that there are, and for no larger one.
    let narrow =
        study(60, "0.3").replace("budget = \"delta\"", "budget = \"coalesce(N, 60) / 2000.0\"");
    bench.write("s.toml", &narrow);
    bench.run("s.toml", "out", &["--quiet"]);
    let before = verdicts(&bench).len();
    let wide = study(60, "1.0e6").replace("N = [60, 200]", "N = [60, 200, 2500]");
    bench.write("s.toml", &wide);
    bench.run("s.toml", "out", &["--quiet"]);
    let rows = verdicts(&bench);
    assert!(rows.len() > before);
    let [now, _, earlier] = of(&rows, "mine.bound");
    assert!(now.iter().any(|row| row["N"] == 2500));
    assert!(!earlier.is_empty() && earlier.iter().all(|row| row["N"] != 2500));

    // One that this version cannot evaluate is a row without a verdict.
    let text = std::fs::read_to_string(bench.path("out/manifest.json")).unwrap();
    let claims = json(&bench, "out/manifest.json")["earlier_families"][0]["claims"].clone();
    let digest = |claims: &Value| {
        let claims: study::family::Claims = serde_json::from_value(claims.clone()).unwrap();
        claims.digest().to_string()
    };
    let mut broken = claims.clone();
    broken["own"][0]["holds"] = "no_such_column <= 0.3".into();
    let text = text
        .replace("best_sample_regret <= 0.3", "no_such_column <= 0.3")
        .replace(&digest(&claims), &digest(&broken));
    bench.write("out/manifest.json", &resealed(&text));
    let output = bench.output(&["analyze", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = verdicts(&bench);
    let earlier = &of(&rows, "mine.bound")[2];
    assert!(!earlier.is_empty());
    let said = lead(&output);
    assert!(!said.contains("No statement is refuted"), "{said}");
    let count = format!("{} rows have no verdict", earlier.len());
    assert!(said.contains(&count) && said.contains("mine.bound (earlier)"), "{said}");
    for row in earlier {
        assert_eq!(row["verdict"], "not-applicable");
        assert!(row["reason"].as_str().unwrap().contains("no_such_column"), "{row}");
    }
}

/// One design, so that a claim has a row for each N and T.
fn base(n: &str, replicates: u64, holds: &str) -> String {
    let text = STUDY
        .replace("N = [60, 200]", n)
        .replace("replicates = 300", &format!("replicates = {replicates}"))
        .replace(
            "design = [\"fixed\", \"adaptive\"]\nmethod = [\"pem-bo\", \"random\"]",
            "design = \"fixed\"",
        );
    let claims = "[claims]\ntest = [\"lemma5.simple\", \"mine.*\"]\n";
    let holds = holds.replace('"', "\\\"");
    format!("{text}\n{claims}{}", BOUND.replace("best_sample_regret <= 0.3", &holds))
}

/// The words of a refutation may fail on what was not there when they were refuted.
#[test]
fn an_earlier_claim_is_not_asked_of_records_that_came_later() {
    const BEFORE: &str = "N = [60, 100]";
    for (condition, n, replicates) in [
        ("cast(N as tinyint) > 0", "N = [60, 100, 200]", 60),
        ("cast(replicate as tinyint) >= 0", BEFORE, 200),
    ] {
        let bench = Bench::new();
        let holds = format!("best_sample_regret <= 0.3 and {condition}");
        bench.write("s.toml", &base(BEFORE, 60, &holds));
        bench.run("s.toml", "out", &["--quiet"]);
        let was = refuted(&of(&verdicts(&bench), "mine.bound")[0]);
        assert!(was.len() > 1, "{was:?}");
        bench.write("s.toml", &base(n, replicates, "best_sample_regret <= 1.0e6"));
        let output = bench.output(&["run", "s.toml", "--out", "out", "--quiet"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let rows = verdicts(&bench);
        assert_eq!(refuted(&of(&rows, "mine.bound")[2]), was, "{condition}");
        let said = lead(&output);
        assert!(said.contains("Refuted before the claims were changed"), "{said}");
        assert!(!said.contains("rows have no verdict"), "{said}");
    }
}

#[test]
fn a_swept_key_that_a_tested_claim_names_stays() {
    const AXIS: &str = "\"prior.kernel.variance\" = [1.0]\n";
    let bench = Bench::new();
    let swept = |text: String| text.replace("delta = [0.1]\n", &format!("delta = [0.1]\n{AXIS}"));
    let named = base("N = [60, 100]", 60, "best_sample_regret <= 0.3 * \"prior.kernel.variance\"");
    bench.write("s.toml", &swept(named));
    bench.run("s.toml", "out", &["--quiet"]);
    let was = refuted(&of(&verdicts(&bench), "mine.bound")[0]);
    assert!(was.len() > 1, "{was:?}");
    // Reworded with and without the axis, at once and after another change.
    let reworded = base("N = [60, 100]", 60, "best_sample_regret <= 1.0e6");
    for _ in 0..2 {
        bench.write("s.toml", &reworded);
        let output = bench.output(&["run", "s.toml", "--out", "out", "--quiet"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains("grid.\"prior.kernel.variance\" was [1"), "{said}");
        assert!(said.contains("claim mine.bound"), "{said}");
        bench.write("s.toml", &swept(reworded.clone()));
        bench.run("s.toml", "out", &["--quiet"]);
        assert_eq!(refuted(&of(&verdicts(&bench), "mine.bound")[2]), was);
    }
    // An axis that no claim names may go.
    let other = Bench::new();
    other.write("s.toml", &swept(reworded.clone()));
    other.run("s.toml", "out", &["--quiet"]);
    other.write("s.toml", &reworded.replace("1.0e6", "1.0e5"));
    other.run("s.toml", "out", &["--quiet"]);
}

#[test]
fn claims_that_can_fail_on_records_are_refused_before_anything_runs() {
    let bench = Bench::new();
    let refused = [
        "cast(y * 10000000000.0 as integer) > 0",
        "cast(t * 100 as tinyint) > 0",
        "power(2, t - 3) > 0",
        "cast(N as tinyint) > 0",
        "cast(status as integer) > 1",
        "cast(y as time) is not null",
        "cast(y as tinyint unsigned) > 0",
        "cast(y as smallint unsigned) > 0",
        "cast(y as utinyint) > 0",
        "cast(y as uint1) > 0",
        "cast(y as uint2) > 0",
        "cast(y as uhugeint) > 0",
    ];
    for holds in refused {
        bench.write("s.toml", &base("N = [60, 200]", 60, holds));
        for command in ["plan", "run"] {
            let output = bench.output(&[command, "s.toml", "--out", "out"]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{holds}: {said}");
            assert!(said.contains("claim mine.bound: holds"), "{holds}: {said}");
            assert!(!said.contains("panicked"), "{holds}: {said}");
            assert!(!bench.path("out").exists(), "{holds}");
        }
    }
    for holds in [
        "try_cast(y * 10000000000.0 as integer) > 0",
        "try_cast(N as tinyint) > 0",
        "cast(N as smallint) > 0",
        "cast(t as tinyint) > 0",
        "cast(t as double) / 2 > 0 and cast(star_seen_tau as integer) >= 0",
        "power(2, t - 1) > 0 and power(2.0, t - 3) > 0 and power(y, 2) >= 0",
    ] {
        bench.write("s.toml", &base("N = [60, 200]", 60, holds));
        let output = bench.output(&["plan", "s.toml", "--out", "out"]);
        assert!(output.status.success(), "{holds}: {}", stderr(&output));
    }
}

/// Datasets come from anywhere, also with claims that this version would not run.
#[test]
fn a_claim_that_fails_on_records_keeps_no_other_from_its_verdict() {
    let bench = Bench::new();
    let other =
        "\n[[claim]]\nid = \"mine.other\"\nholds = \"try_cast(N as tinyint) > 0\"\nbudget = 0.3\n";
    let text = format!("{}{other}", base("N = [60, 200]", 60, "best_sample_regret <= 1.0e6"));
    bench.write("s.toml", &text);
    let output = bench.output(&["run", "s.toml", "--out", "out", "--quiet"]);
    assert!(lead(&output).contains("No statement is refuted under"), "{}", stderr(&output));
    let before = verdicts(&bench);
    let manifest = std::fs::read_to_string(bench.path("out/manifest.json")).unwrap();
    let study = |text: &str| study::file::Study::parse("study.toml", text).unwrap();
    let digest = |text: &str| study::family::Claims::of(&study(text)).digest().to_string();
    for (holds, reason) in [
        ("cast(N as tinyint) > 0", "conversion"),
        ("cast(N as tinyint unsigned) > 0", "casts to a type"),
        ("no_such_column > 0", "no_such_column"),
    ] {
        let edited = text.replace("try_cast(N as tinyint) > 0", holds);
        bench.write("out/study.toml", &edited);
        let manifest = manifest
            .replace("try_cast(N as tinyint) > 0", holds)
            .replace(&digest(&text), &digest(&edited));
        bench.write("out/manifest.json", &resealed(&manifest));
        let output = bench.output(&["analyze", "out"]);
        let errors = stderr(&output);
        assert!(output.status.success() && !errors.contains("panicked"), "{holds}: {errors}");
        let rows = verdicts(&bench);
        let others = |rows: &[Value]| -> Vec<Value> {
            rows.iter().filter(|row| row["claim"] != "mine.other").cloned().collect()
        };
        assert_eq!(others(&rows), others(&before), "{holds}");
        let failed = &of(&rows, "mine.other")[0];
        assert_eq!(failed.len(), 4);
        for row in failed {
            assert_eq!(
                (&row["verdict"], &row["unevaluated"]),
                (&"not-applicable".into(), &true.into())
            );
            let said = row["reason"].as_str().unwrap();
            assert!(
                said.contains("line ") && said.contains(holds) && said.contains(reason),
                "{said}"
            );
        }
        let said = lead(&output);
        assert!(said.contains("No statement that can be evaluated is refuted"), "{said}");
        assert!(said.contains("4 rows have no verdict") && said.contains("mine.other"), "{said}");
    }
}

/// A claim about all t is about the T of its family.
#[test]
fn another_t_makes_another_claim_about_all_t() {
    let bench = Bench::new();
    let all = |t: &str| {
        let text = study(60, "0.3").replace("T = [1, 5]", t);
        text.replace("budget = \"delta\"\n", "budget = \"delta\"\nquantifier = \"all t\"\n")
    };
    bench.write("s.toml", &all("T = [5]"));
    bench.run("s.toml", "out", &["--quiet"]);
    let was: Vec<Value> = of(&verdicts(&bench), "mine.bound")[0]
        .iter()
        .map(|row| row["violations"].clone())
        .collect();
    bench.write("s.toml", &all("T = [1, 5]"));
    bench.run("s.toml", "out", &["--quiet"]);
    let rows = verdicts(&bench);
    let [now, exploratory, earlier] = of(&rows, "mine.bound");
    assert!(now.iter().all(|row| row["trials"] == 0), "{now:?}");
    assert_eq!(exploratory.len(), was.len());
    let earlier: Vec<Value> = earlier.iter().map(|row| row["violations"].clone()).collect();
    assert_eq!(earlier, was, "by the T of that time");
    let more = exploratory.iter().zip(&was).any(|(row, was)| row["violations"] != *was);
    assert!(more, "at t = 1 it is violated more often");
    if std::process::Command::new("python3")
        .args(["-c", "import numpy, scipy, polars"])
        .output()
        .is_ok_and(|python| python.status.success())
    {
        let recheck = std::process::Command::new("python3")
            .arg(bench.path("out/recheck.py"))
            .output()
            .unwrap();
        assert!(recheck.status.success(), "{}", String::from_utf8_lossy(&recheck.stdout));
    }
}

#[test]
fn a_budget_that_is_no_probability_is_refused_before_anything_runs() {
    let bench = Bench::new();
    for (budget, words) in [
        ("delta * 20", &["is 2 in cell", "delta = 0.1", "a probability below 1"][..]),
        ("delta - 0.2", &["is -0.1 in cell"]),
        ("delta * t * 2", &["is 1 in cell", "t = 5"]),
        // What is known of the prior alone.
        ("c / 2 + rank", &["in cell"]),
        // Without the prior these look like delta, which is a probability.
        ("greatest(delta, c)", &["is 1.0000000000000002 in cell"]),
        ("CASE WHEN rank > 2 THEN 1.5 ELSE delta END", &["is 1.5 in cell"]),
    ] {
        let claim = format!(
            "{STUDY}\n[[claim]]\nid = \"mine\"\nholds = \"y > 0\"\nbudget = \"{budget}\"\n"
        );
        bench.write("s.toml", &claim);
        for command in ["run", "plan"] {
            let output = bench.output(&[command, "s.toml", "--out", "out"]);
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{budget}: {message}");
            assert!(message.contains("claim mine: budget"), "{message}");
            for word in words {
                assert!(message.contains(word), "{word}: {message}");
            }
            assert!(!bench.path("out").exists(), "{budget}");
        }
    }
    // 2 stands only where c is not known, and 0 says that the claim is never violated.
    for budget in ["delta * c / 2", "coalesce(c / 2, 2)", "0 * t"] {
        let fine = format!(
            "{STUDY}\n[[claim]]\nid = \"mine\"\nholds = \"y > -9\"\nbudget = \"{budget}\"\n"
        );
        bench.write("s.toml", &fine);
        let output = bench.output(&["plan", "s.toml"]);
        assert!(output.status.success(), "{budget}: {}", stderr(&output));
    }
}

/// Trials that were run and never sealed were seen all the same.
#[test]
fn a_merge_knows_what_a_run_has_recorded() {
    let bench = Bench::new();
    let part = |study: &str, out: &str| {
        let output = bench.output(&["run", study, "--part", "1/1", "--out", out, "--quiet"]);
        assert!(output.status.success(), "{}", stderr(&output));
    };
    bench.write("s.toml", &study(400, "0.3"));
    bench.run("s.toml", "out", &["--quiet"]);
    for name in ["manifest.json", "verdicts.json"] {
        std::fs::remove_file(bench.path("out").join(name)).unwrap();
    }
    bench.write("s.toml", &study(400, "1.0e6"));
    part("s.toml", "out");
    let refused = bench.output(&["merge", "out", "--out", "out"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("for other claims"), "{}", stderr(&refused));
    bench.run("s.toml", "out", &["--quiet"]);
    for name in ["manifest.json", "verdicts.json"] {
        std::fs::remove_file(bench.path("out").join(name)).unwrap();
    }
    let merged = bench.output(&["merge", "out", "--out", "out", "--quiet"]);
    assert!(merged.status.success(), "{}", stderr(&merged));
    let rows = verdicts(&bench);
    let [planned, exploratory, earlier] = of(&rows, "mine.bound");
    assert!(planned.iter().all(|row| row["verdict"] == "undecided"), "{planned:?}");
    assert!(exploratory.iter().any(|row| row["verdict"] == "confirmed"), "{exploratory:?}");
    assert!(!refuted(&earlier).is_empty(), "{earlier:?}");
}
