//! Rows of the ledger as values.

use std::ops::Range;

use prost::Message;
use study::{CellId, StudyId};

use super::Number;
use super::sql::{Row, Sql};
use crate::store::body::{self, Places};
use crate::store::row::{DamagedShard, Held, ShardRow, StoredShard};

/// A shard's row.
pub(in crate::store) struct Entry {
    pub(in crate::store) number: Number,
    /// The row of its study.
    pub(in crate::store) owner: Number,
    study: StudyId,
    pub(super) cell: CellId,
    range: Range<u64>,
    /// The shard, if the row is as it was written.
    pub(in crate::store) shard: Option<StoredShard>,
}

impl Entry {
    /// The report of a shard that is given up.
    pub(in crate::store) fn damaged(self, reason: String) -> DamagedShard {
        let Self { study, cell, range, .. } = self;
        DamagedShard { study, cell, range, reason }
    }
}

pub(super) fn entry(row: &Row) -> Sql<Entry> {
    let (cell, range) = address(row)?;
    let study = study_id(row, "study_id")?;
    // What cannot be decoded was not written like this either.
    let shard = shard(row, study, cell, range.clone()).ok().flatten();
    let (number, owner) = (Number(row.get("number")?), Number(row.get("study")?));
    Ok(Entry { number, owner, study, cell, range, shard })
}

/// The shard of a row; `None` where the row has another checksum.
fn shard(row: &Row, study: StudyId, cell: CellId, range: Range<u64>) -> Sql<Option<StoredShard>> {
    let shard_row = ShardRow {
        study,
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
    let Ok(places) = places.map(|bytes| Places::decode(&bytes[..])).transpose() else {
        return Ok(None);
    };
    let checksum: Vec<u8> = row.get("checksum")?;
    let written = body::checksum(&body::Commit::row(token, &shard_row));
    let (held, kept) = match places {
        Some(Places { places, kept }) => (Held::Live(places), kept.try_into().ok()),
        None => (Held::Sealed, None),
    };
    let shard = StoredShard { row: shard_row, token, kept, held };
    Ok((checksum == written).then_some(shard))
}

/// A study's id, or a digest of what a damaged row has in its place.
pub(super) fn study_id(row: &Row, column: &'static str) -> Sql<StudyId> {
    let bytes: Vec<u8> = row.get(column)?;
    Ok(StudyId(bytes[..].try_into().unwrap_or_else(|_| *blake3::hash(&bytes).as_bytes())))
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
