//! The ledger: which shards are durable and where, in SQLite.
//!
//! All SQL is in this folder. One connection writes, another reads, so that neither waits for a lock in the
//! database; in WAL mode with synchronous FULL a committed transaction survives a loss of power.
//! Shards of a cell never overlap and share their checkpoints: `Group::admit` sees to it inside
//! the transaction that inserts.

mod admission;
mod decode;
mod group;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteRow, SqliteSynchronous};
use sqlx::{Connection, Row, SqliteConnection, query, query_scalar, raw_sql};
use study::StudyId;
use tokio::sync::Mutex;

use super::body::{self, Origin};
use super::error::Error;
use super::row::{Check, Death, State, StoredShard, StoredStudy};
use decode::{Sql, address, bytes32, entry};

pub(super) use admission::Candidate;
pub(super) use decode::Entry;
pub(super) use group::{Group, Write};

const MIGRATIONS: [&str; 1] = [include_str!("../../../migrations/1.sql")];

/// Older versions can lose a transaction when a checkpoint and a reset of the WAL collide.
const OLDEST_SQLITE: &str = "3.51.3";

/// Rows per step of a walk over all shards.
const PAGE: i64 = 4096;

/// How long a lock in the database is waited for.
const BUSY: Duration = Duration::from_secs(10);

/// A handle to the database.
#[derive(Clone)]
pub(in crate::store) struct Ledger(Arc<Inner>);

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
pub(in crate::store) struct Number(i64);

impl Ledger {
    /// Opens or creates the database, checks its structure and brings its schema up to date.
    ///
    /// Of two that turn a new database to WAL at the same moment, SQLite sends one away at once,
    /// whatever the busy timeout is; it comes back.
    pub(in crate::store) async fn open(path: &Path) -> Result<Self, Error> {
        let patience = Instant::now() + BUSY;
        loop {
            match Self::try_open(path).await {
                Err(error) if error.is_busy() && Instant::now() < patience => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                result => return result,
            }
        }
    }

    async fn try_open(path: &Path) -> Result<Self, Error> {
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
    pub(in crate::store) async fn register(&self, origin: Origin) -> Result<Origin, Error> {
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
    pub(in crate::store) async fn numerics(&self) -> Result<Option<String>, Error> {
        let mut connection = self.0.read.lock().await;
        let found = query_scalar("SELECT numerics FROM store").fetch_optional(&mut *connection);
        found.await.map_err(|error| self.sql(error))
    }

    /// How often the store has been opened.
    pub(in crate::store) async fn restarts(&self) -> Result<u32, Error> {
        let mut connection = self.0.read.lock().await;
        let found = query_scalar("SELECT restarts FROM store").fetch_optional(&mut *connection);
        found.await.map(Option::unwrap_or_default).map_err(|error| self.sql(error))
    }

    /// The right to write, which one task has at a time.
    pub(in crate::store) async fn write(&self) -> Write<'_> {
        Write::new(&self.0.path, self.0.write.lock().await)
    }

    /// All studies, in the order in which they were first put.
    pub(in crate::store) async fn studies(&self) -> Result<Vec<StoredStudy>, Error> {
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
    pub(in crate::store) async fn shards(&self, study: StudyId) -> Result<Vec<StoredShard>, Error> {
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
    pub(in crate::store) async fn page(&self, after: Option<Number>) -> Result<Vec<Entry>, Error> {
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
    pub(in crate::store) async fn live_segments(&self) -> Result<Vec<(u32, u32)>, Error> {
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
    pub(in crate::store) async fn deaths(&self, study: StudyId) -> Result<Vec<Death>, Error> {
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
    pub(in crate::store) async fn checks(&self, study: StudyId) -> Result<Vec<Check>, Error> {
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
    pub(in crate::store) async fn close(self) -> Result<(), Error> {
        let Some(inner) = Arc::into_inner(self.0) else { return Ok(()) };
        let sql = |error| Error::sql(&inner.path, error);
        inner.read.into_inner().close().await.map_err(sql)?;
        inner.write.into_inner().close().await.map_err(sql)
    }

    /// Lets the database grow to this many pages, or to what it has if that is more.
    #[cfg(test)]
    pub(in crate::store) async fn limit_pages(&self, pages: u32) {
        let mut connection = self.0.write.lock().await;
        let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
        raw_sql(limit).execute(&mut *connection).await.unwrap();
    }

    fn sql(&self, error: sqlx::Error) -> Error {
        Error::sql(&self.0.path, error)
    }
}

async fn connect(path: &Path) -> Sql<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY);
    SqliteConnection::connect_with(&options).await
}

async fn migrate(path: &Path, connection: &mut SqliteConnection) -> Result<(), Error> {
    let sql = |error| Error::sql(path, error);
    let mut found = schema(connection).await.map_err(sql)?;
    let known = MIGRATIONS.len();
    if found.cast_unsigned() as usize > known {
        return Err(Error::Newer { path: path.to_path_buf(), found, known });
    }
    while (found as usize) < known {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(sql)?;
        // Whoever looks into a new folder at the same moment may have been faster.
        found = schema(&mut transaction).await.map_err(sql)?;
        if let Some(migration) = MIGRATIONS.get(found as usize) {
            raw_sql(*migration).execute(&mut *transaction).await.map_err(sql)?;
            found += 1;
        }
        transaction.commit().await.map_err(sql)?;
    }
    Ok(())
}

async fn schema(connection: &mut SqliteConnection) -> Sql<i64> {
    query_scalar("PRAGMA user_version").fetch_one(connection).await
}

fn version(text: &str) -> Vec<u32> {
    text.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}
