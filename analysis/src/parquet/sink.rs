//! A file that knows its digest, and is on the disk when it is finished.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::FileError;
use crate::manifest::FileEntry;

/// Bytes that pass at a time.
const BUFFER: usize = 1 << 17;

/// A file being written.
pub(crate) struct Sink {
    path: PathBuf,
    hashed: BufWriter<Hashed>,
}

struct Hashed {
    file: File,
    hasher: blake3::Hasher,
    bytes: u64,
    /// The first refusal: polars turns it into text.
    refused: Option<io::Error>,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.file.write(bytes) {
            Ok(length) => {
                self.hasher.update(&bytes[..length]);
                self.bytes += length as u64;
                Ok(length)
            }
            Err(error) => {
                let again = io::Error::new(error.kind(), error.to_string());
                self.refused.get_or_insert(error);
                Err(again)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Sink {
    pub(crate) fn create(path: &Path) -> Result<Self, FileError> {
        let file = File::create_new(path).map_err(FileError::io("create", path))?;
        let hashed = Hashed { file, hasher: blake3::Hasher::new(), bytes: 0, refused: None };
        Ok(Self { path: path.to_owned(), hashed: BufWriter::with_capacity(BUFFER, hashed) })
    }

    /// Why the file system refused, if it did.
    pub(crate) fn refused(&mut self) -> Option<FileError> {
        let error = self.hashed.get_mut().refused.take()?;
        Some(FileError::io("write", &self.path)(error))
    }

    /// Brings everything to the disk. The entry's name is the one given.
    pub(crate) fn finish(mut self, name: &str) -> Result<FileEntry, FileError> {
        self.hashed.flush().map_err(FileError::io("write", &self.path))?;
        let hashed = self.hashed.get_mut();
        hashed.file.sync_all().map_err(FileError::io("flush to the disk", &self.path))?;
        let blake3 = hashed.hasher.finalize().to_hex().to_string();
        Ok(FileEntry { name: name.to_owned(), bytes: hashed.bytes, blake3 })
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hashed.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hashed.flush()
    }
}

/// Length and digest of an open file, of which what follows is read.
pub(crate) fn digest(file: &mut File) -> io::Result<(u64, String)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok((bytes, hasher.finalize().to_hex().to_string()));
        }
        hasher.update(&buffer[..length]);
        bytes += length as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_is_what_is_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut sink = Sink::create(&path).unwrap();
        for part in [&b"one"[..], &vec![7; 3 * BUFFER], b"three"] {
            sink.write_all(part).unwrap();
        }
        let entry = sink.finish("x/a").unwrap();
        let mut file = File::open(&path).unwrap();
        assert_eq!(digest(&mut file).unwrap(), (entry.bytes, entry.blake3));
        assert_eq!((entry.name.as_str(), entry.bytes), ("x/a", 3 * BUFFER as u64 + 8));
        assert!(matches!(Sink::create(&path), Err(FileError::Io { doing: "create", .. })));
    }
}
