//! Parquet's hybrid of runs and packed bits: small numbers of one width.
//!
//! A header is a number in 7-bit groups, lowest first. Even: that half is how often the one value follows.
//! Odd: that half is how many groups of eight values follow, packed from the lowest bit on.

use super::numbers::Reason;

/// The runs of some bytes.
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    width: usize,
}

/// A number of values.
pub(super) struct Run<'a> {
    /// The value that all have, little-endian; or all of them, packed.
    bytes: &'a [u8],
    width: usize,
    count: usize,
    is_packed: bool,
}

/// The widest number.
const WIDEST: usize = 32;

impl<'a> Runs<'a> {
    pub(super) fn new(bytes: &'a [u8], width: usize) -> Self {
        Self { bytes, width }
    }

    fn run(&mut self) -> Result<Run<'a>, Reason> {
        const SHORT: &str = "a run ends too early";
        if self.width > WIDEST {
            return Err(format!("numbers have {} bits", self.width));
        }
        let (mut header, mut shift) = (0_usize, 0_u32);
        loop {
            let (&byte, rest) = self.bytes.split_first().ok_or(SHORT)?;
            self.bytes = rest;
            header |= usize::from(byte & 0x7f).checked_shl(shift).ok_or(SHORT)?;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        let (is_packed, number) = (header & 1 == 1, header >> 1);
        let length = if is_packed {
            // The last group may end where its values do.
            number.saturating_mul(self.width).min(self.bytes.len())
        } else {
            self.width.div_ceil(8)
        };
        let (bytes, rest) = self.bytes.split_at_checked(length).ok_or(SHORT)?;
        self.bytes = rest;
        let count = if is_packed { number.saturating_mul(8) } else { number };
        Ok(Run { bytes, width: self.width, count, is_packed })
    }
}

impl<'a> Iterator for Runs<'a> {
    type Item = Result<Run<'a>, Reason>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.bytes.is_empty()).then(|| self.run())
    }
}

impl<'a> Run<'a> {
    /// How many values there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The one value, where all are the same.
    pub(super) fn same(&self) -> Option<u32> {
        let value = |value, (at, &byte): (usize, &u8)| value | u32::from(byte) << (8 * at);
        (!self.is_packed).then(|| self.bytes.iter().enumerate().fold(0, value))
    }

    /// The packed values' bytes.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The packed values, eight at a time.
    pub(super) fn groups(&self) -> impl Iterator<Item = [u32; 8]> + use<'a> {
        let width = self.width;
        let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
        self.bytes.chunks(width.max(1)).map(move |group| {
            let mut padded = [0; WIDEST + 8];
            padded[..group.len()].copy_from_slice(group);
            let mut numbers = [0; 8];
            for (place, number) in numbers.iter_mut().enumerate() {
                let bit = place * width;
                let word =
                    padded[bit / 8..].first_chunk().expect("a group is padded by eight bytes");
                *number = (u64::from_le_bytes(*word) >> (bit % 8) & mask) as u32;
            }
            numbers
        })
    }
}

/// Bits from the lowest of every byte on.
pub(super) fn bits(bytes: &[u8]) -> impl Iterator<Item = bool> + '_ {
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_formats_own_example() {
        // The numbers 0 .. 7 in three bits, from the specification, then a run of five times 4.
        let bytes = [3, 0b1000_1000, 0b1100_0110, 0b1111_1010, 10, 4];
        let runs: Vec<Run<'_>> = Runs::new(&bytes, 3).map(Result::unwrap).collect();
        assert_eq!(runs[0].groups().collect::<Vec<[u32; 8]>>(), [[0, 1, 2, 3, 4, 5, 6, 7]]);
        assert_eq!((runs[1].same(), runs[1].count(), runs.len()), (Some(4), 5, 2));
        assert_eq!(bits(&[5]).take(4).collect::<Vec<bool>>(), [true, false, true, false]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_runs_or_refused(bytes: Vec<u8>, width in 0_usize..40) {
            for run in Runs::new(&bytes, width).take_while(Result::is_ok).flatten() {
                prop_assert!(run.same().is_some() || 8 * run.groups().count() <= run.count().max(8));
            }
        }

        #[test]
        fn packed_numbers_come_back(width in 1_usize..33, seeds in prop::collection::vec(any::<u32>(), 8)) {
            let mask = u32::MAX >> (32 - width);
            let numbers: Vec<u32> = seeds.iter().map(|seed| seed & mask).collect();
            let mut bytes = vec![0; width + 1];
            bytes[0] = 3;
            for (place, number) in numbers.iter().enumerate() {
                for bit in (0..width).filter(|bit| number >> bit & 1 != 0) {
                    let at = place * width + bit;
                    bytes[1 + at / 8] |= 1 << (at % 8);
                }
            }
            let run = Runs::new(&bytes, width).next().unwrap().unwrap();
            prop_assert_eq!(run.groups().flatten().collect::<Vec<u32>>(), numbers);
        }
    }
}
