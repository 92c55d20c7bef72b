//! What a browser can ask for.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use proto::v1::StudySummary;
use serde::Serialize;
use study::StudyId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

use super::hub::Hub;
use super::sections::json;
use super::snapshot::{Sent, Snapshot};
use crate::text;

const STUDY_PAGE: &str = include_str!("assets/study.html");
const INDEX_PAGE: &str = include_str!("assets/studies.html");
const ASSETS: [(&str, &str, &str); 3] = [
    ("live.css", "text/css; charset=utf-8", include_str!("assets/live.css")),
    ("study.js", "text/javascript; charset=utf-8", include_str!("assets/study.js")),
    ("studies.js", "text/javascript; charset=utf-8", include_str!("assets/studies.js")),
];

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// Connections of pages say something at least so often.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// How long a browser waits before it connects again.
const RETRY: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(super) struct Shared {
    pub(super) hub: Arc<Hub>,
    pub(super) viewers: Arc<Semaphore>,
}

#[derive(Serialize)]
struct Listed {
    id: String,
    name: String,
    state: &'static str,
    done: u64,
    planned: u64,
}

/// Straight to the study where there is one, else to all of them.
pub(super) async fn home(State(shared): State<Shared>) -> Response {
    let place = match &shared.hub.list().await[..] {
        [one] => format!("/study/{}", listed(one).id),
        _ => "/studies".to_owned(),
    };
    (StatusCode::SEE_OTHER, [(LOCATION, place)]).into_response()
}

pub(super) async fn index() -> Response {
    ([(CONTENT_TYPE, HTML)], INDEX_PAGE).into_response()
}

pub(super) async fn list(State(shared): State<Shared>) -> Response {
    let studies: Vec<Listed> = shared.hub.list().await.iter().map(listed).collect();
    ([(CONTENT_TYPE, JSON)], json(&studies)).into_response()
}

fn listed(study: &StudySummary) -> Listed {
    let id = proto::convert::study_id(&study.study).map(|id| id.hex()).unwrap_or_default();
    Listed {
        id,
        name: study.name.clone(),
        state: text::state(study.state()),
        done: study.trials_done,
        planned: study.trials_planned,
    }
}

pub(super) async fn study(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    match known(&shared, &id).await {
        Some(_) => ([(CONTENT_TYPE, HTML)], STUDY_PAGE).into_response(),
        None => missing(),
    }
}

pub(super) async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|(asset, ..)| *asset == name) {
        Some((_, kind, text)) => ([(CONTENT_TYPE, *kind)], *text).into_response(),
        None => missing(),
    }
}

/// A view of the coverage, drawn from what was seen last.
pub(super) async fn view(
    State(shared): State<Shared>,
    Path((id, view)): Path<(String, usize)>,
) -> Response {
    let Some(study) = parse(&id) else { return missing() };
    let hub = Arc::clone(&shared.hub);
    let drawn = tokio::task::spawn_blocking(move || hub.draw(study, view)).await;
    match drawn {
        Ok(Some(text)) => ([(CONTENT_TYPE, JSON)], text.to_string()).into_response(),
        _ => missing(),
    }
}

/// The stream of a study's events, which ends when the study does.
pub(super) async fn events(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    let Some(study) = known(&shared, &id).await else { return missing() };
    let Ok(place) = Arc::clone(&shared.viewers).try_acquire_owned() else {
        let words = "As many pages are open as this process serves; close one of them.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, words).into_response();
    };
    let (out, events) = mpsc::channel(1);
    tokio::spawn(follow(shared.hub.watch(study), out, place));
    let stream = Sse::new(ReceiverStream::new(events));
    stream.keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Sends what is new, at the pace at which it is read. A browser that falls behind misses what was in
/// between, never what is now.
async fn follow(
    mut snapshots: watch::Receiver<Option<Arc<Snapshot>>>,
    out: mpsc::Sender<Result<Event, Infallible>>,
    _place: OwnedSemaphorePermit,
) {
    let mut sent = Sent::default();
    if out.send(Ok(Event::default().retry(RETRY))).await.is_err() {
        return;
    }
    loop {
        let now = snapshots.borrow_and_update().clone();
        if let Some(now) = now {
            for (name, data) in now.news(&mut sent) {
                if out.send(Ok(Event::default().event(name).data(data))).await.is_err() {
                    return;
                }
            }
            if now.end.is_some() {
                return;
            }
        }
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { return },
            () = out.closed() => return,
        }
    }
}

async fn known(shared: &Shared, id: &str) -> Option<StudyId> {
    let study = parse(id)?;
    shared.hub.knows(study).await.then_some(study)
}

fn parse(id: &str) -> Option<StudyId> {
    blake3::Hash::from_hex(id).ok().map(|hash| StudyId(*hash.as_bytes()))
}

fn missing() -> Response {
    (StatusCode::NOT_FOUND, "There is no such page here.\n").into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_ask_for_nothing_from_outside() {
        let pages = [STUDY_PAGE, INDEX_PAGE].into_iter();
        for text in pages.chain(ASSETS.iter().map(|(_, _, text)| *text)) {
            let own = text.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http:", "https:", "\"//", "@import", "url(", "innerHTML", "eval("] {
                assert!(!own.contains(outside), "{outside}");
            }
            // What the policy would not let run.
            for inline in ["<style", " style=", " onclick=", "<script>"] {
                assert!(!own.contains(inline), "{inline}");
            }
        }
    }
}
