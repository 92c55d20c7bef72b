//! The studies that leases are of: fetched once, with their files, and planned.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proto::convert::{Definition, FileQuery, FileRef, Lease, StudyQuery, file_chunk};
use study::prior::Files;
use study::{Plan, Study, StudyId};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::connect::Client;
use super::files::{FileCache, is_whole};
use super::library::Known;
use super::pool::Compute;
use super::recent::Recent;

/// Plans that are kept.
const PLANS: u64 = 8;

/// The longest wait for a study, or for the next bytes of a file.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a study is not at hand.
#[derive(Debug)]
pub(super) enum Trouble {
    /// With the connection, which does not outlive it.
    Session(Status),
    /// With the study, and only its leases are given up.
    Study(String),
}

impl From<Status> for Trouble {
    fn from(status: Status) -> Self {
        match status.code() {
            // The study is gone, or the coordinator has no such file.
            Code::FailedPrecondition => Self::Study(proto::convert::reason(status.message())),
            _ => Self::Session(status),
        }
    }
}

type Plans = Mutex<Recent<[u8; 32], Arc<OnceCell<Arc<Known>>>>>;

/// All studies that this worker has heard of, over registrations.
#[derive(Clone, Debug)]
pub(super) struct Catalogue {
    files: FileCache,
    compute: Compute,
    plans: Arc<Plans>,
}

impl Catalogue {
    /// Nothing yet; files are kept in a folder, or in a private one of this user.
    pub(super) fn new(folder: Option<&Path>, compute: Compute) -> Self {
        let plans = Arc::new(Mutex::new(Recent::new(PLANS)));
        let files = folder.map_or_else(FileCache::private, FileCache::new);
        Self { files, compute, plans }
    }

    /// The study of a lease, fetched and planned where it is not at hand. Leases that want the same
    /// one wait for it together.
    pub(super) async fn known(
        &self,
        client: &mut Client,
        worker_id: u64,
        lease: &Lease,
    ) -> Result<Arc<Known>, Trouble> {
        let cell = {
            let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            plans.get(lease.revision, Arc::default)
        };
        let fetched = cell.get_or_try_init(|| async {
            let definition = fetch_study(client, worker_id, lease.study).await?;
            if definition.revision != lease.revision {
                let text = "the study has changed since the lease was given";
                return Err(Trouble::Study(text.to_owned()));
            }
            self.plan(client, worker_id, definition).await
        });
        fetched.await.map(Arc::clone)
    }

    async fn plan(
        &self,
        client: &mut Client,
        worker_id: u64,
        definition: Definition,
    ) -> Result<Arc<Known>, Trouble> {
        let mut contents = Vec::new();
        for file in &definition.files {
            contents.push((file.path.clone(), self.file(client, worker_id, file).await?));
        }
        let planned = self.offload(move || plan(&definition, contents)).await;
        planned.and_then(|known| known).map(Arc::new).map_err(Trouble::Study)
    }

    async fn file(
        &self,
        client: &mut Client,
        worker_id: u64,
        file: &FileRef,
    ) -> Result<Vec<u8>, Trouble> {
        let (cache, wanted) = (self.files.clone(), file.clone());
        let kept = self.offload(move || cache.read(&wanted)).await.map_err(Trouble::Study)?;
        if let Some(content) = kept {
            return Ok(content);
        }
        let content = fetch_file(client, worker_id, file).await?;
        let (cache, wanted) = (self.files.clone(), file.clone());
        let keep = move || {
            cache.keep(&wanted, &content);
            content
        };
        self.offload(keep).await.map_err(Trouble::Study)
    }

    /// Runs what takes long or touches the disk where it holds nobody up.
    async fn offload<T: Send + 'static>(
        &self,
        function: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        match self.compute {
            Compute::Inline => Ok(function()),
            Compute::Threads => {
                let done = tokio::task::spawn_blocking(function).await;
                done.map_err(|error| format!("the worker panicked: {error}"))
            }
        }
    }
}

fn plan(definition: &Definition, contents: Vec<(String, Vec<u8>)>) -> Result<Known, String> {
    let mut files = Files::default();
    for (path, content) in contents {
        files.insert(&path, content).map_err(|error| error.to_string())?;
    }
    let study = Study::parse(&definition.file_name, &definition.text);
    let plan = study.and_then(|study| Plan::new(study, &files));
    let known = Known::new(plan.map_err(|error| error.to_string())?, files);
    if known.revision == definition.revision {
        Ok(known)
    } else {
        Err("this worker reads the study file otherwise than the coordinator does; use the same \
             build of regretta on both sides"
            .to_owned())
    }
}

async fn fetch_study(
    client: &mut Client,
    worker_id: u64,
    study: StudyId,
) -> Result<Definition, Trouble> {
    let request =
        client.fetch_study(proto::v1::FetchStudyRequest::from(StudyQuery { worker_id, study }));
    let answer = timeout(PATIENCE, request).await.map_err(|_| late("FetchStudy"))??;
    Ok(answer.into_inner().try_into().map_err(Status::from)?)
}

async fn fetch_file(
    client: &mut Client,
    worker_id: u64,
    file: &FileRef,
) -> Result<Vec<u8>, Trouble> {
    let query = FileQuery { worker_id, digest: file.digest };
    let request = client.fetch_file(proto::v1::FetchFileRequest::from(query));
    let answer = timeout(PATIENCE, request).await.map_err(|_| late("FetchFile"))??;
    let (mut chunks, mut content) = (answer.into_inner(), Vec::new());
    while let Some(chunk) =
        timeout(PATIENCE, chunks.message()).await.map_err(|_| late("FetchFile"))??
    {
        content.extend_from_slice(&file_chunk(chunk).map_err(Status::from)?);
        if content.len() as u64 > file.size {
            break;
        }
    }
    if is_whole(file, &content) {
        Ok(content)
    } else {
        let path = &file.path;
        Err(Trouble::Study(format!("the coordinator sent {path} with another content")))
    }
}

/// An answer that did not come.
pub(super) fn late(call: &str) -> Status {
    Status::deadline_exceeded(format!("the coordinator did not answer {call} in time"))
}
