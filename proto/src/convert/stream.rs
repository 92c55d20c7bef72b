//! The record stream, both ways.

use bytes::Bytes;

use super::{Fault, Invalid, digest, reason, within};
use crate::limits::{MAX_BATCH_BYTES, MAX_TALLY_BYTES};
use crate::v1;
use crate::v1::record_reply::Message as ReplyMessage;
use crate::v1::record_stream::Message as StreamMessage;

/// What a worker hands in.
#[derive(Clone, Debug, PartialEq)]
pub enum Handed {
    /// The beginning of a stream.
    Open {
        /// Who sends.
        worker_id: u64,
    },
    /// Some records.
    Part(Part),
    /// All records of a lease have been sent.
    Finish(Finish),
    /// A lease will not be finished.
    Abandon {
        /// Its epoch.
        lease: u64,
        /// Why.
        reason: String,
    },
}

/// Some records of a lease. What is in the batch is checked by [`super::leased_batch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The lease's epoch.
    pub lease: u64,
    /// From 0, without gaps.
    pub sequence: u64,
    /// An encoded batch, within the limits.
    pub batch: Bytes,
}

/// The end of a lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Finish {
    /// The lease's epoch.
    pub lease: u64,
    /// The digest over all its records.
    pub digest: [u8; 32],
    /// The digest over the records sent, where these are not all.
    pub sent_digest: Option<[u8; 32]>,
    /// An encoded tally, within the limits.
    pub tally: Bytes,
    /// Records sent.
    pub records: u64,
    /// Trials computed.
    pub trials: u64,
    /// Time spent computing; finite, from 0 on.
    pub seconds: f64,
}

/// What became of what was handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A part was taken.
    Accepted {
        /// The lease's epoch.
        lease: u64,
        /// The part.
        sequence: u64,
    },
    /// A lease is durable.
    Committed {
        /// Its epoch.
        lease: u64,
    },
    /// A lease counts for nothing.
    Rejected {
        /// Its epoch.
        lease: u64,
        /// Why.
        reason: String,
    },
}

impl TryFrom<v1::RecordStream> for Handed {
    type Error = Invalid;

    fn try_from(message: v1::RecordStream) -> Result<Self, Invalid> {
        let message = message.message.ok_or(Invalid::new("message", Fault::Missing))?;
        Ok(match message {
            StreamMessage::Open(v1::Open { worker_id }) => Self::Open { worker_id },
            StreamMessage::Part(part) => Self::Part(part.try_into()?),
            StreamMessage::Finish(finish) => Self::Finish(finish.try_into()?),
            StreamMessage::Abandon(v1::Abandon { lease, reason: why }) => {
                Self::Abandon { lease, reason: reason(&why) }
            }
        })
    }
}

impl From<Handed> for v1::RecordStream {
    fn from(handed: Handed) -> Self {
        let message = match handed {
            Handed::Open { worker_id } => StreamMessage::Open(v1::Open { worker_id }),
            Handed::Part(Part { lease, sequence, batch }) => {
                StreamMessage::Part(v1::Part { lease, sequence, batch })
            }
            Handed::Finish(finish) => StreamMessage::Finish(v1::Finish {
                lease: finish.lease,
                digest: finish.digest.to_vec().into(),
                tally: finish.tally,
                records: finish.records,
                trials: finish.trials,
                seconds: finish.seconds,
                sent_digest: finish
                    .sent_digest
                    .map_or_else(Bytes::new, |sent| sent.to_vec().into()),
            }),
            Handed::Abandon { lease, reason: why } => {
                StreamMessage::Abandon(v1::Abandon { lease, reason: reason(&why) })
            }
        };
        Self { message: Some(message) }
    }
}

impl TryFrom<v1::Part> for Part {
    type Error = Invalid;

    fn try_from(v1::Part { lease, sequence, batch }: v1::Part) -> Result<Self, Invalid> {
        if batch.is_empty() {
            return Err(Invalid::new("batch", Fault::Missing));
        }
        within("batch", batch.len(), MAX_BATCH_BYTES)?;
        Ok(Self { lease, sequence, batch })
    }
}

impl TryFrom<v1::Finish> for Finish {
    type Error = Invalid;

    fn try_from(message: v1::Finish) -> Result<Self, Invalid> {
        let v1::Finish { lease, tally, records, trials, seconds, .. } = message;
        within("tally", tally.len(), MAX_TALLY_BYTES)?;
        if !(0.0..f64::INFINITY).contains(&seconds) {
            return Err(Invalid::new("seconds", Fault::NotADuration));
        }
        let sent = Some(&message.sent_digest).filter(|sent| !sent.is_empty());
        let sent_digest = sent.map(|sent| digest("sent_digest", sent)).transpose()?;
        let digest = digest("digest", &message.digest)?;
        Ok(Self { lease, digest, sent_digest, tally, records, trials, seconds })
    }
}

impl TryFrom<v1::RecordReply> for Reply {
    type Error = Invalid;

    fn try_from(message: v1::RecordReply) -> Result<Self, Invalid> {
        let message = message.message.ok_or(Invalid::new("message", Fault::Missing))?;
        Ok(match message {
            ReplyMessage::Accepted(v1::Accepted { lease, sequence }) => {
                Self::Accepted { lease, sequence }
            }
            ReplyMessage::Committed(v1::Committed { lease }) => Self::Committed { lease },
            ReplyMessage::Rejected(v1::Rejected { lease, reason: why }) => {
                Self::Rejected { lease, reason: reason(&why) }
            }
        })
    }
}

impl From<Reply> for v1::RecordReply {
    fn from(reply: Reply) -> Self {
        let message = match reply {
            Reply::Accepted { lease, sequence } => {
                ReplyMessage::Accepted(v1::Accepted { lease, sequence })
            }
            Reply::Committed { lease } => ReplyMessage::Committed(v1::Committed { lease }),
            Reply::Rejected { lease, reason: why } => {
                ReplyMessage::Rejected(v1::Rejected { lease, reason: reason(&why) })
            }
        };
        Self { message: Some(message) }
    }
}
