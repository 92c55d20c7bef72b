//! Real servers for tests, each in a temporary folder, found on this machine or skipped. The tests of the
//! command line use this file too.
//!
//! A server ends with the process that started it: a shell waits for the end of its input, which the
//! system closes whatever happens to the test, and then stops the server by its id.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
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
    fn start(signal: &str, command: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("srv").tempdir_in("/tmp").unwrap().keep();
        let script = format!(
            "{command} >\"$0/log\" 2>&1 & server=$!; read _; \
             kill -{signal} $server; wait $server; rm -rf \"$0\""
        );
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
        let server = Server::start(
            "INT",
            &format!(
                "{chown} && {user} {programs}/initdb -D \"$0/data\" -U postgres -A trust -E UTF8 >/dev/null \
             && exec {user} {programs}/postgres -D \"$0/data\" -k \"$0\" -c listen_addresses='' \
             -c max_connections=200"
            ),
        );
        server.wait(|| psql(&server.dir, "postgres", "SELECT 1"));
        Some(server)
    };
    SERVER.get_or_init(start).as_ref()
}

/// Runs a statement, and says whether that succeeded.
fn psql(socket: &Path, database: &str, sql: &str) -> bool {
    let done = Command::new("psql")
        .args(["-q", "-U", "postgres", "-d", database, "-c", sql, "-h"])
        .arg(socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

/// The address of a new, empty database; `None` where PostgreSQL is not installed.
pub(crate) fn database() -> Option<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = postgres()?;
    let name = format!("t{}", COUNT.fetch_add(1, Ordering::Relaxed));
    assert!(psql(&server.dir, "postgres", &format!("CREATE DATABASE {name}")));
    Some(format!("postgres://postgres@localhost/{name}?host={}", server.dir.display()))
}

/// Runs a statement on the database at an address.
pub(crate) fn run(address: &str, sql: &str) {
    let name = address.rsplit('/').find_map(|part| part.split_once('?')).map(|(name, _)| name);
    let server = postgres().expect("it made the database");
    assert!(psql(&server.dir, name.expect("an address of a test"), sql), "{sql}");
}

/// Empties a database.
pub(crate) fn clear(address: &str) {
    run(address, "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
}

/// Breaks all connections to a database.
pub(crate) fn disconnect(address: &str) {
    run(
        address,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
}

/// A server that speaks S3, which all tests of this process share, and its port.
fn s3() -> Option<&'static (Server, u16)> {
    static SERVER: OnceLock<Option<(Server, u16)>> = OnceLock::new();
    let start = || {
        let import = Command::new("python3").args(["-c", "import moto.server, flask"]).output();
        if !import.is_ok_and(|import| import.status.success()) {
            missing("moto is not installed (pip install 'moto[server]')");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let command = format!("exec python3 -m moto.server -H 127.0.0.1 -p {port}");
        let server = Server::start("TERM", &command);
        server.wait(|| put(port, "tests", b""));
        Some((server, port))
    };
    SERVER.get_or_init(start).as_ref()
}

/// Makes a bucket, or an object in one.
fn put(port: u16, path: &str, bytes: &[u8]) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let head = format!(
        "PUT /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: AWS4-HMAC-SHA256 \
         Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        bytes.len()
    );
    let mut answer = String::new();
    let request = [head.as_bytes(), bytes].concat();
    let asked = stream.write_all(&request).and_then(|()| stream.read_to_string(&mut answer));
    asked.is_ok() && answer.starts_with("HTTP/1.1 200")
}

/// Puts an object without any of our code.
pub(crate) fn put_object(address: &str, bytes: &[u8]) {
    let (_, port) = s3().expect("it has the bucket");
    assert!(put(*port, address.strip_prefix("s3://").expect("an address of a test"), bytes));
}

/// The requests so far that concern what is below an address: method and path of each.
pub(crate) fn requests(address: &str) -> Vec<String> {
    let (server, _) = s3().expect("it has the bucket");
    let log = std::fs::read_to_string(server.dir.join("log")).expect("a server writes a log");
    let below = address.strip_prefix("s3:/").expect("an address of a test");
    let request = |line: &str| {
        let mut words = line.split_once('"')?.1.split(' ');
        let (method, path) = (words.next()?, words.next()?.split('?').next()?);
        path.starts_with(below).then(|| format!("{method} {path}"))
    };
    log.lines().filter_map(request).collect()
}

/// An address with an unused prefix, and the settings that go with it; `None` where no such server
/// is installed.
pub(crate) fn bucket() -> Option<(String, Vec<(&'static str, String)>)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (_, port) = s3()?;
    let prefix = format!("p{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let settings = vec![
        ("aws_endpoint_url", format!("http://127.0.0.1:{port}")),
        ("aws_allow_http", "true".to_owned()),
        ("aws_access_key_id", "test".to_owned()),
        ("aws_secret_access_key", "test".to_owned()),
    ];
    Some((format!("s3://tests/{prefix}"), settings))
}
