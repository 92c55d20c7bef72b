//! Files to objects and back, in pieces.

use std::ffi::OsString;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use object_store::ObjectStore;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use rand::TryRng;
use rand::rngs::SysRng;
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Larger files are put in parts of this size.
const PART: usize = 16 << 20;

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// Digest and length.
pub(in crate::store) type Proof = (blake3::Hash, u64);

/// Puts a file, and returns what was put.
pub(in crate::store) async fn upload(
    store: &Arc<dyn ObjectStore>,
    to: Path,
    from: &FilePath,
) -> io::Result<Proof> {
    let mut writer = BufWriter::with_capacity(Arc::clone(store), to, PART);
    match copy(from, &mut writer).await {
        Ok(proof) => writer.shutdown().await.map(|()| proof),
        Err(error) => {
            // Parts that were put are of no use; what is left of them the store's own rules clear away.
            _ = writer.abort().await;
            Err(error)
        }
    }
}

/// The proof of a file.
pub(super) async fn digest(path: &FilePath) -> io::Result<Proof> {
    copy(path, &mut tokio::io::sink()).await
}

async fn copy(from: &FilePath, to: &mut (impl AsyncWriteExt + Unpin)) -> io::Result<Proof> {
    let mut file = File::open(from).await?;
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk).await?;
        if read == 0 {
            return Ok((hasher.finalize(), bytes));
        }
        hasher.update(&chunk[..read]);
        bytes += read as u64;
        to.write_all(&chunk[..read]).await?;
    }
}

/// A file that was downloaded beside its place; it is removed unless it is kept.
pub(super) struct Part {
    path: PathBuf,
    /// What was downloaded.
    pub(super) found: Proof,
}

impl Part {
    /// Moves it to its place.
    pub(super) async fn keep(self, to: &FilePath) -> io::Result<()> {
        fs::rename(&self.path, to).await
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Once it is in its place there is nothing here any more.
        _ = std::fs::remove_file(&self.path);
    }
}

/// Writes a stream beside the place of a file.
pub(super) async fn download(
    from: impl Stream<Item = io::Result<Bytes>>,
    to: &FilePath,
) -> io::Result<Part> {
    // Others may be getting the same file, also on other machines.
    let unique = SysRng.try_next_u64().map_err(io::Error::other)?;
    let mut name = OsString::from(".");
    name.push(to.file_name().unwrap_or_default());
    name.push(format!(".{unique:016x}.part"));
    fs::create_dir_all(to.parent().unwrap_or(to)).await?;
    let mut part = Part { path: to.with_file_name(name), found: (blake3::hash(b""), 0) };
    let mut file = File::create_new(&part.path).await?;
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
    let mut from = std::pin::pin!(from);
    while let Some(chunk) = from.try_next().await? {
        hasher.update(&chunk);
        bytes += chunk.len() as u64;
        file.write_all(&chunk).await?;
    }
    file.sync_all().await?;
    part.found = (hasher.finalize(), bytes);
    Ok(part)
}
