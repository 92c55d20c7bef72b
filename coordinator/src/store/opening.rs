//! From a folder or a database to a ledger that this process may write to.

use std::path::Path;

use super::body::Origin;
use super::error::Error;
use super::ledger::{Attempt, LOOK, Lead, Ledger};
use super::location::{LedgerAt, Postgres};
use super::lock::Lock;
use super::{Options, blocking, home, rebuild, recovery, segment};

/// A ledger, and the right to it.
pub(super) struct Opened {
    pub(super) ledger: Ledger,
    pub(super) origin: Origin,
    pub(super) rebuilt: bool,
    /// Where several share the ledger.
    pub(super) lead: Option<Lead>,
    /// Where one process has the folder.
    pub(super) lock: Option<Lock>,
}

/// Opens the ledger of a folder; with PostgreSQL, waits until this process leads.
pub(super) async fn open(dir: &Path, at: &LedgerAt, options: Options<'_>) -> Result<Opened, Error> {
    let origin = Origin {
        numerics: options.numerics.to_owned(),
        version: options.version.to_owned(),
        restarts: 1,
    };
    match at {
        LedgerAt::Folder => in_folder(dir, origin).await,
        LedgerAt::Postgres(at) => in_database(dir, at, origin).await,
    }
}

async fn in_folder(dir: &Path, origin: Origin) -> Result<Opened, Error> {
    let lock = Lock::take(dir)?;
    let last = segment::list(dir)?.last().copied();
    let path = dir.join("ledger.db");
    let lost = last.is_some() && std::fs::metadata(&path).map_or(0, |file| file.len()) == 0;
    if lost {
        rebuild::rebuild(dir, &path).await?;
    }
    let ledger = Ledger::open(&path).await?;
    if !lost && ledger.restarts().await? < newest(dir).await? {
        // An older ledger would take the newer segments for garbage.
        let detail = "it is older than the segments".to_owned();
        return Err(Error::Corrupt { path, detail });
    }
    admit(&dir.display(), ledger.numerics().await?, &origin)?;
    let origin = ledger.register(origin).await?;
    Ok(Opened { ledger, origin, rebuilt: lost, lead: None, lock: Some(lock) })
}

async fn in_database(dir: &Path, at: &Postgres, origin: Origin) -> Result<Opened, Error> {
    let ledger = Ledger::postgres(at).await?;
    // A standby with the wrong folder is of no use: better to hear of it before it is needed.
    if let Some(expected) = ledger.home().await? {
        home::expect(dir, &expected)?;
    }
    let (lead, origin, previous) = lead(&ledger, at, origin, newest(dir).await?).await?;
    // The database says who leads. The lock may be held by a leader that hangs, or not work at all.
    let lock =
        Lock::take(dir).inspect_err(|error| tracing::warn!(%error, "the folder is not locked"));
    let mut write = ledger.write().await?;
    match ledger.home().await? {
        Some(expected) => home::expect(dir, &expected)?,
        None => {
            let mut group = write.group().await?;
            group.put_home(&home::make(dir)?).await?;
            group.commit().await?;
        }
    }
    let behind = previous < newest(dir).await?;
    if behind && !ledger.studies().await?.is_empty() {
        let detail = "it is older than the segments".to_owned();
        return Err(Error::CorruptDatabase { ledger: at.to_string(), detail });
    }
    if behind {
        let mut group = write.group().await?;
        rebuild::replay(dir, &mut group).await?;
        group.commit().await?;
    }
    drop(write);
    Ok(Opened { ledger, origin, rebuilt: behind, lead: Some(lead), lock: lock.ok() })
}

/// Waits until this process leads; returns the epoch of the leader before, too.
async fn lead(
    ledger: &Ledger,
    at: &Postgres,
    origin: Origin,
    newest: u32,
) -> Result<(Lead, Origin, u32), Error> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let me = format!("process {} on {}", std::process::id(), host.trim());
    let mut known = String::new();
    loop {
        match ledger.try_lead(&origin, &me, newest).await {
            Ok(Attempt::Leads { lead, origin, previous }) => {
                tracing::info!(ledger = %at, epoch = origin.restarts, "leads");
                return Ok((lead, origin, previous));
            }
            Ok(Attempt::Held { holder, numerics }) => {
                admit(at, Some(numerics), &origin)?;
                if known != holder {
                    tracing::info!(ledger = %at, leader = holder, "stands by");
                    known = holder;
                }
            }
            // A database that restarts is waited for like a leader.
            Err(error @ Error::Ledger { .. }) => {
                tracing::warn!(%error, "a standby does not reach the ledger");
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Refuses a store that is pinned to other arithmetic.
fn admit(
    what: &dyn std::fmt::Display,
    stored: Option<String>,
    origin: &Origin,
) -> Result<(), Error> {
    match stored.filter(|stored| *stored != origin.numerics) {
        None => Ok(()),
        Some(stored) => Err(Error::OtherNumerics {
            dir: what.to_string().into(),
            stored,
            running: origin.numerics.clone(),
        }),
    }
}

/// The epoch of the newest segment; 0 if there is none.
async fn newest(dir: &Path) -> Result<u32, Error> {
    let dir = dir.to_path_buf();
    blocking(move || match segment::list(&dir)?.last() {
        Some(&last) => recovery::restarts(&dir, last),
        None => Ok(0),
    })
    .await
}
