//! The service that clients call: submit, list, status, watch, cancel, delete, fetch.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use proto::convert;
use proto::v1;
use proto::v1::studies_server::Studies;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use super::call::Call;
use super::catalog::SubmitError;
use super::connections::Ticket;
use super::fetch::{Datasets, Downloads};
use super::intake::Intake;
use super::statuses::{Statuses, page};
use super::workers::ask;
use crate::store::Store;

type Outgoing<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[derive(Clone)]
pub(super) struct StudyService {
    pub(super) calls: mpsc::Sender<Call>,
    pub(super) intake: Arc<Intake>,
    pub(super) statuses: Statuses,
    pub(super) store: Arc<Store>,
    pub(super) datasets: Arc<dyn Datasets>,
    pub(super) downloads: Downloads,
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
            SubmitError::Stopped | SubmitError::Deleting => Status::unavailable(error.to_string()),
            refused => Status::invalid_argument(refused.to_string()),
        })?;
        Ok(Response::new(v1::SubmitReply { study: convert::study_bytes(study) }))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListReply>, Status> {
        let studies = self.statuses.list().await?;
        Ok(Response::new(v1::ListReply { studies: studies.to_vec() }))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StudyStatus>, Status> {
        let v1::StatusRequest { study, after_cell } = request.into_inner();
        let study = convert::study_id(&study)?;
        Ok(Response::new(self.statuses.page(study, after_cell).await?))
    }

    type WatchStream = Outgoing<v1::StudyStatus>;

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let study = convert::study_id(&request.into_inner().study)?;
        let statuses = self.statuses.follow(study).await?;
        Ok(Response::new(Box::pin(statuses.map(|status| Ok(page(&status, None))))))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelReply>, Status> {
        let study = convert::study_id(&request.into_inner().study)?;
        ask(&self.calls, |reply| Call::Cancel { study, reply }).await??;
        Ok(Response::new(v1::CancelReply {}))
    }

    async fn delete(
        &self,
        request: Request<v1::DeleteRequest>,
    ) -> Result<Response<v1::DeleteReply>, Status> {
        let caller = request.extensions().get::<Ticket>().map(|ticket| ticket.address);
        let v1::DeleteRequest { study, data } = request.into_inner();
        let study = convert::study_id(&study)?;
        let (calls, store) = (self.calls.clone(), Arc::clone(&self.store));
        let (datasets, intake) = (Arc::clone(&self.datasets), Arc::clone(&self.intake));
        // A caller that goes away must not leave a half of it.
        let deleted = tokio::spawn(async move {
            // Nobody seals it meanwhile.
            let _held = if data { Some(datasets.hold(study).await) } else { None };
            // Nor is it submitted.
            let _turn = intake.turn.lock().await;
            ask(&calls, |reply| Call::Delete { study, reply }).await??;
            let deleted = store.delete_study(study).await;
            let done = deleted.is_ok();
            ask(&calls, |reply| Call::Deleted { study, done, reply }).await?;
            deleted.map_err(|error| Status::internal(error.to_string()))?;
            tracing::warn!(%study, data, ?caller, "a study was deleted");
            let removed = if data { datasets.remove(study).await } else { Ok(()) };
            removed.map_err(|error| {
                Status::internal(format!(
                    "study {study} is deleted, and its dataset is not: {error}; delete it by hand"
                ))
            })
        });
        deleted.await.map_err(|_| Status::internal("the study may be half deleted"))??;
        Ok(Response::new(v1::DeleteReply {}))
    }

    type FetchResultsStream = Outgoing<v1::ResultChunk>;

    async fn fetch_results(
        &self,
        request: Request<v1::FetchResultsRequest>,
    ) -> Result<Response<Self::FetchResultsStream>, Status> {
        let study = convert::study_id(&request.into_inner().study)?;
        let status = self.statuses.now(study).await?;
        let none = || {
            Status::failed_precondition(format!(
                "study {study} has no results yet; watch it until it is done"
            ))
        };
        // A study that could not be taken up has no plan, and so no family; what was sealed of it is there all the same.
        let has_failed = status.state() == v1::StudyState::Failed && status.family.is_none();
        if status.state() != v1::StudyState::Done && !has_failed {
            return Err(none());
        }
        let turn = self.downloads.turn().await;
        self.datasets.bring(study, &status.name).await.map_err(Status::unavailable)?;
        let folder = self.datasets.folder(study).ok_or_else(none)?;
        Ok(Response::new(Box::pin(super::fetch::chunks(folder, turn))))
    }
}
