//! `regretta study`: submit, list, status, watch, cancel, delete and fetch at a coordinator.

mod client;
mod fetch;
mod status;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use proto::convert::{Submission, pieces, study_bytes, study_id};
use proto::v1::{self, StudyState};
use serde::Serialize;
use tokio::time::timeout;

use self::client::{Client, broken, client, find, refused, whole_status};
use self::fetch::fetch;
use self::status::print_status;
use super::connection::Connection;
use crate::exit::CheckFailed;
use crate::load::load;
use crate::place::folder;
use crate::progress::Progress;
use crate::table::Table;
use crate::text;

/// Submit, follow, fetch and delete studies at a coordinator
#[derive(Args)]
#[command(after_help = "Examples:
  regretta study submit study.toml --token-file token
  regretta study list --token-file token
  regretta study watch 3f2a91c04d7e --token-file token
  regretta study fetch 3f2a91c04d7e --out results/lemma1 --token-file token
  regretta study delete 3f2a91c04d7e --token-file token")]
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
    /// Delete a study that does not run; submitting it again starts it afresh
    ///
    /// Its records that are not sealed are gone then. A sealed dataset stays where the coordinator keeps its datasets,
    /// unless --data is given.
    #[command(after_help = "Example:\n  regretta study delete lemma1 --token-file token")]
    Delete {
        /// The study's id, or the beginning of it, or its name
        study: String,
        /// Delete its sealed dataset, too
        #[arg(long)]
        data: bool,
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
        Action::Delete { study, data, common } => delete(study, *data, common).await,
        Action::Fetch { study, out, replace, common } => fetch(study, out, *replace, common).await,
    }
}

impl Common {
    async fn client(&self) -> anyhow::Result<Client> {
        client(&self.connection).await
    }
}

#[derive(Serialize)]
struct Submitted {
    study: String,
    name: String,
}

async fn submit(path: &Path, common: &Common) -> anyhow::Result<()> {
    // Away from the runtime: polars, which checks claims, blocks on one of its own.
    let path = path.to_owned();
    let loaded = tokio::task::spawn_blocking(move || load(&path)).await??;
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
        state: text::state(summary.state()),
        trials_done: summary.trials_done,
        trials_planned: summary.trials_planned,
    })
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

async fn status(wanted: &str, common: &Common) -> anyhow::Result<()> {
    let mut client = common.client().await?;
    let study = find(&mut client, wanted).await?;
    print_status(&whole_status(&mut client, study).await?, common.json)
}

async fn watch(wanted: &str, common: &Common) -> anyhow::Result<()> {
    let mut client = common.client().await?;
    let id = find(&mut client, wanted).await?;
    let request = v1::WatchRequest { study: study_bytes(id) };
    let mut statuses = client.watch(request).await.map_err(refused)?.into_inner();
    let mut progress = Progress::new(false);
    let mut last = None;
    while let Some(status) = statuses.message().await.map_err(broken)? {
        progress.show(&status);
        last = Some(status);
    }
    progress.finish(last.as_ref());
    let mut last = last.context("the coordinator closed the connection")?;
    if (last.cells.len() as u64) < last.cells_total {
        // A large study is followed without all of its cells. Where the coordinator has stopped, those are all there are.
        last = whole_status(&mut client, id).await.unwrap_or(last);
    }
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

async fn delete(wanted: &str, data: bool, common: &Common) -> anyhow::Result<()> {
    let mut client = common.client().await?;
    let id = find(&mut client, wanted).await?;
    client.delete(v1::DeleteRequest { study: study_bytes(id), data }).await.map_err(refused)?;
    let dataset = if data { " with its dataset" } else { "; a sealed dataset of it stays" };
    super::print(&format!("study {id} is deleted{dataset}"))
}
