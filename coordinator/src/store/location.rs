//! Where a store is kept beside its folder: which database has the ledger, and which bucket the
//! segments.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

/// Where ledger and segments are kept. By default both are in the folder.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// The ledger.
    pub ledger: LedgerAt,
    /// The segments, and the files that studies name.
    pub records: RecordsAt,
}

/// Where the ledger is.
#[derive(Clone, Debug, Default)]
pub enum LedgerAt {
    /// SQLite in the folder: one coordinator, on this machine.
    #[default]
    Folder,
    /// PostgreSQL: one coordinator leads, others stand by.
    Postgres(Postgres),
}

/// Where acknowledged records are until they are sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RecordsAt {
    /// In the folder.
    #[default]
    Folder,
    /// In an object store that speaks S3; the folder is a cache then.
    S3(Bucket),
}

/// An address that is none. Its text is not repeated, because it may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// Not a database that is known.
    #[error(
        "the ledger's address does not begin with postgres://: give postgres://USER@HOST/DATABASE \
         with the password in PGPASSWORD or ~/.pgpass, or leave it out for SQLite in the folder"
    )]
    Scheme,
    /// Not an address.
    #[error("the ledger's address cannot be read: {0}; it is postgres://USER@HOST:PORT/DATABASE")]
    Postgres(String),
    /// A character of a password that ends the address's part with user and password.
    #[error(
        "the ledger's address has an @ behind the first /, ? or #: write these four characters percent-encoded where \
         they are in a password or a name (%40 for @, %2F for /, %3F for ?, %23 for #), or give the password in \
         PGPASSWORD or ~/.pgpass"
    )]
    Encoding,
    /// A parameter that nobody knows. Neither its name nor its value is repeated: they may be a piece of a password.
    #[error(
        "parameter {0} behind the ? of the ledger's address is not known; these are: host, hostaddr, port, dbname, \
         user, password, sslmode, sslrootcert, sslcert, sslkey, application_name, options (a ? in a password is \
         written %3F)"
    )]
    Parameter(usize),
    /// Not a way to encrypt.
    #[error(
        "the ledger's address has an sslmode that is not known; these are: disable, allow, prefer, require, \
         verify-ca, verify-full"
    )]
    SslMode,
    /// No database.
    #[error("the ledger's address names no database: postgres://USER@HOST/DATABASE")]
    NoDatabase,
    /// Not a bucket.
    #[error("{text:?} is no place in an object store: {problem}; give s3://BUCKET/PREFIX")]
    Bucket {
        /// What was given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Parameters of a PostgreSQL address.
const PARAMETERS: [&str; 12] = [
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "application_name",
    "options",
];

/// Values of `sslmode`.
const SSL_MODES: [&str; 6] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

/// A PostgreSQL database. Shows without its password.
#[derive(Clone)]
pub struct Postgres(Box<PgConnectOptions>);

impl Postgres {
    /// How to connect.
    pub(super) fn options(&self) -> PgConnectOptions {
        (*self.0).clone()
    }

    /// What errors call it.
    pub(super) fn name(&self) -> PathBuf {
        self.to_string().into()
    }
}

impl fmt::Display for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(options) = self;
        let database = options.get_database().unwrap_or_default();
        match options.get_socket() {
            Some(socket) => {
                write!(f, "postgres://{}@{}/{database}", options.get_username(), socket.display())
            }
            None => write!(
                f,
                "postgres://{}@{}:{}/{database}",
                options.get_username(),
                options.get_host(),
                options.get_port()
            ),
        }
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An address without its scheme: user, password and host, and what is behind them.
fn split(address: &str) -> (&str, &str) {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()))
}

/// Whether the address of a ledger has a password in it, or what may be the rest of one.
pub fn has_password(address: &str) -> bool {
    let (authority, rest) = split(address);
    let user = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let in_user = user.is_some_and(|(_, password)| !password.is_empty());
    let query = rest.split_once('?').map_or("", |(_, query)| query);
    let in_query = query.split('&').any(|pair| pair.starts_with("password="));
    in_user || in_query || rest.contains('@')
}

impl FromStr for LedgerAt {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        let text = text.trim();
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(LocationError::Scheme);
        }
        let (_, rest) = split(text);
        if rest.contains('@') {
            return Err(LocationError::Encoding);
        }
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        for (at, pair) in query.split('&').enumerate() {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !key.is_empty() && !PARAMETERS.contains(&key) {
                return Err(LocationError::Parameter(at + 1));
            }
            if key == "sslmode" && !SSL_MODES.contains(&value.to_ascii_lowercase().as_str()) {
                return Err(LocationError::SslMode);
            }
        }
        let options: PgConnectOptions = text.parse().map_err(|error: sqlx::Error| match error {
            sqlx::Error::Configuration(why) => LocationError::Postgres(why.to_string()),
            other => LocationError::Postgres(other.to_string()),
        })?;
        if options.get_database().is_none() {
            return Err(LocationError::NoDatabase);
        }
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("regretta"),
        };
        Ok(Self::Postgres(Postgres(Box::new(options))))
    }
}

/// A place in an object store. Endpoint, region and credentials are in the AWS_* variables.
#[derive(Clone, PartialEq, Eq)]
pub struct Bucket {
    /// The bucket.
    pub bucket: String,
    /// What the names of all objects begin with; may be empty.
    pub prefix: String,
    settings: Vec<(String, String)>,
}

impl Bucket {
    /// A setting in place of a variable, such as `aws_endpoint` or `aws_secret_access_key`.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn settings(&self) -> &[(String, String)] {
        &self.settings
    }

    /// A place below this one.
    #[must_use]
    pub fn join(&self, below: &str) -> Self {
        let parts = [self.prefix.as_str(), below].into_iter().filter(|part| !part.is_empty());
        Self { prefix: parts.collect::<Vec<_>>().join("/"), ..self.clone() }
    }

    /// What errors call it.
    pub(super) fn name(&self) -> PathBuf {
        self.to_string().into()
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl FromStr for Bucket {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        let wrong = |problem| LocationError::Bucket { text: text.to_owned(), problem };
        let place = text.trim().strip_prefix("s3://");
        let place = place.ok_or_else(|| wrong("it does not begin with s3://"))?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(allowed) {
            return Err(wrong(
                "a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens",
            ));
        }
        let prefix = prefix.trim_end_matches('/');
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-=+".contains(c);
        let part = |part: &str| !["", ".", ".."].contains(&part) && part.chars().all(plain);
        if !prefix.is_empty() && !prefix.split('/').all(part) {
            return Err(wrong(
                "a prefix has parts of letters, digits and . _ - = + between single slashes",
            ));
        }
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        Ok(Self { bucket, prefix, settings: Vec::new() })
    }
}

impl FromStr for RecordsAt {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        text.parse().map(Self::S3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_shows_without_its_password() {
        for (text, shown) in [
            ("postgres://me:geheim@db.example.org/led", "postgres://me@db.example.org:5432/led"),
            ("postgresql://me:geheim@h:6000/led?sslmode=require", "postgres://me@h:6000/led"),
            ("postgres://me@h/led?password=geheim", "postgres://me@h:5432/led"),
            ("postgres://me:geheim@h/led?host=/run/pg", "postgres://me@/run/pg/led"),
        ] {
            let at: LedgerAt = text.parse().unwrap();
            assert!(!format!("{at:?}").contains("geheim"), "{at:?}");
            let LedgerAt::Postgres(at) = at else { panic!("{at:?}") };
            assert_eq!(at.to_string(), shown);
        }
    }

    #[test]
    fn passwords_are_found_wherever_they_are() {
        for text in [
            "postgres://me:geheim@db.example.org/led",
            "postgresql://me:ge@im@h/led",
            "postgres://me@h/led?sslmode=require&password=geheim",
            "me:geheim@h",
            "postgres://me:ge?heim@h/led",
            "postgres://me:ge#heim@h/led",
            "postgres://me:ge/heim@h/led",
            "postgres://me:ge?im&x=he@h/led",
        ] {
            assert!(has_password(text), "{text}");
        }
        for text in [
            "postgres://h:5432/led",
            "postgres://me@h:5432/led?sslmode=require",
            "postgres://me:@h/led",
            "postgres://h:5432/led?dbname=l%40d",
            "postgres://me@h:5432/led#x",
        ] {
            assert!(!has_password(text), "{text}");
        }
    }

    #[test]
    fn what_is_no_database_is_refused_without_its_text() {
        for (text, expected) in [
            ("mysql://me:geheim@h/led", "does not begin with postgres://"),
            ("geheim", "does not begin with postgres://"),
            ("postgres://me:geheim@h:99999/led", "port"),
            ("postgres://me:geheim@h/", "names no database"),
            ("postgres://me@h/led?pasword=geheim", "parameter 1 behind"),
            ("postgres://me@h/led?port=1&geheim", "parameter 2 behind"),
            ("postgres://me:geheim@h/led?sslmode=maybe", "an sslmode that is not known"),
            ("postgres://me@h/led?sslmode=geheim", "an sslmode that is not known"),
            // A password that is not percent-encoded, on either side of the character that ends it.
            ("postgres://me:geheim?geheim@h/led", "%3F for ?"),
            ("postgres://me:geheim#geheim@h/led", "%23 for #"),
            ("postgres://me:geheim/geheim@h/led", "%2F for /"),
            ("postgres://me:4242/geheim@h/led", "%2F for /"),
            ("postgres://me:geheim?geheim&h/led", "parameter 1 behind"),
        ] {
            let error = text.parse::<LedgerAt>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("geheim"), "{error}");
        }
    }

    #[test]
    fn buckets() {
        for (text, bucket, prefix) in [
            ("s3://data", "data", ""),
            ("s3://data/", "data", ""),
            ("s3://my-data.x/a/b-1/", "my-data.x", "a/b-1"),
        ] {
            let at: Bucket = text.parse().unwrap();
            assert_eq!((at.bucket.as_str(), at.prefix.as_str()), (bucket, prefix));
        }
        assert_eq!("s3://data/a/".parse::<Bucket>().unwrap().to_string(), "s3://data/a");
        for text in ["data", "s3://", "s3://x", "s3://Data/a", "s3://data//a", "s3://data/../a"] {
            let error = text.parse::<RecordsAt>().unwrap_err().to_string();
            assert!(error.contains("s3://BUCKET/PREFIX"), "{error}");
        }
    }
}
