//! Rows of the ledger as values.

use std::ops::Range;

use prost::Message;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use study::{CellId, StudyId};

use super::Number;
use crate::store::body::{self, Places};
use crate::store::row::{DamagedShard, Held, ShardRow, StoredShard};

pub(super) type Sql<T> = Result<T, sqlx::Error>;

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

pub(super) fn entry(row: &SqliteRow) -> Sql<Entry> {
    let (cell, range) = address(row)?;
    let shard_row = ShardRow {
        study: StudyId(bytes32(row, "study_id")?),
        cell,
        range,
        checkpoints: bytes32(row, "checkpoints")?,
        digest: bytes32(row, "digest")?,
        tally: row.try_get::<Vec<u8>, _>("tally")?.into(),
        records: row.try_get::<i64, _>("records")?.cast_unsigned(),
        worker: row.try_get("worker")?,
        seconds: row.try_get("seconds")?,
    };
    let token = row.try_get::<i64, _>("token")?.cast_unsigned();
    let places = row.try_get::<Option<Vec<u8>>, _>("places")?;
    let places = places.map(|bytes| Places::decode(&bytes[..])).transpose();
    let checksum: Vec<u8> = row.try_get("checksum")?;
    let written = body::checksum(&body::Commit::new(token, &shard_row, Vec::new()));
    let sound = places.is_ok() && checksum == written;
    let held = places.ok().flatten().map_or(Held::Sealed, |places| Held::Live(places.places));
    let number = Number(row.try_get("number")?);
    Ok(Entry { number, shard: StoredShard { row: shard_row, token, held }, sound })
}

pub(super) fn address(row: &SqliteRow) -> Sql<(CellId, Range<u64>)> {
    let number = |column| row.try_get::<i64, _>(column).map(i64::cast_unsigned);
    Ok((CellId(number("cell")?), number("first")?..number("past")?))
}

pub(super) fn bytes32(row: &SqliteRow, column: &'static str) -> Sql<[u8; 32]> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map_err(|error| sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: Box::new(error),
    })
}
