//! What the coordinator answers, as a worker takes it.

use std::ops::Range;
use std::time::Duration;

use study::{CellId, StudyId};

use super::{
    Fault, Invalid, digest, name, number, path, range, reason, study_bytes, study_id, within,
};
use crate::limits::{MAX_FILE_BYTES, MAX_FILES, MAX_LEASES, MAX_MESSAGE_BYTES, MAX_TEXT_BYTES};
use crate::v1;

/// The longest time between heartbeats, and for an answer with leases, in seconds.
const LONGEST: u64 = 3600;

/// The least limit on batches that leaves room for a row.
const LEAST_BATCH_BYTES: u64 = 4096;

/// What a worker has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Its id.
    pub worker_id: u64,
    /// Time between heartbeats.
    pub heartbeat: Duration,
    /// Time after the last heartbeat at which leases expire; longer than that between heartbeats.
    pub lease: Duration,
    /// The longest message that the coordinator takes.
    pub max_message_bytes: usize,
    /// The longest batch that it takes.
    pub max_batch_bytes: usize,
}

/// Work, or none for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leases {
    /// What is leased.
    pub leases: Vec<Lease>,
    /// How long to wait before the next request.
    pub wait: Duration,
    /// Finish what is leased and leave.
    pub draining: bool,
}

/// The right to compute some trials of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The lease's name, and its fence.
    pub epoch: u64,
    /// The study.
    pub study: StudyId,
    /// The cell.
    pub cell: CellId,
    /// The replicates, at least one.
    pub replicates: Range<u64>,
    /// Only the digest and the tally are wanted.
    pub check: bool,
    /// The digest of the plan.
    pub revision: [u8; 32],
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Leases to drop.
    pub revoked: Vec<Revocation>,
    /// Finish what is leased and leave.
    pub draining: bool,
}

/// A lease that was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Its epoch.
    pub lease: u64,
    /// Why.
    pub reason: String,
}

/// A study, as its author wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name of the study file.
    pub file_name: String,
    /// The study file.
    pub text: String,
    /// The digest of the plan.
    pub revision: [u8; 32],
    /// The files that it names.
    pub files: Vec<FileRef>,
}

/// A file by content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRef {
    /// The path, as the study file writes it. It is a name, and no place on this machine.
    pub path: String,
    /// The content's digest.
    pub digest: [u8; 32],
    /// The content's length in bytes.
    pub size: u64,
}

impl TryFrom<v1::RegisterReply> for Registered {
    type Error = Invalid;

    fn try_from(message: v1::RegisterReply) -> Result<Self, Invalid> {
        let heartbeat = number("heartbeat_ms", message.heartbeat_ms, 1, 1000 * LONGEST)?;
        let least = u64::from(heartbeat) + 1;
        let lease = number("lease_ms", message.lease_ms, least, 24_000 * LONGEST)?;
        let most = u32::MAX.into();
        let longest = number("max_message_bytes", message.max_message_bytes, 1, most)? as usize;
        let batch = number("max_batch_bytes", message.max_batch_bytes, LEAST_BATCH_BYTES, most)?;
        Ok(Self {
            worker_id: message.worker_id,
            heartbeat: Duration::from_millis(heartbeat.into()),
            lease: Duration::from_millis(lease.into()),
            max_message_bytes: longest.min(MAX_MESSAGE_BYTES),
            max_batch_bytes: (batch as usize).min(crate::limits::MAX_BATCH_BYTES),
        })
    }
}

impl From<Registered> for v1::RegisterReply {
    fn from(registered: Registered) -> Self {
        Self {
            worker_id: registered.worker_id,
            heartbeat_ms: registered.heartbeat.as_millis() as u32,
            lease_ms: registered.lease.as_millis() as u32,
            max_message_bytes: registered.max_message_bytes as u32,
            max_batch_bytes: registered.max_batch_bytes as u32,
        }
    }
}

impl TryFrom<v1::LeaseReply> for Leases {
    type Error = Invalid;

    fn try_from(message: v1::LeaseReply) -> Result<Self, Invalid> {
        within("leases", message.leases.len(), MAX_LEASES)?;
        let wait = number("wait_ms", message.wait_ms, 0, 1000 * LONGEST)?;
        let leases = message.leases.into_iter().map(Lease::try_from);
        Ok(Self {
            leases: leases.collect::<Result<_, _>>()?,
            wait: Duration::from_millis(wait.into()),
            draining: message.draining,
        })
    }
}

impl From<Leases> for v1::LeaseReply {
    fn from(Leases { leases, wait, draining }: Leases) -> Self {
        let wait_ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
        Self { leases: leases.into_iter().map(Into::into).collect(), wait_ms, draining }
    }
}

impl TryFrom<v1::Lease> for Lease {
    type Error = Invalid;

    fn try_from(message: v1::Lease) -> Result<Self, Invalid> {
        Ok(Self {
            epoch: message.epoch,
            study: study_id(&message.study)?,
            cell: CellId(message.cell),
            replicates: range("first", message.first, message.end)?,
            check: message.check,
            revision: digest("revision", &message.revision)?,
        })
    }
}

impl From<Lease> for v1::Lease {
    fn from(Lease { epoch, study, cell, replicates, check, revision }: Lease) -> Self {
        let Range { start: first, end } = replicates;
        let (study, revision) = (study_bytes(study), revision.to_vec().into());
        Self { epoch, study, cell: cell.0, first, end, check, revision }
    }
}

impl TryFrom<v1::HeartbeatReply> for Beat {
    type Error = Invalid;

    fn try_from(message: v1::HeartbeatReply) -> Result<Self, Invalid> {
        within("revoked", message.revoked.len(), MAX_LEASES)?;
        let revocation = |message: v1::Revocation| Revocation {
            lease: message.lease,
            reason: reason(&message.reason),
        };
        let revoked = message.revoked.into_iter().map(revocation).collect();
        Ok(Self { revoked, draining: message.draining })
    }
}

impl From<Beat> for v1::HeartbeatReply {
    fn from(Beat { revoked, draining }: Beat) -> Self {
        let revocation = |Revocation { lease, reason }| v1::Revocation { lease, reason };
        Self { revoked: revoked.into_iter().map(revocation).collect(), draining }
    }
}

impl TryFrom<v1::StudyDefinition> for Definition {
    type Error = Invalid;

    fn try_from(message: v1::StudyDefinition) -> Result<Self, Invalid> {
        within("text", message.text.len(), MAX_TEXT_BYTES)?;
        within("files", message.files.len(), MAX_FILES)?;
        let files = message.files.into_iter().map(FileRef::try_from);
        Ok(Self {
            file_name: name("file_name", message.file_name)?,
            text: message.text,
            revision: digest("revision", &message.revision)?,
            files: files.collect::<Result<_, _>>()?,
        })
    }
}

impl From<Definition> for v1::StudyDefinition {
    fn from(Definition { file_name, text, revision, files }: Definition) -> Self {
        let files = files.into_iter().map(Into::into).collect();
        Self { file_name, text, revision: revision.to_vec().into(), files }
    }
}

impl TryFrom<v1::FileRef> for FileRef {
    type Error = Invalid;

    fn try_from(message: v1::FileRef) -> Result<Self, Invalid> {
        if message.size > MAX_FILE_BYTES {
            let fault = Fault::TooLong { length: message.size, most: MAX_FILE_BYTES };
            return Err(Invalid::new("size", fault));
        }
        Ok(Self {
            path: path("path", message.path)?,
            digest: digest("digest", &message.digest)?,
            size: message.size,
        })
    }
}

impl From<FileRef> for v1::FileRef {
    fn from(FileRef { path, digest, size }: FileRef) -> Self {
        Self { path, digest: digest.to_vec().into(), size }
    }
}
