//! What studies take of a coordinator's memory, beside what it sets aside for them.
//!
//! Each study comes in to a coordinator in a child of this test binary, so that what that grows by is its own.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coordinator::core::Settings;
use coordinator::server::{Config, Coordinator, Datasets, Definition, Handle, study_memory};
use coordinator::store::Storage;
use study::StudyId;
use study::plan::Size;
use tests::process::{memory_now, peak_memory};

const MARK: &str = "grown in KiB: ";
/// Set in the child: which study.
const CHILD: &str = "REGRETTA_STUDY_MEMORY_CHILD";

/// What a coordinator takes for whatever it does first: threads, connections, buffers.
const AT_FIRST: u64 = 24 << 20;

fn numbers(count: u64) -> String {
    let numbers: Vec<String> = (0..count).map(|i| (1000 + i).to_string()).collect();
    numbers.join(", ")
}

fn study(replicates: &str, n: u64, t: &str, delta: &str, more: &str) -> String {
    format!(
        r#"[study]
name = "large"
seed = 1
replicates = {replicates}
[prior]
domain = {{ kind = "grid", points = 80, dimension = 1 }}
kernel = {{ kind = "squared-exponential", lengthscale = 0.1 }}
noise_variance = 0.01
[grid]
N = [{}]
T = [{t}]
delta = [{delta}]
{more}
"#,
        numbers(n)
    )
}

/// Many cells, many rows, batches, many priors.
fn studies() -> Vec<(&'static str, String)> {
    let priors: Vec<String> = (1..=20_000).map(|i| format!("{}", f64::from(i) * 1e-4)).collect();
    let priors = format!("\"prior.noise_variance\" = [{}]", priors.join(", "));
    let few = "\n[claims]\ntest = \"lemma1.mean\"";
    vec![
        ("cells", study("1000", 40_000, "5", "0.1", few)),
        (
            "rows",
            study(
                "1000",
                1000,
                "1, 2, 5, 10, 20, 50",
                "0.05, 0.1, 0.2, 0.5",
                "design = [\"fixed\", \"adaptive\"]\nacquisition = [\"gp-ucb\", \"pi\"]",
            ),
        ),
        (
            "batches",
            study(
                "{ batch = 100, max = 1000 }",
                2000,
                "1, 2, 5, 10, 20, 50",
                "0.05, 0.1, 0.2, 0.5",
                "acquisition = \"pi\"",
            ),
        ),
        ("priors", study("1000", 1, "5", "0.1", &format!("{priors}{few}"))),
    ]
}

struct NoDatasets;

impl Datasets for NoDatasets {
    fn folder(&self, _: StudyId) -> Option<PathBuf> {
        None
    }
}

async fn take_in(text: String) {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        dir: dir.path().to_path_buf(),
        storage: Storage::default(),
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        metrics: None,
        token: None,
        tls: None,
        insecure: true,
        single: false,
        study_memory: u64::MAX,
        settings: Settings::default(),
        heartbeat: Duration::from_secs(5),
        numerics: "any".to_owned(),
        version: "0".to_owned(),
        datasets: Arc::new(NoDatasets),
    };
    let coordinator = Coordinator::start(config).await.unwrap();
    let before = memory_now();
    let handle = coordinator.handle();
    let definition = Definition { file_name: "s.toml".to_owned(), text, files: vec![] };
    let others = tokio::spawn(longest_call(handle.clone()));
    let began = Instant::now();
    let study = handle.submit(definition).await.unwrap();
    let submitted = began.elapsed();
    others.abort();
    let status = handle.status(study).await.unwrap();
    assert!(!status.cells.is_empty());
    println!("taken in after {submitted:?}; {} KiB stay", memory_now().saturating_sub(before));
    println!("{MARK}{}", peak_memory() - before);
    drop(handle);
    coordinator.stop(Duration::ZERO).await;
}

/// Says how long others wait for the engine, whenever it takes longer than before.
async fn longest_call(handle: Handle) {
    let mut longest = Duration::ZERO;
    loop {
        let began = Instant::now();
        assert!(handle.definition(StudyId([0; 32])).await.is_none());
        if began.elapsed() > longest {
            longest = began.elapsed();
            println!("others wait {longest:?}");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn a_study_takes_no_more_memory_than_was_set_aside_for_it() {
    if let Ok(name) = std::env::var(CHILD) {
        let (_, text) = studies().into_iter().find(|(known, _)| *known == name).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        return runtime.block_on(take_in(text));
    }
    for (name, text) in studies() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "a_study_takes_no_more_memory_than_was_set_aside_for_it",
                "--exact",
                "--nocapture",
            ])
            .env(CHILD, name)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let grown = said.lines().find_map(|line| line.split_once(MARK)).unwrap().1;
        let grown = grown.trim().parse::<u64>().unwrap() << 10;
        let size = Size::read("s.toml", &text).unwrap();
        let aside = study_memory(&size);
        println!("{name}: {size:?}, {} MiB set aside, grown by {} MiB", aside >> 20, grown >> 20);
        for line in ["taken in", "others wait"] {
            println!("{}", said.lines().rfind(|said| said.contains(line)).unwrap_or_default());
        }
        assert!(grown <= aside + AT_FIRST, "{name}: {grown} of {aside}");
        assert!(aside <= 4 * grown, "{name}: {aside} for {grown}");
    }
}
