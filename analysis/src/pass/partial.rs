//! What some consecutive records of a cell say; parts add up in their order.

use study::tally::{Contexts, RowCounts};
use theory::Measurement;
use theory::claims::Outcome;

use super::questions::{AtCheckpoint, Questions, Watch};

/// What is kept of each trial at each checkpoint of the grid.
pub(super) const SERIES: usize = 7;

/// What the records of some trials amount to.
pub(super) struct Partial {
    /// Counts of the rows, by batch of trials, ascending.
    pub(super) batches: Vec<(u64, Vec<RowCounts>)>,
    /// Counts of the rows about steps of proofs, among trials where x* was not observed before tau.
    pub(super) unseen: Vec<RowCounts>,
    /// Of each claim about a mean.
    pub(super) means: Vec<Moments>,
    /// By checkpoint.
    pub(super) at: Vec<Sample>,
}

/// Count, sum and sum of squares of deviations from the expected value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) count: u64,
    pub(super) sum: f64,
    pub(super) squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    pub(super) fn plus(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }
}

/// Values of trials at one checkpoint, in their order; NaN where there is none.
#[derive(Default)]
pub(super) struct Sample {
    pub(super) series: [Vec<f64>; SERIES],
    /// By bound: regret/bound, (max f - min f)/bound and the bound itself, with rho's lower end.
    pub(super) bounds: Vec<Ratios>,
    pub(super) failures: u64,
}

/// A regret and its bound, trial by trial.
#[derive(Default)]
pub(super) struct Ratios {
    pub(super) regret: Vec<f64>,
    /// Trials with a bound, of which all count here and only some are kept.
    pub(super) trials: u64,
    /// Among them, those in which even the worst point would satisfy the bound.
    pub(super) worst: u64,
    /// The bound itself, where it is not the same for all trials.
    pub(super) bound: Vec<f64>,
}

impl Partial {
    pub(super) fn new(questions: &Questions) -> Self {
        let sample = |checkpoint: &AtCheckpoint| Sample {
            bounds: (0..checkpoint.bounds).map(|_| Ratios::default()).collect(),
            ..Sample::default()
        };
        Self {
            batches: vec![],
            unseen: vec![RowCounts::default(); questions.rows.len()],
            means: vec![Moments::default(); questions.means.len()],
            at: questions.at.iter().map(sample).collect(),
        }
    }

    /// Makes a batch the last one.
    fn enter(&mut self, batch: u64, rows: usize) {
        if self.batches.last().is_none_or(|last| last.0 != batch) {
            self.batches.push((batch, vec![RowCounts::default(); rows]));
        }
    }

    /// Adds a trial that failed before this checkpoint.
    pub(super) fn fail(&mut self, questions: &Questions, slot: usize, batch: u64) {
        let checkpoint = &questions.at[slot];
        if !checkpoint.on_grid {
            return;
        }
        self.enter(batch, questions.rows.len());
        let counts = &mut self.batches.last_mut().expect("the batch was entered").1;
        for watch in &checkpoint.watches {
            counts[watch.row].failures += 1;
        }
        for watch in checkpoint.watches.iter().filter(|watch| watch.is_step) {
            self.unseen[watch.row].failures += 1;
        }
        let sample = &mut self.at[slot];
        sample.failures += 1;
        sample.series.iter_mut().for_each(|values| values.push(f64::NAN));
        for ratios in &mut sample.bounds {
            ratios.regret.push(f64::NAN);
            ratios.bound.push(f64::NAN);
        }
    }

    /// Adds a measurement. `Err` names an invariant that does not hold.
    pub(super) fn observe(
        &mut self,
        questions: &Questions,
        slot: usize,
        batch: u64,
        m: &Measurement,
    ) -> Result<(), &'static str> {
        let checkpoint = &questions.at[slot];
        for (claim, context) in &checkpoint.invariants {
            if claim.evaluate(context, m) == Outcome::Violated {
                return Err(claim.id);
            }
        }
        if !checkpoint.on_grid {
            return Ok(());
        }
        self.enter(batch, questions.rows.len());
        let Self { batches, unseen, at, .. } = self;
        let counts = batches.last_mut().expect("the batch was entered").1.as_mut_slice();
        let bounds = &mut at[slot].bounds;
        for watch in &checkpoint.watches {
            let outcomes = judge(watch, m, bounds);
            count(outcomes, &mut counts[watch.row]);
            if watch.is_step && !m.at_tau.star_seen {
                count(outcomes, &mut unseen[watch.row]);
            }
        }
        for mean in &checkpoint.means {
            if let Some(value) = (mean.statistic)(&mean.context, m) {
                self.means[mean.row].add(value - mean.expected);
            }
        }
        let sample = &mut self.at[slot].series;
        sample.iter_mut().zip(series(m)).for_each(|(values, value)| values.push(value));
        Ok(())
    }
}

/// In the order of [`super::Series`].
fn series(m: &Measurement) -> [f64; SERIES] {
    let probe = |of: fn(theory::measurement::Deviation) -> f64| m.probe.map_or(f64::NAN, of);
    [
        m.best_sample_regret,
        m.simple_regret,
        m.cumulative_regret,
        probe(|at| at.error),
        probe(|at| at.ratio),
        m.information.unwrap_or(f64::NAN),
        m.at_tau.variance_tau,
    ]
}

/// With rho's upper end, and with its lower end.
type Outcomes = (Outcome, Outcome);

/// What a trial says about a row; a regret bound is evaluated once at either end of rho, and kept.
fn judge(watch: &Watch, m: &Measurement, bounds: &mut [Ratios]) -> Outcomes {
    let Contexts { refuting, confirming } = &watch.contexts;
    let Some((place, regret)) = watch.bound else {
        let upper = watch.claim.evaluate(refuting, m);
        return (
            upper,
            confirming.as_ref().map_or(upper, |context| watch.claim.evaluate(context, m)),
        );
    };
    let upper = (regret.bound)(refuting, m);
    let lower = confirming.as_ref().map_or(upper, |context| (regret.bound)(context, m));
    let bound = lower.unwrap_or(f64::NAN);
    let ratios = &mut bounds[place];
    ratios.regret.push(if bound > 0.0 { regret.regret(m) / bound } else { f64::INFINITY });
    ratios.trials += u64::from(!bound.is_nan());
    ratios.worst += u64::from(m.f_range <= bound);
    ratios.bound.push(bound);
    (regret.within(m, upper), regret.within(m, lower))
}

fn count((refuting, confirming): Outcomes, counts: &mut RowCounts) {
    if refuting == Outcome::NotApplicable || confirming == Outcome::NotApplicable {
        return;
    }
    counts.trials += 1;
    counts.refuting += u64::from(refuting == Outcome::Violated);
    counts.confirming += u64::from(confirming == Outcome::Violated);
}
