//! Vectors of doubles, one lane per trial of a lockstep group.
//!
//! Kernels are written once over [`Vector`]; `pulp` compiles them for each instruction set and
//! picks one at run time. Only operations that IEEE 754 rounds exactly are offered, and none is
//! fused, so every instruction set gives the same bits as plain scalar code.

use std::ops::{Add, Deref, DerefMut, Div, Mul, Neg, Sub};

use pulp::{Arch, Scalar, Simd, WithSimd};

/// The instruction set that kernels run with.
#[derive(Clone, Copy, Debug)]
pub struct Cpu(Arch);

impl Cpu {
    /// The widest instruction set that this CPU has.
    pub fn detect() -> Self {
        Self(Arch::new())
    }

    /// Plain scalar code, for comparison.
    pub fn plain() -> Self {
        Self(Arch::Scalar)
    }

    /// The instruction set's name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Arch::Scalar => "plain",
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Arch::V3(_) => "x86-64-v3 (AVX2)",
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Arch::V4(_) => "x86-64-v4 (AVX-512)",
            _ => "vector",
        }
    }

    /// Runs a kernel over groups of `L` lanes; a single lane has nothing to vectorise across.
    pub(crate) fn run<const L: usize, K: WithSimd>(self, kernel: K) -> K::Output {
        if L == 1 { kernel.with_simd(Scalar) } else { self.0.dispatch(kernel) }
    }
}

/// Some lanes of a value, as many as the instruction set holds in a register.
#[derive(Clone, Copy)]
pub(crate) struct Vector<S: Simd> {
    simd: S,
    lanes: S::f64s,
}

/// How many vectors make up `L` lanes.
#[inline(always)]
pub(crate) fn groups<S: Simd, const L: usize>() -> usize {
    const { assert!(L.is_power_of_two()) };
    L.div_ceil(S::F64_LANES)
}

impl<S: Simd> Vector<S> {
    #[inline(always)]
    pub(crate) fn splat(simd: S, value: f64) -> Self {
        Self { simd, lanes: simd.splat_f64s(value) }
    }

    #[inline(always)]
    pub(crate) fn new(simd: S, lanes: S::f64s) -> Self {
        Self { simd, lanes }
    }

    #[inline(always)]
    pub(crate) fn lanes(self) -> S::f64s {
        self.lanes
    }

    #[inline(always)]
    pub(crate) fn sqrt(self) -> Self {
        Self { lanes: self.simd.sqrt_f64s(self.lanes), ..self }
    }

    /// The greater of the two; `other` where `self` is no number.
    #[inline(always)]
    pub(crate) fn at_least(self, other: Self) -> Self {
        Self { lanes: self.simd.max_f64s(self.lanes, other.lanes), ..self }
    }

    /// The smaller of the two; `other` where `self` is no number.
    #[inline(always)]
    pub(crate) fn at_most(self, other: Self) -> Self {
        Self { lanes: self.simd.min_f64s(self.lanes, other.lanes), ..self }
    }

    #[inline(always)]
    pub(crate) fn abs(self) -> Self {
        // The library's own is not inlined into large kernels.
        let all_but_sign = self.simd.splat_f64s(f64::from_bits(u64::MAX >> 1));
        Self { lanes: self.simd.and_f64s(all_but_sign, self.lanes), ..self }
    }

    /// Where `self` is greater than `other`.
    #[inline(always)]
    pub(crate) fn greater(self, other: Self) -> S::m64s {
        self.simd.greater_than_f64s(self.lanes, other.lanes)
    }

    /// `self` where the mask holds, else `other`.
    #[inline(always)]
    pub(crate) fn or_where_not(self, mask: S::m64s, other: Self) -> Self {
        Self { lanes: self.simd.select_f64s(mask, self.lanes, other.lanes), ..self }
    }

    /// `yes` where a > b, else `no`.
    #[inline(always)]
    pub(crate) fn where_greater(self, a: Self, b: Self, yes: Self, no: Self) -> Self {
        let mask = self.simd.greater_than_f64s(a.lanes, b.lanes);
        Self { lanes: self.simd.select_f64s(mask, yes.lanes, no.lanes), ..self }
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $simd:ident) => {
        impl<S: Simd> $trait for Vector<S> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self { lanes: self.simd.$simd(self.lanes, other.lanes), ..self }
            }
        }
    };
}
operator!(Add, add, add_f64s);
operator!(Sub, sub, sub_f64s);
operator!(Mul, mul, mul_f64s);
operator!(Div, div, div_f64s);

impl<S: Simd> Neg for Vector<S> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { lanes: self.simd.neg_f64s(self.lanes), ..self }
    }
}

/// Doubles that begin on a cache line, so that no vector straddles two.
pub(crate) struct Buffer {
    values: Vec<f64>,
    begin: usize,
    len: usize,
}

/// Doubles in a cache line.
const LINE: usize = 8;

impl Buffer {
    pub(crate) fn filled(value: f64, len: usize) -> Self {
        let values = vec![value; len + LINE];
        // Where the address cannot be known, an unaligned buffer is as good, only slower.
        let begin = values.as_ptr().align_offset(LINE * size_of::<f64>()).min(LINE);
        Self { values, begin, len }
    }

    pub(crate) fn zeros(len: usize) -> Self {
        Self::filled(0.0, len)
    }

    /// Shortens the buffer, or lengthens it again up to what it was made for.
    pub(crate) fn resize(&mut self, len: usize) {
        debug_assert!(len + LINE <= self.values.len(), "a buffer does not grow");
        self.len = len;
    }
}

impl Deref for Buffer {
    type Target = [f64];

    #[inline(always)]
    fn deref(&self) -> &[f64] {
        &self.values[self.begin..self.begin + self.len]
    }
}

impl DerefMut for Buffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.values[self.begin..self.begin + self.len]
    }
}

/// A slice seen as vectors.
#[inline(always)]
pub(crate) fn vectors<S: Simd>(slice: &[f64]) -> &[S::f64s] {
    S::as_simd_f64s(slice).0
}

/// A mutable slice seen as vectors.
#[inline(always)]
pub(crate) fn vectors_mut<S: Simd>(slice: &mut [f64]) -> &mut [S::f64s] {
    S::as_mut_simd_f64s(slice).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_on_a_cache_line() {
        for len in [0, 1, 7, 100, 100_000] {
            let mut buffer = Buffer::filled(1.5, len);
            assert_eq!(buffer.as_ptr().addr() % 64, 0);
            assert_eq!(buffer.len(), len);
            assert!(buffer.iter().all(|&v| v == 1.5));
            buffer.resize(len / 2);
            assert_eq!(buffer.len(), len / 2);
        }
    }
}
