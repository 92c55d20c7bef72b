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

/// The name of the network file system that a folder is on, if it is on one.
pub(crate) fn network(folder: &Path) -> anyhow::Result<Option<&'static str>> {
    let found = rustix::fs::statfs(folder)
        .with_context(|| format!("cannot ask what file system {} is on", folder.display()))?;
    // The kernel's numbers (linux/magic.h, and those of Lustre, GPFS and BeeGFS).
    const NETWORK: [(u64, &str); 9] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB2"),
        (0x0bd0_0bd0, "Lustre"),
        (0x4750_4653, "GPFS"),
        (0x1983_0326, "BeeGFS"),
        (0x00c3_6400, "Ceph"),
        (0x5346_414f, "AFS"),
    ];
    let number = found.f_type as u64 & 0xffff_ffff;
    Ok(NETWORK.iter().find(|(magic, _)| *magic == number).map(|&(_, name)| name))
}
