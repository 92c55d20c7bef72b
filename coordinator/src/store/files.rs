//! The files that studies name, by their BLAKE3 digest.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::disk::sync_parent;
use super::error::{At, Error};

/// Writes a file, durable under its name once this returns.
pub(super) fn put(dir: &Path, digest: [u8; 32], bytes: &[u8]) -> Result<(), Error> {
    static UNIQUE: AtomicU64 = AtomicU64::new(0);
    let path = path(dir, digest);
    if blake3::hash(bytes) != digest {
        return Err(Error::File { path, problem: "was sent with another digest" });
    }
    if get(dir, digest).is_ok() {
        return Ok(());
    }
    let temporary = path.with_extension(UNIQUE.fetch_add(1, Ordering::Relaxed).to_string());
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)?;
        sync_parent(&path)
    });
    written.map_err(|error| {
        // Nothing refers to it.
        let _ = std::fs::remove_file(&temporary);
        Error::io("write", &path, bytes.len(), error)
    })
}

/// Reads a file and checks its digest.
pub(super) fn get(dir: &Path, digest: [u8; 32]) -> Result<Bytes, Error> {
    let path = path(dir, digest);
    match std::fs::read(&path) {
        Ok(bytes) if blake3::hash(&bytes) == digest => Ok(bytes.into()),
        Ok(_) => Err(Error::File { path, problem: "is damaged" }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::File { path, problem: "is missing" })
        }
        Err(error) => Err(error).at("read", &path),
    }
}

fn path(dir: &Path, digest: [u8; 32]) -> PathBuf {
    dir.join("files").join(blake3::Hash::from_bytes(digest).to_hex().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_the_digest() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        let digest = *blake3::hash(b"points").as_bytes();
        let problem = |result: Result<_, Error>| match result {
            Err(Error::File { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
        assert_eq!(problem(get(dir.path(), digest)), "is missing");
        assert!(put(dir.path(), digest, b"other").is_err());
        put(dir.path(), digest, b"points").unwrap();
        assert_eq!(get(dir.path(), digest).unwrap(), &b"points"[..]);
        std::fs::write(path(dir.path(), digest), b"pointz").unwrap();
        assert_eq!(problem(get(dir.path(), digest)), "is damaged");
        put(dir.path(), digest, b"points").unwrap();
        assert_eq!(get(dir.path(), digest).unwrap(), &b"points"[..]);
        assert_eq!(std::fs::read_dir(dir.path().join("files")).unwrap().count(), 1);
    }
}
