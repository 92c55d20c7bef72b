//! A matrix of numbers from a Parquet file, as data of a study.

use std::io::Cursor;
use std::path::Path;

use polars::prelude::{DataFrame, DataType, ParquetReader, SerReader};

use crate::parquet::FileError;

/// Rows of numbers; NaN where an entry is missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// How many rows.
    pub rows: usize,
    /// How many columns.
    pub columns: usize,
    /// Row after row.
    pub values: Vec<f64>,
}

/// The column in which pandas keeps row numbers that are not 0, 1, 2, ..
const ROW_NUMBERS: &str = "__index_level_0__";

/// Reads every column, all of which have to be numeric; nulls are missing entries. `path` is the name
/// that errors give.
pub fn read(path: &Path, bytes: Vec<u8>) -> Result<Matrix, FileError> {
    let reader = ParquetReader::new(Cursor::new(bytes));
    let frame = reader.finish().map_err(FileError::parquet("read", path))?;
    let (rows, columns) = (frame.height(), frame.width());
    let mut values = vec![f64::NAN; rows * columns];
    for (j, column) in numeric(&frame, path)?.iter().enumerate() {
        let column = column.f64().map_err(FileError::parquet("read", path))?;
        for (i, value) in column.iter().enumerate() {
            values[i * columns + j] = value.unwrap_or(f64::NAN);
        }
    }
    Ok(Matrix { rows, columns, values })
}

fn numeric(frame: &DataFrame, path: &Path) -> Result<Vec<polars::prelude::Column>, FileError> {
    let cast = |column: &polars::prelude::Column| {
        let refuse = |reason| FileError::Parquet { doing: "read", path: path.into(), reason };
        if column.name() == ROW_NUMBERS {
            let reason = "it holds row numbers, which are not data (pandas: index=False)";
            return Err(refuse(reason.to_owned()));
        }
        if !column.dtype().is_primitive_numeric() {
            let reason = format!(
                "column {} holds {}, and a matrix has numbers alone",
                column.name(),
                column.dtype()
            );
            return Err(refuse(reason));
        }
        column.cast(&DataType::Float64).map_err(FileError::parquet("read", path))
    };
    frame.columns().iter().map(cast).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars::prelude::{IntoColumn, NamedFrom, ParquetWriter, Series};

    fn written(columns: Vec<Series>) -> Result<Matrix, FileError> {
        let height = columns[0].len();
        let columns = columns.into_iter().map(IntoColumn::into_column).collect();
        let mut frame = DataFrame::new(height, columns).unwrap();
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes).finish(&mut frame).unwrap();
        read(Path::new("m.parquet"), bytes)
    }

    #[test]
    fn numbers_of_any_type_are_read_row_by_row() {
        let matrix = written(vec![
            Series::new("a".into(), [1_i32, 2, 3]),
            Series::new("b".into(), [Some(0.5), None, Some(-1.5)]),
        ])
        .unwrap();
        assert_eq!((matrix.rows, matrix.columns), (3, 2));
        assert_eq!(matrix.values[..2], [1.0, 0.5]);
        assert!(matrix.values[3].is_nan());
        assert_eq!(matrix.values[4..], [3.0, -1.5]);
    }

    #[test]
    fn text_is_refused_by_name() {
        let error = written(vec![Series::new("name".into(), ["x"])]).unwrap_err();
        assert!(error.to_string().contains("column name holds"), "{error}");
    }

    #[test]
    fn row_numbers_of_pandas_are_refused() {
        let columns =
            vec![Series::new("a".into(), [0.5, 1.0]), Series::new(ROW_NUMBERS.into(), [7_i64, 9])];
        let error = written(columns).unwrap_err();
        assert!(error.to_string().contains("index=False"), "{error}");
    }
}
