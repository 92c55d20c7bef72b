//! A disk that fails, blocks or dies when it is told to.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::store::disk::{Disk, FileSystem, Log};

/// What an operation on a segment file is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Append,
    Sync,
    SetLen,
}

/// What it does instead of succeeding. An append leaves this many of its bytes behind first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(super) kind: io::ErrorKind,
    pub(super) written: usize,
}

pub(super) const FULL: Fault = Fault { kind: io::ErrorKind::StorageFull, written: 5 };
pub(super) const BROKEN: Fault = Fault { kind: io::ErrorKind::Other, written: 5 };

/// A moment at which the folder is copied, as a crash would leave it.
#[derive(Debug)]
pub(super) struct Crash {
    /// The operation during which it happens, counted from 0.
    pub(super) operation: usize,
    /// How much of what was never synced reaches the disk, of 256.
    pub(super) share: usize,
    pub(super) to: PathBuf,
}

#[derive(Default)]
pub(super) struct Plan {
    pub(super) fault: Option<Box<dyn FnMut(Operation) -> Option<Fault> + Send>>,
    pub(super) crash: Option<Crash>,
    pub(super) on_crash: Option<Box<dyn FnOnce() + Send>>,
    operations: usize,
    crashed: bool,
    dir: PathBuf,
    synced: HashMap<PathBuf, u64>,
}

#[derive(Clone, Default)]
pub(crate) struct Faulty(pub(super) Arc<Mutex<Plan>>);

impl Faulty {
    pub(crate) fn new(dir: &Path) -> Self {
        let plan = Plan { dir: dir.to_path_buf(), ..Plan::default() };
        Self(Arc::new(Mutex::new(plan)))
    }

    pub(crate) fn fail(&self, fault: impl FnMut(Operation) -> Option<Fault> + Send + 'static) {
        self.0.lock().unwrap().fault = Some(Box::new(fault));
    }

    pub(super) fn heal(&self) {
        self.0.lock().unwrap().fault = None;
    }

    /// Counts an operation, and says what goes wrong with it.
    fn step(&self, operation: Operation) -> Option<Fault> {
        let mut plan = self.0.lock().unwrap();
        plan.operations += 1;
        if plan.crashed {
            return Some(BROKEN);
        }
        plan.fault.as_mut().and_then(|fault| fault(operation))
    }

    /// After an operation: copies the folder if this is where the power goes.
    fn crash(&self) {
        let mut plan = self.0.lock().unwrap();
        let now = plan.operations;
        if let Some(crash) = plan.crash.take_if(|crash| crash.operation + 1 == now) {
            plan.on_crash.take().into_iter().for_each(|hook| hook());
            copy(&plan, &crash).unwrap();
            plan.crashed = true;
        }
    }
}

/// Of what was not synced, only a part reaches the disk.
fn copy(plan: &Plan, crash: &Crash) -> io::Result<()> {
    std::fs::create_dir_all(crash.to.join("segments"))?;
    for name in ["ledger.db", "ledger.db-wal"] {
        if plan.dir.join(name).exists() {
            std::fs::copy(plan.dir.join(name), crash.to.join(name))?;
        }
    }
    for entry in std::fs::read_dir(plan.dir.join("segments"))? {
        let path = entry?.path();
        let bytes = std::fs::read(&path)?;
        let synced = plan.synced.get(&path).map_or(0, |synced| *synced as usize).min(bytes.len());
        let kept = synced + (bytes.len() - synced) * crash.share / 256;
        std::fs::write(crash.to.join("segments").join(path.file_name().unwrap()), &bytes[..kept])?;
    }
    Ok(())
}

impl Disk for Faulty {
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn Log>> {
        if let Some(fault) = self.step(Operation::Create) {
            return Err(fault.kind.into());
        }
        let log = FileSystem.create(path)?;
        self.crash();
        let (disk, path) = (self.clone(), path.to_path_buf());
        Ok(Box::new(FaultyLog { disk, path, log }))
    }
}

struct FaultyLog {
    disk: Faulty,
    path: PathBuf,
    log: Box<dyn Log>,
}

impl Log for FaultyLog {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(fault) = self.disk.step(Operation::Append) {
            self.log.append(&bytes[..fault.written.min(bytes.len())])?;
            return Err(fault.kind.into());
        }
        self.log.append(bytes)?;
        self.disk.crash();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Some(fault) = self.disk.step(Operation::Sync) {
            return Err(fault.kind.into());
        }
        self.log.sync()?;
        let length = File::open(&self.path)?.metadata()?.len();
        self.disk.0.lock().unwrap().synced.insert(self.path.clone(), length);
        self.disk.crash();
        Ok(())
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        if let Some(fault) = self.disk.step(Operation::SetLen) {
            return Err(fault.kind.into());
        }
        self.log.set_len(length)?;
        self.disk.crash();
        Ok(())
    }
}
