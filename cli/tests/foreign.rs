//! Datasets of strangers: nothing that they name is written anywhere but to where the user said.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, Mutex};

use common::{Bench, STUDY, resealed, stderr};

/// Names that lead elsewhere, or that a shell would run at the next login.
const NAMES: [&str; 6] = [
    "../../home/.profile",
    "/tmp/regretta-foreign",
    ".profile",
    "records/../../x",
    "report.html",
    "..",
];

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A server of objects, and its address. It lists nothing.
fn serve(objects: Objects) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let name = path.split('?').next().unwrap_or_default().trim_start_matches("/bucket/");
            let found = objects.lock().unwrap().get(name).cloned();
            let (status, body) = match found {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>".to_vec()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"1\"\r\nConnection: close\r\n\
                 Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
                body.len()
            );
            _ = stream.write_all(head.as_bytes());
            _ = stream.write_all(&body);
        }
    });
    address
}

struct Stranger {
    bench: Bench,
    objects: Objects,
    endpoint: String,
}

impl Stranger {
    /// A good dataset under `good/`, and a victim who works in `victim` and lives in `home`.
    fn new() -> Self {
        let bench = Bench::new();
        bench.write("study.toml", &STUDY.replace("replicates = 300", "replicates = 4"));
        bench.run("study.toml", "out", &["--quiet"]);
        for folder in ["victim", "home"] {
            fs::create_dir(bench.path(folder)).unwrap();
        }
        let objects = Objects::default();
        let endpoint = serve(Arc::clone(&objects));
        let stranger = Self { bench, objects, endpoint };
        let files = ["counts.parquet", "domain.parquet", "priors.json", "codebook.csv"];
        let more = ["records/part-00000.parquet", "study.toml", "manifest.json"];
        for name in files.into_iter().chain(more) {
            stranger.put(name, &fs::read(stranger.bench.path("out").join(name)).unwrap());
        }
        stranger
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        self.objects.lock().unwrap().insert(format!("set/{name}"), bytes.to_vec());
    }

    fn manifest(&self) -> String {
        fs::read_to_string(self.bench.path("out/manifest.json")).unwrap()
    }

    fn analyze(&self) -> Output {
        let mut command = self.bench.command(&["analyze", "s3://bucket/set", "--only", "verdicts"]);
        command.current_dir(self.bench.path("victim"));
        command.env("HOME", self.bench.path("home")).env_remove("XDG_CACHE_HOME");
        command.env("AWS_ENDPOINT_URL", &self.endpoint).env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", "a").env("AWS_SECRET_ACCESS_KEY", "b");
        command.env("AWS_REGION", "us-east-1");
        command.output().unwrap()
    }

    /// Analyses what is there; it is refused, and nothing is written but to the cache.
    fn refused(&self, name: &str, words: &str) {
        let output = self.analyze();
        let found = names(self.bench.dir.path());
        let inside = |path: &&PathBuf| {
            !["out", "study.toml", "home/.cache"].iter().any(|known| path.starts_with(known))
        };
        let foreign: Vec<&PathBuf> = found.iter().filter(inside).collect();
        assert!(foreign.is_empty(), "{name}: {foreign:?}");
        assert!(!Path::new("/tmp/regretta-foreign").exists());
        let said = stderr(&output);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
    }
}

/// Every file below a folder.
fn names(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    files
}

#[test]
fn names_from_a_store_lead_nowhere() {
    let stranger = Stranger::new();
    let good = stranger.manifest();
    for name in NAMES {
        let named = good.replacen("\"name\": \"small\"", &format!("\"name\": \"{name}\""), 1);
        assert_ne!(named, good);
        stranger.put("manifest.json", resealed(&named).as_bytes());
        if name != "report.html" {
            stranger.refused(name, "not the name of a study");
        }

        let entry = format!("\"name\": \"{name}\",\n      \"bytes\"");
        let listed = good.replacen("\"name\": \"codebook.csv\",\n      \"bytes\"", &entry, 1);
        assert_ne!(listed, good);
        stranger.put("manifest.json", resealed(&listed).as_bytes());
        stranger.put(name, b"echo owned\n");
        stranger.refused(name, "not the name of a file of a dataset");

        // An index as coordinators put it, whose version is that of what it says.
        let digest = blake3::hash(b"echo owned\n");
        let line = |folder: &str| format!("{digest} 11 {folder}{name}\n");
        let version = blake3::hash(line("").as_bytes()).to_hex()[..16].to_owned();
        stranger.put("current", line(&format!("{version}/")).as_bytes());
        stranger.put(&format!("{version}/{name}"), b"echo owned\n");
        stranger.refused(name, "no index of a dataset");
        stranger.objects.lock().unwrap().remove("set/current");
    }
    // An altered manifest is found out before anything is downloaded.
    stranger.put("manifest.json", good.replacen("\"seed\": 7", "\"seed\": 8", 1).as_bytes());
    stranger.refused("seed", "was changed since it was sealed");

    stranger.put("manifest.json", good.as_bytes());
    let output = stranger.analyze();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stranger.bench.path("victim/results/small/verdicts.json").exists());
}

#[test]
fn names_in_a_folder_lead_nowhere() {
    let stranger = Stranger::new();
    let bench = &stranger.bench;
    let good = stranger.manifest();
    for name in NAMES {
        let entry = format!("\"name\": \"{name}\",\n      \"bytes\"");
        let listed = good.replacen("\"name\": \"codebook.csv\",\n      \"bytes\"", &entry, 1);
        fs::write(bench.path("out/manifest.json"), resealed(&listed)).unwrap();
        for arguments in
            [&["verify", "out"][..], &["analyze", "out"], &["analyze", "out", "--out", "victim"]]
        {
            let output = bench.output(arguments);
            assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
            assert!(stderr(&output).contains("not the name of a file"), "{}", stderr(&output));
        }
    }
    assert!(names(&bench.path("victim")).iter().all(|name| name == Path::new(".lock")));
}

/// Where an analysis writes, links that came with the dataset are replaced and not written through.
#[test]
fn planted_links_are_not_written_through() {
    let stranger = Stranger::new();
    let bench = &stranger.bench;
    let victim = bench.write("home/.profile", "precious");
    for name in ["verdicts.json", "report.html", "recheck.py"] {
        _ = fs::remove_file(bench.path("out").join(name));
        std::os::unix::fs::symlink(&victim, bench.path("out").join(name)).unwrap();
        std::os::unix::fs::symlink(&victim, bench.path("out").join(format!("{name}.tmp"))).unwrap();
    }
    let output = bench.output(&["analyze", "out", "--quiet"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}
