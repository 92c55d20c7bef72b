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
use std::time::Duration;

use common::{Bench, STUDY, resealed, stderr};
use serde_json::{Value, json};
use study::family::Claims;

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
            let mut objects = objects.lock().unwrap();
            let found = objects.get(name).cloned();
            // Another dataset is put in its place while one is read.
            if found.is_none()
                && let Some(next) = objects.remove("next")
            {
                objects.insert("set/current".to_owned(), next);
            }
            drop(objects);
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
        // Versions before put files of an analysis, too. They are not read.
        let is_analysis = name == "report.html";
        let words = if is_analysis { "holds no dataset" } else { "no index of a dataset" };
        stranger.refused(name, words);
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

/// A command on a dataset that ends by itself.
fn ended(bench: &Bench, arguments: &[&str]) -> Output {
    let mut child = bench.spawn(arguments);
    for _ in 0..600 {
        if child.try_wait().unwrap().is_some() {
            return child.wait_with_output().unwrap();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    panic!("{arguments:?} does not end");
}

/// A manifest repeats the claims of earlier families, which an analysis evaluates again.
#[test]
fn earlier_families_do_no_harm() {
    let stranger = Stranger::new();
    let bench = &stranger.bench;
    let good: Value = serde_json::from_str(&stranger.manifest()).unwrap();
    let cell = good["cells"][0]["cell"].as_str().unwrap();
    let claims = json!({
        "test": ["lemma1.*", "mine"],
        "own": [{ "id": "mine", "holds": "y <= 1", "budget": "delta", "quantifier": "each t" }],
        "T": [1, 5],
        "delta": [0.1],
    });
    let family = json!({
        "rows": 8, "alpha": 0.05, "evidence": 320.0, "n_opt": 2000.0,
        "claims": claims, "replicates": { cell: 2 },
    });
    let analyzed = |place: &str, value: Value| {
        let mut manifest = good.clone();
        let mut family = family.clone();
        if !place.is_empty() {
            *family.pointer_mut(place).unwrap() = value;
        }
        let claims: Claims = serde_json::from_value(family["claims"].clone()).unwrap();
        family["digest"] = claims.digest().to_string().into();
        manifest["earlier_families"] = json!([family]);
        let text = serde_json::to_string_pretty(&manifest).unwrap() + "\n";
        fs::write(bench.path("out/manifest.json"), resealed(&text)).unwrap();
        ended(bench, &["analyze", "out", "--quiet"])
    };
    let output = analyzed("", Value::Null);
    assert!(output.status.success(), "{}", stderr(&output));
    for (place, value) in [
        ("/claims/own/0/holds", format!("y <= 1{}", " AND y <= 1".repeat(20_000)).into()),
        ("/claims/own/0/budget", "1+".repeat(20_000).into()),
        ("/claims/T", json!([u32::MAX])),
        ("/claims/delta", json!([])),
        ("/rows", json!(1_000_000_000_000_000_u64)),
        ("/alpha", json!(0.5)),
        ("/alpha", json!(0)),
        ("/n_opt", json!(-1)),
    ] {
        let output = analyzed(place, value);
        assert_eq!(output.status.code(), Some(2), "{place}: {}", stderr(&output));
        let words = "its earlier family 1: ";
        assert!(stderr(&output).contains(words), "{place}: {}", stderr(&output));
    }
}

#[test]
fn pipes_in_the_place_of_files_are_not_waited_for() {
    let stranger = Stranger::new();
    let bench = &stranger.bench;
    let all = ["manifest.json", "study.toml", "priors.json", "counts.parquet", "codebook.csv"];
    for name in all.into_iter().chain(["records/part-00000.parquet"]) {
        let (path, kept) = (bench.path("out").join(name), bench.path("kept"));
        fs::rename(&path, &kept).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        for arguments in [
            &["verify", "out"][..],
            &["verify", "out", "--recompute", "1"],
            &["analyze", "out", "--quiet"],
            &["analyze", "out", "--quiet", "--only", "verdicts"],
        ] {
            let output = ended(bench, arguments);
            // The codebook and the text of the study are not read by all.
            if !output.status.success() {
                assert!(matches!(output.status.code(), Some(2 | 3)), "{}", stderr(&output));
            }
            let is_read = !["study.toml", "codebook.csv", "counts.parquet"].contains(&name);
            assert!(!is_read || !output.status.success(), "{name} {arguments:?}");
        }
        fs::remove_file(&path).unwrap();
        fs::rename(&kept, &path).unwrap();
    }
}

/// A version of a dataset is deleted once two others were put in its place; whoever reads it then reads again.
#[test]
fn a_reader_that_is_overtaken_reads_the_new_dataset() {
    let stranger = Stranger::new();
    let bench = &stranger.bench;
    let mut lines = String::new();
    let mut files = Vec::new();
    for name in names(&bench.path("out")) {
        let name = name.to_str().unwrap().to_owned();
        if study::folder::is_file(&name) {
            let bytes = fs::read(bench.path("out").join(&name)).unwrap();
            let line = format!("{} {} VERSION/{name}\n", blake3::hash(&bytes), bytes.len());
            lines.push_str(&line);
            files.push((name, bytes));
        }
    }
    let index = |lines: &str| {
        let plain = lines.replace("VERSION/", "");
        let version = blake3::hash(plain.as_bytes()).to_hex()[..16].to_owned();
        (lines.replace("VERSION", &version), version)
    };
    // What was there before, of which no object is left.
    let (gone, _) = index(&lines.replacen("manifest.json", "records/part-00001.parquet", 1));
    let (now, version) = index(&lines);
    for (name, bytes) in &files {
        stranger.put(&format!("{version}/{name}"), bytes);
    }
    stranger.put("current", gone.as_bytes());
    let output = stranger.analyze();
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    stranger.objects.lock().unwrap().insert("next".to_owned(), now.into_bytes());
    let output = stranger.analyze();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(bench.path("victim/results/small/verdicts.json").exists());
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
