//! Who may come in, and what strangers can do at the door.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/service.rs"]
mod service;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Output;
use std::time::{Duration, SystemTime};

use common::{Bench, STUDY, stderr};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use service::{Process, Service};

const TOKEN: &str = "correct-horse-battery-staple-4242";

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.write("token", TOKEN);
    bench.write("wrong", "wrong-horse-battery-staple-4242");
    bench
}

fn certificates(bench: &Bench, out: &str) {
    let hosts = ["--host", "localhost", "--host", "127.0.0.1"];
    let made = bench.output(&[&["cert", "--out", out][..], &hosts].concat());
    assert!(made.status.success(), "{}", stderr(&made));
}

const TLS: [&str; 4] = ["--tls-cert", "certs/server.pem", "--tls-key", "certs/server.key"];
const TRUST: [&str; 2] = ["--tls-ca", "certs/ca.pem"];

fn client_of(folder: &str) -> [String; 6] {
    ["--tls-ca", "ca.pem", "--tls-cert", "client.pem", "--tls-key", "client.key"].map(|part| {
        if part.starts_with("--") { part.to_owned() } else { format!("{folder}/{part}") }
    })
}

fn strings(parts: &[String]) -> Vec<&str> {
    parts.iter().map(String::as_str).collect()
}

/// A worker and a client that must be refused with this exit code and these words.
fn refused(bench: &Bench, service: &Service, more: &[&str], words: &[&str]) {
    let listed = service.study(bench, &[&["list"], more].concat());
    assert_eq!(listed.status.code(), Some(2), "{more:?}: {}", stderr(&listed));
    let told = ["token", "regretta cert", "certificate"].map(|word| stderr(&listed).contains(word));
    assert!(told.contains(&true), "{more:?}: {}", stderr(&listed));
    let (status, said) =
        service.worker(bench, "stranger", &[more, &["--patience", "2"]].concat()).wait();
    assert_eq!(status.code(), Some(2), "{more:?}: {said}");
    assert!(words.iter().any(|word| said.contains(word)), "{more:?}: {said}");
}

fn admitted(bench: &Bench, service: &Service, more: &[&str]) {
    let listed = service.study(bench, &[&["list"], more].concat());
    assert!(listed.status.success(), "{more:?}: {}", stderr(&listed));
}

#[test]
fn only_the_token_lets_in() {
    let bench = bench();
    let service = Service::start(&bench, &["--token-file", "token"]);
    for more in [&[][..], &["--token-file", "wrong"]] {
        refused(
            &bench,
            &service,
            more,
            &["give it the token that the coordinator was started with"],
        );
    }
    admitted(&bench, &service, &["--token-file", "token"]);
    let environment = bench
        .command(&["study", "list", "--coordinator", &service.url])
        .env("REGRETTA_TOKEN", TOKEN)
        .output();
    assert!(environment.unwrap().status.success());
    bench.write("short", "secret");
    let short = bench.output(&["coordinator", "--dir", "other", "--token-file", "short"]);
    assert_eq!(short.status.code(), Some(2));
    assert!(stderr(&short).contains("at least 16"), "{}", stderr(&short));
    assert!(!stderr(&short).contains("secret"), "{}", stderr(&short));
}

#[test]
fn certificates_and_tokens_work_end_to_end() {
    let bench = bench();
    certificates(&bench, "certs");
    certificates(&bench, "others");
    for key in ["certs/server.key", "certs/client.key"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(bench.path(key)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
    let whole = bench.run("study.toml", "whole", &[]);
    let service = Service::start(&bench, &[&TLS[..], &TRUST, &["--token-file", "token"]].concat());
    let (mine, others) = (client_of("certs"), client_of("others"));
    let (mine, others) = (strings(&mine), strings(&others));
    let by_token = [&TRUST[..], &["--token-file", "token"]].concat();
    admitted(&bench, &service, &mine);
    admitted(&bench, &service, &by_token);
    refused(&bench, &service, &TRUST, &["a valid token or client certificate"]);
    let wrong = [&TRUST[..], &["--token-file", "wrong"]].concat();
    refused(&bench, &service, &wrong, &["a valid token or client certificate"]);
    refused(&bench, &service, &others, &["regretta cert"]);
    // Trusts the coordinator, but shows a certificate of another authority.
    let foreign =
        [&TRUST[..], &["--tls-cert", "others/client.pem", "--tls-key", "others/client.key"]];
    refused(&bench, &service, &foreign.concat(), &["regretta cert"]);

    let submitted = service.study(&bench, &[&["submit", "study.toml"], &mine[..]].concat());
    assert!(submitted.status.success(), "{}", stderr(&submitted));
    let _workers = [
        service.worker(&bench, "certified", &mine),
        service.worker(&bench, "knows-the-token", &by_token),
    ];
    let watched = service.study(&bench, &[&["watch", "small"], &by_token[..]].concat());
    assert!(watched.status.success(), "{}", stderr(&watched));
    let fetch = [&["fetch", "small", "--out", "out"], &mine[..]].concat();
    let fetched = service.study(&bench, &fetch);
    assert!(fetched.status.success(), "{}", stderr(&fetched));
    assert_eq!(service::digest(&bench.path("out")), whole["digest"].as_str().unwrap());
    let again = bench.output(&["cert", "--out", "certs"]);
    assert_eq!(again.status.code(), Some(2), "keys are not overwritten");
}

#[test]
fn a_plain_connection_to_an_encrypted_port_is_refused() {
    let bench = bench();
    certificates(&bench, "certs");
    let service = Service::start(&bench, &[&TLS[..], &["--token-file", "token"]].concat());
    let plain = service.url.replace("https://", "http://");
    let listed = bench.output(&["study", "list", "--coordinator", &plain, "--token-file", "token"]);
    assert!(!listed.status.success());
    assert!(stderr(&listed).contains("https"), "{}", stderr(&listed));
    let worker = ["worker", "--coordinator", &plain, "--token-file", "token", "--patience", "1"];
    let (status, said) = Process::start(bench.command(&worker)).wait();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("https"), "{said}");
    // And without saying whom to trust.
    let blind = service.study(&bench, &["list", "--token-file", "token"]);
    assert_eq!(blind.status.code(), Some(2));
    assert!(stderr(&blind).contains("--tls-ca"), "{}", stderr(&blind));
}

#[test]
fn silence_is_not_waited_for_for_ever_on_either_side() {
    let bench = bench();
    certificates(&bench, "certs");
    let service = Service::start(&bench, &[&TLS[..], &["--token-file", "token"]].concat());
    let mut half_way = TcpStream::connect(service.address).unwrap();
    half_way.write_all(b"\x16\x03\x01").unwrap();
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", mute.local_addr().unwrap());
    let list = ["study", "list", "--coordinator", &url, "--tls-ca", "certs/ca.pem"];
    let (status, said) = Process::start(bench.command(&list)).wait();
    assert_eq!(status.code(), Some(2), "{said}");
    assert!(said.contains("no answer within 20 s"), "{said}");
    half_way.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(half_way.read(&mut [0; 100]).unwrap(), 0, "the coordinator hangs up");
}

/// An authority, and a certificate of it that ended yesterday.
fn expired(bench: &Bench, folder: &str, usage: ExtendedKeyUsagePurpose) {
    let day = Duration::from_secs(86_400);
    let now = SystemTime::now();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(authority, key);
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.extended_key_usages = vec![usage];
    (params.not_before, params.not_after) = ((now - day * 30).into(), (now - day).into());
    let old_key = KeyPair::generate().unwrap();
    let old = params.signed_by(&old_key, &issuer).unwrap().pem();
    (params.not_before, params.not_after) = ((now - day).into(), (now + day).into());
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let new_key = KeyPair::generate().unwrap();
    let new = params.signed_by(&new_key, &issuer).unwrap().pem();
    std::fs::create_dir(bench.path(folder)).unwrap();
    for (name, text) in [
        ("ca.pem", authority_pem),
        ("old.pem", old),
        ("old.key", old_key.serialize_pem()),
        ("new.pem", new),
        ("new.key", new_key.serialize_pem()),
    ] {
        bench.write(&format!("{folder}/{name}"), &text);
    }
}

#[test]
fn an_expired_certificate_is_refused_on_either_side() {
    let bench = bench();
    expired(&bench, "server", ExtendedKeyUsagePurpose::ServerAuth);
    let tls =
        ["--tls-cert", "server/old.pem", "--tls-key", "server/old.key", "--token-file", "token"];
    let service = Service::start(&bench, &tls);
    let more = ["--tls-ca", "server/ca.pem", "--token-file", "token"];
    refused(&bench, &service, &more, &["xpired"]);
    drop(service);
    std::fs::remove_dir_all(bench.path("service")).unwrap();
    expired(&bench, "client", ExtendedKeyUsagePurpose::ClientAuth);
    let tls = [
        "--tls-cert",
        "client/new.pem",
        "--tls-key",
        "client/new.key",
        "--tls-ca",
        "client/ca.pem",
    ];
    let service = Service::start(&bench, &tls);
    let trust = ["--tls-ca", "client/ca.pem"];
    let good = ["--tls-cert", "client/new.pem", "--tls-key", "client/new.key"];
    admitted(&bench, &service, &[&trust[..], &good].concat());
    let old = ["--tls-cert", "client/old.pem", "--tls-key", "client/old.key"];
    refused(&bench, &service, &[&trust[..], &old].concat(), &["xpired"]);
}

#[test]
fn other_machines_are_kept_out_by_default() {
    let bench = bench();
    certificates(&bench, "certs");
    let listen = ["coordinator", "--dir", "service", "--listen", "0.0.0.0:0"];
    for more in [&[][..], &["--token-file", "token"], &TLS] {
        let output = bench.output(&[&listen[..], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        for word in ["--tls-cert", "--token-file", "127.0.0.1", "--insecure"] {
            assert!(stderr(&output).contains(word), "{}", stderr(&output));
        }
    }
    for more in [&["--insecure"][..], &[&TLS[..], &["--token-file", "token"]].concat()] {
        let service = Service::listen(&bench, "0.0.0.0:0", more);
        service.process.signal(Signal::TERM);
        assert_eq!(service.process.wait().0.code(), Some(0));
    }
}

#[test]
fn garbage_and_a_thousand_silent_callers_do_no_harm() {
    let mut limit: Rlimit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
    let bench = bench();
    let whole = bench.run("study.toml", "whole", &[]);
    let service = Service::start(&bench, &[]);
    let mut silent = Vec::new();
    for _ in 0..1000 {
        silent.push(TcpStream::connect(service.address).unwrap());
    }
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let noise: Vec<u8> =
        (0..100_000_u32).map(|i| (i.wrapping_mul(2654435761) >> 24) as u8).collect();
    for garbage in [
        &noise[..],
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[&preface[..], &noise].concat(),
        // A frame that claims 16 MiB.
        &[&preface[..], &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    ] {
        let mut stream = TcpStream::connect(service.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The server may close before it has read everything.
        _ = stream.write_all(garbage);
        _ = stream.shutdown(std::net::Shutdown::Write);
        _ = stream.read_to_end(&mut Vec::new());
    }
    service.submit(&bench, "study.toml");
    let _worker = service.worker(&bench, "one", &[]);
    assert_eq!(service.result(&bench, "small", "out"), whole["digest"].as_str().unwrap());
    drop(silent);
    assert_eq!(service.metric("regretta_workers"), 1);
}

/// Lines of a PEM file that tell its secret.
fn secret_lines(bench: &Bench, key: &str) -> Vec<String> {
    let text = std::fs::read_to_string(bench.path(key)).unwrap();
    text.lines().filter(|line| !line.starts_with("-----")).map(str::to_owned).collect()
}

#[test]
fn no_secret_is_in_any_log() {
    let bench = bench();
    certificates(&bench, "certs");
    bench.write("study.toml", &STUDY.replace("replicates = 300", "replicates = 40"));
    let traced = |arguments: &[&str]| {
        let mut command = bench.command(arguments);
        command.env("RUST_LOG", "trace");
        command
    };
    let mut logs: Vec<(&str, String)> = Vec::new();
    let text =
        |output: &Output| format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(output));
    let serve = [
        &["coordinator", "--dir", "service", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"],
        &TLS[..],
        &TRUST,
        &["--token-file", "token"],
    ];
    let service = Service::of(traced(&serve.concat()));
    let reach = ["--coordinator", &service.url];
    let by_token = [&reach[..], &TRUST, &["--token-file", "token"]].concat();
    let certificate = client_of("certs");
    let certified = [&reach[..], &strings(&certificate)].concat();
    let submitted =
        traced(&[&["study", "submit", "study.toml"], &by_token[..]].concat()).output().unwrap();
    assert!(submitted.status.success(), "{}", stderr(&submitted));
    logs.push(("submit", text(&submitted)));
    let workers = [
        Process::start(traced(&[&["worker", "--name", "a"], &by_token[..]].concat())),
        Process::start(traced(&[&["worker", "--name", "b"], &certified[..]].concat())),
    ];
    let watched =
        traced(&[&["study", "watch", "small"], &certified[..]].concat()).output().unwrap();
    assert!(watched.status.success(), "{}", stderr(&watched));
    logs.push(("watch", text(&watched)));
    let wrong = [&reach[..], &TRUST, &["--token-file", "wrong"]].concat();
    logs.push((
        "refused",
        text(&traced(&[&["study", "list"], &wrong[..]].concat()).output().unwrap()),
    ));
    for worker in workers {
        worker.signal(Signal::TERM);
        logs.push(("worker", worker.wait().1));
    }
    service.process.signal(Signal::TERM);
    logs.push(("coordinator", service.process.wait().1));
    let run = traced(&["run", "study.toml", "--out", "out"]).output().unwrap();
    assert!(run.status.success(), "{}", stderr(&run));
    logs.push(("run", text(&run)));
    let mut secrets = vec![
        TOKEN.to_owned(),
        "wrong-horse-battery-staple-4242".to_owned(),
        // Of the token that a run gives itself.
        "Bearer ".to_owned(),
        "PRIVATE KEY".to_owned(),
    ];
    secrets.extend(secret_lines(&bench, "certs/server.key"));
    secrets.extend(secret_lines(&bench, "certs/client.key"));
    for (name, log) in &logs {
        for secret in &secrets {
            let line = log.lines().find(|line| line.contains(secret.as_str()));
            assert!(line.is_none(), "{name}: {line:?}");
        }
    }
    let traced = logs.iter().filter(|(_, log)| log.contains("TRACE")).count();
    assert!(traced >= 6, "there is something to look into");
}
