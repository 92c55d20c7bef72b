//! Uniform draws without replacement, one at a time (Fisher and Yates).

use crate::random::Stream;

/// A random order of 0..size, revealed as far as it is asked for.
pub(super) struct Shuffle {
    order: Vec<u32>,
    next: usize,
    stream: Stream,
}

impl Shuffle {
    pub(super) fn new(size: usize, stream: Stream) -> Self {
        Self { order: (0..size as u32).collect(), next: 0, stream }
    }

    /// The next element, `None` after the last.
    pub(super) fn draw(&mut self) -> Option<usize> {
        let left = self.order.len() - self.next;
        if left == 0 {
            return None;
        }
        let pick = self.next + self.stream.below(left);
        self.order.swap(self.next, pick);
        self.next += 1;
        Some(self.order[self.next - 1] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Key, Purpose};

    #[test]
    fn every_element_comes_once() {
        let stream = Stream::new(Key::new(5, &[0; 32], 0, Purpose::Design));
        let mut shuffle = Shuffle::new(20, stream);
        let mut seen: Vec<usize> = std::iter::from_fn(|| shuffle.draw()).collect();
        assert_ne!(seen, (0..20).collect::<Vec<_>>());
        seen.sort_unstable();
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
    }
}
