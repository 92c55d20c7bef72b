//! A sealed dataset as a stream of chunks.

use std::path::{Path, PathBuf};

use futures_util::future::{BoxFuture, ready};
use futures_util::{Stream, stream};
use proto::limits::MAX_CHUNK_BYTES;
use proto::v1::{FileChunk, ResultChunk};
use study::StudyId;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::store::names;

/// Chunks that wait for a slow receiver.
const AHEAD: usize = 4;

/// Where sealed datasets are.
pub trait Datasets: Send + Sync {
    /// The folder of a study's sealed dataset, if there is one.
    fn folder(&self, study: StudyId) -> Option<PathBuf>;

    /// Makes the folder of a study have what was sealed last, where that is kept elsewhere; or says why
    /// it cannot.
    fn bring<'a>(&'a self, _study: StudyId, _name: &'a str) -> BoxFuture<'a, Result<(), String>> {
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
    let names = names(folder).map_err(|error| unreadable(&error))?;
    for name in names {
        send(folder, name, chunks).await?;
    }
    Ok(())
}

async fn send(folder: &Path, name: String, chunks: &Chunks) -> Result<(), Status> {
    let file = tokio::fs::File::open(folder.join(&name)).await;
    let mut file = file.map_err(|error| unreadable(&error))?;
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
    let unreadable =
        |error: std::io::Error| Status::internal(format!("a file cannot be read: {error}"));
    let file = tokio::fs::File::open(place).await.map_err(unreadable)?;
    Ok(stream::try_unfold(file, move |mut file| async move {
        let mut data = Vec::with_capacity(MAX_CHUNK_BYTES);
        let mut rest = (&mut file).take(MAX_CHUNK_BYTES as u64);
        let read = rest.read_to_end(&mut data).await.map_err(unreadable)?;
        Ok((read > 0).then(|| (FileChunk { data: data.into() }, file)))
    }))
}

fn unreadable(error: &std::io::Error) -> Status {
    Status::internal(format!("the dataset cannot be read: {error}"))
}
