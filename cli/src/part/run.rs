//! `regretta run --part`: one part, until it is done or the system asks for the end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use coordinator::core::Settings;

use super::{Part, compute};
use crate::commands::{print, print_json};
use crate::exit::Interrupted;
use crate::load::Loaded;
use crate::outcome::Output;
use crate::{signals, text};

/// Computes a part and says what came of it.
pub(crate) fn run(
    loaded: &Loaded,
    part: Part,
    out: &Path,
    workers: usize,
    settings: &Settings,
    output: Output,
) -> anyhow::Result<()> {
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = threads.context("cannot start the runtime")?;
    let stop = Arc::new(AtomicBool::new(false));
    let interrupted = runtime.block_on(async { signals::interrupted() })?;
    let asked = Arc::clone(&stop);
    runtime.spawn(async move {
        interrupted.await;
        asked.store(true, Ordering::Relaxed);
    });
    let done = compute(loaded, part, out, workers, settings, (&stop, output.quiet))?;
    if done.interrupted {
        let advice = "all finished shards are kept: run the same command again to resume";
        return Err(Interrupted(format!("part {part} interrupted; {advice}")).into());
    }
    let path = part.path(out);
    if output.json {
        return print_json(&serde_json::json!({
            "part": part.index, "of": part.count, "trials": done.trials, "file": path,
        }));
    }
    let trials = text::count(done.trials.into());
    print(&format!(
        "part {part}: {trials} trials in {}\nonce all parts are there: regretta merge {out} --out {out}",
        path.display(),
        out = out.display()
    ))
}
