//! A coordinator and workers as processes: studies end to end, and what happens when one of them is
//! stopped, stalled, killed or restarted.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/service.rs"]
mod service;

use std::io::{Read, copy};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use common::{Bench, STUDY, stderr};
use proto::v1;
use proto::v1::studies_server::{Studies, StudiesServer};
use rustix::process::Signal;
use service::{Process, Service, digest, until};
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

/// Takes two workers some seconds, in many shards.
fn long_study() -> String {
    STUDY.replace("replicates = 300", "replicates = 6000").replace("small", "long")
}

const SMALL_SHARDS: [&str; 4] = ["--shard-records", "512", "--shard-seconds", "0.2"];

fn whole(bench: &Bench, study: &str) -> String {
    bench.run(study, &format!("whole-{study}"), &[])["digest"].as_str().unwrap().to_owned()
}

#[test]
fn claims_of_a_submitted_study_are_checked() {
    let bench = Bench::new();
    let study = |holds: &str| {
        format!("{STUDY}\n[[claim]]\nid = \"mine\"\nholds = \"{holds}\"\nbudget = \"delta\"\n")
    };
    bench.write("good.toml", &study("simple_regret <= f_range"));
    bench.write("bad.toml", &study("simple_regrets <= f_range"));
    let service = Service::start(&bench, &[]);
    service.submit(&bench, "good.toml");
    let bad = service.study(&bench, &["submit", "bad.toml"]);
    assert_eq!(bad.status.code(), Some(2), "{}", stderr(&bad));
    assert!(stderr(&bad).contains("did you mean simple_regret?"), "{}", stderr(&bad));
    assert_eq!(service.ask(&bench, &["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_study_is_submitted_followed_and_fetched() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let other = STUDY.replace("small", "other").replace("seed = 7", "seed = 8");
    bench.write("other.toml", &other);
    let (small, other) = (whole(&bench, "study.toml"), whole(&bench, "other.toml"));
    let service = Service::start(&bench, &["--check", "0.5"]);
    let id = service.submit(&bench, "study.toml");
    service.submit(&bench, "other.toml");
    let listed = service.ask(&bench, &["list"]);
    let states: Vec<_> = listed.as_array().unwrap().iter().map(|s| s["state"].clone()).collect();
    assert_eq!(states, ["running", "running"], "{listed}");
    let status = service.ask(&bench, &["status", "small"]);
    assert_eq!((&status["study"], &status["trials_done"]), (&id.clone().into(), &0.into()));
    let early = service.study(&bench, &["fetch", "small", "--out", "early"]);
    assert_eq!(early.status.code(), Some(2), "{}", stderr(&early));
    assert!(stderr(&early).contains("watch it until it is done"), "{}", stderr(&early));

    let workers = ["one", "two"].map(|name| service.worker(&bench, name, &[]));
    // By the beginning of its id, and by its name.
    assert_eq!(service.result(&bench, &id[..6], "fetched"), small);
    assert_eq!(service.result(&bench, "other", "fetched-other"), other);
    assert!(bench.records("whole-study.toml") == bench.records("fetched"));
    let study = std::fs::read_to_string(bench.path("fetched/study.toml")).unwrap();
    assert_eq!(study, STUDY);
    let again = service.study(&bench, &["fetch", "small", "--out", "fetched"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("choose another --out"), "{}", stderr(&again));
    let replace = |study| service.study(&bench, &["fetch", study, "--out", "fetched", "--replace"]);
    let again = replace("small");
    assert!(again.status.success(), "{}", stderr(&again));
    assert!(bench.records("whole-study.toml") == bench.records("fetched"));
    let strange = replace("other");
    assert_eq!(strange.status.code(), Some(2));
    assert!(stderr(&strange).contains("of another study"), "{}", stderr(&strange));
    let watched = stderr(&service.study(&bench, &["watch", "small"]));
    assert!(watched.contains("so far ") && !watched.contains(" 0 confirmed"), "{watched}");
    let unknown = service.study(&bench, &["status", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("regretta study list"), "{}", stderr(&unknown));

    for (name, expected) in [
        ("regretta_trials_total", 2 * 1500),
        ("regretta_records_total", 2 * 1500 * 2),
        ("regretta_alarms_total", 0),
        ("regretta_commit_failures_total", 0),
        ("regretta_leases_held", 0),
        ("regretta_workers", 2),
    ] {
        assert_eq!(service.metric(name), expected, "{}", service.metrics_page());
    }
    let (leases, retries) =
        (service.metric("regretta_leases_total"), service.metric("regretta_retries_total"));
    let kept = service.metric("regretta_shards_total") + service.metric("regretta_checks_total");
    assert!(service.metric("regretta_checks_total") > 0);
    assert_eq!(leases, kept + retries);
    for worker in workers {
        worker.signal(Signal::TERM);
        let (status, said) = worker.wait();
        assert_eq!(status.code(), Some(0), "{said}");
    }
}

#[test]
fn a_grown_study_is_sealed_again_and_outlives_a_restart() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let grown = STUDY.replace("replicates = 300", "replicates = 500");
    bench.write("grown.toml", &grown);
    let (small, large) = (whole(&bench, "study.toml"), whole(&bench, "grown.toml"));
    let service = Service::start(&bench, &[]);
    let worker = service.worker(&bench, "one", &[]);
    service.submit(&bench, "study.toml");
    assert_eq!(service.result(&bench, "small", "first"), small);
    service.submit(&bench, "grown.toml");
    assert_eq!(service.result(&bench, "small", "second"), large);
    let shrunk = service.study(&bench, &["submit", "study.toml"]);
    assert_eq!(shrunk.status.code(), Some(2), "{}", stderr(&shrunk));
    assert!(stderr(&shrunk).contains("can be added, not taken away"), "{}", stderr(&shrunk));

    service.process.signal(Signal::TERM);
    let (status, said) = service.process.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("start again on the same folder"), "{said}");
    drop(worker);
    let service = Service::start(&bench, &[]);
    assert_eq!(service.result(&bench, "small", "third"), large);
}

#[test]
fn a_cancelled_study_goes_on_when_it_is_submitted_again() {
    let bench = Bench::new();
    bench.write("study.toml", &long_study());
    let expected = whole(&bench, "study.toml");
    let service = Service::start(&bench, &SMALL_SHARDS);
    service.submit(&bench, "study.toml");
    let worker = service.worker(&bench, "one", &[]);
    service.wait_for_trials(&bench, "long", 500);
    let cancelled = service.study(&bench, &["cancel", "long"]);
    assert!(cancelled.status.success(), "{}", stderr(&cancelled));
    let status = service.ask(&bench, &["watch", "long"]);
    assert_eq!(status["state"], "cancelled");
    let kept = status["trials_done"].as_u64().unwrap();
    assert!((500..30_000).contains(&kept), "{kept}");
    service.submit(&bench, "study.toml");
    assert_eq!(service.result(&bench, "long", "out"), expected);
    drop(worker);
}

#[test]
fn a_deleted_study_leaves_its_dataset_unless_that_is_to_go_too() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.write("long.toml", &long_study());
    let service = Service::start(&bench, &[]);
    service.submit(&bench, "long.toml");
    let refused = service.study(&bench, &["delete", "long"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("cancel it first"), "{}", stderr(&refused));
    for action in ["cancel", "delete"] {
        let done = service.study(&bench, &[action, "long"]);
        assert!(done.status.success(), "{}", stderr(&done));
    }
    let _worker = service.worker(&bench, "one", &[]);
    let mut digests = Vec::new();
    for (data, out) in [(&[][..], "first"), (&["--data"], "second")] {
        let id = service.submit(&bench, "study.toml");
        digests.push(service.result(&bench, "small", out));
        let deleted = service.study(&bench, &[&["delete", "small"], data].concat());
        assert!(deleted.status.success(), "{}", stderr(&deleted));
        assert_eq!(service.ask(&bench, &["list"]).as_array().unwrap().len(), 0);
        let dataset = bench.path(&format!("service/studies/small-{id}"));
        assert_eq!(dataset.join("manifest.json").exists(), data.is_empty());
        assert_eq!(dataset.exists(), data.is_empty());
        assert!(
            service.process.said().contains("a study was deleted")
                && service.process.said().contains("caller=Some(127.0.0.1)"),
            "{}",
            service.process.said()
        );
    }
    assert_eq!(digests[0], digests[1]);
    // Every trial was computed twice.
    assert_eq!(service.metric("regretta_trials_total"), 2 * 1500);
}

/// Its dataset stayed, and was said to.
#[test]
fn a_deleted_study_does_not_come_back_smaller() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.write("smaller.toml", &STUDY.replace("N = [60, 200]", "N = [200]"));
    let service = Service::start(&bench, &[]);
    let _worker = service.worker(&bench, "one", &[]);
    let id = service.submit(&bench, "study.toml");
    let whole = service.result(&bench, "small", "out");
    assert!(service.study(&bench, &["delete", "small"]).status.success());
    let refused = service.study(&bench, &["submit", "smaller.toml"]);
    assert!(!refused.status.success());
    assert!(stderr(&refused).contains("grid.N was [60, 200] and is [200]"), "{}", stderr(&refused));
    assert_eq!(service.ask(&bench, &["list"]).as_array().unwrap().len(), 0);
    let dataset = bench.path(&format!("service/studies/small-{id}"));
    assert_eq!(digest(&dataset), whole);
    // One that is lost while the ledger counts on it is computed anew, and says so.
    service.submit(&bench, "study.toml");
    assert_eq!(service.result(&bench, "small", "again"), whole);
    std::fs::remove_dir_all(&dataset).unwrap();
    bench.write("study.toml", &STUDY.replace("replicates = 300", "replicates = 400"));
    let grown = self::whole(&bench, "study.toml");
    service.submit(&bench, "study.toml");
    assert_eq!(service.result(&bench, "small", "grown"), grown);
    let notes = service.ask(&bench, &["status", "small"])["notes"].to_string();
    assert!(notes.contains("computed anew"), "{notes}");
}

#[test]
fn a_stalled_worker_that_comes_back_changes_nothing() {
    let bench = Bench::new();
    bench.write("study.toml", &long_study());
    let expected = whole(&bench, "study.toml");
    let service = Service::start(&bench, &[&SMALL_SHARDS[..], &["--lease-seconds", "1"]].concat());
    service.submit(&bench, "study.toml");
    let stalled = service.worker(&bench, "stalled", &[]);
    service.wait_for_trials(&bench, "long", 200);
    // Between two shards, or while it joins again, it holds nothing: then it is stopped once more, after another time.
    let mut pause = 0;
    until("it is stopped with a lease that expires", || {
        std::thread::sleep(Duration::from_millis(pause));
        pause = (pause + 37) % 250;
        stalled.signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(1600));
        let expired = service.metric("regretta_worker_deaths_total") > 0;
        stalled.signal(Signal::CONT);
        expired
    });
    let helper = service.worker(&bench, "helper", &[]);
    assert_eq!(service.result(&bench, "long", "out"), expected);
    for mut worker in [stalled, helper] {
        assert!(worker.is_running(), "{}", worker.said());
        worker.signal(Signal::TERM);
        assert_eq!(worker.wait().0.code(), Some(0));
    }
}

#[test]
fn a_killed_worker_loses_nothing() {
    let bench = Bench::new();
    bench.write("study.toml", &long_study());
    let expected = whole(&bench, "study.toml");
    let service = Service::start(&bench, &[&SMALL_SHARDS[..], &["--lease-seconds", "1"]].concat());
    service.submit(&bench, "study.toml");
    for number in 0..3 {
        let killed = service.worker(&bench, &format!("killed-{number}"), &[]);
        let before = service.ask(&bench, &["status", "long"])["trials_done"].as_u64().unwrap();
        service.wait_for_trials(&bench, "long", before + 1);
        killed.kill();
    }
    let last = service.worker(&bench, "last", &[]);
    assert_eq!(service.result(&bench, "long", "out"), expected);
    drop(last);
}

#[test]
fn a_coordinator_is_killed_and_restarted_under_running_workers() {
    let bench = Bench::new();
    bench.write("study.toml", &long_study());
    let expected = whole(&bench, "study.toml");
    let mut service = Service::start(&bench, &SMALL_SHARDS);
    let listen = service.address.to_string();
    service.submit(&bench, "study.toml");
    let workers = ["one", "two"].map(|name| service.worker(&bench, name, &[]));
    let mut done = 0;
    for _ in 0..3 {
        service.wait_for_trials(&bench, "long", done + 1);
        service.process.kill();
        service = Service::listen(&bench, &listen, &SMALL_SHARDS);
        done = service.ask(&bench, &["status", "long"])["trials_done"].as_u64().unwrap();
        assert!(done > 0, "what was acknowledged is there after the restart");
    }
    assert_eq!(service.result(&bench, "long", "out"), expected);
    for mut worker in workers {
        assert!(worker.is_running(), "{}", worker.said());
    }
}

#[test]
fn a_stopped_worker_and_a_stopped_coordinator_say_goodbye() {
    let bench = Bench::new();
    bench.write("study.toml", &STUDY.replace("replicates = 300", "replicates = 1000000"));
    let service = Service::start(&bench, &SMALL_SHARDS);
    service.submit(&bench, "study.toml");
    let worker = service.worker(&bench, "leaving", &[]);
    let stays = service.worker(&bench, "staying", &[]);
    service.wait_for_trials(&bench, "small", 500);
    worker.signal(Signal::TERM);
    let (status, said) = worker.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(said.contains("trials in"), "{said}");
    // What it held is free at once: nobody has to wait for a lease of 30 s.
    until("its leases are given back", || service.metric("regretta_worker_deaths_total") == 0);
    let watching =
        Process::start(bench.command(&["study", "watch", "small", "--coordinator", &service.url]));
    until("it is watched", || watching.said().contains("trials"));
    service.process.signal(Signal::TERM);
    let url = service.url.clone();
    let (status, said) = service.process.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let (watched, why) = watching.wait();
    assert_eq!(watched.code(), Some(1), "{why}");
    assert!(why.contains("when it is back"), "{why}");
    // A worker waits for the coordinator to come back, unless it was told how long.
    std::thread::sleep(Duration::from_millis(300));
    let mut stays = stays;
    assert!(stays.is_running());
    let arguments = ["worker", "--coordinator", &url, "--patience", "1"];
    let (status, said) = Process::start(bench.command(&arguments)).wait();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("could not be reached"), "{said}");
}

#[test]
fn a_dataset_that_was_fetched_is_the_dataset_of_a_run() {
    let bench = Bench::new();
    let summary = STUDY.replace("seed = 7", "seed = 7\ndetail = \"summary\"");
    bench.write("study.toml", &summary);
    let expected = whole(&bench, "study.toml");
    let service = Service::start(&bench, &["--shard-records", "64"]);
    service.submit(&bench, "study.toml");
    let _worker = service.worker(&bench, "one", &[]);
    assert_eq!(service.result(&bench, "small", "out"), expected);
    assert_eq!(digest(&bench.path("whole-study.toml")), expected);
}

/// Passes one connection on to a coordinator, and breaks it off after so many bytes of answers; how many there were.
fn way(to: SocketAddr, limit: u64) -> (String, JoinHandle<u64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let passing = spawn(move || {
        let (mut near, _) = listener.accept().unwrap();
        let far = TcpStream::connect(to).unwrap();
        let (mut calls, mut called) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        // Either may hang up first, which ends the other's way, too.
        let calling = spawn(move || {
            _ = copy(&mut calls, &mut called);
            _ = called.shutdown(Shutdown::Both);
        });
        let mut answers = far.take(limit);
        _ = copy(&mut answers, &mut near);
        _ = near.shutdown(Shutdown::Both);
        calling.join().unwrap();
        limit - answers.limit()
    });
    (url, passing)
}

#[test]
fn a_download_that_breaks_off_is_no_dataset_and_the_same_command_gets_it_whole() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let service = Service::start(&bench, &[]);
    service.submit(&bench, "study.toml");
    let _worker = service.worker(&bench, "one", &[]);
    let whole = service.result(&bench, "small", "whole");
    let fetch = |out: &str, limit: u64| {
        let (url, passing) = way(service.address, limit);
        let output =
            bench.output(&["study", "fetch", "small", "--out", out, "--coordinator", &url]);
        (output, passing.join().unwrap())
    };
    let (complete, bytes) = fetch("complete", u64::MAX);
    assert!(complete.status.success(), "{}", stderr(&complete));
    for eighths in 1..8 {
        let (broken, _) = fetch("out", bytes * eighths / 8);
        assert!(!broken.status.success(), "{eighths}");
        assert!(!bench.path("out/manifest.json").exists(), "{eighths}: {}", stderr(&broken));
    }
    assert!(
        !bench.path("out/records").exists(),
        "what was among the records is no part of a dataset"
    );
    let (again, _) = fetch("out", u64::MAX);
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(digest(&bench.path("out")), whole);
    assert!(bench.records("out") == bench.records("whole"));
}

/// The address of something that answers every call as a standby does.
fn standby() -> String {
    let refuse = || async {
        Status::unavailable("standby: it does not lead").into_http::<tonic::body::Body>()
    };
    serve(Routes::from(axum::Router::new().fallback(refuse)))
}

/// Serves for as long as the test lasts, and returns the address.
fn serve(routes: Routes) -> String {
    let (tell, told) = std::sync::mpsc::channel();
    spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
            let server = tonic::transport::Server::builder().add_routes(routes);
            server.serve_with_incoming(incoming).await.unwrap();
        });
    });
    format!("http://{}", told.recv().unwrap())
}

#[test]
fn a_standby_is_passed_over() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    let service = Service::start(&bench, &[]);
    let standby = standby();
    for addresses in [format!("{standby},{}", service.url), format!("{},{standby}", service.url)] {
        let submitted =
            bench.output(&["study", "submit", "study.toml", "--coordinator", &addresses]);
        assert!(submitted.status.success(), "{addresses}: {}", stderr(&submitted));
    }
    let both = format!("{standby},{standby}");
    for addresses in [&standby, &both] {
        let refused = bench.output(&["study", "list", "--coordinator", addresses]);
        assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("does not lead"), "{}", stderr(&refused));
    }
}

/// A coordinator with one study of which three cells fit in a message, as the real one has it with thousands.
struct Large;

/// So many cells.
const CELLS: u64 = 8;

type Chunks<T> = tokio_stream::Iter<std::vec::IntoIter<Result<T, Status>>>;

fn large(after: Option<u64>) -> v1::StudyStatus {
    let first = after.map_or(0, |cell| cell + 1);
    let cell =
        |cell| v1::CellStatus { cell, trials_planned: 10, trials_done: 10, ..Default::default() };
    let mut status = v1::StudyStatus {
        study: vec![7; 32].into(),
        name: "large".to_owned(),
        cells: (first..CELLS.min(first + 3)).map(cell).collect(),
        cells_total: CELLS,
        trials_done: 10 * CELLS,
        trials_planned: 10 * CELLS,
        notes: vec!["something was computed anew".to_owned()],
        ..Default::default()
    };
    status.set_state(v1::StudyState::Done);
    status
}

#[tonic::async_trait]
impl Studies for Large {
    type WatchStream = Chunks<v1::StudyStatus>;
    type FetchResultsStream = Chunks<v1::ResultChunk>;

    async fn submit(
        &self,
        _: Request<Streaming<v1::SubmitRequest>>,
    ) -> Result<Response<v1::SubmitReply>, Status> {
        Err(Status::unimplemented("submit"))
    }

    async fn list(&self, _: Request<v1::ListRequest>) -> Result<Response<v1::ListReply>, Status> {
        let study = v1::StudySummary {
            study: vec![7; 32].into(),
            name: "large".to_owned(),
            ..Default::default()
        };
        Ok(Response::new(v1::ListReply { studies: vec![study] }))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StudyStatus>, Status> {
        Ok(Response::new(large(request.into_inner().after_cell)))
    }

    async fn watch(
        &self,
        _: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Ok(Response::new(tokio_stream::iter(vec![Ok(large(None))])))
    }

    async fn cancel(
        &self,
        _: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::CancelReply>, Status> {
        Err(Status::unimplemented("cancel"))
    }

    async fn delete(
        &self,
        _: Request<v1::DeleteRequest>,
    ) -> Result<Response<v1::DeleteReply>, Status> {
        Err(Status::unimplemented("delete"))
    }

    async fn fetch_results(
        &self,
        _: Request<v1::FetchResultsRequest>,
    ) -> Result<Response<Self::FetchResultsStream>, Status> {
        Err(Status::unimplemented("fetch"))
    }
}

#[test]
fn a_status_of_many_messages_is_shown_as_one() {
    let url = serve(Routes::new(StudiesServer::new(Large)));
    let bench = Bench::new();
    for action in ["status", "watch"] {
        let output = bench.output(&["study", action, "large", "--coordinator", &url, "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(shown["cells"].as_array().unwrap().len(), CELLS as usize, "{shown}");
        assert_eq!((&shown["trials_done"], &shown["state"]), (&80.into(), &"done".into()));
        assert_eq!(shown["notes"][0], "something was computed anew");
    }
    let watched = bench.output(&["study", "watch", "large", "--coordinator", &url]);
    assert!(stderr(&watched).contains("large: 80 of 80 trials, 0 of 8 cells open"), "{watched:?}");
    let text = String::from_utf8(watched.stdout).unwrap();
    assert!(text.contains("note: something was computed anew"), "{text}");
}
