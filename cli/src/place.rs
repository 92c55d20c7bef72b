//! Where a dataset is that a command reads: in a folder, or in an object store, through a local cache.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use analysis::dataset::steadily;
use analysis::manifest::{self, Manifest};
use analysis::seal::{Lock, Staging};
use anyhow::{Context, bail};
use clap::Args;
use coordinator::store::dataset::{self, Entry, Index, Stored};
use coordinator::store::{Bucket, Error};
use study::folder::{MANIFEST, STUDY};

use crate::exit::{BadInput, CheckFailed};
use crate::{disk, text};

/// A folder, or a place in an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Folder(PathBuf),
    Store(Bucket),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            Some(("s3", _)) => {
                text.parse::<Bucket>().map(Self::Store).map_err(|error| error.to_string())
            }
            Some((scheme, _)) => Err(format!(
                "{scheme}:// cannot be read; give a folder, or s3://BUCKET/PREFIX of a store that speaks S3"
            )),
            None => Ok(Self::Folder(text.into())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Store(bucket) => bucket.fmt(f),
        }
    }
}

/// A folder on this machine, for what cannot be in an object store.
pub(crate) fn folder(text: &str) -> Result<PathBuf, String> {
    match text.parse()? {
        Place::Folder(folder) => Ok(folder),
        Place::Store(_) => Err(
            "this has to be a folder on this machine: give one, and copy it to the store when it is finished \
             (`aws s3 sync DIR s3://BUCKET/PREFIX`; `regretta analyze s3://BUCKET/PREFIX` reads it there), or let \
             `regretta coordinator --store s3://BUCKET/PREFIX` keep everything in the store"
                .to_owned(),
        ),
    }
}

/// The dataset that a command reads.
#[derive(Args)]
pub(crate) struct Source {
    /// The folder of the dataset, or its place in an object store: s3://BUCKET/PREFIX/datasets/NAME-ID
    #[arg(value_name = "DIR")]
    pub(crate) dir: Place,
    /// Where files from object stores are kept [default: regretta in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// What is read from an object store again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// What the cache does not have.
    Missing,
    /// Everything: the store itself is to be checked.
    All,
}

impl Source {
    /// The folder that has the dataset, after downloading what is not there.
    pub(crate) fn folder(&self, reading: Reading, quiet: bool) -> anyhow::Result<PathBuf> {
        let place = match &self.dir {
            Place::Folder(folder) => return Ok(folder.clone()),
            Place::Store(place) => place,
        };
        let cache = self.cache()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.context("cannot start the runtime")?.block_on(async {
            let mut stored = find(place).await?;
            for _ in 1..MOST_READINGS {
                let error = match download(&stored, place, &cache, reading, quiet).await {
                    Ok(folder) => return Ok(folder),
                    Err(error) => error,
                };
                // A version is deleted once two others were put in its place.
                match find(place).await {
                    Ok(now) if now != stored => stored = now,
                    _ => return Err(error),
                }
            }
            download(&stored, place, &cache, reading, quiet).await
        })
    }

    fn cache(&self) -> anyhow::Result<PathBuf> {
        if let Some(cache) = &self.cache {
            return Ok(cache.clone());
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = set("XDG_CACHE_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(Path::new(&set("HOME")?).join(".cache")));
        let nowhere = "neither XDG_CACHE_HOME nor HOME says where to keep what is downloaded: give --cache DIR";
        Ok(home.ok_or_else(|| BadInput(nowhere.to_owned()))?.join("regretta"))
    }
}

/// How often a dataset is downloaded where others are put in its place meanwhile.
const MOST_READINGS: usize = 4;

/// Downloads what is not in the cache, and returns the dataset's folder there.
async fn download(
    stored: &Stored,
    place: &Bucket,
    cache: &Path,
    reading: Reading,
    quiet: bool,
) -> anyhow::Result<PathBuf> {
    // Whatever is the same dataset is in the same folder, and two are never mixed in one.
    let folder = cache.join("datasets").join(stored.index().version());
    std::fs::create_dir_all(&folder)
        .map_err(|error| BadInput(format!("cannot create {}: {error}", folder.display())))?;
    let files = match reading {
        Reading::Missing => stored.missing(&folder).await,
        Reading::All => stored.index().files().cloned().collect(),
    };
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    if !quiet && !files.is_empty() {
        let (count, bytes) = (text::count(files.len() as u128), text::bytes(bytes as f64));
        eprintln!("downloading {count} files, {bytes}, from {place} ...");
    }
    disk::require(&folder, bytes)?;
    stored.fetch(&files, &folder).await.map_err(|error| refused(&error))?;
    Ok(folder)
}

/// The dataset at a place: what a coordinator sealed last, or files that somebody copied there.
async fn find(place: &Bucket) -> anyhow::Result<Stored> {
    if let Some(stored) = dataset::look(place).await.map_err(|error| refused(&error))? {
        return Ok(stored);
    }
    let at = place.join(MANIFEST);
    if let Some(manifest) = dataset::read(&at).await.map_err(|error| refused(&error))? {
        return copied(place, &manifest).await;
    }
    let below = dataset::below(place).await.unwrap_or_default();
    let known = if below.is_empty() {
        "a coordinator with --store s3://BUCKET/PREFIX puts sealed studies to s3://BUCKET/PREFIX/datasets/NAME-ID".into()
    } else {
        format!("there are {}", below.join(", "))
    };
    bail!(BadInput(format!("{place} holds no dataset; {known}")))
}

/// A dataset whose folder was copied: its manifest says what has to be there.
async fn copied(place: &Bucket, text: &[u8]) -> anyhow::Result<Stored> {
    let at = place.join(MANIFEST).to_string();
    let manifest = Manifest::parse(text, at.into()).map_err(|error| unusable(&error))?;
    let whole = |name: &str, bytes: &[u8]| Entry {
        digest: blake3::hash(bytes),
        bytes: bytes.len() as u64,
        name: name.to_owned(),
    };
    let mut files = Vec::new();
    for file in &manifest.files {
        let digest = file.blake3.parse();
        let digest = digest.map_err(|_| {
            BadInput(format!("the manifest at {place} has no digest of {}", file.name))
        })?;
        files.push(Entry { digest, bytes: file.bytes, name: file.name.clone() });
    }
    let Some(study) = dataset::read(&place.join(STUDY)).await.map_err(|error| refused(&error))?
    else {
        bail!(BadInput(format!(
            "{place} has no study.toml: copy the whole folder of the dataset there"
        )));
    };
    files.push(whole(STUDY, &study));
    files.push(whole(MANIFEST, text));
    Ok(Stored::fixed(place, Index(files)))
}

/// The manifest of a dataset's folder.
pub(crate) fn manifest(folder: &Path) -> anyhow::Result<Manifest> {
    Manifest::read(folder).map_err(|error| unusable(&error))
}

fn unusable(error: &manifest::Error) -> anyhow::Error {
    if error.is_mismatch() {
        CheckFailed(error.to_string()).into()
    } else {
        BadInput(error.to_string()).into()
    }
}

/// What is another than sealed is a failed check; all else the user can see to.
fn refused(error: &Error) -> anyhow::Error {
    match error {
        Error::Altered { .. } => CheckFailed(error.to_string()).into(),
        _ => BadInput(error.to_string()).into(),
    }
}

/// Gives a folder the files of a dataset, without copying them, so that what is written there stands beside
/// what it is about. A folder with another study, a run or files of its own is refused.
pub(crate) fn lay_out(dataset: &Path, out: &Path) -> anyhow::Result<()> {
    if is_same(dataset, out, "") {
        return Ok(());
    }
    let lock = Lock::take(out).map_err(|error| BadInput(error.to_string()))?;
    let staged = steadily(dataset, || stage(dataset, out, &lock));
    let staged = staged.map_err(|error| match error.downcast::<analysis::dataset::Error>() {
        Ok(error) => BadInput(error.to_string()).into(),
        Err(error) => error,
    })?;
    Ok(staged.map_or(Ok(()), |staging| staging.publish_with(&lock))?)
}

/// The dataset on its way to a folder, unless it is there.
fn stage(dataset: &Path, out: &Path, lock: &Lock) -> anyhow::Result<Option<Staging>> {
    let wanted = manifest(dataset)?;
    let held = Manifest::read(out).ok();
    let is_run = out.join(".regretta").exists();
    let linked = || wanted.files.iter().all(|file| is_same(dataset, out, &file.name));
    if held.as_ref() == Some(&wanted) && (is_run || linked()) {
        return Ok(None);
    }
    if let Some(held) = held.as_ref().filter(|held| held.study_digest != wanted.study_digest) {
        bail!(BadInput(format!(
            "{} holds study \"{}\" ({}), not \"{}\" ({}): use another --out folder",
            out.display(),
            held.name,
            held.study,
            wanted.name,
            wanted.study
        )));
    }
    if is_run {
        bail!(BadInput(format!(
            "{} is the folder of a run, which has not this dataset: use another --out folder",
            out.display()
        )));
    }
    let own = |name: &&str| out.join(name).exists() && !is_same(dataset, out, name);
    if let (None, Some(name)) = (&held, names(&wanted).find(own)) {
        bail!(BadInput(format!(
            "{} has a {name} of its own: use another --out folder",
            out.display()
        )));
    }
    let staging = Staging::create(lock)?;
    names(&wanted)
        .try_for_each(|name| link(&dataset.join(name), &staging.path(name)))
        .with_context(|| format!("cannot put the dataset into {}", out.display()))?;
    Ok(Some(staging))
}

/// All files of a dataset, the manifest last.
fn names(manifest: &Manifest) -> impl Iterator<Item = &str> {
    let files = manifest.files.iter().map(|file| file.name.as_str());
    files.chain([STUDY, MANIFEST])
}

/// Links a file to where nothing is.
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    let from = std::path::absolute(from)?;
    match std::fs::hard_link(&from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(error),
        // Across disks there is only the other kind of link.
        Err(_) => std::os::unix::fs::symlink(&from, to),
        Ok(()) => Ok(()),
    }
}

/// Whether a name stands for the same file in both folders.
fn is_same(one: &Path, other: &Path, name: &str) -> bool {
    let id =
        |folder: &Path| std::fs::metadata(folder.join(name)).map(|file| (file.dev(), file.ino()));
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}
