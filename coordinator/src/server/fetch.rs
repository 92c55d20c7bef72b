//! A sealed dataset as a stream of chunks.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, ready};
use futures_util::{Stream, stream};
use proto::limits::MAX_CHUNK_BYTES;
use proto::v1::{FileChunk, ResultChunk};
use study::StudyId;
use study::folder::Moment;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::store::names;

/// Chunks that wait for a slow receiver.
const AHEAD: usize = 4;

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

    /// Keeps others from writing the dataset of a study, until what this gives is dropped.
    fn hold(&self, _study: StudyId) -> BoxFuture<'_, Box<dyn Send>> {
        Box::pin(ready(Box::new(()) as Box<dyn Send>))
    }

    /// Deletes the dataset of a study that is held; or says why it cannot.
    fn remove(&self, _study: StudyId) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(ready(Ok(())))
    }
}

/// Every file of a dataset, in order of name, piece by piece.
pub(super) fn chunks(folder: PathBuf) -> impl Stream<Item = Result<ResultChunk, Status>> {
    let (chunks, stream) = mpsc::channel(AHEAD);
    tokio::spawn(async move {
        if let Err(status) = send_all(&folder, &chunks).await {
            _ = chunks.send(Err(status)).await;
        }
    });
    ReceiverStream::new(stream)
}

type Chunks = mpsc::Sender<Result<ResultChunk, Status>>;

async fn send_all(folder: &Path, chunks: &Chunks) -> Result<(), Status> {
    for (name, file) in open(folder).await? {
        send(name, file, chunks).await?;
    }
    Ok(())
}

/// Opens all files of the dataset, so that they are of one even where another takes its place meanwhile.
async fn open(folder: &Path) -> Result<Vec<(String, File)>, Status> {
    let began = Instant::now();
    loop {
        let folder = folder.to_owned();
        let opened = tokio::task::spawn_blocking(move || {
            let before = Moment::of(&folder);
            let open = |name: String| Ok((name.clone(), std::fs::File::open(folder.join(name))?));
            let opened: io::Result<Vec<_>> =
                names(&folder).and_then(|names| names.into_iter().map(open).collect());
            before.lasts(&folder).then_some(opened)
        });
        let opened = opened.await.map_err(|error| unreadable(&io::Error::other(error)))?;
        if let Some(opened) = opened {
            let opened = opened.map_err(|error| unreadable(&error))?;
            return Ok(opened.into_iter().map(|(name, file)| (name, file.into())).collect());
        }
        if began.elapsed() > PATIENCE {
            return Err(Status::unavailable(
                "the dataset is being replaced; try again in a moment",
            ));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn send(name: String, mut file: File, chunks: &Chunks) -> Result<(), Status> {
    loop {
        let mut data = Vec::with_capacity(MAX_CHUNK_BYTES);
        let mut rest = (&mut file).take(MAX_CHUNK_BYTES as u64);
        let read = rest.read_to_end(&mut data).await.map_err(|error| unreadable(&error))?;
        let last = read < MAX_CHUNK_BYTES;
        let chunk = ResultChunk { name: name.clone(), data: data.into(), last };
        if chunks.send(Ok(chunk)).await.is_err() || last {
            return Ok(());
        }
    }
}

/// A file that a study names, piece by piece. Whoever gets it compares its digest.
pub(super) async fn file(
    place: &Path,
) -> Result<impl Stream<Item = Result<FileChunk, Status>> + use<>, Status> {
    let unreadable = |error: io::Error| Status::internal(format!("a file cannot be read: {error}"));
    let file = File::open(place).await.map_err(unreadable)?;
    Ok(stream::try_unfold(file, move |mut file| async move {
        let mut data = Vec::with_capacity(MAX_CHUNK_BYTES);
        let mut rest = (&mut file).take(MAX_CHUNK_BYTES as u64);
        let read = rest.read_to_end(&mut data).await.map_err(unreadable)?;
        Ok((read > 0).then(|| (FileChunk { data: data.into() }, file)))
    }))
}

fn unreadable(error: &io::Error) -> Status {
    Status::internal(format!("the dataset cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

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
}
