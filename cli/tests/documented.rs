//! Every command of README and docs, as it stands there.
//!
//! Fenced blocks are executed: ```` ```console ```` lines that begin with `$ ` by bash, ```` ```python ```` blocks
//! by python3 where the machine has what they import (`REGRETTA_REQUIRE_PYTHON=1` makes it an error if not).
//! All blocks of a page run in order in one folder that looks like a clone: the studies are those of the
//! repository with fewer replicates, and `results/quickstart` is there. Outputs are shown in ```` ```text ````.

mod common;

use std::fmt::Write;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::{Bench, stderr};

/// What a fenced block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Console,
    Python,
}

/// A block of a page and the line at which it begins.
#[derive(Debug)]
struct Block {
    language: Language,
    line: usize,
    text: String,
}

/// Commands that build or test the project itself: to run them is to run this test.
const BUILDS: [&str; 4] = ["cargo build", "cargo test", "cargo install", "git clone"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = None;
    for (number, line) in text.lines().enumerate() {
        match (inside, line.trim_start().strip_prefix("```")) {
            (None, Some(info)) => {
                let language = match info.trim() {
                    "console" => Some(Language::Console),
                    "python" => Some(Language::Python),
                    _ => None,
                };
                if let Some(language) = language {
                    blocks.push(Block { language, line: number + 2, text: String::new() });
                }
                inside = Some(language);
            }
            (Some(_), Some(_)) => inside = None,
            (Some(Some(Language::Console)), None) => {
                if let (Some(block), Some(command)) =
                    (blocks.last_mut(), line.trim_start().strip_prefix("$ "))
                {
                    writeln!(block.text, "{command}").expect("a string takes text");
                }
            }
            (Some(Some(Language::Python)), None) => {
                if let Some(block) = blocks.last_mut() {
                    writeln!(block.text, "{line}").expect("a string takes text");
                }
            }
            _ => {}
        }
    }
    blocks
}

/// A folder that looks like a clone after its first run.
struct Clone {
    bench: Bench,
    port: u16,
}

impl Clone {
    fn new(replicates: u32) -> Self {
        let bench = Bench::new();
        let bin = bench.path(".bin");
        std::fs::create_dir_all(&bin).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_regretta"), bin.join("regretta")).expect("a link");
        for folder in ["docs", "bench", "deploy"] {
            if root().join(folder).exists() {
                symlink(root().join(folder), bench.path(folder)).expect("a link");
            }
        }
        std::fs::create_dir(bench.path("studies")).expect("a folder");
        for entry in std::fs::read_dir(root().join("studies")).expect("the studies") {
            let path = entry.expect("an entry").path();
            let text = std::fs::read_to_string(&path).expect("a study");
            let name = path.file_name().expect("a name");
            std::fs::write(bench.path("studies").join(name), fewer(&text, replicates))
                .expect("a file");
        }
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        Self { bench, port: port.expect("a port").port() }
    }

    /// Runs a script in this folder, with the binary on its path, in a process group of its own. Output goes to
    /// files, so that a server which the script leaves behind holds nobody up.
    fn run(&self, program: &str, script: &str) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let file = |name: &str| File::create(self.bench.path(name)).expect("a file");
        let mut child = Command::new(program)
            .args(if program == "bash" { ["-euo", "pipefail", "-c"].as_slice() } else { &["-c"] })
            .arg(script)
            .current_dir(self.bench.dir.path())
            .env("PATH", format!("{}:{path}", self.bench.path(".bin").display()))
            .env("HOME", self.bench.dir.path())
            .env_remove("REGRETTA_TOKEN")
            .stdin(Stdio::null())
            .stdout(file(".stdout"))
            .stderr(file(".stderr"))
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let status = child.wait().expect("the child is ours");
        let group = format!("-{}", child.id());
        _ = Command::new("kill").args(["-TERM", "--", &group]).stderr(Stdio::null()).status();
        let read = |name: &str| std::fs::read(self.bench.path(name)).expect("a file");
        Output { status, stdout: read(".stdout"), stderr: read(".stderr") }
    }
}

/// A study that takes no time.
fn fewer(study: &str, replicates: u32) -> String {
    let line = |line: &str| {
        if line.trim_start().starts_with("replicates =") && !line.contains('{') {
            format!("replicates = {replicates}")
        } else {
            line.to_owned()
        }
    };
    study.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

fn check(page: &str) {
    let text = std::fs::read_to_string(root().join(page)).expect("the page");
    let blocks = blocks(&text);
    if blocks.is_empty() {
        return;
    }
    let clone = Clone::new(60);
    let made = clone.run("bash", "regretta run studies/quickstart.toml --quiet");
    assert!(made.status.success(), "{}", stderr(&made));
    for Block { language, line, text } in &blocks {
        match language {
            Language::Console => {
                let lines = text.lines().filter(|line| !BUILDS.iter().any(|b| line.starts_with(b)));
                let script = lines.collect::<Vec<_>>().join("\n");
                let script = script.replace("cargo run --release --", "regretta");
                let script = script.replace("7070", &clone.port.to_string());
                let output = clone.run("bash", &script);
                assert!(output.status.success(), "{page}:{line}:\n{script}\n{}", stderr(&output));
            }
            Language::Python => {
                let output = clone.run("python3", text);
                let errors = stderr(&output);
                if errors.contains("ModuleNotFoundError")
                    && std::env::var_os("REGRETTA_REQUIRE_PYTHON").is_none()
                {
                    eprintln!("{page}:{line}: not executed, {errors}");
                    continue;
                }
                assert!(output.status.success(), "{page}:{line}:\n{text}\n{errors}");
            }
        }
    }
}

#[test]
fn commands_of_the_readme_do_what_they_say() {
    check("README.md");
}

#[test]
fn commands_of_the_docs_do_what_they_say() {
    let mut pages = 0;
    for entry in std::fs::read_dir(root().join("docs")).expect("the docs") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            check(&format!("docs/{name}"));
            pages += 1;
        }
    }
    assert!(pages > 5, "the docs are there");
}

/// The first finding, by its own command with fewer trials: Lemma 1's bound on the mean is false as printed and
/// true as corrected, its bounds on the variance are true.
#[test]
fn a_finding_reproduces() {
    let command = "regretta run studies/lemma1.toml";
    let page = std::fs::read_to_string(root().join("docs/findings.md")).expect("the page");
    assert!(page.contains(&format!("$ {command}\n")), "the command is the page's");
    let clone = Clone::new(2000);
    let expected = "--expect refuted:lemma1.mean@printed --expect confirmed:lemma1.mean@corrected \
                    --expect confirmed:lemma1.variance@printed";
    let script = format!("{command} --quiet\nregretta analyze results/lemma1 {expected}");
    let output = clone.run("bash", &script);
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Pages show commands in blocks that are executed, and in no others.
#[test]
fn no_command_hides_from_this_test() {
    let mut pages = vec![root().join("README.md")];
    let docs = std::fs::read_dir(root().join("docs")).expect("the docs");
    pages.extend(docs.map(|entry| entry.expect("an entry").path()));
    for page in pages.iter().filter(|page| page.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(page).expect("the page");
        let mut fenced = None;
        for (number, line) in text.lines().enumerate() {
            if let Some(info) = line.trim_start().strip_prefix("```") {
                fenced = if fenced.is_some() { None } else { Some(info.trim().to_owned()) };
                continue;
            }
            let command = |line: &str| line.starts_with("regretta ") || line.starts_with("cargo ");
            let indented =
                fenced.is_none() && line.starts_with("    ") && command(line.trim_start());
            let loose = fenced.as_deref().is_some_and(|info| !["console", "text"].contains(&info))
                && command(line);
            let place = format!("{}:{}", page.display(), number + 1);
            assert!(!indented && !loose, "{place}: put it into a console block: {line}");
        }
    }
}
