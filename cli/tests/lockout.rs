//! Callers without credentials do not keep out those who have them.
//!
//! Sieges have 4,096 connections, or a quarter of the files that this process may open if that is less; whenever one
//! is closed, another takes its place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/service.rs"]
mod service;

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::{Bench, STUDY, stderr};
use proto::v1;
use proto::v1::studies_client::StudiesClient;
use rustix::process::{Resource, getrlimit, setrlimit};
use service::{PATIENCE, Process, Service, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

const TOKEN: &str = "correct-horse-battery-staple-4242";

/// What a caller waits for an answer at most while others besiege the coordinator.
const ANSWERED: Duration = Duration::from_secs(5);

/// Connections that a siege opens at once; more would overflow the system's queue and take it long to stand.
const AT_ONCE: usize = 256;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.write("token", TOKEN);
    bench
}

/// Takes all open files that are allowed, and says how many connections a siege has.
fn besiegers() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let files = usize::try_from(limit.maximum.unwrap_or(u64::MAX)).unwrap();
    let count = (files / 4).min(4096);
    eprintln!("{count} connections besiege");
    count
}

/// Connections that send their first bytes and then nothing, for as long as this lives.
struct Siege {
    runtime: Option<Runtime>,
}

impl Siege {
    /// Stands once all have been connected.
    fn lay(address: SocketAddr, count: usize, greetings: &'static [&'static [u8]]) -> Self {
        let runtime = Runtime::new().unwrap();
        let connected = Arc::new(AtomicUsize::new(0));
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        for greeting in greetings.iter().cycle().take(count) {
            let (connected, turns) = (Arc::clone(&connected), Arc::clone(&turns));
            runtime.spawn(async move {
                loop {
                    let turn = turns.acquire().await.unwrap();
                    let Ok(mut stream) = tokio::net::TcpStream::connect(address).await else {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    };
                    drop(turn);
                    _ = stream.write_all(greeting).await;
                    connected.fetch_add(1, Ordering::Relaxed);
                    while stream.read(&mut [0; 256]).await.is_ok_and(|read| read > 0) {}
                }
            });
        }
        until("the siege stands", || connected.load(Ordering::Relaxed) >= count);
        Self { runtime: Some(runtime) }
    }
}

impl Drop for Siege {
    fn drop(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }
}

/// Calls again and again, and fails where an answer takes too long.
fn answered(bench: &Bench, service: &Service, credentials: &[&str]) {
    for _ in 0..5 {
        let began = Instant::now();
        let listed = service.study(bench, &[&["list"], credentials].concat());
        assert!(listed.status.success(), "{}", stderr(&listed));
        assert!(began.elapsed() < ANSWERED, "{:?}", began.elapsed());
        eprintln!("answered after {:?}", began.elapsed());
    }
}

#[test]
fn silent_and_one_byte_connections_lock_nobody_out() {
    let bench = bench();
    let service = Service::start(&bench, &["--token-file", "token"]);
    let _siege = Siege::lay(service.address, besiegers(), &[b"P"]);
    let _silent = Siege::lay(service.address, 256, &[b""]);
    answered(&bench, &service, &["--token-file", "token"]);
}

#[test]
fn nor_do_they_under_tls_with_client_certificates() {
    let bench = bench();
    let hosts = ["--host", "localhost", "--host", "127.0.0.1"];
    let made = bench.output(&[&["cert", "--out", "certs"][..], &hosts].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    let server = ["--tls-cert", "certs/server.pem", "--tls-key", "certs/server.key"];
    let trust = ["--tls-ca", "certs/ca.pem"];
    let service = Service::start(&bench, &[&server[..], &trust].concat());
    let _siege =
        Siege::lay(service.address, besiegers(), &[b"", b"\x16", b"\x16\x03\x01\x02\x00\x01"]);
    let client = ["--tls-cert", "certs/client.pem", "--tls-key", "certs/client.key"];
    answered(&bench, &service, &[&trust[..], &client].concat());
}

/// A coordinator that may open few files, so that connections of any kind can use them up.
fn with_files(bench: &Bench, files: u32, arguments: &[&str]) -> Service {
    let command = bench.command(arguments);
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")]);
    limited.arg(command.get_program()).args(command.get_args()).current_dir(bench.dir.path());
    limited.env_remove("REGRETTA_TOKEN");
    Service::of(limited)
}

#[test]
fn half_requests_for_metrics_stop_neither_metrics_nor_calls() {
    let bench = bench();
    let listen = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--token-file", "token"];
    let arguments = [&["coordinator", "--dir", "service"], &listen[..]].concat();
    let service = with_files(&bench, 1024, &arguments);
    let count = besiegers().min(1600);
    let _siege =
        Siege::lay(service.metrics.unwrap(), count, &[b"GET /metrics HTTP/1.1\r\nHost: x\r\n"]);
    answered(&bench, &service, &["--token-file", "token"]);
    // One that is cut off may come again.
    let page = || {
        let mut stream = TcpStream::connect(service.metrics.unwrap())?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")?;
        std::io::read_to_string(stream)
    };
    until("the page is served", || page().is_ok_and(|page| page.contains("regretta_workers 0")));
}

/// A call over a connection of its own.
async fn call(channel: Channel) {
    let mut request = Request::new(v1::ListRequest {});
    request.metadata_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
    StudiesClient::new(channel).list(request).await.unwrap();
}

#[test]
fn a_thousand_authenticated_connections_come_from_one_address() {
    let besiegers = besiegers();
    let bench = bench();
    let service = Service::start(&bench, &["--token-file", "token"]);
    let runtime = Runtime::new().unwrap();
    let channels = runtime.block_on(async {
        let endpoint = Endpoint::from_shared(service.url.clone()).unwrap();
        let mut calls = JoinSet::new();
        for _ in 0..1000 {
            let endpoint = endpoint.clone();
            calls.spawn(async move {
                let channel = endpoint.connect().await.unwrap();
                call(channel.clone()).await;
                channel
            });
        }
        calls.join_all().await
    });
    let before = established(service.address);
    assert!(before.len() >= 1000, "{}", before.len());
    // Strangers push out each other, and none of these.
    let _siege = Siege::lay(service.address, besiegers, &[b"P"]);
    runtime.block_on(async {
        let mut calls = JoinSet::new();
        for channel in &channels {
            calls.spawn(call(channel.clone()));
        }
        calls.join_all().await;
    });
    let after = established(service.address);
    assert_eq!(before.difference(&after).count(), 0, "none had to be made again");
}

/// Local ports of this machine's connections to an IPv4 address.
fn established(address: SocketAddr) -> BTreeSet<String> {
    let SocketAddr::V4(to) = address else { panic!("{address}") };
    let to = format!("{:08X}:{:04X}", u32::from_le_bytes(to.ip().octets()), to.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    // 01: established.
    let ours = fields.filter(|fields| fields[2] == to && fields[3] == "01");
    ours.map(|fields| fields[1].to_owned()).collect()
}

/// What opens a connection of HTTP/2, which speaks for nobody by itself.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[test]
fn the_deadline_is_for_strangers_alone() {
    let bench = bench();
    let service = Service::start(&bench, &["--token-file", "token"]);
    let token = ["--token-file", "token"];
    let submitted = service.study(&bench, &[&["submit", "study.toml"], &token[..]].concat());
    assert!(submitted.status.success(), "{}", stderr(&submitted));
    // There is no worker, so that it watches for as long as its connection lasts.
    let watch = ["study", "watch", "small", "--coordinator", &service.url];
    let mut watch = Process::start(bench.command(&[&watch[..], &token].concat()));
    let strangers = [&b"P"[..], PREFACE].map(|greeting| {
        let mut stream = TcpStream::connect(service.address).unwrap();
        stream.write_all(greeting).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    });
    for mut stream in strangers {
        let ended = stream.read_to_end(&mut Vec::new());
        let closed =
            ended.as_ref().map_or_else(|e| e.kind() == ErrorKind::ConnectionReset, |_| true);
        assert!(closed, "{ended:?}");
    }
    assert!(watch.is_running(), "{}", watch.said());
}
