//! Studies that a coordinator has no memory for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/service.rs"]
mod service;

use common::{Bench, STUDY, stderr};
use serde_json::Value;
use service::Service;

/// The study with so many N: 120,000 cells of many rows where they are 40,000.
fn with_sizes(count: u32) -> String {
    let sizes: Vec<String> = (0..count).map(|i| (100_000 + 3 * i).to_string()).collect();
    let text = STUDY.replace("[60, 200]", &format!("[{}]", sizes.join(", ")));
    text.replace("delta = [0.1]", "delta = [0.05, 0.1, 0.5]").replace("\"fixed\", ", "")
}

fn planned(bench: &Bench, name: &str) -> Value {
    let output = bench.output(&["plan", name, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_study_of_too_many_cells_is_foretold_and_refused() {
    let bench = Bench::new();
    bench.write("giant.toml", &with_sizes(40_000));
    bench.write("small.toml", STUDY);
    let service = Service::start(&bench, &[]);
    let submit = |name| bench.output(&["study", "submit", name, "--coordinator", &service.url]);
    let output = submit("giant.toml");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("120001 cells") && said.contains("--study-memory"), "{said}");
    assert!(submit("small.toml").status.success());

    let small = planned(&bench, "small.toml");
    assert_eq!(small["fits_default"], true);
    assert!(small["study_memory"].as_u64().unwrap() < 1 << 20, "{small}");
    bench.write("large.toml", &with_sizes(4_000).replace("[0.05, 0.1, 0.5]", "[0.1]"));
    let large = planned(&bench, "large.toml")["study_memory"].as_u64().unwrap();
    let mebibytes = large.div_ceil(1 << 20);
    for (budget, code) in [(mebibytes - 1, 2), (mebibytes, 0)] {
        let tight = Bench::new();
        let service = Service::start(&tight, &["--study-memory", &budget.to_string()]);
        let submit = ["study", "submit", "large.toml", "--coordinator", &service.url];
        let output = bench.output(&submit);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    }
}
