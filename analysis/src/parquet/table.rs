//! Rows by column, on their way to a row group.

use polars::prelude::{
    BooleanChunkedBuilder, ChunkedBuilder, Column, DataFrame, DataType, Field, Float64Type,
    Int64Type, IntoColumn, PolarsResult, PrimitiveChunkedBuilder, Schema, StringChunkedBuilder,
};

use crate::schema::Type;

/// A value that is the same for many rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    Null,
    Integer(i64),
    Float(f64),
    Text(String),
}

/// Columns that are being filled. Every column must have the same length when the table is taken.
pub(crate) struct Table {
    builders: Vec<Builder>,
}

enum Builder {
    Bool(BooleanChunkedBuilder),
    Integer(PrimitiveChunkedBuilder<Int64Type>),
    Float(PrimitiveChunkedBuilder<Float64Type>),
    Text(StringChunkedBuilder),
}

/// A column's type as polars names it.
pub(crate) fn data_type(kind: Type) -> DataType {
    match kind {
        Type::Bool => DataType::Boolean,
        Type::Integer => DataType::Int64,
        Type::Float => DataType::Float64,
        Type::Text => DataType::String,
    }
}

/// The columns as polars names them.
pub(super) fn schema(columns: &[(String, Type)]) -> Schema {
    columns.iter().map(|(name, kind)| Field::new(name.as_str().into(), data_type(*kind))).collect()
}

const KIND: &str = "values have the type of their column";

impl Table {
    /// Fresh columns with room for a number of rows.
    pub(crate) fn new(columns: &[(String, Type)], rows: usize) -> Self {
        let builder = |(name, kind): &(String, Type)| {
            let name = name.as_str().into();
            match kind {
                Type::Bool => Builder::Bool(BooleanChunkedBuilder::new(name, rows)),
                Type::Integer => Builder::Integer(PrimitiveChunkedBuilder::new(name, rows)),
                Type::Float => Builder::Float(PrimitiveChunkedBuilder::new(name, rows)),
                Type::Text => Builder::Text(StringChunkedBuilder::new(name, rows)),
            }
        };
        Self { builders: columns.iter().map(builder).collect() }
    }

    pub(crate) fn bools(&mut self, at: usize, values: impl Iterator<Item = Option<bool>>) {
        let Builder::Bool(builder) = &mut self.builders[at] else { unreachable!("{KIND}") };
        values.for_each(|value| builder.append_option(value));
    }

    pub(crate) fn integers(&mut self, at: usize, values: impl Iterator<Item = Option<i64>>) {
        let Builder::Integer(builder) = &mut self.builders[at] else { unreachable!("{KIND}") };
        values.for_each(|value| builder.append_option(value));
    }

    pub(crate) fn floats(&mut self, at: usize, values: impl Iterator<Item = Option<f64>>) {
        let Builder::Float(builder) = &mut self.builders[at] else { unreachable!("{KIND}") };
        values.for_each(|value| builder.append_option(value));
    }

    pub(crate) fn texts<'t>(&mut self, at: usize, values: impl Iterator<Item = Option<&'t str>>) {
        let Builder::Text(builder) = &mut self.builders[at] else { unreachable!("{KIND}") };
        values.for_each(|value| builder.append_option(value));
    }

    /// The same value in a number of rows; a whole number in a column of floats is a float.
    pub(crate) fn repeat(&mut self, at: usize, value: &Datum, rows: usize) {
        use std::iter::repeat_n;
        match (value, &self.builders[at]) {
            (Datum::Null, Builder::Bool(_)) => self.bools(at, repeat_n(None, rows)),
            (Datum::Null, Builder::Integer(_)) => self.integers(at, repeat_n(None, rows)),
            (Datum::Null, Builder::Float(_)) => self.floats(at, repeat_n(None, rows)),
            (Datum::Null, Builder::Text(_)) => self.texts(at, repeat_n(None, rows)),
            (Datum::Integer(value), Builder::Float(_)) => {
                self.floats(at, repeat_n(Some(*value as f64), rows));
            }
            (Datum::Integer(value), _) => self.integers(at, repeat_n(Some(*value), rows)),
            (Datum::Float(value), _) => self.floats(at, repeat_n(Some(*value), rows)),
            (Datum::Text(value), _) => self.texts(at, repeat_n(Some(value.as_str()), rows)),
        }
    }

    /// A row of values, one per column.
    pub(crate) fn row(&mut self, values: &[Datum]) {
        debug_assert_eq!(values.len(), self.builders.len());
        for (at, value) in values.iter().enumerate() {
            self.repeat(at, value, 1);
        }
    }

    /// The rows as one frame, one chunk per column.
    pub(crate) fn finish(self) -> PolarsResult<DataFrame> {
        let finish = |builder| -> Column {
            match builder {
                Builder::Bool(builder) => builder.finish().into_column(),
                Builder::Integer(builder) => builder.finish().into_column(),
                Builder::Float(builder) => builder.finish().into_column(),
                Builder::Text(builder) => builder.finish().into_column(),
            }
        };
        DataFrame::new_infer_height(self.builders.into_iter().map(finish).collect())
    }
}
