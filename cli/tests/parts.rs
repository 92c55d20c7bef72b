//! A study in parts, without a coordinator: the same dataset, whatever happens to the parts.

mod common;

use std::time::Duration;

use common::{Bench, STUDY, stderr};

fn part(bench: &Bench, study: &str, out: &str, part: &str) {
    let output = bench.output(&["run", study, "--out", out, "--part", part, "--quiet"]);
    assert!(output.status.success(), "{part}: {}", stderr(&output));
}

fn merged(bench: &Bench, folders: &[&str], out: &str) -> serde_json::Value {
    let arguments = [&["merge"], folders, &["--out", out, "--json"]].concat();
    let output = bench.output(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn refused(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.output(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn eight_parts_are_the_whole() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let whole = bench.run("study.toml", "whole", &[]);
    for index in 1..=8 {
        part(&bench, "study.toml", "parts", &format!("{index}/8"));
    }
    let report = merged(&bench, &["parts"], "merged");
    assert_eq!(report["digest"], whole["digest"]);
    assert_eq!(report["trials"], whole["trials"]);
    assert_eq!(bench.records("merged"), bench.records("whole"));
    // The dataset is one like any other: verdicts, and trials that can be computed again.
    let verdicts =
        |out: &str| std::fs::read(bench.path(out).join("verdicts.json")).expect("a file");
    assert_eq!(verdicts("merged"), verdicts("whole"));
    let verified = bench.output(&["verify", "merged", "--recompute", "5%"]);
    assert!(verified.status.success(), "{}", stderr(&verified));
    // Again, on top of itself.
    assert_eq!(merged(&bench, &["parts"], "merged")["digest"], whole["digest"]);
}

/// A cell that stops early is decided by its own trials, so that it is whole in one part.
#[test]
fn parts_of_a_study_that_stops_early_are_the_whole() {
    let bench = Bench::new();
    let early = STUDY.replace("replicates = 300", "replicates = { batch = 100, max = 2000 }");
    bench.write("study.toml", &early);
    let whole = bench.run("study.toml", "whole", &[]);
    let (one, other) = ("one", "other");
    for index in 1..=3 {
        part(&bench, "study.toml", if index == 2 { other } else { one }, &format!("{index}/3"));
    }
    let report = merged(&bench, &[one, other], "merged");
    assert_eq!(report["digest"], whole["digest"]);
    assert!(report["trials"].as_u64() < Some(7 * 2000), "some cells stopped: {report}");
    assert_eq!(bench.records("merged"), bench.records("whole"));
}

#[test]
fn a_part_that_is_killed_goes_on_where_it_was() {
    let bench = Bench::new();
    let longer = STUDY.replace("replicates = 300", "replicates = 6000");
    bench.write("study.toml", &longer);
    let run = [
        "run",
        "study.toml",
        "--out",
        "parts",
        "--part",
        "1/2",
        "--quiet",
        "--shard-seconds",
        "0.02",
    ];
    let file = bench.path("parts/parts/1-of-2.part");
    let mut kills = 0;
    let mut held = 0;
    loop {
        let mut child = bench.spawn(&run);
        // From before its first shard to past its last, on any machine.
        std::thread::sleep(Duration::from_millis(20 + 20 * kills));
        if let Some(status) = child.try_wait().expect("the child is ours") {
            assert!(status.success());
            break;
        }
        child.kill().expect("SIGKILL");
        child.wait().expect("the child ended");
        let size = std::fs::metadata(&file).map_or(0, |file| file.len());
        assert!(size >= held, "nothing that was durable is lost");
        held = size;
        kills += 1;
        assert!(kills < 200, "the part makes progress");
    }
    assert!(held > 0, "the part was killed half-way");
    part(&bench, "study.toml", "parts", "2/2");
    let whole = bench.run("study.toml", "whole", &[]);
    assert_eq!(merged(&bench, &["parts"], "merged")["digest"], whole["digest"]);
}

#[test]
fn what_is_not_all_of_one_study_is_refused() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.write("other.toml", &STUDY.replace("seed = 7", "seed = 8"));
    std::fs::create_dir(bench.path("empty")).expect("a folder");
    let error = refused(&bench, &["merge", "empty", "--out", "merged"]);
    assert!(error.contains("there is no part in empty"), "{error}");
    let error = refused(&bench, &["run", "study.toml", "--part", "9/8"]);
    assert!(error.contains("such as 3/200"), "{error}");
    part(&bench, "study.toml", "parts", "1/3");
    part(&bench, "study.toml", "parts", "2/3");
    let error = refused(&bench, &["merge", "parts", "--out", "merged"]);
    assert!(error.contains("1 of 3 parts are missing: 3; run them with --part I/3"), "{error}");
    let error = refused(&bench, &["run", "other.toml", "--out", "parts", "--part", "1/3"]);
    assert!(error.contains("another study file"), "{error}");
    part(&bench, "other.toml", "strange", "3/3");
    let error = refused(&bench, &["merge", "parts", "strange", "--out", "merged"]);
    assert!(error.contains("is of another study"), "{error}");
    part(&bench, "study.toml", "again", "2/3");
    let error = refused(&bench, &["merge", "parts", "again", "--out", "merged"]);
    assert!(error.contains("part 2/3 is there twice"), "{error}");
    // Half of the last part: its trials are missed.
    part(&bench, "study.toml", "parts", "3/3");
    let file = bench.path("parts/parts/3-of-3.part");
    let bytes = std::fs::read(&file).expect("the part");
    std::fs::write(&file, &bytes[..bytes.len() / 2]).expect("half of it");
    let error = refused(&bench, &["merge", "parts", "--out", "merged"]);
    assert!(error.contains("(part 3/3): let its part run to the end first"), "{error}");
    part(&bench, "study.toml", "parts", "3/3");
    merged(&bench, &["parts"], "merged");
    assert!(!bench.path("merged/parts").exists());
}

/// What a study names is kept beside the parts, so that merging needs the parts alone.
#[test]
fn parts_carry_the_files_of_their_study() {
    let bench = Bench::new();
    let kernel = r#"kernel = { kind = "matrix", path = "k.csv" }"#;
    let grid = r#"domain = { kind = "grid", points = 3, dimension = 1 }"#;
    let text = STUDY
        .replace(r#"kernel = { kind = "squared-exponential", lengthscale = 0.2 }"#, kernel)
        .replace(r#"domain = { kind = "grid", points = 20, dimension = 1 }"#, grid)
        .replace("T = [1, 5]", "T = [1, 2]");
    bench.write("study.toml", &text);
    let matrix = bench.write("k.csv", "1,0.5,0.2\n0.5,1,0.5\n0.2,0.5,1\n");
    let whole = bench.run("study.toml", "whole", &[]);
    part(&bench, "study.toml", "parts", "1/2");
    part(&bench, "study.toml", "parts", "2/2");
    std::fs::remove_file(matrix).expect("the file is ours");
    assert_eq!(merged(&bench, &["parts"], "merged")["digest"], whole["digest"]);
}

/// Also where the ledger that knows of them is gone, and for parts of a study that was changed.
#[test]
fn sealed_trials_are_never_replaced_by_fewer() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let whole = bench.run("study.toml", "out", &["--quiet"]);
    let records = bench.records("out");
    let smaller = [
        ("N = [60, 200]", "N = [200]", "grid.N was [60, 200] and is [200]"),
        ("replicates = 300", "replicates = 100", "study.replicates was 300 and is 100"),
        ("replicates = 300", "replicates = { batch = 50, max = 300 }", "judged differently"),
        ("T = [1, 5]", "T = [5]", "grid.T was [1, 5] and is [5]"),
        ("seed = 7", "seed = 7\ndetail = \"summary\"", "cannot be mixed"),
    ];
    for (at, (from, to, why)) in smaller.iter().enumerate() {
        let (study, parts) = (format!("{at}.toml"), format!("parts-{at}"));
        bench.write(&study, &STUDY.replace(from, to));
        part(&bench, &study, &parts, "1/1");
        let error = refused(&bench, &["merge", &parts, "--out", "out"]);
        assert!(error.contains(why), "{to}: {error}");
        let error = refused(&bench, &["run", &study, "--out", "out", "--part", "1/1"]);
        assert!(error.contains(why), "{to}: {error}");
    }
    std::fs::remove_dir_all(bench.path("out/.regretta")).expect("the ledger");
    for (at, (_, to, why)) in smaller.iter().enumerate() {
        let error = refused(&bench, &["run", &format!("{at}.toml"), "--out", "out"]);
        assert!(error.contains(why), "{to}: {error}");
    }
    assert_eq!(bench.records("out"), records);
    assert_eq!(bench.run("study.toml", "out", &["--quiet"])["digest"], whole["digest"]);
    bench.write("study.toml", &STUDY.replace("replicates = 300", "replicates = 400"));
    let all = bench.run("study.toml", "all", &["--quiet"]);
    part(&bench, "study.toml", "parts", "1/1");
    assert_eq!(merged(&bench, &["parts"], "out")["digest"], all["digest"]);
    assert_eq!(bench.run("study.toml", "out", &["--quiet"])["digest"], all["digest"]);
}
