//! Every message that a peer may send: refused with the field at fault, or understood, and then the
//! same after it was sent again.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use proto::convert::{
    Announced, Assembly, Beat, Definition, FileQuery, FileRef, Finish, Handed, Heartbeat, Invalid,
    Lease, Leases, Part, Piece, Progress, Registered, Registration, Reply, Request, ResultPart,
    Revocation, StudyQuery, Submission, file_chunk, leased_batch, pieces, study_id,
};
use proto::v1;
use study::tally::Tally;
use study::{CellId, StudyId};

use crate::harness::{Answer, Inputs, fuzz};
use crate::records::{batches, tallies};

/// Decodes, converts, and where that worked goes back and forth once more.
fn both_ways<M, T>(input: &[u8]) -> Answer
where
    M: Message + Default + Clone,
    T: TryFrom<M, Error = Invalid> + Into<M> + Clone + PartialEq + Debug,
{
    let Ok(message) = M::decode(input) else { return "-".to_owned() };
    match T::try_from(message) {
        Ok(value) => {
            let sent: M = value.clone().into();
            let again = M::decode(sent.encode_to_vec().as_slice()).expect("what was encoded");
            assert_eq!(T::try_from(again), Ok(value));
            "+".to_owned()
        }
        Err(invalid) => invalid.to_string(),
    }
}

/// Messages of which only the bytes matter, or an id.
fn one_way<M: Message + Default>(input: &[u8], check: impl Fn(M) -> Result<(), Invalid>) -> Answer {
    let Ok(message) = M::decode(input) else { return "-".to_owned() };
    check(message).map_or_else(|invalid| invalid.to_string(), |()| "+".to_owned())
}

fn workers(input: &[u8]) -> Vec<Answer> {
    vec![
        both_ways::<v1::RegisterRequest, Registration>(input),
        both_ways::<v1::LeaseRequest, Request>(input),
        both_ways::<v1::HeartbeatRequest, Heartbeat>(input),
        both_ways::<v1::FetchStudyRequest, StudyQuery>(input),
        both_ways::<v1::FetchFileRequest, FileQuery>(input),
        both_ways::<v1::RecordStream, Handed>(input),
        one_way(input, |_: v1::DrainRequest| Ok(())),
    ]
}

fn replies(input: &[u8]) -> Vec<Answer> {
    vec![
        both_ways::<v1::RegisterReply, Registered>(input),
        both_ways::<v1::LeaseReply, Leases>(input),
        both_ways::<v1::Lease, Lease>(input),
        both_ways::<v1::HeartbeatReply, Beat>(input),
        both_ways::<v1::StudyDefinition, Definition>(input),
        both_ways::<v1::FileRef, FileRef>(input),
        both_ways::<v1::RecordReply, Reply>(input),
        both_ways::<v1::ResultChunk, ResultPart>(input),
        one_way(input, |message: v1::FileChunk| file_chunk(message).map(drop)),
        one_way(input, |_: v1::DrainReply| Ok(())),
    ]
}

fn clients(input: &[u8]) -> Vec<Answer> {
    vec![
        one_way(input, |message: v1::SubmitReply| study_id(&message.study).map(drop)),
        one_way(input, |message: v1::StatusRequest| study_id(&message.study).map(drop)),
        one_way(input, |message: v1::WatchRequest| study_id(&message.study).map(drop)),
        one_way(input, |message: v1::CancelRequest| study_id(&message.study).map(drop)),
        one_way(input, |message: v1::DeleteRequest| study_id(&message.study).map(drop)),
        one_way(input, |message: v1::FetchResultsRequest| study_id(&message.study).map(drop)),
        one_way(input, |_: v1::ListReply| Ok(())),
        one_way(input, |_: v1::StudyStatus| Ok(())),
    ]
}

/// The stream of a submission: messages with their lengths before them.
fn submission(mut input: &[u8]) -> Answer {
    let messages =
        std::iter::from_fn(|| v1::SubmitRequest::decode_length_delimited(&mut input).ok());
    match assembled(messages) {
        Ok(submission) => {
            let again = assembled(pieces(submission.clone()));
            assert_eq!(again, Ok(submission), "what was taken is taken again");
            "submitted".to_owned()
        }
        Err(invalid) => invalid.to_string(),
    }
}

/// What the messages make, in memory.
fn assembled(messages: impl Iterator<Item = v1::SubmitRequest>) -> Result<Submission, Invalid> {
    let (mut assembly, mut submission) = (Assembly::default(), Submission::default());
    for message in messages {
        match assembly.push(message)? {
            Piece::Study(Announced { file_name, text, files }) => {
                let files = files.into_iter().map(|(path, _)| (path, Vec::new())).collect();
                submission = Submission { file_name, text, files };
            }
            Piece::Data { file, data } => submission.files[file].1.extend_from_slice(&data),
        }
    }
    assembly.finish().map(|()| submission)
}

/// What the coordinator looks at within a worker's message.
fn within(input: &[u8]) -> Answer {
    let message = v1::RecordStream::decode(input).ok().and_then(|m| Handed::try_from(m).ok());
    match message {
        Some(Handed::Part(part)) => {
            let cell =
                part.batch.get(1..9).map_or(0, |id| u64::from_le_bytes(id.try_into().unwrap()));
            let batch = leased_batch(&part.batch, CellId(cell), &(0..8));
            batch
                .map_or_else(|invalid| invalid.to_string(), |batch| format!("{}", batch.is_empty()))
        }
        Some(Handed::Finish(finish)) => {
            format!("{:?}", Tally::decode(&finish.tally).map(|t| t.0.len()))
        }
        _ => String::new(),
    }
}

fn lease() -> Lease {
    Lease {
        epoch: 1 << 33,
        study: StudyId([7; 32]),
        cell: CellId(0x0123_4567_89ab_cdef),
        replicates: 8..16,
        check: true,
        revision: [9; 32],
    }
}

fn submitted() -> Vec<u8> {
    let file_name = "a.toml".to_owned();
    let files = vec![("x.csv".to_owned(), b"1,2\n".to_vec()), ("y.csv".to_owned(), vec![])];
    pieces(Submission { file_name, text: "[study]".to_owned(), files })
        .flat_map(|piece| piece.encode_length_delimited_to_vec())
        .collect()
}

fn valid() -> Vec<Vec<u8>> {
    fn encode<M: Message>(message: impl Into<M>) -> Vec<u8> {
        message.into().encode_to_vec()
    }
    let digest = [5; 32];
    let study = StudyId([7; 32]);
    let file = FileRef { path: "x.csv".to_owned(), digest, size: 4 };
    let registration = Registration {
        version: "0.1.0".to_owned(),
        numerics: "0a".repeat(32),
        name: "w".to_owned(),
        slots: 2,
        previous: Some(3),
    };
    let registered = Registered {
        worker_id: u64::MAX,
        heartbeat: Duration::from_secs(5),
        lease: Duration::from_secs(30),
        max_message_bytes: 1 << 22,
        max_batch_bytes: 1 << 20,
    };
    let definition = Definition {
        file_name: "a.toml".to_owned(),
        text: "[study]".to_owned(),
        revision: digest,
        files: vec![file.clone()],
    };
    let progress = vec![Progress { lease: 4, done_trials: 3 }];
    let revoked = vec![Revocation { lease: 4, reason: "late".to_owned() }];
    let leases = Leases { leases: vec![lease()], wait: Duration::from_millis(20), draining: true };
    let chunk = ResultPart {
        name: "records/part-00001.parquet".to_owned(),
        data: Bytes::from("PAR1"),
        last: true,
    };
    let mut all = vec![
        encode::<v1::RegisterRequest>(registration),
        encode::<v1::RegisterReply>(registered),
        encode::<v1::LeaseRequest>(Request { worker_id: 9, wanted: 3 }),
        encode::<v1::LeaseReply>(leases),
        encode::<v1::Lease>(lease()),
        encode::<v1::HeartbeatRequest>(Heartbeat { worker_id: 9, leases: progress }),
        encode::<v1::HeartbeatReply>(Beat { revoked, draining: false }),
        encode::<v1::FetchStudyRequest>(StudyQuery { worker_id: 9, study }),
        encode::<v1::FetchFileRequest>(FileQuery { worker_id: 9, digest }),
        encode::<v1::StudyDefinition>(definition),
        encode::<v1::FileRef>(file),
        encode::<v1::ResultChunk>(chunk),
        encode::<v1::RecordStream>(Handed::Open { worker_id: 9 }),
        encode::<v1::RecordStream>(Handed::Abandon { lease: 4, reason: "no".to_owned() }),
        encode::<v1::RecordReply>(Reply::Accepted { lease: 4, sequence: 2 }),
        encode::<v1::RecordReply>(Reply::Committed { lease: 4 }),
        encode::<v1::RecordReply>(Reply::Rejected { lease: 4, reason: "no".to_owned() }),
        submitted(),
    ];
    for batch in batches() {
        let part = Part { lease: 4, sequence: 0, batch: batch.into() };
        all.push(encode::<v1::RecordStream>(Handed::Part(part)));
    }
    for tally in tallies() {
        let tally = tally.into();
        let sent_digest = Some([6; 32]);
        let finish =
            Finish { lease: 4, digest, sent_digest, tally, records: 16, trials: 8, seconds: 0.5 };
        all.push(encode::<v1::RecordStream>(Handed::Finish(finish)));
    }
    all
}

const TOKENS: [&[u8]; 8] = [
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0x0a, 0x20],
    &[0x12, 0x00],
    &[0x1a, 0xff, 0xff, 0xff, 0x7f],
    &[0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
    &[0x41, 0, 0, 0, 0, 0, 0, 0xf0, 0xff],
    b"../../etc/passwd",
    b"\x0b\x0c",
];

#[test]
fn messages() {
    fuzz(Inputs { name: "wire", valid: valid(), tokens: &TOKENS }, |input| {
        let mut answers = workers(input);
        answers.extend(replies(input));
        answers.extend(clients(input));
        answers.push(submission(input));
        answers.push(within(input));
        answers.join(" ")
    });
}
