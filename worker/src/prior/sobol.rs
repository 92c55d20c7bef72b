//! The Sobol sequence, unscrambled.
//!
//! Direction numbers `new-joe-kuo-6.21201` of Joe and Kuo (SIAM J. Sci. Comput. 30, 2008), in the
//! Gray-code order of Antonov and Saleev: the origin first, as `scipy.stats.qmc.Sobol` has it.

use study::prior::SOBOL_DIMENSIONS;

/// Bits of a coordinate, and of the largest index.
const BITS: usize = 32;

/// For dimensions 2, 3, ..: the inner coefficients a of the primitive polynomial, whose degree s is
/// the number of initial values, and the initial values m_1 .. m_s.
const POLYNOMIALS: [(u32, &[u32]); SOBOL_DIMENSIONS - 1] = [
    (0, &[1]),
    (1, &[1, 3]),
    (1, &[1, 3, 1]),
    (2, &[1, 1, 1]),
    (1, &[1, 1, 3, 3]),
    (4, &[1, 3, 5, 13]),
    (2, &[1, 1, 5, 5, 17]),
    (4, &[1, 1, 5, 5, 5]),
    (7, &[1, 1, 7, 11, 19]),
    (11, &[1, 1, 5, 1, 1]),
    (13, &[1, 1, 1, 3, 11]),
    (14, &[1, 3, 5, 5, 31]),
    (1, &[1, 3, 3, 9, 7, 49]),
    (13, &[1, 1, 1, 15, 21, 21]),
    (16, &[1, 3, 1, 13, 27, 49]),
    (19, &[1, 1, 1, 15, 7, 5]),
    (22, &[1, 3, 1, 15, 13, 25]),
    (25, &[1, 1, 5, 5, 19, 61]),
    (1, &[1, 3, 7, 11, 23, 15, 103]),
    (4, &[1, 3, 7, 13, 13, 15, 69]),
];

/// The first `points` points, coordinate after coordinate of each.
pub(super) fn points(points: usize, dimension: usize) -> Vec<f64> {
    let directions: Vec<_> = (0..dimension).map(directions).collect();
    let mut state = vec![0_u32; dimension];
    let mut out = Vec::with_capacity(points * dimension);
    for index in 0..points {
        out.extend(state.iter().map(|&bits| f64::from(bits) / (1_u64 << BITS) as f64));
        // Gray codes of `index` and `index + 1` differ in the lowest zero bit of `index`.
        let bit = (!index).trailing_zeros() as usize;
        for (bits, directions) in state.iter_mut().zip(&directions) {
            *bits ^= directions.get(bit).copied().unwrap_or(0);
        }
    }
    out
}

/// v_1 .. v_32 of coordinate j: m_i 2^(32-i) first, then
/// v_i = a_1 v_{i-1} ^ .. ^ a_{s-1} v_{i-s+1} ^ v_{i-s} ^ (v_{i-s} >> s).
fn directions(j: usize) -> [u32; BITS] {
    let mut v = [0; BITS];
    let Some((a, initial)) = j.checked_sub(1).map(|at| POLYNOMIALS[at]) else {
        return std::array::from_fn(|i| 1 << (BITS - 1 - i));
    };
    let s = initial.len();
    for i in 0..BITS {
        v[i] = match initial.get(i) {
            Some(m) => m << (BITS - 1 - i),
            None => (1..s).fold(v[i - s] ^ (v[i - s] >> s), |sum, q| {
                sum ^ (v[i - q] * (a >> (s - 1 - q) & 1))
            }),
        };
    }
    v
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_scipy_computes_them() {
        let text = include_str!("../../tests/reference_prior.json");
        let reference: serde_json::Value = serde_json::from_str(text).unwrap();
        for (dimension, every) in [(1, 97), (3, 1), (21, 97)] {
            let found = points(1024, dimension);
            let rows = reference["sobol"][dimension.to_string()].as_array().unwrap();
            assert_eq!(rows.len(), 1024_usize.div_ceil(every));
            for (row, expected) in found.chunks(dimension).step_by(every).zip(rows) {
                for (value, expected) in row.iter().zip(expected.as_array().unwrap()) {
                    assert_eq!(value * f64::from(1 << 30), expected.as_f64().unwrap());
                }
            }
        }
    }

    #[test]
    fn every_projection_of_a_power_of_two_is_stratified() {
        let found = points(256, SOBOL_DIMENSIONS);
        for j in 0..SOBOL_DIMENSIONS {
            let mut cells: Vec<_> =
                found.iter().skip(j).step_by(SOBOL_DIMENSIONS).map(|x| x * 256.0).collect();
            cells.sort_by(f64::total_cmp);
            assert!(cells.iter().enumerate().all(|(i, &cell)| cell == i as f64), "{j}");
        }
    }
}
