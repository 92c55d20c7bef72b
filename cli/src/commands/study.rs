//! `regretta study`: submit, list, status, watch, cancel and fetch at a coordinator.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use analysis::Manifest;
use analysis::seal::Staging;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use proto::convert::{ResultPart, Submission, pieces, study_bytes, study_id};
use proto::limits::MAX_MESSAGE_BYTES;
use proto::v1::studies_client::StudiesClient;
use proto::v1::{self, StudyState, StudyStatus};
use serde::Serialize;
use study::StudyId;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::connection::{Connection, PATIENCE_AMONG_MANY, chain};
use crate::exit::{BadInput, CheckFailed};
use crate::load::load;
use crate::place::folder;
use crate::progress::Progress;
use crate::table::Table;
use crate::text;

/// Submit, follow and fetch studies at a coordinator
#[derive(Args)]
#[command(after_help = "Examples:
  regretta study submit study.toml --token-file token
  regretta study list --token-file token
  regretta study watch 3f2a91c04d7e --token-file token
  regretta study fetch 3f2a91c04d7e --out results/lemma1 --token-file token")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Hand in a study, or what it has grown to
    #[command(after_help = "Example:\n  regretta study submit study.toml --token-file token")]
    Submit {
        /// The study file
        study: PathBuf,
        #[command(flatten)]
        common: Common,
    },
    /// All studies
    #[command(after_help = "Example:\n  regretta study list --token-file token --json")]
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Where a study stands
    #[command(after_help = "Example:\n  regretta study status lemma1 --token-file token")]
    Status {
        /// The study's id, or the beginning of it, or its name
        study: String,
        #[command(flatten)]
        common: Common,
    },
    /// Follow a study until it ends; exit code 3 where it failed
    #[command(after_help = "Example:\n  regretta study watch lemma1 --token-file token")]
    Watch {
        /// The study's id, or the beginning of it, or its name
        study: String,
        #[command(flatten)]
        common: Common,
    },
    /// Stop a study; submitting it again takes it up again
    #[command(after_help = "Example:\n  regretta study cancel lemma1 --token-file token")]
    Cancel {
        /// The study's id, or the beginning of it, or its name
        study: String,
        #[command(flatten)]
        common: Common,
    },
    /// Download the dataset of a finished study
    #[command(
        after_help = "Example:\n  regretta study fetch lemma1 --out results/lemma1 --token-file token"
    )]
    Fetch {
        /// The study's id, or the beginning of it, or its name
        study: String,
        /// The folder to write to
        #[arg(long, value_name = "DIR", value_parser = folder)]
        out: PathBuf,
        /// Replace what the folder holds of the same study
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Args)]
struct Common {
    #[command(flatten)]
    connection: Connection,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

type Client = StudiesClient<InterceptedService<Channel, Bearer>>;

/// Puts the token on every call.
#[derive(Clone)]
struct Bearer(Option<MetadataValue<Ascii>>);

impl tonic::service::Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(act(&arguments.action))
}

async fn act(action: &Action) -> anyhow::Result<()> {
    match action {
        Action::Submit { study, common } => submit(study, common).await,
        Action::List { common } => list(common).await,
        Action::Status { study, common } => status(study, common).await,
        Action::Watch { study, common } => watch(study, common).await,
        Action::Cancel { study, common } => cancel(study, common).await,
        Action::Fetch { study, out, replace, common } => fetch(study, out, *replace, common).await,
    }
}

impl Common {
    async fn client(&self) -> anyhow::Result<Client> {
        client(&self.connection).await
    }
}

/// The coordinator that leads: of several, the first that answers and does not stand by.
async fn client(connection: &Connection) -> anyhow::Result<Client> {
    let token = connection.token()?.map(|token| {
        let mut value: MetadataValue<Ascii> = format!("Bearer {}", token.reveal()).parse()?;
        value.set_sensitive(true);
        anyhow::Ok(value)
    });
    let bearer = Bearer(token.transpose()?);
    let connection = connection.resolved().await?;
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
fn refused(status: Status) -> anyhow::Error {
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
fn broken(status: Status) -> anyhow::Error {
    match std::error::Error::source(&status) {
        Some(source) => anyhow::anyhow!(
            "the connection to the coordinator broke: {}; its studies go on when it is back, run the same \
             command again",
            chain(source)
        ),
        None => refused(status),
    }
}

#[derive(Serialize)]
struct Submitted {
    study: String,
    name: String,
}

async fn submit(path: &Path, common: &Common) -> anyhow::Result<()> {
    let loaded = load(path)?;
    let name = loaded.plan.study.name.clone();
    let definition = loaded.definition;
    let submission = Submission {
        file_name: definition.file_name,
        text: definition.text,
        files: definition.files,
    };
    let messages: Vec<v1::SubmitRequest> = pieces(submission).collect();
    let mut client = common.client().await?;
    let reply = client.submit(tokio_stream::iter(messages)).await.map_err(refused)?.into_inner();
    let study = study_id(&reply.study)?;
    if common.json {
        return super::print_json(&Submitted { study: study.to_string(), name });
    }
    super::print(&format!("{name} is study {study}"))
}

/// A study at a coordinator, in a line.
#[derive(Serialize)]
pub(crate) struct Listed {
    study: String,
    pub(crate) name: String,
    pub(crate) state: &'static str,
    pub(crate) trials_done: u64,
    pub(crate) trials_planned: u64,
}

fn listed(summary: &v1::StudySummary) -> anyhow::Result<Listed> {
    Ok(Listed {
        study: study_id(&summary.study)?.to_string(),
        name: summary.name.clone(),
        state: state(summary.state()),
        trials_done: summary.trials_done,
        trials_planned: summary.trials_planned,
    })
}

fn state(state: StudyState) -> &'static str {
    match state {
        StudyState::Unspecified => "unknown",
        StudyState::Running => "running",
        StudyState::Sealing => "sealing",
        StudyState::Done => "done",
        StudyState::Cancelled => "cancelled",
        StudyState::Failed => "failed",
    }
}

/// All studies of a coordinator, if it answers soon.
pub(crate) fn all(connection: &Connection) -> anyhow::Result<Vec<Listed>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .context("cannot start the runtime")?
        .block_on(async { timeout(SOON, studies(connection)).await.context("no answer")? })
}

/// How long a status may wait for a coordinator.
const SOON: Duration = Duration::from_secs(5);

async fn studies(connection: &Connection) -> anyhow::Result<Vec<Listed>> {
    let mut client = client(connection).await?;
    let reply = client.list(v1::ListRequest {}).await.map_err(refused)?.into_inner();
    reply.studies.iter().map(listed).collect()
}

async fn list(common: &Common) -> anyhow::Result<()> {
    let studies = studies(&common.connection).await?;
    if common.json {
        return super::print_json(&studies);
    }
    let mut table = Table::new(&["study", "name", "state", "trials", "of"]);
    for study in studies {
        table.row(vec![
            study.study,
            study.name,
            study.state.to_owned(),
            text::count(study.trials_done.into()),
            text::count(study.trials_planned.into()),
        ]);
    }
    super::print(&table.to_string())
}

/// The study that an id, its beginning or a name stands for.
async fn find(client: &mut Client, wanted: &str) -> anyhow::Result<StudyId> {
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

#[derive(Serialize)]
struct Shown<'a> {
    study: String,
    name: &'a str,
    state: &'static str,
    reason: &'a str,
    trials_done: u64,
    trials_planned: u64,
    trials_per_second: f64,
    seconds_left: Option<f64>,
    workers: usize,
    quarantined: usize,
    cells: Vec<ShownCell<'a>>,
}

#[derive(Serialize)]
struct ShownCell<'a> {
    cell: String,
    label: &'a str,
    trials_done: u64,
    trials_planned: u64,
    stopped: bool,
    failures: u64,
}

fn shown(status: &StudyStatus) -> anyhow::Result<Shown<'_>> {
    let cell = |cell: &'_ v1::CellStatus| (cell.trials_done, cell.trials_planned);
    let (done, planned) =
        status.cells.iter().map(cell).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Ok(Shown {
        study: study_id(&status.study)?.to_string(),
        name: &status.name,
        state: state(status.state()),
        reason: &status.reason,
        trials_done: done,
        trials_planned: planned,
        trials_per_second: status.trials_per_second,
        seconds_left: status.seconds_left,
        workers: status.workers.len(),
        quarantined: status.quarantined.len(),
        cells: status
            .cells
            .iter()
            .map(|cell| ShownCell {
                cell: format!("{:016x}", cell.cell),
                label: &cell.label,
                trials_done: cell.trials_done,
                trials_planned: cell.trials_planned,
                stopped: cell.stopped,
                failures: cell.failures,
            })
            .collect(),
    })
}

async fn status(wanted: &str, common: &Common) -> anyhow::Result<()> {
    let mut client = common.client().await?;
    let study = study_bytes(find(&mut client, wanted).await?);
    let reply = client.status(v1::StatusRequest { study }).await.map_err(refused)?.into_inner();
    print_status(&reply, common.json)
}

fn print_status(status: &StudyStatus, json: bool) -> anyhow::Result<()> {
    let shown = shown(status)?;
    if json {
        return super::print_json(&shown);
    }
    let mut table = Table::new(&["cell", "trials", "of", "failed", ""]);
    for cell in &shown.cells {
        table.row(vec![
            cell.label.to_owned(),
            text::count(cell.trials_done.into()),
            text::count(cell.trials_planned.into()),
            text::count(cell.failures.into()),
            if cell.stopped { "decided" } else { "" }.to_owned(),
        ]);
    }
    let left =
        shown.seconds_left.map_or_else(String::new, |s| format!(", {} left", text::duration(s)));
    super::print(&format!(
        "{} ({}): {}{}{}\n{} workers, {:.0} trials/s{left}\n\n{table}",
        shown.name,
        shown.study,
        shown.state,
        if shown.reason.is_empty() { "" } else { ": " },
        shown.reason,
        shown.workers,
        shown.trials_per_second,
    ))
}

async fn watch(wanted: &str, common: &Common) -> anyhow::Result<()> {
    let mut client = common.client().await?;
    let id = find(&mut client, wanted).await?;
    let request = v1::WatchRequest { study: study_bytes(id) };
    let mut statuses = client.watch(request).await.map_err(refused)?.into_inner();
    let mut progress = Progress::new(false, f64::INFINITY);
    let mut last = None;
    while let Some(status) = statuses.message().await.map_err(broken)? {
        progress.show(&status);
        last = Some(status);
    }
    progress.finish(last.as_ref());
    let last = last.context("the coordinator closed the connection")?;
    print_status(&last, common.json)?;
    match last.state() {
        StudyState::Failed => Err(CheckFailed(last.reason).into()),
        StudyState::Running => bail!("the coordinator stopped; the study goes on when it is back"),
        _ => Ok(()),
    }
}

async fn cancel(wanted: &str, common: &Common) -> anyhow::Result<()> {
    let mut client = common.client().await?;
    let id = find(&mut client, wanted).await?;
    client.cancel(v1::CancelRequest { study: study_bytes(id) }).await.map_err(refused)?;
    super::print(&format!("study {id} is cancelled; submit it again to take it up again"))
}

/// Downloads into a folder beside the dataset that is there, so that neither a broken download nor half of one is
/// ever taken for a dataset.
async fn fetch(wanted: &str, out: &Path, replace: bool, common: &Common) -> anyhow::Result<()> {
    let held = out.join("manifest.json").exists();
    if held && !replace {
        let advice = "choose another --out, or give --replace if it is of the same study";
        bail!(BadInput(format!("{} holds a dataset already; {advice}", out.display())));
    }
    let mut client = common.client().await?;
    let id = find(&mut client, wanted).await?;
    if held && Manifest::read(out)?.study_digest != id.hex() {
        let refused = "holds a dataset of another study; choose another --out";
        bail!(BadInput(format!("{} {refused}", out.display())));
    }
    let request = v1::FetchResultsRequest { study: study_bytes(id) };
    let mut chunks = client.fetch_results(request).await.map_err(refused)?.into_inner();
    let staging = Staging::create(out)?;
    let mut open: Option<std::fs::File> = None;
    let mut files = 0;
    while let Some(chunk) = chunks.message().await.map_err(broken)? {
        let ResultPart { name, data, last } = ResultPart::try_from(chunk)?;
        let mut file = match open.take() {
            Some(file) => file,
            None => std::fs::File::create(staging.path(&name))?,
        };
        file.write_all(&data)?;
        if last {
            file.sync_all()?;
            files += 1;
        } else {
            open = Some(file);
        }
    }
    let manifest = analysis::dataset::verify(&staging.path(""))?;
    // It stands beside the dataset, and is no part of it.
    let study = "study.toml";
    if staging.path(study).exists() {
        std::fs::rename(staging.path(study), out.join(study))?;
    }
    staging.publish()?;
    super::print(&format!("{files} files in {}\ndigest {}", out.display(), manifest.digest))
}
