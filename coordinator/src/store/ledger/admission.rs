//! Which shards the ledger takes.
//!
//! A group is admitted by one statement, because every statement is a round trip to the
//! database's thread; what that leaves out is settled one by one, to say why.

use std::collections::HashSet;
use std::fmt::Write as _;

use prost::Message;

use super::decode::{Entry, entry, unsigned};
use super::group::Group;
use super::sql::{Sql, Value, values};
use crate::store::body::{self, Places};
use crate::store::error::Error;
use crate::store::row::{Committed, Place, ShardRow, StoredShard};

/// Rows per statement: SQLite takes 32766 parameters, and PostgreSQL 65535.
const ROWS: usize = 1000;

/// Parameters of a row.
const COLUMNS: usize = 15;

/// A shard that asks for admission.
#[derive(Clone, Copy)]
pub(in crate::store) struct Candidate<'a> {
    pub(in crate::store) token: u64,
    pub(in crate::store) row: &'a ShardRow,
    pub(in crate::store) places: &'a [Place],
    pub(in crate::store) kept: Option<[u8; 32]>,
}

impl Group<'_> {
    /// Takes shards whose commit frames go to segment `last`, unless they are there already. The
    /// inner error refuses one shard.
    pub(in crate::store) async fn admit(
        &mut self,
        candidates: &[Candidate<'_>],
        last: u64,
    ) -> Result<Vec<Result<Committed, Error>>, Error> {
        let mut taken = HashSet::new();
        for some in disjoint(candidates).chunks(ROWS) {
            taken.extend(self.insert(some, last).await?);
        }
        let mut results = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            results.push(if taken.remove(&candidate.token) {
                Ok(Committed::New)
            } else {
                match self.settle(candidate, last).await {
                    Err(error) if !error.is_refusal() => return Err(error),
                    result => result,
                }
            });
        }
        Ok(results)
    }

    /// Takes one shard, or says why not.
    async fn settle(&mut self, candidate: &Candidate<'_>, last: u64) -> Result<Committed, Error> {
        let row = candidate.row;
        bounds(row)?;
        let study = self.number(row.study).await?;
        for there in self.neighbours(study, row).await? {
            if there.range.start >= row.range.end || there.range.end <= row.range.start {
                if there.checkpoints != row.checkpoints {
                    return Err(Error::OtherCheckpoints { cell: row.cell });
                }
            } else if there.range != row.range || there.checkpoints != row.checkpoints {
                return Err(overlap(row, there));
            } else if there.digest == row.digest {
                return Ok(Committed::Duplicate);
            } else {
                return Err(disagreement(row, there));
            }
        }
        self.insert(&[*candidate], last).await?;
        Ok(Committed::New)
    }

    /// Takes a shard in place of whatever is in its way.
    pub(in crate::store) async fn replace(
        &mut self,
        shard: &StoredShard,
        places: &[Place],
        last: u64,
    ) -> Result<(), Error> {
        let row = &shard.row;
        let study = self.number(row.study).await?;
        let (first, past) = bounds(row)?;
        self.run(
            "DELETE FROM shards WHERE study = $1 AND cell = $2 \
             AND ((first < $4 AND past > $3) OR checkpoints <> $5)",
            values![study, row.cell.0, first, past, &row.checkpoints[..]],
        )
        .await?;
        self.insert(&[Candidate { token: shard.token, row, places, kept: shard.kept }], last)
            .await
            .map(|_| ())
    }

    /// The last shard that begins before the row's end, and the first that does not: as shards
    /// do not overlap, no other can be in the way.
    async fn neighbours(&mut self, study: i64, row: &ShardRow) -> Result<Vec<ShardRow>, Error> {
        let rows = self.rows(
            "SELECT * FROM (SELECT $4 AS study_id, shards.* FROM shards \
                 WHERE study = $1 AND cell = $2 AND first < $3 ORDER BY first DESC LIMIT 1) AS before \
             UNION ALL SELECT * FROM (SELECT $4 AS study_id, shards.* FROM shards \
                 WHERE study = $1 AND cell = $2 AND first >= $3 ORDER BY first LIMIT 1) AS behind",
            values![study, row.cell.0, bounds(row)?.1, &row.study.0[..]],
        );
        let entries: Sql<Vec<Entry>> = rows.await?.iter().map(entry).collect();
        let entries = self.decoded(entries)?;
        let rows = entries.into_iter().map(|entry| self.sound(entry).map(|shard| shard.row));
        rows.collect()
    }

    /// Inserts the shards that nothing is in the way of, and returns their tokens.
    async fn insert(&mut self, candidates: &[Candidate<'_>], last: u64) -> Result<Vec<u64>, Error> {
        let mut values = Vec::with_capacity(candidates.len() * COLUMNS);
        for candidate in candidates {
            values.extend(columns(candidate, last));
        }
        let rows = self.rows_of(|mark| insertion(mark, candidates.len()), values).await?;
        let tokens: Sql<Vec<u64>> = rows.iter().map(|row| unsigned(row, "token")).collect();
        self.decoded(tokens)
    }
}

/// A shard's row, column by column.
fn columns(candidate: &Candidate<'_>, last: u64) -> [Value; COLUMNS] {
    let row = candidate.row;
    let commit = body::Commit::row(candidate.token, row);
    let low = candidate.places.iter().map(|place| place.segment).min().unwrap_or(last);
    [
        row.study.0[..].into(),
        row.cell.0.into(),
        row.range.start.into(),
        row.range.end.into(),
        candidate.token.into(),
        row.checkpoints[..].into(),
        row.digest[..].into(),
        row.tally[..].into(),
        row.records.into(),
        row.worker.as_str().into(),
        row.seconds.into(),
        body::checksum(&commit)[..].into(),
        Places::new(candidate.places, candidate.kept).encode_to_vec().into(),
        low.into(),
        last.into(),
    ]
}

/// The statement that inserts so many rows where nothing is in their way.
fn insertion(mark: char, rows: usize) -> String {
    let mut text = "WITH new (study, cell, first, past, token, checkpoints, digest, tally, \
             records, worker, seconds, checksum, places, low_segment, high_segment) AS (VALUES "
        .to_owned();
    for place in 0..rows * COLUMNS {
        text.push_str(match (place, place % COLUMNS) {
            (0, _) => "(",
            (_, 0) => "), (",
            _ => ", ",
        });
        text.push(mark);
        if mark == '$' {
            // Writing to a string cannot fail.
            _ = write!(text, "{}", place + 1);
        }
    }
    text.push_str(
        ")) INSERT INTO shards (study, cell, first, past, token, checkpoints, digest, tally, \
             records, worker, seconds, checksum, places, low_segment, high_segment) \
         SELECT studies.number, cell, first, past, token, checkpoints, digest, tally, records, \
             worker, seconds, new.checksum, places, low_segment, high_segment \
         FROM new JOIN studies ON studies.id = new.study \
         WHERE NOT EXISTS (SELECT 1 FROM (SELECT past, checkpoints FROM shards \
                 WHERE study = studies.number AND cell = new.cell AND first < new.past \
                 ORDER BY first DESC LIMIT 1) AS before \
             WHERE before.past > new.first OR before.checkpoints <> new.checkpoints) \
         AND NOT EXISTS (SELECT 1 FROM (SELECT checkpoints FROM shards \
                 WHERE study = studies.number AND cell = new.cell AND first >= new.past \
                 ORDER BY first LIMIT 1) AS behind \
             WHERE behind.checkpoints <> new.checkpoints) \
         RETURNING token",
    );
    text
}

/// The candidates of which no two are in each other's way, as many as are easily found.
fn disjoint<'a>(candidates: &[Candidate<'a>]) -> Vec<Candidate<'a>> {
    let mut sorted: Vec<_> =
        candidates.iter().filter(|candidate| bounds(candidate.row).is_ok()).copied().collect();
    sorted.sort_by_key(|Candidate { row, .. }| (row.study.0, row.cell, row.range.start));
    let mut tokens = HashSet::new();
    let mut chosen: Vec<Candidate<'a>> = Vec::with_capacity(sorted.len());
    for candidate in sorted {
        let row = candidate.row;
        let in_the_way = chosen.last().is_some_and(|Candidate { row: before, .. }| {
            (before.study, before.cell) == (row.study, row.cell)
                && (before.range.end > row.range.start || before.checkpoints != row.checkpoints)
        });
        if !in_the_way && tokens.insert(candidate.token) {
            chosen.push(candidate);
        }
    }
    chosen
}

fn bounds(row: &ShardRow) -> Result<(i64, i64), Error> {
    let bounds = (i64::try_from(row.range.start), i64::try_from(row.range.end));
    match bounds {
        (Ok(first), Ok(past)) if first < past => Ok((first, past)),
        _ => Err(Error::BadRange { range: row.range.clone() }),
    }
}

fn overlap(row: &ShardRow, there: ShardRow) -> Error {
    Error::Overlap {
        cell: row.cell,
        range: row.range.clone(),
        worker: row.worker.clone(),
        there: there.range,
        other: there.worker,
    }
}

fn disagreement(row: &ShardRow, there: ShardRow) -> Error {
    Error::Disagreement {
        study: row.study,
        cell: row.cell,
        range: row.range.clone(),
        first: there.worker,
        second: row.worker.clone(),
    }
}
