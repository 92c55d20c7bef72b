//! Studies that tests compute.

use std::sync::Arc;

use proto::convert::Lease;
use study::prior::Files;
use study::{Plan, Study};

use super::library::{Known, Library};
use crate::prior::MemoryLimit;
use crate::simd::Cpu;

/// Small trials, some of which violate claims.
pub(super) const STUDY: &str = r#"[study]
name = "small"
seed = 7
replicates = 400
[prior]
setting = "finite"
domain = { kind = "grid", points = 12, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
mean = { kind = "zero" }
noise_variance = 0.05
[grid]
N = [60]
T = [2, 5]
delta = [0.5]
design = ["fixed"]
"#;

pub(super) fn study(detail: &str) -> String {
    STUDY.replace("seed = 7", &format!("seed = 7\ndetail = \"{detail}\""))
}

pub(super) fn known(text: &str, files: Files) -> Arc<Known> {
    let plan = Plan::new(Study::parse("small.toml", text).unwrap(), &files).unwrap();
    Arc::new(Known::new(plan, files))
}

pub(super) fn lease(known: &Known, epoch: u64, replicates: std::ops::Range<u64>) -> Lease {
    Lease {
        epoch,
        study: known.plan.id,
        cell: known.plan.cells[0].id,
        replicates,
        check: false,
        revision: known.revision,
    }
}

pub(super) fn library() -> Library {
    Library::new(MemoryLimit { bytes: 1 << 26, state_per_point: 0 }, Cpu::detect())
}
