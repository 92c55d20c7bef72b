//! A row group's columns as numbers, and the measurements of their rows.
//!
//! Nulls are NaN in here: no record holds one, so that a column is one slice of numbers. The memory is
//! used again for the next row group.

use theory::Measurement;
use theory::claims::{Quantities, Quantity, Trials};
use theory::measurement::{AtTau, CompactNoise, Deviation, EstimatedAtTau};

use crate::parquet::{FileError, Group, Room};

/// The columns that were read.
#[derive(Default)]
pub(super) struct Columns {
    /// By quantity.
    values: Vec<Vec<f64>>,
    /// Those with a value in any row.
    present: Quantities,
    replicate: Vec<f64>,
    t: Vec<f64>,
    room: Room,
}

impl Columns {
    /// Reads some columns of a row group; the others have no values.
    pub(super) fn read(&mut self, group: &Group, wanted: Quantities) -> Result<(), FileError> {
        self.values.resize_with(Quantity::ALL.len(), Vec::new);
        self.present = Quantities::default();
        for quantity in Quantity::ALL.into_iter().filter(|&quantity| wanted.has(quantity)) {
            let values = &mut self.values[quantity as usize];
            if group.numbers(quantity.name(), &mut self.room, values)? {
                self.present = self.present.with(quantity);
            }
        }
        group.numbers("replicate", &mut self.room, &mut self.replicate)?;
        group.numbers("t", &mut self.room, &mut self.t)?;
        Ok(())
    }

    /// Whether a row is the replicate's at t.
    pub(super) fn is_at(&self, row: usize, replicate: u64, t: u32) -> bool {
        (self.replicate[row], self.t[row]) == (replicate as f64, f64::from(t))
    }

    /// Whether the trial of a row did not fail: then nothing was measured.
    pub(super) fn is_measured(&self, row: usize) -> bool {
        !self.value(row, Quantity::BestSampleRegret).is_nan()
    }

    fn value(&self, row: usize, quantity: Quantity) -> f64 {
        if self.present.has(quantity) { self.values[quantity as usize][row] } else { f64::NAN }
    }

    /// Makes trials of a number of rows that lie so far apart.
    pub(super) fn gather(
        &self,
        first: usize,
        apart: usize,
        count: usize,
        wanted: Quantities,
        trials: &mut Trials,
    ) {
        trials.start(count);
        for quantity in Quantity::ALL.into_iter().filter(|&quantity| wanted.has(quantity)) {
            let column = trials.column_mut(quantity);
            if self.present.has(quantity) {
                let values = self.values[quantity as usize][first..].iter().step_by(apart);
                column.iter_mut().zip(values).for_each(|(to, value)| *to = *value);
            } else {
                column.fill(f64::NAN);
            }
        }
    }

    /// The measurement of a row that has one, as far as claims read it.
    pub(super) fn measurement(&self, row: usize, t: u32) -> Measurement {
        use Quantity as Q;
        let get = |quantity| self.value(row, quantity);
        let some = |quantity| Some(get(quantity)).filter(|value| !value.is_nan());
        let deviation = |error, signed, ratio| {
            some(error).map(|error| Deviation { signed: get(signed), error, ratio: get(ratio) })
        };
        Measurement {
            t,
            x: Some(0),
            y: 0.0,
            f: 0.0,
            f_star: get(Q::FStar),
            x_star: Some(0),
            prior_known: true,
            expected: None,
            f_range: get(Q::FRange),
            zeta: None,
            target: some(Q::Target),
            best_sample_regret: get(Q::BestSampleRegret),
            simple_regret: get(Q::SimpleRegret),
            cumulative_regret: get(Q::CumulativeRegret),
            probe: deviation(Q::ErrorProbe, Q::SignedProbe, Q::RatioProbe),
            star: deviation(Q::ErrorStar, Q::SignedStar, Q::RatioStar),
            next: deviation(Q::ErrorNext, Q::SignedNext, Q::RatioNext),
            // Records do not have the sign, and no claim asks for it.
            observed: some(Q::ErrorObserved).map(|error| Deviation {
                signed: error.sqrt(),
                error,
                ratio: get(Q::RatioObserved),
            }),
            k_xy: get(Q::KXy),
            star_seen: false,
            at_tau: AtTau {
                tau: get(Q::Tau) as u32,
                mean_star: get(Q::MuStarTau),
                variance_star: get(Q::KStarTau),
                mean_tau: get(Q::MuTau),
                variance_tau: get(Q::KTau),
                f_tau: get(Q::FTau),
                zeta: some(Q::ZetaTau),
                estimated: some(Q::MuHatStarTau).map(|mean_star| EstimatedAtTau {
                    mean_star,
                    variance_star: get(Q::KHatStarTau),
                    mean_tau: get(Q::MuHatTau),
                    variance_tau: get(Q::KHatTau),
                }),
                compact: some(Q::SigmaBarStar)
                    .map(|star| CompactNoise { star, tau: get(Q::SigmaBarTau) }),
                star_seen: get(Q::StarSeenTau) != 0.0,
            },
            y_max: get(Q::YMax),
            f_at_y_max: get(Q::FAtYMax),
            f_max: get(Q::FMax),
            y_at_f_max: get(Q::YAtFMax),
            information: some(Q::Information),
            information_determinant: some(Q::InformationDeterminant),
        }
    }
}
