//! What a range of trials says about the rows of its cell: counts, which add up.

mod counter;

pub use counter::{Contexts, Counter, contexts};

/// Trials counted for one row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Trials that gave an answer.
    pub trials: u64,
    /// Among them, those that violate the claim even with rho's upper end.
    pub refuting: u64,
    /// Among them, those that violate the claim with rho's lower end.
    pub confirming: u64,
    /// Trials that failed before the row's t; not among `trials`.
    pub failures: u64,
}

impl RowCounts {
    /// Adds the counts of other trials.
    pub fn plus(&mut self, other: &Self) {
        self.trials += other.trials;
        self.refuting += other.refuting;
        self.confirming += other.confirming;
        self.failures += other.failures;
    }

    /// The counts without those of some of the trials.
    #[must_use]
    pub fn minus(&self, some: &Self) -> Self {
        Self {
            trials: self.trials - some.trials,
            refuting: self.refuting - some.refuting,
            confirming: self.confirming - some.confirming,
            failures: self.failures - some.failures,
        }
    }
}

/// Counts for every row of a cell, in the order of [`crate::rows::rows`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(pub Vec<RowCounts>);

/// Bytes that are not a tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end within a number.
    #[error("a tally ends too early")]
    Truncated,
    /// A number of more than 64 bits, or with needless zeros.
    #[error("byte {at} of a tally does not belong to a number as tallies write it")]
    Number {
        /// Counted from 0.
        at: usize,
    },
    /// Bytes behind the last row.
    #[error("{count} bytes follow a tally's last row")]
    Trailing {
        /// How many.
        count: usize,
    },
    /// More violations than trials, or more trials than can be counted.
    #[error("row {row} of a tally counts more violations than trials")]
    Inconsistent {
        /// Counted from 0.
        row: usize,
    },
}

impl Tally {
    /// No trials yet, for so many rows.
    pub fn zero(rows: usize) -> Self {
        Self(vec![RowCounts::default(); rows])
    }

    /// Adds the counts of other trials of the same cell.
    ///
    /// # Panics
    /// Where the other tally is about other rows: what comes over the wire is checked there.
    pub fn plus(&mut self, other: &Self) {
        assert_eq!(self.0.len(), other.0.len(), "tallies of one cell have the same rows");
        for (sum, row) in self.0.iter_mut().zip(&other.0) {
            sum.plus(row);
        }
    }

    /// Whether this can be the tally of `trials` trials for `rows` rows.
    pub fn is_of(&self, rows: usize, trials: u64) -> bool {
        let fits = |row: &RowCounts| row.trials.saturating_add(row.failures) <= trials;
        self.0.len() == rows && self.0.iter().all(fits)
    }

    /// The number of rows, then four numbers a row, each in 7-bit groups, lowest first (LEB128).
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 + 6 * self.0.len());
        put(&mut bytes, self.0.len() as u64);
        for row in &self.0 {
            for number in [row.trials, row.refuting, row.confirming, row.failures] {
                put(&mut bytes, number);
            }
        }
        bytes
    }

    /// Reads what [`Tally::encode`] wrote, and nothing else.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut at = 0;
        let rows = take(bytes, &mut at)?;
        // Every row has four bytes at least, so a wrong number cannot ask for much memory.
        if rows > (bytes.len() / 4) as u64 {
            return Err(DecodeError::Truncated);
        }
        let mut tally = Vec::with_capacity(rows as usize);
        for row in 0..rows as usize {
            let mut next = || take(bytes, &mut at);
            let (trials, refuting, confirming, failures) = (next()?, next()?, next()?, next()?);
            let sum = trials.checked_add(failures);
            if refuting > trials || confirming > trials || sum.is_none() {
                return Err(DecodeError::Inconsistent { row });
            }
            tally.push(RowCounts { trials, refuting, confirming, failures });
        }
        match bytes.len() - at {
            0 => Ok(Self(tally)),
            count => Err(DecodeError::Trailing { count }),
        }
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &[u8], at: &mut usize) -> Result<u64, DecodeError> {
    let mut number = 0_u64;
    for shift in (0..).step_by(7) {
        let byte = *bytes.get(*at).ok_or(DecodeError::Truncated)?;
        let group = u64::from(byte & 0x7f);
        let needless = shift > 0 && byte == 0;
        if shift > 63 || needless || (shift == 63 && group > 1) {
            return Err(DecodeError::Number { at: *at });
        }
        number |= group << shift;
        *at += 1;
        if byte < 0x80 {
            break;
        }
    }
    Ok(number)
}

#[cfg(test)]
mod tests;
