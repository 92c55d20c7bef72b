//! What an operator may choose.

use std::time::Duration;

/// Settings of the scheduling core.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A lease ends this long after the last heartbeat that named it.
    pub lease: Duration,
    /// How long a shard should take.
    pub shard_target: Duration,
    /// Records in a shard at most.
    pub max_shard_records: u64,
    /// Deaths of its workers after which a range is quarantined.
    pub max_deaths: u32,
    /// The fraction of shards that is recomputed and compared.
    pub check_fraction: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            shard_target: Duration::from_secs(2),
            max_shard_records: 1 << 17,
            max_deaths: 5,
            check_fraction: 0.01,
        }
    }
}
