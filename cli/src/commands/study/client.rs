//! A coordinator's studies as a client sees them, and its refusals as a user reads them.

use anyhow::bail;
use proto::convert::{study_bytes, study_id};
use proto::limits::MAX_MESSAGE_BYTES;
use proto::v1;
use proto::v1::studies_client::StudiesClient;
use study::StudyId;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::commands::connection::{Connection, PATIENCE_AMONG_MANY, chain, warn_of_listeners};
use crate::exit::BadInput;

pub(super) type Client = StudiesClient<InterceptedService<Channel, Bearer>>;

/// Puts the token on every call.
#[derive(Clone)]
pub(super) struct Bearer(Option<MetadataValue<Ascii>>);

impl tonic::service::Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// The coordinator that leads: of several, the first that answers and does not stand by.
pub(super) async fn client(connection: &Connection) -> anyhow::Result<Client> {
    let token = connection.token()?.map(|token| {
        let mut value: MetadataValue<Ascii> = format!("Bearer {}", token.reveal()).parse()?;
        value.set_sensitive(true);
        anyhow::Ok(value)
    });
    let bearer = Bearer(token.transpose()?);
    let connection = connection.resolved().await?;
    if bearer.0.is_some() {
        warn_of_listeners(&connection.coordinator);
    }
    let mut failed = None;
    for address in &connection.coordinator {
        let client = match connection.reach(address).await {
            Ok(channel) => StudiesClient::with_interceptor(channel, bearer.clone())
                .max_decoding_message_size(4 * MAX_MESSAGE_BYTES),
            Err(error) => {
                failed = failed.or(Some(error));
                continue;
            }
        };
        if connection.coordinator.len() == 1 {
            return Ok(client);
        }
        match leads(client.clone()).await {
            Ok(()) => return Ok(client),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| BadInput("--coordinator names no address".to_owned()).into()))
}

/// Fails where a coordinator stands by or does not answer; whatever else it says is for the caller to hear.
async fn leads(mut client: Client) -> anyhow::Result<()> {
    match timeout(PATIENCE_AMONG_MANY, client.list(v1::ListRequest {})).await {
        Ok(Err(status)) if status.code() == Code::Unavailable => Err(refused(status)),
        Ok(_) => Ok(()),
        Err(_) => bail!("the coordinator does not answer"),
    }
}

/// A refusal of the coordinator as the user should read it.
#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
pub(super) fn refused(status: Status) -> anyhow::Error {
    // Only what went wrong on the way has a source; an answer has none.
    if let Some(source) = std::error::Error::source(&status) {
        return BadInput(format!(
            "no answer from the coordinator: {}; check its address (https:// if it has certificates), and \
             that --tls-ca, --tls-cert and --tls-key are of the same `regretta cert` as its own and not expired",
            chain(source)
        ))
        .into();
    }
    match status.code() {
        Code::InvalidArgument
        | Code::NotFound
        | Code::FailedPrecondition
        | Code::Unauthenticated => BadInput(status.message().to_owned()).into(),
        _ => anyhow::anyhow!("the coordinator answered: {}", status.message()),
    }
}

/// The end of a stream that had begun well.
pub(super) fn broken(status: Status) -> anyhow::Error {
    match std::error::Error::source(&status) {
        Some(source) => anyhow::anyhow!(
            "the connection to the coordinator broke: {}; its studies go on when it is back, run the same \
             command again",
            chain(source)
        ),
        None => refused(status),
    }
}

/// A study's status with all of its cells, which may take several messages.
pub(super) async fn whole_status(
    client: &mut Client,
    study: StudyId,
) -> anyhow::Result<v1::StudyStatus> {
    let mut request = v1::StatusRequest { study: study_bytes(study), after_cell: None };
    let mut status = client.status(request.clone()).await.map_err(refused)?.into_inner();
    while (status.cells.len() as u64) < status.cells_total {
        request.after_cell = status.cells.last().map(|cell| cell.cell);
        let page = client.status(request.clone()).await.map_err(refused)?.into_inner();
        if page.cells.is_empty() {
            break;
        }
        status.cells.extend(page.cells);
    }
    Ok(status)
}

/// The study that an id, its beginning or a name stands for.
pub(super) async fn find(client: &mut Client, wanted: &str) -> anyhow::Result<StudyId> {
    let reply = client.list(v1::ListRequest {}).await.map_err(refused)?.into_inner();
    let mut found = Vec::new();
    for summary in &reply.studies {
        let id = study_id(&summary.study)?;
        if summary.name == wanted || (!wanted.is_empty() && id.hex().starts_with(wanted)) {
            found.push(id);
        }
    }
    match found.as_slice() {
        [one] => Ok(*one),
        [] => bail!(BadInput(format!("there is no study {wanted:?}; see `regretta study list`"))),
        _ => bail!(BadInput(format!(
            "{wanted:?} stands for {} studies; give more of the id",
            found.len()
        ))),
    }
}
