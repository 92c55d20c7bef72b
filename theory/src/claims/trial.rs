//! What claims read of a trial: of one measurement, or of many by column.
//!
//! A claim is written once, generic over [`Trial`]. For a [`Measurement`] it becomes a predicate; for
//! [`Trials`] a loop over columns, which the compiler turns into vector instructions; for a [`Trace`] the
//! list of the columns that it reads. For the last to be complete, a claim reads all that it needs before
//! it compares anything.

use std::cell::Cell;

use super::{Context, Outcome, outcome};
use crate::Measurement;
use crate::measurement::{Deviation, EstimatedAtTau};

/// Trials that are evaluated at once: enough to forget the call, and few enough for a core's first cache.
pub const LANES: usize = 128;

macro_rules! quantities {
    ($($quantity:ident $name:literal |$m:ident| $value:expr;)*) => {
        /// A number that claims and summaries read of a trial, by its name in datasets; its meaning is
        /// in the codebook.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is the column of its name")]
        pub enum Quantity { $($quantity),* }

        impl Quantity {
            /// All of them, in the order of their numbers.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$quantity),*];

            /// The name of the column.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$quantity => $name),* }
            }
        }

        impl Trial for Measurement {
            #[inline]
            fn value(&self, quantity: Quantity) -> f64 {
                match quantity {
                    $(Quantity::$quantity => {
                        let $m = self;
                        $value
                    })*
                }
            }
        }
    };
}

quantities! {
    FStar "f_star" |m| m.f_star;
    FRange "f_range" |m| m.f_range;
    Target "target" |m| or_nan(m.target);
    BestSampleRegret "best_sample_regret" |m| m.best_sample_regret;
    SimpleRegret "simple_regret" |m| m.simple_regret;
    CumulativeRegret "cumulative_regret" |m| m.cumulative_regret;
    SignedProbe "signed_probe" |m| signed(m.probe);
    ErrorProbe "error_probe" |m| error(m.probe);
    RatioProbe "ratio_probe" |m| ratio(m.probe);
    SignedStar "signed_star" |m| signed(m.star);
    ErrorStar "error_star" |m| error(m.star);
    RatioStar "ratio_star" |m| ratio(m.star);
    SignedNext "signed_next" |m| signed(m.next);
    ErrorNext "error_next" |m| error(m.next);
    RatioNext "ratio_next" |m| ratio(m.next);
    ErrorObserved "error_observed" |m| error(m.observed);
    RatioObserved "ratio_observed" |m| ratio(m.observed);
    KXy "k_xy" |m| m.k_xy;
    Tau "tau" |m| f64::from(m.at_tau.tau);
    MuStarTau "mu_star_tau" |m| m.at_tau.mean_star;
    KStarTau "k_star_tau" |m| m.at_tau.variance_star;
    MuTau "mu_tau" |m| m.at_tau.mean_tau;
    KTau "k_tau" |m| m.at_tau.variance_tau;
    FTau "f_tau" |m| m.at_tau.f_tau;
    ZetaTau "zeta_tau" |m| or_nan(m.at_tau.zeta);
    MuHatStarTau "mu_hat_star_tau" |m| estimated(m, |at| at.mean_star);
    KHatStarTau "k_hat_star_tau" |m| estimated(m, |at| at.variance_star);
    MuHatTau "mu_hat_tau" |m| estimated(m, |at| at.mean_tau);
    KHatTau "k_hat_tau" |m| estimated(m, |at| at.variance_tau);
    SigmaBarStar "sigma_bar_star" |m| or_nan(m.at_tau.compact.map(|noise| noise.star));
    SigmaBarTau "sigma_bar_tau" |m| or_nan(m.at_tau.compact.map(|noise| noise.tau));
    StarSeenTau "star_seen_tau" |m| f64::from(u8::from(m.at_tau.star_seen));
    YMax "y_max" |m| m.y_max;
    FAtYMax "f_at_y_max" |m| m.f_at_y_max;
    FMax "f_max" |m| m.f_max;
    YAtFMax "y_at_f_max" |m| m.y_at_f_max;
    Information "information" |m| or_nan(m.information);
    InformationDeterminant "information_determinant" |m| or_nan(m.information_determinant);
    ExpectedSignedProbe "expected_signed_probe" |m| or_nan(m.expected.map(|e| e.signed));
    ExpectedRatioProbe "expected_ratio_probe" |m| or_nan(m.expected.map(|e| e.ratio));
}

#[inline]
fn or_nan(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

#[inline]
fn signed(at: Option<Deviation>) -> f64 {
    or_nan(at.map(|at| at.signed))
}

#[inline]
fn error(at: Option<Deviation>) -> f64 {
    or_nan(at.map(|at| at.error))
}

#[inline]
fn ratio(at: Option<Deviation>) -> f64 {
    or_nan(at.map(|at| at.ratio))
}

#[inline]
fn estimated(m: &Measurement, part: impl Fn(EstimatedAtTau) -> f64) -> f64 {
    or_nan(m.at_tau.estimated.map(part))
}

/// A trial at a checkpoint, as far as claims read it.
pub trait Trial {
    /// A quantity that the trial has; NaN where it has none.
    fn value(&self, quantity: Quantity) -> f64;

    /// A quantity that the trial may lack.
    #[inline]
    fn get(&self, quantity: Quantity) -> Option<f64> {
        let value = self.value(quantity);
        (!value.is_nan()).then_some(value)
    }
}

/// Some quantities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantities(u64);

const _: () = assert!(Quantity::ALL.len() <= u64::BITS as usize, "quantities are bits of a word");

impl Quantities {
    /// With one more.
    #[must_use]
    pub fn with(self, quantity: Quantity) -> Self {
        Self(self.0 | 1 << quantity as u32)
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one is among them.
    pub fn has(self, quantity: Quantity) -> bool {
        self.0 & 1 << quantity as u32 != 0
    }
}

/// At most [`LANES`] trials at one checkpoint, by column.
#[derive(Clone, Debug)]
pub struct Trials {
    columns: Vec<[f64; LANES]>,
    count: usize,
}

impl Trials {
    /// No trials.
    pub fn new() -> Self {
        Self { columns: vec![[f64::NAN; LANES]; Quantity::ALL.len()], count: 0 }
    }

    /// Makes it a number of trials whose columns are to be filled.
    ///
    /// # Panics
    /// Where there is no room for them.
    pub fn start(&mut self, count: usize) {
        assert!(count <= LANES, "{count} trials are more than {LANES}");
        self.count = count;
    }

    /// Takes out those that failed, which have no regret, and lists their places among all.
    pub fn drop_unmeasured(&mut self, failed: &mut Vec<usize>) {
        failed.clear();
        let regrets = self.column(Quantity::BestSampleRegret).iter().enumerate();
        failed.extend(regrets.filter(|(_, regret)| regret.is_nan()).map(|(lane, _)| lane));
        if failed.is_empty() {
            return;
        }
        let left: Vec<usize> = (0..self.count).filter(|lane| !failed.contains(lane)).collect();
        for column in &mut self.columns {
            left.iter().enumerate().for_each(|(to, &from)| column[to] = column[from]);
        }
        self.count = left.len();
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A quantity of all of them, NaN where a trial has none.
    #[inline]
    pub fn column(&self, quantity: Quantity) -> &[f64] {
        &self.columns[quantity as usize][..self.count]
    }

    /// The same, to be filled.
    #[inline]
    pub fn column_mut(&mut self, quantity: Quantity) -> &mut [f64] {
        &mut self.columns[quantity as usize][..self.count]
    }
}

impl Default for Trials {
    fn default() -> Self {
        Self::new()
    }
}

/// One of some trials.
pub(super) struct Lane<'a> {
    columns: &'a [[f64; LANES]; Quantity::ALL.len()],
    lane: usize,
}

impl Trial for Lane<'_> {
    #[inline(always)]
    fn value(&self, quantity: Quantity) -> f64 {
        self.columns[quantity as usize][self.lane]
    }
}

/// A trial of which it is noted what is read.
#[derive(Default)]
pub(super) struct Trace(Cell<Quantities>);

impl Trial for Trace {
    fn value(&self, quantity: Quantity) -> f64 {
        self.0.set(self.0.get().with(quantity));
        1.0
    }
}

/// A statement about a trial.
#[derive(Clone, Copy, Debug)]
pub struct Predicate {
    /// Whether one trial satisfies it.
    pub one: fn(&Context, &Measurement) -> Outcome,
    /// The same for many; outcomes beyond their number mean nothing.
    pub many: fn(&Context, &Trials, &mut [Outcome; LANES]),
    /// What it reads.
    pub reads: fn(&Context) -> Quantities,
}

/// A number that follows from a trial; where it does not exist it is `None`, or NaN among many.
#[derive(Clone, Copy, Debug)]
pub struct Statistic {
    /// Of one trial.
    pub one: fn(&Context, &Measurement) -> Option<f64>,
    /// Of many; numbers beyond theirs mean nothing.
    pub many: fn(&Context, &Trials, &mut [f64; LANES]),
    /// What it reads.
    pub reads: fn(&Context) -> Quantities,
}

/// A [`Predicate`] from a function that takes the constants out of a context and returns what is asked of
/// every trial, or nothing where a constant does not exist.
macro_rules! predicate {
    ($make:path) => {
        $crate::claims::trial::Predicate {
            one: |context, m| $crate::claims::trial::judge($make(context), m),
            many: |context, trials, outcomes| {
                $crate::claims::trial::judge_all($make(context), trials, outcomes);
            },
            reads: |context| $crate::claims::trial::reads($make(context)),
        }
    };
}

/// A [`Statistic`] in the same way.
macro_rules! statistic {
    ($make:path) => {
        $crate::claims::trial::Statistic {
            one: |context, m| $make(context)?(m),
            many: |context, trials, values| {
                $crate::claims::trial::compute_all($make(context), trials, values);
            },
            reads: |context| $crate::claims::trial::reads($make(context)),
        }
    };
}

pub(super) use {predicate, statistic};

#[inline]
pub(super) fn judge<T: Trial>(of: Option<impl Fn(&T) -> Option<bool>>, trial: &T) -> Outcome {
    outcome(of.and_then(|of| of(trial)))
}

#[inline(always)]
pub(super) fn judge_all<'t>(
    of: Option<impl Fn(&Lane<'t>) -> Option<bool>>,
    trials: &'t Trials,
    outcomes: &mut [Outcome; LANES],
) {
    let Some(of) = of else { return outcomes.fill(Outcome::NotApplicable) };
    each(
        trials,
        outcomes,
        #[inline(always)]
        |lane| outcome(of(lane)),
    );
}

#[inline(always)]
pub(super) fn compute_all<'t>(
    of: Option<impl Fn(&Lane<'t>) -> Option<f64>>,
    trials: &'t Trials,
    values: &mut [f64; LANES],
) {
    let Some(of) = of else { return values.fill(f64::NAN) };
    each(
        trials,
        values,
        #[inline(always)]
        |lane| or_nan(of(lane)),
    );
}

#[inline(always)]
fn each<'t, R>(trials: &'t Trials, results: &mut [R; LANES], of: impl Fn(&Lane<'t>) -> R) {
    let columns = trials.columns.as_slice().try_into().expect("there is a column per quantity");
    for (lane, result) in results.iter_mut().enumerate().take(trials.count) {
        *result = of(&Lane { columns, lane });
    }
}

pub(super) fn reads<R>(of: Option<impl Fn(&Trace) -> R>) -> Quantities {
    let trace = Trace::default();
    of.inspect(|of| _ = of(&trace));
    trace.0.get()
}
