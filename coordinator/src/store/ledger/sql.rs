//! Statements that run on both databases: `$1` stands for the first value in either dialect.

use futures_util::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{
    Arguments, AssertSqlSafe, Connection as _, Database, Decode, Encode, PgConnection, Postgres,
    Row as _, SqlSafeStr, Sqlite, SqliteConnection, Type, query_with,
};

pub(super) type Sql<T> = Result<T, sqlx::Error>;

/// What a statement is given.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Integer(i64),
    Real(f64),
    Bool(bool),
    Text(String),
    Bytes(Option<Vec<u8>>),
}

macro_rules! value_from {
    ($($source:ty => |$value:ident| $make:expr;)*) => {
        $(impl From<$source> for Value {
            fn from($value: $source) -> Self {
                $make
            }
        })*
    };
}

value_from! {
    i64 => |value| Self::Integer(value);
    // Ids and counts are stored by their bits.
    u64 => |value| Self::Integer(value.cast_signed());
    u32 => |value| Self::Integer(value.into());
    f64 => |value| Self::Real(value);
    bool => |value| Self::Bool(value);
    &str => |value| Self::Text(value.to_owned());
    &[u8] => |value| Self::Bytes(Some(value.to_vec()));
    Vec<u8> => |value| Self::Bytes(Some(value));
    Option<Vec<u8>> => |value| Self::Bytes(value);
}

/// The values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::store::ledger::sql::Value::from($value)),*] };
}
pub(super) use values;

/// An answer's row.
pub(super) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Row {
    pub(super) fn get<T>(&self, column: &'static str) -> Sql<T>
    where
        T: for<'r> Decode<'r, Sqlite> + Type<Sqlite>,
        T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
    {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }
}

/// A connection to either database.
pub(super) enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Connection {
    pub(super) fn session(&mut self) -> Session<'_> {
        match self {
            Self::Sqlite(connection) => Session::Sqlite(connection),
            Self::Postgres(connection) => Session::Postgres(connection),
        }
    }

    /// Begins a transaction that writes.
    pub(super) async fn begin(&mut self) -> Sql<Transaction<'_>> {
        Ok(match self {
            Self::Sqlite(connection) => {
                Transaction::Sqlite(connection.begin_with("BEGIN IMMEDIATE").await?)
            }
            Self::Postgres(connection) => Transaction::Postgres(connection.begin().await?),
        })
    }

    pub(super) async fn close(self) -> Sql<()> {
        match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::Postgres(connection) => connection.close().await,
        }
    }
}

/// A transaction. Dropped without `commit`, it leaves nothing behind.
pub(super) enum Transaction<'a> {
    Sqlite(sqlx::Transaction<'a, Sqlite>),
    Postgres(sqlx::Transaction<'a, Postgres>),
}

impl Transaction<'_> {
    pub(super) fn session(&mut self) -> Session<'_> {
        match self {
            Self::Sqlite(transaction) => Session::Sqlite(transaction),
            Self::Postgres(transaction) => Session::Postgres(transaction),
        }
    }

    pub(super) async fn commit(self) -> Sql<()> {
        match self {
            Self::Sqlite(transaction) => transaction.commit().await,
            Self::Postgres(transaction) => transaction.commit().await,
        }
    }

    /// Ends it now; one that is dropped ends when its connection is used again.
    pub(super) async fn rollback(self) -> Sql<()> {
        match self {
            Self::Sqlite(transaction) => transaction.rollback().await,
            Self::Postgres(transaction) => transaction.rollback().await,
        }
    }
}

/// Where a statement runs.
pub(super) enum Session<'a> {
    Sqlite(&'a mut SqliteConnection),
    Postgres(&'a mut PgConnection),
}

impl Session<'_> {
    /// What a placeholder is in statements that are put together, with its number where it is `$`:
    /// SQLite looks up whatever has a name or number in a list, and counts `?`.
    pub(super) fn mark(&self) -> char {
        match self {
            Self::Sqlite(_) => '?',
            Self::Postgres(_) => '$',
        }
    }

    /// Runs a statement, and says how many rows it changed.
    pub(super) async fn run(self, sql: &'static str, values: Vec<Value>) -> Sql<u64> {
        Ok(match self {
            Self::Sqlite(connection) => {
                let query = query_with(sql, arguments::<Sqlite>(values)?);
                query.execute(connection).await?.rows_affected()
            }
            Self::Postgres(connection) => {
                let query = query_with(sql, arguments::<Postgres>(values)?);
                query.execute(connection).await?.rows_affected()
            }
        })
    }

    /// All rows of a statement's answer.
    pub(super) async fn rows(self, sql: &'static str, values: Vec<Value>) -> Sql<Vec<Row>> {
        self.fetch(sql, values, true).await
    }

    /// The same, each row made into something smaller before the next one comes.
    pub(super) async fn each<T>(
        self,
        sql: &'static str,
        values: Vec<Value>,
        make: impl Fn(&Row) -> Sql<T>,
    ) -> Sql<Vec<T>> {
        match self {
            Self::Sqlite(connection) => {
                let query = query_with(sql, arguments::<Sqlite>(values)?);
                let rows = query.fetch(connection).map_ok(Row::Sqlite);
                rows.and_then(async |row| make(&row)).try_collect().await
            }
            Self::Postgres(connection) => {
                let query = query_with(sql, arguments::<Postgres>(values)?);
                let rows = query.fetch(connection).map_ok(Row::Postgres);
                rows.and_then(async |row| make(&row)).try_collect().await
            }
        }
    }

    /// The same for a statement that is put together, and not kept for the next time.
    pub(super) async fn rows_once(self, sql: String, values: Vec<Value>) -> Sql<Vec<Row>> {
        self.fetch(AssertSqlSafe(sql), values, false).await
    }

    /// The first row of a statement's answer.
    pub(super) async fn row(self, sql: &'static str, values: Vec<Value>) -> Sql<Option<Row>> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    async fn fetch(self, sql: impl SqlSafeStr, values: Vec<Value>, keep: bool) -> Sql<Vec<Row>> {
        match self {
            Self::Sqlite(connection) => {
                let query = query_with(sql, arguments::<Sqlite>(values)?).persistent(keep);
                let rows = query.fetch_all(connection).await?;
                Ok(rows.into_iter().map(Row::Sqlite).collect())
            }
            Self::Postgres(connection) => {
                let query = query_with(sql, arguments::<Postgres>(values)?).persistent(keep);
                let rows = query.fetch_all(connection).await?;
                Ok(rows.into_iter().map(Row::Postgres).collect())
            }
        }
    }
}

fn arguments<DB: Database>(values: Vec<Value>) -> Sql<DB::Arguments>
where
    i64: for<'q> Encode<'q, DB> + Type<DB>,
    f64: for<'q> Encode<'q, DB> + Type<DB>,
    bool: for<'q> Encode<'q, DB> + Type<DB>,
    String: for<'q> Encode<'q, DB> + Type<DB>,
    Option<Vec<u8>>: for<'q> Encode<'q, DB> + Type<DB>,
{
    let mut arguments = DB::Arguments::default();
    for value in values {
        match value {
            Value::Integer(value) => arguments.add(value),
            Value::Real(value) => arguments.add(value),
            Value::Bool(value) => arguments.add(value),
            Value::Text(value) => arguments.add(value),
            Value::Bytes(value) => arguments.add(value),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
