//! Downloads: sealed datasets and files of studies, piece by piece.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::future::{BoxFuture, ready};
use proto::limits::MAX_CHUNK_BYTES;
use proto::v1::{FileChunk, ResultChunk};
use study::StudyId;
use study::folder::Moment;
use study::plan::Plan;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::catalog::SubmitError;
use crate::store::names;

/// Downloads that are sent at a time; the next waits.
const MOST: usize = 64;

/// Bytes of a message. What an unread download takes in memory is three of them and HTTP/2's own buffer.
const PIECE: usize = 256 << 10;
const _: () = assert!(PIECE <= MAX_CHUNK_BYTES);

/// Messages that wait for a slow receiver.
const AHEAD: usize = 1;

/// A download of which nothing is read for this long ends.
const STALL: Duration = Duration::from_secs(60);

/// How long a dataset that is being replaced is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

const PAUSE: Duration = Duration::from_millis(20);

/// Where sealed datasets are.
pub trait Datasets: Send + Sync {
    /// The folder of a study's sealed dataset, if there is one.
    fn folder(&self, study: StudyId) -> Option<PathBuf>;

    /// Makes the folder of a study have what was sealed last, where that is kept elsewhere; or says why
    /// it cannot.
    fn bring<'a>(&'a self, _study: StudyId, _name: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(ready(Ok(())))
    }

    /// Refuses a plan that would lose trials of the dataset that is sealed of its study.
    fn keeps<'a>(&'a self, _plan: &'a Plan) -> BoxFuture<'a, Result<(), SubmitError>> {
        Box::pin(ready(Ok(())))
    }

    /// Keeps others from writing the dataset of a study, until what this gives is dropped.
    fn hold(&self, _study: StudyId) -> BoxFuture<'_, Box<dyn Send>> {
        Box::pin(ready(Box::new(()) as Box<dyn Send>))
    }

    /// Deletes the dataset of a study that is held; or says why it cannot.
    fn remove(&self, _study: StudyId) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(ready(Ok(())))
    }
}

/// The downloads of a coordinator.
#[derive(Clone)]
pub(super) struct Downloads(Arc<Semaphore>);

impl Default for Downloads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Downloads {
    /// Waits while too many others are being sent.
    pub(super) async fn turn(&self) -> OwnedSemaphorePermit {
        let turn = Arc::clone(&self.0).acquire_owned().await;
        turn.expect("the turns of downloads are not closed")
    }
}

/// Every file of a dataset, in order of name, piece by piece.
pub(super) fn chunks(
    folder: PathBuf,
    turn: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<ResultChunk, Status>> {
    stream(turn, async move |pieces| send_all(&folder, &pieces).await)
}

/// A file that a study names, piece by piece. Whoever gets it compares its digest.
pub(super) async fn file(
    place: &Path,
    turn: OwnedSemaphorePermit,
) -> Result<impl Stream<Item = Result<FileChunk, Status>> + use<>, Status> {
    let unreadable = |error: io::Error| Status::internal(format!("a file cannot be read: {error}"));
    let mut file = File::open(place).await.map_err(unreadable)?;
    Ok(stream(turn, async move |pieces| {
        loop {
            let data = piece(&mut file).await.map_err(unreadable)?;
            if data.is_empty() {
                return Ok(());
            }
            pass(&pieces, FileChunk { data: data.into() }).await?;
        }
    }))
}

type Pieces<T> = mpsc::Sender<Result<T, Status>>;

/// What a task sends, and why it stopped if it could not send all.
fn stream<T, F>(
    turn: OwnedSemaphorePermit,
    send: impl FnOnce(Pieces<T>) -> F + Send + 'static,
) -> ReceiverStream<Result<T, Status>>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send,
{
    let (pieces, stream) = mpsc::channel(AHEAD + 1);
    tokio::spawn(async move {
        let _turn = turn;
        // The last word has a place of its own: a receiver that has stopped reading left none.
        let Ok(last) = pieces.clone().reserve_owned().await else { return };
        if let Err(status) = send(pieces).await {
            last.send(Err(status));
        }
    });
    ReceiverStream::new(stream)
}

/// Waits for a slow receiver, but not for ever.
async fn pass<T>(pieces: &Pieces<T>, piece: T) -> Result<(), Status> {
    match timeout(STALL, pieces.send(Ok(piece))).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Status::cancelled("the receiver is gone")),
        Err(_) => Err(Status::deadline_exceeded(format!(
            "nothing of the download was read for {} s",
            STALL.as_secs()
        ))),
    }
}

/// What a file has next; empty at its end.
async fn piece(file: &mut File) -> io::Result<Vec<u8>> {
    let mut data = Vec::with_capacity(PIECE);
    file.take(PIECE as u64).read_to_end(&mut data).await?;
    Ok(data)
}

async fn send_all(folder: &Path, pieces: &Pieces<ResultChunk>) -> Result<(), Status> {
    let (moment, names) = begin(folder).await?;
    let moment = Arc::new(moment);
    for name in names {
        let mut file = open(folder, &name, Arc::clone(&moment)).await?;
        loop {
            let data = piece(&mut file).await.map_err(|error| unreadable(&error))?;
            let last = data.len() < PIECE;
            pass(pieces, ResultChunk { name: name.clone(), data: data.into(), last }).await?;
            if last {
                break;
            }
        }
    }
    Ok(())
}

/// The names of a dataset's files, once it is not being replaced.
async fn begin(folder: &Path) -> Result<(Moment, Vec<String>), Status> {
    let began = Instant::now();
    loop {
        let folder = folder.to_owned();
        let begun = blocking(move || {
            let moment = Moment::of(&folder);
            let names = names(&folder);
            moment.lasts(&folder).then_some((moment, names))
        });
        if let Some((moment, names)) = begun.await? {
            return Ok((moment, names.map_err(|error| unreadable(&error))?));
        }
        if began.elapsed() > PATIENCE {
            return Err(Status::unavailable(
                "the dataset is being replaced; try again in a moment",
            ));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Opens a file of the dataset that was there at a moment. One is open at a time, so that unread downloads do not take
/// all file descriptors; where another dataset has taken the place of this one, the download ends.
async fn open(folder: &Path, name: &str, moment: Arc<Moment>) -> Result<File, Status> {
    let (folder, name) = (folder.to_owned(), name.to_owned());
    let opened = blocking(move || {
        let opened = std::fs::File::open(folder.join(name));
        moment.lasts(&folder).then_some(opened)
    });
    match opened.await? {
        Some(opened) => Ok(opened.map_err(|error| unreadable(&error))?.into()),
        None => Err(Status::unavailable("the dataset was replaced meanwhile; fetch it again")),
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| unreadable(&io::Error::other(error)))
}

fn unreadable(error: &io::Error) -> Status {
    Status::internal(format!("the dataset cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use futures_util::StreamExt;
    use study::folder::{MANIFEST, REPLACING};

    use super::*;

    /// The records are new and the manifest is old, until a writer has moved that too.
    #[tokio::test]
    async fn a_dataset_that_is_being_replaced_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("records")).unwrap();
        fs::create_dir(at(REPLACING)).unwrap();
        fs::write(at("records/part-00000.parquet"), "new").unwrap();
        fs::write(at(MANIFEST), "old").unwrap();
        fs::write(at("report.html"), "no part of it").unwrap();
        let moved = at(REPLACING).join(MANIFEST);
        fs::write(&moved, "new").unwrap();
        let (chunks, mut stream) = mpsc::channel(AHEAD);
        let path = folder.path().to_owned();
        let sent = tokio::spawn(async move { send_all(&path, &chunks).await });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(stream.try_recv().is_err(), "nothing is sent of two datasets");
        fs::rename(moved, at(MANIFEST)).unwrap();
        let mut names = Vec::new();
        while let Some(chunk) = stream.recv().await {
            let ResultChunk { name, data, last } = chunk.unwrap();
            assert_eq!((&data[..], last), (&b"new"[..], true), "{name}");
            names.push(name);
        }
        sent.await.unwrap().unwrap();
        assert_eq!(names, [MANIFEST, "records/part-00000.parquet"]);
    }

    /// A dataset of two files of so many bytes each.
    fn dataset(bytes: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("records")).unwrap();
        fs::write(folder.path().join(MANIFEST), vec![1; bytes]).unwrap();
        fs::write(folder.path().join("records/part-00000.parquet"), vec![1; bytes]).unwrap();
        folder
    }

    #[tokio::test]
    async fn a_dataset_that_is_replaced_on_the_way_is_not_mixed_with_the_next() {
        let folder = dataset(8 * PIECE);
        let downloads = Downloads::default();
        let mut chunks = chunks(folder.path().to_owned(), downloads.turn().await);
        assert!(chunks.next().await.unwrap().is_ok());
        let new = folder.path().join("new");
        fs::write(&new, "another manifest").unwrap();
        fs::rename(new, folder.path().join(MANIFEST)).unwrap();
        let mut rest: Vec<_> = chunks.collect().await;
        let ended = rest.pop().unwrap().unwrap_err();
        assert_eq!(ended.code(), tonic::Code::Unavailable, "{ended}");
        // What was being sent is of the first, and nothing is of the second.
        assert!(rest.iter().all(|chunk| chunk.as_ref().unwrap().name == MANIFEST));
        assert_eq!(rest.len(), 8, "with the empty piece at the end of the file");
    }

    #[tokio::test(start_paused = true)]
    async fn unread_downloads_are_limited_and_end() {
        let (folder, downloads) = (dataset(8 * PIECE), Downloads::default());
        let place = folder.path().join(MANIFEST);
        let mut unread = Vec::new();
        for _ in 0..MOST {
            unread.push(Box::pin(file(&place, downloads.turn().await).await.unwrap()));
        }
        assert!(timeout(STALL / 2, downloads.turn()).await.is_err());
        unread.pop();
        let turn = timeout(STALL / 10, downloads.turn()).await.expect("one was given up");
        let read: Vec<_> = file(&place, turn).await.unwrap().collect().await;
        let bytes: usize = read.iter().map(|piece| piece.as_ref().unwrap().data.len()).sum();
        assert_eq!(bytes, 8 * PIECE);
        // Of the others nothing is read.
        tokio::time::sleep(STALL).await;
        assert_eq!(downloads.0.available_permits(), MOST);
        let ended: Vec<_> = unread.pop().unwrap().collect().await;
        let last = ended.last().unwrap().as_ref().unwrap_err();
        assert_eq!(last.code(), tonic::Code::DeadlineExceeded, "{last}");
        assert!(ended.len() <= AHEAD + 1);
    }
}
