//! Randomness of a trial: one ChaCha stream per purpose, and our own normals and chi-squares.
//!
//! Everything here is integer arithmetic, IEEE 754 basic operations and the `libm` crate, in a
//! fixed order, so that a trial has the same bits on every CPU.

mod chi_square;
mod normal;
mod stream;

pub use stream::{Key, Purpose, Stream};

/// Fills an interleaved array with normals, each lane from its own stream.
pub(crate) fn interleaved_normals<const L: usize>(streams: &mut [Stream; L], out: &mut [f64]) {
    for (lane, stream) in streams.iter_mut().enumerate() {
        stream.normals_in_lane(lane, out.as_chunks_mut::<L>().0);
    }
}
