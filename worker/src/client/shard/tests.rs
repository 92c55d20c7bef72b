use super::*;
use crate::client::fixture::{STUDY, known, lease, library, study};
use study::prior::Files;

/// All that a lease hands in, and its records.
struct Whole {
    batches: Vec<Batch>,
    finish: Finish,
}

fn whole(text: &str, replicates: std::ops::Range<u64>, check: bool, rows: usize) -> Whole {
    let known = known(text, Files::default());
    let lease = Lease { check, ..lease(&known, 5, replicates) };
    let setup = library().setup(&known, &lease).unwrap();
    let mut shard = Shard::new(setup, lease, rows);
    let (mut out, mut batches) = (Vec::new(), Vec::new());
    while shard.step(&mut out) {}
    let Some(Handed::Finish(finish)) = out.pop() else { panic!("a lease ends") };
    for (sequence, handed) in out.into_iter().enumerate() {
        let Handed::Part(part) = handed else { panic!("parts come before the end") };
        assert_eq!((part.lease, part.sequence), (5, sequence as u64));
        batches.push(Batch::decode(&part.batch).unwrap());
    }
    let records: usize = batches.iter().map(Batch::len).sum();
    assert_eq!(finish.records, records as u64);
    Whole { batches, finish }
}

fn tally(finish: &Finish) -> Tally {
    Tally::decode(&finish.tally).unwrap()
}

#[test]
fn the_digest_is_that_of_the_records_whatever_the_parts() {
    let all = whole(STUDY, 0..101, false, 1000);
    assert_eq!((all.finish.trials, all.finish.records), (101, 202));
    let mut digest = Digest::new();
    all.batches.iter().for_each(|batch| batch.feed(&mut digest));
    assert_eq!(digest.finish(), all.finish.digest);
    let small = whole(STUDY, 0..101, false, 7);
    assert_eq!(small.batches.len(), 29);
    assert_eq!((small.finish.digest, &small.finish.tally), (all.finish.digest, &all.finish.tally));
}

#[test]
fn tallies_of_parts_add_up() {
    let mut sum = tally(&whole(STUDY, 0..64, false, 100).finish);
    sum.plus(&tally(&whole(STUDY, 64..150, false, 100).finish));
    assert_eq!(sum, tally(&whole(STUDY, 0..150, false, 100).finish));
    assert!(sum.0.iter().any(|row| row.refuting > 0), "some trial violates some claim");
}

#[test]
fn a_check_sends_no_records_and_says_the_same() {
    let (all, check) = (whole(STUDY, 3..90, false, 100), whole(STUDY, 3..90, true, 100));
    assert!(check.batches.is_empty());
    assert_eq!(check.finish.digest, all.finish.digest);
    assert_eq!(check.finish.tally, all.finish.tally);
}

#[test]
fn a_summary_counts_all_and_sends_violations_and_a_hundredth() {
    // With all claims hardly a trial of 60 functions violates none.
    let claims = |text: &str| format!("{text}[claims]\ntest = [\"lemma1.variance\"]\n");
    let (every, summary) = (claims(STUDY), claims(&study("summary")));
    let (all, some) = (whole(&every, 0..400, false, 50), whole(&summary, 0..400, false, 50));
    assert_eq!(some.finish.digest, all.finish.digest);
    assert_eq!(some.finish.tally, all.finish.tally);
    let known = known(&every, Files::default());
    let cell = &known.plan.cells[0];
    let sent: Vec<u64> = some.batches.iter().flat_map(|b| b.replicates().to_vec()).collect();
    let sampled: Vec<u64> = (0..400).filter(|&r| is_sampled(known.plan.id, cell.id, r)).collect();
    assert!(!sampled.is_empty() && sampled.iter().all(|replicate| sent.contains(replicate)));
    let least = 2 * sampled.len();
    assert!((least + 1..800).contains(&sent.len()), "{} of 800, least {least}", sent.len());
    // Whoever is not sent violates nothing, and every trial that is sent is whole.
    for replicate in 0..400 {
        let finish = whole(&every, replicate..replicate + 1, true, 50).finish;
        let violated = tally(&finish).0.iter().any(|row| row.refuting + row.confirming > 0);
        let rows = sent.iter().filter(|&&other| other == replicate).count();
        let expected = if violated || sampled.contains(&replicate) { 2 } else { 0 };
        assert_eq!(rows, expected, "{replicate}");
    }
}

#[test]
fn what_the_plan_does_not_have_is_refused() {
    let known = known(STUDY, Files::default());
    let refusal = |lease: &Lease| library().setup(&known, lease).unwrap_err();
    let beyond = lease(&known, 1, 399..401);
    assert_eq!(refusal(&beyond), "the study has 400 replicates, not 401");
    let other = Lease { cell: study::CellId(1), ..lease(&known, 1, 0..1) };
    assert_eq!(refusal(&other), "the study has no cell 0000000000000001");
}
