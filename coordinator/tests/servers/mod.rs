//! Real servers for tests, each in a temporary folder, found on this machine or skipped.
//!
//! A server ends with the process that started it: a shell waits for the end of its input, which the
//! system closes whatever happens to the test, and then stops the server by its id.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Says that a test is skipped, or fails where servers are required.
fn missing(what: &str) {
    assert!(
        std::env::var_os("REGRETTA_REQUIRE_SERVERS").is_none(),
        "REGRETTA_REQUIRE_SERVERS is set, and {what}"
    );
    eprintln!("SKIPPED: {what}");
}

/// A server that ends with this process.
struct Server {
    _guard: Child,
    dir: PathBuf,
}

impl Server {
    /// Runs a command line in a new folder, which is `$0` in it.
    fn start(command: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("srv").tempdir_in("/tmp").unwrap().keep();
        let script = format!("{command} >\"$0/log\" 2>&1 & server=$!; read _; kill -INT $server; wait $server; rm -rf \"$0\"");
        let guard = Command::new("sh")
            .args(["-c", &script])
            .arg(&dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Self { _guard: guard, dir }
    }

    /// Waits until it answers.
    fn wait(&self, mut answers: impl FnMut() -> bool) {
        let begin = Instant::now();
        while !answers() {
            if begin.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                panic!("the server does not answer: {log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// The newest folder of PostgreSQL's programs.
fn postgres_programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let mut folders: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.into_iter().rev().find(|folder| folder.join("initdb").exists())
}

/// PostgreSQL refuses to run as root.
fn unprivileged() -> &'static str {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    if root { "setpriv --reuid=postgres --regid=postgres --clear-groups" } else { "" }
}

/// A cluster that all tests of this process share.
fn postgres() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || {
        let Some(programs) = postgres_programs() else {
            missing("PostgreSQL is not installed (apt-get install postgresql)");
            return None;
        };
        let (programs, user) = (programs.display(), unprivileged());
        let chown = if user.is_empty() { "true" } else { "chown postgres \"$0\"" };
        let server = Server::start(&format!(
            "{chown} && {user} {programs}/initdb -D \"$0/data\" -U postgres -A trust -E UTF8 >/dev/null \
             && exec {user} {programs}/postgres -D \"$0/data\" -k \"$0\" -c listen_addresses='' \
             -c max_connections=200"
        ));
        server.wait(|| psql(&server.dir, "SELECT 1"));
        Some(server)
    };
    SERVER.get_or_init(start).as_ref()
}

/// Runs a statement, and says whether that succeeded.
fn psql(socket: &Path, sql: &str) -> bool {
    let done = Command::new("psql")
        .args(["-q", "-U", "postgres", "-d", "postgres", "-c", sql, "-h"])
        .arg(socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

/// The address of a new, empty database; `None` where PostgreSQL is not installed.
pub fn database() -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = postgres()?;
    let name = format!("t{}", COUNT.fetch_add(1, Ordering::Relaxed));
    assert!(psql(&server.dir, &format!("CREATE DATABASE {name}")));
    Some(format!("postgres://postgres@localhost/{name}?host={}", server.dir.display()))
}
