//! How a command reaches a coordinator: address, token, certificates.

use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use coordinator::server::Token;
use tokio::time::timeout;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint, Uri};
use worker::client::{ClientTls, Secret};

use crate::exit::BadInput;
use crate::live::names_loopback;

/// Where a token may stand, so that it need not stand in a file or on the command line.
const VARIABLE: &str = "REGRETTA_TOKEN";

/// Arguments of commands that call a coordinator.
#[derive(Args, Clone, Debug)]
pub(crate) struct Connection {
    /// The coordinator's address; repeated, or with commas, for coordinators that stand in for each other
    #[arg(
        long,
        value_name = "URL",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:7070"
    )]
    pub(crate) coordinator: Vec<String>,
    /// A file in which the coordinator publishes its address (its --publish); waited for where it is not there yet
    #[arg(long, value_name = "FILE", conflicts_with = "coordinator")]
    pub(crate) coordinator_file: Option<PathBuf>,
    /// A file with the coordinator's token (or in REGRETTA_TOKEN)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The authority that signed the coordinator's certificate, PEM
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// A client certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "tls_ca")]
    tls_cert: Option<PathBuf>,
    /// The key of the client certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The name in the coordinator's certificate, where the address has another
    #[arg(long, value_name = "NAME", requires = "tls_ca")]
    tls_name: Option<String>,
}

/// The name in the certificates of coordinators whose machine is not known beforehand.
pub(crate) const SERVICE_NAME: &str = "regretta";

/// How long a command waits for a coordinator's file, and how often it looks.
const PUBLISHED: (Duration, Duration) = (Duration::from_secs(300), Duration::from_millis(500));

/// The address that a coordinator published, if it has by now.
pub(crate) fn published(file: &Path) -> Option<String> {
    let address = String::from_utf8(study::folder::read(file).ok()?).ok()?.trim().to_owned();
    (!address.is_empty()).then_some(address)
}

impl Connection {
    /// To the coordinator of a Slurm job, by its folder, where it has published its address.
    pub(crate) fn of_service(service: &Path) -> Option<Self> {
        let certificate = |name: &str| Some(service.join("certs").join(name));
        let coordinator = vec![published(&service.join("address"))?];
        Some(Self {
            coordinator,
            coordinator_file: None,
            token_file: None,
            tls_ca: certificate("ca.pem"),
            tls_cert: certificate("client.pem"),
            tls_key: certificate("client.key"),
            tls_name: Some(SERVICE_NAME.to_owned()),
        })
    }

    /// With the address that the coordinator's file has, once it is there.
    pub(crate) async fn resolved(&self) -> anyhow::Result<Self> {
        let Some(file) = &self.coordinator_file else { return Ok(self.clone()) };
        let (patience, look) = PUBLISHED;
        let began = Instant::now();
        loop {
            if let Some(coordinator) = published(file) {
                return Ok(Self { coordinator: vec![coordinator], ..self.clone() });
            }
            if began.elapsed() > patience {
                let seconds = patience.as_secs();
                return Err(BadInput(format!(
                    "{} was not there after {seconds} s; is the coordinator running with --publish?",
                    file.display()
                ))
                .into());
            }
            tokio::time::sleep(look).await;
        }
    }

    /// The token, where there is one. Credentials in an address are refused, and not repeated: they would be sent to
    /// nobody, and printed wherever the address is.
    pub(crate) fn token(&self) -> anyhow::Result<Option<Token>> {
        if self.coordinator.iter().any(|address| address.contains('@')) {
            return Err(BadInput(format!(
                "--coordinator has a user name or a password: give http://HOST:PORT or https://HOST:PORT, and a token \
                 in --token-file or {VARIABLE}"
            ))
            .into());
        }
        read_token(self.token_file.as_deref())
    }

    /// What a client needs for TLS.
    pub(crate) fn tls(&self) -> anyhow::Result<Option<ClientTls>> {
        let Some(authority) = &self.tls_ca else {
            if let Some(address) = self.coordinator.iter().find(|url| url.starts_with("https://")) {
                return Err(BadInput(format!(
                    "{address} speaks TLS; give --tls-ca with the authority that signed its certificate"
                ))
                .into());
            }
            return Ok(None);
        };
        let identity = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                Some((read_secret(certificate)?, Secret::new(&read_secret(key)?)))
            }
            _ => None,
        };
        let domain = self.tls_name.clone();
        Ok(Some(ClientTls { authority: read_secret(authority)?, identity, domain }))
    }

    /// A connection for calls of a user.
    pub(crate) async fn reach(&self, address: &str) -> anyhow::Result<Channel> {
        let bad =
            |error: &dyn std::fmt::Display| BadInput(format!("--coordinator {address}: {error}"));
        let mut endpoint =
            Endpoint::from_shared(address.to_owned()).map_err(|error| bad(&error))?;
        if let Some(tls) = self.tls()? {
            let tls = ClientTlsConfig::from(&tls);
            endpoint = endpoint.tls_config(tls).map_err(|error| bad(&error))?;
        }
        // A network that is cut says nothing: without signs of life, a call would wait for ever.
        let endpoint = endpoint.http2_keep_alive_interval(KEEP_ALIVE).keep_alive_timeout(PATIENCE);
        let unreached = |why: &str| BadInput(format!("cannot reach {address}: {why}"));
        let patience = if self.coordinator.len() > 1 { PATIENCE_AMONG_MANY } else { PATIENCE };
        let late = |_| unreached(&format!("no answer within {} s", patience.as_secs()));
        let connected = timeout(patience, endpoint.connect()).await.map_err(late)?;
        connected.map_err(|error| {
            let why = chain(&error);
            let plain = address.starts_with("https://") && why.contains("corrupt message");
            let advice = if plain { "; use http:// if it has no certificates" } else { "" };
            unreached(&format!("{why}{advice}")).into()
        })
    }
}

/// The longest wait for a connection, TLS included, and for a sign of life.
const PATIENCE: Duration = Duration::from_secs(20);

/// The same, and for a first answer, where another coordinator may be there instead.
pub(crate) const PATIENCE_AMONG_MANY: Duration = Duration::from_secs(5);

/// A connection that is silent for so long during a call is asked for a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// An error with all that led to it, in one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

/// The token from a file or from the environment.
pub(crate) fn read_token(file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    let (text, place) = match (file, std::env::var(VARIABLE)) {
        (Some(file), _) => {
            warn_of_readers(file);
            (read_secret(file)?, file.display().to_string())
        }
        (None, Ok(text)) => (text, VARIABLE.to_owned()),
        (None, Err(_)) => return Ok(None),
    };
    let token = Token::new(&text).map_err(|error| BadInput(format!("{place}: {error}")))?;
    Ok(Some(token))
}

/// Warns of a token that others on this machine can read. A group that the file was given to by another user, as
/// Kubernetes does with secrets, is meant to read it.
fn warn_of_readers(file: &Path) {
    let Ok(found) = std::fs::metadata(file) else { return };
    let own = found.uid() == rustix::process::geteuid().as_raw();
    let readers = if own { 0o044 } else { 0o004 };
    if found.is_file() && found.mode() & readers != 0 {
        let (name, mode) = (file.display(), found.mode() & 0o777);
        tracing::warn!(
            "others can read the token in {name} (mode {mode:03o}); run chmod 600 on it"
        );
    }
}

/// Warns of addresses to which the token would go over the network unencrypted.
pub(crate) fn warn_of_listeners(addresses: &[String]) {
    for address in addresses.iter().filter(|address| is_exposed(address)) {
        // One from a file may be anything.
        let address = address.rsplit_once('@').map_or(address.as_str(), |(_, host)| host);
        tracing::warn!(
            "the token is sent to {address} unencrypted, and whoever sees the network can read it; use https:// (see \
             `regretta cert`)"
        );
    }
}

/// Whether a token sent to this address can be read on the way.
fn is_exposed(address: &str) -> bool {
    let Ok(url) = address.parse::<Uri>() else { return false };
    url.scheme_str() == Some("http") && !url.host().is_some_and(names_loopback)
}

/// A small text file.
pub(crate) fn read_secret(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| BadInput(format!("cannot read {}: {error}", path.display())).into())
}

#[cfg(test)]
mod tests {
    use super::is_exposed;

    #[test]
    fn only_plain_connections_to_other_machines_expose_a_token() {
        for address in
            ["http://coordinator:7070", "http://10.0.0.5:7070", "http://[2001:db8::1]:7070"]
        {
            assert!(is_exposed(address), "{address}");
        }
        for address in [
            "https://coordinator:7070",
            "http://127.0.0.1:7070",
            "http://localhost:7070",
            "http://[::1]:7070",
        ] {
            assert!(!is_exposed(address), "{address}");
        }
    }
}
