//! Where segments and the files of studies are: in the folder, or in an object store with the folder
//! as a cache.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::TryRng;
use rand::rngs::SysRng;

use super::disk::{Disk, FileSystem, Medium, adopt, publish};
use super::error::{At, Error};
use super::frame::{HEAD, HEADER};
use super::location::RecordsAt;
use super::remote::{Objects, Remote};
use super::scan::Scan;
use super::segment;
use super::writer::ROOM;

/// Objects are put whole, and read whole.
const OBJECT_SIZE: u64 = 32 << 20;

/// What has the id of a place.
const HOME: &str = "home";

/// The place of a store's records.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    /// The folder, or the cache of what is elsewhere.
    dir: PathBuf,
    remote: Option<Arc<Remote>>,
}

impl Shelf {
    /// In a folder.
    pub(super) fn local(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf(), remote: None }
    }

    /// Makes the folders that it needs. Blocks.
    pub(super) fn open(dir: &Path, at: &RecordsAt) -> Result<Self, Error> {
        let mut shelf = Self::local(dir);
        if let RecordsAt::S3(at) = at {
            shelf.remote = Some(Arc::new(Remote::new(at)?));
            // What is cached of one place is never taken for what another has.
            shelf.dir = dir.join("cache").join(shelf.home()?);
        }
        for folder in [shelf.dir.join("segments"), shelf.dir.join("files")] {
            std::fs::create_dir_all(&folder).at("create", &folder)?;
        }
        Ok(shelf)
    }

    pub(super) fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// The folder, or the cache of what is elsewhere.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// How segments are written.
    pub(super) fn medium(&self) -> Medium {
        let (disk, segment): (Box<dyn Disk>, u64) = match &self.remote {
            Some(remote) => (Box::new(Objects(Arc::clone(remote))), OBJECT_SIZE),
            None => (Box::new(FileSystem), segment::SIZE),
        };
        Medium { disk, segment, room: ROOM }
    }

    /// What people know the place by.
    pub(super) fn name(&self) -> PathBuf {
        self.named("")
    }

    fn named(&self, object: &str) -> PathBuf {
        match &self.remote {
            Some(remote) => remote.name(object),
            None => self.dir.join(object),
        }
    }

    /// The id of the place, made if it has none.
    pub(super) fn home(&self) -> Result<String, Error> {
        let read = || match &self.remote {
            Some(remote) => remote.get(HOME).map(|bytes| bytes.to_vec()),
            None => std::fs::read(self.dir.join(HOME)),
        };
        let id = match read() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let id = SysRng.try_next_u64().expect("the system has random numbers");
                let id = format!("{id:016x}").into_bytes();
                let made = match &self.remote {
                    Some(remote) => remote.create(HOME, &id.into()),
                    None => publish(&self.dir.join(HOME), &id),
                };
                // Another may have been faster.
                made.or_else(|error| read().map_err(|_| error).map(|_| ())).and_then(|()| read())
            }
            read => read,
        };
        let id = id.at("read", &self.named(HOME))?;
        Ok(String::from_utf8_lossy(&id).chars().filter(char::is_ascii_hexdigit).collect())
    }

    /// The numbers of the segments that are there, ascending.
    pub(super) fn list(&self) -> Result<Vec<u64>, Error> {
        match &self.remote {
            Some(_) => Ok(self.sizes()?.into_keys().collect()),
            None => segment::list(&self.dir),
        }
    }

    /// The sizes of segments that are elsewhere.
    pub(super) fn sizes(&self) -> Result<BTreeMap<u64, u64>, Error> {
        let Some(remote) = &self.remote else { return Ok(BTreeMap::new()) };
        let objects = remote.list("segments").at("list", &self.named("segments"))?;
        let sized = |(name, size): (String, u64)| Some((segment::number(&name)?, size));
        Ok(objects.into_iter().filter_map(sized).collect())
    }

    /// What errors call a segment.
    pub(super) fn path(&self, number: u64) -> PathBuf {
        self.named(&object(number))
    }

    /// A segment's file, from the cache if it is elsewhere.
    pub(super) fn file(&self, number: u64) -> io::Result<PathBuf> {
        let path = segment::path(&self.dir, number);
        let Some(remote) = &self.remote else { return Ok(path) };
        if !path.exists() {
            let bytes = remote.get(&object(number))?;
            if !is_whole(&bytes) {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it is damaged"));
            }
            publish(&path, &bytes)?;
        }
        Ok(path)
    }

    /// Opens a segment for reading.
    pub(super) fn read(&self, number: u64) -> Result<File, Error> {
        let file = self.file(number).and_then(File::open);
        file.at("open", &self.path(number))
    }

    /// Deletes the segments that are not needed.
    pub(super) fn delete(&self, unneeded: impl Fn(u64) -> bool) -> Result<(), Error> {
        if let Some(remote) = &self.remote {
            let old: Vec<String> =
                self.list()?.into_iter().filter(|number| unneeded(*number)).map(object).collect();
            remote.delete(&old).at("delete objects in", &self.named("segments"))?;
        }
        segment::delete(&self.dir, unneeded)
    }

    /// Moves a file of a study here.
    pub(super) fn keep_file(&self, name: &str, from: &Path) -> Result<(), Error> {
        let (object, path) = (format!("files/{name}"), self.dir.join("files").join(name));
        let size = std::fs::metadata(from).map_or(0, |file| file.len() as usize);
        let kept = match &self.remote {
            Some(remote) => remote.upload(&object, from),
            None => Ok(()),
        };
        let kept = kept.and_then(|()| adopt(from, &path));
        kept.map_err(|error| Error::io("write", &self.named(&object), size, error))
    }

    /// A file of a study; one that is elsewhere is kept here too.
    pub(super) fn get_file(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.file_place(name)?)
    }

    /// Where a file of a study is in the folder; one that is elsewhere is brought here.
    pub(super) fn file_place(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.dir.join("files").join(name);
        if !path.try_exists()? {
            let missing = || io::Error::from(io::ErrorKind::NotFound);
            let remote = self.remote.as_ref().ok_or_else(missing)?;
            publish(&path, &remote.get(&format!("files/{name}"))?)?;
        }
        Ok(path)
    }

    /// What errors call a file of a study.
    pub(super) fn file_name(&self, name: &str) -> PathBuf {
        self.named(&format!("files/{name}"))
    }
}

fn object(number: u64) -> String {
    format!("segments/{}", segment::name(number))
}

/// Whether a segment has nothing but whole frames.
fn is_whole(bytes: &[u8]) -> bool {
    let mut scan = Scan::new(bytes);
    let mut length = HEADER.len();
    while let Ok(Some(frame)) = scan.next() {
        length += HEAD + frame.payload.len();
    }
    length == bytes.len()
}
