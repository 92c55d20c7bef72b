//! Running the binary in a folder of its own.

#![allow(dead_code, reason = "every test file uses a part of it")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with study files and results.
pub(crate) struct Bench {
    pub(crate) dir: TempDir,
}

/// A small study: two priors, all methods, six cells and more.
pub(crate) const STUDY: &str = r#"
[study]
name = "small"
seed = 7
replicates = 300

[prior]
domain = { kind = "grid", points = 20, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
noise_variance = 0.01

[grid]
N = [60, 200]
T = [1, 5]
delta = [0.1]
design = ["fixed", "adaptive"]
method = ["pem-bo", "random"]
"#;

/// A manifest that was edited, with the checksum of what it says now.
pub(crate) fn resealed(manifest: &str) -> String {
    let is_checksum = |line: &&str| line.starts_with("  \"checksum\"");
    let rest: String = manifest.split_inclusive('\n').filter(|line| !is_checksum(line)).collect();
    let line = format!("  \"checksum\": \"{}\",\n", blake3::hash(rest.as_bytes()));
    let old = manifest.split_inclusive('\n').find(is_checksum);
    old.map_or(rest, |old| manifest.replacen(old, &line, 1))
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_regretta"));
        command.current_dir(self.dir.path()).args(arguments);
        command.env_remove("REGRETTA_TOKEN").env_remove("REGRETTA_LEDGER");
        command
    }

    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs a study to its end and returns the report.
    pub(crate) fn run(&self, study: &str, out: &str, more: &[&str]) -> Value {
        let arguments = [&["run", study, "--out", out, "--json"], more].concat();
        let output = self.output(&arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The bytes of all files of a dataset's records.
    pub(crate) fn records(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let folder = self.path(out).join("records");
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
        files
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
