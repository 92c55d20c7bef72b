//! How often a verdict is false when its cell may stop as soon as it has seen enough.
//!
//! Null cells are simulated batch by batch, with a look after each; the rate of false verdicts must
//! be within the level that Ville's inequality promises. [`SIMULATIONS`] runs are counted; if the
//! true rate were the level itself, the count would exceed [`limit`] with probability at most
//! [`FALSE_ALARM`]. The seeds are fixed. Tests of significance that ignore the looks fail in the
//! very same simulations, so these can fail.
//!
//! `cargo test --release -p theory --test false_alarms -- --nocapture` prints the rates.

use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use theory::evidence::{Counts, Mixture, Verdict, decide};
use theory::special::{Split, inc_beta, normal_quantile};

const SIMULATIONS: u64 = 2000;
const FALSE_ALARM: f64 = 1e-6;
/// Level of either side alone.
const LEVEL: f64 = 0.05;
const N_OPT: f64 = 2000.0;

/// The least count that Binomial([`SIMULATIONS`], level) exceeds with probability at most
/// [`FALSE_ALARM`].
fn limit(level: f64) -> u64 {
    let exceeds = |k: u64| inc_beta((k + 1) as f64, (SIMULATIONS - k) as f64, Split::at(level)).0;
    (0..SIMULATIONS).find(|&k| exceeds(k) <= FALSE_ALARM).expect("all of them exceed nothing")
}

fn stream(simulation: u64) -> TestRng {
    let mut seed = [0x5e; 32];
    seed[..8].copy_from_slice(&simulation.to_le_bytes());
    TestRng::from_seed(RngAlgorithm::ChaCha, &seed)
}

/// A uniform number in [0, 1).
fn uniform(random: &mut TestRng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Whether the counts so far refute and whether they confirm.
type Judge<'a> = &'a dyn Fn(Counts) -> (bool, bool);

/// One cell with one row, looked at after every 100 of at most 4000 trials until it is decided.
fn decided(rate: f64, simulation: u64, judge: Judge) -> (bool, bool) {
    let mut random = stream(simulation);
    let mut counts = Counts::default();
    while counts.trials < 4000 {
        let violations = (0..100).filter(|_| uniform(&mut random) < rate).count() as u64;
        counts = counts.plus(Counts { trials: 100, violations, failures: 0 });
        let verdict = judge(counts);
        if verdict.0 || verdict.1 {
            return verdict;
        }
    }
    (false, false)
}

/// How many simulations refute, and how many confirm, at a violation rate.
fn verdicts(rate: f64, judge: Judge) -> (u64, u64) {
    (0..SIMULATIONS).map(|simulation| decided(rate, simulation, judge)).fold(
        (0, 0),
        |(refuted, confirmed), verdict| {
            (refuted + u64::from(verdict.0), confirmed + u64::from(verdict.1))
        },
    )
}

fn print(what: &str, budget: f64, rate: f64, (refuted, confirmed): (u64, u64)) {
    let share = |count: u64| count as f64 / SIMULATIONS as f64;
    println!(
        "{what:10} q = {budget:<5} rate = {rate:<6.4} refuted {:.4} confirmed {:.4}",
        share(refuted),
        share(confirmed)
    );
}

#[test]
fn stopping_does_not_raise_the_rate_of_false_verdicts() {
    for budget in [0.02, 0.1, 0.4] {
        let mixture = Mixture::new(budget, 2.0 * LEVEL, N_OPT);
        let enough = -libm::log(LEVEL);
        let judge = |counts| {
            (mixture.ln_e_refute(counts) >= enough, mixture.ln_e_confirm(counts) >= enough)
        };
        let at = |rate: f64| {
            let found = verdicts(rate, &judge);
            print("mixture", budget, rate, found);
            found
        };
        let boundary = at(budget);
        assert!(boundary.0 <= limit(LEVEL) && boundary.1 <= limit(LEVEL), "{boundary:?}");
        let below = at(0.8 * budget);
        assert!(below.0 <= limit(LEVEL), "{below:?}");
        let above = at(1.2 * budget);
        assert!(above.1 <= limit(LEVEL), "{above:?}");
    }
}

/// The same cells, looked at as often, by Wald's test at the same level.
#[test]
fn repeated_significance_tests_would_be_caught() {
    let z = normal_quantile(1.0 - LEVEL);
    for budget in [0.02, 0.1, 0.4] {
        let judge = |counts: Counts| {
            let (n, rate) = (counts.trials as f64, 1.0 - counts.coverage().expect("trials"));
            let half = z * (rate * (1.0 - rate) / n).sqrt();
            (rate - half > budget, rate + half < budget)
        };
        let boundary = verdicts(budget, &judge);
        print("Wald", budget, budget, boundary);
        assert!(boundary.0 > limit(LEVEL) && boundary.1 > limit(LEVEL), "{boundary:?}");
    }
}

/// A row of a cell: its budget and its true violation rate.
#[derive(Clone, Copy)]
struct Row {
    budget: f64,
    rate: f64,
}

impl Row {
    fn refuting_is_false(self) -> bool {
        self.rate <= self.budget
    }

    fn confirming_is_false(self) -> bool {
        self.rate >= self.budget
    }
}

/// The level of the whole family.
const ALPHA: f64 = 0.1;
/// Rows of the family.
const ROWS: f64 = 12.0;

/// Four cells of three rows: two at the boundary, one whose claims are false, one whose are true.
fn family() -> Vec<[Row; 3]> {
    let cell = |factor: f64| [0.05, 0.1, 0.3].map(|q| Row { budget: q, rate: factor * q });
    vec![cell(1.0), cell(1.0), cell(1.5), cell(0.6)]
}

/// The largest log E of each row of a cell, over batches of 100 until every row has had `enough` or
/// 2000 trials ran. One uniform number decides all rows of a trial: they depend on each other.
fn largest(cell: &[Row; 3], mixtures: &[Mixture; 3], random: &mut TestRng) -> [(f64, f64); 3] {
    let enough = libm::log(2.0 * ROWS / ALPHA);
    let mut counts = [Counts::default(); 3];
    let mut best = [(f64::NEG_INFINITY, f64::NEG_INFINITY); 3];
    let larger = |a: f64, b: f64| if a > b { a } else { b };
    while counts[0].trials < 2000 {
        for _ in 0..100 {
            let u = uniform(random);
            for (counts, row) in counts.iter_mut().zip(cell) {
                counts.trials += 1;
                counts.violations += u64::from(u < row.rate);
            }
        }
        for ((best, mixture), &counts) in best.iter_mut().zip(mixtures).zip(&counts) {
            best.0 = larger(best.0, mixture.ln_e_refute(counts));
            best.1 = larger(best.1, mixture.ln_e_confirm(counts));
        }
        if best.iter().all(|row| larger(row.0, row.1) >= enough) {
            break;
        }
    }
    best
}

/// What the verdicts of one simulated family got wrong, and how many they got right.
#[derive(Default)]
struct Outcome {
    false_refutation: bool,
    false_confirmation: bool,
    right: u64,
}

fn judge_family(simulation: u64) -> Outcome {
    let family = family();
    let mut random = stream(simulation);
    let mixtures = family[0].map(|row| Mixture::new(row.budget, ALPHA, N_OPT));
    let best = family.iter().flat_map(|cell| largest(cell, &mixtures, &mut random));
    let rows: Vec<Option<(f64, f64)>> = best.map(Some).collect();
    let mut outcome = Outcome::default();
    for (verdict, row) in decide(&rows, 0, ALPHA).into_iter().zip(family.iter().flatten()) {
        let refuted = matches!(verdict, Verdict::Refuted | Verdict::Inconsistent);
        let confirmed = matches!(verdict, Verdict::Confirmed | Verdict::Inconsistent);
        outcome.false_refutation |= refuted && row.refuting_is_false();
        outcome.false_confirmation |= confirmed && row.confirming_is_false();
        outcome.right += u64::from(refuted && !row.refuting_is_false());
        outcome.right += u64::from(confirmed && !row.confirming_is_false());
    }
    outcome
}

/// Any false verdict among the rows of a family, decided by Holm on the maxima over batches.
#[test]
fn a_family_keeps_its_level_on_either_side() {
    let outcomes: Vec<Outcome> = (0..SIMULATIONS).map(judge_family).collect();
    let count = |test: fn(&Outcome) -> bool| outcomes.iter().filter(|o| test(o)).count() as u64;
    let refuted = count(|o| o.false_refutation);
    let confirmed = count(|o| o.false_confirmation);
    let either = count(|o| o.false_refutation || o.false_confirmation);
    let right: u64 = outcomes.iter().map(|o| o.right).sum();
    let share = |count: u64| count as f64 / SIMULATIONS as f64;
    println!(
        "family of 12: any false refutation {:.4}, confirmation {:.4}, either {:.4}; right {:.2} of 6",
        share(refuted),
        share(confirmed),
        share(either),
        share(right)
    );
    assert!(refuted <= limit(0.5 * ALPHA) && confirmed <= limit(0.5 * ALPHA));
    assert!(either <= limit(ALPHA));
    // The step-down had something to step over.
    assert!(share(right) > 1.0, "{right}");
}
