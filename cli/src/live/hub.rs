//! Looks at studies as long as somebody watches: once per tick and study, however many watch it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coordinator::server::Handle;
use proto::v1::{StudyState, StudyStatus, StudySummary};
use study::StudyId;
use tokio::sync::watch;

use super::coverage;
use super::sections::json;
use super::snapshot::{End, Memory, Snapshot};
use crate::text;

/// Time between two looks.
const TICK: Duration = Duration::from_millis(500);

/// A view that was drawn so short ago is as good as a new one.
const FRESH: Duration = Duration::from_millis(900);

/// What the process does beside running studies.
#[derive(Clone, Default)]
pub(super) enum Stage {
    /// Studies end on their own.
    #[default]
    Serving,
    /// One study runs, and there is more to do when it is done.
    Running,
    /// That.
    Analysing,
    /// The process is about to end.
    Over(Arc<End>),
}

pub(super) struct Hub {
    /// `None` once the coordinator has stopped.
    source: Mutex<Option<Handle>>,
    /// How studies stood when the coordinator stopped.
    last: Mutex<HashMap<StudyId, Arc<StudyStatus>>>,
    pub(super) stage: watch::Sender<Stage>,
    /// All studies, as they were listed last.
    listed: Mutex<Vec<StudySummary>>,
    /// Only studies that exist get in.
    studies: Mutex<HashMap<StudyId, Arc<Watched>>>,
}

/// A study that is or was watched.
pub(super) struct Watched {
    latest: watch::Sender<Option<Arc<Snapshot>>>,
    /// Whether a task looks at it; changed under the lock of `Hub::studies` only.
    busy: Mutex<bool>,
    memory: Mutex<Memory>,
    drawn: Mutex<HashMap<usize, (Instant, Arc<str>)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    pub(super) fn new(source: Handle, stage: Stage) -> Arc<Self> {
        let stage = watch::Sender::new(stage);
        let source = Mutex::new(Some(source));
        Arc::new(Self {
            source,
            last: Mutex::default(),
            stage,
            listed: Mutex::default(),
            studies: Mutex::default(),
        })
    }

    /// Keeps how a study stands now, for everyone who looks after the coordinator has stopped. The last look
    /// of a page that watches may be half a second old, and most of a short study happens in that.
    pub(super) async fn keep(&self, study: StudyId) {
        if let Some(status) = self.status(study).await {
            lock(&self.last).insert(study, status);
        }
    }

    /// Lets the coordinator go; what was kept or seen of it last stays.
    pub(super) fn detach(&self) {
        lock(&self.source).take();
    }

    async fn status(&self, study: StudyId) -> Option<Arc<StudyStatus>> {
        match self.source() {
            Some(source) => source.status(study).await,
            None => lock(&self.last).get(&study).cloned(),
        }
    }

    /// Whether the coordinator does not have a study any more; one that has stopped has all that it had.
    fn is_deleted(&self, study: StudyId) -> bool {
        self.source().is_some_and(|source| !source.outcomes().borrow().contains_key(&study))
    }

    fn source(&self) -> Option<Handle> {
        lock(&self.source).clone()
    }

    /// All studies.
    pub(super) async fn list(&self) -> Vec<StudySummary> {
        if let Some(source) = self.source() {
            let studies = source.list().await;
            *lock(&self.listed) = studies;
        }
        lock(&self.listed).clone()
    }

    /// Whether a study has been watched or can be.
    pub(super) async fn knows(&self, study: StudyId) -> bool {
        if lock(&self.studies).contains_key(&study) {
            return true;
        }
        let id = proto::convert::study_bytes(study);
        self.list().await.iter().any(|known| known.study == id)
    }

    /// Watches a study that is known. Looking at it begins with the first who watches.
    pub(super) fn watch(
        self: &Arc<Self>,
        study: StudyId,
    ) -> watch::Receiver<Option<Arc<Snapshot>>> {
        let mut studies = lock(&self.studies);
        let watched = Arc::clone(studies.entry(study).or_insert_with(|| {
            Arc::new(Watched {
                latest: watch::Sender::new(None),
                busy: Mutex::new(false),
                memory: Mutex::default(),
                drawn: Mutex::default(),
            })
        }));
        let receiver = watched.latest.subscribe();
        let mut busy = lock(&watched.busy);
        if !*busy {
            *busy = true;
            // What was seen last may be hours old.
            watched.latest.send_replace(None);
            tokio::spawn(Arc::clone(self).look(study, Arc::clone(&watched)));
        }
        drop(busy);
        receiver
    }

    /// Looks again and again until nobody watches or the study is at its end.
    async fn look(self: Arc<Self>, study: StudyId, watched: Arc<Watched>) {
        let mut stage = self.stage.subscribe();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                changed = stage.changed() => if changed.is_err() { return },
            }
            if self.unwatched(&watched) {
                return;
            }
            let now = stage.borrow_and_update().clone();
            let status = match (self.source(), &now) {
                // Others may be following it, too.
                (Some(source), Stage::Serving) => source.recent_status(study).await,
                _ => self.status(study).await,
            };
            let state = status.as_ref().map(|status| status.state());
            let (activity, end) = match &now {
                Stage::Serving if self.is_deleted(study) => (None, Some(deleted())),
                Stage::Serving => (None, state.and_then(|state| ended(state, study))),
                Stage::Running => (None, None),
                Stage::Analysing => (Some("analysing"), None),
                Stage::Over(end) => (Some(end.state), Some(Arc::clone(end))),
            };
            let over = end.is_some();
            let snapshot = lock(&watched.memory).snapshot(status, activity, end);
            watched.latest.send_replace(Some(Arc::new(snapshot)));
            if over {
                // Whoever comes from now on starts another look.
                let _studies = lock(&self.studies);
                *lock(&watched.busy) = false;
                return;
            }
        }
    }

    /// Whether nobody watches any more; then the look is over.
    fn unwatched(&self, watched: &Watched) -> bool {
        let _studies = lock(&self.studies);
        let nobody = watched.latest.receiver_count() == 0;
        if nobody {
            *lock(&watched.busy) = false;
            lock(&watched.drawn).clear();
        }
        nobody
    }

    /// A view as JSON; `None` where nobody watches the study or there is no such view.
    pub(super) fn draw(&self, study: StudyId, view: usize) -> Option<Arc<str>> {
        let watched = lock(&self.studies).get(&study).map(Arc::clone)?;
        let snapshot = watched.latest.borrow().clone()?;
        // One at a time: readers of many views share one core at most.
        let mut drawn = lock(&watched.drawn);
        if let Some((at, text)) = drawn.get(&view)
            && at.elapsed() < FRESH
            && snapshot.end.is_none()
        {
            return Some(Arc::clone(text));
        }
        let shown = coverage::show(&snapshot.status, &snapshot.verdicts, snapshot.views.get(view)?);
        let text: Arc<str> = json(&shown).into();
        drawn.insert(view, (Instant::now(), Arc::clone(&text)));
        Some(text)
    }
}

/// What to say of a study that is gone.
fn deleted() -> Arc<End> {
    Arc::new(End { state: "deleted", message: "Somebody deleted it.".to_owned() })
}

/// What to say of a study that is at its end, in a coordinator that goes on.
fn ended(state: StudyState, study: StudyId) -> Option<Arc<End>> {
    let message = match state {
        StudyState::Done => format!(
            "The dataset is sealed. Collect it with `regretta study fetch {study}` and analyse it with `regretta analyze`."
        ),
        StudyState::Cancelled => {
            "Somebody cancelled it; submitted again it goes on from where it was.".to_owned()
        }
        StudyState::Failed => "It failed; the reason is above.".to_owned(),
        StudyState::Unspecified | StudyState::Running | StudyState::Sealing => return None,
    };
    Some(Arc::new(End { state: text::state(state), message }))
}

#[cfg(test)]
mod tests {
    use coordinator::core::Settings;
    use coordinator::server::{Config, Coordinator, Datasets, Definition};
    use coordinator::store::Storage;

    use super::*;

    struct Unsealed;

    impl Datasets for Unsealed {
        fn folder(&self, _: StudyId) -> Option<std::path::PathBuf> {
            None
        }
    }

    #[tokio::test]
    async fn whoever_comes_after_the_coordinator_has_stopped_sees_how_it_stood() {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            dir: dir.path().to_path_buf(),
            storage: Storage::default(),
            listen: ([127, 0, 0, 1], 0).into(),
            metrics: None,
            token: None,
            tls: None,
            insecure: false,
            single: true,
            study_memory: u64::MAX,
            settings: Settings::default(),
            heartbeat: Duration::from_secs(5),
            numerics: "any".to_owned(),
            version: "0".to_owned(),
            datasets: Arc::new(Unsealed),
        };
        let coordinator = Coordinator::start(config).await.unwrap();
        let handle = coordinator.handle();
        let text = include_str!("../../../studies/quickstart.toml").to_owned();
        let file_name = "quickstart.toml".to_owned();
        let definition = Definition { file_name, text, files: Vec::new() };
        let study = handle.submit(definition).await.unwrap();
        let stood = handle.status(study).await.unwrap();
        let hub = Hub::new(handle, Stage::Running);
        hub.keep(study).await;
        hub.detach();
        coordinator.stop(Duration::ZERO).await;

        let mut seen = hub.watch(study);
        let seen = seen.wait_for(Option::is_some).await.unwrap().clone().unwrap();
        assert_eq!(seen.status.cells, stood.cells);
        assert!(!stood.cells.is_empty() && stood.cells.iter().all(|cell| cell.trials_planned > 0));
    }
}
