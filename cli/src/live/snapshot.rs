//! A study at one moment, ready to be sent: sections that changed carry a new version, so that a browser
//! gets what is new to it and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;

use proto::v1::StudyStatus;
use serde::Serialize;

use super::coverage::{self, View};
use super::sections::{self, NAMES, json};
use super::verdicts::{Entry, Tracker, Verdict};

/// Rates that are kept; when there are more, every other one goes.
const MOST_RATES: usize = 240;

/// How it ended, the last that a page hears.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct End {
    /// One word.
    pub(crate) state: &'static str,
    /// What there is to know, where the results are for instance.
    pub(crate) message: String,
}

#[derive(Clone)]
struct Section {
    text: Arc<str>,
    version: u64,
}

/// What is remembered between looks.
#[derive(Default)]
pub(super) struct Memory {
    tracker: Tracker,
    sections: Vec<Section>,
    version: u64,
    last: Option<Arc<StudyStatus>>,
    /// (Seconds since the first look, trials per second).
    rates: Vec<(f64, f64)>,
    began: Option<std::time::Instant>,
}

pub(super) struct Snapshot {
    pub(super) status: Arc<StudyStatus>,
    pub(super) verdicts: Vec<Option<Verdict>>,
    pub(super) views: Vec<View>,
    sections: Vec<Section>,
    entries: VecDeque<Arc<Entry>>,
    rates: Vec<(f64, f64)>,
    pub(super) end: Option<Arc<End>>,
}

/// What a browser has been sent.
#[derive(Default)]
pub(super) struct Sent {
    version: u64,
    entry: u64,
    rates: bool,
}

#[derive(Serialize)]
struct Feed<'a> {
    /// Whether these are all that there are.
    all: bool,
    entries: Vec<&'a Entry>,
}

impl Memory {
    /// What is to be shown now. Without a status, as after the coordinator has stopped, the last one stays.
    pub(super) fn snapshot(
        &mut self,
        status: Option<Arc<StudyStatus>>,
        activity: Option<&'static str>,
        end: Option<Arc<End>>,
    ) -> Snapshot {
        // After the coordinator has stopped there is something else going on, at no rate.
        let rated = status.is_some() && activity.is_none();
        let status = status.or_else(|| self.last.clone()).unwrap_or_default();
        self.last = Some(Arc::clone(&status));
        if rated {
            let began = *self.began.get_or_insert_with(std::time::Instant::now);
            self.rates.push((began.elapsed().as_secs_f64(), status.trials_per_second));
            thin(&mut self.rates);
        }
        let verdicts = self.tracker.look(&status);
        let views = coverage::views(&status);
        self.update(sections::all(&status, &verdicts, &views, activity));
        Snapshot {
            status,
            verdicts,
            views,
            sections: self.sections.clone(),
            entries: self.tracker.entries.clone(),
            rates: self.rates.clone(),
            end,
        }
    }

    fn update(&mut self, texts: [String; 6]) {
        self.version += 1;
        let version = self.version;
        let section = |text: String| Section { text: text.into(), version };
        if self.sections.is_empty() {
            self.sections = texts.into_iter().map(section).collect();
            return;
        }
        for (old, new) in self.sections.iter_mut().zip(texts) {
            if *old.text != *new {
                *old = section(new);
            }
        }
    }
}

/// Takes every other one away where there are too many; the last stays.
fn thin(rates: &mut Vec<(f64, f64)>) {
    if rates.len() > MOST_RATES {
        let mut keep = rates.len().is_multiple_of(2);
        rates.retain(|_| {
            keep = !keep;
            keep
        });
    }
}

impl Snapshot {
    /// What is new to a browser: names of events and their data.
    pub(super) fn news(&self, sent: &mut Sent) -> Vec<(&'static str, String)> {
        let mut news = Vec::new();
        for (name, section) in NAMES.into_iter().zip(&self.sections) {
            if section.version > sent.version {
                news.push((name, section.text.to_string()));
            }
        }
        sent.version =
            self.sections.iter().map(|section| section.version).fold(sent.version, u64::max);
        let rates = if sent.rates { self.rates.len().saturating_sub(1) } else { 0 };
        news.push(("rates", json(&self.rates.get(rates..).unwrap_or_default())));
        sent.rates = true;
        let entries: Vec<&Entry> = self
            .entries
            .iter()
            .map(Arc::as_ref)
            .filter(|entry| entry.number > sent.entry)
            .collect();
        let all = sent.entry == 0;
        if let Some(last) = entries.last() {
            sent.entry = last.number;
            news.push(("feed", json(&Feed { all, entries })));
        }
        if let Some(end) = &self.end {
            news.push(("end", json(end.as_ref())));
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdicts::tests::{row, status};
    use super::*;

    fn names(snapshot: &Snapshot, sent: &mut Sent) -> Vec<&'static str> {
        snapshot.news(sent).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn only_what_changed_is_sent() {
        let mut memory = Memory::default();
        let mut sent = Sent::default();
        let first = memory.snapshot(Some(status(vec![row(1, 9.0, 0.0)], 1).into()), None, None);
        let all = ["head", "trouble", "views", "claims", "cells", "workers", "rates", "feed"];
        assert_eq!(names(&first, &mut sent), all);
        let same = memory.snapshot(Some(status(vec![row(1, 9.0, 0.0)], 1).into()), None, None);
        assert_eq!(names(&same, &mut sent), ["rates"]);
        let more = memory.snapshot(Some(status(vec![row(1, 9.0, 0.0)], 2).into()), None, None);
        assert_eq!(names(&more, &mut sent), ["head", "cells", "rates"]);
        assert_eq!(names(&more, &mut Sent::default()), all, "whoever comes later gets all");
        let end = Arc::new(End { state: "done", message: String::new() });
        let last = memory.snapshot(None, Some("done"), Some(end));
        assert_eq!(names(&last, &mut sent), ["head", "rates", "end"]);
    }

    #[test]
    fn rates_stay_few_and_end_with_the_last() {
        let mut rates = Vec::new();
        for at in 0..5000 {
            rates.push((f64::from(at), 1.0));
            thin(&mut rates);
            assert!(rates.len() <= MOST_RATES);
            assert_eq!(rates.last().unwrap().0, f64::from(at));
        }
        assert!(rates[0].0 < 100.0);
    }
}
