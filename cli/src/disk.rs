//! Whether there is room for what is about to be written.

use std::path::Path;

use anyhow::Context;

use crate::exit::BadInput;
use crate::text;

/// Refuses to begin where the disk under an existing folder has less than `needed` bytes free.
pub(crate) fn require(folder: &Path, needed: u64) -> anyhow::Result<()> {
    let free = free(folder)?;
    if free >= needed {
        return Ok(());
    }
    let (needed, free) = (text::bytes(needed as f64), text::bytes(free as f64));
    Err(BadInput(format!(
        "{} has {free} free, and about {needed} are needed; free some space or use another --out folder, \
         then run the same command again: nothing that was computed is lost",
        folder.display()
    ))
    .into())
}

/// Bytes that a user may still write on the disk of a folder.
pub(crate) fn free(folder: &Path) -> anyhow::Result<u64> {
    let disk = rustix::fs::statvfs(folder)
        .with_context(|| format!("cannot ask how much room {} has", folder.display()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
