//! Standard normals by the ziggurat method of Marsaglia and Tsang (2000), 256 layers.
//!
//! The density exp(-x^2/2) is covered by 256 regions of equal area v: a base of width r with the
//! tail beyond it, and 255 rectangles. A word gives a layer (bits 0..8), a sign (bit 8) and a
//! uniform of 52 other bits: no bit serves twice, so there is no correlation between layer and
//! position (Doornik 2005). 98.8 % of words are accepted at once by one comparison.

use std::sync::LazyLock;

use super::stream::{Stream, unit};

const LAYERS: usize = 256;
/// Where the tail begins; with it all 256 areas are equal.
const TAIL: f64 = 3.654_152_885_361_009;
const SIGN: u64 = 1 << 63;
/// Words handled at a time: few, because their room is cleared at every call.
const CHUNK: usize = 64;

/// Right ends x_i of the layers (x_0 is the base's area over its height) and exp(-x_i^2/2).
struct Layers {
    x: [f64; LAYERS + 1],
    height: [f64; LAYERS + 1],
}

static LAYERS_TABLE: LazyLock<Box<Layers>> = LazyLock::new(|| {
    let density = |x: f64| libm::exp(-0.5 * x * x);
    let tail_area =
        (std::f64::consts::PI / 2.0).sqrt() * libm::erfc(TAIL / std::f64::consts::SQRT_2);
    let area = TAIL * density(TAIL) + tail_area;
    let mut x = [0.0; LAYERS + 1];
    x[0] = area / density(TAIL);
    x[1] = TAIL;
    for i in 2..LAYERS {
        x[i] = (-2.0 * libm::log(area / x[i - 1] + density(x[i - 1]))).sqrt();
    }
    Box::new(Layers { x, height: x.map(density) })
});

impl Layers {
    /// The word's candidate without sign, and whether it lies inside the layer's inner rectangle.
    #[inline(always)]
    fn candidate(&self, word: u64) -> (f64, bool) {
        let layer = (word & 0xff) as usize;
        let x = unit(word) * self.x[layer];
        (x, x < self.x[layer + 1])
    }
}

/// Bit 8 of the word decides the sign.
#[inline(always)]
fn signed(x: f64, word: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ ((word << 55) & SIGN))
}

impl Stream {
    /// Fills `out` with standard normals.
    pub fn normals(&mut self, out: &mut [f64]) {
        self.normals_in_lane(0, out.as_chunks_mut::<1>().0);
    }

    /// Fills one lane of `out` with standard normals.
    pub(crate) fn normals_in_lane<const L: usize>(&mut self, lane: usize, out: &mut [[f64; L]]) {
        assert!(lane < L, "a lane of {L}");
        let layers = &**LAYERS_TABLE;
        let mut bytes = [0; 8 * CHUNK];
        let mut rejected = [0_u32; CHUNK];
        for chunk in out.chunks_mut(CHUNK) {
            let bytes = &mut bytes[..8 * chunk.len()];
            self.fill(bytes);
            let words = bytes.as_chunks::<8>().0;
            let mut count = 0;
            for (j, (value, word)) in chunk.iter_mut().zip(words).enumerate() {
                let word = u64::from_le_bytes(*word);
                let (x, inside) = layers.candidate(word);
                value[lane] = signed(x, word);
                rejected[count] = j as u32;
                count += usize::from(!inside);
            }
            for &j in &rejected[..count] {
                chunk[j as usize][lane] = self.finish_normal(u64::from_le_bytes(words[j as usize]));
            }
        }
    }

    /// One standard normal.
    pub fn normal(&mut self) -> f64 {
        let mut out = [0.0];
        self.normals(&mut out);
        out[0]
    }

    /// The normal that `word` begins, with further words from the retries where it needs them.
    pub(super) fn finish_normal(&mut self, mut word: u64) -> f64 {
        let layers = &**LAYERS_TABLE;
        loop {
            let (x, inside) = layers.candidate(word);
            if inside {
                return signed(x, word);
            }
            let layer = (word & 0xff) as usize;
            if layer == 0 {
                return signed(self.normal_tail(), word);
            }
            let (low, high) = (layers.height[layer], layers.height[layer + 1]);
            if low + self.retry_uniform() * (high - low) < libm::exp(-0.5 * x * x) {
                return signed(x, word);
            }
            word = self.retry();
        }
    }

    /// A normal conditioned on exceeding [`TAIL`] (Marsaglia 1964).
    fn normal_tail(&mut self) -> f64 {
        loop {
            let x = -libm::log(self.retry_uniform()) / TAIL;
            let y = -libm::log(self.retry_uniform());
            if 2.0 * y > x * x {
                return TAIL + x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Key, Purpose};
    use super::*;

    fn stream() -> Stream {
        Stream::new(Key::new(1, &[0; 32], 0, Purpose::Noise))
    }

    #[test]
    fn layers_have_equal_areas_and_close_at_the_top() {
        let layers = &**LAYERS_TABLE;
        let area = layers.x[0] * layers.height[1];
        for i in 1..LAYERS {
            let strip = layers.x[i] * (layers.height[i + 1] - layers.height[i]);
            assert!((strip - area).abs() < 1e-13, "layer {i}: {strip} against {area}");
        }
        assert_eq!(layers.height[LAYERS], 1.0);
    }

    #[test]
    fn the_first_draws_are_pinned() {
        let mut out = [0.0; 4];
        stream().normals(&mut out);
        assert_eq!(out.map(f64::to_bits), PINNED.map(f64::to_bits), "{out:?}");
    }

    const PINNED: [f64; 4] =
        [-0.9531337746167519, 0.1853790756544429, -0.11469135562659344, 0.10402794884190705];

    #[test]
    fn draws_do_not_depend_on_how_many_are_asked_for() {
        let mut whole = vec![0.0; 5000];
        stream().normals(&mut whole);
        let mut parts = vec![0.0; 5000];
        let mut s = stream();
        let mut rest = &mut parts[..];
        let mut size = 1;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at_mut(size.min(rest.len()));
            s.normals(head);
            rest = tail;
            size = size * 3 % 701 + 1;
        }
        assert_eq!(whole, parts);
    }
}
