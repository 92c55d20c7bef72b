//! A disk that fills up, files that are damaged, folders that cannot be written to: a clear error, and
//! running again gives what an undisturbed run gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/service.rs"]
mod service;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Bench, STUDY, stderr};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;
use service::{Process, until};

/// Some seconds for one worker, in many shards.
fn setup() -> (Bench, Value) {
    let bench = Bench::new();
    bench.write("study.toml", &STUDY.replace("replicates = 300", "replicates = 6000"));
    let whole = bench.run("study.toml", "whole", &[]);
    (bench, whole)
}

const SMALL_SHARDS: [&str; 4] = ["--shard-records", "256", "--shard-seconds", "0.1"];

fn start(bench: &Bench, out: &str) -> Process {
    let arguments = [&["run", "study.toml", "--out", out, "--workers", "1"], &SMALL_SHARDS[..]];
    Process::start(bench.command(&arguments.concat()))
}

fn segments(bench: &Bench, out: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(bench.path(out).join(".regretta/segments")) else {
        return Vec::new();
    };
    let mut segments: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    segments
}

fn bytes(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| fs::metadata(file).map_or(0, |file| file.len())).sum()
}

/// A run that was killed in the middle, with some hundred kilobytes of records.
fn killed(bench: &Bench, out: &str) {
    let mut run = start(bench, out);
    until("records are written", || bytes(&segments(bench, out)) > 300_000);
    assert!(run.is_running(), "the study is too short for this test");
    run.kill();
}

fn ledger(bench: &Bench, out: &str) -> PathBuf {
    bench.path(out).join(".regretta/ledger.db")
}

/// Runs again, to the digest and the bytes of an undisturbed run; returns what was said.
fn resumes(bench: &Bench, out: &str, whole: &Value) -> String {
    let output = bench.output(&["run", "study.toml", "--out", out, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["digest"], whole["digest"]);
    assert!(bench.records("whole") == bench.records(out));
    stderr(&output)
}

fn refused(bench: &Bench, out: &str, words: &[&str]) -> String {
    let output = bench.output(&["run", "study.toml", "--out", out]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    said
}

#[test]
fn a_torn_segment_is_cut() {
    let (bench, whole) = setup();
    for cut in [1, 37, 20_000] {
        let out = format!("torn-{cut}");
        killed(&bench, &out);
        let last = segments(&bench, &out).pop().unwrap();
        let file = OpenOptions::new().write(true).open(&last).unwrap();
        file.set_len(fs::metadata(&last).unwrap().len() - cut).unwrap();
        resumes(&bench, &out, &whole);
    }
}

#[test]
fn a_flipped_byte_costs_one_shard() {
    let (bench, whole) = setup();
    killed(&bench, "out");
    let segment = segments(&bench, "out").remove(0);
    let file = OpenOptions::new().read(true).write(true).open(&segment).unwrap();
    let middle = fs::metadata(&segment).unwrap().len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, middle).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], middle).unwrap();
    let said = resumes(&bench, "out", &whole);
    assert!(said.contains("damaged and are computed anew"), "{said}");
}

#[test]
fn garbage_behind_the_last_frame_is_cut() {
    let (bench, whole) = setup();
    killed(&bench, "out");
    let last = segments(&bench, "out").pop().unwrap();
    let length = fs::metadata(&last).unwrap().len();
    let file = OpenOptions::new().write(true).open(&last).unwrap();
    file.write_all_at(&[0xee; 5000], length).unwrap();
    resumes(&bench, "out", &whole);
}

#[test]
fn a_ledger_that_is_gone_is_rebuilt() {
    let (bench, whole) = setup();
    // With what SQLite keeps beside it, and without.
    for (out, ends) in [("all", &["", "-wal", "-shm"][..]), ("one", &[""])] {
        killed(&bench, out);
        for end in ends {
            let mut file = ledger(&bench, out).into_os_string();
            file.push(end);
            fs::remove_file(file).unwrap();
        }
        let said = resumes(&bench, out, &whole);
        assert!(said.contains("rebuilt from the segments"), "{said}");
    }
}

/// Runs statements on a ledger that nobody has open, and writes all of it into the one file.
fn sql(ledger: &Path, statement: &str) -> bool {
    let program = "import sqlite3, sys\n\
        c = sqlite3.connect(sys.argv[1])\n\
        c.execute(sys.argv[2]); c.commit()\n\
        c.execute('PRAGMA wal_checkpoint(TRUNCATE)'); c.close()";
    let done = Command::new("python3").arg("-c").arg(program).arg(ledger).arg(statement).status();
    let done = done.is_ok_and(|status| status.success());
    if !done {
        eprintln!("skipped: there is no python3 with sqlite3");
    }
    done
}

/// As shards were kept whose batches had been dropped before their commit: in the ledger, with their number of records,
/// and without one. A summary is to have some, nobody knows which.
#[test]
fn shards_that_lost_their_records_are_computed_anew() {
    for detail in ["checkpoints", "summary"] {
        let bench = Bench::new();
        let study = STUDY.replace("replicates = 300", "replicates = 6000");
        let detail = format!("seed = 7\ndetail = \"{detail}\"");
        bench.write("study.toml", &study.replace("seed = 7", &detail));
        let whole = bench.run("study.toml", "whole", &[]);
        let run = start(&bench, "out");
        until("records are written", || bytes(&segments(&bench, "out")) > 100_000);
        run.kill();
        let lose = "UPDATE shards SET places = x'' WHERE number IN \
                    (SELECT number FROM shards WHERE records > 0 ORDER BY number LIMIT 1)";
        if !sql(&ledger(&bench, "out"), lose) {
            return;
        }
        let said = resumes(&bench, "out", &whole);
        assert!(said.contains("1 shards have lost records"), "{said}");
        assert!(said.contains("computed anew"), "{said}");
    }
}

#[test]
fn a_corrupted_ledger_says_how_to_recover() {
    let (bench, whole) = setup();
    for (out, from) in [("header", 0), ("pages", 4096)] {
        killed(&bench, out);
        let ledger = ledger(&bench, out);
        if !sql(&ledger, "PRAGMA user_version") {
            return;
        }
        let length = fs::metadata(&ledger).unwrap().len();
        assert!(length > 20_000, "{length}");
        let file = OpenOptions::new().write(true).open(&ledger).unwrap();
        file.write_all_at(&vec![0xa5; (length - from) as usize], from).unwrap();
        let said = refused(&bench, out, &["is corrupted", "move it away", "-wal", "rebuilt"]);
        assert!(said.contains("ledger.db"), "{said}");
        for end in ["", "-wal", "-shm"] {
            let mut file = ledger.clone().into_os_string();
            file.push(end);
            let mut aside = file.clone();
            aside.push(".aside");
            // Not all of them need be there.
            _ = fs::rename(file, aside);
        }
        let said = resumes(&bench, out, &whole);
        assert!(said.contains("rebuilt from the segments"), "{said}");
    }
}

#[test]
fn one_damaged_page_in_the_middle_loses_nothing() {
    let (bench, whole) = setup();
    killed(&bench, "out");
    let ledger = ledger(&bench, "out");
    if !sql(&ledger, "PRAGMA user_version") {
        return;
    }
    let length = fs::metadata(&ledger).unwrap().len();
    let file = OpenOptions::new().write(true).open(&ledger).unwrap();
    file.write_all_at(&[0x5a; 4096], length / 8192 * 4096).unwrap();
    let output = bench.output(&["run", "study.toml", "--out", "out"]);
    if !output.status.success() {
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is corrupted") && said.contains("move it away"), "{said}");
        for end in ["", "-wal", "-shm"] {
            let mut file = ledger.clone().into_os_string();
            file.push(end);
            _ = fs::remove_file(file);
        }
    }
    resumes(&bench, "out", &whole);
}

#[test]
fn a_damaged_row_is_mended_by_the_same_command() {
    let (bench, whole) = setup();
    killed(&bench, "out");
    if !sql(&ledger(&bench, "out"), "UPDATE studies SET text = 'altered'") {
        return;
    }
    let said = resumes(&bench, "out", &whole);
    assert!(said.contains("its row in the ledger is damaged"), "{said}");
}

#[test]
fn other_numerics_do_not_go_on_with_a_study() {
    let (bench, whole) = setup();
    killed(&bench, "out");
    let ledger = ledger(&bench, "out");
    let kept = "UPDATE store SET version = numerics, numerics = '";
    if !sql(&ledger, &format!("{kept}{}'", "0".repeat(64))) {
        return;
    }
    let said = refused(&bench, "out", &["numerics", "choose another folder"]);
    assert!(said.contains(&"0".repeat(64)), "{said}");
    assert!(sql(&ledger, "UPDATE store SET numerics = version"));
    resumes(&bench, "out", &whole);
}

#[test]
fn a_folder_that_cannot_be_made_is_refused() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.write("file", "not a folder");
    refused(&bench, "file/out", &["cannot create file/out"]);
    refused(&bench, "file", &["file"]);
    refused(&bench, "/proc/out", &["/proc/out"]);
}

/// A small file system of its own, where that is allowed.
struct Mount(PathBuf);

impl Mount {
    fn new(bench: &Bench, name: &str, mebibytes: u32) -> Option<Self> {
        let path = bench.path(name);
        fs::create_dir(&path).unwrap();
        let options = format!("size={mebibytes}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&path)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(path));
        }
        eprintln!("skipped: mounting a file system is not permitted here");
        None
    }

    fn remount(&self, how: &str) {
        let options = format!("remount,{how}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.0).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_fills_up_is_told_and_loses_nothing() {
    let (bench, whole) = setup();
    let Some(disk) = Mount::new(&bench, "disk", 200) else { return };
    let run = start(&bench, "disk/out");
    until("records are written", || bytes(&segments(&bench, "disk/out")) > 300_000);
    let filler = disk.0.join("filler");
    let full = Command::new("dd")
        .args(["if=/dev/zero", "bs=64K", "status=none"])
        .arg(format!("of={}", filler.display()))
        .status();
    assert!(!full.unwrap().success(), "the disk is full");
    let (status, said) = run.wait();
    assert_eq!(status.code(), Some(3), "{said}");
    for word in ["is full", "run the same command again", "nothing acknowledged is lost"] {
        assert!(said.contains(word), "{said}");
    }
    // While there is no room, nothing is begun.
    refused(&bench, "disk/out", &["free some space", "nothing that was computed is lost"]);
    fs::remove_file(filler).unwrap();
    resumes(&bench, "disk/out", &whole);
}

#[test]
fn a_disk_that_becomes_read_only_is_told_and_loses_nothing() {
    let (bench, whole) = setup();
    let Some(disk) = Mount::new(&bench, "disk", 200) else { return };
    killed(&bench, "disk/out");
    disk.remount("ro");
    refused(&bench, "disk/out", &["read-only file system", "make it writable"]);
    refused(&bench, "disk/new", &["cannot create disk/new"]);
    disk.remount("rw");
    resumes(&bench, "disk/out", &whole);
}

/// Nobody writes to the pipe: whoever waits for it waits for ever.
#[test]
fn only_regular_files_are_read() {
    let bench = Bench::new();
    mknodat(CWD, bench.path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let naming = |file: &str| {
        let mean = format!("mean = {{ kind = \"file\", path = \"{file}\" }}\nnoise_variance");
        STUDY.replace("noise_variance", &mean)
    };
    bench.write("of-pipe.toml", &naming("pipe"));
    bench.write("of-device.toml", &naming("/dev/null"));
    bench.write("of-folder.toml", &naming("."));
    for study in ["pipe", "of-pipe.toml", "/dev/null", "of-device.toml", ".", "of-folder.toml"] {
        let (status, said) = Process::start(bench.command(&["plan", study])).wait();
        assert_eq!(status.code(), Some(2), "{study}: {said}");
        assert!(said.contains("cannot read") && said.contains("give a regular file"), "{said}");
    }
    fs::create_dir_all(bench.path("out/parts")).unwrap();
    fs::rename(bench.path("pipe"), bench.path("out/parts/1-of-1.part")).unwrap();
    let merge = bench.command(&["merge", "out", "--out", "merged"]);
    let (status, said) = Process::start(merge).wait();
    assert!(!status.success() && said.contains("give a regular file"), "{said}");
}

/// The ledger knows what was sealed, and the dataset is not there, or is an older one.
#[test]
fn a_sealed_dataset_that_is_gone_is_computed_anew() {
    let bench = Bench::new();
    let dataset = ["manifest.json", "records"];
    let remove = || {
        fs::remove_dir_all(bench.path("out/records")).unwrap();
        fs::remove_file(bench.path("out/manifest.json")).unwrap();
    };
    bench.write("study.toml", STUDY);
    bench.run("study.toml", "out", &["--quiet"]);
    fs::create_dir(bench.path("older")).unwrap();
    for name in dataset {
        let [from, to] = [bench.path(&format!("out/{name}")), bench.path("older")];
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    }
    // As it is, and grown.
    for replicates in [300, 400] {
        let text = STUDY.replace("replicates = 300", &format!("replicates = {replicates}"));
        bench.write("study.toml", &text);
        let whole = bench.run("study.toml", "whole", &["--quiet"]);
        remove();
        let said = resumes(&bench, "out", &whole);
        assert!(said.contains("are computed anew"), "{said}");
    }
    // An older copy was put back.
    remove();
    for name in dataset {
        fs::rename(bench.path(&format!("older/{name}")), bench.path(&format!("out/{name}")))
            .unwrap();
    }
    let whole = bench.run("study.toml", "whole", &["--quiet"]);
    resumes(&bench, "out", &whole);
    // A damaged one is not built upon.
    let records = bench.path("out/records/part-00000.parquet");
    let file = OpenOptions::new().read(true).write(true).open(records).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 3000).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 3000).unwrap();
    bench.write("study.toml", &STUDY.replace("replicates = 300", "replicates = 500"));
    let output = bench.output(&["run", "study.toml", "--out", "out"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("is damaged") && said.contains("remove out/manifest.json"), "{said}");
    fs::remove_file(bench.path("out/manifest.json")).unwrap();
    let whole = bench.run("study.toml", "whole", &["--quiet"]);
    resumes(&bench, "out", &whole);
}
