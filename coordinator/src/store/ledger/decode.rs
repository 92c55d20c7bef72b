//! Rows of the ledger as values.

use std::ops::Range;

use prost::Message;
use study::{CellId, StudyId};

use super::Number;
use super::sql::{Row, Sql};
use crate::store::body::{self, Places};
use crate::store::row::{DamagedShard, Held, ShardRow, StoredShard};

/// A shard's row, and whether it is as it was written.
pub(in crate::store) struct Entry {
    pub(in crate::store) number: Number,
    pub(in crate::store) shard: StoredShard,
    pub(in crate::store) sound: bool,
}

impl Entry {
    /// The report of a shard that is given up.
    pub(in crate::store) fn damaged(self, reason: String) -> DamagedShard {
        let ShardRow { study, cell, range, .. } = self.shard.row;
        DamagedShard { study, cell, range, reason }
    }
}

pub(super) fn entry(row: &Row) -> Sql<Entry> {
    let (cell, range) = address(row)?;
    let shard_row = ShardRow {
        study: StudyId(bytes32(row, "study_id")?),
        cell,
        range,
        checkpoints: bytes32(row, "checkpoints")?,
        digest: bytes32(row, "digest")?,
        tally: row.get::<Vec<u8>>("tally")?.into(),
        records: unsigned(row, "records")?,
        worker: row.get("worker")?,
        seconds: row.get("seconds")?,
    };
    let token = unsigned(row, "token")?;
    let places = row.get::<Option<Vec<u8>>>("places")?;
    let places = places.map(|bytes| Places::decode(&bytes[..])).transpose();
    let checksum: Vec<u8> = row.get("checksum")?;
    let written = body::checksum(&body::Commit::row(token, &shard_row));
    let sound = places.is_ok() && checksum == written;
    let (held, kept) = match places.ok().flatten() {
        Some(Places { places, kept }) => (Held::Live(places), kept.try_into().ok()),
        None => (Held::Sealed, None),
    };
    let number = Number(row.get("number")?);
    Ok(Entry { number, shard: StoredShard { row: shard_row, token, kept, held }, sound })
}

pub(super) fn address(row: &Row) -> Sql<(CellId, Range<u64>)> {
    Ok((CellId(unsigned(row, "cell")?), unsigned(row, "first")?..unsigned(row, "past")?))
}

pub(super) fn unsigned(row: &Row, column: &'static str) -> Sql<u64> {
    row.get::<i64>(column).map(i64::cast_unsigned)
}

/// A count that is small by its nature.
pub(super) fn small(row: &Row, column: &'static str) -> Sql<u32> {
    row.get::<i64>(column)?.try_into().map_err(|error| undecodable(column, error))
}

pub(super) fn bytes32(row: &Row, column: &'static str) -> Sql<[u8; 32]> {
    let bytes: Vec<u8> = row.get(column)?;
    bytes[..].try_into().map_err(|error| undecodable(column, error))
}

fn undecodable(
    column: &'static str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: Box::new(error) }
}
