//! Keyed streams of random words.
//!
//! A [`Key`] is a BLAKE3 hash of everything that identifies a purpose of a trial; a [`Stream`] is
//! ChaCha with 8 rounds under that key. Two ChaCha streams serve each `Stream`: the *words* map one
//! to one to variates, and the rare variate that its word rejects takes what it needs from the
//! *retries*. So the k-th variate never depends on how many were asked for at a time.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What a stream is for. Streams of different purposes never share a word. The numbers enter the keys:
/// to change one is to change every trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The function f.
    Function = 0,
    /// Observation noise.
    Noise = 1,
    /// The estimators before any observation.
    Estimator = 2,
    /// Coordinates of the estimator's rows on the axes that the choices define.
    EstimatorAxes = 3,
    /// What the estimator reveals of the point just chosen.
    EstimatorSteps = 4,
    /// Points of a fixed design.
    Design = 5,
    /// Where Lemma 1 is probed.
    Probe = 6,
    /// Choices of a randomised policy.
    Policy = 7,
}

/// The 256-bit key of one purpose of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// Hashes the study's seed, what the purpose's draws depend on, and the replicate.
    pub fn new(seed: u64, identity: &[u8; 32], replicate: u64, purpose: Purpose) -> Self {
        // In one piece: an incremental hasher costs more than the hash of so little.
        let mut material = [0; 49];
        material[..8].copy_from_slice(&seed.to_le_bytes());
        material[8..40].copy_from_slice(identity);
        material[40..48].copy_from_slice(&replicate.to_le_bytes());
        material[48] = purpose as u8;
        Self(blake3::derive_key("regretta v1 trial stream", &material))
    }
}

/// A stream of words, normals and chi-squares.
#[derive(Clone, Debug)]
pub struct Stream {
    words: ChaCha8Rng,
    retries: ChaCha8Rng,
}

impl Stream {
    /// Opens the stream of a key at its beginning.
    pub fn new(key: Key) -> Self {
        let words = ChaCha8Rng::from_seed(key.0);
        let mut retries = words.clone();
        retries.set_stream(1);
        Self { words, retries }
    }

    /// Fills `bytes` with the next words of the stream.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        self.words.fill_bytes(bytes);
    }

    /// The next word of the retries.
    pub(super) fn retry(&mut self) -> u64 {
        self.retries.next_u64()
    }

    /// A uniform number in (0, 1) from the retries; never 0, so that its logarithm is finite.
    pub(super) fn retry_uniform(&mut self) -> f64 {
        open_uniform(self.retry())
    }

    /// A uniform number in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        unit(self.words.next_u64())
    }

    /// A uniform integer below `bound`, without bias (Lemire's multiplication, with rejection).
    ///
    /// # Panics
    /// Where `bound` is zero.
    pub fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "a draw needs at least one candidate");
        let bound = bound as u64;
        let threshold = bound.wrapping_neg() % bound;
        let mut word = self.words.next_u64();
        loop {
            let wide = u128::from(word) * u128::from(bound);
            if wide as u64 >= threshold {
                return (wide >> 64) as usize;
            }
            word = self.retry();
        }
    }
}

/// (0, 1) in steps of 2^-52, symmetric about 1/2.
pub(super) fn open_uniform(word: u64) -> f64 {
    unit(word) + f64::EPSILON / 2.0
}

/// [0, 1) in steps of 2^-52, from the upper 52 bits.
pub(super) fn unit(word: u64) -> f64 {
    f64::from_bits(0x3ff0_0000_0000_0000 | (word >> 12)) - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(replicate: u64, purpose: Purpose) -> Stream {
        Stream::new(Key::new(2018, &[3; 32], replicate, purpose))
    }

    #[test]
    fn purposes_and_replicates_have_streams_of_their_own() {
        let first = |r, p| stream(r, p).words.next_u64();
        let base = first(0, Purpose::Function);
        assert_eq!(base, first(0, Purpose::Function));
        assert_ne!(base, first(1, Purpose::Function));
        assert_ne!(base, first(0, Purpose::Noise));
        assert_ne!(base, stream(0, Purpose::Function).retry());
    }

    #[test]
    fn uniforms_stay_inside() {
        assert_eq!(unit(0), 0.0);
        assert!(open_uniform(0) > 0.0 && open_uniform(u64::MAX) < 1.0);
    }

    /// Chi-square test of uniformity over 7 cells, 70,000 draws; false-alarm rate 1e-6
    /// (quantile of chi-square with 6 degrees of freedom: 38.26).
    #[test]
    fn integers_below_a_bound_are_uniform() {
        let mut s = stream(0, Purpose::Design);
        let mut counts = [0.0; 7];
        for _ in 0..70_000 {
            counts[s.below(7)] += 1.0;
        }
        let statistic: f64 =
            counts.iter().map(|c| (c - 10_000.0) * (c - 10_000.0) / 10_000.0).sum();
        assert!(statistic < 38.26, "{statistic}");
    }
}
