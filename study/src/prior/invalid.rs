//! What can be wrong with a prior, and the checks that numbers share.

/// A value of `[prior]` that cannot be used: its key, the value, and what would be valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Invalid {
    /// NaN or an infinity.
    #[error("{key} = {value} is not a finite number; give one")]
    NotFinite {
        /// Where.
        key: String,
        /// What.
        value: f64,
    },
    /// Below 0 where 0 is the least.
    #[error("{key} = {value} is negative; the least valid value is 0")]
    Negative {
        /// Where.
        key: String,
        /// What.
        value: f64,
    },
    /// 0 or below where only positive values make sense.
    #[error("{key} = {value} is not positive; any value above 0 is valid")]
    NotPositive {
        /// Where.
        key: String,
        /// What.
        value: f64,
    },
    /// A number outside an interval.
    #[error("{key} = {value:e} is outside its range; valid are {least:e} to {most:e}")]
    OutOfRange {
        /// Where.
        key: String,
        /// What.
        value: f64,
        /// The least valid value.
        least: f64,
        /// The largest valid value.
        most: f64,
    },
    /// A count outside an interval.
    #[error("{key} = {value} is outside its range; valid are {least} to {most}")]
    Count {
        /// Where.
        key: String,
        /// What.
        value: usize,
        /// The least valid count.
        least: usize,
        /// The largest valid count.
        most: usize,
    },
    /// A list that needs one entry per coordinate.
    #[error(
        "{key} has {found} entries, but the domain has dimension {dimension}; give {dimension}"
    )]
    Entries {
        /// Where.
        key: String,
        /// Entries given.
        found: usize,
        /// Entries needed.
        dimension: usize,
    },
    /// A sum or a product of nothing.
    #[error("{key} = [] is empty; give at least one kernel")]
    Empty {
        /// Where.
        key: String,
    },
    /// A number of points that is not k^d.
    #[error(
        "{key} = {points} is not a grid in dimension {dimension}; the nearest valid numbers are \
         {below} and {above} (a whole number to the power {dimension})"
    )]
    NotAGrid {
        /// Where.
        key: String,
        /// What.
        points: usize,
        /// d.
        dimension: usize,
        /// The largest k^d below.
        below: usize,
        /// The least k^d above.
        above: usize,
    },
    /// A file of another shape than its use needs.
    #[error("{key} = \"{path}\" has {rows} rows and {columns} columns; needed are {needed}")]
    Shape {
        /// Where.
        key: String,
        /// The file.
        path: String,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// The shape that would be valid.
        needed: String,
    },
    /// Missing entries where all are needed.
    #[error(
        "{key} has missing entries ({error}), which only rewards of setting = \"data\" may have; fill them in"
    )]
    Gaps {
        /// Where.
        key: String,
        /// The first of them.
        error: String,
    },
    /// Something that the setting does not take.
    #[error("{key} {reason}")]
    Setting {
        /// Where.
        key: String,
        /// Why, and what would be valid.
        reason: &'static str,
    },
    /// A file that was never given.
    #[error("{key} = \"{path}\" has not been loaded; load the files that the prior names first")]
    NotLoaded {
        /// Where.
        key: String,
        /// The file.
        path: String,
    },
}

impl Invalid {
    /// The dotted key of the value.
    pub fn key(&self) -> &str {
        match self {
            Self::NotFinite { key, .. }
            | Self::Negative { key, .. }
            | Self::NotPositive { key, .. }
            | Self::OutOfRange { key, .. }
            | Self::Count { key, .. }
            | Self::Entries { key, .. }
            | Self::Empty { key }
            | Self::NotAGrid { key, .. }
            | Self::Shape { key, .. }
            | Self::Setting { key, .. }
            | Self::Gaps { key, .. }
            | Self::NotLoaded { key, .. } => key,
        }
    }
}

pub(super) fn finite(key: &str, value: f64) -> Result<(), Invalid> {
    if value.is_finite() { Ok(()) } else { Err(Invalid::NotFinite { key: key.to_owned(), value }) }
}

pub(super) fn non_negative(key: &str, value: f64) -> Result<(), Invalid> {
    finite(key, value)?;
    if value < 0.0 { Err(Invalid::Negative { key: key.to_owned(), value }) } else { Ok(()) }
}

pub(super) fn positive(key: &str, value: f64) -> Result<(), Invalid> {
    finite(key, value)?;
    if value > 0.0 { Ok(()) } else { Err(Invalid::NotPositive { key: key.to_owned(), value }) }
}

pub(super) fn within(key: &str, value: f64, least: f64, most: f64) -> Result<(), Invalid> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(Invalid::OutOfRange { key: key.to_owned(), value, least, most })
    }
}

pub(super) fn count(key: &str, value: usize, most: usize) -> Result<(), Invalid> {
    if (1..=most).contains(&value) {
        Ok(())
    } else {
        Err(Invalid::Count { key: key.to_owned(), value, least: 1, most })
    }
}

/// A number of points that has to reach the number of basis functions.
pub(super) fn at_least(key: &str, value: usize, least: usize) -> Result<(), Invalid> {
    let most = u32::MAX as usize;
    if value >= least {
        Ok(())
    } else {
        Err(Invalid::Count { key: key.to_owned(), value, least, most })
    }
}

pub(super) fn entries(key: &str, found: usize, dimension: usize) -> Result<(), Invalid> {
    if found == dimension {
        Ok(())
    } else {
        Err(Invalid::Entries { key: key.to_owned(), found, dimension })
    }
}
