//! `regretta verify`: what is intact passes, what was touched is named.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Bench, STUDY, stderr};
use serde_json::Value;

/// A sealed dataset of five cells in `out`.
fn sealed(study: &str) -> Bench {
    let bench = Bench::new();
    bench.write("study.toml", study);
    bench.run("study.toml", "out", &["--quiet"]);
    bench
}

fn small() -> String {
    STUDY.replace("replicates = 300", "replicates = 40")
}

fn verify(bench: &Bench, more: &[&str]) -> (Option<i32>, String, String) {
    let output = bench.output(&[&["verify", "out"], more].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text, stderr(&output))
}

/// Runs it and returns what it says as it fails with this code.
fn failure(bench: &Bench, code: i32, more: &[&str]) -> String {
    let (found, text, errors) = verify(bench, more);
    assert_eq!(found, Some(code), "{text}{errors}");
    errors
}

fn first_records(bench: &Bench) -> PathBuf {
    let mut files: Vec<PathBuf> = fs::read_dir(bench.path("out/records"))
        .expect("records")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files.remove(0)
}

fn edit(path: &Path, change: impl Fn(&str) -> String) {
    let text = fs::read_to_string(path).expect("text");
    let changed = change(&text);
    assert_ne!(text, changed, "nothing was changed in {}", path.display());
    fs::write(path, changed).expect("written");
}

#[test]
fn a_clean_dataset_verifies_and_recomputes() {
    let bench = sealed(&small());
    let (code, text, errors) = verify(&bench, &[]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.ends_with(" files, 400 records: as sealed\n"), "{text}");
    let (code, text, errors) = verify(&bench, &["--recompute", "10%"]);
    assert_eq!(code, Some(0), "{errors}");
    let expected = "400 records: as sealed; 20 trials of 5 cells recomputed: identical\n";
    assert!(text.ends_with(expected), "{text}");
    assert_eq!(errors, "", "no progress where there is no terminal");
    for (share, trials) in [("3", 5), ("100%", 200), ("1%", 5)] {
        let (code, text, errors) = verify(&bench, &["--recompute", share, "--json"]);
        assert_eq!(code, Some(0), "{errors}");
        let report: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&report["recomputed"], &report["records"]), (&trials.into(), &400.into()));
        assert_eq!((&report["cells"], &report["differences"]), (&5.into(), &Value::Array(vec![])));
        assert!(report["digest"].is_string() && report["files"].as_u64() > Some(3));
    }
}

#[test]
fn a_summary_is_sampled_among_the_trials_that_have_records() {
    let bench = sealed(&STUDY.replace("seed = 7", "seed = 7\ndetail = \"summary\""));
    let (code, text, errors) = verify(&bench, &["--recompute", "100%", "--json"]);
    assert_eq!(code, Some(0), "{errors}");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let (trials, records) = (report["recomputed"].as_u64(), report["records"].as_u64());
    assert!(trials > Some(0) && trials.map(|trials| 2 * trials) == records, "{text}");
}

#[test]
fn changed_and_missing_files_are_named() {
    let bench = sealed(&small());
    let path = first_records(&bench);
    let name = format!("records/{}", path.file_name().expect("a name").to_string_lossy());
    let whole = fs::read(&path).expect("bytes");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    fs::write(&path, flipped).expect("written");
    let said = failure(&bench, 3, &[]);
    assert!(said.contains(&format!("{name} was changed since it was sealed")), "{said}");
    fs::write(&path, &whole[..whole.len() - 9]).expect("written");
    let said = failure(&bench, 3, &["--recompute", "1%"]);
    assert!(said.contains(&format!("{name} was changed since it was sealed")), "{said}");
    fs::remove_file(&path).expect("removed");
    let said = failure(&bench, 3, &[]);
    assert!(said.contains(&format!("{name} is missing from the dataset")), "{said}");
    fs::write(&path, &whole).expect("written");
    assert_eq!(verify(&bench, &[]).0, Some(0));
    edit(&bench.path("out/priors.json"), |text| text.replacen("0.01", "0.02", 1));
    let said = failure(&bench, 3, &[]);
    assert!(said.contains("priors.json was changed"), "{said}");
}

#[test]
fn counts_that_were_shortened_are_found_by_all_that_read_them() {
    let bench = sealed(&small());
    let path = bench.path("out/counts.parquet");
    let bytes = fs::read(&path).expect("counts");
    for length in [0, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).expect("counts");
        for arguments in [
            &["verify", "out"][..],
            &["analyze", "out", "--quiet"],
            &["analyze", "out", "--quiet", "--only", "verdicts"],
        ] {
            let output = bench.output(arguments);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(3), "{arguments:?}: {said}");
            assert!(said.contains("counts.parquet was changed since it was sealed"), "{said}");
        }
    }
    fs::write(&path, &bytes).expect("counts");
    assert_eq!(verify(&bench, &[]).0, Some(0));
}

#[test]
fn a_changed_manifest_is_found_out() {
    let bench = sealed(&small());
    let path = bench.path("out/manifest.json");
    let whole = fs::read_to_string(&path).expect("text");
    for (from, to, expected) in [
        (
            "\"records\": 400",
            "\"records\": 401",
            "there are 400 records, and the manifest says 401",
        ),
        ("\"trials\": 200", "\"trials\": 199", "there are 200 trials, and the manifest says 199"),
        ("\"failures\": 0", "\"failures\": 1", "there are 0 failed trials"),
        ("\"replicates\": 40", "\"replicates\": 41", "has 41 trials, and there are records of 40"),
        ("\"N\": 60", "\"N\": 61", "does not describe that cell"),
    ] {
        edit(&path, |text| text.replacen(from, to, 1));
        let said = failure(&bench, 3, &[]);
        assert!(said.contains("manifest.json was changed since it was sealed"), "{said}");
        // What somebody changed who knows of the checksum does not fit the rest.
        edit(&path, common::resealed);
        let said = failure(&bench, 3, &["--recompute", "1%"]);
        assert!(said.contains(expected), "{said}");
        fs::write(&path, &whole).expect("written");
    }
    edit(&path, |text| text.replacen('{', "", 1));
    assert!(failure(&bench, 3, &[]).contains("was changed since it was sealed"));
    edit(&path, |_| "not JSON".to_owned());
    assert!(failure(&bench, 2, &[]).contains("is not a manifest"));
    fs::remove_file(&path).expect("removed");
    assert!(failure(&bench, 2, &[]).contains("holds no dataset"));
}

/// The manifest of an older version is read, and it is said what is missing; a new one without its checksum is not.
#[test]
fn a_manifest_without_a_checksum_passes_only_as_an_old_one() {
    let bench = sealed(&small());
    let path = bench.path("out/manifest.json");
    let without = |text: &str| -> String {
        text.split_inclusive('\n').filter(|line| !line.starts_with("  \"checksum\"")).collect()
    };
    edit(&path, without);
    let said = failure(&bench, 3, &[]);
    assert!(said.contains("it has no checksum"), "{said}");
    edit(&path, |text| text.replacen("\"schema\": 2", "\"schema\": 1", 1));
    let (code, text, errors) = verify(&bench, &[]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(text.contains("the manifest, of an older version, has no checksum"), "{text}");
}

/// Records that are sealed well and yet are not what the study gives: those of another seed.
#[test]
fn records_that_the_study_does_not_give_are_listed() {
    let bench = sealed(&small());
    let other = small().replace("seed = 7", "seed = 8");
    edit(&bench.path("out/study.toml"), |_| other.clone());
    let manifest = fs::read_to_string(bench.path("out/manifest.json")).expect("text");
    let id = study::StudyId::new("small", 8);
    let old = study::StudyId::new("small", 7);
    let manifest =
        manifest.replace(&old.hex(), &id.hex()).replace(&old.to_string(), &id.to_string());
    fs::write(bench.path("out/manifest.json"), common::resealed(&manifest)).expect("written");
    let (code, text, errors) = verify(&bench, &["--recompute", "5%"]);
    assert_eq!(code, Some(3), "{errors}");
    assert!(text.contains("10 trials of 5 cells recomputed: different\n"), "{text}");
    assert!(text.contains("more (all of them with --json)"), "{text}");
    assert!(
        errors.contains("values of 10 trials are not what the study gives; the first: "),
        "{errors}"
    );
    let (_, text, _) = verify(&bench, &["--recompute", "5%", "--json"]);
    let report: Value = serde_json::from_str(&text).expect("JSON");
    let first = &report["differences"][0];
    let address = first["address"].as_str().expect("an address");
    assert!(address.starts_with(&format!("{id}/")), "{address}");
    assert_eq!((first["t"].as_u64(), first["column"].as_str()), (Some(1), Some("x")));
    assert_ne!(first["stored"], first["recomputed"]);
}

#[test]
fn another_study_is_refused() {
    let bench = sealed(&small());
    let changed = small().replace("lengthscale = 0.2", "lengthscale = 0.3");
    bench.write("changed.toml", &changed);
    let said = failure(&bench, 2, &["--recompute", "1%", "--study", "changed.toml"]);
    assert!(
        said.contains("changed.toml does not make cell ") && said.contains("nor 4 more"),
        "{said}"
    );
    bench.write("seed.toml", &small().replace("seed = 7", "seed = 8"));
    let said = failure(&bench, 2, &["--recompute", "1%", "--study", "seed.toml"]);
    assert!(said.contains("makes study \"small\", seed 8") && said.contains("seed 7 ("), "{said}");
    edit(&bench.path("out/study.toml"), |_| changed.clone());
    let said = failure(&bench, 3, &["--recompute", "1%"]);
    assert!(said.contains("with --study PATH"), "{said}");
    assert_eq!(verify(&bench, &["--recompute", "1%", "--study", "study.toml"]).0, Some(0));
    for share in ["0%", "120%", "-3", "some"] {
        let said = failure(&bench, 2, &[&format!("--recompute={share}")]);
        assert!(said.contains("such as 1%"), "{said}");
    }
    assert!(failure(&bench, 2, &["--study", "study.toml"]).contains("--recompute"));
}

/// The run keeps the files that the study names; without them the original study file serves.
#[test]
fn files_of_the_study_come_from_the_run_or_from_beside_the_study_file() {
    let bench = Bench::new();
    let points: Vec<String> = (0..20).map(|i| format!("{}\n", f64::from(i) / 19.0)).collect();
    fs::create_dir(bench.path("data")).expect("created");
    bench.write("data/points.csv", &points.concat());
    let domain = r#"{ kind = "points", path = "points.csv" }"#;
    let study = small().replace(r#"{ kind = "grid", points = 20, dimension = 1 }"#, domain);
    bench.write("data/study.toml", &study);
    bench.run("data/study.toml", "out", &["--quiet"]);
    assert_eq!(verify(&bench, &["--recompute", "1%"]).0, Some(0));
    fs::remove_dir_all(bench.path("out/.regretta")).expect("removed");
    let said = failure(&bench, 2, &["--recompute", "1%"]);
    assert!(said.contains("names points.csv, which is neither in out nor kept"), "{said}");
    assert!(said.contains("--study PATH"), "{said}");
    assert_eq!(verify(&bench, &[]).0, Some(0), "digests need no study");
    assert_eq!(verify(&bench, &["--recompute", "1%", "--study", "data/study.toml"]).0, Some(0));
}
