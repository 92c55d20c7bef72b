//! Reaching the coordinator: address, encryption, token, and whether a refusal is for good.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use proto::convert::{Registered, Registration};
use proto::limits::MAX_MESSAGE_BYTES;
use proto::v1;
use proto::v1::workers_client::WorkersClient;
use rustls::AlertDescription as Alert;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

use super::catalogue::late;
use super::{Config, Error, Secret};

/// The longest wait for a connection, and for the answer to a registration.
const PATIENCE: Duration = Duration::from_secs(20);

/// The same where another coordinator may be there instead.
const PATIENCE_AMONG_MANY: Duration = Duration::from_secs(5);

/// A connection that is silent for so long is asked for a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The coordinator, with the token on every call.
pub(super) type Client = WorkersClient<InterceptedService<Channel, Bearer>>;

/// What makes a connection of an endpoint.
type Connect = dyn Fn(Endpoint) -> Connecting + Send + Sync;

/// A connection in the making.
pub type Connecting =
    Pin<Box<dyn Future<Output = Result<Channel, tonic::transport::Error>> + Send>>;

/// How connections are made: over TCP, or as a test wants it.
#[derive(Clone)]
pub struct Connector(Arc<Connect>);

impl Connector {
    /// Over TCP.
    pub fn tcp() -> Self {
        Self::new(|endpoint| Box::pin(async move { endpoint.connect().await }))
    }

    /// By a function that is given the endpoint, most likely with
    /// [`Endpoint::connect_with_connector`].
    pub fn new(connect: impl Fn(Endpoint) -> Connecting + Send + Sync + 'static) -> Self {
        Self(Arc::new(connect))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

/// What a worker needs to speak TLS.
#[derive(Clone, Debug, Default)]
pub struct ClientTls {
    /// The authority that signed the coordinator's certificate, PEM.
    pub authority: String,
    /// The worker's own certificate and its key, PEM, where the coordinator asks for one.
    pub identity: Option<(String, Secret)>,
    /// The name in the coordinator's certificate, where it is not that of the address.
    pub domain: Option<String>,
}

impl From<&ClientTls> for ClientTlsConfig {
    fn from(tls: &ClientTls) -> Self {
        let mut config = Self::new().ca_certificate(Certificate::from_pem(&tls.authority));
        if let Some((certificate, key)) = &tls.identity {
            config = config.identity(Identity::from_pem(certificate, key.reveal()));
        }
        match &tls.domain {
            Some(domain) => config.domain_name(domain),
            None => config,
        }
    }
}

/// Puts the token on every call.
#[derive(Clone)]
pub(super) struct Bearer(Option<MetadataValue<Ascii>>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert("authorization", value.clone());
        }
        Ok(request)
    }
}

/// Where the coordinator is, and how to speak to it.
#[derive(Clone)]
pub(super) struct Coordinator {
    endpoint: Endpoint,
    bearer: Bearer,
    connector: Connector,
    pub(super) address: String,
    patience: Duration,
}

/// Why an attempt to join failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// It will fail again.
    ForGood(Error),
    /// It may succeed later.
    ForNow(String),
}

impl Coordinator {
    /// All coordinators that may lead, of which there is one at least.
    pub(super) fn all(config: &Config) -> Result<Vec<Self>, Error> {
        let addresses: Vec<&str> = config.coordinator.split(',').map(str::trim).collect();
        let patience = if addresses.len() > 1 { PATIENCE_AMONG_MANY } else { PATIENCE };
        addresses.into_iter().map(|address| Self::new(config, address, patience)).collect()
    }

    /// Checks what can be checked without the network.
    fn new(config: &Config, address: &str, patience: Duration) -> Result<Self, Error> {
        let invalid = |error: &dyn StdError| Error::Config(chain(error));
        let endpoint = Endpoint::from_shared(address.to_owned());
        let mut endpoint = endpoint
            .map_err(|error| invalid(&error))?
            .connect_timeout(patience)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(PATIENCE)
            .keep_alive_while_idle(true);
        let encrypted = endpoint.uri().scheme_str() == Some("https");
        if encrypted != config.tls.is_some() {
            return Err(Error::Config(if encrypted {
                format!(
                    "{address} needs the certificate of the authority that the coordinator uses"
                )
            } else {
                format!("certificates are given, and {address} is not encrypted; use https")
            }));
        }
        if let Some(tls) = &config.tls {
            endpoint = endpoint.tls_config(tls.into()).map_err(|error| invalid(&error))?;
        }
        let header = |token: &Secret| {
            let mut value =
                MetadataValue::try_from(format!("Bearer {}", token.reveal())).map_err(|_| {
                    Error::Config("the token holds a character that is not ASCII".into())
                })?;
            value.set_sensitive(true);
            Ok::<_, Error>(value)
        };
        let bearer = Bearer(config.token.as_ref().map(header).transpose()?);
        let (connector, address) = (config.connector.clone(), address.to_owned());
        Ok(Self { endpoint, bearer, connector, address, patience })
    }

    /// Connects and registers.
    pub(super) async fn join(
        &self,
        registration: &Registration,
    ) -> Result<(Client, Registered), Failed> {
        let connecting = (self.connector.0)(self.endpoint.clone());
        let late_connection = |_| Failed::ForNow("no connection in time".to_owned());
        let channel = timeout(self.patience, connecting).await.map_err(late_connection)?;
        let channel = channel.map_err(|error| self.unconnected(&error))?;
        let mut client = WorkersClient::with_interceptor(channel, self.bearer.clone())
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let request = client.register(v1::RegisterRequest::from(registration.clone()));
        let answer = timeout(PATIENCE, request).await.unwrap_or_else(|_| Err(late("Register")));
        let reply = answer.map_err(|status| self.refused(&status))?.into_inner();
        let registered = Registered::try_from(reply)
            .map_err(|error| Failed::ForGood(Error::Refused(error.to_string())))?;
        Ok((client, registered))
    }

    fn unconnected(&self, error: &(dyn StdError + 'static)) -> Failed {
        match certificate_fault(error) {
            Some(fault) => Failed::ForGood(self.untrusted(fault)),
            None => Failed::ForNow(chain(error)),
        }
    }

    fn untrusted(&self, fault: String) -> Error {
        Error::Certificate { address: self.address.clone(), fault }
    }

    fn refused(&self, status: &Status) -> Failed {
        if let Some(fault) = status.source().and_then(certificate_fault) {
            return Failed::ForGood(self.untrusted(fault));
        }
        let said = proto::convert::reason(status.message());
        Failed::ForGood(match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => Error::Unauthorized(said),
            Code::FailedPrecondition | Code::InvalidArgument => Error::Refused(said),
            Code::Unimplemented => Error::NoCoordinator(self.address.clone()),
            // What went wrong on the way says more than its name.
            code => {
                let why = status.source().map_or(said, chain);
                return Failed::ForNow(format!("{code:?}: {why}"));
            }
        })
    }
}

/// An error with all that led to it, in one line.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    proto::convert::reason(&text)
}

/// What is wrong with a certificate, if that is what led to an error: trying again does not help.
fn certificate_fault(error: &(dyn StdError + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = within.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls.or_else(|| error.downcast_ref()) {
            Some(fault @ rustls::Error::InvalidCertificate(_)) => return Some(fault.to_string()),
            Some(fault @ rustls::Error::AlertReceived(alert))
                if ABOUT_CERTIFICATES.contains(alert) =>
            {
                return Some(format!("the coordinator refuses this worker's: {fault}"));
            }
            _ => next = error.source(),
        }
    }
    // Behind HTTP/2 the alert is only in the text: a client hears of it after its own handshake.
    let text = chain(error);
    let (_, alert) = text.split_once("received fatal alert: ")?;
    let known = ABOUT_CERTIFICATES.iter().any(|known| alert.starts_with(&format!("{known:?}")));
    known.then(|| format!("the coordinator refuses this worker's: {alert}"))
}

/// DecryptError is what another authority of the same name gives.
const ABOUT_CERTIFICATES: [Alert; 8] = [
    Alert::BadCertificate,
    Alert::UnsupportedCertificate,
    Alert::CertificateRevoked,
    Alert::CertificateExpired,
    Alert::CertificateUnknown,
    Alert::UnknownCA,
    Alert::CertificateRequired,
    Alert::DecryptError,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn config(address: &str, token: Option<Secret>) -> Config {
        Config { coordinator: address.into(), token, ..Config::default() }
    }

    #[test]
    fn a_bad_address_or_token_is_refused_without_its_text() {
        for address in ["not an address", "https://h:1", "http://h:1,", "http://h:1,https://i:1"] {
            assert!(Coordinator::all(&config(address, None)).is_err(), "{address}");
        }
        let tls = Some(ClientTls::default());
        let plain = Config { tls, ..config("http://h:1", None) };
        assert!(Coordinator::all(&plain).is_err_and(|error| error.to_string().contains("https")));
        let token = Secret::new("geh\u{e9}im\n");
        let Err(error) = Coordinator::all(&config("http://h:1", Some(token))) else {
            panic!("the token cannot be sent");
        };
        assert!(!error.to_string().contains("geh"), "{error}");
    }

    #[test]
    fn refusals_are_told_from_failures() {
        let coordinators = Coordinator::all(&config("http://h:1, http://i:1", None)).unwrap();
        assert_eq!(coordinators.len(), 2);
        let coordinator = &coordinators[1];
        assert_eq!(coordinator.address, "http://i:1");
        let for_good = |status| matches!(coordinator.refused(&status), Failed::ForGood(_));
        assert!(for_good(Status::unauthenticated("no")));
        assert!(for_good(Status::failed_precondition("other numerics")));
        assert!(for_good(Status::unimplemented("")));
        assert!(!for_good(Status::unavailable("later")));
        assert!(!for_good(Status::internal("h2")));
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let error = io::Error::new(io::ErrorKind::InvalidData, expired);
        assert!(matches!(coordinator.unconnected(&error), Failed::ForGood(_)));
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(matches!(coordinator.unconnected(&refused), Failed::ForNow(_)));
    }
}
