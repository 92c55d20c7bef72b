//! Passwords and tokens stay with those whom they are for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/service.rs"]
mod service;

use std::fs::{Permissions, metadata, set_permissions};
use std::os::unix::fs::PermissionsExt;

use common::{Bench, STUDY, stderr};
use service::Process;

const PASSWORD: &str = "geheim-4242";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.write("token", "correct-horse-battery-staple-4242");
    set_mode(&bench, "token", 0o600);
    bench
}

fn set_mode(bench: &Bench, name: &str, mode: u32) {
    set_permissions(bench.path(name), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_ledgers_password_on_a_command_line_is_refused_and_not_repeated() {
    let bench = bench();
    let coordinator = ["coordinator", "--dir", "service", "--listen", "127.0.0.1:0"];
    let submit = ["slurm", "submit", "study.toml", "--mode", "coordinator", "--dry-run"];
    for command in [&coordinator[..], &submit] {
        for (ledger, words) in [
            (format!("postgres://me:{PASSWORD}@127.0.0.1:1/led"), "REGRETTA_LEDGER"),
            (format!("postgres://me@127.0.0.1:1/led?password={PASSWORD}"), "REGRETTA_LEDGER"),
            (format!("postgres://me@{PASSWORD}@127.0.0.1:99999/led"), "--ledger: "),
            // Passwords that are not percent-encoded.
            (format!("postgres://me:ge?{PASSWORD}@127.0.0.1:1/led"), "REGRETTA_LEDGER"),
            (format!("postgres://me:{PASSWORD}?ge@127.0.0.1:1/led"), "REGRETTA_LEDGER"),
            (format!("postgres://me:ge#{PASSWORD}@127.0.0.1:1/led"), "REGRETTA_LEDGER"),
            (format!("postgres://me:7/{PASSWORD}@127.0.0.1:1/led"), "REGRETTA_LEDGER"),
            (format!("postgres://me@127.0.0.1:1/led?x{PASSWORD}=1"), "parameter 1"),
        ] {
            let output = bench.output(&[command, &["--ledger", &ledger]].concat());
            assert_eq!(output.status.code(), Some(2), "{command:?}");
            assert!(stderr(&output).contains(words), "{}", stderr(&output));
            assert!(!stderr(&output).contains(PASSWORD), "{}", stderr(&output));
            assert!(output.stdout.is_empty(), "no script is printed");
        }
    }
}

/// In the environment, too, an address that cannot be read is not repeated.
#[test]
fn a_password_that_is_not_percent_encoded_is_not_repeated() {
    let bench = bench();
    let coordinator = ["coordinator", "--dir", "service", "--listen", "127.0.0.1:0"];
    for password in [format!("ge?{PASSWORD}"), format!("{PASSWORD}#ge"), format!("7/{PASSWORD}")] {
        let mut command = bench.command(&coordinator);
        command.env("REGRETTA_LEDGER", format!("postgres://me:{password}@127.0.0.1:1/led"));
        let output = command.env("RUST_LOG", "trace").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("percent-encoded"), "{}", stderr(&output));
        assert!(!stderr(&output).contains(PASSWORD), "{}", stderr(&output));
    }
}

#[test]
fn a_ledger_with_its_password_gets_into_no_job_script() {
    let bench = bench();
    let submit = ["slurm", "submit", "study.toml", "--parts", "2", "--dry-run"];
    let ledger = format!("postgres://me:{PASSWORD}@127.0.0.1:1/led");
    let option = format!("--sbatch=--export=ALL,REGRETTA_LEDGER={ledger}");
    let output = bench.output(&[&submit[..], &[&option]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("--sbatch has the address of a ledger"),
        "{}",
        stderr(&output)
    );
    assert!(!stderr(&output).contains(PASSWORD) && output.stdout.is_empty());
}

#[test]
fn credentials_in_a_coordinators_address_are_refused_and_not_repeated() {
    let bench = bench();
    let list = ["study", "list", "--token-file", "token", "--coordinator"];
    let worker = ["worker", "--patience", "0", "--token-file", "token", "--coordinator"];
    for command in [&list[..], &worker] {
        for address in [
            format!("http://me:{PASSWORD}@0.0.0.0:1"),
            format!("http://127.0.0.1:1,http://me:ge,{PASSWORD}@0.0.0.0:1"),
        ] {
            let output = bench.output(&[command, &[&address]].concat());
            assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
            assert!(stderr(&output).contains("user name or a password"), "{}", stderr(&output));
            assert!(!stderr(&output).contains(PASSWORD), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_ledgers_password_in_the_environment_is_used_and_never_printed() {
    let bench = bench();
    let with_password = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.env("REGRETTA_LEDGER", format!("postgres://me:{PASSWORD}@127.0.0.1:1/led"));
        command.env("RUST_LOG", "trace");
        command
    };
    // Nothing listens there.
    let coordinator = ["coordinator", "--dir", "service", "--listen", "127.0.0.1:0"];
    let (status, said) = Process::start(with_password(&coordinator)).wait();
    assert!(!status.success() && said.contains("postgres://me@127.0.0.1:1/led"), "{said}");
    let help = with_password(&["coordinator", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("REGRETTA_LEDGER"), "{help}");
    assert!(!said.contains(PASSWORD) && !help.contains(PASSWORD), "{said}{help}");
}

#[test]
fn job_scripts_are_for_their_owner_alone() {
    let bench = bench();
    std::fs::create_dir(bench.path("bin")).unwrap();
    for (name, text) in
        [("sbatch", "echo 7"), ("scontrol", "echo MaxArraySize = 1001"), ("squeue", "")]
    {
        let name = format!("bin/{name}");
        bench.write(&name, &format!("#!/bin/sh\n{text}\n"));
        set_mode(&bench, &name, 0o755);
    }
    let path = format!("{}:{}", bench.path("bin").display(), std::env::var("PATH").unwrap());
    let submit = ["slurm", "submit", "study.toml", "--parts", "2", "--out", "out"];
    let option = format!("--sbatch=--export=PGPASSWORD={PASSWORD}");
    // The second time over what the first one wrote, which anybody has made readable meanwhile.
    for _ in 0..2 {
        let submitted =
            bench.command(&[&submit[..], &[&option]].concat()).env("PATH", &path).output().unwrap();
        assert!(submitted.status.success(), "{}", stderr(&submitted));
        for name in ["out/slurm/parts-1.sh", "out/slurm/merge.sh"] {
            let mode = metadata(bench.path(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
            set_mode(&bench, name, 0o644);
        }
    }
}

#[test]
fn a_token_that_others_can_read_is_warned_of() {
    let bench = bench();
    // Nothing listens there; 0.0.0.0 is this machine, but not by an address of loopback.
    let list = ["study", "list", "--token-file", "token", "--coordinator"];
    let worker = ["worker", "--patience", "0", "--token-file", "token", "--coordinator"];
    for command in [&list[..], &worker] {
        for (mode, address, warned) in [
            (0o600, "http://127.0.0.1:1", None),
            (0o600, "http://0.0.0.0:1", Some("sent to http://0.0.0.0:1 unencrypted")),
            (0o640, "http://127.0.0.1:1", Some("others can read the token")),
            (0o604, "http://127.0.0.1:1", Some("others can read the token")),
        ] {
            set_mode(&bench, "token", mode);
            let said = stderr(&bench.output(&[command, &[address]].concat()));
            match warned {
                Some(words) => assert!(said.contains(words), "{said}"),
                None => assert!(
                    !said.contains("the token is") && !said.contains("others can"),
                    "{said}"
                ),
            }
        }
    }
    // Without a token there is nothing to read.
    let said = stderr(&bench.output(&["study", "list", "--coordinator", "http://0.0.0.0:1"]));
    assert!(!said.contains("unencrypted"), "{said}");
}

#[test]
fn a_coordinator_warns_of_its_token_file_too() {
    let bench = bench();
    set_mode(&bench, "token", 0o644);
    // Refused for its address, so that it ends.
    let coordinator =
        ["coordinator", "--dir", "service", "--listen", "0.0.0.0:0", "--token-file", "token"];
    let said = stderr(&bench.output(&coordinator));
    assert!(said.contains("others can read the token in token (mode 644)"), "{said}");
}
