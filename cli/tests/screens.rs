//! Every screen of the command line, as it was when somebody last looked at it.
//!
//! `UPDATE_SCREENS=1 cargo test --release --workspace --test screens` writes what is printed now to
//! `cli/tests/screens/`; look at the difference before it is committed. Times, speeds and what depends on the
//! machine are replaced by marks.

mod common;

use std::path::{Path, PathBuf};
use std::process::Output;

use common::{Bench, STUDY};

/// Compares what was printed with the file of that name, or writes it.
fn screen(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/screens");
    let path: PathBuf = folder.join(format!("{name}.txt"));
    let text = format!("{}\n", text.trim_end());
    if std::env::var_os("UPDATE_SCREENS").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(&path, text).expect("a file");
        return;
    }
    let held = std::fs::read_to_string(&path).unwrap_or_default();
    let words = "look at it, and if it is right: UPDATE_SCREENS=1 cargo test --release --workspace --test screens";
    assert!(held == text, "{} has changed; {words}\n{text}", path.display());
}

/// A command as a user sees it: the line, then stdout and stderr, then the exit code where it is not 0.
fn shown(bench: &Bench, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = bench.output(arguments);
    let mut text = format!("$ regretta {}\n", arguments.join(" "));
    text += &String::from_utf8_lossy(&stdout);
    text += &String::from_utf8_lossy(&stderr);
    let code = status.code().expect("no signal");
    if code != 0 {
        text = format!("{text}exit code {code}\n");
    }
    steady(&text.replace(&bench.dir.path().display().to_string(), "FOLDER"))
}

/// The text without what changes from run to run: durations, speeds, and the width that they take.
fn steady(text: &str) -> String {
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut kept = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let number = word.trim_matches(',').parse::<f64>().is_ok();
            let unit = words.get(at + 1).map_or("", |unit| unit.trim_matches([',', ';', ')']));
            let timed =
                ["ms", "s", "min", "h", "trials/s", "left", "GB", "TB", "MB", "kB"].contains(&unit);
            let id = words
                .last()
                .is_some_and(|id| id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()));
            kept.push(if number && timed {
                "#"
            } else if ["ms", "s", "min", "h"].contains(word) && kept.last() == Some(&"#") {
                "s"
            } else if ["GB", "TB", "MB", "kB"].contains(word) && kept.last() == Some(&"#") {
                "bytes"
            } else if number && id && at + 2 == words.len() {
                "#"
            } else {
                word
            });
        }
        format!("{}{}", &line[..indent], kept.join(" "))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn help(bench: &Bench, command: &[&str]) -> String {
    let output = bench.output(&[command, &["--help"]].concat());
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The commands that a help screen lists.
fn listed(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn help_teaches() {
    let bench = Bench::new();
    let mut screens = vec![];
    let mut left: Vec<Vec<String>> = vec![vec![]];
    while let Some(command) = left.pop() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let text = help(&bench, &words);
        for inner in listed(&text) {
            left.push([command.clone(), vec![inner]].concat());
        }
        screens.push((command, text));
    }
    assert!(screens.len() > 20, "{} screens", screens.len());
    for (command, text) in screens {
        let example = text.contains("Examples:") || text.contains("Example:");
        assert!(example, "regretta {} --help shows no example", command.join(" "));
        screen(&[vec!["help".to_owned()], command].concat().join("-"), &text);
    }
}

#[test]
fn knowledge_that_needs_no_study() {
    let bench = Bench::new();
    screen("theory", &shown(&bench, &["theory", "--n", "500", "--t", "20", "--delta", "0.1"]));
    screen("theory-true", &shown(&bench, &["theory", "--n", "500", "--t", "5", "--delta", "0.1"]));
    screen("claims", &shown(&bench, &["claims", "theorem2.ucb"]));
    let doctor = shown(&bench, &["doctor"]);
    for part in ["numerics", "processor", "memory", "disk", "file system", "port"] {
        assert!(doctor.contains(part), "{doctor}");
    }
}

/// From an idea to a checked dataset.
#[test]
fn a_study_from_beginning_to_end() {
    let bench = Bench::new();
    screen("init", &shown(&bench, &["init", "mine.toml"]));
    screen("init-again", &shown(&bench, &["init", "mine.toml"]));
    screen("init-file", &std::fs::read_to_string(bench.path("mine.toml")).expect("the file"));
    bench.write("study.toml", STUDY);
    screen("plan", &shown(&bench, &["plan", "study.toml", "--workers", "2"]));
    screen("run", &shown(&bench, &["run", "study.toml", "--workers", "2", "--quiet"]));
    screen("plan-again", &shown(&bench, &["plan", "study.toml", "--workers", "2"]));
    screen("analyze", &shown(&bench, &["analyze", "results/small"]));
    let table = ["table", "results/small", "--claim", "lemma1.mean", "--rows", "N", "--cols", "t"];
    screen("table", &shown(&bench, &[&table[..], &["--where", "constants=printed"]].concat()));
    screen("verify", &shown(&bench, &["verify", "results/small"]));
    screen("verify-recompute", &shown(&bench, &["verify", "results/small", "--recompute", "20"]));
    let worst = ["analyze", "results/small", "--worst", "3", "--claim", "lemma1.mean"];
    screen("analyze-worst", &shown(&bench, &worst));
    let manifest =
        std::fs::read_to_string(bench.path("results/small/manifest.json")).expect("a file");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    let (study, cell) = (&manifest["study"], &manifest["cells"][0]["cell"]);
    let address = format!("{}/{}/3", study.as_str().expect("an id"), cell.as_str().expect("an id"));
    screen("replay", &shown(&bench, &["replay", "study.toml", &address]));
    for part in ["1/2", "2/2"] {
        let run = ["run", "study.toml", "--out", "parts", "--part", part, "--quiet"];
        screen(&format!("run-part-{}", &part[..1]), &shown(&bench, &run));
    }
    screen("merge", &shown(&bench, &["merge", "parts", "--out", "merged", "--quiet"]));
    screen("cert", &shown(&bench, &["cert", "--out", "certs", "--host", "localhost"]));
    screen("man", &shown(&bench, &["man", "--out", "man"]));
}

/// The scripts, as they are given to Slurm.
#[test]
fn jobs_of_a_cluster() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let submit = ["slurm", "submit", "study.toml", "--cpus", "4", "--dry-run"];
    for (name, more) in [
        ("slurm-parts", ["--parts", "200", "--at-once", "50"]),
        ("slurm-coordinator", ["--mode", "coordinator", "--workers", "20"]),
    ] {
        let text = shown(&bench, &[&submit[..], &more].concat());
        screen(name, &text.replace(env!("CARGO_BIN_EXE_regretta"), "/opt/regretta"));
    }
}

/// Typical slips, and what is said about them.
#[test]
fn errors_say_how_to_go_on() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let slips: [(&str, &[&str]); 9] = [
        ("error-command", &["rnu", "study.toml"]),
        ("error-flag", &["run", "study.toml", "--worker", "2"]),
        ("error-no-file", &["run", "nowhere.toml"]),
        ("error-no-dataset", &["analyze", "nowhere"]),
        ("error-part", &["run", "study.toml", "--part", "5/4"]),
        ("error-workers", &["run", "study.toml", "--workers", "0"]),
        ("error-claim", &["claims", "theorem3.*"]),
        ("error-address", &["replay", "study.toml", "1/2"]),
        ("error-no-coordinator", &["study", "list", "--coordinator", "http://127.0.0.1:1"]),
    ];
    for (name, arguments) in slips {
        let text = shown(&bench, arguments);
        assert!(text.contains("exit code"), "{text}");
        screen(name, &text);
    }
    let mistakes = [
        ("key", ("replicates", "replicats")),
        ("method", ("\"random\"", "\"randm\"")),
        ("kernel", ("squared-exponential", "squared-exponental")),
        ("horizon", ("T = [1, 5]", "T = [1, 50]")),
        ("delta", ("delta = [0.1]", "delta = [1.5]")),
        ("functions", ("N = [60, 200]", "N = [6, 200]")),
        ("noise", ("noise_variance = 0.01", "noise_variance = -0.01")),
        ("type", ("seed = 7", "seed = \"seven\"")),
        ("twice", ("N = [60, 200]", "N = [60, 60]")),
        ("grid", ("[grid]", "[gird]")),
        ("replicates", ("replicates = 300", "replicates = 0")),
        ("syntax", ("name = \"small\"", "name = small")),
    ];
    for (name, (right, wrong)) in mistakes {
        bench.write("wrong.toml", &STUDY.replacen(right, wrong, 1));
        let text = shown(&bench, &["run", "wrong.toml"]);
        assert!(text.contains("exit code 2") && text.contains("wrong.toml"), "{text}");
        screen(&format!("mistake-{name}"), &text);
    }
}
