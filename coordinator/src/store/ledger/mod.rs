//! The ledger: which shards are durable and where, in SQLite or PostgreSQL.
//!
//! All SQL is in this folder, and nearly all of it is the same for both. One connection writes, another
//! reads. Shards of a cell never overlap and share their checkpoints: `Group::admit` sees to it inside
//! the transaction that inserts.

mod admission;
mod decode;
mod group;
mod lead;
mod postgres;
mod sql;
mod sqlite;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use study::StudyId;
use tokio::sync::{Mutex, MutexGuard};

use super::body::{self, Origin};
use super::error::Error;
use super::location::Postgres;
use super::row::{Check, DamagedStudy, Death, Deleted, State, StoredShard, StoredStudy};
use decode::{address, bytes32, entry, small, study_id, unsigned};
use sql::{Connection, Row, Sql, Value, values};

pub(super) use admission::Candidate;
pub(super) use decode::Entry;
pub(super) use group::{Group, Write};
pub(super) use lead::{Attempt, LOOK, Lead};

/// Rows per step of a walk over all shards.
const PAGE: i64 = 4096;

/// A handle to the database.
#[derive(Clone)]
pub(in crate::store) struct Ledger(Arc<Inner>);

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Ledger").field(&self.0.name()).finish()
    }
}

/// Which database it is.
enum At {
    Sqlite(PathBuf),
    Postgres(Postgres),
}

struct Inner {
    at: At,
    write: Mutex<Connection>,
    read: Mutex<Connection>,
    /// The connections to the database broke: to write, to read.
    broken: [AtomicBool; 2],
    lead: OnceLock<lead::Held>,
}

/// The number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct Number(i64);

/// The studies of a ledger.
#[derive(Debug, Default)]
pub(in crate::store) struct Studies {
    /// As they were put.
    pub(in crate::store) sound: Vec<StoredStudy>,
    /// The others, by the numbers of their rows.
    pub(in crate::store) damaged: Vec<(Number, DamagedStudy)>,
}

impl Inner {
    fn new(at: At, [write, read]: [Connection; 2]) -> Self {
        let (write, read) = (Mutex::new(write), Mutex::new(read));
        Self { at, write, read, broken: Default::default(), lead: OnceLock::new() }
    }

    /// What errors call the ledger.
    fn name(&self) -> PathBuf {
        match &self.at {
            At::Sqlite(path) => path.clone(),
            At::Postgres(at) => at.name(),
        }
    }

    /// The error, and a note that the connections may be gone with it.
    fn sql(&self, error: sqlx::Error) -> Error {
        if matches!(error, sqlx::Error::ColumnDecode { .. }) {
            return self.corrupt(error.to_string());
        }
        if !matches!(error, sqlx::Error::Database(_)) {
            self.broken.iter().for_each(|broken| broken.store(true, Ordering::Relaxed));
        }
        Error::sql(&self.name(), error)
    }

    fn corrupt(&self, detail: String) -> Error {
        match &self.at {
            At::Sqlite(path) => Error::Corrupt { path: path.clone(), detail },
            At::Postgres(at) => Error::CorruptDatabase { ledger: at.to_string(), detail },
        }
    }

    /// The shard of a row that must be as it was written.
    fn sound(&self, entry: Entry) -> Result<StoredShard, Error> {
        let cell = entry.cell;
        entry.shard.ok_or_else(|| self.corrupt(format!("a row of cell {cell}: {CHANGED}")))
    }

    /// A connection, made anew if it broke. That is safe at any time: a transaction ends with its
    /// connection, and one that writes is fenced.
    async fn connection<'a>(
        &'a self,
        connection: &'a Mutex<Connection>,
        broken: &AtomicBool,
    ) -> Result<MutexGuard<'a, Connection>, Error> {
        let mut connection = connection.lock().await;
        if let At::Postgres(at) = &self.at
            && broken.load(Ordering::Relaxed)
        {
            let anew = postgres::connect(at).await.map_err(|error| self.sql(error))?;
            *connection = Connection::Postgres(anew);
            broken.store(false, Ordering::Relaxed);
        }
        Ok(connection)
    }
}

impl Ledger {
    /// Opens or creates the database in a file.
    pub(in crate::store) async fn open(path: &Path) -> Result<Self, Error> {
        let connections = sqlite::open(path).await?;
        Ok(Self(Arc::new(Inner::new(At::Sqlite(path.to_path_buf()), connections))))
    }

    /// Opens a PostgreSQL database.
    pub(in crate::store) async fn postgres(at: &Postgres) -> Result<Self, Error> {
        let sql = |error| Error::sql(&at.name(), error);
        let mut write = postgres::connect(at).await.map_err(sql)?;
        postgres::migrate(at, &mut write).await?;
        let read = postgres::connect(at).await.map_err(sql)?;
        let connections = [write, read].map(Connection::Postgres);
        Ok(Self(Arc::new(Inner::new(At::Postgres(at.clone()), connections))))
    }

    /// Counts this opening, and returns what the store is pinned to; `origin` pins a new one.
    pub(in crate::store) async fn register(&self, from: Origin) -> Result<Origin, Error> {
        let rows = self.rows_of(
            &self.0.write,
            "INSERT INTO store (\"only\", numerics, version, restarts) VALUES (1, $1, $2, $3) \
             ON CONFLICT (\"only\") DO UPDATE SET restarts = restarts + 1 \
             RETURNING numerics, version, restarts",
            values![from.numerics.as_str(), from.version.as_str(), from.restarts],
        );
        let origin = rows.await?.first().map_or(Err(sqlx::Error::RowNotFound), origin);
        origin.map_err(|error| self.0.sql(error))
    }

    /// The numerics digest that the store is pinned to, if it is.
    pub(in crate::store) async fn numerics(&self) -> Result<Option<String>, Error> {
        let rows = self.rows("SELECT numerics FROM store", values![]).await?;
        let found = rows.first().map(|row| row.get("numerics")).transpose();
        found.map_err(|error| self.0.sql(error))
    }

    /// The id of the folder or bucket that has the segments, if that is known.
    pub(in crate::store) async fn home(&self) -> Result<Option<String>, Error> {
        let rows = self.rows("SELECT home FROM store", values![]).await?;
        let found: Sql<Option<Option<String>>> =
            rows.first().map(|row| row.get("home")).transpose();
        found.map(Option::flatten).map_err(|error| self.0.sql(error))
    }

    /// How often the store has been opened.
    pub(in crate::store) async fn restarts(&self) -> Result<u32, Error> {
        let rows = self.rows("SELECT restarts FROM store", values![]).await?;
        let found = rows.first().map_or(Ok(0), |row| small(row, "restarts"));
        found.map_err(|error| self.0.sql(error))
    }

    /// The right to write, which one task has at a time.
    pub(in crate::store) async fn write(&self) -> Result<Write<'_>, Error> {
        let connection = self.0.connection(&self.0.write, &self.0.broken[0]).await?;
        Ok(Write::new(&self.0, connection))
    }

    async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, Error> {
        self.rows_of(&self.0.read, sql, values).await
    }

    async fn rows_of(
        &self,
        connection: &Mutex<Connection>,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, Error> {
        let mut connection = self.0.connection(connection, &self.0.broken[1]).await?;
        let rows = connection.session().rows(sql, values).await;
        rows.map_err(|error| self.0.sql(error))
    }

    /// All studies, in the order in which they were first put.
    pub(in crate::store) async fn studies(&self) -> Result<Studies, Error> {
        let mut studies = Studies::default();
        for row in self.rows("SELECT * FROM studies ORDER BY number", values![]).await? {
            let number: i64 = row.get("number").map_err(|error| self.0.sql(error))?;
            let files = self.rows(
                "SELECT path, digest FROM study_files WHERE study = $1 ORDER BY position",
                values![number],
            );
            let reason = match study(&row, &files.await?) {
                Ok(Some(study)) => {
                    studies.sound.push(study);
                    continue;
                }
                Ok(None) => CHANGED.to_owned(),
                Err(error) => format!("it cannot be read ({error})"),
            };
            let id = study_id(&row, "id").map_err(|error| self.0.sql(error))?;
            let file_name = row.get("file_name").unwrap_or_default();
            let reason = format!("its row in the ledger is damaged: {reason}");
            studies.damaged.push((Number(number), DamagedStudy { id, file_name, reason }));
        }
        Ok(studies)
    }

    /// The same, where all have to be as they were put.
    pub(in crate::store) async fn sound_studies(&self) -> Result<Vec<StoredStudy>, Error> {
        let Studies { sound, damaged } = self.studies().await?;
        match damaged.first() {
            None => Ok(sound),
            Some((_, DamagedStudy { id, reason, .. })) => {
                Err(self.0.corrupt(format!("study {id}: {reason}")))
            }
        }
    }

    /// Whether there are studies, damaged or not.
    pub(in crate::store) async fn holds_studies(&self) -> Result<bool, Error> {
        Ok(!self.rows("SELECT 1 AS one FROM studies LIMIT 1", values![]).await?.is_empty())
    }

    /// Studies that were deleted, of which segments may still say something.
    pub(in crate::store) async fn deleted(&self) -> Result<Vec<Deleted>, Error> {
        let rows = self.rows("SELECT id, since FROM deleted", values![]).await?;
        let deleted =
            |row: &Row| Ok(Deleted { study: study_id(row, "id")?, since: unsigned(row, "since")? });
        let deleted: Sql<_> = rows.iter().map(deleted).collect();
        deleted.map_err(|error| self.0.sql(error))
    }

    /// The shards of a study, by cell and replicate.
    pub(in crate::store) async fn shards(&self, study: StudyId) -> Result<Vec<StoredShard>, Error> {
        let mut connection = self.0.connection(&self.0.read, &self.0.broken[1]).await?;
        let entries = connection.session().each(
            "SELECT studies.id AS study_id, shards.* FROM shards \
             JOIN studies ON studies.number = shards.study WHERE studies.id = $1",
            values![&study.0[..]],
            entry,
        );
        let entries = entries.await.map_err(|error| self.0.sql(error))?;
        drop(connection);
        let mut shards: Vec<StoredShard> =
            entries.into_iter().map(|entry| self.0.sound(entry)).collect::<Result<_, _>>()?;
        shards.sort_unstable_by_key(|shard| (shard.row.cell, shard.row.range.start));
        Ok(shards)
    }

    fn entries(&self, rows: &[Row]) -> Result<Vec<Entry>, Error> {
        let entries: Sql<Vec<Entry>> = rows.iter().map(entry).collect();
        entries.map_err(|error| self.0.sql(error))
    }

    /// A page of all shards behind `after`, in the order of their commits.
    pub(in crate::store) async fn page(&self, after: Option<Number>) -> Result<Vec<Entry>, Error> {
        let rows = self.rows(
            "SELECT studies.id AS study_id, shards.* FROM shards \
             JOIN studies ON studies.number = shards.study \
             WHERE shards.number > $1 ORDER BY shards.number LIMIT $2",
            values![after.map_or(i64::MIN, |number| number.0), PAGE],
        );
        self.entries(&rows.await?)
    }

    /// First and last segment of the shards that live in them, without repetition.
    pub(in crate::store) async fn live_segments(&self) -> Result<Vec<(u64, u64)>, Error> {
        let rows = self.rows(
            "SELECT DISTINCT low_segment, high_segment FROM shards WHERE places IS NOT NULL",
            values![],
        );
        let span = |row: &Row| Ok((unsigned(row, "low_segment")?, unsigned(row, "high_segment")?));
        let spans: Sql<_> = rows.await?.iter().map(span).collect();
        spans.map_err(|error| self.0.sql(error))
    }

    /// The ranges of a study that killed workers.
    pub(in crate::store) async fn deaths(&self, study: StudyId) -> Result<Vec<Death>, Error> {
        let rows = self.rows(
            "SELECT deaths.* FROM deaths JOIN studies ON studies.number = deaths.study \
             WHERE studies.id = $1",
            values![&study.0[..]],
        );
        let death = |row: &Row| {
            let (cell, range) = address(row)?;
            Ok(Death { cell, range, deaths: small(row, "deaths")?, reason: row.get("reason")? })
        };
        let deaths: Sql<_> = rows.await?.iter().map(death).collect();
        deaths.map_err(|error| self.0.sql(error))
    }

    /// The shards of a study that were computed a second time.
    pub(in crate::store) async fn checks(&self, study: StudyId) -> Result<Vec<Check>, Error> {
        let rows = self.rows(
            "SELECT checks.* FROM checks JOIN studies ON studies.number = checks.study \
             WHERE studies.id = $1",
            values![&study.0[..]],
        );
        let check = |row: &Row| {
            let (cell, range) = address(row)?;
            let (digest, agreed) = (bytes32(row, "digest")?, row.get("agreed")?);
            Ok(Check { cell, range, digest, agreed, worker: row.get("worker")? })
        };
        let checks: Sql<_> = rows.await?.iter().map(check).collect();
        checks.map_err(|error| self.0.sql(error))
    }

    /// The row of a study, damaged or not.
    pub(in crate::store) async fn owner(&self, study: StudyId) -> Result<Option<Number>, Error> {
        let rows =
            self.rows("SELECT number FROM studies WHERE id = $1", values![&study.0[..]]).await?;
        let number = rows.first().map(|row| row.get("number").map(Number)).transpose();
        number.map_err(|error| self.0.sql(error))
    }

    /// Closes both connections, with a last checkpoint, unless another handle is still in use.
    pub(in crate::store) async fn close(self) -> Result<(), Error> {
        let Some(inner) = Arc::into_inner(self.0) else { return Ok(()) };
        let name = inner.name();
        let sql = |error| Error::sql(&name, error);
        inner.read.into_inner().close().await.map_err(sql)?;
        inner.write.into_inner().close().await.map_err(sql)
    }

    /// Lets the database grow to this many pages, or to what it has if that is more.
    #[cfg(test)]
    pub(in crate::store) async fn limit_pages(&self, pages: u32) {
        let mut connection = self.0.write.lock().await;
        let limit = format!("PRAGMA max_page_count = {pages}");
        connection.session().rows_once(limit, values![]).await.unwrap();
    }
}

/// What is wrong with a row that can be read.
const CHANGED: &str = "it has another checksum";

/// The study of a row; `None` where the row has another checksum.
fn study(row: &Row, files: &[Row]) -> Sql<Option<StoredStudy>> {
    let file = |row: &Row| Ok((row.get("path")?, bytes32(row, "digest")?));
    let state: String = row.get("state")?;
    // Another version's would be no better.
    let Some(state) = State::named(&state) else { return Ok(None) };
    let study = StoredStudy {
        id: StudyId(bytes32(row, "id")?),
        file_name: row.get("file_name")?,
        text: row.get("text")?,
        files: files.iter().map(file).collect::<Sql<_>>()?,
        state,
        reason: row.get("reason")?,
        sealed: match row.get::<Option<Vec<u8>>>("sealed")? {
            Some(_) => Some(bytes32(row, "sealed")?),
            None => None,
        },
        earlier: row.get("earlier")?,
    };
    let checksum: Vec<u8> = row.get("checksum")?;
    Ok((checksum == body::checksum(&body::Study::from(&study))).then_some(study))
}

fn origin(row: &Row) -> Sql<Origin> {
    let (numerics, version) = (row.get("numerics")?, row.get("version")?);
    Ok(Origin { numerics, version, restarts: small(row, "restarts")? })
}
