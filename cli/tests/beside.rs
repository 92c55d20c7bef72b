//! Commands beside one another on one folder: readers, writers, and writers that were interrupted.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;
#[path = "common/service.rs"]
mod service;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Bench, STUDY, stderr};
use service::{Service, digest, until};

fn sealed() -> Bench {
    let bench = Bench::new();
    bench.write("study.toml", &STUDY.replace("replicates = 300", "replicates = 40"));
    bench.run("study.toml", "out", &["--quiet"]);
    bench
}

/// Every file below a folder with its bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    files
}

#[test]
fn analyses_at_once_write_what_one_writes() {
    let bench = sealed();
    let expected = contents(&bench.path("out"));
    for _ in 0..3 {
        let running: Vec<_> = (0..6).map(|_| bench.spawn(&["analyze", "out", "--quiet"])).collect();
        for child in running {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
        }
        assert!(contents(&bench.path("out")) == expected);
    }
}

#[test]
fn an_analysis_writes_when_no_other_writer_does() {
    let bench = sealed();
    let lock = File::options().write(true).open(bench.path("out/.lock")).unwrap();
    lock.lock().unwrap();
    fs::remove_file(bench.path("out/verdicts.json")).unwrap();
    let mut analysis = bench.spawn(&["analyze", "out", "--quiet"]);
    // A reader is not kept waiting.
    let output = bench.output(&["verify", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    std::thread::sleep(Duration::from_secs(1));
    assert!(analysis.try_wait().unwrap().is_none(), "it waits for the lock");
    assert!(!bench.path("out/verdicts.json").exists());
    lock.unlock().unwrap();
    let output = analysis.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(bench.path("out/verdicts.json").exists());
}

/// What a writer leaves that ends between two steps, here before the records are in their place.
#[test]
fn readers_leave_an_interrupted_swap_to_the_next_writer() {
    let bench = sealed();
    let out = bench.path("out");
    let good = contents(&out);
    let moved = out.join("sealing.done");
    fs::create_dir(&moved).unwrap();
    for name in ["records", "manifest.json", "priors.json"] {
        fs::rename(out.join(name), moved.join(name)).unwrap();
    }
    fs::write(out.join("manifest.json"), fs::read(moved.join("manifest.json")).unwrap()).unwrap();
    let before = contents(&out);
    for arguments in [&["verify", "out"][..], &["verify", "out", "--recompute", "1%"]] {
        let output = bench.output(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("is being replaced"), "{}", stderr(&output));
        assert!(contents(&out) == before, "a reader changed the folder");
    }
    let output = bench.output(&["analyze", "out", "--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(contents(&out) == good);
    assert!(!moved.exists());
}

/// Growing replaces the dataset again and again while others read it.
#[test]
fn readers_beside_a_study_that_grows() {
    let bench = sealed();
    for replicates in [60, 80, 100] {
        bench.write(
            "study.toml",
            &STUDY.replace("replicates = 300", &format!("replicates = {replicates}")),
        );
        let mut growing = bench.spawn(&["run", "study.toml", "--out", "out", "--quiet"]);
        let mut looks = 0;
        while growing.try_wait().unwrap().is_none() {
            let output = bench.output(&["verify", "out"]);
            let replaced = stderr(&output).contains("is being replaced");
            assert!(output.status.success() || replaced, "{}", stderr(&output));
            looks += 1;
        }
        assert!(looks > 0);
        assert!(growing.wait().unwrap().success());
        let output = bench.output(&["verify", "out"]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    _ = fs::remove_dir_all(to);
    for (path, bytes) in contents(from) {
        let path = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

/// A download that is killed leaves the old dataset or the new one, and the same command again finishes it.
#[test]
fn a_download_that_is_killed_leaves_one_of_the_two() {
    let bench = Bench::new();
    let service = Service::start(&bench, &[]);
    let _worker = service.worker(&bench, "one", &[]);
    let fetch = ["study", "fetch", "small", "--coordinator", &service.url, "--out"];
    let mut digests = Vec::new();
    for (replicates, out) in [(40, "old"), (60, "new")] {
        let study = STUDY.replace("replicates = 300", &format!("replicates = {replicates}"));
        bench.write("study.toml", &study);
        service.submit(&bench, "study.toml");
        digests.push(service.result(&bench, "small", out));
    }
    let out = bench.path("out");
    let replace = [&fetch[..], &["out", "--replace"]].concat();
    for attempt in 0..12 {
        copy(&bench.path("old"), &out);
        let mut child = bench.spawn(&replace);
        // Killed as soon as a folder is seen, or a little later.
        let mark = ["sealing.tmp", "sealing.done"][attempt % 2];
        until("it moves files, or has ended", || {
            let seen = || {
                let names = fs::read_dir(&out).unwrap().flatten().map(|entry| entry.file_name());
                names.into_iter().any(|name| name.to_string_lossy().starts_with(mark))
            };
            (0..20_000).any(|_| seen()) || child.try_wait().unwrap().is_some()
        });
        std::thread::sleep(Duration::from_micros(50 * attempt as u64));
        _ = child.kill();
        child.wait().unwrap();
        let output = bench.output(&["verify", "out"]);
        match output.status.code() {
            Some(0) => assert!(digests.contains(&digest(&out))),
            Some(2) => {
                assert!(stderr(&output).contains("is being replaced"), "{}", stderr(&output));
            }
            _ => panic!("{}", stderr(&output)),
        }
        let output = bench.output(&replace);
        assert!(output.status.success(), "{}", stderr(&output));
        let output = bench.output(&["verify", "out"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(digest(&out), digests[1]);
        let names = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name());
        let left = names.filter(|name| name.to_string_lossy().starts_with("sealing"));
        assert_eq!(left.count(), 0);
    }
}
