//! The same digest and the same bytes of `records/`, however a study was run.

mod common;

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use common::{Bench, STUDY, stderr};

#[test]
fn workers_shards_and_checks_change_nothing() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let one = bench.run("study.toml", "one", &["--workers", "1"]);
    assert_eq!(one["trials"], 5 * 300);
    assert_eq!(one["records"], 5 * 300 * 2);
    for (out, more) in [
        ("two", &["--workers", "2"][..]),
        ("four", &["--workers", "4", "--check", "1"]),
        ("tiny", &["--workers", "2", "--shard-records", "16", "--check", "0"]),
        ("long", &["--workers", "2", "--shard-seconds", "60"]),
    ] {
        let other = bench.run("study.toml", out, more);
        assert_eq!(one["digest"], other["digest"], "{out}");
        assert!(bench.records("one") == bench.records(out), "{out}");
    }
}

#[test]
fn a_grown_study_is_the_same_as_a_whole_one() {
    let bench = Bench::new();
    let whole = bench.write("study.toml", STUDY);
    let whole = bench.run(whole.to_str().unwrap(), "whole", &[]);
    let grown = [
        STUDY.replace("replicates = 300", "replicates = 120"),
        STUDY.replace("T = [1, 5]", "T = [5]"),
        STUDY.replace("N = [60, 200]", "N = [60]"),
        STUDY.replace("method = [\"pem-bo\", \"random\"]", "method = [\"pem-bo\"]"),
    ];
    for (number, smaller) in grown.iter().enumerate() {
        assert_ne!(smaller, STUDY);
        let (file, out) = (format!("{number}.toml"), format!("grown-{number}"));
        bench.write(&file, smaller);
        let before = bench.run(&file, &out, &[]);
        assert_ne!(before["digest"], whole["digest"]);
        bench.write(&file, STUDY);
        let after = bench.run(&file, &out, &[]);
        assert_eq!(after["digest"], whole["digest"], "{number}");
        assert!(bench.records("whole") == bench.records(&out), "{number}");
        let again = bench.run(&file, &out, &[]);
        assert_eq!(again["digest"], whole["digest"]);
    }
}

#[test]
fn a_killed_run_resumes_to_the_same_bytes() {
    let bench = Bench::new();
    let study = STUDY.replace("replicates = 300", "replicates = 3000");
    bench.write("study.toml", &study);
    let whole = bench.run("study.toml", "whole", &["--workers", "2"]);
    let arguments =
        ["run", "study.toml", "--out", "killed", "--workers", "2", "--shard-records", "256"];
    // Deterministic moments spread over the run, from before the first shard to sealing.
    let mut kills = 0;
    for attempt in 0..50_u64 {
        let mut child = bench.spawn(&arguments);
        std::thread::sleep(Duration::from_millis(20 + attempt * 37 % 400));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        if status.signal() == Some(9) {
            kills += 1;
        }
    }
    assert!(kills >= 10, "{kills} of 50 runs were killed before they ended");
    let resumed = bench.run("study.toml", "killed", &["--workers", "2"]);
    assert_eq!(resumed["digest"], whole["digest"]);
    assert!(bench.records("whole") == bench.records("killed"));
}

#[test]
fn an_interrupted_run_says_how_to_resume() {
    let bench = Bench::new();
    let study = STUDY.replace("replicates = 300", "replicates = 2000000");
    bench.write("study.toml", &study);
    let child = bench.spawn(&["run", "study.toml", "--out", "out"]);
    std::thread::sleep(Duration::from_millis(1500));
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(
        stderr(&output).contains("run the same command again to resume"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn early_stopping_does_not_depend_on_timing() {
    let bench = Bench::new();
    let batched = STUDY
        .replace("replicates = 300", "replicates = { batch = 100, max = 2000 }\nevidence = 50");
    bench.write("study.toml", &batched);
    let one = bench.run("study.toml", "one", &["--workers", "1"]);
    let four = bench.run("study.toml", "four", &["--workers", "4", "--shard-records", "32"]);
    assert_eq!(one["digest"], four["digest"]);
    assert!(bench.records("one") == bench.records("four"));
    assert!(one["trials"].as_u64().unwrap() < 5 * 2000, "some cell should stop early: {one}");
}

#[test]
fn a_summary_keeps_counts_of_all_trials_and_some_records() {
    let bench = Bench::new();
    let summary = STUDY.replace("seed = 7", "seed = 7\ndetail = \"summary\"");
    bench.write("study.toml", &summary);
    let one = bench.run("study.toml", "one", &["--workers", "1"]);
    let two = bench.run("study.toml", "two", &["--workers", "2", "--shard-records", "64"]);
    assert_eq!(one["digest"], two["digest"]);
    assert_eq!(one["trials"], 5 * 300);
    assert!(one["records"].as_u64().unwrap() < 5 * 300 * 2);
    assert!(bench.path("one/counts.parquet").exists());
}

#[test]
fn another_study_and_a_second_run_are_refused() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.run("study.toml", "out", &[]);
    for (change, expected) in [
        (STUDY.replace("seed = 7", "seed = 8"), "use another --out folder"),
        (STUDY.replace("N = [60, 200]", "N = [60]"), "use another --out folder"),
        (STUDY.replace("replicates = 300", "replicates = 200"), "can be added, not taken away"),
    ] {
        bench.write("other.toml", &change);
        let output = bench.output(&["run", "other.toml", "--out", "out"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let long = STUDY.replace("replicates = 300", "replicates = 2000000");
    bench.write("long.toml", &long);
    let mut first = bench.spawn(&["run", "long.toml", "--out", "busy"]);
    while !bench.path("busy/.regretta/ledger.db").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    let second = bench.output(&["run", "long.toml", "--out", "busy"]);
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    let expected = format!("in use by process {}", first.id());
    assert!(stderr(&second).contains(&expected), "{}", stderr(&second));
    first.kill().unwrap();
    first.wait().unwrap();
}
