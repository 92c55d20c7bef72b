//! The coordinator's disk: it writes when it is let, and fails when it is told to.

use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coordinator::store::{FileSystem, Log, Medium};

/// How the disk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    #[default]
    Fine,
    /// Nothing returns.
    Frozen,
    /// Every write and sync takes so long.
    Slow { each: Duration },
    /// One write or sync in so many fails, after a part of its bytes.
    Failing { one_in: u32 },
}

#[derive(Default)]
struct Inner {
    state: State,
    /// The coordinator's process that has it, counted.
    life: u32,
    /// Whether that has opened its folder. Until then nothing freezes: simulated time waits for it.
    opened: bool,
    operations: u32,
    failed: u32,
    slowed: u32,
}

/// One disk for all lives of a coordinator.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    shared: Arc<(Mutex<Inner>, Condvar)>,
    life: u32,
}

impl Disk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, state: State) {
        self.inner().state = state;
        self.shared.1.notify_all();
    }

    /// The process that has it is gone: its threads write nothing more.
    pub(crate) fn crash(&self) {
        let mut inner = self.inner();
        (inner.life, inner.opened) = (inner.life + 1, false);
        self.shared.1.notify_all();
    }

    pub(crate) fn opened(&self) {
        self.inner().opened = true;
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.inner().state == State::Frozen
    }

    /// How many operations have failed.
    pub(crate) fn failed(&self) -> u32 {
        self.inner().failed
    }

    /// How many operations were slow.
    pub(crate) fn slowed(&self) -> u32 {
        self.inner().slowed
    }

    /// For the process that runs now, with so much room for what waits.
    pub(crate) fn medium(&self, room: usize) -> Medium {
        let disk = Self { shared: Arc::clone(&self.shared), life: self.inner().life };
        Medium { disk: Box::new(disk), segment: 1 << 14, room }
    }

    /// Waits while the disk is frozen, or for as long as an operation takes; whether it fails.
    fn step(&self) -> bool {
        self.slow_down();
        let frozen = |inner: &mut Inner| {
            inner.state == State::Frozen && inner.opened && inner.life == self.life
        };
        let waited = self.shared.1.wait_while(self.inner(), frozen);
        let mut inner = waited.unwrap_or_else(PoisonError::into_inner);
        if inner.life != self.life {
            return true;
        }
        inner.operations += 1;
        let State::Failing { one_in } = inner.state else { return false };
        let fails = inner.operations.is_multiple_of(one_in);
        inner.failed += u32::from(fails);
        fails
    }
}

impl Disk {
    fn slow_down(&self) {
        let mut inner = self.inner();
        if let State::Slow { each } = inner.state
            && inner.opened
            && inner.life == self.life
        {
            inner.slowed += 1;
            drop(inner);
            std::thread::sleep(each);
        }
    }
}

impl coordinator::store::Disk for Disk {
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn Log>> {
        if self.step() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let log = coordinator::store::Disk::create(&mut FileSystem, path)?;
        Ok(Box::new(Segment { disk: self.clone(), log }))
    }
}

struct Segment {
    disk: Disk,
    log: Box<dyn Log>,
}

impl Log for Segment {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.disk.step() {
            self.log.append(&bytes[..bytes.len() / 2])?;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.log.append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.disk.step() {
            return Err(io::Error::other("the disk does not answer"));
        }
        self.log.sync()
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        if self.disk.step() {
            return Err(io::Error::other("the disk does not answer"));
        }
        self.log.set_len(length)
    }
}
