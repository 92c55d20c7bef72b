//! Claims that are changed after trials exist: what was planned keeps its verdict, and what was written
//! down later counts only the replicates since.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use common::{Bench, STUDY, stderr};
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

    bench.write("s.toml", &study(60, "1e6"));
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
    assert_eq!(others(&after), others(&before));
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
    bench.write("s.toml", &study(160, "1e6"));
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
    bench.write("s.toml", &study(4000, "1e6"));
    bench.run("s.toml", "out", &["--quiet"]);
    let manifest = json(&bench, "out/manifest.json");
    let replicates = manifest["earlier_families"][0]["replicates"].as_object().unwrap().clone();
    assert!(!replicates.is_empty());
    for row in of(&verdicts(&bench), "mine.bound")[0].iter() {
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
    bench.write("out/study.toml", &study(60, "1e6"));
    let output = bench.output(&["analyze", "out"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("was changed since the dataset was sealed"));
    std::fs::remove_dir_all(bench.path("out/.regretta")).unwrap();
    bench.write("s.toml", &study(60, "1e6"));
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
        "replicates = { batch = 100, max = 200 }\nevidence = 1e300\ndetail = \"summary\"";
    let summary = STUDY.replace("replicates = 300", replicates);
    bench.write("s.toml", &summary);
    bench.run("s.toml", "out", &["--quiet"]);
    let later = summary.replace("delta = [0.1]", "delta = [0.1, 0.3]");
    bench.write("s.toml", &later.replace("max = 200", "max = 350"));
    bench.run("s.toml", "out", &["--quiet"]);
    let rows = verdicts(&bench);
    let late = rows.iter().filter(|row| row["delta"] == 0.3 && row["acquisition"] != "gp-ucb");
    let late: Vec<&Value> = late.filter(|row| row["log_e_refute"].is_number()).collect();
    assert!(late.iter().any(|row| row["exploratory"] == true));
    for row in late {
        let counted = row["trials"].as_u64().unwrap() + row["failures"].as_u64().unwrap();
        assert!(counted <= if row["exploratory"] == true { 350 } else { 150 }, "{row}");
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
    let fine = format!(
        "{STUDY}\n[[claim]]\nid = \"mine\"\nholds = \"y > -9\"\nbudget = \"delta * c / 2\"\n"
    );
    bench.write("s.toml", &fine);
    assert!(bench.output(&["plan", "s.toml"]).status.success());
}
