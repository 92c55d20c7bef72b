//! The files that studies name, by their BLAKE3 digest.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::disk::publish;
use super::error::{At, Error};

/// Writes a file, durable under its name once this returns.
pub(super) fn put(dir: &Path, digest: [u8; 32], bytes: &[u8]) -> Result<(), Error> {
    let path = path(dir, digest);
    if blake3::hash(bytes) != digest {
        return Err(Error::File { path, problem: "was sent with another digest" });
    }
    if get(dir, digest).is_ok() {
        return Ok(());
    }
    publish(&path, bytes).map_err(|error| Error::io("write", &path, bytes.len(), error))
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
