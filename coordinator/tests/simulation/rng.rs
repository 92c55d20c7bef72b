//! Randomness of the simulation: splitmix64, one stream per seed.

/// A stream of random numbers.
pub(crate) struct Rng(u64);

/// The finaliser of splitmix64: a hash of one number.
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `low..=high`.
    pub(crate) fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.within(0, among.len() as u64 - 1) as usize]
    }
}
