//! File systems that other machines share: SQLite cannot rely on their locks and shared memory.

use std::path::Path;

use super::error::Error;

/// Names of shared file systems in the system's table of mounts.
const SHARED: [&str; 17] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "afs",
    "lustre",
    "gpfs",
    "beegfs",
    "ceph",
    "pvfs2",
    "orangefs",
    "panfs",
    "wekafs",
    "glusterfs",
    "ocfs2",
    "gfs2",
];

/// The same for what runs as a process of a user. Others of that kind are local, such as
/// fuse-overlayfs below containers.
const SHARED_FUSE: [&str; 17] = [
    "sshfs",
    "glusterfs",
    "s3fs",
    "gcsfuse",
    "rclone",
    "juicefs",
    "ceph",
    "ceph-fuse",
    "mfs",
    "moosefs",
    "lizardfs",
    "davfs",
    "blobfuse",
    "blobfuse2",
    "goofys",
    "mountpoint-s3",
    "seaweedfs",
];

/// The kind of the shared file system that a folder is on. Where the system does not say, it is on none.
pub fn shared(dir: &Path) -> Option<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    kind(&table, &dir).filter(|kind| is_shared(kind)).map(str::to_owned)
}

/// Refuses a folder that is on a shared file system.
pub(super) fn require_local(dir: &Path) -> Result<(), Error> {
    match shared(dir) {
        Some(kind) => Err(Error::Shared { dir: dir.to_path_buf(), kind }),
        None => Ok(()),
    }
}

fn is_shared(kind: &str) -> bool {
    match kind.strip_prefix("fuse.") {
        Some(kind) => SHARED_FUSE.contains(&kind),
        None => SHARED.contains(&kind),
    }
}

/// The kind of the file system that has a folder. A line of the table is `id parent device root
/// mount-point options .. - kind source ..`; of mounts on the same point, the last one counts.
fn kind<'a>(table: &'a str, dir: &Path) -> Option<&'a str> {
    let mount = |line: &'a str| {
        let (left, right) = line.split_once(" - ")?;
        let point = unescaped(left.split(' ').nth(4)?);
        let depth = Path::new(&point).components().count();
        dir.starts_with(&point).then_some((depth, right.split(' ').next()?))
    };
    table.lines().filter_map(mount).max_by_key(|(depth, _)| *depth).map(|(_, kind)| kind)
}

/// Spaces and the like are three octal digits behind a backslash.
fn unescaped(point: &str) -> String {
    let mut parts = point.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                text.push(char::from(byte));
                text.push_str(&part[3..]);
            }
            None => text.push_str(part),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 28 0:20 / /proc rw,nosuid - proc proc rw
28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 28 0:40 / /home rw,relatime shared:2 master:3 - nfs4 server:/home rw,vers=4.2
31 30 254:2 / /home/me/local rw - xfs /dev/vdb rw
32 28 0:41 / /my\\040data rw - fuse.sshfs me@host:/ rw
33 28 0:42 / /box rw - fuse.fuse-overlayfs fuse-overlayfs rw
34 28 254:3 / /twice rw - ext4 /dev/vdc rw
35 34 0:43 / /twice rw - lustre fs@tcp:/x rw
";

    #[test]
    fn shared_file_systems_are_known_by_their_mounts() {
        for (dir, expected, shared) in [
            ("/tmp/x", "ext4", false),
            ("/home/me/x", "nfs4", true),
            ("/homes/me", "ext4", false),
            ("/home/me/local/x", "xfs", false),
            ("/my data/x", "fuse.sshfs", true),
            ("/box/x", "fuse.fuse-overlayfs", false),
            ("/twice", "lustre", true),
        ] {
            let found = kind(TABLE, Path::new(dir)).unwrap();
            assert_eq!((found, is_shared(found)), (expected, shared), "{dir}");
        }
        assert_eq!(kind("", Path::new("/tmp")), None);
        require_local(tempfile::tempdir().unwrap().path()).unwrap();
    }
}
