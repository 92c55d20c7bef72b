//! Submissions on their way in: files go to disk as they arrive, and are hashed while they do.
//!
//! `DIR/spool` has a folder for each submission. What is there at the start is of a life before, and is deleted.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use proto::convert::{Announced, Assembly, Invalid, Piece};
use proto::v1;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use tonic::Status;

use super::catalog::{Definition, NamedFile, Source};

/// Submissions that are being handed in or planned at a time.
pub(super) const MOST: usize = 16;

/// What all of them may have on disk.
pub(super) const MOST_BYTES: u64 = 4 << 30;

/// How long a submission waits while there are so many others.
const TURN: Duration = Duration::from_secs(10);

/// A submission may be late by this much against [`PACE`], and nothing may come of it for as long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes a second that an upload has to come with.
const PACE: u64 = 16 << 10;

/// A unit of [`MOST_BYTES`].
const UNIT: u64 = 1 << 20;

/// Where submissions are until they are kept.
pub(super) struct Spool {
    dir: PathBuf,
    turns: Arc<Semaphore>,
    room: Arc<Semaphore>,
    next: AtomicU64,
}

/// A submission whose files are on disk. What is not kept of them is deleted with it.
pub(super) struct Upload {
    pub(super) source: Source,
    _folder: Folder,
    _turn: OwnedSemaphorePermit,
    _room: OwnedSemaphorePermit,
}

/// A folder that is deleted when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, folder = %self.0.display(), "a submission's files were not deleted");
        }
    }
}

/// Why a submission does not come in.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpoolError {
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("the connection broke: {0}")]
    Broken(#[from] Status),
    #[error(
        "{MOST} studies are being handed in, or {} GiB of files, and more are not taken at a time; submit again in \
         a moment",
        MOST_BYTES >> 30
    )]
    Busy,
    #[error(
        "the submission came with less than {} KiB a second; submit again over a faster connection",
        PACE >> 10
    )]
    Slow,
    #[error("the files of the submission cannot be written to the coordinator's disk: {0}")]
    Disk(#[from] io::Error),
}

impl From<SpoolError> for Status {
    fn from(error: SpoolError) -> Self {
        let words = error.to_string();
        match error {
            SpoolError::Invalid(invalid) => invalid.into(),
            SpoolError::Broken(status) => status,
            SpoolError::Busy => Self::resource_exhausted(words),
            SpoolError::Slow => Self::deadline_exceeded(words),
            SpoolError::Disk(_) => Self::internal(words),
        }
    }
}

impl Spool {
    /// The spool in a coordinator's folder, empty.
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let dir = dir.join("spool");
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => make(&dir)?,
        }
        let (turns, room) = (Semaphore::new(MOST), Semaphore::new((MOST_BYTES / UNIT) as usize));
        let next = AtomicU64::new(0);
        Ok(Self { dir, turns: Arc::new(turns), room: Arc::new(room), next })
    }

    /// Takes in what a client sends, at the pace that it has to keep. Nothing of it is read before its turn.
    pub(super) async fn receive(
        &self,
        messages: impl Stream<Item = Result<v1::SubmitRequest, Status>>,
    ) -> Result<Upload, SpoolError> {
        let turn = self.turn().await?;
        let mut messages = std::pin::pin!(messages);
        let mut assembly = Assembly::default();
        let first = timeout(PATIENCE, messages.next()).await.map_err(|_| SpoolError::Slow)?;
        let Some(first) = first.transpose()? else {
            return Err(assembly.finish().expect_err("nothing was handed in").into());
        };
        let Piece::Study(announced) = assembly.push(first)? else {
            unreachable!("an assembly takes no data before the study");
        };
        let mut arriving = self.begin(turn, announced).await?;
        let began = Instant::now();
        loop {
            // What came fast does not buy time to idle.
            let due = began + Duration::from_millis(arriving.received * 1000 / PACE);
            let late = due.min(Instant::now()) + PATIENCE;
            let next = timeout_at(late, messages.next()).await.map_err(|_| SpoolError::Slow)?;
            match next.transpose()?.map(|message| assembly.push(message)).transpose()? {
                Some(Piece::Data { file, data }) => arriving.write(file, &data).await?,
                Some(Piece::Study(_)) => unreachable!("an assembly takes one study"),
                None => break,
            }
        }
        assembly.finish()?;
        Ok(arriving.finish().await?)
    }

    /// Puts a study of this process on the same way.
    pub(super) async fn put(&self, definition: Definition) -> Result<Upload, SpoolError> {
        let Definition { file_name, text, files } = definition;
        let sizes = files.iter().map(|(path, bytes)| (path.clone(), bytes.len() as u64)).collect();
        let turn = self.turn().await?;
        let mut arriving = self.begin(turn, Announced { file_name, text, files: sizes }).await?;
        for (file, (_, bytes)) in files.into_iter().enumerate() {
            arriving.write(file, &bytes).await?;
        }
        Ok(arriving.finish().await?)
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, SpoolError> {
        permits(&self.turns, 1).await
    }

    async fn begin(
        &self,
        turn: OwnedSemaphorePermit,
        announced: Announced,
    ) -> Result<Arriving, SpoolError> {
        let units = announced.files.iter().map(|(_, size)| size).sum::<u64>().div_ceil(UNIT) as u32;
        let room = permits(&self.room, units).await?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let folder = Folder(self.dir.join(number.to_string()));
        make(&folder.0)?;
        let hasher = blake3::Hasher::new();
        let (done, open) = (Vec::with_capacity(announced.files.len()), None);
        Ok(Arriving { announced, folder, turn, room, done, open, hasher, received: 0 })
    }
}

/// Waits for a while.
async fn permits(of: &Arc<Semaphore>, count: u32) -> Result<OwnedSemaphorePermit, SpoolError> {
    let permits = timeout(TURN, Arc::clone(of).acquire_many_owned(count)).await;
    let permits = permits.map_err(|_| SpoolError::Busy)?;
    Ok(permits.expect("the permits of a spool are not closed"))
}

/// A folder for this user alone.
fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

/// A submission of which some files have come.
struct Arriving {
    announced: Announced,
    folder: Folder,
    turn: OwnedSemaphorePermit,
    room: OwnedSemaphorePermit,
    /// Digests of the files that are whole.
    done: Vec<[u8; 32]>,
    /// The next one.
    open: Option<File>,
    hasher: blake3::Hasher,
    received: u64,
}

impl Arriving {
    fn place(&self, file: usize) -> PathBuf {
        self.folder.0.join(file.to_string())
    }

    /// Adds bytes to a file; those before it are whole.
    async fn write(&mut self, file: usize, data: &[u8]) -> io::Result<()> {
        while self.done.len() < file {
            self.end_file().await?;
        }
        if self.open.is_none() {
            self.open = Some(File::create_new(self.place(file)).await?);
        }
        let open = self.open.as_mut().expect("it was just opened");
        open.write_all(data).await?;
        self.hasher.update(data);
        self.received += data.len() as u64;
        Ok(())
    }

    async fn end_file(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some(mut open) => open.flush().await?,
            None => _ = File::create_new(self.place(self.done.len())).await?,
        }
        self.done.push(self.hasher.finalize().into());
        self.hasher.reset();
        Ok(())
    }

    async fn finish(mut self) -> io::Result<Upload> {
        while self.done.len() < self.announced.files.len() {
            self.end_file().await?;
        }
        let Announced { file_name, text, files } = std::mem::take(&mut self.announced);
        let digests = self.done.iter().enumerate();
        let files = files.into_iter().zip(digests).map(|((path, size), (file, &digest))| {
            NamedFile { path, digest, size, place: self.place(file) }
        });
        let source = Source { file_name, text, files: files.collect() };
        Ok(Upload { source, _folder: self.folder, _turn: self.turn, _room: self.room })
    }
}

#[cfg(test)]
mod tests;
