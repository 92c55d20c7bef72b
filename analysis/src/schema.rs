//! The columns of `records/`: what identifies a row, what its cell is, what is swept, what was
//! measured, in this order.

use study::record::{COLUMNS, LEADING};

pub use study::record::Type;

use crate::description::{CellDescription, Scalar};

/// One column, as the codebook has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type.
    pub kind: Type,
    /// One line.
    pub meaning: String,
    /// Whether rows may lack a value.
    pub nullable: bool,
}

/// How many columns the cell fills by [`study::record::cell_columns`], from "setting" on.
pub(crate) const CELL: usize = 7;
pub(crate) const STUDY_COLUMN: usize = 0;
pub(crate) const CELL_COLUMN: usize = 1;
pub(crate) const REPLICATE_COLUMN: usize = 2;
pub(crate) const STATUS_COLUMN: usize = 3;
pub(crate) const FIRST_OF_CELL: usize = 4;
pub(crate) const T_COLUMN: usize = FIRST_OF_CELL + CELL;
pub(crate) const FIRST_SWEPT: usize = LEADING.len();

/// A key that is a number in one cell and a name in another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the swept key {key} is a name in one cell and a number in another; use one of the two")]
pub struct MixedTypes {
    /// The dotted key.
    pub key: String,
}

/// The swept keys of all cells by name, with the type that holds all of a key's values.
pub fn swept(cells: &[CellDescription]) -> Result<Vec<(String, Type)>, MixedTypes> {
    types(cells.iter().flat_map(|cell| &cell.swept))
}

/// Keys by name, with the type that holds all of a key's values.
pub fn types<'a>(
    values: impl Iterator<Item = &'a (String, Scalar)>,
) -> Result<Vec<(String, Type)>, MixedTypes> {
    let mut keys: Vec<(String, Type)> = Vec::new();
    for (key, value) in values {
        let kind = match value {
            Scalar::Integer(_) => Type::Integer,
            Scalar::Float(_) => Type::Float,
            Scalar::Text(_) => Type::Text,
        };
        match keys.iter_mut().find(|(name, _)| name == key) {
            None => keys.push((key.clone(), kind)),
            Some((_, known)) if *known == kind => {}
            Some((_, known)) if *known == Type::Text || kind == Type::Text => {
                return Err(MixedTypes { key: key.clone() });
            }
            Some((_, known)) => *known = Type::Float,
        }
    }
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(keys)
}

/// All columns of the records, in order.
pub fn columns(swept: &[(String, Type)]) -> Vec<Column> {
    let leading = LEADING.iter().map(|column| Column {
        name: column.name.into(),
        kind: column.kind,
        meaning: column.meaning.into(),
        nullable: !column.null.is_empty(),
    });
    let swept = swept.iter().map(|(key, kind)| Column {
        name: key.clone(),
        kind: *kind,
        meaning: format!("value of {key} in the study file, which sweeps it"),
        nullable: true,
    });
    leading.chain(swept).chain(measured()).collect()
}

/// The measured columns.
pub(crate) fn measured() -> impl Iterator<Item = Column> {
    COLUMNS.iter().map(|column| Column {
        name: column.name.into(),
        kind: column.kind.into(),
        meaning: column.meaning.into(),
        nullable: true,
    })
}

/// The columns that hold the records' own values, enough to read them back: names and types.
pub(crate) fn of_records() -> Vec<(String, Type)> {
    let key = [CELL_COLUMN, REPLICATE_COLUMN, STATUS_COLUMN, T_COLUMN].map(|at| LEADING[at]);
    let key = key.into_iter().map(|column| (column.name.to_owned(), column.kind));
    key.chain(measured().map(|column| (column.name, column.kind))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::cell::{Cell, CellId, Ground, Policy};

    fn cell(swept: &[(&str, Scalar)]) -> CellDescription {
        CellDescription {
            id: CellId(1),
            cell: Cell {
                shape: [0; 32],
                noise_variance: 0.1,
                ground: Ground::Finite,
                policy: Policy::Random,
            },
            prior: 0,
            swept: swept.iter().map(|(key, value)| ((*key).into(), value.clone())).collect(),
            replicates: 1,
            checkpoints: vec![1],
        }
    }

    #[test]
    fn swept_keys_are_sorted_and_wide_enough() {
        let cells = [
            cell(&[("prior.b", Scalar::Integer(1)), ("prior.a", Scalar::Text("x".into()))]),
            cell(&[("prior.b", Scalar::Float(0.5))]),
        ];
        let keys = swept(&cells).unwrap();
        assert_eq!(keys, [("prior.a".into(), Type::Text), ("prior.b".into(), Type::Float)]);
        let columns = columns(&keys);
        assert_eq!(columns[FIRST_SWEPT].name, "prior.a");
        assert_eq!(columns[FIRST_SWEPT + 2].name, "x");
        assert_eq!(columns[T_COLUMN].name, "t");
        assert_eq!(columns.len(), FIRST_SWEPT + 2 + COLUMNS.len());
    }

    #[test]
    fn a_key_is_a_name_or_a_number() {
        let cells = [
            cell(&[("prior.a", Scalar::Float(1.0))]),
            cell(&[("prior.a", Scalar::Text("x".into()))]),
        ];
        assert_eq!(swept(&cells), Err(MixedTypes { key: "prior.a".into() }));
    }

    #[test]
    fn the_cells_own_columns_stand_where_the_schema_has_them() {
        let cell = cell(&[]);
        let names = study::record::cell_columns(&cell.cell).map(|(name, _)| name);
        let leading = &LEADING[FIRST_OF_CELL..FIRST_OF_CELL + CELL];
        assert!(leading.iter().map(|column| column.name).eq(names));
    }
}
