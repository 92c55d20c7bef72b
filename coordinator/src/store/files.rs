//! The files that studies name, by their BLAKE3 digest.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::error::{At, Error};
use super::shelf::Shelf;

/// Moves a file of this digest to its place, durable under its name once this returns. One that is there
/// already is replaced: it may have been damaged.
pub(super) fn keep(shelf: &Shelf, digest: [u8; 32], from: &Path) -> Result<(), Error> {
    shelf.keep_file(&name(digest), from)
}

/// Where a file is on this machine; its content is not checked.
pub(super) fn place(shelf: &Shelf, digest: [u8; 32]) -> Result<PathBuf, Error> {
    let path = shelf.file_name(&name(digest));
    match shelf.file_place(&name(digest)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::File { path, problem: "is missing" })
        }
        place => place.at("read", &path),
    }
}

/// Reads a file and checks its digest.
pub(super) fn get(shelf: &Shelf, digest: [u8; 32]) -> Result<Bytes, Error> {
    let path = shelf.file_name(&name(digest));
    match shelf.get_file(&name(digest)) {
        Ok(bytes) if blake3::hash(&bytes) == digest => Ok(bytes.into()),
        Ok(_) => Err(Error::File { path, problem: "is damaged" }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::File { path, problem: "is missing" })
        }
        Err(error) => Err(error).at("read", &path),
    }
}

fn name(digest: [u8; 32]) -> String {
    blake3::Hash::from_bytes(digest).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::location::RecordsAt;

    fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
        match result {
            Err(Error::File { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_has_the_digest() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = &Shelf::open(dir.path(), &RecordsAt::Folder).unwrap();
        let digest = *blake3::hash(b"points").as_bytes();
        let keep = || {
            let from = dir.path().join("incoming");
            std::fs::write(&from, b"points").unwrap();
            keep(shelf, digest, &from).unwrap();
            assert!(!from.exists());
        };
        assert_eq!(problem(get(shelf, digest)), "is missing");
        assert_eq!(problem(place(shelf, digest)), "is missing");
        keep();
        assert_eq!(get(shelf, digest).unwrap(), &b"points"[..]);
        std::fs::write(shelf.file_name(&name(digest)), b"pointz").unwrap();
        assert_eq!(problem(get(shelf, digest)), "is damaged");
        keep();
        assert_eq!(std::fs::read(place(shelf, digest).unwrap()).unwrap(), b"points");
        assert_eq!(get(shelf, digest).unwrap(), &b"points"[..]);
        assert_eq!(std::fs::read_dir(dir.path().join("files")).unwrap().count(), 1);
    }
}
