//! Transactions that change the ledger.

use std::path::Path;

use sqlx::{Connection, Sqlite, SqliteConnection, Transaction, query, query_scalar};
use study::{CellId, StudyId};
use tokio::sync::MutexGuard;

use super::Number;
use crate::store::body;
use crate::store::error::Error;
use crate::store::row::{Check, Death, SealedCell, StoredStudy};

/// The right to write.
pub(in crate::store) struct Write<'a> {
    path: &'a Path,
    connection: MutexGuard<'a, SqliteConnection>,
}

impl<'a> Write<'a> {
    pub(super) fn new(path: &'a Path, connection: MutexGuard<'a, SqliteConnection>) -> Self {
        Self { path, connection }
    }

    /// Begins a transaction.
    pub(in crate::store) async fn group(&mut self) -> Result<Group<'_>, Error> {
        let begun = self.connection.begin_with("BEGIN IMMEDIATE").await;
        let transaction = begun.map_err(|error| Error::sql(self.path, error))?;
        Ok(Group { path: self.path, transaction })
    }
}

/// One transaction. Dropped without `commit`, it leaves nothing behind.
pub(in crate::store) struct Group<'a> {
    path: &'a Path,
    pub(super) transaction: Transaction<'a, Sqlite>,
}

impl Group<'_> {
    /// Makes all of it durable at once.
    pub(in crate::store) async fn commit(self) -> Result<(), Error> {
        self.transaction.commit().await.map_err(|error| Error::sql(self.path, error))
    }

    /// Puts a study, or what has changed of one.
    pub(in crate::store) async fn put_study(&mut self, study: &StoredStudy) -> Result<(), Error> {
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
    pub(in crate::store) async fn seal(
        &mut self,
        study: StudyId,
        cells: &[SealedCell],
    ) -> Result<(), Error> {
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
    pub(in crate::store) async fn forget_cell(
        &mut self,
        study: StudyId,
        cell: CellId,
    ) -> Result<(), Error> {
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
    pub(in crate::store) async fn drop_shard(&mut self, number: Number) -> Result<(), Error> {
        let dropped = query("DELETE FROM shards WHERE number = ?").bind(number.0);
        dropped.execute(&mut *self.transaction).await.map(|_| ()).map_err(|error| self.sql(error))
    }

    /// Notes that a range has killed its workers so often.
    pub(in crate::store) async fn put_death(
        &mut self,
        study: StudyId,
        death: &Death,
    ) -> Result<(), Error> {
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
    pub(in crate::store) async fn put_check(
        &mut self,
        study: StudyId,
        check: &Check,
    ) -> Result<(), Error> {
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

    /// A study's number.
    pub(super) async fn number(&mut self, study: StudyId) -> Result<i64, Error> {
        let number = query_scalar("SELECT number FROM studies WHERE id = ?").bind(&study.0[..]);
        let number = number.fetch_optional(&mut *self.transaction).await;
        number.map_err(|error| self.sql(error))?.ok_or(Error::UnknownStudy(study))
    }

    pub(super) fn sql(&self, error: sqlx::Error) -> Error {
        Error::sql(self.path, error)
    }
}
