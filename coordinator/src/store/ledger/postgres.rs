//! The ledger in a database that other machines reach: PostgreSQL.

use std::io;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection, query, query_scalar, raw_sql};
use tokio::time::timeout;

use super::sql::Sql;
use crate::store::error::Error;
use crate::store::location::Postgres;

const MIGRATIONS: [&str; 2] = [
    include_str!("../../../migrations/postgres/1.sql"),
    include_str!("../../../migrations/postgres/2.sql"),
];

/// Whoever migrates holds this lock; the number means nothing.
const MIGRATING: i64 = 0x7265_6772_6574_7461;

/// A leader that vanished leaves no session behind that others have to wait for, and a commit
/// that was acknowledged is on disk whatever the server's default is.
const SESSION: &str = "\
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; \
    SET tcp_user_timeout = '5s'; \
    SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '5s'; \
    SELECT set_config('synchronous_commit', 'on', false) \
        WHERE current_setting('synchronous_commit') IN ('off', 'local')";

/// How long a connection may take. The system would wait for minutes where packets are lost, and not hear
/// for as long that they get through again.
const CONNECTING: Duration = Duration::from_secs(5);

pub(super) async fn connect(at: &Postgres) -> Sql<PgConnection> {
    let connecting = async {
        let mut connection = PgConnection::connect_with(&at.options()).await?;
        raw_sql(SESSION).execute(&mut connection).await?;
        Ok(connection)
    };
    timeout(CONNECTING, connecting).await.unwrap_or_else(|_| Err(late(CONNECTING)))
}

/// The database did not answer in time.
pub(super) fn late(limit: Duration) -> sqlx::Error {
    let text = format!("no answer from the database within {} s", limit.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

/// Brings the schema up to date.
pub(super) async fn migrate(at: &Postgres, connection: &mut PgConnection) -> Result<(), Error> {
    let sql = |error| Error::sql(&at.name(), error);
    let known = MIGRATIONS.len();
    let mut transaction = connection.begin().await.map_err(sql)?;
    let lock = query("SELECT pg_advisory_xact_lock($1)").bind(MIGRATING);
    lock.execute(&mut *transaction).await.map_err(sql)?;
    let new: bool = query_scalar("SELECT to_regclass('migrations') IS NULL")
        .fetch_one(&mut *transaction)
        .await
        .map_err(sql)?;
    if new {
        let table = raw_sql("CREATE TABLE migrations (version BIGINT PRIMARY KEY)");
        table.execute(&mut *transaction).await.map_err(sql)?;
    }
    let found: i64 = query_scalar("SELECT coalesce(max(version), 0) FROM migrations")
        .fetch_one(&mut *transaction)
        .await
        .map_err(sql)?;
    if found.cast_unsigned() as usize > known {
        return Err(Error::Newer { path: at.name(), found, known });
    }
    for (migration, version) in MIGRATIONS.into_iter().zip(1_i64..).skip(found as usize) {
        raw_sql(migration).execute(&mut *transaction).await.map_err(sql)?;
        let done = query("INSERT INTO migrations VALUES ($1)").bind(version);
        done.execute(&mut *transaction).await.map_err(sql)?;
    }
    transaction.commit().await.map_err(sql)
}
