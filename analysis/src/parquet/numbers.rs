//! A column of a row group as numbers, decoded into memory that is used again.
//!
//! Only what [`super::write`] writes is understood: data pages of version 1, compressed by Snappy, floats and
//! flags as they are, integers as they are or by a dictionary. A file's bytes are those that were sealed
//! before they come here, so that what is refused is a file of another writer.

use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use polars_parquet_format::{Encoding, PageHeader, PageType};

use super::bits::{Runs, bits};

/// The longest header of a page.
const HEADER: usize = 1 << 16;

/// Why a column is not understood.
pub(super) type Reason = String;

/// How values are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    Flags,
    Integers,
    Floats,
}

/// A thread's memory for the pages that it decodes.
#[derive(Default)]
pub(crate) struct Room {
    /// The bytes of a column of a row group.
    pub(super) chunk: Vec<u8>,
    page: Vec<u8>,
    snappy: snap::raw::Decoder,
    dictionary: Vec<f64>,
    dense: Vec<f64>,
}

/// Values of a page that are not null.
enum Dense<'a> {
    Bytes(&'a [u8]),
    Numbers(&'a [f64]),
}

impl Dense<'_> {
    fn count(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Bytes(bytes) => bytes.len() / 8,
        }
    }

    /// The value at a place; NaN beyond the last.
    fn at(&self, place: usize) -> f64 {
        let value = match self {
            Self::Numbers(numbers) => numbers.get(place).copied(),
            Self::Bytes(bytes) => {
                bytes.as_chunks().0.get(place).map(|&word| f64::from_le_bytes(word))
            }
        };
        value.unwrap_or(f64::NAN)
    }

    /// Copies from a place on; `None` where there are too few.
    fn copy(&self, from: usize, values: &mut [f64]) -> Option<()> {
        let range = from..from + values.len();
        match self {
            Self::Numbers(numbers) => values.copy_from_slice(numbers.get(range)?),
            Self::Bytes(bytes) => {
                let words = bytes.get(8 * range.start..8 * range.end)?.as_chunks().0;
                for (value, word) in values.iter_mut().zip(words) {
                    *value = f64::from_le_bytes(*word);
                }
            }
        }
        Some(())
    }
}

impl Room {
    /// Decodes so many bytes of [`Room::chunk`] into as many values as there are rows, NaN for null.
    /// Whether there is any value.
    pub(super) fn decode(
        &mut self,
        length: usize,
        stored: Stored,
        values: &mut [f64],
    ) -> Result<bool, Reason> {
        let (mut at, mut rows, mut found) = (0, 0, false);
        self.dictionary.clear();
        while rows < values.len() {
            let (header, body) = header(&self.chunk[..length], at)?;
            let end = body + size(header.compressed_page_size)?;
            let compressed = self.chunk[..length].get(body..end).ok_or("a page ends too early")?;
            let page_length = size(header.uncompressed_page_size)?;
            if self.page.len() < page_length {
                self.page.resize(page_length, 0);
            }
            let page = &mut self.page[..page_length];
            let decoded = self.snappy.decompress(compressed, page);
            if decoded.map_err(|error| error.to_string())? != page_length {
                return Err("a page has another length than its header says".into());
            }
            at = end;
            match (header.type_, header.data_page_header) {
                (PageType::DICTIONARY_PAGE, _) => integers(page, &mut self.dictionary),
                (PageType::DATA_PAGE, Some(data)) => {
                    let count = size(data.num_values)?;
                    let room = values.get_mut(rows..rows + count).ok_or("there are more values")?;
                    let dense = (&mut self.dense, self.dictionary.as_slice());
                    found |= page_values(page, data.encoding, stored, dense, room)?;
                    rows += count;
                }
                (other, _) => return Err(format!("a page is of type {}", other.0)),
            }
        }
        Ok(found)
    }
}

/// The header of the page that begins at a place of a column, and where its body begins.
fn header(column: &[u8], at: usize) -> Result<(PageHeader, usize), Reason> {
    let mut rest = column.get(at..).ok_or("a column ends too early")?;
    let length = rest.len();
    let mut protocol = TCompactInputProtocol::new(&mut rest, HEADER);
    let header = PageHeader::read_from_in_protocol(&mut protocol);
    let header = header.map_err(|error| format!("a page's header: {error}"))?;
    Ok((header, at + length - rest.len()))
}

fn size(number: i32) -> Result<usize, Reason> {
    number.try_into().map_err(|_| format!("a page says that it has {number} of something"))
}

fn integers(bytes: &[u8], values: &mut Vec<f64>) {
    values.clear();
    values.extend(bytes.as_chunks().0.iter().map(|word| i64::from_le_bytes(*word) as f64));
}

/// The values of a data page: levels that say which rows have one, then those.
fn page_values(
    page: &[u8],
    encoding: Encoding,
    stored: Stored,
    (dense, dictionary): (&mut Vec<f64>, &[f64]),
    values: &mut [f64],
) -> Result<bool, Reason> {
    const SHORT: &str = "a page ends within its levels";
    let (length, rest) = page.split_first_chunk().ok_or(SHORT)?;
    let (levels, rest) =
        rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(SHORT)?;
    dense.clear();
    let dense = match (stored, encoding) {
        (Stored::Floats, Encoding::PLAIN) => Dense::Bytes(rest),
        (Stored::Integers, Encoding::PLAIN) => {
            integers(rest, dense);
            Dense::Numbers(dense)
        }
        (Stored::Flags, Encoding::PLAIN) => {
            dense.extend(bits(rest).map(|bit| f64::from(u8::from(bit))));
            Dense::Numbers(dense)
        }
        (Stored::Integers, Encoding::RLE_DICTIONARY) => {
            look_up(rest, dictionary, values.len(), dense)?;
            Dense::Numbers(dense)
        }
        (_, other) => return Err(format!("values are in encoding {}", other.0)),
    };
    spread(levels, &dense, values)
}

/// Numbers by their places in a dictionary.
fn look_up(
    bytes: &[u8],
    dictionary: &[f64],
    most: usize,
    dense: &mut Vec<f64>,
) -> Result<(), Reason> {
    // Where all rows are null there is no width.
    let Some((&width, bytes)) = bytes.split_first() else { return Ok(()) };
    let known = |place: u32| dictionary.get(place as usize).copied();
    for run in Runs::new(bytes, width.into()) {
        let run = run?;
        let before = dense.len();
        if let Some(place) = run.same() {
            let value = known(place).ok_or("a value is not in the dictionary")?;
            dense.resize(most.min(before.saturating_add(run.count())), value);
        } else {
            for group in run.groups() {
                // What fills up the last group has no place.
                let from = dense.len();
                dense.resize(from + group.len(), f64::NAN);
                for (value, place) in dense[from..].iter_mut().zip(group) {
                    *value = known(place).unwrap_or(f64::NAN);
                }
                if dense.len() >= most {
                    break;
                }
            }
            dense.truncate(most);
        }
        if dense.len() == most {
            break;
        }
    }
    Ok(())
}

/// Puts values to the rows that have one, and NaN to the others. Whether any has one.
fn spread(levels: &[u8], dense: &Dense<'_>, values: &mut [f64]) -> Result<bool, Reason> {
    const SHORT: &str = "there are too few values";
    let (mut row, mut taken) = (0_usize, 0);
    for run in Runs::new(levels, 1) {
        let run = run?;
        if let Some(level) = run.same() {
            let part = part(values, &mut row, run.count());
            if level == 0 {
                part.fill(f64::NAN);
            } else {
                dense.copy(taken, part).ok_or(SHORT)?;
                taken += part.len();
            }
            continue;
        }
        for &byte in run.bytes() {
            for (bit, value) in part(values, &mut row, 8).iter_mut().enumerate() {
                // Which rows have a value cannot be guessed: one is looked at anyway.
                let (has, next) = (byte >> bit & 1 != 0, dense.at(taken));
                *value = if has { next } else { f64::NAN };
                taken += usize::from(has);
            }
        }
    }
    if taken > dense.count() {
        return Err(SHORT.into());
    }
    if row == values.len() { Ok(taken > 0) } else { Err("there are too few levels".into()) }
}

/// The next rows, of which there may be fewer.
fn part<'v>(values: &'v mut [f64], row: &mut usize, count: usize) -> &'v mut [f64] {
    let (start, end) = (*row, values.len().min(row.saturating_add(count)));
    *row = end;
    &mut values[start..end]
}
