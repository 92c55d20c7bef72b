//! What has become of a study.

use std::fmt;

use crate::core::{Alarm, Quarantine};

/// Where a study stands, for those who wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is work left.
    Running,
    /// All trials are durable.
    Complete,
    /// All but some are, which killed their workers.
    Quarantined(String),
    /// Two workers disagreed.
    Alarmed(String),
    /// The user ended it.
    Cancelled,
    /// Records could not be stored.
    Failed(String),
}

impl Outcome {
    pub(super) fn alarmed(alarm: &Alarm) -> Self {
        let Alarm { cell, range, first, second, .. } = alarm;
        Self::Alarmed(format!(
            "workers {} and {} disagree on cell {cell}, replicates {} to {}: one of them computes \
             wrongly; find out which with `regretta doctor` on both, then run again in another folder",
            first.0, second.0, range.start, range.end
        ))
    }

    pub(super) fn ended(quarantined: &[Quarantine]) -> Self {
        let Some(one) = quarantined.first() else { return Self::Complete };
        let trials: u64 = quarantined.iter().map(|q| q.range.end - q.range.start).sum();
        Self::Quarantined(format!(
            "{trials} trials in {} shards were given up, the first at cell {}, replicates {} to {}, \
             after {} workers were lost with it ({}); run the same command again to try once more",
            quarantined.len(),
            one.cell,
            one.range.start,
            one.range.end,
            one.deaths,
            one.reason
        ))
    }

    /// Whether nothing more will happen by itself.
    pub fn is_final(&self) -> bool {
        *self != Self::Running
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Complete => f.write_str("complete"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Quarantined(why) | Self::Alarmed(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}
