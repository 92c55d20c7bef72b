//! Datasets in an object store: a coordinator puts them there, another takes over from there, and the commands
//! that read datasets read them through a cache.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[expect(dead_code, reason = "a part of it is enough here")]
#[path = "../../coordinator/src/servers.rs"]
mod servers;
#[path = "common/service.rs"]
mod service;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use common::{Bench, STUDY, stderr};
use service::{Process, Service, digest};

/// A folder and a place in a store.
struct Stored {
    bench: Bench,
    place: String,
    settings: Vec<(&'static str, String)>,
}

impl Stored {
    /// `None` where no server is installed.
    fn new() -> Option<Self> {
        let (place, settings) = servers::bucket()?;
        let bench = Bench::new();
        bench.write("study.toml", STUDY);
        bench.write("grown.toml", &STUDY.replace("replicates = 300", "replicates = 500"));
        Some(Self { bench, place, settings })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.bench.command(arguments);
        command.env("XDG_CACHE_HOME", self.bench.path("cache"));
        command.envs(self.settings.iter().map(|(key, value)| (key.to_uppercase(), value)));
        command
    }

    fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a command says that fails with this exit code.
    fn fails(&self, code: i32, arguments: &[&str]) -> String {
        failed(code, &self.output(arguments))
    }

    fn coordinator(&self, dir: &str, more: &[&str]) -> Command {
        let arguments = [
            &["coordinator", "--dir", dir, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"],
            &["--store", &self.place][..],
            more,
        ];
        self.command(&arguments.concat())
    }

    /// Has a coordinator seal the small study, and returns the address of the dataset.
    fn sealed(&self) -> String {
        let service = Service::of(self.coordinator("service", &[]));
        let _worker = service.worker(&self.bench, "one", &[]);
        let id = service.submit(&self.bench, "study.toml");
        service.ask(&self.bench, &["watch", "small"]);
        format!("{}/datasets/small-{id}", self.place)
    }

    fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.bench.path(path)).unwrap()
    }

    /// The version that a dataset in the store has now, by its cached copy.
    fn version(&self) -> String {
        let folder = std::fs::read_dir(self.bench.path("cache/regretta/datasets")).unwrap();
        let names: Vec<_> = folder.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        names[0].to_string_lossy().into_owned()
    }
}

fn failed(code: i32, output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

#[test]
fn what_a_coordinator_seals_is_analysed_from_the_store() {
    let Some(stored) = Stored::new() else { return };
    let bench = &stored.bench;
    let expected = bench.run("study.toml", "local", &[])["digest"].as_str().unwrap().to_owned();
    let address = stored.sealed();

    // The place above says what there is.
    let said = stored.fails(2, &["analyze", &stored.place]);
    assert!(said.contains(&format!("there are {address}")), "{said}");

    let said = stored.output(&["analyze", &address, "--out", "analysed", "--quiet"]);
    assert!(said.status.success() && said.stderr.is_empty(), "{}", stderr(&said));
    assert_eq!(digest(&bench.path("analysed")), expected);
    for file in ["verdicts.json", "report.html", "tables/summary.csv", "manifest.json"] {
        assert!(stored.read(&format!("local/{file}")) == stored.read(&format!("analysed/{file}")));
    }
    assert!(bench.records("local") == bench.records("analysed"));
    stored.succeeds(&["verify", "analysed", "--recompute", "5"]);

    // What is there is not read again, and neither is it for another analysis or a table.
    let before = servers::requests(&address).len();
    stored.succeeds(&["analyze", &address, "--only", "verdicts"]);
    assert!(stored.read("local/verdicts.json") == stored.read("results/small/verdicts.json"));
    let shape = ["--claim", "lemma1.mean", "--rows", "N", "--cols", "t"];
    let shape = [&shape[..], &["--where", "constants=printed", "--where", "design=fixed"]].concat();
    let table = stored.succeeds(&[&["table", &address], &shape[..]].concat());
    assert_eq!(table, stored.succeeds(&[&["table", "local"], &shape[..]].concat()));
    let index = format!("GET {}/current", address.strip_prefix("s3:/").unwrap());
    assert_eq!(servers::requests(&address)[before..], [index.clone(), index]);

    // Whether the store has what was sealed is seen in the store alone.
    let said = stored.succeeds(&["verify", &address]);
    assert!(said.contains("as sealed"), "{said}");
    let read = servers::requests(&address).len() - before - 2;
    assert!(read > 5, "{read} requests");
}

#[test]
fn a_grown_study_replaces_its_dataset() {
    let Some(stored) = Stored::new() else { return };
    let bench = &stored.bench;
    let address = stored.sealed();
    let small = bench.run("study.toml", "whole", &[])["digest"].clone();
    let large = bench.run("grown.toml", "whole", &[])["digest"].clone();
    stored.succeeds(&["analyze", &address, "--quiet"]);
    assert_eq!(digest(&bench.path("results/small")), small);
    let old = format!("{address}/{}", stored.version());
    {
        let service = Service::of(stored.coordinator("service", &[]));
        let _worker = service.worker(bench, "one", &[]);
        service.submit(bench, "grown.toml");
        assert_eq!(service.result(bench, "small", "fetched"), large);
    }
    // The folder follows the dataset; whoever names the version before still gets it.
    stored.succeeds(&["analyze", &address, "--quiet"]);
    assert_eq!(digest(&bench.path("results/small")), large);
    assert!(stored.read("results/small/verdicts.json") == stored.read("whole/verdicts.json"));
    stored.succeeds(&["analyze", &old, "--out", "old", "--quiet"]);
    assert_eq!(digest(&bench.path("old")), small);

    // A folder of something else is left alone.
    let said = stored.fails(2, &["analyze", &old, "--out", "whole"]);
    assert!(said.contains("folder of a run"), "{said}");
    bench.write("other.toml", &STUDY.replace("seed = 7", "seed = 8"));
    bench.run("other.toml", "other", &[]);
    let said = stored.fails(2, &["analyze", &address, "--out", "other"]);
    assert!(said.contains("use another --out folder"), "{said}");
    let said = stored.fails(2, &["analyze", &address, "--out", "."]);
    assert!(said.contains("has a study.toml of its own"), "{said}");
}

#[test]
fn a_deleted_study_leaves_its_dataset_in_the_store_unless_that_is_to_go_too() {
    let Some(stored) = Stored::new() else { return };
    let bench = &stored.bench;
    let address = stored.sealed();
    let service = Service::of(stored.coordinator("service", &[]));
    let _worker = service.worker(bench, "one", &[]);
    for data in [&[][..], &["--data"]] {
        let deleted = service.study(bench, &[&["delete", "small"], data].concat());
        assert!(deleted.status.success(), "{}", stderr(&deleted));
        assert_eq!(service.ask(bench, &["list"]).as_array().unwrap().len(), 0);
        if data.is_empty() {
            stored.succeeds(&["verify", &address]);
            service.submit(bench, "study.toml");
            assert_eq!(service.ask(bench, &["watch", "small"])["state"], "done");
        } else {
            stored.fails(2, &["verify", &address]);
        }
    }
    assert_eq!(service.metric("regretta_trials_total"), 1500, "what was deleted is computed anew");
}

#[test]
fn a_standby_with_an_empty_folder_serves_and_grows_what_was_sealed() {
    let (Some(ledger), Some(stored)) = (servers::database(), Stored::new()) else { return };
    let bench = &stored.bench;
    let small = bench.run("study.toml", "whole", &[])["digest"].clone();
    let large = bench.run("grown.toml", "whole", &[])["digest"].clone();
    let leader = Service::of(stored.coordinator("one", &["--ledger", &ledger]));
    let standby = Process::start(stored.coordinator("two", &["--ledger", &ledger]));
    {
        let _worker = leader.worker(bench, "one", &[]);
        leader.submit(bench, "study.toml");
        assert_eq!(leader.result(bench, "small", "first"), small);
    }
    leader.process.kill();
    std::fs::remove_dir_all(bench.path("one")).unwrap();

    let second = Service::serving(standby);
    assert_eq!(second.result(bench, "small", "second"), small);
    assert!(bench.records("first") == bench.records("second"));
    let _worker = second.worker(bench, "two", &[]);
    second.submit(bench, "grown.toml");
    assert_eq!(second.result(bench, "small", "third"), large);
    // 200 more trials of 5 cells; what was sealed is not computed again.
    assert_eq!(second.metric("regretta_trials_total"), 1000);
}

#[test]
fn what_is_damaged_is_named_and_not_analysed() {
    let Some(stored) = Stored::new() else { return };
    let address = stored.sealed();
    stored.succeeds(&["analyze", &address, "--quiet"]);
    let version = stored.version();
    let cached = |name: &str| format!("cache/regretta/datasets/{version}/{name}");
    let (name, good) =
        ("records/part-00000.parquet", stored.read(&cached("records/part-00000.parquet")));

    // A cache that was damaged is mended.
    let mut bad = good.clone();
    bad[1000] ^= 1;
    stored.bench.write(&cached(name), "");
    stored.succeeds(&["analyze", &address, "--out", "mended", "--quiet"]);
    assert!(stored.read(&cached(name)) == good);

    let object = format!("{address}/{version}/{name}");
    for damaged in [&bad[..], &good[..good.len() / 2]] {
        servers::put_object(&object, damaged);
        let said = stored.fails(3, &["verify", &address]);
        assert!(said.contains(&object) && said.contains("not what was sealed"), "{said}");
        let said = stored.fails(3, &["analyze", &address, "--cache", "elsewhere"]);
        assert!(said.contains(&object), "{said}");
        assert!(
            !stored.bench.path("elsewhere").join(format!("datasets/{version}/{name}")).exists()
        );
    }
    // What the cache has is good.
    stored.succeeds(&["analyze", &address, "--quiet"]);
    servers::put_object(&format!("{address}/current"), b"half an index");
    let said = stored.fails(3, &["analyze", &address]);
    assert!(said.contains(&format!("{address}/current")), "{said}");
}

#[test]
fn a_folder_that_was_copied_is_read_as_well() {
    let Some(stored) = Stored::new() else { return };
    let bench = &stored.bench;
    bench.run("study.toml", "local", &[]);
    let place = format!("{}/copied", stored.place);
    let copy = |name: &str| {
        servers::put_object(&format!("{place}/{name}"), &stored.read(&format!("local/{name}")));
    };
    let others = ["counts.parquet", "domain.parquet", "priors.json", "codebook.csv"];
    others.into_iter().chain(["records/part-00000.parquet", "manifest.json"]).for_each(copy);
    let said = stored.fails(2, &["analyze", &place]);
    assert!(said.contains("no study.toml"), "{said}");
    copy("study.toml");
    stored.succeeds(&["analyze", &place, "--out", "analysed", "--quiet"]);
    assert!(stored.read("analysed/verdicts.json") == stored.read("local/verdicts.json"));
    servers::put_object(&format!("{place}/counts.parquet"), b"nothing");
    let said = stored.fails(3, &["verify", &place]);
    assert!(said.contains("copied/counts.parquet"), "{said}");
}

/// A server that refuses everybody, and its address.
fn denying() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            _ = stream.read(&mut request);
            let body = "<Error><Code>AccessDenied</Code></Error>";
            let length = body.len();
            let head = format!(
                "HTTP/1.1 403 Forbidden\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    address
}

#[test]
fn what_cannot_be_reached_is_told_with_advice() {
    let bench = Bench::new();
    let analyze = |settings: &[(&str, &str)]| {
        let mut command = bench.command(&["analyze", "s3://nobody/nothing", "--cache", "cache"]);
        for (key, _) in std::env::vars().filter(|(key, _)| key.starts_with("AWS_")) {
            command.env_remove(key);
        }
        command.envs(settings.iter().copied());
        let began = Instant::now();
        let said = failed(2, &command.output().unwrap());
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}: {said}", began.elapsed());
        assert!(said.contains("s3://nobody/nothing"), "{said}");
        said
    };
    let keys = [("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "geheim")];
    let at = |endpoint: &str| {
        let said = analyze(
            &[&keys[..], &[("AWS_ENDPOINT_URL", endpoint), ("AWS_ALLOW_HTTP", "true")]].concat(),
        );
        assert!(!said.contains("geheim"), "{said}");
        said
    };
    let said = at("http://127.0.0.1:1");
    assert!(said.contains("does not answer") && said.contains("AWS_ENDPOINT_URL"), "{said}");
    let said = at(&denying());
    assert!(said.contains("access is denied"), "{said}");
    let said = analyze(&[&keys[..], &[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")]].concat());
    assert!(said.contains("AWS_ALLOW_HTTP=true"), "{said}");
    let said = analyze(&[("AWS_ACCESS_KEY_ID", "test")]);
    assert!(said.contains("no credentials"), "{said}");
    assert!(!bench.path("cache").exists());

    // No results in a store without a coordinator.
    bench.write("study.toml", STUDY);
    let commands: [&[&str]; 3] = [
        &["run", "study.toml", "--out", "s3://nobody/nothing"],
        &["merge", "s3://nobody/nothing", "--out", "merged"],
        &["analyze", "gs://nobody/nothing"],
    ];
    for arguments in commands {
        let said = failed(2, &bench.output(arguments));
        assert!(said.contains("a folder"), "{said}");
    }

    let Some(stored) = Stored::new() else { return };
    let said = stored.fails(2, &["analyze", "s3://nobody/nothing"]);
    assert!(said.contains("there is no bucket \"nobody\""), "{said}");
    let said = stored.fails(2, &["analyze", &stored.place]);
    assert!(said.contains("holds no dataset"), "{said}");
}
