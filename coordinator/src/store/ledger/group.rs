//! Transactions that change the ledger.

use std::ops::Range;

use study::{CellId, StudyId};
use tokio::sync::MutexGuard;

use super::decode::{Entry, study_id};
use super::sql::{Connection, Row, Sql, Transaction, Value, values};
use super::{Inner, Number};
use crate::store::body;
use crate::store::error::Error;
use crate::store::row::{Check, Death, Deleted, SealedCell, StoredShard, StoredStudy};

/// The right to write.
pub(in crate::store) struct Write<'a> {
    ledger: &'a Inner,
    connection: MutexGuard<'a, Connection>,
}

impl<'a> Write<'a> {
    pub(super) fn new(ledger: &'a Inner, connection: MutexGuard<'a, Connection>) -> Self {
        Self { ledger, connection }
    }

    /// Begins a transaction.
    pub(in crate::store) async fn group(&mut self) -> Result<Group<'_>, Error> {
        let begun = self.connection.begin().await;
        let transaction = begun.map_err(|error| self.ledger.sql(error))?;
        Ok(Group { ledger: self.ledger, transaction })
    }
}

/// One transaction. Dropped without `commit`, it leaves nothing behind.
pub(in crate::store) struct Group<'a> {
    ledger: &'a Inner,
    transaction: Transaction<'a>,
}

impl Group<'_> {
    /// Makes all of it durable at once, unless another process leads by now.
    pub(in crate::store) async fn commit(mut self) -> Result<(), Error> {
        // Last, because whoever wants to lead waits for the lock that this takes.
        if let Err(error) = self.ledger.fence(self.transaction.session()).await {
            // Whoever leads must not wait for what this has locked; a broken connection has let go.
            let _ = self.transaction.rollback().await;
            return Err(error);
        }
        self.transaction.commit().await.map_err(|error| self.ledger.sql(error))
    }

    /// Puts a study, or what has changed of one.
    pub(in crate::store) async fn put_study(&mut self, study: &StoredStudy) -> Result<(), Error> {
        let rows = self.rows(
            "INSERT INTO studies (id, file_name, text, state, reason, sealed, earlier, checksum) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
             ON CONFLICT (id) DO UPDATE SET file_name = excluded.file_name, text = excluded.text, \
                 state = excluded.state, reason = excluded.reason, sealed = excluded.sealed, \
                 earlier = excluded.earlier, checksum = excluded.checksum \
             RETURNING number",
            values![
                &study.id.0[..],
                study.file_name.as_str(),
                study.text.as_str(),
                study.state.name(),
                study.reason.as_str(),
                study.sealed.map(|digest| digest.to_vec()),
                study.earlier.as_str(),
                body::checksum(&body::Study::from(study)).to_vec(),
            ],
        );
        let rows = rows.await?;
        let number = self.only(&rows)?.ok_or(Error::UnknownStudy(study.id))?;
        self.run("DELETE FROM study_files WHERE study = $1", values![number]).await?;
        for (position, (path, digest)) in (0_i64..).zip(&study.files) {
            self.run(
                "INSERT INTO study_files (study, position, path, digest) VALUES ($1, $2, $3, $4)",
                values![number, position, path.as_str(), &digest[..]],
            )
            .await?;
        }
        Ok(())
    }

    /// Deletes all that is known of a study, damaged or not, and notes since when.
    pub(in crate::store) async fn delete_study(&mut self, deleted: Deleted) -> Result<(), Error> {
        let Deleted { study, since } = deleted;
        for row in self.rows("SELECT number, id FROM studies", values![]).await? {
            let row: Sql<_> = (|| Ok((row.get::<i64>("number")?, study_id(&row, "id")?)))();
            let (number, id) = self.decoded(row)?;
            if id != study {
                continue;
            }
            for statement in [
                "DELETE FROM shards WHERE study = $1",
                "DELETE FROM deaths WHERE study = $1",
                "DELETE FROM checks WHERE study = $1",
                "DELETE FROM study_files WHERE study = $1",
                "DELETE FROM studies WHERE number = $1",
            ] {
                self.run(statement, values![number]).await?;
            }
        }
        self.run(
            "INSERT INTO deleted (id, since) VALUES ($1, $2) \
             ON CONFLICT (id) DO UPDATE SET since = excluded.since",
            values![&study.0[..], since],
        )
        .await
    }

    /// Forgets that a study was deleted: no segment is left that says otherwise.
    pub(in crate::store) async fn drop_deleted(&mut self, study: StudyId) -> Result<(), Error> {
        self.run("DELETE FROM deleted WHERE id = $1", values![&study.0[..]]).await
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
            let replicates = i64::try_from(sealed.replicates).unwrap_or(i64::MAX);
            self.run(
                "UPDATE shards SET places = NULL WHERE study = $1 AND cell = $2 AND past <= $3",
                values![study, sealed.cell.0, replicates],
            )
            .await?;
        }
        self.run("DELETE FROM shards WHERE study = $1 AND places IS NOT NULL", values![study]).await
    }

    /// Drops all that is known of a cell.
    pub(in crate::store) async fn forget_cell(
        &mut self,
        study: StudyId,
        cell: CellId,
    ) -> Result<(), Error> {
        let study = self.number(study).await?;
        for statement in [
            "DELETE FROM shards WHERE study = $1 AND cell = $2",
            "DELETE FROM deaths WHERE study = $1 AND cell = $2",
            "DELETE FROM checks WHERE study = $1 AND cell = $2",
        ] {
            self.run(statement, values![study, cell.0]).await?;
        }
        Ok(())
    }

    /// Drops shards, and what was checked of them.
    pub(in crate::store) async fn give_up(
        &mut self,
        study: StudyId,
        shards: &[(CellId, Range<u64>)],
    ) -> Result<(), Error> {
        let study = self.number(study).await?;
        for (cell, range) in shards {
            for statement in [
                "DELETE FROM shards WHERE study = $1 AND cell = $2 AND first = $3 AND past = $4",
                "DELETE FROM checks WHERE study = $1 AND cell = $2 AND first = $3 AND past = $4",
            ] {
                self.run(statement, values![study, cell.0, range.start, range.end]).await?;
            }
        }
        Ok(())
    }

    /// Drops one shard.
    pub(in crate::store) async fn drop_shard(&mut self, number: Number) -> Result<(), Error> {
        self.run("DELETE FROM shards WHERE number = $1", values![number.0]).await
    }

    /// Notes that a range has killed its workers so often.
    pub(in crate::store) async fn put_death(
        &mut self,
        study: StudyId,
        death: &Death,
    ) -> Result<(), Error> {
        let study = self.number(study).await?;
        let Death { cell, range, deaths, reason } = death;
        self.run(
            "INSERT INTO deaths (study, cell, first, past, deaths, reason) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (study, cell, first, past) \
             DO UPDATE SET deaths = excluded.deaths, reason = excluded.reason",
            values![study, cell.0, range.start, range.end, *deaths, reason.as_str()],
        )
        .await
    }

    /// Notes the outcome of a second computation.
    pub(in crate::store) async fn put_check(
        &mut self,
        study: StudyId,
        check: &Check,
    ) -> Result<(), Error> {
        let study = self.number(study).await?;
        let Check { cell, range, digest, agreed, worker } = check;
        self.run(
            "INSERT INTO checks (study, cell, first, past, digest, agreed, worker) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (study, cell, first, past) \
             DO UPDATE SET digest = excluded.digest, agreed = excluded.agreed, \
                 worker = excluded.worker",
            values![study, cell.0, range.start, range.end, &digest[..], *agreed, worker.as_str()],
        )
        .await
    }

    /// Notes which folder or bucket has the segments.
    pub(in crate::store) async fn put_home(&mut self, home: &str) -> Result<(), Error> {
        self.run("UPDATE store SET home = $1", values![home]).await
    }

    /// A study's number.
    pub(super) async fn number(&mut self, study: StudyId) -> Result<i64, Error> {
        let rows = self.rows("SELECT number FROM studies WHERE id = $1", values![&study.0[..]]);
        let rows = rows.await?;
        self.only(&rows)?.ok_or(Error::UnknownStudy(study))
    }

    fn only(&self, rows: &[Row]) -> Result<Option<i64>, Error> {
        let number = rows.first().map(|row| row.get("number")).transpose();
        number.map_err(|error| self.ledger.sql(error))
    }

    pub(super) async fn run(&mut self, sql: &'static str, values: Vec<Value>) -> Result<(), Error> {
        let run = self.transaction.session().run(sql, values).await;
        run.map(|_| ()).map_err(|error| self.ledger.sql(error))
    }

    pub(super) async fn rows(
        &mut self,
        sql: &'static str,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, Error> {
        let rows = self.transaction.session().rows(sql, values).await;
        rows.map_err(|error| self.ledger.sql(error))
    }

    /// The rows of a statement that is put together, by what its placeholders begin with.
    pub(super) async fn rows_of(
        &mut self,
        sql: impl FnOnce(char) -> String,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, Error> {
        let session = self.transaction.session();
        let sql = sql(session.mark());
        session.rows_once(sql, values).await.map_err(|error| self.ledger.sql(error))
    }

    /// The shard of a row that must be as it was written.
    pub(super) fn sound(&self, entry: Entry) -> Result<StoredShard, Error> {
        self.ledger.sound(entry)
    }

    pub(super) fn decoded<T>(&self, result: Sql<T>) -> Result<T, Error> {
        result.map_err(|error| self.ledger.sql(error))
    }
}
