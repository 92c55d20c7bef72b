//! A million points fit: a trial on a white prior of M = 10^6 stays under 1 GiB.
//!
//! The trial runs in a child of this test binary, so that the peak of memory is its own.
#![cfg(target_os = "linux")]

use std::process::Command;

use study::cell::Policy;
use tests::cells::{run, ucb, wishart};
use tests::priors::{kernels, on_grid};
use tests::process::peak_memory;

const POINTS: usize = 1_000_000;
const MARK: &str = "peak of memory in KiB: ";
/// Set in the child.
const CHILD: &str = "REGRETTA_MEMORY_CHILD";

fn run_trials() {
    let prior = on_grid(POINTS, kernels::WHITE, 0.1);
    for policy in [ucb(wishart(1000), 0.1), Policy::Random] {
        let records = run(&prior, policy, 1, &[5], 2);
        assert!(records.len() == 2 && records.iter().all(|record| record.outcome.is_ok()));
    }
    println!("{MARK}{}", peak_memory());
}

#[test]
fn a_million_points_fit_in_a_gibibyte() {
    if std::env::var_os(CHILD).is_some() {
        return run_trials();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["a_million_points_fit_in_a_gibibyte", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let peak = text.lines().find_map(|line| line.split_once(MARK)).unwrap().1;
    let peak: u64 = peak.trim().parse().unwrap();
    println!("{} MiB", peak >> 10);
    assert!(peak < 1 << 20, "{} MiB", peak >> 10);
}
