//! What the writer does to segment files, behind a seam where tests make the disk fail.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a store writes its segments to.
pub struct Medium {
    /// Where they are made.
    pub disk: Box<dyn Disk>,
    /// The size beyond which a segment is not continued.
    pub segment: u64,
    /// Bytes that may wait for the disk.
    pub room: usize,
}

/// Where segments are made.
pub trait Disk: Send {
    /// A new, empty file that outlasts a crash.
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn Log>>;

    /// Whether a log is made durable as a whole, by its first sync, and takes nothing more then.
    fn is_whole(&self) -> bool {
        false
    }
}

/// A file that is only appended to.
pub trait Log: Send {
    /// Appends all of `bytes`, or fails after any part of them.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes what was appended durable. After a failure nothing is known about it, and a later
    /// success says nothing: the system may have dropped the pages.
    fn sync(&mut self) -> io::Result<()>;
    /// Drops what lies beyond.
    fn set_len(&mut self, length: u64) -> io::Result<()>;
}

/// The real one.
pub struct FileSystem;

impl Disk for FileSystem {
    fn create(&mut self, path: &Path) -> io::Result<Box<dyn Log>> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        sync_parent(path)?;
        Ok(Box::new(file))
    }
}

impl Log for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        Self::set_len(self, length)
    }
}

/// Puts a file in place, whole and durable, whatever was there.
pub(super) fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static UNIQUE: AtomicU64 = AtomicU64::new(0);
    let unique = (std::process::id(), UNIQUE.fetch_add(1, Ordering::Relaxed));
    let temporary = path.with_extension(format!("{}.{}", unique.0, unique.1));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        sync_parent(path)
    });
    written.inspect_err(|_| {
        // Nothing refers to it.
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Moves a file into place, durable with its name, whatever was there.
pub(super) fn adopt(from: &Path, path: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    std::fs::rename(from, path)?;
    sync_parent(path)
}

/// Makes the name of a new, renamed or deleted file durable.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().expect("a file of the store lies in a folder");
    File::open(parent)?.sync_all()
}
