//! The service that clients call: submit, list, status, watch, cancel, fetch.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use proto::convert;
use proto::v1;
use proto::v1::studies_server::Studies;
use study::StudyId;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use super::call::Call;
use super::catalog::SubmitError;
use super::fetch::Datasets;
use super::intake::Intake;
use super::workers::ask;

/// How often a watched study is looked at.
const WATCH: Duration = Duration::from_millis(500);

type Outgoing<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[derive(Clone)]
pub(super) struct StudyService {
    pub(super) calls: mpsc::Sender<Call>,
    pub(super) intake: Arc<Intake>,
    pub(super) datasets: Arc<dyn Datasets>,
}

impl StudyService {
    async fn look(&self, study: StudyId) -> Result<v1::StudyStatus, Status> {
        let status = ask(&self.calls, |reply| Call::Status { study, reply }).await?;
        status.ok_or_else(|| Status::not_found(format!("there is no study {study}")))
    }
}

#[tonic::async_trait]
impl Studies for StudyService {
    async fn submit(
        &self,
        request: Request<Streaming<v1::SubmitRequest>>,
    ) -> Result<Response<v1::SubmitReply>, Status> {
        let upload = self.intake.spool.receive(request.into_inner()).await?;
        let study = self.intake.submit(upload).await.map_err(|error| match error {
            SubmitError::Store(_) | SubmitError::Spool(_) => Status::internal(error.to_string()),
            SubmitError::Stopped => Status::unavailable(error.to_string()),
            refused => Status::invalid_argument(refused.to_string()),
        })?;
        Ok(Response::new(v1::SubmitReply { study: convert::study_bytes(study) }))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListReply>, Status> {
        let studies = ask(&self.calls, |reply| Call::List { reply }).await?;
        Ok(Response::new(v1::ListReply { studies }))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StudyStatus>, Status> {
        let study = convert::study_id(&request.into_inner().study)?;
        Ok(Response::new(self.look(study).await?))
    }

    type WatchStream = Outgoing<v1::StudyStatus>;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let study = convert::study_id(&request.into_inner().study)?;
        let first = self.look(study).await?;
        let service = self.clone();
        let statuses = stream::unfold(Some(first), move |now| {
            let service = service.clone();
            async move {
                let now = now?;
                let running = [v1::StudyState::Running, v1::StudyState::Sealing];
                if !running.contains(&now.state()) {
                    return Some((Ok(now), None));
                }
                tokio::time::sleep(WATCH).await;
                // A coordinator that stops ends the stream.
                let next = service.look(study).await.ok();
                Some((Ok(now), next))
            }
        });
        Ok(Response::new(Box::pin(statuses)))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelReply>, Status> {
        let study = convert::study_id(&request.into_inner().study)?;
        if ask(&self.calls, |reply| Call::Cancel { study, reply }).await? {
            return Ok(Response::new(v1::CancelReply {}));
        }
        Err(Status::not_found(format!("there is no study {study}")))
    }

    type FetchResultsStream = Outgoing<v1::ResultChunk>;

    async fn fetch_results(
        &self,
        request: Request<v1::FetchResultsRequest>,
    ) -> Result<Response<Self::FetchResultsStream>, Status> {
        let study = convert::study_id(&request.into_inner().study)?;
        let status = self.look(study).await?;
        let none = || {
            Status::failed_precondition(format!(
                "study {study} has no results yet; watch it until it is done"
            ))
        };
        if status.state() != v1::StudyState::Done {
            return Err(none());
        }
        self.datasets.bring(study, &status.name).await.map_err(Status::unavailable)?;
        let folder = self.datasets.folder(study).ok_or_else(none)?;
        Ok(Response::new(Box::pin(super::fetch::chunks(folder))))
    }
}
