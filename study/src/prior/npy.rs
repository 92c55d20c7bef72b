//! NumPy's NPY files: one array of numbers each.
//!
//! A file is the magic bytes, a version, the length of a header, the header (a Python dictionary
//! that gives the type, the order and the shape), and then the values and nothing else. A matrix is
//! read as it is, a vector as one column. Nothing is allocated before the shape is known to fit the
//! bytes that are there.

mod header;
#[cfg(test)]
mod tests;

use header::Header;

const MAGIC: &[u8] = b"\x93NUMPY";

/// The length of the header in what [`to_npy`] writes: with the ten bytes before it, the values
/// begin at 128, as in what np.save writes.
const HEADER: usize = 118;

/// An NPY file that is not a table of numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// A version that NumPy does not have.
    #[error(
        "NPY version {major}.{minor} is not 1.0, 2.0 or 3.0; write the file with \
         np.save(path, a.astype(float))"
    )]
    Version {
        /// Before the point.
        major: u8,
        /// After the point.
        minor: u8,
    },
    /// The file ends before its values begin.
    #[error("the NPY file ends within its header; it was cut off, write it again with np.save")]
    HeaderCutOff,
    /// The header is not the dictionary that np.save writes.
    #[error("the NPY header {text:?} is not one of np.save; write np.save(path, a.astype(float))")]
    Header {
        /// The header, shortened.
        text: String,
    },
    /// The values are not real numbers of a usual width.
    #[error("NPY values of type {found}; write np.save(path, {write})")]
    Type {
        /// As the header gives it, shortened.
        found: String,
        /// What turns such an array into one that can be read.
        write: &'static str,
    },
    /// Neither a vector nor a matrix.
    #[error(
        "an NPY array of shape {shape} is neither a vector nor a matrix; write \
         np.save(path, a.reshape(rows, columns))"
    )]
    Dimensions {
        /// As the header gives it, shortened.
        shape: String,
    },
    /// Fewer bytes than the shape needs.
    #[error(
        "{found} bytes are too few for an NPY array of shape {shape} with {size} bytes per value; \
         the file was cut off, write it again with np.save"
    )]
    CutOff {
        /// As the header gives it, shortened.
        shape: String,
        /// Bytes per value.
        size: usize,
        /// Bytes after the header.
        found: usize,
    },
    /// More bytes than the shape needs.
    #[error("bytes after the NPY array of shape {shape}: {extra}; write one array per file")]
    Excess {
        /// As the header gives it, shortened.
        shape: String,
        /// Bytes after the last value.
        extra: usize,
    },
    /// A truth value that is neither 0 nor 1.
    #[error("byte {byte} is not an NPY truth value; write np.save(path, a.astype(float))")]
    Truth {
        /// What stands in its place.
        byte: u8,
    },
}

/// The values of an NPY file, row after row; NaN and infinities as they are.
#[derive(Debug)]
pub(super) struct Array {
    pub(super) columns: usize,
    pub(super) values: Vec<f64>,
}

/// Whether the bytes claim to be an NPY file.
pub(super) fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads a file for which [`is_npy`] holds. Values of type f8 keep their bits, integers of more
/// than 53 bits are rounded as they are in text.
pub(super) fn read(bytes: &[u8]) -> Result<Array, NpyError> {
    let (header, data) = Header::read(bytes)?;
    let &Header { rows, columns, .. } = &header;
    header.check_length(data.len())?;
    if header.truth
        && let Some(&byte) = data.iter().find(|&&byte| byte > 1)
    {
        return Err(NpyError::Truth { byte });
    }
    let values = (header.decode)(data, header.big_endian);
    // Where one dimension is 0, the other may be anything: there is nothing to go through.
    let by_columns = header.fortran_order && !values.is_empty();
    Ok(Array { columns, values: if by_columns { by_rows(rows, columns, &values) } else { values } })
}

/// A matrix given column after column.
fn by_rows(rows: usize, columns: usize, values: &[f64]) -> Vec<f64> {
    let mut turned = Vec::with_capacity(values.len());
    for row in 0..rows {
        turned.extend((0..columns).map(|column| values[column * rows + row]));
    }
    turned
}

/// Writes a matrix, given row after row, as np.save does: version 1.0, '<f8', C order.
///
/// # Panics
/// Where `values` are not `rows` times `columns`.
pub fn to_npy(rows: usize, columns: usize, values: &[f64]) -> Vec<u8> {
    assert_eq!(rows.checked_mul(columns), Some(values.len()), "{rows} rows of {columns} columns");
    let header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let mut bytes = Vec::with_capacity(MAGIC.len() + 4 + HEADER + 8 * values.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    bytes.extend_from_slice(&(HEADER as u16).to_le_bytes());
    // Two numbers of 20 digits, the most that usize has, leave room.
    bytes.extend_from_slice(format!("{header:<width$}\n", width = HEADER - 1).as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}
