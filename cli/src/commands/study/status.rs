//! Where a study stands, as a table or as JSON.

use proto::convert::study_id;
use proto::v1::{self, StudyStatus};
use serde::Serialize;

use crate::commands::{print, print_json};
use crate::table::Table;
use crate::text;

#[derive(Serialize)]
struct Shown<'a> {
    study: String,
    name: &'a str,
    state: &'static str,
    reason: &'a str,
    notes: &'a [String],
    trials_done: u64,
    trials_planned: u64,
    trials_per_second: f64,
    seconds_left: Option<f64>,
    workers: usize,
    quarantined: u64,
    cells: Vec<ShownCell<'a>>,
}

#[derive(Serialize)]
struct ShownCell<'a> {
    cell: String,
    label: &'a str,
    trials_done: u64,
    trials_planned: u64,
    stopped: bool,
    failures: u64,
}

fn shown(status: &StudyStatus) -> anyhow::Result<Shown<'_>> {
    let cell = |cell: &'_ v1::CellStatus| (cell.trials_done, cell.trials_planned);
    let (done, planned) =
        status.cells.iter().map(cell).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Ok(Shown {
        study: study_id(&status.study)?.to_string(),
        name: &status.name,
        state: text::state(status.state()),
        reason: &status.reason,
        notes: &status.notes,
        trials_done: done,
        trials_planned: planned,
        trials_per_second: status.trials_per_second,
        seconds_left: status.seconds_left,
        workers: status.workers.len(),
        quarantined: status.quarantined_total,
        cells: status
            .cells
            .iter()
            .map(|cell| ShownCell {
                cell: format!("{:016x}", cell.cell),
                label: &cell.label,
                trials_done: cell.trials_done,
                trials_planned: cell.trials_planned,
                stopped: cell.stopped,
                failures: cell.failures,
            })
            .collect(),
    })
}

/// Prints it.
pub(super) fn print_status(status: &StudyStatus, json: bool) -> anyhow::Result<()> {
    let shown = shown(status)?;
    if json {
        return print_json(&shown);
    }
    let mut table = Table::new(&["cell", "trials", "of", "failed", ""]);
    for cell in &shown.cells {
        table.row(vec![
            cell.label.to_owned(),
            text::count(cell.trials_done.into()),
            text::count(cell.trials_planned.into()),
            text::count(cell.failures.into()),
            if cell.stopped { "decided" } else { "" }.to_owned(),
        ]);
    }
    let left =
        shown.seconds_left.map_or_else(String::new, |s| format!(", {} left", text::duration(s)));
    let notes =
        shown.notes.iter().fold(String::new(), |notes, note| notes + "note: " + note + "\n");
    print(&format!(
        "{} ({}): {}{}{}\n{notes}{} workers, {:.0} trials/s{left}\n\n{table}",
        shown.name,
        shown.study,
        shown.state,
        if shown.reason.is_empty() { "" } else { ": " },
        shown.reason,
        shown.workers,
        shown.trials_per_second,
    ))
}
