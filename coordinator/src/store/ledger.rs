//! The ledger: which shards are durable and where, in SQLite.
//!
//! All SQL is here. One connection writes, another reads, so that neither waits for a lock in the
//! database; in WAL mode with synchronous FULL a committed transaction survives a loss of power.
//! Shards of a cell never overlap and share their checkpoints: `Group::admit` sees to it inside
//! the transaction that inserts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous};
use sqlx::{Connection, Row, Sqlite, SqliteConnection, Transaction, query, query_scalar, raw_sql};
use study::{CellId, StudyId};
use tokio::sync::{Mutex, MutexGuard};

use super::body::{self, Origin, Places};
use super::error::Error;
use super::row::{
    Check, Committed, DamagedShard, Death, Held, Place, SealedCell, ShardRow, State, StoredShard,
    StoredStudy,
};

const MIGRATIONS: [&str; 1] = [include_str!("../../migrations/1.sql")];

/// Older versions can lose a transaction when a checkpoint and a reset of the WAL collide.
const OLDEST_SQLITE: &str = "3.51.3";

/// Rows per step of a walk over all shards.
const PAGE: i64 = 4096;

/// A handle to the database.
#[derive(Clone)]
pub(super) struct Ledger(Arc<Inner>);

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ledger").field(&self.0.path).finish()
    }
}

struct Inner {
    path: PathBuf,
    write: Mutex<SqliteConnection>,
    read: Mutex<SqliteConnection>,
}

/// A shard's number in the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(i64);

impl Ledger {
    /// Opens or creates the database, checks its structure and brings its schema up to date.
    pub(super) async fn open(path: &Path) -> Result<Self, Error> {
        let sql = |error| Error::sql(path, error);
        let mut write = connect(path).await.map_err(sql)?;
        let found: String =
            query_scalar("SELECT sqlite_version()").fetch_one(&mut write).await.map_err(sql)?;
        if version(&found) < version(OLDEST_SQLITE) {
            return Err(Error::OldSqlite { found, needed: OLDEST_SQLITE });
        }
        let check: String =
            query_scalar("PRAGMA quick_check(1)").fetch_one(&mut write).await.map_err(sql)?;
        if check != "ok" {
            return Err(Error::Corrupt { path: path.to_path_buf(), detail: check });
        }
        migrate(path, &mut write).await?;
        let read = connect(path).await.map_err(sql)?;
        let (write, read) = (Mutex::new(write), Mutex::new(read));
        Ok(Self(Arc::new(Inner { path: path.to_path_buf(), write, read })))
    }

    /// Counts this opening, and returns what the store is pinned to; `origin` pins a new one.
    pub(super) async fn register(&self, origin: Origin) -> Result<Origin, Error> {
        let mut connection = self.0.write.lock().await;
        let row = query(
            "INSERT INTO store (only, numerics, version, restarts) VALUES (1, ?, ?, ?) \
             ON CONFLICT (only) DO UPDATE SET restarts = restarts + 1 \
             RETURNING numerics, version, restarts",
        )
        .bind(&origin.numerics)
        .bind(&origin.version)
        .bind(origin.restarts)
        .fetch_one(&mut *connection)
        .await;
        let origin = row.and_then(|row| {
            Ok(Origin {
                numerics: row.try_get(0)?,
                version: row.try_get(1)?,
                restarts: row.try_get(2)?,
            })
        });
        origin.map_err(|error| self.sql(error))
    }

    /// The numerics digest that the store is pinned to, if it is.
    pub(super) async fn numerics(&self) -> Result<Option<String>, Error> {
        let mut connection = self.0.read.lock().await;
        let found = query_scalar("SELECT numerics FROM store").fetch_optional(&mut *connection);
        found.await.map_err(|error| self.sql(error))
    }

    /// The right to write, which one task has at a time.
    pub(super) async fn write(&self) -> Write<'_> {
        Write { path: &self.0.path, connection: self.0.write.lock().await }
    }

    /// All studies, in the order in which they were first put.
    pub(super) async fn studies(&self) -> Result<Vec<StoredStudy>, Error> {
        let mut connection = self.0.read.lock().await;
        let sql = |error| self.sql(error);
        let rows = query("SELECT * FROM studies ORDER BY number").fetch_all(&mut *connection);
        let mut studies = Vec::new();
        for row in rows.await.map_err(sql)? {
            let number: i64 = row.try_get("number").map_err(sql)?;
            let files =
                query("SELECT path, digest FROM study_files WHERE study = ? ORDER BY position")
                    .bind(number)
                    .fetch_all(&mut *connection)
                    .await
                    .map_err(sql)?;
            studies.push(self.study(&row, &files).map_err(sql)??);
        }
        Ok(studies)
    }

    fn study(&self, row: &SqliteRow, files: &[SqliteRow]) -> Sql<Result<StoredStudy, Error>> {
        let file = |row: &SqliteRow| Ok((row.try_get("path")?, bytes32(row, "digest")?));
        let state: String = row.try_get("state")?;
        let study = StoredStudy {
            id: StudyId(bytes32(row, "id")?),
            file_name: row.try_get("file_name")?,
            text: row.try_get("text")?,
            files: files.iter().map(file).collect::<Sql<_>>()?,
            state: State::named(&state).unwrap_or_default(),
            reason: row.try_get("reason")?,
            sealed: match row.try_get::<Option<Vec<u8>>, _>("sealed")? {
                Some(_) => Some(bytes32(row, "sealed")?),
                None => None,
            },
        };
        let checksum: Vec<u8> = row.try_get("checksum")?;
        let sound = checksum == body::checksum(&body::Study::from(&study));
        let detail = format!("the row of study {} has another checksum", study.id);
        Ok(sound.then_some(study).ok_or(Error::Corrupt { path: self.0.path.clone(), detail }))
    }

    /// The shards of a study, by cell and replicate.
    pub(super) async fn shards(&self, study: StudyId) -> Result<Vec<StoredShard>, Error> {
        let mut connection = self.0.read.lock().await;
        let rows = query(
            "SELECT studies.id AS study_id, shards.* FROM shards \
             JOIN studies ON studies.number = shards.study WHERE studies.id = ?",
        )
        .bind(&study.0[..])
        .fetch_all(&mut *connection)
        .await;
        let shards: Sql<Vec<Entry>> = rows.and_then(|rows| rows.iter().map(entry).collect());
        let mut shards: Vec<StoredShard> = shards
            .map_err(|error| self.sql(error))?
            .into_iter()
            .map(|entry| self.sound(entry))
            .collect::<Result<_, _>>()?;
        shards.sort_unstable_by_key(|shard| (shard.row.cell, shard.row.range.start));
        Ok(shards)
    }

    fn sound(&self, entry: Entry) -> Result<StoredShard, Error> {
        let shard = entry.shard;
        let detail = format!("the row of cell {} has another checksum", shard.row.cell);
        entry.sound.then_some(shard).ok_or(Error::Corrupt { path: self.0.path.clone(), detail })
    }

    /// A page of all shards behind `after`, in the order of their commits.
    pub(super) async fn page(&self, after: Option<Number>) -> Result<Vec<Entry>, Error> {
        let mut connection = self.0.read.lock().await;
        let rows = query(
            "SELECT studies.id AS study_id, shards.* FROM shards \
             JOIN studies ON studies.number = shards.study \
             WHERE shards.number > ? ORDER BY shards.number LIMIT ?",
        )
        .bind(after.map_or(i64::MIN, |number| number.0))
        .bind(PAGE)
        .fetch_all(&mut *connection)
        .await;
        let entries: Sql<Vec<Entry>> = rows.and_then(|rows| rows.iter().map(entry).collect());
        entries.map_err(|error| self.sql(error))
    }

    /// First and last segment of the shards that live in them, without repetition.
    pub(super) async fn live_segments(&self) -> Result<Vec<(u32, u32)>, Error> {
        let mut connection = self.0.read.lock().await;
        let rows =
            query("SELECT DISTINCT low_segment, high_segment FROM shards WHERE places IS NOT NULL")
                .fetch_all(&mut *connection)
                .await;
        let spans = rows.and_then(|rows| {
            rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
        });
        spans.map_err(|error| self.sql(error))
    }

    /// The ranges of a study that killed workers.
    pub(super) async fn deaths(&self, study: StudyId) -> Result<Vec<Death>, Error> {
        let mut connection = self.0.read.lock().await;
        let rows = query(
            "SELECT deaths.* FROM deaths JOIN studies ON studies.number = deaths.study \
             WHERE studies.id = ?",
        )
        .bind(&study.0[..])
        .fetch_all(&mut *connection)
        .await;
        let death = |row: &SqliteRow| {
            let (cell, range) = address(row)?;
            Ok(Death {
                cell,
                range,
                deaths: row.try_get("deaths")?,
                reason: row.try_get("reason")?,
            })
        };
        let deaths = rows.and_then(|rows| rows.iter().map(death).collect());
        deaths.map_err(|error| self.sql(error))
    }

    /// The shards of a study that were computed a second time.
    pub(super) async fn checks(&self, study: StudyId) -> Result<Vec<Check>, Error> {
        let mut connection = self.0.read.lock().await;
        let rows = query(
            "SELECT checks.* FROM checks JOIN studies ON studies.number = checks.study \
             WHERE studies.id = ?",
        )
        .bind(&study.0[..])
        .fetch_all(&mut *connection)
        .await;
        let check = |row: &SqliteRow| {
            let (cell, range) = address(row)?;
            let (digest, agreed) = (bytes32(row, "digest")?, row.try_get("agreed")?);
            Ok(Check { cell, range, digest, agreed, worker: row.try_get("worker")? })
        };
        let checks = rows.and_then(|rows| rows.iter().map(check).collect());
        checks.map_err(|error| self.sql(error))
    }

    /// Closes both connections, with a last checkpoint, unless another handle is still in use.
    pub(super) async fn close(self) -> Result<(), Error> {
        let Some(inner) = Arc::into_inner(self.0) else { return Ok(()) };
        let sql = |error| Error::sql(&inner.path, error);
        inner.read.into_inner().close().await.map_err(sql)?;
        inner.write.into_inner().close().await.map_err(sql)
    }

    fn sql(&self, error: sqlx::Error) -> Error {
        Error::sql(&self.0.path, error)
    }
}

/// The right to write.
pub(super) struct Write<'a> {
    path: &'a Path,
    connection: MutexGuard<'a, SqliteConnection>,
}

impl Write<'_> {
    /// Begins a transaction.
    pub(super) async fn group(&mut self) -> Result<Group<'_>, Error> {
        let begun = self.connection.begin_with("BEGIN IMMEDIATE").await;
        let transaction = begun.map_err(|error| Error::sql(self.path, error))?;
        Ok(Group { path: self.path, transaction })
    }
}

/// One transaction. Dropped without `commit`, it leaves nothing behind.
pub(super) struct Group<'a> {
    path: &'a Path,
    transaction: Transaction<'a, Sqlite>,
}

impl Group<'_> {
    /// Makes all of it durable at once.
    pub(super) async fn commit(self) -> Result<(), Error> {
        self.transaction.commit().await.map_err(|error| Error::sql(self.path, error))
    }

    /// Takes a shard whose commit frame goes to segment `last`, unless it is there already.
    pub(super) async fn admit(
        &mut self,
        token: u64,
        row: &ShardRow,
        places: &[Place],
        last: u32,
    ) -> Result<Committed, Error> {
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
        self.insert(study, token, row, places, last).await?;
        Ok(Committed::New)
    }

    /// Takes a shard in place of whatever is in its way.
    pub(super) async fn replace(
        &mut self,
        shard: &StoredShard,
        places: &[Place],
        last: u32,
    ) -> Result<(), Error> {
        let row = &shard.row;
        let study = self.number(row.study).await?;
        let (first, past) = bounds(row)?;
        let deleted = query(
            "DELETE FROM shards WHERE study = ?1 AND cell = ?2 \
             AND ((first < ?4 AND past > ?3) OR checkpoints <> ?5)",
        )
        .bind(study)
        .bind(row.cell.0.cast_signed())
        .bind(first)
        .bind(past)
        .bind(&row.checkpoints[..])
        .execute(&mut *self.transaction)
        .await;
        deleted.map_err(|error| self.sql(error))?;
        self.insert(study, shard.token, row, places, last).await
    }

    /// The last shard that begins before the row's end, and the first that does not: as shards
    /// do not overlap, no other can be in the way.
    async fn neighbours(&mut self, study: i64, row: &ShardRow) -> Result<Vec<ShardRow>, Error> {
        let rows = query(
            "SELECT * FROM (SELECT ?4 AS study_id, * FROM shards \
                 WHERE study = ?1 AND cell = ?2 AND first < ?3 ORDER BY first DESC LIMIT 1) \
             UNION ALL SELECT * FROM (SELECT ?4 AS study_id, * FROM shards \
                 WHERE study = ?1 AND cell = ?2 AND first >= ?3 ORDER BY first LIMIT 1)",
        )
        .bind(study)
        .bind(row.cell.0.cast_signed())
        .bind(bounds(row)?.1)
        .bind(&row.study.0[..])
        .fetch_all(&mut *self.transaction)
        .await;
        let entries: Sql<Vec<Entry>> = rows.and_then(|rows| rows.iter().map(entry).collect());
        let entries = entries.map_err(|error| self.sql(error))?;
        Ok(entries.into_iter().map(|entry| entry.shard.row).collect())
    }

    async fn insert(
        &mut self,
        study: i64,
        token: u64,
        row: &ShardRow,
        places: &[Place],
        last: u32,
    ) -> Result<(), Error> {
        let (first, past) = bounds(row)?;
        let inserted = query(
            "INSERT INTO shards (study, cell, first, past, token, checkpoints, digest, tally, \
                 records, worker, seconds, checksum, places, low_segment, high_segment) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(study)
        .bind(row.cell.0.cast_signed())
        .bind(first)
        .bind(past)
        .bind(token.cast_signed())
        .bind(&row.checkpoints[..])
        .bind(&row.digest[..])
        .bind(&row.tally[..])
        .bind(row.records.cast_signed())
        .bind(&row.worker)
        .bind(row.seconds)
        .bind(body::checksum(&body::Commit::new(token, row, Vec::new())).to_vec())
        .bind(Places { places: places.to_vec() }.encode_to_vec())
        .bind(places.iter().map(|place| place.segment).min().unwrap_or(last))
        .bind(last)
        .execute(&mut *self.transaction)
        .await;
        inserted.map(|_| ()).map_err(|error| self.sql(error))
    }

    /// Puts a study, or what has changed of one.
    pub(super) async fn put_study(&mut self, study: &StoredStudy) -> Result<(), Error> {
        let number = query_scalar(
            "INSERT INTO studies (id, file_name, text, state, reason, sealed, checksum) \
             VALUES (?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (id) DO UPDATE SET file_name = excluded.file_name, text = excluded.text, \
                 state = excluded.state, reason = excluded.reason, sealed = excluded.sealed, \
                 checksum = excluded.checksum \
             RETURNING number",
        )
        .bind(&study.id.0[..])
        .bind(&study.file_name)
        .bind(&study.text)
        .bind(study.state.name())
        .bind(&study.reason)
        .bind(study.sealed.map(|digest| digest.to_vec()))
        .bind(body::checksum(&body::Study::from(study)).to_vec())
        .fetch_one(&mut *self.transaction)
        .await;
        let number: i64 = number.map_err(|error| self.sql(error))?;
        let cleared = query("DELETE FROM study_files WHERE study = ?").bind(number);
        cleared.execute(&mut *self.transaction).await.map_err(|error| self.sql(error))?;
        for (position, (path, digest)) in (0_i64..).zip(&study.files) {
            let put = query("INSERT INTO study_files VALUES (?, ?, ?, ?)")
                .bind(number)
                .bind(position)
                .bind(path)
                .bind(&digest[..]);
            put.execute(&mut *self.transaction).await.map_err(|error| self.sql(error))?;
        }
        Ok(())
    }

    /// The shards below each cell's number of replicates are in the dataset now; what a cell
    /// holds beyond it, and cells that are not named, are in no dataset and dropped.
    pub(super) async fn seal(&mut self, study: StudyId, cells: &[SealedCell]) -> Result<(), Error> {
        let study = self.number(study).await?;
        for sealed in cells {
            let moved = query(
                "UPDATE shards SET places = NULL \
                 WHERE study = ? AND cell = ? AND past <= ?",
            )
            .bind(study)
            .bind(sealed.cell.0.cast_signed())
            .bind(i64::try_from(sealed.replicates).unwrap_or(i64::MAX))
            .execute(&mut *self.transaction)
            .await;
            moved.map_err(|error| self.sql(error))?;
        }
        let dropped =
            query("DELETE FROM shards WHERE study = ? AND places IS NOT NULL").bind(study);
        dropped.execute(&mut *self.transaction).await.map(|_| ()).map_err(|error| self.sql(error))
    }

    /// Drops all that is known of a cell.
    pub(super) async fn forget_cell(&mut self, study: StudyId, cell: CellId) -> Result<(), Error> {
        let study = self.number(study).await?;
        for statement in [
            "DELETE FROM shards WHERE study = ? AND cell = ?",
            "DELETE FROM deaths WHERE study = ? AND cell = ?",
            "DELETE FROM checks WHERE study = ? AND cell = ?",
        ] {
            let dropped = query(statement).bind(study).bind(cell.0.cast_signed());
            dropped.execute(&mut *self.transaction).await.map_err(|error| self.sql(error))?;
        }
        Ok(())
    }

    /// Drops one shard.
    pub(super) async fn drop_shard(&mut self, number: Number) -> Result<(), Error> {
        let dropped = query("DELETE FROM shards WHERE number = ?").bind(number.0);
        dropped.execute(&mut *self.transaction).await.map(|_| ()).map_err(|error| self.sql(error))
    }

    /// Notes that a range has killed its workers so often.
    pub(super) async fn put_death(&mut self, study: StudyId, death: &Death) -> Result<(), Error> {
        let study = self.number(study).await?;
        let put = query("INSERT OR REPLACE INTO deaths VALUES (?, ?, ?, ?, ?, ?)")
            .bind(study)
            .bind(death.cell.0.cast_signed())
            .bind(death.range.start.cast_signed())
            .bind(death.range.end.cast_signed())
            .bind(death.deaths)
            .bind(&death.reason);
        put.execute(&mut *self.transaction).await.map(|_| ()).map_err(|error| self.sql(error))
    }

    /// Notes the outcome of a second computation.
    pub(super) async fn put_check(&mut self, study: StudyId, check: &Check) -> Result<(), Error> {
        let study = self.number(study).await?;
        let put = query("INSERT OR REPLACE INTO checks VALUES (?, ?, ?, ?, ?, ?, ?)")
            .bind(study)
            .bind(check.cell.0.cast_signed())
            .bind(check.range.start.cast_signed())
            .bind(check.range.end.cast_signed())
            .bind(&check.digest[..])
            .bind(check.agreed)
            .bind(&check.worker);
        put.execute(&mut *self.transaction).await.map(|_| ()).map_err(|error| self.sql(error))
    }

    async fn number(&mut self, study: StudyId) -> Result<i64, Error> {
        let number = query_scalar("SELECT number FROM studies WHERE id = ?").bind(&study.0[..]);
        let number = number.fetch_optional(&mut *self.transaction).await;
        number.map_err(|error| self.sql(error))?.ok_or(Error::UnknownStudy(study))
    }

    fn sql(&self, error: sqlx::Error) -> Error {
        Error::sql(self.path, error)
    }
}

type Sql<T> = Result<T, sqlx::Error>;

/// A shard's row, and whether it is as it was written.
pub(super) struct Entry {
    pub(super) number: Number,
    pub(super) shard: StoredShard,
    pub(super) sound: bool,
}

impl Entry {
    /// The report of a shard that is given up.
    pub(super) fn damaged(self, reason: String) -> DamagedShard {
        let ShardRow { study, cell, range, .. } = self.shard.row;
        DamagedShard { study, cell, range, reason }
    }
}

fn entry(row: &SqliteRow) -> Sql<Entry> {
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

fn address(row: &SqliteRow) -> Sql<(CellId, std::ops::Range<u64>)> {
    let number = |column| row.try_get::<i64, _>(column).map(i64::cast_unsigned);
    Ok((CellId(number("cell")?), number("first")?..number("past")?))
}

fn bytes32(row: &SqliteRow, column: &'static str) -> Sql<[u8; 32]> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map_err(|error| sqlx::Error::ColumnDecode {
        index: column.to_owned(),
        source: Box::new(error),
    })
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

async fn connect(path: &Path) -> Sql<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(Duration::from_secs(10));
    SqliteConnection::connect_with(&options).await
}

async fn migrate(path: &Path, connection: &mut SqliteConnection) -> Result<(), Error> {
    let sql = |error| Error::sql(path, error);
    let found: i64 =
        query_scalar("PRAGMA user_version").fetch_one(&mut *connection).await.map_err(sql)?;
    let known = MIGRATIONS.len();
    if found.cast_unsigned() as usize > known {
        return Err(Error::Newer { path: path.to_path_buf(), found, known });
    }
    for migration in MIGRATIONS.iter().skip(found as usize) {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(sql)?;
        raw_sql(*migration).execute(&mut *transaction).await.map_err(sql)?;
        transaction.commit().await.map_err(sql)?;
    }
    Ok(())
}

fn version(text: &str) -> Vec<u32> {
    text.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}
