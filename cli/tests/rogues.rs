//! Workers that lie, disappear or meddle with what is not theirs: they are refused or found out, and
//! the study ends as it should.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/rogue.rs"]
mod rogue;
#[path = "common/service.rs"]
mod service;

use std::time::Duration;

use common::{Bench, STUDY, stderr};
use proto::v1::record_stream::Message;
use proto::v1::{self, Lease};
use rogue::{Rogue, Verdict, client, registration};
use service::Service;
use study::{Batch, CellId};
use tonic::Code;

fn setup(more: &[&str]) -> (Bench, String, Service) {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let whole = bench.run("study.toml", "whole", &[]);
    let service = Service::start(&bench, &[&["--shard-records", "64"], more].concat());
    service.submit(&bench, "study.toml");
    (bench, whole["digest"].as_str().unwrap().to_owned(), service)
}

#[tokio::test]
async fn a_worker_that_returns_wrong_records_is_found_and_named() {
    let (bench, _, service) = setup(&["--check", "1"]);
    let mut liar = Rogue::join(&service.url, "liar", 1).await;
    let lease = liar.lease(1).await.remove(0);
    let (part, finish) = liar
        .computed(&lease, |record| {
            if let Ok(measured) = &mut record.outcome {
                measured.simple_regret *= 0.5;
            }
        })
        .await;
    let messages = vec![Message::Part(part), Message::Finish(finish)];
    let verdict = liar.hand_in(lease.epoch, messages).await.unwrap();
    assert!(matches!(verdict, Verdict::Committed), "such records look right: {verdict:?}");
    let _honest = service.worker(&bench, "honest", &[]);
    let watched = service.study(&bench, &["watch", "small"]);
    assert_eq!(watched.status.code(), Some(3), "{}", stderr(&watched));
    let said = stderr(&watched);
    for part in ["liar", "honest", "disagree", "regretta doctor"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(service.metric("regretta_alarms_total"), 1);
    let status = service.ask(&bench, &["status", "small"]);
    assert_eq!(status["state"], "failed");
    assert!(liar.try_lease(1).await.is_empty(), "the study is stopped");
    // A restart does not forget it.
    service.process.kill();
    let service = Service::start(&bench, &[]);
    let status = service.ask(&bench, &["status", "small"]);
    assert_eq!(status["state"], "failed", "{status}");
    assert!(status["reason"].as_str().unwrap().contains("liar"), "{status}");
}

/// Something that is not what was leased, and what is said about it.
type Fault = (&'static str, fn(&Lease, v1::Part, v1::Finish) -> Vec<Message>);

fn with_batch(part: &v1::Part, change: impl Fn(&Batch) -> Vec<u8>) -> Message {
    let batch = Batch::decode(&part.batch).unwrap();
    Message::Part(v1::Part { batch: change(&batch).into(), ..*part })
}

fn of_cell(batch: &Batch, cell: CellId) -> Vec<u8> {
    let mut bytes = batch.encode();
    let at = bytes.windows(8).position(|eight| eight == batch.cell().0.to_le_bytes()).unwrap();
    bytes[at..at + 8].copy_from_slice(&cell.0.to_le_bytes());
    bytes
}

const FAULTS: [Fault; 9] = [
    ("came under a lease of another", |_, part, finish| {
        let other = |batch: &Batch| of_cell(batch, CellId(batch.cell().0 ^ 1));
        vec![with_batch(&part, other), Message::Finish(finish)]
    }),
    ("is not due", |_, part, finish| {
        // The second half first: replicates that were leased, out of order.
        let half = |batch: &Batch| batch.slice(batch.len() / 2..batch.len()).encode();
        vec![with_batch(&part, half), Message::Finish(finish)]
    }),
    ("is not due", |_, part, finish| {
        let again = v1::Part { sequence: 1, ..part.clone() };
        vec![Message::Part(part), Message::Part(again), Message::Finish(finish)]
    }),
    ("batch", |_, part, finish| {
        let garbage = v1::Part { batch: vec![0xa5; 5000].into(), ..part };
        vec![Message::Part(garbage), Message::Finish(finish)]
    }),
    ("came where part 0 was due", |_, part, finish| {
        vec![Message::Part(v1::Part { sequence: 3, ..part }), Message::Finish(finish)]
    }),
    ("do not have the digest", |_, part, finish| {
        let wrong = v1::Finish { digest: vec![7; 32].into(), ..finish };
        vec![Message::Part(part), Message::Finish(wrong)]
    }),
    ("records came", |_, _, finish| vec![Message::Finish(finish)]),
    ("trials came", |_, part, finish| {
        let fewer = v1::Finish { trials: finish.trials - 1, ..finish };
        vec![Message::Part(part), Message::Finish(fewer)]
    }),
    ("verdict rows", |_, part, finish| {
        vec![Message::Part(part), Message::Finish(v1::Finish { tally: vec![0].into(), ..finish })]
    }),
];

#[tokio::test]
async fn what_was_not_leased_is_refused_and_the_study_goes_on() {
    let (bench, expected, service) = setup(&["--check", "0"]);
    let mut rogue = Rogue::join(&service.url, "rogue", 1).await;
    for (reason, fault) in FAULTS {
        let lease = rogue.lease(1).await.remove(0);
        let (part, finish) = rogue.computed(&lease, |_| ()).await;
        let verdict = rogue.hand_in(lease.epoch, fault(&lease, part, finish)).await;
        match verdict {
            Ok(Verdict::Rejected(why)) => assert!(why.contains(reason), "{why} for {reason}"),
            other => panic!("{other:?} for {reason}"),
        }
    }
    let lease = rogue.lease(1).await.remove(0);
    let (mut part, finish) = rogue.computed(&lease, |record| record.replicate += 100_000).await;
    part.lease += 1;
    let next = lease.epoch + 1;
    match rogue.hand_in(next, vec![Message::Part(part)]).await.unwrap() {
        Verdict::Rejected(why) => assert!(why.contains("does not hold"), "{why}"),
        Verdict::Committed => panic!("a lease that nobody has"),
    }
    let (part, _) = rogue.computed(&lease, |record| record.replicate += 100_000).await;
    match rogue.hand_in(lease.epoch, vec![Message::Part(part), Message::Finish(finish)]).await {
        Ok(Verdict::Rejected(why)) => assert!(why.contains("is not due"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(service.metric("regretta_trials_total"), 0, "nothing of it counts");
    rogue.drain().await;
    let _honest = service.worker(&bench, "honest", &[]);
    assert_eq!(service.result(&bench, "small", "out"), expected);
}

#[tokio::test]
async fn only_its_holder_can_touch_a_lease() {
    let (bench, expected, service) = setup(&["--check", "0"]);
    let mut holder = Rogue::join(&service.url, "holder", 1).await;
    let lease = holder.lease(1).await.remove(0);
    let (part, finish) = holder.computed(&lease, |_| ()).await;
    let mut thief = Rogue::join(&service.url, "thief", 1).await;
    let stolen = vec![Message::Part(part.clone()), Message::Finish(finish.clone())];
    match thief.hand_in(lease.epoch, stolen).await.unwrap() {
        Verdict::Rejected(why) => assert!(why.contains("does not hold"), "{why}"),
        Verdict::Committed => panic!("a thief handed in what another had leased"),
    }
    let reason = "mine now".to_owned();
    let given_back = Message::Abandon(v1::Abandon { lease: lease.epoch, reason });
    // An unknown lease behind it, because giving back has no answer.
    let behind = Message::Finish(v1::Finish { lease: 0, ..finish.clone() });
    let answer = thief.hand_in(0, vec![given_back, behind]).await.unwrap();
    assert!(matches!(answer, Verdict::Rejected(_)), "{answer:?}");
    let verdict = holder.hand_in(lease.epoch, vec![Message::Part(part), Message::Finish(finish)]);
    let verdict = verdict.await.unwrap();
    assert!(matches!(verdict, Verdict::Committed), "{verdict:?}");
    thief.drain().await;
    holder.drain().await;
    let _honest = service.worker(&bench, "honest", &[]);
    assert_eq!(service.result(&bench, "small", "out"), expected);
}

#[tokio::test]
async fn trials_that_kill_their_workers_are_given_up_and_the_rest_goes_on() {
    let (bench, expected, service) = setup(&["--check", "0", "--lease-seconds", "0.5"]);
    let mut cursed: Option<(u64, u64, u64)> = None;
    for number in 0..5 {
        let mut doomed = Rogue::join(&service.url, &format!("doomed-{number}"), 1).await;
        let lease = doomed.lease(1).await.remove(0);
        // All but the first shard is computed, so that only that one is left.
        let mut held = lease;
        loop {
            let place = (held.cell, held.first, held.end);
            if *cursed.get_or_insert(place) == place {
                break;
            }
            doomed.work(&held).await;
            held = doomed.lease(1).await.remove(0);
        }
    }
    let (_, first, end) = cursed.unwrap();
    // What was not granted before the fifth death is computed by another.
    let _honest = service.worker(&bench, "honest", &[]);
    let watched = service.study(&bench, &["watch", "small"]);
    let said = stderr(&watched);
    assert_eq!(watched.status.code(), Some(3), "{said}");
    for part in ["were given up", "after 5 workers were lost", "run the same command again"] {
        assert!(said.contains(part), "{said}");
    }
    let status = service.ask(&bench, &["status", "small"]);
    assert_eq!(status["quarantined"], 1, "{status}");
    assert_eq!(status["trials_done"], 1500 - (end - first), "{status}");
    // Submitted again they get another chance.
    service.submit(&bench, "study.toml");
    assert_eq!(service.result(&bench, "small", "out"), expected);
}

#[tokio::test]
async fn another_program_is_refused() {
    let (_bench, _, service) = setup(&[]);
    let mut caller = client(&service.url).await;
    let mut refused = async |request: v1::RegisterRequest| {
        caller.register(request).await.expect_err("it computes other numbers")
    };
    let good = registration("other", 1);
    let wrong = v1::RegisterRequest { numerics_digest: "0".repeat(64), ..good.clone() };
    let status = refused(wrong).await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("regretta doctor"), "{status}");
    let status = refused(v1::RegisterRequest { version: "9.9.9".into(), ..good.clone() }).await;
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert!(status.message().contains("use the same version"), "{status}");
    for bad in [
        v1::RegisterRequest { numerics_digest: "no digest".into(), ..good.clone() },
        v1::RegisterRequest { name: String::new(), ..good.clone() },
        v1::RegisterRequest { slots: 0, ..good.clone() },
        v1::RegisterRequest { slots: 1_000_000, ..good.clone() },
    ] {
        assert_eq!(refused(bad).await.code(), Code::InvalidArgument);
    }
    let nobody = v1::LeaseRequest { worker_id: 1, wanted: 1 };
    let mut caller = client(&service.url).await;
    assert_eq!(caller.lease(nobody).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_message_over_the_limit_ends_its_stream_only() {
    let (bench, expected, service) = setup(&["--check", "0"]);
    let mut rogue = Rogue::join(&service.url, "rogue", 1).await;
    let lease = rogue.lease(1).await.remove(0);
    for bytes in [proto::limits::MAX_BATCH_BYTES + 1, proto::limits::MAX_MESSAGE_BYTES + 1] {
        let batch = vec![0; bytes].into();
        let part = Message::Part(v1::Part { lease: lease.epoch, sequence: 0, batch });
        let status = rogue.hand_in(lease.epoch, vec![part]).await.expect_err("it is too long");
        let told = [Code::InvalidArgument, Code::OutOfRange, Code::ResourceExhausted];
        assert!(told.contains(&status.code()), "{status}");
    }
    // The worker and its lease are as they were.
    let (part, finish) = rogue.computed(&lease, |_| ()).await;
    let verdict = rogue.hand_in(lease.epoch, vec![Message::Part(part), Message::Finish(finish)]);
    let verdict = tokio::time::timeout(Duration::from_secs(20), verdict).await.unwrap().unwrap();
    assert!(matches!(verdict, Verdict::Committed), "{verdict:?}");
    rogue.drain().await;
    let long = format!("{STUDY}\n# {}\n", "x".repeat(proto::limits::MAX_TEXT_BYTES));
    bench.write("long.toml", &long);
    let refused = service.study(&bench, &["submit", "long.toml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("at most"), "{}", stderr(&refused));
    let _honest = service.worker(&bench, "honest", &[]);
    assert_eq!(service.result(&bench, "small", "out"), expected);
}
