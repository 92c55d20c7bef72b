//! Pseudo-random numbers that are a function of their place.

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit depends on every bit.
fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A word for each pair.
pub(super) fn word(seed: u64, index: u64) -> u64 {
    let step = 0x9e37_79b9_7f4a_7c15_u64;
    mix(mix(seed.wrapping_add(step)).wrapping_add(index.wrapping_add(1).wrapping_mul(step)))
}

/// A number in [0, 1) for each pair, in steps of 2^-53.
pub(super) fn uniform(seed: u64, index: u64) -> f64 {
    (word(seed, index) >> 11) as f64 / 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_splitmix64() {
        // The published first outputs for the seed 1234567.
        let state = |k: u64| 1_234_567_u64.wrapping_add(k.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        assert_eq!(mix(state(1)), 6_457_827_717_110_365_317);
        assert_eq!(mix(state(2)), 3_203_168_211_198_807_973);
    }

    #[test]
    fn first_words_are_pinned() {
        let words = [word(0, 0), word(0, 1), word(7, 0)];
        assert_eq!(
            words,
            [12_035_550_249_420_947_055, 12_935_080_325_729_570_654, 13_309_476_754_707_697_221]
        );
    }
}
