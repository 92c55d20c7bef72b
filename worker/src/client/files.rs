//! Files that studies name, kept by content.
//!
//! A file's place in the cache is its digest, and it is verified whenever it is read: a cache can be
//! shared, cut or deleted at any time. A cache that cannot be written to costs time and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use proto::convert::FileRef;

/// Tells apart the files that this process is writing.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// A folder of files by content.
#[derive(Clone, Debug)]
pub(super) struct FileCache {
    folder: PathBuf,
}

impl FileCache {
    /// In a folder that is made when something is kept.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// The content, where it is there and whole.
    pub(super) fn read(&self, file: &FileRef) -> Option<Vec<u8>> {
        let content = fs::read(self.place(file)).ok()?;
        is_whole(file, &content).then_some(content)
    }

    /// Keeps a content, if possible.
    pub(super) fn keep(&self, file: &FileRef, content: &[u8]) {
        let place = self.place(file);
        let name =
            format!("{}-{}.part", std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed));
        let part = self.folder.join(name);
        let kept = fs::create_dir_all(&self.folder)
            .and_then(|()| fs::write(&part, content))
            .and_then(|()| fs::rename(&part, &place));
        if let Err(error) = kept {
            _ = fs::remove_file(&part);
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "cannot keep a file; it will be fetched again");
        }
    }

    fn place(&self, file: &FileRef) -> PathBuf {
        self.folder.join(blake3::Hash::from_bytes(file.digest).to_hex().as_str())
    }
}

/// Whether a content is the file's.
pub(super) fn is_whole(file: &FileRef, content: &[u8]) -> bool {
    content.len() as u64 == file.size && *blake3::hash(content).as_bytes() == file.digest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> FileRef {
        let digest = *blake3::hash(content).as_bytes();
        FileRef { path: "k.csv".into(), digest, size: content.len() as u64 }
    }

    #[test]
    fn what_is_kept_is_read_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FileCache::new(&folder.path().join("files"));
        let k = file(b"1,2\n");
        assert_eq!(cache.read(&k), None);
        cache.keep(&k, b"1,2\n");
        assert_eq!(cache.read(&k).as_deref(), Some(b"1,2\n".as_slice()));
        fs::write(cache.place(&k), b"1,3\n").unwrap();
        assert_eq!(cache.read(&k), None);
        cache.keep(&k, b"1,2\n");
        assert!(cache.read(&k).is_some());
        let parts = fs::read_dir(&cache.folder).unwrap().count();
        assert_eq!(parts, 1, "nothing half written is left");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("file");
        fs::write(&blocked, b"").unwrap();
        let cache = FileCache::new(&blocked.join("files"));
        cache.keep(&file(b"x"), b"x");
        assert_eq!(cache.read(&file(b"x")), None);
    }
}
