//! Who may call: holders of the token, or of a certificate that the server's authority signed.
//!
//! Without TLS or authentication the server binds to loopback only, unless told otherwise.

use std::fmt;
use std::net::IpAddr;

use subtle::ConstantTimeEq;
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::transport::server::TlsConnectInfo;
use tonic::{Request, Status};

use super::connections::Ticket;

/// The scheme of the `authorization` header.
const BEARER: &str = "Bearer ";

/// What callers hear who would be one too many.
const FULL: &str = "the coordinator has as many connections as its limit on open files allows; raise that limit (`ulimit -n`)";

/// A token that never shows in output.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// A token that cannot be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Guessable.
    #[error(
        "the token has {0} characters; use at least 16, for instance from `openssl rand -hex 32`"
    )]
    Short(usize),
    /// Does not fit into a header.
    #[error(
        "the token has characters that a header cannot carry; use letters, digits and punctuation"
    )]
    Characters,
}

impl Token {
    /// A token of at least 16 visible characters; white space around it is dropped.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if text.len() < 16 {
            return Err(TokenError::Short(text.len()));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(TokenError::Characters);
        }
        Ok(Self(text.to_owned()))
    }

    /// The text, for a header.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// What a caller has to show.
#[derive(Clone, Debug, Default)]
pub(super) struct Guard {
    /// The token, where one is set.
    pub(super) token: Option<Token>,
    /// Whether a client certificate, which TLS has verified by then, is as good.
    pub(super) certificates: bool,
}

impl Guard {
    fn admits(&self, request: &Request<()>) -> bool {
        if self.token.is_none() && !self.certificates {
            return true;
        }
        let peer = request.extensions().get::<TlsConnectInfo<Ticket>>();
        let certified = peer.and_then(TlsConnectInfo::peer_certs).is_some_and(|c| !c.is_empty());
        if self.certificates && certified {
            return true;
        }
        let shown = request.metadata().get("authorization").map(MetadataValue::as_bytes);
        let shown = shown.and_then(|value| value.strip_prefix(BEARER.as_bytes()));
        match (&self.token, shown) {
            (Some(token), Some(shown)) => bool::from(token.0.as_bytes().ct_eq(shown)),
            _ => false,
        }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        if !self.admits(&request) {
            let expected = if self.certificates {
                "a valid token or client certificate"
            } else {
                "a valid token"
            };
            return Err(Status::unauthenticated(format!("this coordinator asks for {expected}")));
        }
        // A simulated network has no tickets.
        match request.extensions().get::<Ticket>() {
            Some(ticket) if !ticket.authenticate() => Err(Status::unavailable(FULL)),
            _ => Ok(request),
        }
    }
}

/// An address that needs protection which is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address} can be reached from other machines: give --tls-cert and --tls-key with --token-file or --tls-ca, \
     or bind to 127.0.0.1, or say --insecure if the network is trusted"
)]
pub struct Exposed {
    /// The address.
    pub address: IpAddr,
}

/// Refuses to listen beyond loopback without both TLS and authentication.
pub(super) fn admit_address(
    address: IpAddr,
    tls: bool,
    authenticated: bool,
    insecure: bool,
) -> Result<(), Exposed> {
    if address.is_loopback() || insecure || (tls && authenticated) {
        return Ok(());
    }
    Err(Exposed { address })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(header: Option<&str>) -> Request<()> {
        let mut request = Request::new(());
        if let Some(header) = header {
            request.metadata_mut().insert("authorization", header.parse().unwrap());
        }
        request
    }

    #[test]
    fn only_the_token_opens() {
        let token = Token::new("0123456789abcdef").unwrap();
        let mut guard = Guard { token: Some(token), certificates: false };
        assert!(guard.call(request(Some("Bearer 0123456789abcdef"))).is_ok());
        for wrong in [
            None,
            Some(""),
            Some("Bearer "),
            Some("0123456789abcdef"),
            Some("Bearer 0123456789abcdeg"),
            Some("Bearer 0123456789abcdef0"),
            Some("bearer 0123456789abcdef"),
        ] {
            assert!(guard.call(request(wrong)).is_err(), "{wrong:?}");
        }
        let mut open = Guard::default();
        assert!(open.call(request(None)).is_ok());
        let mut certificates = Guard { token: None, certificates: true };
        assert!(certificates.call(request(Some("Bearer 0123456789abcdef"))).is_err());
    }

    #[test]
    fn a_token_shows_nowhere() {
        let token = Token::new(" 0123456789abcdef\n").unwrap();
        assert_eq!(format!("{token:?}"), "Token(..)");
        assert_eq!(Token::new("short"), Err(TokenError::Short(5)));
        assert_eq!(Token::new("0123456789 abcdef"), Err(TokenError::Characters));
    }

    #[test]
    fn only_loopback_is_free() {
        let (near, far): (IpAddr, IpAddr) = ([127, 0, 0, 1].into(), [0, 0, 0, 0].into());
        assert!(admit_address(near, false, false, false).is_ok());
        assert!(admit_address(far, true, true, false).is_ok());
        assert!(admit_address(far, false, false, true).is_ok());
        for (tls, authenticated) in [(false, false), (true, false), (false, true)] {
            assert_eq!(
                admit_address(far, tls, authenticated, false),
                Err(Exposed { address: far })
            );
        }
    }
}
