//! Who may look: browsers that came in by a link which works once, and keep a cookie from then on.
//!
//! Links and cookies are 256 random bits. Only their hashes are kept, and hashes compare in constant time. A
//! page on loopback answers only to a name of loopback, so that no other site can reach it through a name of
//! its own that resolves to 127.0.0.1.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Path, Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, REFERRER_POLICY,
    REFRESH, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use blake3::Hash;
use coordinator::server::Token;

use crate::commands::run::random_token;

/// Links that wait to be used; a newer one takes the place of the oldest.
const MOST_LINKS: usize = 16;

/// Browsers that are known; the one that came first has to ask for a new link.
const MOST_SESSIONS: usize = 256;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STRANGER: &str = "This browser is not admitted.\n\nOpen the link that regretta printed at its start: it works once, \
     and the browser that used it stays admitted.\n";

const USED: &str = "This link has been used, or never was one: a link works once.\n\nFor another one, use \"Link for another \
     browser\" on the page of a browser that is admitted, or ask with the coordinator's token:\n\n    \
     curl -X POST -H \"Authorization: Bearer TOKEN\" http://ADDRESS/enter\n\n`regretta run` prints a new one when it is \
     started again; it resumes where it was.\n";

/// The door to all pages.
pub(super) struct Door {
    /// `None` where everyone on this machine may look.
    guard: Option<Guard>,
    loopback: bool,
}

struct Guard {
    /// The hash of the coordinator's token, where callers may know one.
    token: Option<Hash>,
    /// Browsers send cookies to all ports of a host, so that every process needs a name of its own.
    cookie: String,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    links: VecDeque<Hash>,
    sessions: VecDeque<Hash>,
}

impl Door {
    /// A door at an address; `token` is what a caller may ask for links with.
    pub(super) fn new(ip: IpAddr, guarded: bool, token: Option<&Token>) -> anyhow::Result<Self> {
        let guard = if guarded {
            let token = token.map(|token| blake3::hash(token.reveal().as_bytes()));
            let cookie = format!("regretta-{}", &random_token()?.reveal()[..12]);
            Some(Guard { token, cookie, known: Mutex::default() })
        } else {
            None
        };
        Ok(Self { guard, loopback: ip.is_loopback() })
    }

    /// The path of a new link; `/` where everyone is admitted.
    pub(super) fn link(&self) -> anyhow::Result<String> {
        let Some(guard) = &self.guard else { return Ok("/".to_owned()) };
        let secret = random_token()?;
        guard.known().keep_link(blake3::hash(secret.reveal().as_bytes()));
        Ok(format!("/enter/{}", secret.reveal()))
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(guard) = &self.guard else { return true };
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == guard.cookie).then_some(value)
        });
        pairs.any(|value| guard.known().sessions.contains(&blake3::hash(value.as_bytes())))
    }

    /// Whether a caller shows the token.
    fn vouches(&self, headers: &HeaderMap) -> bool {
        let token = self.guard.as_ref().and_then(|guard| guard.token);
        let shown = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let shown = shown.and_then(|value| value.strip_prefix(b"Bearer "));
        token.zip(shown).is_some_and(|(token, shown)| token == blake3::hash(shown))
    }

    fn answers_to(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        !self.loopback || host.is_some_and(names_loopback)
    }
}

impl Guard {
    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a link in, and gives the value of a cookie for it.
    fn enter(&self, secret: &str) -> Option<anyhow::Result<Token>> {
        let used = blake3::hash(secret.as_bytes());
        let mut known = self.known();
        let place = known.links.iter().position(|link| *link == used)?;
        known.links.remove(place);
        Some(random_token().inspect(|session| {
            known.keep_session(blake3::hash(session.reveal().as_bytes()));
        }))
    }
}

impl Known {
    fn keep_link(&mut self, link: Hash) {
        self.links.push_back(link);
        if self.links.len() > MOST_LINKS {
            self.links.pop_front();
        }
    }

    fn keep_session(&mut self, session: Hash) {
        self.sessions.push_back(session);
        if self.sessions.len() > MOST_SESSIONS {
            self.sessions.pop_front();
        }
    }
}

/// Whether a `Host` header names loopback, at any port: tunnels have ports of their own.
pub(crate) fn names_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, _)) => name,
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Stands before every page.
pub(super) async fn check(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let mut response = if !door.answers_to(headers) {
        let words = "This page answers to localhost and 127.0.0.1 only.\n";
        (StatusCode::FORBIDDEN, words).into_response()
    } else if request.uri().path().starts_with("/enter") || door.admits(headers) {
        next.run(request).await
    } else {
        let mut refused = (StatusCode::FORBIDDEN, STRANGER).into_response();
        // A strict cookie does not come along where another site leads here, as a terminal in a browser
        // does; when the page then loads itself again, it does.
        if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") {
            refused.headers_mut().insert(REFRESH, HeaderValue::from_static("0"));
        }
        refused
    };
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A browser comes in by a link.
pub(super) async fn enter(State(door): State<Arc<Door>>, Path(secret): Path<String>) -> Response {
    let home = (LOCATION, "/".to_owned());
    let Some(guard) = &door.guard else {
        return (StatusCode::SEE_OTHER, [home]).into_response();
    };
    match guard.enter(&secret) {
        Some(Ok(session)) => {
            let attributes = "Path=/; HttpOnly; SameSite=Strict";
            let cookie = format!("{}={}; {attributes}", guard.cookie, session.reveal());
            (StatusCode::SEE_OTHER, [home, (SET_COOKIE, cookie)]).into_response()
        }
        Some(Err(error)) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")).into_response()
        }
        None => (StatusCode::FORBIDDEN, USED).into_response(),
    }
}

/// A new link, for whoever has the token or is admitted.
pub(super) async fn new_link(State(door): State<Arc<Door>>, headers: HeaderMap) -> Response {
    if !door.vouches(&headers) && !door.admits(&headers) {
        let words = "Show the coordinator's token: Authorization: Bearer TOKEN\n";
        return (StatusCode::FORBIDDEN, words).into_response();
    }
    // The caller knows by which name it reached us.
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match door.link() {
        Ok(path) => format!("http://{host}{path}\n").into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_works_once_and_old_ones_make_room() {
        let door = Door::new([127, 0, 0, 1].into(), true, None).unwrap();
        let guard = door.guard.as_ref().unwrap();
        let secret = |path: String| path.strip_prefix("/enter/").unwrap().to_owned();
        let first = secret(door.link().unwrap());
        assert!(guard.enter("0").is_none());
        assert!(guard.enter(&first).is_some() && guard.enter(&first).is_none());
        let oldest = secret(door.link().unwrap());
        let second = secret(door.link().unwrap());
        for _ in 2..=MOST_LINKS {
            door.link().unwrap();
        }
        assert!(guard.enter(&oldest).is_none() && guard.enter(&second).is_some());
    }

    #[test]
    fn only_its_own_cookie_admits() {
        let door = Door::new([127, 0, 0, 1].into(), true, None).unwrap();
        let guard = door.guard.as_ref().unwrap();
        let path = door.link().unwrap();
        let session = guard.enter(path.strip_prefix("/enter/").unwrap()).unwrap().unwrap();
        let with = |cookie: String| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, cookie.parse().unwrap());
            door.admits(&headers)
        };
        let (name, value) = (&guard.cookie, session.reveal());
        assert!(with(format!("other=1; {name}={value}")));
        assert!(!with(format!("{name}={}", &value[1..])));
        assert!(!with(format!("regretta={value}")) && !door.admits(&HeaderMap::new()));
    }

    #[test]
    fn names_of_loopback() {
        for good in ["localhost", "LocalHost:80", "127.0.0.1:9", "[::1]:80", "127.9.9.9", "[::1]"] {
            assert!(names_loopback(good), "{good}");
        }
        for bad in ["", "evil.example", "127.0.0.1.evil.example:80", "10.0.0.1:80", "localhost.x"] {
            assert!(!names_loopback(bad), "{bad}");
        }
    }
}
