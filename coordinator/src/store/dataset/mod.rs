//! Finished datasets in an object store.
//!
//! ```text
//! PLACE/current                        the index of the dataset as it is now
//! PLACE/VERSION/records/part-*.parquet its files, under their names, manifest.json last
//! ```
//!
//! Files are put under a version of their own, and the index after them, if nobody has replaced it in the
//! meantime: who reads it sees the old dataset or the new one, and never a part. The version before stays
//! for those who are reading it.

mod index;
pub(super) mod transfer;

use std::io;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{
    Error as Failure, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion,
};
use study::folder::is_file;

use super::error::{At, Error};
use super::location::Bucket;
use super::remote::{PATIENCE, client, words};

pub use index::{Entry, Index};

use transfer::{digest, download, upload};

/// The index of a dataset.
const CURRENT: &str = "current";

/// How long the first request to a store is tried again: people are waiting for the answer.
const FIRST: Duration = Duration::from_secs(5);

/// A dataset in an object store, as it was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where its files are.
    at: Bucket,
    index: Index,
    /// What the index is known by, where it may be replaced.
    tag: Option<String>,
}

/// The dataset that is at a place now, if there is one.
pub async fn look(place: &Bucket) -> Result<Option<Stored>, Error> {
    let at = place.join(CURRENT);
    let Some((bytes, tag)) = get(&at).await? else { return Ok(None) };
    let index = std::str::from_utf8(&bytes).ok().and_then(Index::parse);
    let Some(index) = index else {
        let found = "no index of a dataset".to_owned();
        return Err(Error::Altered { object: at.to_string(), found });
    };
    Ok(Some(Stored { at: place.join(&index.version()), index, tag }))
}

/// One small object, if it is there.
pub async fn read(at: &Bucket) -> Result<Option<Bytes>, Error> {
    Ok(get(at).await?.map(|(bytes, _)| bytes))
}

/// The names of the datasets that coordinators have put below a place.
pub async fn below(place: &Bucket) -> Result<Vec<String>, Error> {
    let at = place.join("datasets");
    let listed = client(&at, FIRST)?.list_with_delimiter(Some(&path(&at))).await;
    let listed = listed.map_err(|error| refused("list", &at, &error))?;
    Ok(listed.common_prefixes.iter().map(|found| format!("s3://{}/{found}", at.bucket)).collect())
}

/// Puts the dataset of a folder to a place, over the one that was seen there.
pub async fn publish(
    folder: &FilePath,
    place: &Bucket,
    over: Option<&Stored>,
) -> Result<Stored, Error> {
    let index = index_of(folder).await?;
    if let Some(there) = over.filter(|there| there.index == index) {
        return Ok(there.clone());
    }
    let store: Arc<dyn ObjectStore> = Arc::new(client(place, PATIENCE)?);
    let at = place.join(&index.version());
    // Before the index is replaced: what another coordinator puts after that is not ours to delete.
    let kept = [Some(&at), over.map(|over| &over.at)];
    let old = unneeded(&store, place, &kept).await?;
    for entry in &index.0 {
        let (from, to) = (folder.join(&entry.name), at.join(&entry.name));
        let sent = upload(&store, path(&to), &from).await;
        let sent = sent.map_err(|error| broken(("put", &to), ("read", &from), error))?;
        if sent != (entry.digest, entry.bytes) {
            return Err(io::Error::other("it changed while it was read")).at("read", &from);
        }
    }
    let tag = replace(&store, place, &index, over).await?;
    delete(&store, place, old).await?;
    Ok(Stored { at, index, tag })
}

/// Deletes the dataset of a place: the index first, so that nobody finds half of it.
pub async fn remove(place: &Bucket) -> Result<(), Error> {
    let store: Arc<dyn ObjectStore> = Arc::new(client(place, PATIENCE)?);
    delete(&store, place, vec![path(&place.join(CURRENT))]).await?;
    let files = unneeded(&store, place, &[]).await?;
    delete(&store, place, files).await
}

impl Stored {
    /// A dataset whose files are at a place under their names, and never change.
    pub fn fixed(place: &Bucket, index: Index) -> Self {
        Self { at: place.clone(), index, tag: None }
    }

    /// Its files.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// All of a small file; it has to be what the index says.
    pub async fn read(&self, name: &str) -> Result<Bytes, Error> {
        let at = self.at.join(name);
        let found = get(&at).await?.map(|(bytes, _)| bytes);
        let entry = self.index.0.iter().find(|entry| entry.name == name);
        let (Some(bytes), Some(entry)) = (found, entry) else {
            return Err(gone(&at));
        };
        let found = (blake3::hash(&bytes), bytes.len() as u64);
        check(&at, entry, found).map(|()| bytes)
    }

    /// The files that a folder does not have as they are here.
    pub async fn missing(&self, folder: &FilePath) -> Vec<Entry> {
        let mut missing = Vec::new();
        for entry in self.index.files() {
            let found = digest(&folder.join(&entry.name)).await;
            if !matches!(found, Ok(found) if found == (entry.digest, entry.bytes)) {
                missing.push(entry.clone());
            }
        }
        missing
    }

    /// Gets files into a folder. Each appears as a whole, and only if it is what the index says.
    pub async fn fetch(&self, files: &[Entry], folder: &FilePath) -> Result<(), Error> {
        let store: Arc<dyn ObjectStore> = Arc::new(client(&self.at, PATIENCE)?);
        for entry in files {
            let (from, to) = (self.at.join(&entry.name), folder.join(&entry.name));
            let got = match store.get(&path(&from)).await {
                Ok(object) => object.into_stream(),
                Err(Failure::NotFound { .. }) => return Err(gone(&from)),
                Err(error) => return Err(refused("read", &from, &error)),
            };
            let got = download(got.map_err(io::Error::other), &to).await;
            let part = got.map_err(|error| broken(("read", &from), ("write", &to), error))?;
            check(&from, entry, part.found)?;
            part.keep(&to).await.at("write", &to)?;
        }
        Ok(())
    }
}

fn path(at: &Bucket) -> Path {
    Path::from(at.prefix.as_str())
}

fn refused(action: &'static str, at: &Bucket, error: &Failure) -> Error {
    Error::Object { action, object: at.to_string(), problem: words(at, error) }
}

fn gone(at: &Bucket) -> Error {
    Error::Altered { object: at.to_string(), found: "nothing".to_owned() }
}

/// A transfer that failed there or here.
fn broken(
    there: (&'static str, &Bucket),
    here: (&'static str, &FilePath),
    error: io::Error,
) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Failure>()) {
        Some(failure) => refused(there.0, there.1, failure),
        None => Error::io(here.0, here.1, 0, error),
    }
}

fn check(at: &Bucket, entry: &Entry, found: (blake3::Hash, u64)) -> Result<(), Error> {
    if found == (entry.digest, entry.bytes) {
        return Ok(());
    }
    let found = format!(
        "BLAKE3 {} ({} bytes) where {} ({} bytes) was sealed",
        found.0, found.1, entry.digest, entry.bytes
    );
    Err(Error::Altered { object: at.to_string(), found })
}

async fn get(at: &Bucket) -> Result<Option<(Bytes, Option<String>)>, Error> {
    let object = match client(at, FIRST)?.get(&path(at)).await {
        Ok(object) => object,
        Err(Failure::NotFound { source, .. }) if !source.to_string().contains("NoSuchBucket") => {
            return Ok(None);
        }
        Err(error) => return Err(refused("read", at, &error)),
    };
    let tag = object.meta.e_tag.clone();
    let bytes = object.bytes().await.map_err(|error| refused("read", at, &error))?;
    Ok(Some((bytes, tag)))
}

/// Puts the index in the place of the one that was seen.
async fn replace(
    store: &Arc<dyn ObjectStore>,
    place: &Bucket,
    index: &Index,
    over: Option<&Stored>,
) -> Result<Option<String>, Error> {
    let at = place.join(CURRENT);
    let mode = match over {
        Some(over) => PutMode::Update(UpdateVersion { e_tag: over.tag.clone(), version: None }),
        None => PutMode::Create,
    };
    let options = PutOptions { mode, ..PutOptions::default() };
    match store.put_opts(&path(&at), index.text().into(), options).await {
        Ok(put) => Ok(put.e_tag),
        Err(Failure::AlreadyExists { .. } | Failure::Precondition { .. }) => {
            // The answer to a first request may have been lost.
            let there = look(place).await?.filter(|there| there.index == *index);
            there.map(|there| there.tag).ok_or_else(|| Error::Replaced { place: place.to_string() })
        }
        Err(error) => Err(refused("put", &at, &error)),
    }
}

/// Objects of other versions than those that are kept.
async fn unneeded(
    store: &Arc<dyn ObjectStore>,
    place: &Bucket,
    kept: &[Option<&Bucket>],
) -> Result<Vec<Path>, Error> {
    let listed = store.list(Some(&path(place))).map_ok(|object| object.location);
    let listed: Vec<Path> =
        listed.try_collect().await.map_err(|error| refused("list", place, &error))?;
    let current = path(&place.join(CURRENT));
    let is_kept = |found: &Path| {
        *found == current || kept.iter().flatten().any(|at| found.prefix_matches(&path(at)))
    };
    Ok(listed.into_iter().filter(|found| !is_kept(found)).collect())
}

async fn delete(store: &Arc<dyn ObjectStore>, place: &Bucket, old: Vec<Path>) -> Result<(), Error> {
    let mut deleted = store.delete_stream(stream::iter(old.into_iter().map(Ok)).boxed());
    while let Some(deleted) = deleted.next().await {
        match deleted {
            Ok(_) | Err(Failure::NotFound { .. }) => {}
            Err(error) => return Err(refused("delete old objects of", place, &error)),
        }
    }
    Ok(())
}

/// What a folder holds; the manifest comes last.
async fn index_of(folder: &FilePath) -> Result<Index, Error> {
    let mut names = names(folder).at("read", folder)?;
    names.sort_by_key(|name| name == "manifest.json");
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        let path = folder.join(&name);
        let (digest, bytes) = digest(&path).await.at("read", &path)?;
        files.push(Entry { digest, bytes, name });
    }
    Ok(Index(files))
}

/// The files of the dataset in a folder, in order of name. What else is there is no part of it.
pub(crate) fn names(folder: &FilePath) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for prefix in ["", "records/"] {
        for entry in std::fs::read_dir(folder.join(prefix))? {
            let name = format!("{prefix}{}", entry?.file_name().to_string_lossy());
            if is_file(&name) {
                names.push(name);
            }
        }
    }
    names.sort_unstable();
    Ok(names)
}
