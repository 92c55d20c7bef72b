//! The live view as a browser meets it: who gets in, what the pages are, what the stream of events says.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
#[path = "common/service.rs"]
mod service;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use common::{Bench, STUDY, stderr};
use rustix::process::Signal;
use serde_json::Value;
use service::{PATIENCE, Process, Service, until};

const TOKEN: &str = "correct-horse-battery-staple-4242";

/// An answer, its body put together.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    /// Reads to the end what follows `bytes`.
    fn read(stream: &mut TcpStream, mut bytes: Vec<u8>) -> Self {
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { dechunked(body) } else { body.to_owned() };
        Self { status, head: head.to_owned(), body }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Events by name, with their data.
    fn events(&self) -> Vec<(String, Value)> {
        let field = |event: &str, name: &str| {
            let line = event.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
            line.map(str::to_owned)
        };
        self.body
            .split("\n\n")
            .filter_map(|event| Some((field(event, "event:")?, field(event, "data:")?)))
            .map(|(name, data)| (name, serde_json::from_str(&data).unwrap()))
            .collect()
    }
}

/// A browser that knows how it is called and what it has been given.
#[derive(Clone)]
struct Browser {
    address: SocketAddr,
    cookie: Option<String>,
}

impl Browser {
    fn request(&self, method: &str, path: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let host = if more.contains("Host:") { "" } else { "Host: localhost\r\n" };
        let cookie =
            self.cookie.as_ref().map_or_else(String::new, |cookie| format!("Cookie: {cookie}\r\n"));
        let head =
            format!("{method} {path} HTTP/1.1\r\n{host}{cookie}{more}Connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, more: &str) -> Reply {
        Reply::read(&mut self.request(method, path, more), Vec::new())
    }

    fn get(&self, path: &str) -> Reply {
        self.ask("GET", path, "")
    }

    fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Comes in by a link.
    fn enter(link: &str) -> Self {
        let (address, path) = parts(link);
        let mut browser = Self { address, cookie: None };
        let reply = browser.get(&path);
        assert_eq!((reply.status, reply.header("location")), (303, Some("/")), "{}", reply.body);
        let cookie = reply.header("set-cookie").unwrap();
        for attribute in ["; HttpOnly", "; SameSite=Strict", "; Path=/"] {
            assert!(cookie.contains(attribute), "{cookie}");
        }
        let (pair, _) = cookie.split_once(';').unwrap();
        assert_eq!(pair.split_once('=').unwrap().1.len(), 64, "256 bits");
        browser.cookie = Some(pair.to_owned());
        browser
    }
}

fn dechunked(mut rest: &str) -> String {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").expect("the stream has an end");
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
}

/// The address and the path of a link.
fn parts(link: &str) -> (SocketAddr, String) {
    let rest = link.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let address = address.replace("localhost", "127.0.0.1").parse().unwrap();
    (address, format!("/{path}"))
}

/// The link that a process prints.
fn printed_link(process: &mut Process) -> String {
    let mut link = None;
    until("a link is printed", || {
        let said = process.said();
        link = said.lines().find_map(|line| {
            let rest = line.strip_prefix("regretta: live view at ")?;
            Some(rest.split(' ').next().unwrap().to_owned())
        });
        assert!(link.is_some() || process.is_running(), "{said}");
        link.is_some()
    });
    link.unwrap()
}

/// A study that takes long enough to be watched.
fn long_study() -> String {
    STUDY.replace("replicates = 300", "replicates = 20000")
}

#[test]
fn a_run_is_watched_to_its_end() {
    let bench = Bench::new();
    bench.write("study.toml", &long_study());
    let mut process =
        Process::start(bench.command(&["run", "study.toml", "--out", "out", "--open", "--json"]));
    let link = printed_link(&mut process);
    let (address, path) = parts(&link);
    assert!(address.ip().is_loopback() && path.starts_with("/enter/"));

    let stranger = Browser { address, cookie: None };
    for path in ["/", "/studies", "/studies.json", "/live.css", "/events/0", "/nothing"] {
        let reply = stranger.get(path);
        assert_eq!(reply.status, 403, "{path}");
        assert!(reply.body.contains("Open the link that regretta printed"), "{}", reply.body);
    }
    let browser = Browser::enter(&link);
    let again = stranger.get(&path);
    assert_eq!(again.status, 403);
    assert!(again.body.contains("a link works once"), "{}", again.body);
    assert_eq!(stranger.get("/enter/0").status, 403);

    let home = browser.get("/");
    let page = home.header("location").unwrap().to_owned();
    assert_eq!(home.status, 303);
    let study = page.strip_prefix("/study/").unwrap().to_owned();
    let shown = browser.get(&page);
    assert!(shown.status == 200 && shown.body.contains("<script src=\"/study.js\" defer>"));
    for (name, value) in [
        ("content-security-policy", "default-src 'none'; script-src 'self'; style-src 'self'"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("content-type", "text/html"),
    ] {
        assert!(shown.header(name).unwrap().starts_with(value), "{name}: {}", shown.head);
        let refused = stranger.get(&page);
        assert!(name == "content-type" || refused.header(name).is_some(), "{name}");
    }
    for host in ["Host: evil.example\r\n", "Host: evil.example:80\r\n", "Host: 10.0.0.1\r\n"] {
        assert_eq!(browser.ask("GET", &page, host).status, 403, "{host}");
    }
    assert_eq!(browser.ask("GET", &page, "Host: 127.0.0.1:1\r\n").status, 200);
    assert_eq!(browser.get("/study/0").status, 404);
    assert_eq!(browser.json("/studies.json")[0]["id"], study.as_str());

    // Another browser comes in by a link that the first one asked for.
    let other = browser.ask("POST", "/enter", "Content-Length: 0\r\n");
    let other =
        Browser::enter(other.body.trim().replace("localhost", &address.to_string()).as_str());
    assert_ne!(other.cookie, browser.cookie);

    let watching = browser.clone();
    let events = format!("/events/{study}");
    let watched = std::thread::spawn(move || watching.get(&events));
    let view = format!("/coverage/{study}/0");
    let mut coverage = Value::Null;
    until("coverage is drawn", || {
        let reply = other.get(&view);
        coverage = serde_json::from_str(&reply.body).unwrap_or_default();
        reply.status == 200
    });
    assert!(coverage["panels"][0]["svg"].as_str().unwrap().starts_with("<svg"), "{coverage}");

    let reply = watched.join().unwrap();
    let all = reply.events();
    let named = |wanted: &str| -> Vec<&Value> {
        all.iter().filter(|(name, _)| name == wanted).map(|(_, data)| data).collect()
    };
    let heads = named("head");
    let (first, last) = (heads[0], heads.last().unwrap());
    assert_eq!(first["name"], "small");
    assert!(first["done"].as_u64().unwrap() < last["done"].as_u64().unwrap());
    assert_eq!(last["done"], last["planned"]);
    assert_eq!((all.last().unwrap().0.as_str(), last["state"].as_str()), ("end", Some("done")));
    let end = &all.last().unwrap().1;
    assert_eq!(end["state"], "done");
    let report = std::fs::canonicalize(bench.path("out/report.html")).unwrap();
    let message = end["message"].as_str().unwrap();
    assert!(message.ends_with(report.to_str().unwrap()), "{message}");
    let cells = named("cells").last().unwrap()["cells"].as_array().unwrap().clone();
    assert!(cells.len() == 5 && cells.iter().all(|cell| cell["done"] == cell["planned"]));
    assert!(!named("workers").is_empty() && !named("rates").is_empty());
    // Every verdict has a number, those that the feed has dropped too.
    let fallen = named("feed").last().unwrap()["entries"].as_array().unwrap().clone();
    let decided = |word: &str| last["verdicts"][word].as_u64().unwrap();
    assert!(decided("refuted") > 0 && decided("confirmed") > 0, "{last}");
    assert_eq!(fallen.last().unwrap()["number"], decided("refuted") + decided("confirmed"));
    let (status, said) = process.wait();
    assert!(status.success(), "{said}");
}

#[test]
fn a_coordinator_shows_all_its_studies() {
    let bench = Bench::new();
    bench.write("token", TOKEN);
    bench.write("one.toml", &long_study());
    bench.write("two.toml", &long_study().replace("\"small\"", "\"other\""));
    let guarded = ["--token-file", "token", "--live", "127.0.0.1:0"];
    let mut service = Service::start(&bench, &guarded);
    let browser = Browser::enter(&printed_link(&mut service.process));

    let ask_link = |token: &str| {
        let stranger = Browser { cookie: None, ..browser.clone() };
        let headers = format!("Authorization: Bearer {token}\r\nContent-Length: 0\r\n");
        stranger.ask("POST", "/enter", &headers)
    };
    assert_eq!(ask_link("wrong-horse-battery-staple-4242").status, 403);
    let link = ask_link(TOKEN);
    assert_eq!(link.status, 200);
    let (_, path) = parts(&link.body.trim().replace("localhost", "127.0.0.1:1"));
    Browser::enter(&format!("http://{}{path}", browser.address));

    assert_eq!(browser.get("/").header("location"), Some("/studies"));
    assert_eq!(browser.json("/studies.json"), Value::Array(vec![]));
    for study in ["one.toml", "two.toml"] {
        let submitted = service.study(&bench, &["submit", study, "--token-file", "token"]);
        assert!(submitted.status.success(), "{}", stderr(&submitted));
    }
    let studies = browser.json("/studies.json");
    let studies = studies.as_array().unwrap();
    let other = studies.iter().find(|study| study["name"] == "other").unwrap();
    assert_eq!(studies.len(), 2);
    assert_eq!(browser.get("/").header("location"), Some("/studies"));
    assert_eq!(browser.get("/studies").status, 200);

    // Nobody computes: pages stay open until the coordinator stops, and there are only so many.
    let path = format!("/events/{}", other["id"].as_str().unwrap());
    let answered = |stream: &mut TcpStream| {
        let mut start = vec![0; 12];
        stream.read_exact(&mut start).unwrap();
        start
    };
    let mut watched = browser.request("GET", &path, "");
    let start = answered(&mut watched);
    assert_eq!(start, b"HTTP/1.1 200");
    let mut open: Vec<TcpStream> = vec![];
    until("all places are taken", || {
        let mut stream = browser.request("GET", &path, "");
        let full = answered(&mut stream) == b"HTTP/1.1 503";
        open.push(stream);
        full
    });
    assert_eq!(open.len(), 64, "one of the 64 places was taken before");
    drop(open);
    service.process.signal(Signal::TERM);
    let reply = Reply::read(&mut watched, start);
    let events = reply.events();
    assert_eq!(events[0].1["name"], "other");
    let end = events.last().unwrap();
    assert_eq!((end.0.as_str(), end.1["state"].as_str()), ("end", Some("stopped")));
    let (status, said) = service.process.wait();
    assert!(status.success(), "{said}");
}

#[test]
fn without_a_token_loopback_is_open_to_its_own_names() {
    let bench = Bench::new();
    let mut service = Service::start(&bench, &["--live", "127.0.0.1:0"]);
    let (address, path) = parts(&printed_link(&mut service.process));
    assert_eq!(path, "/");
    let browser = Browser { address, cookie: None };
    assert_eq!(browser.get("/studies").status, 200);
    assert_eq!(browser.ask("GET", "/studies", "Host: rebound.example\r\n").status, 403);
}

#[test]
fn addresses_beyond_this_machine_are_refused() {
    let bench = Bench::new();
    bench.write("study.toml", STUDY);
    bench.write("token", TOKEN);
    let coordinator = ["coordinator", "--dir", "service", "--listen", "127.0.0.1:0"];
    let far = ["--live", "0.0.0.0:0"];
    for arguments in [
        [&["run", "study.toml", "--out", "out"][..], &far].concat(),
        [&coordinator[..], &far].concat(),
        [&coordinator[..], &far, &["--token-file", "token"]].concat(),
        [&coordinator[..], &far, &["--insecure"]].concat(),
    ] {
        let output = bench.output(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("ssh -L"), "{}", stderr(&output));
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = bench.output(&["run", "study.toml", "--out", "out", "--live", &address]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("choose another port"), "{}", stderr(&output));
}
