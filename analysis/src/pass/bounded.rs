//! Regrets beside their bounds, and how much of a bound is used.

use theory::evidence::{Counts, Mixture};

use super::gathered::KEPT;
use super::partial::Ratios;
use crate::manifest::Family;

/// How much of a regret bound is used, with rho's lower end where it depends on rho.
#[derive(Clone, Debug, PartialEq)]
pub struct Slack {
    /// The bound; its mean where it differs between trials.
    pub bound: f64,
    /// Bound over regret, at the (1 - budget)-quantile of regret/bound.
    pub tightness: Option<f64>,
    /// The smallest factor by which the bound could shrink and still be confirmed.
    pub shrink: Option<f64>,
    /// Share of trials in which even the worst point of the domain satisfies the bound.
    pub worst_case: Option<f64>,
    /// Share of the trials of random search, on the same functions, that satisfy the bound.
    pub random: Option<f64>,
}

/// A regret and its bound over the trials so far; over the first [`KEPT`] where nothing else is said.
#[derive(Default)]
pub(super) struct Bounded {
    /// Regret/bound.
    pub(super) used: Vec<f64>,
    /// Of all trials with a bound.
    trials: u64,
    /// Among all, those in which even the worst point would satisfy it.
    worst: u64,
    /// Trials with a bound, and the sum of their bounds.
    sum: (u64, f64),
    /// Trials in which random search satisfies the bound, and of how many.
    random: (u64, u64),
}

impl Bounded {
    /// No trials yet, in a vector that is not needed elsewhere.
    pub(super) fn new(used: Vec<f64>) -> Self {
        Self { used, ..Self::default() }
    }

    /// Adds the next trials, and what random search reached in all, if it did.
    pub(super) fn extend(&mut self, more: &Ratios, reached: Option<&[f64]>) {
        let from = self.used.len();
        let kept = (KEPT - from).min(more.regret.len());
        self.used.extend_from_slice(&more.regret[..kept]);
        self.trials += more.trials;
        self.worst += more.worst;
        let bounds = &more.bound[..kept];
        let (mut count, mut sum) = self.sum;
        for bound in bounds.iter().filter(|bound| !bound.is_nan()) {
            (count, sum) = (count + 1, sum + bound);
        }
        self.sum = (count, sum);
        let reached = reached.and_then(|reached| reached.get(from..)).unwrap_or_default();
        for (reached, bound) in reached.iter().zip(bounds) {
            self.random.0 += u64::from(reached <= bound);
            self.random.1 += u64::from(!reached.is_nan() && !bound.is_nan());
        }
    }

    /// What the trials of a whole cell amount to.
    pub(super) fn slack(&mut self, family: Family, budget: f64) -> Slack {
        let Self { used, trials: of, worst, sum: (count, sum), random } = self;
        used.retain(|ratio| !ratio.is_nan());
        let trials = used.len() as u64;
        let above = (budget * trials as f64) as usize;
        let tightness = nth_largest(used, above);
        let tightness = tightness.filter(|&ratio| ratio > 0.0).map(|ratio| 1.0 / ratio);
        let shrink = most_violations(family, budget, trials).and_then(|most| {
            // The largest are in front by now, and fewer violations than the budget's confirm.
            let most = most as usize;
            let part = if most < above { above.min(used.len()) } else { used.len() };
            nth_largest(&mut used[..part], most)
        });
        let share = |(within, of): (u64, u64)| (of > 0).then(|| within as f64 / of as f64);
        Slack {
            bound: if *count > 0 { *sum / *count as f64 } else { f64::NAN },
            tightness,
            shrink,
            worst_case: share((*worst, *of)),
            random: share(*random),
        }
    }
}

/// The value that exactly `above` others exceed or equal.
fn nth_largest(values: &mut [f64], above: usize) -> Option<f64> {
    if above >= values.len() {
        return None;
    }
    let (_, value, _) = values.select_nth_unstable_by(above, |a, b| b.total_cmp(a));
    Some(*value)
}

/// The most violations with which so many trials still confirm.
fn most_violations(family: Family, budget: f64, trials: u64) -> Option<u64> {
    let mixture = Mixture::new(budget, family.alpha, family.n_opt);
    let threshold = libm::log(family.evidence);
    let confirmed = |violations| {
        let counts = Counts { trials, violations, failures: 0 };
        mixture.ln_e_confirm(counts) >= threshold
    };
    if trials == 0 || budget == 0.0 || !confirmed(0) {
        return None;
    }
    let (mut low, mut high) = (0, trials);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if confirmed(middle) { low = middle } else { high = middle }
    }
    Some(low)
}
