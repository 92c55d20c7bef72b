//! The ledger in a file of the store's folder: SQLite.
//!
//! In WAL mode with synchronous FULL a committed transaction survives a loss of power.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection as _, SqliteConnection, query_scalar, raw_sql};

use super::sql::{Connection, Sql};
use crate::store::error::Error;

const MIGRATIONS: [&str; 3] = [
    include_str!("../../../migrations/sqlite/1.sql"),
    include_str!("../../../migrations/sqlite/2.sql"),
    include_str!("../../../migrations/sqlite/3.sql"),
];

/// Older versions can lose a transaction when a checkpoint and a reset of the WAL collide.
const OLDEST: &str = "3.51.3";

/// How long a lock in the database is waited for.
const BUSY: Duration = Duration::from_secs(10);

/// Opens or creates the database, checks its structure and brings its schema up to date; returns a
/// connection that writes and one that reads, so that neither waits for a lock in the database.
///
/// Of two that turn a new database to WAL at the same moment, SQLite sends one away at once,
/// whatever the busy timeout is; it comes back.
pub(super) async fn open(path: &Path) -> Result<[Connection; 2], Error> {
    let patience = Instant::now() + BUSY;
    loop {
        match try_open(path).await {
            Err(error) if error.is_busy() && Instant::now() < patience => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            result => return result,
        }
    }
}

async fn try_open(path: &Path) -> Result<[Connection; 2], Error> {
    let sql = |error| Error::sql(path, error);
    let mut write = connect(path).await.map_err(sql)?;
    let found: String =
        query_scalar("SELECT sqlite_version()").fetch_one(&mut write).await.map_err(sql)?;
    if version(&found) < version(OLDEST) {
        return Err(Error::OldSqlite { found, needed: OLDEST });
    }
    let check: String =
        query_scalar("PRAGMA quick_check(1)").fetch_one(&mut write).await.map_err(sql)?;
    if check != "ok" {
        return Err(Error::Corrupt { path: path.to_path_buf(), detail: check });
    }
    migrate(path, &mut write).await?;
    let read = connect(path).await.map_err(sql)?;
    Ok([write, read].map(Connection::Sqlite))
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
