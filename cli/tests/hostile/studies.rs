//! Studies that are too large, uploads that never end, and studies that are asked for by nobody in particular.

use std::fmt::Write;
use std::time::Duration;

use proto::v1;
use proto::v1::studies_client::StudiesClient;
use proto::v1::submit_request::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::common::stderr;
use crate::rogue::Rogue;
use crate::siege::{Attack, Siege};

async fn studies(url: &str) -> StudiesClient<Channel> {
    StudiesClient::new(Endpoint::from_shared(url.to_owned()).unwrap().connect().await.unwrap())
}

/// A study of 120,000 cells in some 400 kB.
fn giant() -> String {
    let mut text = "
[study]
name = \"giant\"
seed = 3
replicates = 1

[prior]
domain = { kind = \"grid\", points = 20, dimension = 1 }
kernel = { kind = \"squared-exponential\", lengthscale = 0.2 }
noise_variance = 0.01

[grid]
T = [1]
delta = [0.1]
design = [\"fixed\", \"adaptive\"]
method = [\"pem-bo\"]
N = ["
        .to_owned();
    for n in 0..60_000 {
        write!(text, "{},", 10_000 + n).unwrap();
    }
    text + "]\n"
}

fn submitted(text: String, files: Vec<v1::SubmittedFile>) -> v1::SubmitRequest {
    let study = v1::SubmittedStudy { file_name: "study.toml".to_owned(), text, files };
    v1::SubmitRequest { message: Some(Message::Study(study)) }
}

#[test]
fn a_giant_study_runs_or_is_refused() {
    let siege = Siege::open();
    let url = siege.service.url.clone();
    let submission = siege.attackers.spawn(async move {
        let mut client = studies(&url).await;
        let submission = tokio_stream::iter([submitted(giant(), Vec::new())]);
        let answer = client.submit(submission).await;
        if let Ok(reply) = &answer {
            // It would take its turns with the study that is watched.
            tokio::time::sleep(Duration::from_secs(1)).await;
            let study = reply.get_ref().study.clone();
            client.cancel(v1::CancelRequest { study }).await.unwrap();
        }
        answer
    });
    siege.is_withstood(0);
    if let Err(refused) = siege.attackers.block_on(submission).unwrap() {
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        assert!(refused.message().contains("cells"), "{refused}");
    }
}

/// Hands in a study with large files, and never ends.
async fn upload(attack: Attack, url: String, mebibytes: u64) {
    let mut client = studies(&url).await;
    let (out, pieces) = mpsc::channel(4);
    let files = vec![v1::SubmittedFile { path: "rewards.npy".to_owned(), size: 1 << 30 }];
    out.send(submitted("unfinished".to_owned(), files)).await.unwrap();
    let sender = async {
        for _ in 0..mebibytes {
            let data = Message::Data(vec![7; 1 << 20].into());
            if out.send(v1::SubmitRequest { message: Some(data) }).await.is_err() {
                break;
            }
            attack.count(1);
        }
        attack.stop.cancelled().await;
    };
    // Whether it is refused or waits, it goes on for as long as it can.
    tokio::select! {
        _ = client.submit(ReceiverStream::new(pieces)) => attack.stop.cancelled().await,
        () = sender => {}
    }
}

#[test]
fn unfinished_uploads_take_little_memory() {
    let siege = Siege::open();
    let handle = |mebibytes| upload(siege.attack.clone(), siege.service.url.clone(), mebibytes);
    for _ in 0..4 {
        siege.attackers.spawn(handle(200));
    }
    for _ in 0..64 {
        siege.attackers.spawn(handle(0));
    }
    siege.wait_for_blows(800);
    siege.is_withstood(4);
}

/// A study with a file.
const ROWS: &str = r#"
[study]
name = "rows"
seed = 7
replicates = 10

[prior]
setting = "data"
rewards = "rewards.csv"

[grid]
T = [1, 3]
delta = [0.3]
method = ["random"]
"#;

#[test]
fn only_workers_fetch_studies_and_files() {
    let siege = Siege::open();
    siege.bench.write("rows.toml", ROWS);
    let row = |i: u32| (0..6).map(|j| format!("0.{}", 1 + (7 * i + 3 * j) % 9)).collect::<Vec<_>>();
    let table: String = (0..12).map(|i| row(i).join(",") + "\n").collect();
    siege.bench.write("rewards.csv", &table);
    let output = siege.study(&["submit", "rows.toml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let url = siege.service.url.clone();
    siege.attackers.block_on(async {
        let mut rogue = Rogue::join(&url, "stranger", 1).await;
        let listed = studies(&url).await.list(v1::ListRequest {}).await.unwrap().into_inner();
        let id = listed.studies[0].study.clone();
        let ask = |worker_id| v1::FetchStudyRequest { worker_id, study: id.clone() };
        let definition = rogue.client.fetch_study(ask(rogue.id)).await.unwrap().into_inner();
        let digest = definition.files[0].digest.clone();
        let file = |worker_id| v1::FetchFileRequest { worker_id, digest: digest.clone() };
        let mut whole = rogue.client.fetch_file(file(rogue.id)).await.unwrap().into_inner();
        assert!(whole.message().await.unwrap().is_some_and(|chunk| !chunk.data.is_empty()));
        for nobody in [0, 1, rogue.id ^ 1, u64::MAX] {
            let refused = rogue.client.fetch_study(ask(nobody)).await.expect_err("the study");
            assert_eq!(refused.code(), Code::NotFound, "{refused}");
            let refused = rogue.client.fetch_file(file(nobody)).await.expect_err("the file");
            assert_eq!(refused.code(), Code::NotFound, "{refused}");
        }
        rogue.drain().await;
        // A worker that has left is nobody either.
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while rogue.client.fetch_study(ask(rogue.id)).await.is_ok() {
            assert!(tokio::time::Instant::now() < deadline, "one that has left is still served");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}
