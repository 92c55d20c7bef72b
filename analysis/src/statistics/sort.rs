//! Sorting many numbers: by digits of their bits, lowest first, which takes no comparisons.

/// Bits of a digit.
const DIGIT: u32 = 11;
const DIGITS: usize = 64_usize.div_ceil(DIGIT as usize);

/// Numbers fewer than these are sorted sooner by comparing them.
const MANY: usize = 1 << 12;

/// Sorts in the order of [`f64::total_cmp`].
pub fn sort(values: &mut [f64]) {
    if values.len() < MANY {
        values.sort_unstable_by(f64::total_cmp);
        return;
    }
    let mut keys: Vec<u64> = values.iter().map(|value| key(*value)).collect();
    let mut starts = vec![[0_usize; 1 << DIGIT]; DIGITS];
    for key in &keys {
        for (place, counts) in starts.iter_mut().enumerate() {
            counts[digit(*key, place)] += 1;
        }
    }
    let mut sorted = vec![0; keys.len()];
    for (place, starts) in starts.iter_mut().enumerate() {
        // A digit that all have in common changes nothing.
        if starts[digit(keys[0], place)] == keys.len() {
            continue;
        }
        let mut before = 0;
        for start in starts.iter_mut() {
            (*start, before) = (before, before + *start);
        }
        for &key in &keys {
            let start = &mut starts[digit(key, place)];
            sorted[*start] = key;
            *start += 1;
        }
        std::mem::swap(&mut keys, &mut sorted);
    }
    values.iter_mut().zip(keys).for_each(|(value, key)| *value = number(key));
}

fn digit(key: u64, place: usize) -> usize {
    (key >> (place as u32 * DIGIT)) as usize & ((1 << DIGIT) - 1)
}

/// Bits whose order as a whole number is that of the numbers: negative ones are turned round.
fn key(value: f64) -> u64 {
    let bits = value.to_bits();
    bits ^ if value.is_sign_negative() { u64::MAX } else { 1 << 63 }
}

fn number(key: u64) -> f64 {
    f64::from_bits(key ^ if key >> 63 == 0 { u64::MAX } else { 1 << 63 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_order_is_that_of_total_cmp(
            some in prop::collection::vec(prop::num::f64::ANY, MANY..2 * MANY),
            near in prop::collection::vec(0.0_f64..1e-3, MANY..2 * MANY),
        ) {
            let with_ties: Vec<f64> = near.iter().map(|value| (value * 1e5).floor()).collect();
            for values in [some, near, with_ties] {
                let (mut expected, mut found) = (values.clone(), values);
                expected.sort_by(f64::total_cmp);
                sort(&mut found);
                let bits = |values: &[f64]| -> Vec<u64> { values.iter().map(|v| v.to_bits()).collect() };
                prop_assert_eq!(bits(&found), bits(&expected));
            }
        }
    }
}
