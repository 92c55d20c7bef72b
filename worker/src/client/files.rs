//! Files that studies name, kept by content.
//!
//! A file's place in the cache is its digest, and it is verified whenever it is read: a cache can be
//! shared, cut or deleted at any time. A cache that cannot be written to costs time and nothing else.
//!
//! No link that somebody put into the folder is followed: new files are created under names of their own and
//! moved to their places, and only plain files are read. The default is in the temporary folder that all users
//! share, and is used only while it is this user's alone.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proto::convert::FileRef;
use rustix::fs::OFlags;
use rustix::process::geteuid;

/// A folder of files by content.
#[derive(Clone, Debug)]
pub(super) struct FileCache {
    folder: PathBuf,
    /// Whether the folder has to be this user's alone.
    private: bool,
}

impl FileCache {
    /// In a folder that is made when something is kept.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), private: false }
    }

    /// In a folder of this user in the system's temporary folder.
    pub(super) fn private() -> Self {
        Self::private_in(&std::env::temp_dir())
    }

    fn private_in(shared: &Path) -> Self {
        let folder = shared.join(format!("regretta-files-{}", geteuid().as_raw()));
        Self { folder, private: true }
    }

    /// The content, where it is there and whole.
    pub(super) fn read(&self, file: &FileRef) -> Option<Vec<u8>> {
        if self.private {
            check(&self.folder).ok()?;
        }
        // What is no plain file is not waited for either.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = File::options();
        let options = options.read(true).custom_flags(flags.bits().cast_signed());
        let mut kept = options.open(self.place(file)).ok()?;
        let metadata = kept.metadata().ok()?;
        if !metadata.is_file() || metadata.len() != file.size {
            return None;
        }
        let mut content = Vec::new();
        kept.read_to_end(&mut content).ok()?;
        is_whole(file, &content).then_some(content)
    }

    /// Keeps a content, if possible.
    pub(super) fn keep(&self, file: &FileRef, content: &[u8]) {
        if let Err(error) = self.try_keep(file, content) {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "cannot keep a file; it will be fetched again");
        }
    }

    fn try_keep(&self, file: &FileRef, content: &[u8]) -> io::Result<()> {
        if self.private {
            create_private(&self.folder)?;
        } else {
            fs::create_dir_all(&self.folder)?;
        }
        // Its keys are random.
        let name = RandomState::new().build_hasher().finish();
        let part = self.folder.join(format!("{name:016x}.part"));
        let mut written = File::create_new(&part)?;
        let kept = written.write_all(content).and_then(|()| fs::rename(&part, self.place(file)));
        if kept.is_err() {
            _ = fs::remove_file(&part);
        }
        kept
    }

    fn place(&self, file: &FileRef) -> PathBuf {
        self.folder.join(blake3::Hash::from_bytes(file.digest).to_hex().as_str())
    }
}

/// Makes a folder that no other user can look into, or sees that it is one.
fn create_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check(folder),
        created => created,
    }
}

/// Refuses a folder that somebody else made, can write to or has linked to.
fn check(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    if found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o777 == 0o700 {
        return Ok(());
    }
    let reason =
        "it is not a folder of this user alone (mode 700); remove it, or give another with --cache";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

/// Whether a content is the file's.
pub(super) fn is_whole(file: &FileRef, content: &[u8]) -> bool {
    content.len() as u64 == file.size && *blake3::hash(content).as_bytes() == file.digest
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

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

    /// What the worker would have overwritten by way of a planted link.
    fn victim(folder: &Path) -> PathBuf {
        let victim = folder.join("victim");
        fs::write(&victim, b"precious").unwrap();
        victim
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_default_is_a_folder_of_this_user_alone() {
        let shared = tempfile::tempdir().unwrap();
        let cache = FileCache::private_in(shared.path());
        let k = file(b"1,2\n");
        cache.keep(&k, b"1,2\n");
        assert_eq!(cache.read(&k).as_deref(), Some(b"1,2\n".as_slice()));
        assert_eq!(mode(&cache.folder), 0o700);
        cache.keep(&k, b"1,2\n");
        // Once others can write to it, nothing of it is used.
        for open in [0o720, 0o702, 0o755] {
            fs::set_permissions(&cache.folder, fs::Permissions::from_mode(open)).unwrap();
            assert_eq!(cache.read(&k), None);
            assert!(cache.try_keep(&k, b"1,2\n").is_err());
        }
    }

    #[test]
    fn a_planted_folder_is_not_used() {
        let shared = tempfile::tempdir().unwrap();
        let elsewhere = shared.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::set_permissions(&elsewhere, fs::Permissions::from_mode(0o700)).unwrap();
        let cache = FileCache::private_in(shared.path());
        symlink(&elsewhere, &cache.folder).unwrap();
        let k = file(b"1,2\n");
        cache.keep(&k, b"1,2\n");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert_eq!(cache.read(&k), None);
        fs::remove_file(&cache.folder).unwrap();
        symlink(shared.path().join("nowhere"), &cache.folder).unwrap();
        cache.keep(&k, b"1,2\n");
        assert!(!shared.path().join("nowhere").exists());
    }

    #[test]
    fn planted_links_are_neither_written_nor_read_through() {
        let folder = tempfile::tempdir().unwrap();
        let cache = FileCache::new(&folder.path().join("files"));
        fs::create_dir(&cache.folder).unwrap();
        let victim = victim(folder.path());
        let k = file(b"1,2\n");
        // Every name that a writer of this process could have guessed.
        for count in 0..64 {
            let name = format!("{}-{count}.part", std::process::id());
            symlink(&victim, cache.folder.join(name)).unwrap();
        }
        symlink(&victim, cache.place(&k)).unwrap();
        cache.keep(&k, b"1,2\n");
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(cache.read(&k).as_deref(), Some(b"1,2\n".as_slice()));
        assert!(fs::symlink_metadata(cache.place(&k)).unwrap().is_file());
        // A link to the right content is none of ours either.
        let right = folder.path().join("right");
        fs::write(&right, b"1,2\n").unwrap();
        fs::remove_file(cache.place(&k)).unwrap();
        symlink(&right, cache.place(&k)).unwrap();
        assert_eq!(cache.read(&k), None);
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
