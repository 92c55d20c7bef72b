//! Where studies stand, for all who ask: the engine is looked at once for all that ask at the same moment,
//! and what is made of it they share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::{Stream, stream};
use prost::Message;
use proto::v1::{CellStatus, Quarantined, StudyStatus, StudySummary};
use study::StudyId;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tonic::Status;

use super::call::Call;
use super::status::is_running;
use super::workers::ask;

/// How often a watched study is looked at.
const MOMENT: Duration = Duration::from_millis(500);

/// Whoever asks for how it is now, and no earlier, waits after another look: `SHARE` times as long as the engine took
/// for that one, within these bounds.
const SPACING: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(2);
const SHARE: u32 = 10;

/// For how long a status is kept whose cells are asked for page by page.
const KEPT: Duration = Duration::from_secs(10);

/// Bytes of cells, and of ranges that were given up, in a message.
const PAGE: usize = 1 << 20;

/// The statuses of all studies that somebody looks at.
#[derive(Clone)]
pub(super) struct Statuses {
    calls: mpsc::Sender<Call>,
    watched: Arc<Mutex<HashMap<StudyId, Weak<Watched>>>>,
    list: Arc<Shared<Vec<StudySummary>>>,
}

/// A study that somebody looks at.
struct Watched {
    study: StudyId,
    calls: mpsc::Sender<Call>,
    status: Shared<StudyStatus>,
}

/// What the engine was last seen with, for all who ask.
struct Shared<T>(tokio::sync::Mutex<Option<Latest<T>>>);

struct Latest<T> {
    /// When it was asked for.
    at: Instant,
    /// How long the engine took.
    took: Duration,
    seen: Arc<T>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::default())
    }
}

impl<T> Shared<T> {
    /// What was seen last if it is of this moment or later, else a new look. Whoever asks meanwhile waits for it.
    async fn since(
        &self,
        moment: Instant,
        look: impl Future<Output = Result<(T, Duration), Status>>,
    ) -> Result<(Instant, Arc<T>), Status> {
        let mut latest = self.0.lock().await;
        if let Some(Latest { at, took, seen }) = &*latest {
            if *at >= moment {
                return Ok((*at, Arc::clone(seen)));
            }
            sleep_until(*at + (*took * SHARE).clamp(SPACING, LONGEST)).await;
        }
        let at = Instant::now();
        let (seen, took) = look.await?;
        let seen = Arc::new(seen);
        *latest = Some(Latest { at, took, seen: Arc::clone(&seen) });
        Ok((at, seen))
    }
}

impl Statuses {
    pub(super) fn new(calls: mpsc::Sender<Call>) -> Self {
        Self { calls, watched: Arc::default(), list: Arc::default() }
    }

    /// All studies as they stand now.
    pub(super) async fn list(&self) -> Result<Arc<Vec<StudySummary>>, Status> {
        let look = ask(&self.calls, |reply| Call::List { reply });
        Ok(self.list.since(Instant::now(), look).await?.1)
    }

    /// How a study stands now: no earlier than this call.
    pub(super) async fn now(&self, study: StudyId) -> Result<Arc<StudyStatus>, Status> {
        Ok(self.watched(study).since(Instant::now()).await?.1)
    }

    /// How a study stood a moment ago, or now.
    pub(super) async fn lately(&self, study: StudyId) -> Result<Arc<StudyStatus>, Status> {
        Ok(self.watched(study).since(before(MOMENT)).await?.1)
    }

    /// The part of a status that fits in a message: from its first cell, or behind `after`.
    pub(super) async fn page(
        &self,
        study: StudyId,
        after: Option<u64>,
    ) -> Result<StudyStatus, Status> {
        let watched = self.watched(study);
        let since = if after.is_some() { before(KEPT) } else { Instant::now() };
        let page = page(&watched.since(since).await?.1, after);
        if (page.cells.len() as u64) < page.cells_total && after.is_none() {
            // The other pages are to be of the same status.
            tokio::spawn(async move {
                sleep(KEPT).await;
                drop(watched);
            });
        }
        Ok(page)
    }

    /// A study's status again and again, until nothing more happens to it by itself. It begins with how
    /// it stands now.
    pub(super) async fn follow(
        &self,
        study: StudyId,
    ) -> Result<impl Stream<Item = Arc<StudyStatus>> + Send + 'static, Status> {
        let watched = self.watched(study);
        let first = watched.since(Instant::now()).await?;
        Ok(stream::unfold(Some(first), move |now| {
            let watched = Arc::clone(&watched);
            async move {
                let (at, status) = now?;
                if !is_running(status.state()) {
                    return Some((status, None));
                }
                sleep(MOMENT).await;
                let newer = (at + Duration::from_nanos(1)).max(before(MOMENT));
                // A coordinator that stops ends the stream.
                Some((status, watched.since(newer).await.ok()))
            }
        }))
    }

    fn watched(&self, study: StudyId) -> Arc<Watched> {
        let mut all = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = all.get(&study).and_then(Weak::upgrade) {
            return watched;
        }
        all.retain(|_, watched| watched.strong_count() > 0);
        let calls = self.calls.clone();
        let watched = Arc::new(Watched { study, calls, status: Shared::default() });
        all.insert(study, Arc::downgrade(&watched));
        watched
    }
}

impl Watched {
    async fn since(&self, moment: Instant) -> Result<(Instant, Arc<StudyStatus>), Status> {
        self.status.since(moment, self.look()).await
    }

    async fn look(&self) -> Result<(StudyStatus, Duration), Status> {
        let study = self.study;
        let (look, took) = ask(&self.calls, |reply| Call::Look { study, reply }).await?;
        let look = look.ok_or_else(|| Status::not_found(format!("there is no study {study}")))?;
        // Evidence and labels of a large study take a while.
        let status = tokio::task::spawn_blocking(move || look.status()).await;
        let status = status.map_err(|_| Status::internal("the status could not be made"))?;
        Ok((status, took))
    }
}

/// So long ago.
fn before(age: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(age).unwrap_or(now)
}

/// The cells behind `after` that fit; what else there is comes with the first.
pub(super) fn page(status: &StudyStatus, after: Option<u64>) -> StudyStatus {
    let start = after.map_or(0, |after| status.cells.partition_point(|cell| cell.cell <= after));
    let whole = if after.is_none() { usize::MAX } else { 0 };
    StudyStatus {
        study: status.study.clone(),
        name: status.name.clone(),
        reason: status.reason.clone(),
        notes: status.notes.iter().take(whole).cloned().collect(),
        cells: fitting(&status.cells[start..], CellStatus::encoded_len),
        rows: status.rows.iter().take(whole).cloned().collect(),
        workers: status.workers.iter().take(whole).cloned().collect(),
        quarantined: match after {
            None => fitting(&status.quarantined, Quarantined::encoded_len),
            Some(_) => Vec::new(),
        },
        alarm: status.alarm.clone(),
        family: status.family,
        ..*status
    }
}

/// As many as fit in a message, and one at least.
fn fitting<T: Clone>(all: &[T], size: impl Fn(&T) -> usize) -> Vec<T> {
    let mut bytes = 0;
    let fits = |one: &&T| {
        let first = bytes == 0;
        bytes += size(one);
        first || bytes <= PAGE
    };
    all.iter().take_while(fits).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicU64, Ordering};

    use futures_util::StreamExt;
    use proto::convert::study_bytes;
    use proto::v1::studies_client::StudiesClient;
    use proto::v1::studies_server::StudiesServer;
    use proto::v1::{StatusRequest, StudyState, WatchRequest};
    use study::CellId;
    use study::tally::Tally;
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;
    use tokio_stream::wrappers::TcpListenerStream;
    use tonic::transport::Endpoint;

    use super::super::fetch::Downloads;
    use super::super::intake::Intake;
    use super::super::spool::Spool;
    use super::super::studies::StudyService;
    use super::super::takeover::{NoDatasets, definition};
    use super::*;
    use crate::core::{CellView, ChecksView, Quarantine, StudyPhase, StudyView};
    use crate::server::status::{Look, Progress};
    use crate::store::{Options, Store};

    const STUDY: StudyId = StudyId([7; 32]);

    fn look(study: StudyId) -> Look {
        Look {
            study,
            name: "watched".to_owned(),
            state: StudyState::Running,
            reason: String::new(),
            notes: Vec::new(),
            workers: Vec::new(),
            progress: None,
        }
    }

    /// Something that answers like an engine, and how often it was looked at.
    fn engine(
        look: impl Fn(StudyId) -> Look + Send + 'static,
    ) -> (mpsc::Sender<Call>, Arc<AtomicU64>) {
        slow_engine(Duration::from_millis(1), look)
    }

    /// The same where every look takes so long.
    fn slow_engine(
        took: Duration,
        look: impl Fn(StudyId) -> Look + Send + 'static,
    ) -> (mpsc::Sender<Call>, Arc<AtomicU64>) {
        let (calls, mut requests) = mpsc::channel(8);
        let looks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&looks);
        tokio::spawn(async move {
            while let Some(call) = requests.recv().await {
                counted.fetch_add(1, Ordering::Relaxed);
                match call {
                    Call::Look { study, reply } => _ = reply.send((Some(look(study)), took)),
                    Call::List { reply } => _ = reply.send((Vec::new(), took)),
                    _ => panic!("nothing else is asked for"),
                }
            }
        });
        (calls, looks)
    }

    #[tokio::test(start_paused = true)]
    async fn two_hundred_watchers_cost_one_look_per_moment() {
        let (calls, looks) = engine(look);
        let statuses = Statuses::new(calls);
        let mut watchers = JoinSet::new();
        for number in 0..200 {
            let statuses = statuses.clone();
            watchers.spawn(async move {
                // Each with a rhythm of its own.
                sleep(Duration::from_millis(number * 37 % 500)).await;
                let mut seen = pin!(statuses.follow(STUDY).await.unwrap());
                let mut last = seen.next().await.unwrap();
                for _ in 0..24 {
                    let next = seen.next().await.unwrap();
                    assert!(!Arc::ptr_eq(&last, &next), "a watcher sees something new each time");
                    last = next;
                }
            });
        }
        // Whoever joins sees how it is then.
        sleep(Duration::from_secs(2)).await;
        assert!(looks.load(Ordering::Relaxed) <= 2 * 10, "{looks:?}");
        let before = looks.load(Ordering::Relaxed);
        sleep(MOMENT * 16).await;
        let during = looks.load(Ordering::Relaxed) - before;
        assert!((15..=17).contains(&during), "{during} looks in 16 moments");
        while let Some(watched) = watchers.join_next().await {
            watched.unwrap();
        }
        let over = looks.load(Ordering::Relaxed);
        sleep(MOMENT * 4).await;
        assert_eq!(looks.load(Ordering::Relaxed), over, "nobody watches");
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_now_is_not_told_of_before() {
        let (calls, looks) = engine(look);
        let statuses = Statuses::new(calls);
        let watched = statuses.watched(STUDY);
        for asked in 1..4 {
            statuses.now(STUDY).await.unwrap();
            assert_eq!(looks.load(Ordering::Relaxed), asked);
            statuses.lately(STUDY).await.unwrap();
            assert_eq!(looks.load(Ordering::Relaxed), asked);
            sleep(Duration::from_millis(1)).await;
        }
        let crowd = (0..50).map(|_| statuses.now(STUDY));
        futures_util::future::join_all(crowd).await;
        assert_eq!(looks.load(Ordering::Relaxed), 4);
        drop(watched);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_lists_costs_a_look_now_and_then() {
        let (calls, looks) = engine(look);
        let statuses = Statuses::new(calls);
        let began = Instant::now();
        let mut crowd = JoinSet::new();
        for number in 0..1000 {
            let statuses = statuses.clone();
            crowd.spawn(async move {
                sleep(Duration::from_millis(number)).await;
                statuses.list().await.unwrap();
            });
        }
        while let Some(listed) = crowd.join_next().await {
            listed.unwrap();
        }
        let most = began.elapsed().as_millis() / SPACING.as_millis() + 1;
        assert!(u128::from(looks.load(Ordering::Relaxed)) <= most, "{looks:?} of {most}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_engine_is_spared_and_yet_asked() {
        let (calls, looks) = slow_engine(Duration::from_secs(5), look);
        let statuses = Statuses::new(calls);
        let watched = statuses.watched(STUDY);
        let began = Instant::now();
        for _ in 0..4 {
            statuses.now(STUDY).await.unwrap();
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(looks.load(Ordering::Relaxed), 4);
        assert_eq!(began.elapsed().as_secs(), 3 * LONGEST.as_secs());
        drop(watched);
    }

    /// More than any message takes: 200,000 cells, and 20 MB of ranges that were given up.
    fn large(study: StudyId, plan: &Arc<study::Plan>) -> Look {
        let cell = |id| CellView {
            cell: CellId(id),
            planned: 100,
            done: 50,
            leased: 0,
            closed: None,
            stopped: false,
            failures: 0,
            tally: Tally(Vec::new()),
            trials_per_second: 0.0,
            seconds_per_trial: None,
        };
        let given_up = |first| Quarantine {
            cell: CellId(1),
            range: first..first + 1,
            deaths: 5,
            reason: "r".repeat(2000),
        };
        let view = StudyView {
            study,
            phase: StudyPhase::Active,
            cells: (1..=200_000).map(|id| cell(id << 40)).collect(),
            quarantined: (0..10_000).map(given_up).collect(),
            alarm: None,
            checks: ChecksView { waiting: 0, running: 0, agreed: 0, given_up: 0 },
        };
        let (plan, exploratory) = (Arc::clone(plan), Arc::default());
        Look { progress: Some(Progress { plan, exploratory, view }), ..look(study) }
    }

    #[tokio::test]
    async fn a_status_of_any_size_comes_in_messages_that_fit() {
        let plan = Arc::new(definition().plan().unwrap());
        let whole = large(STUDY, &plan).status();
        assert!(whole.encoded_len() > 17 << 20, "{}", whole.encoded_len());
        let (calls, looks) = engine(move |study| large(study, &plan));
        let statuses = Statuses::new(calls.clone());
        let dir = tempfile::tempdir().unwrap();
        let options = Options { numerics: "numerics", version: "0.0.0" };
        let store = Arc::new(Store::open(dir.path(), options).await.unwrap().0);
        let intake = Arc::new(Intake {
            calls: calls.clone(),
            store: Arc::clone(&store),
            spool: Spool::open(dir.path()).unwrap(),
            datasets: Arc::new(NoDatasets),
            memory: 0,
            turn: tokio::sync::Mutex::new(()),
        });
        let (datasets, downloads) = (Arc::new(NoDatasets), Downloads::default());
        let service = StudyService { calls, intake, statuses, store, datasets, downloads };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tonic::transport::Server::builder().add_service(StudiesServer::new(service));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        // With tonic's limit of 4 MiB, as any client in any language has it.
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        let mut client = StudiesClient::new(channel);
        let study = study_bytes(STUDY);
        let mut request = StatusRequest { study: study.clone(), after_cell: None };
        let mut status = client.status(request.clone()).await.unwrap().into_inner();
        assert_eq!((status.cells_total, status.cells_open), (200_000, 200_000));
        assert_eq!((status.trials_done, status.trials_planned), (10_000_000, 20_000_000));
        assert_eq!(status.quarantined_total, 10_000);
        let mut pages = 1;
        while (status.cells.len() as u64) < status.cells_total {
            request.after_cell = status.cells.last().map(|cell| cell.cell);
            let page = client.status(request.clone()).await.unwrap().into_inner();
            assert!(!page.cells.is_empty() && page.rows.is_empty());
            status.cells.extend(page.cells);
            pages += 1;
        }
        assert!(pages > 1);
        assert!(status.cells == whole.cells, "every cell once, in order");
        assert_eq!(looks.load(Ordering::Relaxed), 1, "all pages are of one status");
        let mut watching = client.watch(WatchRequest { study }).await.unwrap().into_inner();
        let seen = watching.message().await.unwrap().unwrap();
        assert_eq!((seen.trials_done, seen.cells_open), (10_000_000, 200_000));
    }
}
