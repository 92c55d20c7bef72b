use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use prost::Message;
use study::{Batch, CellId, Failure, Record, StudyId};

use super::*;

/// The same cases on every run.
fn runner(cases: u32) -> TestRunner {
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]))
}

/// What a conversion makes of bytes that came from anywhere.
fn convert<M: Message + Default, T: TryFrom<M, Error = Invalid>>(bytes: &[u8]) -> bool {
    M::decode(bytes).is_ok_and(|message| T::try_from(message).is_ok())
}

fn decode<M: Message + Default>(bytes: &[u8]) -> bool {
    M::decode(bytes).is_ok()
}

fn assemble(bytes: &[u8]) -> bool {
    let mut assembly = Assembly::default();
    let pieces = bytes.chunks(64).map(v1::SubmitRequest::decode);
    let taken = pieces.flatten().flat_map(|piece| assembly.push(piece)).count();
    assembly.finish().is_ok() || taken > 0
}

/// Every message of the wire, with its conversion where it has one.
const TAKERS: &[fn(&[u8]) -> bool] = &[
    convert::<v1::RegisterRequest, Registration>,
    convert::<v1::RegisterReply, Registered>,
    convert::<v1::LeaseRequest, Request>,
    convert::<v1::LeaseReply, Leases>,
    convert::<v1::Lease, Lease>,
    convert::<v1::HeartbeatRequest, Heartbeat>,
    convert::<v1::HeartbeatReply, Beat>,
    convert::<v1::FetchStudyRequest, StudyQuery>,
    convert::<v1::StudyDefinition, Definition>,
    convert::<v1::FileRef, FileRef>,
    convert::<v1::FetchFileRequest, FileQuery>,
    convert::<v1::RecordStream, Handed>,
    convert::<v1::Part, Part>,
    convert::<v1::Finish, Finish>,
    convert::<v1::RecordReply, Reply>,
    convert::<v1::ResultChunk, ResultPart>,
    |bytes| v1::FileChunk::decode(bytes).is_ok_and(|chunk| file_chunk(chunk).is_ok()),
    |bytes| leased_batch(bytes, CellId(1), &(0..10)).is_ok(),
    |bytes| study_id(bytes).is_ok(),
    assemble,
    decode::<v1::DrainRequest>,
    decode::<v1::DrainReply>,
    decode::<v1::SubmitReply>,
    decode::<v1::ListRequest>,
    decode::<v1::ListReply>,
    decode::<v1::StatusRequest>,
    decode::<v1::WatchRequest>,
    decode::<v1::StudyStatus>,
    decode::<v1::CancelRequest>,
    decode::<v1::CancelReply>,
    decode::<v1::DeleteRequest>,
    decode::<v1::DeleteReply>,
    decode::<v1::FetchResultsRequest>,
];

fn lease() -> Lease {
    Lease {
        epoch: 7,
        study: StudyId([9; 32]),
        cell: CellId(1),
        replicates: 3..11,
        check: true,
        revision: [5; 32],
    }
}

fn submission() -> Submission {
    let content = |length| (0..length).map(|byte| byte as u8).collect();
    Submission {
        file_name: "a.toml".into(),
        text: "[study]\n".into(),
        files: vec![
            ("points.csv".into(), content(MAX_CHUNK_BYTES + 5)),
            ("empty.csv".into(), vec![]),
            ("k.csv".into(), content(3)),
        ],
    }
}

fn finish() -> Finish {
    Finish {
        lease: 7,
        digest: [1; 32],
        sent_digest: Some([2; 32]),
        tally: Bytes::from_static(b"tally"),
        records: 10,
        trials: 5,
        seconds: 0.5,
    }
}

fn batch() -> Batch {
    let mut batch = Batch::new(CellId(1));
    for replicate in 3..6 {
        let outcome = Err(Failure::Panicked);
        batch.push(&Record { cell: CellId(1), replicate, t: 2, outcome });
    }
    batch
}

/// Encodings of valid messages: bytes near them reach deeper than random ones.
fn valid() -> Vec<Vec<u8>> {
    let part = Part { lease: 7, sequence: 0, batch: batch().encode().into() };
    let leases =
        Leases { leases: vec![lease(), lease()], wait: Duration::from_millis(5), draining: true };
    let files = vec![FileRef { path: "k.csv".into(), digest: [2; 32], size: 3 }];
    let definition =
        Definition { file_name: "a.toml".into(), text: "x".into(), revision: [3; 32], files };
    let abandoned = Handed::Abandon { lease: 7, reason: "tired".into() };
    vec![
        v1::LeaseReply::from(leases).encode_to_vec(),
        v1::StudyDefinition::from(definition).encode_to_vec(),
        v1::RecordStream::from(Handed::Part(part)).encode_to_vec(),
        v1::RecordStream::from(Handed::Finish(finish())).encode_to_vec(),
        v1::RecordStream::from(abandoned).encode_to_vec(),
        v1::RecordStream::from(Handed::Open { worker_id: 1 }).encode_to_vec(),
        v1::RegisterRequest::from(registration()).encode_to_vec(),
        batch().encode(),
    ]
}

fn registration() -> Registration {
    Registration {
        version: "0.1.0".into(),
        numerics: "0f".repeat(32),
        name: "node-1".into(),
        slots: 4,
        previous: Some(9),
    }
}

#[test]
fn no_bytes_make_a_message_panic() {
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    let run = runner(3000).run(&bytes, |bytes| {
        TAKERS.iter().for_each(|take| _ = take(&bytes));
        Ok(())
    });
    run.unwrap();
}

#[test]
fn no_damage_to_a_message_makes_it_panic() {
    let valid = valid();
    let damage = (0..valid.len(), proptest::collection::vec((any::<u16>(), any::<u8>()), 0..6));
    let cut = (damage, any::<u16>());
    let run = runner(3000).run(&cut, |((which, damage), cut)| {
        let mut bytes = valid[which].clone();
        for (place, byte) in damage {
            let place = usize::from(place) % bytes.len();
            bytes[place] = byte;
        }
        if cut % 3 == 0 {
            bytes.truncate(usize::from(cut) % bytes.len());
        }
        TAKERS.iter().for_each(|take| _ = take(&bytes));
        Ok(())
    });
    run.unwrap();
}

/// What is sent is what arrives.
fn arrives<M: Message + Default + From<T>, T>(sent: &T)
where
    T: TryFrom<M, Error = Invalid> + Clone + PartialEq + std::fmt::Debug,
{
    let message = M::decode(M::from(sent.clone()).encode_to_vec().as_slice()).unwrap();
    assert_eq!(T::try_from(message).unwrap(), *sent);
}

#[test]
fn what_is_sent_is_what_arrives() {
    arrives::<v1::RegisterRequest, _>(&registration());
    arrives::<v1::RegisterReply, _>(&Registered {
        worker_id: 1,
        heartbeat: Duration::from_secs(5),
        lease: Duration::from_secs(30),
        max_message_bytes: crate::limits::MAX_MESSAGE_BYTES,
        max_batch_bytes: MAX_BATCH_BYTES,
    });
    arrives::<v1::LeaseRequest, _>(&Request { worker_id: 1, wanted: 2 });
    arrives::<v1::Lease, _>(&lease());
    let leases = vec![Progress { lease: 7, done_trials: 5 }];
    arrives::<v1::HeartbeatRequest, _>(&Heartbeat { worker_id: 1, leases });
    let revoked = vec![Revocation { lease: 7, reason: "late".into() }];
    arrives::<v1::HeartbeatReply, _>(&Beat { revoked, draining: false });
    arrives::<v1::FetchStudyRequest, _>(&StudyQuery { worker_id: 1, study: StudyId([4; 32]) });
    arrives::<v1::FetchFileRequest, _>(&FileQuery { worker_id: 1, digest: [4; 32] });
    arrives::<v1::RecordStream, _>(&Handed::Finish(finish()));
    arrives::<v1::RecordReply, _>(&Reply::Accepted { lease: 7, sequence: 1 });
    arrives::<v1::RecordReply, _>(&Reply::Committed { lease: 7 });
    arrives::<v1::RecordReply, _>(&Reply::Rejected { lease: 7, reason: "expired".into() });
    let data = Bytes::from_static(b"PAR1");
    let name = "records/part-00000.parquet".to_owned();
    arrives::<v1::ResultChunk, _>(&ResultPart { name, data, last: true });
}

/// What the pieces make, in memory.
fn assembled(pieces: impl Iterator<Item = v1::SubmitRequest>) -> Result<Submission, Invalid> {
    let (mut assembly, mut submission) = (Assembly::default(), Submission::default());
    for piece in pieces {
        match assembly.push(piece)? {
            Piece::Study(Announced { file_name, text, files }) => {
                let files = files.into_iter().map(|(path, _)| (path, Vec::new())).collect();
                submission = Submission { file_name, text, files };
            }
            Piece::Data { file, data } => submission.files[file].1.extend_from_slice(&data),
        }
    }
    assembly.finish().map(|()| submission)
}

#[test]
fn a_submission_is_put_together_from_its_pieces() {
    let small = |piece: &v1::SubmitRequest| piece.encoded_len() < crate::limits::MAX_MESSAGE_BYTES;
    assert!(pieces(submission()).all(|piece| small(&piece)));
    assert_eq!(assembled(pieces(submission())).unwrap(), submission());
}

#[test]
fn a_submission_with_a_piece_too_few_or_too_many_is_refused() {
    let all: Vec<_> = pieces(submission()).collect();
    let fault =
        |pieces: &[v1::SubmitRequest]| assembled(pieces.iter().cloned()).unwrap_err().to_string();
    assert_eq!(fault(&[]), "study is missing");
    assert_eq!(fault(&all[..all.len() - 1]), "data is missing");
    assert_eq!(fault(&all[1..]), "data is out of turn");
    let again = [&all[..1], &all[..1]].concat();
    assert_eq!(fault(&again), "study is out of turn");
    let more = [&all[..], &all[3..]].concat();
    assert_eq!(fault(&more), "data is out of turn");
}

#[test]
fn faults_name_the_field_and_what_would_be_valid() {
    let fault = |result: Result<Lease, Invalid>| result.unwrap_err().to_string();
    let sent = || v1::Lease::from(lease());
    let short = v1::Lease { study: Bytes::from_static(b"abc"), ..sent() };
    assert_eq!(fault(short.try_into()), "study has 3 bytes and must have 32");
    let empty = v1::Lease { end: 3, ..sent() };
    assert_eq!(fault(empty.try_into()), "first is the empty range 3..3");
    let fault = |changed: v1::RegisterRequest| Registration::try_from(changed).unwrap_err();
    let sent = || v1::RegisterRequest::from(registration());
    let cases = [
        (v1::RegisterRequest { slots: 0, ..sent() }, "slots is 0, and must be from 1 to 1024"),
        (v1::RegisterRequest { name: String::new(), ..sent() }, "name is missing"),
        (
            v1::RegisterRequest { name: "a\x1b[2J".into(), ..sent() },
            "name holds a character that cannot be printed",
        ),
        (
            v1::RegisterRequest { name: "n".repeat(256), ..sent() },
            "name has length 256, and at most 255 is allowed",
        ),
        (
            v1::RegisterRequest { numerics_digest: "0F".repeat(32), ..sent() },
            "numerics_digest is not 64 lower-case hexadecimal digits",
        ),
    ];
    for (changed, said) in cases {
        assert_eq!(fault(changed).to_string(), said);
    }
    let late = v1::Finish { seconds: f64::NAN, digest: vec![0; 32].into(), ..Default::default() };
    let said = Finish::try_from(late).unwrap_err().to_string();
    assert_eq!(said, "seconds is not a finite number from 0 on");
}

#[test]
fn records_that_were_not_leased_are_refused() {
    let bytes = batch().encode();
    let refused = |cell, replicates| leased_batch(&bytes, CellId(cell), &replicates);
    assert_eq!(refused(1, 3..6).unwrap(), batch());
    for result in [refused(2, 3..6), refused(1, 3..5), refused(1, 4..6)] {
        assert_eq!(result.unwrap_err().fault, Fault::NotLeased);
    }
    let error = leased_batch(&bytes[1..], CellId(1), &(3..6)).unwrap_err();
    assert!(error.to_string().starts_with("batch is not a batch: "), "{error}");
}

#[test]
fn a_result_is_a_file_of_a_dataset() {
    for name in
        ["/etc/passwd", "../study.toml", "records/../../b", "C:\\x", ".profile", ".", "", "a"]
    {
        let chunk = v1::ResultChunk { name: name.into(), ..Default::default() };
        assert!(ResultPart::try_from(chunk).is_err(), "{name}");
    }
}

#[test]
fn reasons_are_cleaned_and_cut() {
    assert_eq!(reason("one\ntwo\x1b[2J"), "one two [2J");
    let cut = reason(&"é".repeat(3000));
    assert!(cut.len() <= MAX_REASON_BYTES && cut.chars().all(|c| c == 'é'));
}
