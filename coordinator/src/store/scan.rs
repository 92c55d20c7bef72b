//! Walking a segment of which any byte may be wrong, in memory bounded by a frame.
//!
//! Yields every frame that is whole, in order, whatever lies between: a frame is only left out if
//! one of its own bytes is missing or changed.

use std::io::{self, Read};

use super::frame::{HEAD, HEADER, Head, Kind, MARK};

const CHUNK: usize = 1 << 20;

/// One whole frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: Kind,
    pub(super) payload: &'a [u8],
    /// Where the next frame begins.
    pub(super) end: u64,
}

/// A walk over a segment.
pub(super) struct Scan<R> {
    source: R,
    buffer: Vec<u8>,
    /// Where in `buffer` the walk is.
    at: usize,
    /// Where in the segment that is.
    offset: u64,
}

impl<R: Read> Scan<R> {
    /// From a segment's first byte. What the header says does not matter: a damaged one would
    /// cost every frame behind it.
    pub(super) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), at: 0, offset: 0 }
    }

    /// The next whole frame.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        if self.offset == 0 {
            if !self.fill(HEADER.len())? {
                return Ok(None);
            }
            self.skip(HEADER.len());
        }
        loop {
            if let Some(head) = self.whole()? {
                let start = self.at + HEAD;
                self.skip(HEAD + head.length);
                let payload = &self.buffer[start..self.at];
                return Ok(Some(Frame { kind: head.kind, payload, end: self.offset }));
            }
            if !self.find_mark()? {
                return Ok(None);
            }
        }
    }

    /// The head of the frame that begins here, if all of it is there and right.
    fn whole(&mut self) -> io::Result<Option<Head>> {
        if !self.fill(HEAD)? {
            return Ok(None);
        }
        let Some(head) = self.buffer[self.at..].first_chunk().and_then(Head::parse) else {
            return Ok(None);
        };
        if !self.fill(HEAD + head.length)? {
            return Ok(None);
        }
        let payload = &self.buffer[self.at + HEAD..][..head.length];
        Ok(head.fits(payload).then_some(head))
    }

    /// On to the next mark behind this byte, if there is one.
    fn find_mark(&mut self) -> io::Result<bool> {
        if !self.fill(1)? {
            return Ok(false);
        }
        self.skip(1);
        while self.fill(MARK.len())? {
            let rest = &self.buffer[self.at..];
            if let Some(step) = rest.windows(MARK.len()).position(|window| window == MARK) {
                self.skip(step);
                return Ok(true);
            }
            self.skip(rest.len() + 1 - MARK.len());
        }
        Ok(false)
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.offset += bytes as u64;
    }

    /// Reads on until `bytes` lie ahead; false if the segment ends before.
    fn fill(&mut self, bytes: usize) -> io::Result<bool> {
        let ahead = self.buffer.len() - self.at;
        if ahead >= bytes {
            return Ok(true);
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let missing = (bytes - ahead).max(CHUNK) as u64;
        self.source.by_ref().take(missing).read_to_end(&mut self.buffer)?;
        Ok(self.buffer.len() >= bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::Index;
    use proptest::test_runner::{Config, RngSeed};

    use super::*;
    use crate::store::frame;

    fn segment(payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<u64>) {
        let mut bytes = HEADER.to_vec();
        let mut ends = vec![];
        for (token, payload) in payloads.iter().enumerate() {
            frame::write(&mut bytes, Kind::Payload, token as u64, payload);
            ends.push(bytes.len() as u64);
        }
        (bytes, ends)
    }

    fn ends(segment: &[u8]) -> Vec<u64> {
        let mut scan = Scan::new(segment);
        let mut ends = vec![];
        while let Some(frame) = scan.next().unwrap() {
            ends.push(frame.end);
        }
        ends
    }

    /// Marks inside payloads must not mislead the scan.
    fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let piece = prop_oneof![any::<u8>().prop_map(|byte| vec![byte]), Just(MARK.to_vec())];
        let payload = proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat());
        proptest::collection::vec(payload, 1..8)
    }

    #[test]
    fn frames_longer_than_a_chunk() {
        let (bytes, expected) = segment(&[vec![1; 3 * CHUNK], vec![], vec![2; CHUNK - 7]]);
        assert_eq!(ends(&bytes), expected);
        assert_eq!(ends(&bytes[..bytes.len() - 1]), expected[..2]);
    }

    proptest! {
        #![proptest_config(Config { rng_seed: RngSeed::Fixed(2018), ..Config::default() })]

        #[test]
        fn a_cut_leaves_what_was_whole(payloads in payloads(), cut in any::<Index>()) {
            let (bytes, all) = segment(&payloads);
            let cut = cut.index(bytes.len() + 1);
            let whole: Vec<u64> = all.into_iter().filter(|end| *end <= cut as u64).collect();
            prop_assert_eq!(ends(&bytes[..cut]), whole);
        }

        #[test]
        fn a_flip_costs_one_frame(payloads in payloads(), at in any::<Index>(), bit in 0..8_u32) {
            let (mut bytes, all) = segment(&payloads);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let hit = all.iter().position(|end| (at as u64) < *end);
            let hit = hit.filter(|_| at >= HEADER.len());
            let whole = all.iter().enumerate().filter(|(i, _)| Some(*i) != hit);
            prop_assert_eq!(ends(&bytes), whole.map(|(_, end)| *end).collect::<Vec<_>>());
        }

        #[test]
        fn noise_is_never_a_frame(noise in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(ends(&noise), Vec::<u64>::new());
        }
    }
}
