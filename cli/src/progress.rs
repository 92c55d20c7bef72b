//! A running study as people watch it: bars on a terminal, plain lines elsewhere.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use proto::v1::{CellStatus, RowStatus, StudyStatus};

use crate::text;

/// Cells with a bar of their own; more are shown in total only.
const BARS: usize = 16;

/// How often a line is printed where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// Shows a study's progress on stderr.
pub(crate) struct Progress {
    view: View,
}

enum View {
    Quiet,
    Lines { last: Option<Instant> },
    Bars { all: MultiProgress, total: ProgressBar, cells: Vec<ProgressBar>, verdicts: ProgressBar },
}

impl Progress {
    /// Nothing is shown where that is quiet.
    pub(crate) fn new(quiet: bool) -> Self {
        let view = if quiet {
            View::Quiet
        } else if std::io::stderr().is_terminal() {
            let all = MultiProgress::new();
            let total = all.add(ProgressBar::new(0));
            total.set_style(style("{prefix:.bold} {bar:30} {percent:>3}%  {msg}"));
            let verdicts = all.add(ProgressBar::new(0));
            verdicts.set_style(style("{msg}"));
            View::Bars { all, total, cells: Vec::new(), verdicts }
        } else {
            View::Lines { last: None }
        };
        Self { view }
    }

    /// Shows where the study stands.
    pub(crate) fn show(&mut self, status: &StudyStatus) {
        let verdicts = verdicts(status);
        match &mut self.view {
            View::Quiet => {}
            View::Lines { last } => {
                if last.is_none_or(|last| last.elapsed() >= LINE) {
                    *last = Some(Instant::now());
                    eprintln!("{}; {verdicts}", line(status));
                }
            }
            View::Bars { all, total, cells, verdicts: below } => {
                if cells.is_empty() && status.cells.len() <= BARS {
                    cells.extend(status.cells.iter().map(|_| {
                        let bar = all.insert_before(below, ProgressBar::new(0));
                        bar.set_style(style("  {bar:20} {percent:>3}%  {msg}"));
                        bar
                    }));
                }
                total.set_prefix(status.name.clone());
                set(total, status.trials_done, status.trials_planned, rate(status));
                for (bar, cell) in cells.iter().zip(&status.cells) {
                    set(bar, cell.trials_done, cell.trials_planned, label(cell));
                }
                below.set_message(verdicts);
            }
        }
    }

    /// Takes the bars away, or prints the last line.
    pub(crate) fn finish(&mut self, status: Option<&StudyStatus>) {
        match (&mut self.view, status) {
            (View::Bars { all, .. }, _) => _ = all.clear(),
            (View::Lines { last }, Some(status)) => {
                *last = None;
                self.show(status);
            }
            _ => {}
        }
    }
}

/// How many rows are decided at the evidence that the study asks for.
fn verdicts(status: &StudyStatus) -> String {
    let rows = &status.rows;
    let evidence = status.family.as_ref().map_or(f64::INFINITY, |family| family.ln_evidence);
    if rows.is_empty() {
        return "no verdicts on the way".to_owned();
    }
    let refuted = |row: &&RowStatus| row.ln_e_refute >= evidence && !row.exploratory;
    let confirmed = |row: &&RowStatus| row.ln_e_confirm >= evidence && !row.exploratory;
    let (refutations, confirmations) =
        (rows.iter().filter(refuted).count(), rows.iter().filter(confirmed).count());
    let mut text = format!("so far {refutations} rows refuted, {confirmations} confirmed");
    if let Some(row) = rows.iter().find(refuted) {
        let coverage = 1.0 - row.violations as f64 / row.trials.max(1) as f64;
        // Writing to a string cannot fail.
        _ = write!(
            text,
            ", first {} at t = {}, delta = {} (coverage {coverage:.4})",
            row.claim, row.t, row.delta
        );
    }
    text
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the templates are valid");
    style.progress_chars("━╸ ")
}

fn set(bar: &ProgressBar, position: u64, length: u64, message: String) {
    bar.set_length(length);
    bar.set_position(position);
    bar.set_message(message);
}

fn rate(status: &StudyStatus) -> String {
    let left = status
        .seconds_left
        .map_or_else(String::new, |seconds| format!(", {} left", text::duration(seconds)));
    format!("{:.0} trials/s{left}", status.trials_per_second)
}

fn label(cell: &CellStatus) -> String {
    let mut label = cell.label.clone();
    if cell.stopped {
        label.push_str(" (decided)");
    }
    if cell.failures > 0 {
        _ = write!(label, " ({} failed)", cell.failures);
    }
    label
}

fn line(status: &StudyStatus) -> String {
    format!(
        "{}: {} of {} trials, {} of {} cells open, {}",
        status.name,
        text::count(status.trials_done.into()),
        text::count(status.trials_planned.into()),
        status.cells_open,
        status.cells_total,
        rate(status)
    )
}

#[cfg(test)]
mod tests {
    use proto::v1::Family;

    use super::*;

    #[test]
    fn rows_count_as_decided_at_the_evidence_of_their_study() {
        let row = |ln_e_refute, ln_e_confirm| RowStatus {
            claim: "lemma1.mean".to_owned(),
            t: 5,
            delta: 0.1,
            trials: 100,
            violations: 30,
            ln_e_refute,
            ln_e_confirm,
            ..RowStatus::default()
        };
        let rows = vec![row(7.0, 0.0), row(4.9, 0.0), row(0.0, 5.0), row(0.0, 9.0)];
        let family = Some(Family { ln_evidence: 5.0, ..Family::default() });
        let status = StudyStatus { rows, family, ..StudyStatus::default() };
        assert_eq!(
            verdicts(&status),
            "so far 1 rows refuted, 2 confirmed, first lemma1.mean at t = 5, delta = 0.1 (coverage 0.7000)"
        );
    }
}
