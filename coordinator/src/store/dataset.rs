//! Finished datasets in an object store.
//!
//! A dataset's files keep their names, so that other programs read them from the bucket. What makes
//! them a dataset is the index, which is put last: digest, size and name of every file, one a line.

use std::io;
use std::path::{Component, Path as FilePath, PathBuf};
use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::buffered::BufWriter;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::error::{At, Error};
use super::location::Bucket;
use super::remote::{client, failed};

/// The index of a dataset.
const INDEX: &str = ".index";

/// Larger files are put in parts of this size.
const PART: usize = 16 << 20;

/// Bytes read at once.
const CHUNK: usize = 1 << 20;

/// A line of the index.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    digest: blake3::Hash,
    size: u64,
    name: String,
}

impl Line {
    fn text(&self) -> String {
        format!("{} {} {}\n", self.digest, self.size, self.name)
    }

    fn parse(text: &str) -> Option<Self> {
        let (digest, rest) = text.split_once(' ')?;
        let (size, name) = rest.split_once(' ')?;
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        let inside = !name.is_empty() && FilePath::new(name).components().all(plain);
        let (digest, size) = (digest.parse().ok()?, size.parse().ok()?);
        inside.then(|| Self { digest, size, name: name.to_owned() })
    }
}

/// Puts the dataset in a folder to a place of its own; what begins with a dot is no part of it.
pub async fn publish_dataset(folder: &FilePath, to: &Bucket) -> Result<(), Error> {
    let store: Arc<dyn ObjectStore> = Arc::new(client(to)?);
    let mut index = String::new();
    for name in names(folder).at("read", folder)? {
        let path = Path::from(to.join(&name).prefix);
        let put = upload(&store, path, &folder.join(&name)).await;
        let (digest, size) = put.at("put", &to.join(&name).name())?;
        index.push_str(&Line { digest, size, name }.text());
    }
    let at = to.join(INDEX);
    let put = store.put(&Path::from(at.prefix.as_str()), index.into()).await;
    put.map(|_| ()).map_err(failed).at("put", &at.name())
}

/// Gets a dataset into a folder. Files that are there and the same are not read again; others are
/// replaced, one by one. Returns the number of files that were read.
pub async fn fetch_dataset(from: &Bucket, folder: &FilePath) -> Result<usize, Error> {
    let store: Arc<dyn ObjectStore> = Arc::new(client(from)?);
    let at = from.join(INDEX);
    let index = match store.get(&Path::from(at.prefix.as_str())).await {
        Ok(found) => found.bytes().await,
        Err(error) => Err(error),
    };
    let index = index.map_err(failed).at("read", &at.name())?;
    let mut fetched = 0;
    for text in String::from_utf8_lossy(&index).lines() {
        let unreadable = || io::Error::other("its index cannot be read");
        let line = Line::parse(text).ok_or_else(unreadable).at("fetch", &from.name())?;
        let (to, path) = (folder.join(&line.name), Path::from(from.join(&line.name).prefix));
        if matches!(digest(&to).await, Ok(found) if found == (line.digest, line.size)) {
            continue;
        }
        download(&store, &path, &to, &line).await.at("fetch", &from.join(&line.name).name())?;
        fetched += 1;
    }
    Ok(fetched)
}

async fn upload(
    store: &Arc<dyn ObjectStore>,
    path: Path,
    from: &FilePath,
) -> io::Result<(blake3::Hash, u64)> {
    let mut file = File::open(from).await?;
    let mut writer = BufWriter::with_capacity(Arc::clone(store), path, PART);
    let (mut hasher, mut size) = (blake3::Hasher::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk).await?;
        if read == 0 {
            break;
        }
        hasher.update(&chunk[..read]);
        size += read as u64;
        writer.write_all(&chunk[..read]).await?;
    }
    writer.shutdown().await?;
    Ok((hasher.finalize(), size))
}

async fn download(
    store: &Arc<dyn ObjectStore>,
    path: &Path,
    to: &FilePath,
    line: &Line,
) -> io::Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to)).await?;
    let mut name = to.as_os_str().to_owned();
    name.push(".part");
    let part = PathBuf::from(name);
    let mut file = File::create(&part).await?;
    let mut chunks = store.get(path).await.map_err(failed)?.into_stream();
    let (mut hasher, mut size) = (blake3::Hasher::new(), 0);
    while let Some(chunk) = chunks.try_next().await.map_err(failed)? {
        hasher.update(&chunk);
        size += chunk.len() as u64;
        file.write_all(&chunk).await?;
    }
    file.sync_all().await?;
    if (hasher.finalize(), size) == (line.digest, line.size) {
        return fs::rename(&part, to).await;
    }
    fs::remove_file(&part).await?;
    Err(io::Error::other("it is not what the index says: it may have changed meanwhile, try again"))
}

async fn digest(path: &FilePath) -> io::Result<(blake3::Hash, u64)> {
    let mut file = File::open(path).await?;
    let (mut hasher, mut size) = (blake3::Hasher::new(), 0);
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk).await?;
        if read == 0 {
            return Ok((hasher.finalize(), size));
        }
        hasher.update(&chunk[..read]);
        size += read as u64;
    }
}

/// Files of a dataset and of its folders, in order of name; what begins with a dot is not part of it.
pub(crate) fn names(folder: &FilePath) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    let mut open = vec![String::new()];
    while let Some(prefix) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&prefix))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
            if entry.file_type()?.is_dir() { open.push(path) } else { names.push(path) }
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_index_stay_inside_their_folder() {
        let line = Line { digest: blake3::hash(b"x"), size: 7, name: "records/part 1".into() };
        assert_eq!(Line::parse(line.text().trim_end()), Some(line));
        let digest = blake3::hash(b"x").to_hex();
        for name in ["../x", "/etc/passwd", "a/../../x", ""] {
            assert_eq!(Line::parse(&format!("{digest} 7 {name}")), None, "{name}");
        }
        assert_eq!(Line::parse("x 7 a"), None);
    }
}
