//! Who leads, where several coordinators share a PostgreSQL ledger.
//!
//! The lead is a row: an epoch, which is the number of openings so far, and when it expires by the
//! database's clock. Whoever finds it expired takes the next epoch; the leader renews it. What keeps
//! a deposed leader from writing is neither clock nor lease, but the epoch: every transaction ends by
//! locking the row at the epoch that it was begun under, and fails where that has passed.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::PgConnection;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::sql::{Session, Sql, values};
use super::{At, Inner, Ledger, postgres};
use crate::store::body::Origin;
use crate::store::error::Error;
use crate::store::location::Postgres;

/// How long a lead lasts without renewal.
const LEASE: Duration = Duration::from_secs(6);

/// How often it is renewed, and tried again after a failure.
const RENEWAL: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(500);

/// How often a standby looks whether the lead has expired, and how long it waits for an answer: a
/// connection that a network has lost may look as if it were there for a quarter of an hour.
pub(in crate::store) const LOOK: Duration = Duration::from_secs(1);
const ANSWER: Duration = Duration::from_secs(8);

/// What a leader holds in memory.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) epoch: i64,
    pub(super) lost: CancellationToken,
}

/// The renewals of a lead; they end when this is dropped, and the lead expires.
#[derive(Debug)]
pub(in crate::store) struct Lead {
    lost: CancellationToken,
    renewing: JoinHandle<()>,
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

impl Lead {
    /// Renews nothing more, as if the process hung.
    #[cfg(test)]
    pub(in crate::store) fn pause(&self) {
        self.renewing.abort();
    }

    /// Cancelled once another leads, or may.
    pub(in crate::store) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }
}

/// What became of an attempt to lead.
pub(in crate::store) enum Attempt {
    /// This process leads.
    Leads {
        lead: Lead,
        origin: Origin,
        /// The epoch of the leader before.
        previous: u32,
    },
    /// Another does.
    Held {
        /// Who.
        holder: String,
        /// What the store is pinned to.
        numerics: String,
    },
}

impl Ledger {
    /// Takes the lead if nobody has it, with an epoch above `newest`.
    pub(in crate::store) async fn try_lead(
        &self,
        origin: &Origin,
        holder: &str,
        newest: u32,
    ) -> Result<Attempt, Error> {
        // A lead that was taken without an answer expires like that of a leader that died.
        let attempt = timeout(ANSWER, self.attempt(origin, holder, newest)).await;
        attempt.unwrap_or_else(|_| Err(self.0.sql(postgres::late(ANSWER))))
    }

    async fn attempt(&self, origin: &Origin, holder: &str, newest: u32) -> Result<Attempt, Error> {
        let At::Postgres(at) = &self.0.at else { return Err(Error::Closed) };
        let begun = Instant::now();
        let taken = self.rows(
            "INSERT INTO store (\"only\", numerics, version, restarts, previous, holder, expires) \
             VALUES (1, $1, $2, $5 + 1, 0, $3, clock_timestamp() + $4 * interval '1 second') \
             ON CONFLICT (\"only\") DO UPDATE SET previous = store.restarts, \
                 restarts = greatest(store.restarts, $5) + 1, holder = excluded.holder, \
                 expires = clock_timestamp() + $4 * interval '1 second' \
             WHERE store.expires <= clock_timestamp() AND store.numerics = excluded.numerics \
             RETURNING numerics, version, restarts, previous",
            values![
                origin.numerics.as_str(),
                origin.version.as_str(),
                holder,
                LEASE.as_secs_f64(),
                newest
            ],
        );
        if let Some(row) = taken.await?.first() {
            let sql = |error| self.0.sql(error);
            let origin = super::origin(row).map_err(sql)?;
            let previous = super::decode::small(row, "previous").map_err(sql)?;
            let epoch = i64::from(origin.restarts);
            let lost = CancellationToken::new();
            let held = Held { epoch, lost: lost.clone() };
            // The one that writes was idle for as long as this process stood by, and may be gone without a trace.
            self.0.broken[0].store(true, Ordering::Relaxed);
            // A ledger leads once; whoever was deposed opens another.
            self.0.lead.set(held).map_err(|_| Error::Closed)?;
            let renewing = tokio::spawn(renew(at.clone(), epoch, begun, lost.clone()));
            return Ok(Attempt::Leads { lead: Lead { lost, renewing }, origin, previous });
        }
        let rows = self.rows("SELECT holder, numerics FROM store", values![]).await?;
        let held = rows.first().map(|row| -> Sql<_> {
            Ok(Attempt::Held { holder: row.get("holder")?, numerics: row.get("numerics")? })
        });
        held.unwrap_or(Err(sqlx::Error::RowNotFound)).map_err(|error| self.0.sql(error))
    }

    /// Gives the lead up, so that a standby need not wait until it expires.
    pub(in crate::store) async fn resign(&self) -> Result<(), Error> {
        let Some(held) = self.0.lead.get().filter(|held| !held.lost.is_cancelled()) else {
            return Ok(());
        };
        // Before that, so that it is not renewed afterwards.
        held.lost.cancel();
        let resigned = self.rows(
            "UPDATE store SET expires = clock_timestamp() WHERE restarts = $1 RETURNING restarts",
            values![held.epoch],
        );
        // By then it has expired.
        match timeout(LEASE, resigned).await {
            Ok(resigned) => resigned.map(|_| ()),
            Err(_) => Err(self.0.sql(postgres::late(LEASE))),
        }
    }
}

impl Inner {
    /// Fails unless this process leads; it does so then until the transaction ends.
    pub(super) async fn fence(&self, session: Session<'_>) -> Result<(), Error> {
        if let At::Sqlite(_) = self.at {
            // The folder's lock has seen to it.
            return Ok(());
        }
        let epoch = self.lead.get().map_or(0, |held| held.epoch);
        // Nothing but the commit follows: whoever hangs here must not keep the next leader waiting.
        let led = session.row(
            "SELECT restarts, set_config('idle_in_transaction_session_timeout', '5s', true) \
             FROM store WHERE restarts = $1 FOR SHARE",
            values![epoch],
        );
        if led.await.map_err(|error| self.sql(error))?.is_some() {
            return Ok(());
        }
        if let Some(held) = self.lead.get() {
            held.lost.cancel();
        }
        Err(Error::Deposed { epoch })
    }
}

/// Renews until that fails for as long as the lead lasts. Only the length of the wait is by this
/// machine's clock: an early or late end costs time, never a record.
async fn renew(at: Postgres, epoch: i64, mut renewed: Instant, lost: CancellationToken) {
    let mut connection = None;
    let mut wait = RENEWAL;
    loop {
        tokio::select! {
            biased;
            () = lost.cancelled() => return,
            () = sleep(wait) => {}
        }
        let asked = Instant::now();
        let left = LEASE.saturating_sub(renewed.elapsed());
        match timeout(left, renew_once(&at, &mut connection, epoch)).await {
            Ok(Ok(true)) => (renewed, wait) = (asked, RENEWAL),
            Ok(Ok(false)) => {
                tracing::error!(ledger = %at, epoch, "another coordinator leads");
                break;
            }
            Ok(Err(error)) => {
                tracing::warn!(ledger = %at, %error, "the lead was not renewed");
                (connection, wait) = (None, AGAIN);
            }
            Err(_) => {
                tracing::error!(ledger = %at, epoch, "the ledger does not answer: the lead is given up");
                break;
            }
        }
    }
    lost.cancel();
}

async fn renew_once(at: &Postgres, connection: &mut Option<PgConnection>, epoch: i64) -> Sql<bool> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(postgres::connect(at).await?),
    };
    let renewed = Session::Postgres(connection).run(
        "UPDATE store SET expires = clock_timestamp() + $2 * interval '1 second' \
         WHERE restarts = $1",
        values![epoch, LEASE.as_secs_f64()],
    );
    Ok(renewed.await? == 1)
}
