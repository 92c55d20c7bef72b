//! The live view: a page that shows studies while they run, served by the process that runs the coordinator.
//!
//! Browsers come in through `access`. A page asks for a stream of events; `hub` looks at the study twice a
//! second while anyone does, `snapshot` says what is new to whom, `sections` and `coverage` what is shown.
//! Nothing here changes a study, and nothing is looked at when nobody watches.

mod access;
mod coverage;
mod groups;
mod hub;
mod listen;
mod pages;
mod sections;
mod snapshot;
mod verdicts;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use coordinator::server::{Handle, Token};
use study::StudyId;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use access::Door;
pub(crate) use access::names_loopback;
use hub::{Hub, Stage};
use listen::Bounded;
pub(crate) use snapshot::End;

use crate::exit::BadInput;

/// Streams of events at once.
const MOST_VIEWERS: usize = 64;

/// How long pages have to hear how it ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// How the view is served.
pub(crate) struct Config<'a> {
    /// Where.
    pub(crate) address: SocketAddr,
    /// Whether browsers have to come in by a link.
    pub(crate) guarded: bool,
    /// What a caller can ask for a new link with.
    pub(crate) token: Option<&'a Token>,
    /// Whether the process ends with its one study.
    pub(crate) one_study: bool,
}

/// A view that is served.
pub(crate) struct Live {
    address: SocketAddr,
    door: Arc<Door>,
    hub: Arc<Hub>,
    viewers: Arc<Semaphore>,
    stop: CancellationToken,
    server: JoinHandle<()>,
}

impl Live {
    /// Listens, and shows what the coordinator does.
    pub(crate) async fn start(config: Config<'_>, source: Handle) -> anyhow::Result<Self> {
        let address = config.address;
        let refused = |error| {
            BadInput(format!(
                "cannot serve the live view on {address}: {error}; choose another port, or 0 for any"
            ))
        };
        let listener = TcpListener::bind(address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let door = Arc::new(Door::new(address.ip(), config.guarded, config.token)?);
        let stage = if config.one_study { Stage::Running } else { Stage::Serving };
        let hub = Hub::new(source, stage);
        // So that the study is known after the coordinator has stopped.
        hub.list().await;
        let viewers = Arc::new(Semaphore::new(MOST_VIEWERS));
        let stop = CancellationToken::new();
        let router = router(Arc::clone(&door), Arc::clone(&hub), Arc::clone(&viewers));
        let served = axum::serve(Bounded::new(listener), router)
            .with_graceful_shutdown(stop.clone().cancelled_owned());
        let server = tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::error!(%error, "the live view stopped");
            }
        });
        Ok(Self { address, door, hub, viewers, stop, server })
    }

    /// An address that lets one browser in, once.
    pub(crate) fn link(&self) -> anyhow::Result<String> {
        Ok(format!("http://{}{}", self.address, self.door.link()?))
    }

    /// The coordinator is about to stop: how its study stands now is what pages show from here on.
    pub(crate) async fn let_go(&self, study: StudyId) {
        self.hub.keep(study).await;
        self.hub.detach();
    }

    /// The records are analysed.
    pub(crate) fn analysing(&self) {
        self.hub.stage.send_replace(Stage::Analysing);
    }

    /// Tells all pages how it ended, and stops.
    pub(crate) async fn finish(self, end: End) {
        self.hub.stage.send_replace(Stage::Over(Arc::new(end)));
        // Every stream ends after its last event. One that does not read it is cut off.
        let all = self.viewers.acquire_many(MOST_VIEWERS as u32);
        _ = tokio::time::timeout(FAREWELL, all).await;
        self.hub.detach();
        self.stop.cancel();
        let abort = self.server.abort_handle();
        if tokio::time::timeout(FAREWELL, self.server).await.is_err() {
            abort.abort();
        }
    }
}

fn router(door: Arc<Door>, hub: Arc<Hub>, viewers: Arc<Semaphore>) -> Router {
    let entrance = Router::new()
        .route("/enter/{secret}", get(access::enter))
        .route("/enter", post(access::new_link))
        .with_state(Arc::clone(&door));
    Router::new()
        .route("/", get(pages::home))
        .route("/studies", get(pages::index))
        .route("/studies.json", get(pages::list))
        .route("/study/{id}", get(pages::study))
        .route("/events/{id}", get(pages::events))
        .route("/coverage/{id}/{view}", get(pages::view))
        .route("/{asset}", get(pages::asset))
        .with_state(pages::Shared { hub, viewers })
        .merge(entrance)
        .layer(from_fn_with_state(door, access::check))
}
