//! A coordinator and workers as processes of their own.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{Bench, stderr};

/// The longest that anything here may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds, and fails where it does not come to that.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A process whose stderr is collected; it is killed when dropped.
pub(crate) struct Process {
    child: Child,
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
    _stdout: Option<ChildStdout>,
}

impl Process {
    pub(crate) fn start(mut command: std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (said, lines) = (Arc::new(Mutex::new(String::new())), child.stderr.take().unwrap());
        let heard = Arc::clone(&said);
        let listener = std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                let mut heard = heard.lock().unwrap();
                heard.push_str(&line);
                heard.push('\n');
            }
        });
        let stdout = child.stdout.take();
        Self { child, said, listener: Some(listener), _stdout: stdout }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// All of stderr so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        signal_to(self.child.id(), signal);
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits for the end, and returns all of stderr.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let child = &mut self.child;
        until("the process ends", || child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        self.listener.take().unwrap().join().unwrap();
        (status, self.said())
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended cannot be killed, and need not be.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Sends a signal to a process that the test started.
pub(crate) fn signal_to(id: u32, signal: Signal) {
    kill_process(Pid::from_raw(id.cast_signed()).unwrap(), signal).unwrap();
}

/// A coordinator, and how to reach it.
pub(crate) struct Service {
    pub(crate) process: Process,
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Option<SocketAddr>,
}

impl Service {
    /// Starts a coordinator on a port that the system picks, in the folder `service`.
    pub(crate) fn start(bench: &Bench, more: &[&str]) -> Self {
        Self::listen(bench, "127.0.0.1:0", more)
    }

    pub(crate) fn listen(bench: &Bench, listen: &str, more: &[&str]) -> Self {
        let arguments = [
            &["coordinator", "--dir", "service", "--listen", listen, "--metrics", "127.0.0.1:0"],
            more,
        ];
        Self::of(bench.command(&arguments.concat()))
    }

    pub(crate) fn of(command: std::process::Command) -> Self {
        Self::serving(Process::start(command))
    }

    /// Waits until a coordinator serves.
    pub(crate) fn serving(mut process: Process) -> Self {
        let mut found = None;
        until("the coordinator listens", || {
            let said = process.said();
            let after = |mark: &str| {
                let line = said.lines().find(|line| line.contains(mark) && said.ends_with('\n'))?;
                Some(line.split_once(mark)?.1.trim().to_owned())
            };
            let place = after("coordinator at ").zip(after("metrics at http://"));
            assert!(place.is_some() || process.is_running(), "the coordinator ended: {said}");
            found = place;
            found.is_some()
        });
        let (url, metrics) = found.unwrap();
        let address = url.split_once("://").unwrap().1.parse().unwrap();
        let metrics = metrics.strip_suffix("/metrics").map(|address| address.parse().unwrap());
        Self { process, url, address, metrics }
    }

    pub(crate) fn worker(&self, bench: &Bench, name: &str, more: &[&str]) -> Process {
        let arguments =
            [&["worker", "--coordinator", &self.url, "--name", name, "--slots", "1"], more];
        Process::start(bench.command(&arguments.concat()))
    }

    /// `regretta study ...` at this coordinator.
    pub(crate) fn study(&self, bench: &Bench, arguments: &[&str]) -> Output {
        let arguments = [&["study"], arguments, &["--coordinator", &self.url]].concat();
        bench.output(&arguments)
    }

    /// The same, as JSON, of a command that must succeed.
    pub(crate) fn ask(&self, bench: &Bench, arguments: &[&str]) -> Value {
        let output = self.study(bench, &[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn submit(&self, bench: &Bench, study: &str) -> String {
        self.ask(bench, &["submit", study])["study"].as_str().unwrap().to_owned()
    }

    /// Waits until a study is done, fetches it, and returns its digest.
    pub(crate) fn result(&self, bench: &Bench, study: &str, out: &str) -> String {
        let status = self.ask(bench, &["watch", study]);
        assert_eq!(status["state"], "done", "{status}");
        let output = self.study(bench, &["fetch", study, "--out", out]);
        assert!(output.status.success(), "{}", stderr(&output));
        digest(&bench.path(out))
    }

    /// Waits until some trials of a study are durable.
    pub(crate) fn wait_for_trials(&self, bench: &Bench, study: &str, least: u64) {
        until("trials are durable", || {
            self.ask(bench, &["status", study])["trials_done"].as_u64().unwrap() >= least
        });
    }

    /// A number of the metrics page.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let page = self.metrics_page();
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {page}")).parse().unwrap()
    }

    pub(crate) fn metrics_page(&self) -> String {
        let mut stream = TcpStream::connect(self.metrics.unwrap()).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        page
    }
}

/// The digest in a dataset's manifest.
pub(crate) fn digest(folder: &Path) -> String {
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    manifest["digest"].as_str().unwrap().to_owned()
}
