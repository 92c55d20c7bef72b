//! What some consecutive records of a cell say; parts add up in their order.

use study::tally::{Contexts, RowCounts};
use theory::claims::{LANES, Outcome, Quantity, RegretBound, Trials};

use super::Span;
use super::questions::{AtCheckpoint, Invariant, Questions, Watch};
use super::spare::Spare;

/// What is kept of each trial at each checkpoint of the grid, in the order of [`super::Series`].
pub(super) const SERIES: [Quantity; 11] = [
    Quantity::BestSampleRegret,
    Quantity::SimpleRegret,
    Quantity::CumulativeRegret,
    Quantity::ErrorProbe,
    Quantity::RatioProbe,
    Quantity::Information,
    Quantity::KTau,
    Quantity::FMax,
    Quantity::SignedProbe,
    Quantity::ExpectedSignedProbe,
    Quantity::ExpectedRatioProbe,
];

/// What the records of some trials amount to.
pub(super) struct Partial {
    /// Counts of the rows, in the order of the trials.
    pub(super) spans: Vec<(Span, Vec<RowCounts>)>,
    /// Counts of the rows about steps of proofs, among trials where x* was not observed before tau.
    pub(super) unseen: Vec<RowCounts>,
    /// Of each claim about a mean, by period.
    pub(super) means: Vec<(usize, Vec<Moments>)>,
    /// By checkpoint.
    pub(super) at: Vec<AtSlot>,
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
pub(super) struct AtSlot {
    pub(super) series: [Vec<f64>; SERIES.len()],
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

impl AtSlot {
    /// Its vectors, to be used again.
    pub(super) fn into_vectors(self) -> impl Iterator<Item = Vec<f64>> {
        self.series.into_iter().chain(self.bounds.into_iter().flat_map(Ratios::into_vectors))
    }
}

impl Partial {
    /// Nothing yet, in vectors that are not needed elsewhere.
    pub(super) fn new(questions: &Questions, spare: &Spare) -> Self {
        let ratios = |_: &RegretBound| Ratios {
            regret: spare.take(),
            bound: spare.take(),
            ..Ratios::default()
        };
        let sample = |checkpoint: &AtCheckpoint| AtSlot {
            series: std::array::from_fn(|_| spare.take()),
            bounds: checkpoint.bounds.iter().map(ratios).collect(),
            failures: 0,
        };
        Self {
            spans: vec![],
            unseen: vec![RowCounts::default(); questions.rows.len()],
            means: vec![],
            at: questions.at.iter().map(sample).collect(),
        }
    }

    /// Makes a span the last one.
    fn enter(&mut self, span: Span, questions: &Questions) {
        if self.spans.last().is_none_or(|last| last.0 != span) {
            self.spans.push((span, vec![RowCounts::default(); questions.rows.len()]));
        }
        if self.means.last().is_none_or(|last| last.0 != span.period) {
            self.means.push((span.period, vec![Moments::default(); questions.means.len()]));
        }
    }

    /// Adds consecutive trials of a span at one checkpoint: those that were measured, and which of all
    /// failed. `Err` names the first that violates an invariant, and the invariant.
    pub(super) fn observe(
        &mut self,
        questions: &Questions,
        slot: usize,
        span: Span,
        trials: &Trials,
        failed: &[usize],
    ) -> Result<(), (usize, &'static str)> {
        let checkpoint = &questions.at[slot];
        check_invariants(checkpoint, trials)?;
        if !checkpoint.is_asked() {
            return Ok(());
        }
        self.enter(span, questions);
        let Self { spans, unseen, at, means } = self;
        let counts = spans.last_mut().expect("the span was entered").1.as_mut_slice();
        let means = means.last_mut().expect("the period was entered").1.as_mut_slice();
        let all = [true; LANES];
        let mut is_unseen = [false; LANES];
        let seen = trials.column(Quantity::StarSeenTau);
        is_unseen.iter_mut().zip(seen).for_each(|(unseen, &seen)| *unseen = seen == 0.0);
        let mut outcomes = [[Outcome::NotApplicable; LANES]; 2];
        for watch in &checkpoint.watches {
            judge(watch, trials, failed, &mut at[slot].bounds, &mut outcomes);
            count(&outcomes, &all[..trials.count()], &mut counts[watch.row]);
            counts[watch.row].failures += failed.len() as u64;
            if watch.is_step {
                count(&outcomes, &is_unseen[..trials.count()], &mut unseen[watch.row]);
                unseen[watch.row].failures += failed.len() as u64;
            }
        }
        let mut values = [0.0; LANES];
        for mean in &checkpoint.means {
            (mean.statistic.many)(&mean.context, trials, &mut values);
            let mut moments = means[mean.row];
            let measured = values[..trials.count()].iter().filter(|value| !value.is_nan());
            measured.for_each(|value| moments.add(value - mean.expected));
            means[mean.row] = moments;
        }
        let sample = &mut at[slot];
        sample.failures += failed.len() as u64;
        for (values, quantity) in sample.series.iter_mut().zip(SERIES) {
            if questions.kept.series.has(quantity) {
                append(values, trials.column(quantity), failed);
            }
        }
        Ok(())
    }
}

fn check_invariants(
    checkpoint: &AtCheckpoint,
    trials: &Trials,
) -> Result<(), (usize, &'static str)> {
    let mut first: Option<(usize, &'static str)> = None;
    let mut outcomes = [Outcome::NotApplicable; LANES];
    for Invariant { claim, holds, context } in &checkpoint.invariants {
        (holds.many)(context, trials, &mut outcomes);
        let outcomes = &outcomes[..trials.count()];
        let lane = outcomes.iter().position(|&outcome| outcome == Outcome::Violated);
        if let Some(lane) = lane
            && first.is_none_or(|(known, _)| lane < known)
        {
            first = Some((lane, claim.id));
        }
    }
    first.map_or(Ok(()), Err)
}

/// Appends the values of those that were measured, and NaN for those that failed.
fn append(all: &mut Vec<f64>, values: &[f64], failed: &[usize]) {
    let mut rest = values.iter();
    let start = all.len();
    for &place in failed {
        let before = start + place - all.len();
        all.extend(rest.by_ref().take(before));
        all.push(f64::NAN);
    }
    all.extend_from_slice(rest.as_slice());
}

/// What trials say about a row, with rho's upper end, and with its lower end. A regret bound is evaluated
/// once at either end of rho, and kept.
fn judge(
    watch: &Watch,
    trials: &Trials,
    failed: &[usize],
    bounds: &mut [Ratios],
    [refuted, confirmed]: &mut [[Outcome; LANES]; 2],
) {
    let Contexts { refuting, confirming } = &watch.contexts;
    let Some((place, regret)) = watch.bound else {
        (watch.holds.many)(refuting, trials, refuted);
        match confirming {
            Some(confirming) => (watch.holds.many)(confirming, trials, confirmed),
            None => *confirmed = *refuted,
        }
        return;
    };
    let mut bound = [f64::NAN; LANES];
    (regret.bound.many)(refuting, trials, &mut bound);
    regret.within(trials, &bound, refuted);
    match confirming {
        Some(confirming) => {
            (regret.bound.many)(confirming, trials, &mut bound);
            regret.within(trials, &bound, confirmed);
        }
        None => *confirmed = *refuted,
    }
    bounds[place].extend(regret.regret(), &bound, trials, failed);
}

impl Ratios {
    /// Its vectors, to be used again.
    pub(super) fn into_vectors(self) -> impl Iterator<Item = Vec<f64>> {
        [self.regret, self.bound].into_iter()
    }

    fn extend(
        &mut self,
        regret: Quantity,
        bounds: &[f64; LANES],
        trials: &Trials,
        failed: &[usize],
    ) {
        let bounds = &bounds[..trials.count()];
        let mut used = [0.0; LANES];
        let regrets = trials.column(regret).iter().zip(bounds);
        for (used, (&regret, &bound)) in used.iter_mut().zip(regrets) {
            *used = if bound > 0.0 { regret / bound } else { f64::INFINITY };
        }
        append(&mut self.regret, &used[..trials.count()], failed);
        append(&mut self.bound, bounds, failed);
        let worst = trials.column(Quantity::FRange).iter().zip(bounds);
        self.worst += worst.map(|(range, bound)| u64::from(range <= bound)).sum::<u64>();
        self.trials += bounds.iter().map(|bound| u64::from(!bound.is_nan())).sum::<u64>();
    }
}

/// Adds the outcomes of those trials that are among some.
fn count([refuted, confirmed]: &[[Outcome; LANES]; 2], among: &[bool], counts: &mut RowCounts) {
    let (mut answers, mut refuting, mut confirming) = (0_u8, 0_u8, 0_u8);
    const { assert!(LANES <= u8::MAX as usize, "a byte counts the outcomes") };
    for ((&upper, &lower), &among) in refuted.iter().zip(confirmed).zip(among) {
        // Products of 0 and 1 take no branches.
        let answered = |outcome| u8::from(outcome != Outcome::NotApplicable);
        let is = u8::from(among) * answered(upper) * answered(lower);
        answers += is;
        refuting += is * u8::from(upper == Outcome::Violated);
        confirming += is * u8::from(lower == Outcome::Violated);
    }
    counts.trials += u64::from(answers);
    counts.refuting += u64::from(refuting);
    counts.confirming += u64::from(confirming);
}
