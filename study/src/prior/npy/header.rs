//! What stands before the values: `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.

use super::{MAGIC, NpyError};

/// Turns bytes into numbers; the flag says that the most significant byte of each comes first.
type Decode = fn(&[u8], bool) -> Vec<f64>;

/// A header that can be read as a table.
pub(super) struct Header {
    /// Values are 0 or 1.
    pub(super) truth: bool,
    pub(super) big_endian: bool,
    pub(super) decode: Decode,
    pub(super) fortran_order: bool,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Bytes per value.
    size: usize,
    /// As it is written.
    shape: String,
}

impl Header {
    /// Reads the header, and returns it with the bytes behind it.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, &[u8]), NpyError> {
        let (text, data) = split(bytes)?;
        // Latin-1 in the first two versions, where names of fields may have letters beyond ASCII.
        let text = String::from_utf8_lossy(text);
        let malformed = || NpyError::Header { text: shorten(&text) };
        let Entries { descr, order, shape } = Entries::read(&text).ok_or_else(malformed)?;
        let fortran_order = match order {
            "True" => true,
            "False" => false,
            _ => return Err(malformed()),
        };
        let (big_endian, kind, size, decode) = value_type(descr).ok_or_else(|| {
            let structured = descr.starts_with('[');
            let write =
                if structured { "np.array(a.tolist(), dtype=float)" } else { "a.astype(float)" };
            NpyError::Type { found: shorten(descr), write }
        })?;
        let dimensions = dimensions(shape).ok_or_else(malformed)?;
        let shape = shorten(shape);
        let (rows, columns) = match dimensions[..] {
            [rows] => (rows, 1),
            [rows, columns] => (rows, columns),
            _ => return Err(NpyError::Dimensions { shape }),
        };
        let truth = kind == "b1";
        Ok((Self { truth, big_endian, decode, fortran_order, rows, columns, size, shape }, data))
    }

    /// Checks that the values take `found` bytes.
    pub(super) fn check_length(&self, found: usize) -> Result<(), NpyError> {
        let &Self { rows, columns, size, ref shape, .. } = self;
        let needed = rows.checked_mul(columns).and_then(|values| values.checked_mul(size));
        match needed {
            Some(needed) if needed == found => Ok(()),
            Some(needed) if needed < found => {
                Err(NpyError::Excess { shape: shape.clone(), extra: found - needed })
            }
            _ => Err(NpyError::CutOff { shape: shape.clone(), size, found }),
        }
    }
}

/// The text of the header, and what is behind it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), NpyError> {
    let rest = bytes.get(MAGIC.len()..).unwrap_or_default();
    let (&[major, minor], rest) = rest.split_first_chunk().ok_or(NpyError::HeaderCutOff)?;
    let (length, rest) = match (major, minor) {
        (1, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or(NpyError::HeaderCutOff)?;
            (u32::from(u16::from_le_bytes(*length)), rest)
        }
        (2 | 3, 0) => {
            let (length, rest) = rest.split_first_chunk().ok_or(NpyError::HeaderCutOff)?;
            (u32::from_le_bytes(*length), rest)
        }
        _ => return Err(NpyError::Version { major, minor }),
    };
    rest.split_at_checked(length as usize).ok_or(NpyError::HeaderCutOff)
}

/// The three values of the dictionary, as they are written.
struct Entries<'a> {
    descr: &'a str,
    order: &'a str,
    shape: &'a str,
}

impl<'a> Entries<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('{')?;
        let (mut descr, mut order, mut shape) = (None, None, None);
        while !rest.trim_start().starts_with('}') {
            let (key, after) = literal(rest)?;
            let (value, after) = literal(after.strip_prefix(':')?)?;
            let entry = match unquote(key)? {
                "descr" => &mut descr,
                "fortran_order" => &mut order,
                "shape" => &mut shape,
                _ => return None,
            };
            if entry.replace(value).is_some() {
                return None;
            }
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        let alone = rest.trim() == "}";
        alone.then_some(Self { descr: descr?, order: order?, shape: shape? })
    }
}

/// Splits off the Python literal at the start: it ends before the first comma, colon or closing
/// bracket that is neither in brackets nor in quotes.
fn literal(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ',' | ':' | ')' | ']' | '}') if depth == 0 => {
                return Some((text[..i].trim(), &text[i..]));
            }
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn unquote(text: &str) -> Option<&str> {
    let within = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    within('\'').or_else(|| within('"'))
}

/// The numbers in `()`, `(3,)` or `(3, 4)`; Python 2 wrote `3L`.
fn dimensions(shape: &str) -> Option<Vec<usize>> {
    let inside = shape.strip_prefix('(')?.strip_suffix(')')?.trim();
    let inside = inside.strip_suffix(',').unwrap_or(inside);
    if inside.is_empty() {
        return Some(Vec::new());
    }
    let number = |text: &str| {
        let digits = text.trim();
        let digits = digits.strip_suffix('L').unwrap_or(digits);
        let valid = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // What is beyond usize is too large for any file, and so is usize::MAX.
        valid.then(|| digits.parse().unwrap_or(usize::MAX))
    };
    inside.split(',').map(number).collect()
}

/// Byte order, kind, bytes per value and decoder of a type such as `'<f8'`.
fn value_type(descr: &str) -> Option<(bool, &str, usize, Decode)> {
    let (order, kind) = unquote(descr)?.split_at_checked(1)?;
    let (size, decode) = decoder(kind)?;
    let big_endian = match order {
        "<" => false,
        ">" => true,
        "|" if size == 1 => false,
        _ => return None,
    };
    Some((big_endian, kind, size, decode))
}

fn decoder(kind: &str) -> Option<(usize, Decode)> {
    Some(match kind {
        "f8" => (8, |data, big| decode(data, big, f64::from_le_bytes)),
        "f4" => (4, |data, big| decode(data, big, |item| f64::from(f32::from_le_bytes(item)))),
        "i8" => (8, |data, big| decode(data, big, |item| i64::from_le_bytes(item) as f64)),
        "i4" => (4, |data, big| decode(data, big, |item| f64::from(i32::from_le_bytes(item)))),
        "i2" => (2, |data, big| decode(data, big, |item| f64::from(i16::from_le_bytes(item)))),
        "i1" => (1, |data, big| decode(data, big, |item| f64::from(i8::from_le_bytes(item)))),
        "u8" => (8, |data, big| decode(data, big, |item| u64::from_le_bytes(item) as f64)),
        "u4" => (4, |data, big| decode(data, big, |item| f64::from(u32::from_le_bytes(item)))),
        "u2" => (2, |data, big| decode(data, big, |item| f64::from(u16::from_le_bytes(item)))),
        "u1" | "b1" => (1, |data, big| decode(data, big, |[item]| f64::from(item))),
        _ => return None,
    })
}

fn decode<const N: usize>(data: &[u8], big: bool, value: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    let little = |&item: &[u8; N]| {
        let mut item = item;
        if big {
            item.reverse();
        }
        item
    };
    data.as_chunks().0.iter().map(|item| value(little(item))).collect()
}

fn shorten(text: &str) -> String {
    text.trim().chars().take(80).collect()
}
