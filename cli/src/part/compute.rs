//! Computing a part: the scheduling core on threads of this process.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use coordinator::core::{
    Command, Core, DoneShard, Event, Grant, LeaseEpoch, Settings, StudyWork, WorkerId,
};
use coordinator::server::cell_work;
use indicatif::{ProgressBar, ProgressStyle};
use study::plan::Plan;
use study::tally::Tally;
use worker::client::{Alone, Computed};
use worker::{Cpu, golden};

use super::log::{About, Head, Log, Shard};
use super::{Part, folder};
use crate::exit::BadInput;
use crate::load::{Loaded, memory_limit};

/// Leases of threads do not end before the threads do.
const FOREVER: Duration = Duration::from_secs(1 << 32);

/// What a part came to.
pub(crate) struct Done {
    /// Trials of the part that are in its file.
    pub(crate) trials: u64,
    /// Whether it was told to stop before the end.
    pub(crate) interrupted: bool,
}

/// Computes what is missing of a part, on so many threads, until `stop` is set.
pub(crate) fn compute(
    loaded: &Loaded,
    part: Part,
    out: &Path,
    threads: usize,
    settings: &Settings,
    (stop, quiet): (&AtomicBool, bool),
) -> anyhow::Result<Done> {
    let files = keep_files(loaded, out)?;
    let plan = &loaded.plan;
    let (log, shards) = Log::open(&part.path(out), &head(loaded, part, files))?;
    let trials = |shard: &Shard| shard.about.end - shard.about.start;
    let there = shards.iter().map(trials).sum();
    let settings = Settings { lease: FOREVER, check_fraction: 0.0, ..settings.clone() };
    let mut core = Core::new(settings, LeaseEpoch(1));
    let work = work(plan, part, &shards)?;
    let done = core.handle(Duration::ZERO, Event::Submit(work)).iter().any(is_end);
    let desk = Desk {
        state: Mutex::new(State { core, log, done: done || part.trials(plan) == 0, trials: there }),
        changed: Condvar::new(),
        alone: Alone::new(plan.clone(), loaded.files.clone(), memory_limit()?, Cpu::detect()),
        began: Instant::now(),
        failed: AtomicBool::new(false),
        stop,
        bar: bar(quiet, part, plan),
    };
    desk.bar.set_position(there);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..=threads as u64)
            .map(|number| {
                let desk = &desk;
                scope.spawn(move || desk.work(WorkerId(number)))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    desk.bar.finish_and_clear();
    let state = desk.lock();
    Ok(Done { trials: state.trials, interrupted: !state.done })
}

fn head(loaded: &Loaded, part: Part, files: Vec<(String, String)>) -> Head {
    let definition = &loaded.definition;
    let name = Path::new(&definition.file_name).file_name();
    Head {
        part: part.index,
        of: part.count,
        revision: blake3::Hash::from_bytes(loaded.plan.revision()).to_hex().to_string(),
        numerics: golden::DIGEST.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        file_name: name.unwrap_or_default().to_string_lossy().into_owned(),
        text: definition.text.clone(),
        files,
    }
}

/// Keeps what the study names beside the parts, so that merging needs nothing else.
fn keep_files(loaded: &Loaded, out: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let folder = folder(out);
    std::fs::create_dir_all(&folder)
        .map_err(|error| BadInput(format!("cannot create {}: {error}", folder.display())))?;
    let mut kept = Vec::new();
    for (name, bytes) in &loaded.definition.files {
        let digest = blake3::hash(bytes).to_hex().to_string();
        let place = folder.join("files").join(&digest);
        if !place.exists() {
            let write = || -> std::io::Result<()> {
                std::fs::create_dir_all(folder.join("files"))?;
                // Other parts may be at it: each writes its own file, and renames are atomic.
                let staged = place.with_extension(std::process::id().to_string());
                std::fs::write(&staged, bytes)?;
                std::fs::rename(&staged, &place)
            };
            write().with_context(|| format!("cannot write {}", place.display()))?;
        }
        kept.push((name.clone(), digest));
    }
    Ok(kept)
}

/// The part as the core sees it: what other parts compute is as good as done.
fn work(plan: &Plan, part: Part, shards: &[Shard]) -> anyhow::Result<StudyWork> {
    let mut cells = Vec::new();
    for (cell, mine) in part.cells(plan) {
        let mut done = Vec::new();
        let rows = cell_work(plan, cell, Vec::new()).rows;
        for elsewhere in [0..mine.start, mine.end..plan.replicates.max()] {
            if !elsewhere.is_empty() {
                done.push((elsewhere, [0; 32], Tally::zero(rows).encode()));
            }
        }
        for About { start, end, digest, tally, .. } in
            shards.iter().map(|shard| &shard.about).filter(|about| about.cell == cell.id.0)
        {
            Tally::decode(tally)?;
            done.push((*start..*end, *digest, tally.clone()));
        }
        let done = done.into_iter().map(|(range, digest, tally)| DoneShard {
            range,
            digest,
            tally: tally.into(),
            worker: String::new(),
            checked: true,
        });
        cells.push(cell_work(plan, cell, done.collect()));
    }
    Ok(StudyWork { study: plan.id, seed_for_checks: plan.study.seed, cells })
}

fn is_end(command: &Command) -> bool {
    matches!(command, Command::StudyDone { .. })
}

fn bar(quiet: bool, part: Part, plan: &Plan) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(part.trials(plan));
    let template = "part {msg} {bar:30} {pos} of {len} trials, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is valid");
    bar.set_style(style.progress_chars("━╸ "));
    bar.set_message(part.to_string());
    bar
}

/// What the threads share.
struct Desk<'a> {
    state: Mutex<State>,
    changed: Condvar,
    alone: Alone,
    began: Instant,
    failed: AtomicBool,
    stop: &'a AtomicBool,
    bar: ProgressBar,
}

struct State {
    core: Core,
    log: Log,
    done: bool,
    trials: u64,
}

impl Desk<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes shards until there are no more, or somebody fails or asks to stop.
    fn work(&self, me: WorkerId) -> anyhow::Result<()> {
        let name = format!("thread-{}", me.0);
        self.lock()
            .core
            .handle(self.began.elapsed(), Event::Register { worker: me, name, slots: 1 });
        let ended = self.shards(me);
        if ended.is_err() {
            self.failed.store(true, Ordering::Relaxed);
            self.changed.notify_all();
        }
        ended
    }

    fn shards(&self, me: WorkerId) -> anyhow::Result<()> {
        while let Some(grant) = self.next(me) {
            let computed = self.alone.compute(grant.cell, grant.range.clone(), self.stop);
            match computed.map_err(anyhow::Error::msg)? {
                Some(computed) => self.finish(me, &grant, &computed)?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// The next shard; waits while others hold all that is needed.
    fn next(&self, me: WorkerId) -> Option<Grant> {
        let mut state = self.lock();
        loop {
            let over = self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed);
            if state.done || over {
                return None;
            }
            let request = Event::Request { worker: me, wanted: 1 };
            let commands = state.core.handle(self.began.elapsed(), request);
            for command in commands {
                if let Command::Grant { grant, .. } = command {
                    return Some(grant);
                }
            }
            let waited = self.changed.wait_timeout(state, Duration::from_millis(100));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Hands a shard in. It is dropped where its cell has stopped, or another thread was faster.
    fn finish(&self, me: WorkerId, grant: &Grant, computed: &Computed) -> anyhow::Result<()> {
        let (start, end) = (grant.range.start, grant.range.end);
        let about = About {
            cell: grant.cell.0,
            start,
            end,
            digest: computed.digest,
            tally: computed.tally.to_vec(),
            seconds: computed.seconds,
        };
        let finished = Event::Finished {
            worker: me,
            epoch: grant.epoch,
            digest: computed.digest,
            tally: Tally::decode(&computed.tally)?,
            trials: end - start,
            seconds: computed.seconds,
        };
        let mut state = self.lock();
        let mut commands = state.core.handle(self.began.elapsed(), finished);
        while let Some(command) = commands.pop() {
            match command {
                Command::Commit { epoch, .. } => {
                    state.log.append(&about, computed)?;
                    state.trials += end - start;
                    self.bar.inc(end - start);
                    let committed = Event::Committed { epoch };
                    commands.extend(state.core.handle(self.began.elapsed(), committed));
                }
                Command::StudyDone { .. } => state.done = true,
                _ => {}
            }
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }
}
