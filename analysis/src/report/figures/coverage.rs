//! Coverage against t, with its interval, the exact law and the level that is claimed.

use std::collections::BTreeSet;

use super::{MOST_PANELS, id, of_prior, spread};
use crate::Analysis;
use crate::figures::{Axis, Chart, Figure, Lines, Look, Panel, Point, Reference, Series};
use crate::verdicts::VerdictRow;

/// What one figure shows: a claim under one kind of cell.
struct Shown<'a> {
    claim: &'a str,
    design: &'a str,
    at: Option<&'a str>,
}

pub(super) fn figures(analysis: &Analysis, prior: usize) -> Vec<Figure> {
    let lemma = [
        Shown { claim: "lemma1.mean", design: "fixed", at: Some("probe") },
        Shown { claim: "lemma1.joint", design: "fixed", at: Some("probe") },
        Shown { claim: "lemma1.joint", design: "adaptive", at: Some("x_star") },
    ];
    let mut figures: Vec<Figure> =
        lemma.iter().filter_map(|shown| figure(analysis, prior, shown)).collect();
    for own in &analysis.dataset.study.claims {
        for design in ["fixed", "adaptive"] {
            figures.extend(figure(analysis, prior, &Shown { claim: &own.id, design, at: None }));
        }
    }
    figures
}

fn figure(analysis: &Analysis, prior: usize, shown: &Shown<'_>) -> Option<Figure> {
    let rows: Vec<&VerdictRow> = analysis
        .verdicts
        .iter()
        .filter(|row| row.prior as usize == prior && row.coverage.is_some() && row.among == "all")
        .filter(|row| row.claim == shown.claim && row.design == shown.design)
        .filter(|row| row.at.as_deref() == shown.at && row.t.is_some() && row.is_planned())
        .collect();
    // A coverage at a single t is a number, not a curve.
    let checkpoints: BTreeSet<Option<u32>> = rows.iter().map(|row| row.t).collect();
    if checkpoints.len() < 2 {
        return None;
    }
    let mut places: Vec<(Option<u64>, u64)> =
        rows.iter().map(|row| (row.n, row.delta.unwrap_or(0.0).to_bits())).collect();
    places.sort_unstable();
    places.dedup();
    let panels: Vec<Panel> = spread(&places, MOST_PANELS)
        .into_iter()
        .map(|(n, delta)| panel(&rows, n, f64::from_bits(delta)))
        .collect();
    let design = match shown.design {
        "fixed" => "design fixed in advance, as the lemma asks",
        _ => "points chosen by the method",
    };
    let at = shown.at.map_or(String::new(), |at| format!(" at {at}"));
    let columns = if panels.len() == 4 { 2 } else { panels.len().min(3) };
    let stem = format!("coverage-{}-{}", shown.claim.replace(['.', '/', '+'], "-"), shown.design);
    Some(Figure {
        id: id(analysis, prior, &stem),
        title: format!("Coverage of {} against t", shown.claim),
        caption: format!(
            "Coverage of {}{at} against t, {design}: share of trials in which it holds, with its interval, by the form of \
             the constants; lines without markers are exact laws. {}",
            shown.claim,
            of_prior(analysis, prior)
        ),
        chart: Chart::Lines(Lines { panels, columns, shared: true }),
    })
}

fn panel(rows: &[&VerdictRow], n: Option<u64>, delta: f64) -> Panel {
    let here: Vec<&&VerdictRow> =
        rows.iter().filter(|row| row.n == n && row.delta == Some(delta)).collect();
    let mut names: Vec<String> = Vec::new();
    here.iter().map(|row| name(row, rows)).for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    let mut series = Vec::new();
    for wanted in &names {
        let points = |value: fn(&VerdictRow) -> Option<Point>| -> Vec<Point> {
            here.iter()
                .filter(|row| name(row, rows) == *wanted)
                .filter_map(|row| value(row))
                .collect()
        };
        let measured = points(|row| {
            let t = f64::from(row.t?);
            Some(Point::with_interval(t, row.coverage?, row.ci_low?, row.ci_high?))
        });
        let law = points(|row| Some(Point::new(f64::from(row.t?), row.exact_coverage?)));
        let look = if law.is_empty() { Look::LineAndMarkers } else { Look::Markers };
        series.push(Series { name: wanted.clone(), look, points: measured });
        if !law.is_empty() {
            let name = format!("{wanted}, exact law");
            series.push(Series { name, look: Look::Line, points: law });
        }
    }
    let required = here.first().and_then(|row| row.required).unwrap_or(1.0);
    let title = n.map_or(format!("δ = {delta}"), |n| format!("N = {n}, δ = {delta}"));
    Panel {
        title,
        x: Axis::log("t"),
        y: Axis::linear("coverage"),
        series,
        references: vec![Reference::Horizontal { y: required, label: "claimed".into() }],
    }
}

/// What distinguishes the curves of a figure: only what varies in it.
fn name(row: &VerdictRow, all: &[&VerdictRow]) -> String {
    let parts: [fn(&VerdictRow) -> Option<String>; 4] = [
        |row| Some(row.method.clone()),
        |row| row.acquisition.clone(),
        |row| row.policy_constants.as_ref().map(|form| format!("ζ_t {form}")),
        |row| row.constants.clone(),
    ];
    let varies = |part: &fn(&VerdictRow) -> Option<String>| {
        let values: BTreeSet<Option<String>> = all.iter().map(|row| part(row)).collect();
        values.len() > 1
    };
    let names: Vec<String> =
        parts.iter().filter(|part| varies(part)).filter_map(|part| part(row)).collect();
    if names.is_empty() { "measured".to_owned() } else { names.join(", ") }
}
