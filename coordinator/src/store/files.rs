//! The files that studies name, by their BLAKE3 digest.

use std::io;

use bytes::Bytes;

use super::error::{At, Error};
use super::shelf::Shelf;

/// Writes a file, durable under its name once this returns.
pub(super) fn put(shelf: &Shelf, digest: [u8; 32], bytes: &[u8]) -> Result<(), Error> {
    if blake3::hash(bytes) != digest {
        let path = shelf.file_name(&name(digest));
        return Err(Error::File { path, problem: "was sent with another digest" });
    }
    if get(shelf, digest).is_ok() {
        return Ok(());
    }
    shelf.put_file(&name(digest), bytes)
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

    #[test]
    fn only_what_has_the_digest() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = &Shelf::open(dir.path(), &RecordsAt::Folder).unwrap();
        let digest = *blake3::hash(b"points").as_bytes();
        let problem = |result: Result<_, Error>| match result {
            Err(Error::File { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
        assert_eq!(problem(get(shelf, digest)), "is missing");
        assert!(put(shelf, digest, b"other").is_err());
        put(shelf, digest, b"points").unwrap();
        assert_eq!(get(shelf, digest).unwrap(), &b"points"[..]);
        std::fs::write(shelf.file_name(&name(digest)), b"pointz").unwrap();
        assert_eq!(problem(get(shelf, digest)), "is damaged");
        put(shelf, digest, b"points").unwrap();
        assert_eq!(get(shelf, digest).unwrap(), &b"points"[..]);
        assert_eq!(std::fs::read_dir(dir.path().join("files")).unwrap().count(), 1);
    }
}
