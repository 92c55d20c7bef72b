//! From a folder or a database to a ledger that this process may write to.

use std::path::Path;

use super::body::Origin;
use super::error::Error;
use super::ledger::{Attempt, LOOK, Lead, Ledger};
use super::location::{LedgerAt, Postgres};
use super::lock::Lock;
use super::shelf::Shelf;
use super::{Options, blocking, mount, rebuild, recovery};

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
pub(super) async fn open(
    dir: &Path,
    shelf: &Shelf,
    at: &LedgerAt,
    options: Options<'_>,
) -> Result<Opened, Error> {
    let origin = Origin {
        numerics: options.numerics.to_owned(),
        version: options.version.to_owned(),
        restarts: 1,
    };
    match at {
        LedgerAt::Folder => in_folder(dir, shelf, origin).await,
        LedgerAt::Postgres(at) => in_database(dir, shelf, at, origin).await,
    }
}

async fn in_folder(dir: &Path, shelf: &Shelf, origin: Origin) -> Result<Opened, Error> {
    mount::require_local(dir)?;
    let lock = Lock::take(dir)?;
    let newest = newest(shelf).await?.map(|origin| origin.restarts);
    let path = dir.join("ledger.db");
    let lost = newest.is_some() && std::fs::metadata(&path).map_or(0, |file| file.len()) == 0;
    if lost {
        rebuild::rebuild(shelf, &path).await?;
    }
    let ledger = Ledger::open(&path).await?;
    let restarts = ledger.restarts().await?;
    if newest.is_some_and(|newest| !lost && restarts < newest.max(1)) {
        // An older ledger would take the newer segments for garbage.
        let detail = "it is older than the segments".to_owned();
        return Err(Error::Corrupt { path, detail });
    }
    let stored = ledger.numerics().await?;
    admit(&dir.display(), stored, &origin)?;
    if shelf.is_remote() {
        expect_home(&ledger, shelf).await?;
    }
    let origin = ledger.register(origin).await?;
    if shelf.is_remote() {
        keep_home(&ledger, shelf).await?;
    }
    Ok(Opened { ledger, origin, rebuilt: lost, lead: None, lock: Some(lock) })
}

async fn in_database(
    dir: &Path,
    shelf: &Shelf,
    at: &Postgres,
    origin: Origin,
) -> Result<Opened, Error> {
    let ledger = Ledger::postgres(at).await?;
    // A standby with the wrong folder is of no use: better to hear of it before it is needed.
    expect_home(&ledger, shelf).await?;
    let (stored, newest_before) = (ledger.numerics().await?, newest(shelf).await?);
    let pinned = newest_before.as_ref().map(|origin| origin.numerics.clone());
    admit(&shelf.name().display(), stored.or(pinned.filter(|pinned| !pinned.is_empty())), &origin)?;
    let least = newest_before.map_or(0, |origin| origin.restarts);
    let (lead, origin, previous) = lead(&ledger, at, origin, least).await?;
    // The database says who leads. The lock may be held by a leader that hangs, or not work at all.
    let lock =
        Lock::take(dir).inspect_err(|error| tracing::warn!(%error, "the folder is not locked"));
    expect_home(&ledger, shelf).await?;
    keep_home(&ledger, shelf).await?;
    let behind = newest(shelf).await?.is_some_and(|newest| previous < newest.restarts.max(1));
    if behind && ledger.holds_studies().await? {
        let detail = "it is older than the segments".to_owned();
        return Err(Error::CorruptDatabase { ledger: at.to_string(), detail });
    }
    if behind {
        let mut write = ledger.write().await?;
        let mut group = write.group().await?;
        rebuild::replay(shelf, &mut group).await?;
        group.commit().await?;
    }
    Ok(Opened { ledger, origin, rebuilt: behind, lead: Some(lead), lock: lock.ok() })
}

/// Refuses segments of another ledger: all shards of this one would be given up as lost.
async fn expect_home(ledger: &Ledger, shelf: &Shelf) -> Result<(), Error> {
    let Some(expected) = ledger.home().await? else { return Ok(()) };
    if expected == home(shelf).await? {
        return Ok(());
    }
    Err(Error::OtherHome { place: shelf.name().display().to_string() })
}

async fn keep_home(ledger: &Ledger, shelf: &Shelf) -> Result<(), Error> {
    let home = home(shelf).await?;
    let mut write = ledger.write().await?;
    let mut group = write.group().await?;
    group.put_home(&home).await?;
    group.commit().await
}

async fn home(shelf: &Shelf) -> Result<String, Error> {
    let shelf = shelf.clone();
    blocking(move || shelf.home()).await
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

/// What the newest segment says of the store, if there is one.
async fn newest(shelf: &Shelf) -> Result<Option<Origin>, Error> {
    let shelf = shelf.clone();
    blocking(move || match shelf.list()?.last() {
        Some(&last) => recovery::origin(&shelf, last).map(Some),
        None => Ok(None),
    })
    .await
}
