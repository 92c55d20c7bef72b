//! From messages to types that cannot be wrong, and back.
//!
//! Every `TryFrom` checks all fields and names the one that is at fault; what comes out needs no
//! further check. Reasons are for people and are never at fault: they are cut and cleaned.

mod call;
mod reply;
mod results;
mod stream;
mod submission;

use std::ops::Range;

use bytes::Bytes;
use study::batch::DecodeError;
use study::{Batch, CellId, StudyId};

use crate::limits::{
    MAX_BATCH_BYTES, MAX_CHUNK_BYTES, MAX_NAME_BYTES, MAX_PATH_BYTES, MAX_REASON_BYTES,
};
use crate::v1;

pub use call::{FileQuery, Heartbeat, Progress, Registration, Request, StudyQuery};
pub use reply::{Beat, Definition, FileRef, Lease, Leases, Registered, Revocation};
pub use results::ResultPart;
pub use stream::{Finish, Handed, Part, Reply};
pub use submission::{Announced, Assembly, Piece, Submission, pieces};

/// A field that a peer should not have sent like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {fault}")]
pub struct Invalid {
    /// The field's name in the `.proto` file, with the message's where that is not plain.
    pub field: &'static str,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not there.
    #[error("is missing")]
    Missing,
    /// A digest or an id of another length.
    #[error("has {0} bytes and must have 32")]
    NotADigest(usize),
    /// A digest in text that is none.
    #[error("is not 64 lower-case hexadecimal digits")]
    NotHexadecimal,
    /// More than allowed.
    #[error("has length {length}, and at most {most} is allowed")]
    TooLong {
        /// Bytes or items.
        length: u64,
        /// The limit.
        most: u64,
    },
    /// Control characters.
    #[error("holds a character that cannot be printed")]
    NotPrintable,
    /// A number out of range.
    #[error("is {value}, and must be from {least} to {most}")]
    OutOfRange {
        /// The value.
        value: u64,
        /// The least valid one.
        least: u64,
        /// The largest valid one.
        most: u64,
    },
    /// No replicates.
    #[error("is the empty range {first}..{end}")]
    NoReplicates {
        /// The first.
        first: u64,
        /// One past the last.
        end: u64,
    },
    /// NaN, infinite or negative.
    #[error("is not a finite number from 0 on")]
    NotADuration,
    /// A name that no file of a dataset has.
    #[error("is not the name of a file of a dataset")]
    NoDatasetFile,
    /// Not a batch.
    #[error("is not a batch: {0}")]
    NotABatch(DecodeError),
    /// A batch of another cell, or of replicates that were not leased.
    #[error("holds records that are not of the lease")]
    NotLeased,
    /// Something that is not expected at this point of a stream.
    #[error("is out of turn")]
    OutOfTurn,
}

impl Invalid {
    pub(crate) fn new(field: &'static str, fault: Fault) -> Self {
        Self { field, fault }
    }
}

impl From<Invalid> for tonic::Status {
    fn from(invalid: Invalid) -> Self {
        Self::invalid_argument(invalid.to_string())
    }
}

/// A BLAKE3 digest.
pub fn digest(field: &'static str, bytes: &[u8]) -> Result<[u8; 32], Invalid> {
    bytes.try_into().map_err(|_| Invalid::new(field, Fault::NotADigest(bytes.len())))
}

/// A study's id.
pub fn study_id(bytes: &[u8]) -> Result<StudyId, Invalid> {
    digest("study", bytes).map(StudyId)
}

/// A study's id as it is sent.
pub fn study_bytes(study: StudyId) -> Bytes {
    Bytes::copy_from_slice(&study.0)
}

/// The batch of a part, if it is one and all its records are of the lease.
pub fn leased_batch(bytes: &[u8], cell: CellId, replicates: &Range<u64>) -> Result<Batch, Invalid> {
    let invalid = |fault| Invalid::new("batch", fault);
    within("batch", bytes.len(), MAX_BATCH_BYTES)?;
    let batch = Batch::decode(bytes).map_err(|error| invalid(Fault::NotABatch(error)))?;
    // Rows are in order, so that the first and the last speak for all.
    let ends = [batch.replicates().first(), batch.replicates().last()];
    let leased = ends.into_iter().flatten().all(|replicate| replicates.contains(replicate));
    if batch.cell() == cell && leased { Ok(batch) } else { Err(invalid(Fault::NotLeased)) }
}

/// A reason as people may see it: on one line, without control characters, not too long.
pub fn reason(text: &str) -> String {
    let whole = |&(start, c): &(usize, char)| start + c.len_utf8() <= MAX_REASON_BYTES;
    let kept = text.char_indices().take_while(whole);
    kept.map(|(_, c)| if c.is_control() { ' ' } else { c }).collect()
}

/// A name that can be shown: not empty, not too long, without control characters.
pub fn name(field: &'static str, text: String) -> Result<String, Invalid> {
    printable(field, text, MAX_NAME_BYTES)
}

/// A path that can be shown; where it leads is not looked at.
fn path(field: &'static str, text: String) -> Result<String, Invalid> {
    printable(field, text, MAX_PATH_BYTES)
}

/// The bytes of a file's chunk.
pub fn file_chunk(message: v1::FileChunk) -> Result<Bytes, Invalid> {
    chunk("data", message.data)
}

fn printable(field: &'static str, text: String, most: usize) -> Result<String, Invalid> {
    if text.is_empty() {
        return Err(Invalid::new(field, Fault::Missing));
    }
    within(field, text.len(), most)?;
    if text.chars().any(char::is_control) {
        return Err(Invalid::new(field, Fault::NotPrintable));
    }
    Ok(text)
}

fn range(field: &'static str, first: u64, end: u64) -> Result<Range<u64>, Invalid> {
    if first < end {
        Ok(first..end)
    } else {
        Err(Invalid::new(field, Fault::NoReplicates { first, end }))
    }
}

fn number<N: Into<u64> + Copy>(
    field: &'static str,
    value: N,
    least: u64,
    most: u64,
) -> Result<N, Invalid> {
    if (least..=most).contains(&value.into()) {
        Ok(value)
    } else {
        Err(Invalid::new(field, Fault::OutOfRange { value: value.into(), least, most }))
    }
}

fn within(field: &'static str, length: usize, most: usize) -> Result<(), Invalid> {
    if length <= most {
        Ok(())
    } else {
        Err(Invalid::new(field, Fault::TooLong { length: length as u64, most: most as u64 }))
    }
}

fn chunk(field: &'static str, data: Bytes) -> Result<Bytes, Invalid> {
    within(field, data.len(), MAX_CHUNK_BYTES)?;
    Ok(data)
}

#[cfg(test)]
mod tests;
