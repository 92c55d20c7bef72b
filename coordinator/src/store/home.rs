//! Which folder belongs to which ledger, where one is not inside the other.
//!
//! A ledger beside another folder's segments would give up every shard as lost; so both have the
//! same id.

use std::io;
use std::path::Path;

use rand::TryRng;
use rand::rngs::SysRng;

use super::disk::publish;
use super::error::{At, Error};

const NAME: &str = "home";

/// Refuses a folder that is not the ledger's.
pub(super) fn expect(dir: &Path, expected: &str) -> Result<(), Error> {
    if read(dir)?.as_deref() == Some(expected) {
        return Ok(());
    }
    Err(Error::OtherHome { place: dir.display().to_string() })
}

/// The folder's id, made if it has none.
pub(super) fn make(dir: &Path) -> Result<String, Error> {
    if let Some(found) = read(dir)? {
        return Ok(found);
    }
    let id = SysRng.try_next_u64().expect("the system has random numbers");
    let (id, path) = (format!("{id:016x}"), dir.join(NAME));
    publish(&path, id.as_bytes()).at("write", &path)?;
    Ok(id)
}

fn read(dir: &Path) -> Result<Option<String>, Error> {
    let path = dir.join(NAME);
    match std::fs::read_to_string(&path) {
        Ok(id) => Ok(Some(id.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("read", &path),
    }
}
