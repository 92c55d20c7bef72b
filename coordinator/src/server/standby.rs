//! What callers hear while the store is not open: that this coordinator does not lead, or not yet.

use std::time::Duration;

use proto::v1::studies_server::StudiesServer;
use proto::v1::workers_server::WorkersServer;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;
use tonic::body::Body;
use tonic::service::Routes;
use tonic_health::ServingStatus;

use super::listen::Listener;
use super::studies::StudyService;
use super::workers::WorkerService;
use super::{Config, StartError, builder, log_failure, unauthenticated};

/// Workers go on to the next address when they hear this.
const REASON: &str = "standby: this coordinator does not lead, or has not yet opened its store";

/// How long connections may take to end; those of callers that hang are dropped.
const GRACE: Duration = Duration::from_secs(1);

/// A server that sends everyone away. No caller is authenticated here, so that every connection ends at the deadline.
pub(super) struct Standby {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Standby {
    pub(super) async fn serve(config: &Config, listener: Listener) -> Result<Self, StartError> {
        let (reporter, health) = tonic_health::server::health_reporter();
        reporter.set_service_status("", ServingStatus::NotServing).await;
        reporter.set_not_serving::<WorkersServer<WorkerService>>().await;
        reporter.set_not_serving::<StudiesServer<StudyService>>().await;
        let refuse = || async { Status::unavailable(REASON).into_http::<Body>() };
        let routes =
            Routes::from(axum::Router::new().fallback(refuse)).add_service(unauthenticated(health));
        let router = builder(config)?.add_routes(routes);
        let stop = CancellationToken::new();
        let incoming = listener.incoming();
        let served = router.serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        let task = tokio::spawn(async { log_failure("the standby", served.await) });
        Ok(Self { stop: stop.drop_guard(), task })
    }

    /// Makes way for the server that leads.
    pub(super) async fn end(self) {
        drop(self.stop);
        let abort = self.task.abort_handle();
        if tokio::time::timeout(GRACE, self.task).await.is_err() {
            abort.abort();
        }
    }
}
