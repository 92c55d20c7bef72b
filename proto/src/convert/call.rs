//! What a worker asks, as the coordinator takes it.

use study::StudyId;

use super::{Fault, Invalid, digest, name, number, study_id, within};
use crate::limits::{MAX_LEASES, MAX_SLOTS};
use crate::v1;

/// Who joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The version of regretta.
    pub version: String,
    /// The digest of the fixed trials, 64 hexadecimal digits.
    pub numerics: String,
    /// The worker's name.
    pub name: String,
    /// Shards that it computes at the same time, at least 1.
    pub slots: u32,
    /// The id that it had before it lost its connection.
    pub previous: Option<u64>,
}

/// A request for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asks.
    pub worker_id: u64,
    /// At most so many leases, at least 1.
    pub wanted: u32,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Who lives.
    pub worker_id: u64,
    /// All leases that the worker holds.
    pub leases: Vec<Progress>,
}

/// How far a lease is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Its epoch.
    pub lease: u64,
    /// Trials computed so far.
    pub done_trials: u64,
}

/// A question for a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StudyQuery {
    /// Who asks.
    pub worker_id: u64,
    /// The study.
    pub study: StudyId,
}

/// A question for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileQuery {
    /// Who asks.
    pub worker_id: u64,
    /// The content's digest.
    pub digest: [u8; 32],
}

impl TryFrom<v1::RegisterRequest> for Registration {
    type Error = Invalid;

    fn try_from(message: v1::RegisterRequest) -> Result<Self, Invalid> {
        let v1::RegisterRequest { version, numerics_digest, name: called, slots, .. } = message;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if numerics_digest.len() != 64 || !numerics_digest.bytes().all(is_digit) {
            return Err(Invalid::new("numerics_digest", Fault::NotHexadecimal));
        }
        Ok(Self {
            version: name("version", version)?,
            numerics: numerics_digest,
            name: name("name", called)?,
            slots: number("slots", slots, 1, MAX_SLOTS.into())?,
            previous: message.previous_worker_id,
        })
    }
}

impl From<Registration> for v1::RegisterRequest {
    fn from(registration: Registration) -> Self {
        let Registration { version, numerics, name, slots, previous } = registration;
        let previous_worker_id = previous;
        Self { version, numerics_digest: numerics, name, slots, previous_worker_id }
    }
}

impl TryFrom<v1::LeaseRequest> for Request {
    type Error = Invalid;

    fn try_from(message: v1::LeaseRequest) -> Result<Self, Invalid> {
        let wanted = number("wanted", message.wanted, 1, MAX_LEASES as u64)?;
        Ok(Self { worker_id: message.worker_id, wanted })
    }
}

impl From<Request> for v1::LeaseRequest {
    fn from(Request { worker_id, wanted }: Request) -> Self {
        Self { worker_id, wanted }
    }
}

impl TryFrom<v1::HeartbeatRequest> for Heartbeat {
    type Error = Invalid;

    fn try_from(message: v1::HeartbeatRequest) -> Result<Self, Invalid> {
        within("leases", message.leases.len(), MAX_LEASES)?;
        let progress = |v1::LeaseProgress { lease, done_trials }| Progress { lease, done_trials };
        let leases = message.leases.into_iter().map(progress).collect();
        Ok(Self { worker_id: message.worker_id, leases })
    }
}

impl From<Heartbeat> for v1::HeartbeatRequest {
    fn from(Heartbeat { worker_id, leases }: Heartbeat) -> Self {
        let progress = |Progress { lease, done_trials }| v1::LeaseProgress { lease, done_trials };
        Self { worker_id, leases: leases.into_iter().map(progress).collect() }
    }
}

impl TryFrom<v1::FetchStudyRequest> for StudyQuery {
    type Error = Invalid;

    fn try_from(message: v1::FetchStudyRequest) -> Result<Self, Invalid> {
        Ok(Self { worker_id: message.worker_id, study: study_id(&message.study)? })
    }
}

impl From<StudyQuery> for v1::FetchStudyRequest {
    fn from(StudyQuery { worker_id, study }: StudyQuery) -> Self {
        Self { worker_id, study: super::study_bytes(study) }
    }
}

impl TryFrom<v1::FetchFileRequest> for FileQuery {
    type Error = Invalid;

    fn try_from(message: v1::FetchFileRequest) -> Result<Self, Invalid> {
        Ok(Self { worker_id: message.worker_id, digest: digest("digest", &message.digest)? })
    }
}

impl From<FileQuery> for v1::FetchFileRequest {
    fn from(FileQuery { worker_id, digest }: FileQuery) -> Self {
        Self { worker_id, digest: digest.to_vec().into() }
    }
}
