//! Coverage over N and T, with its verdicts.

use std::collections::BTreeSet;

use super::{id, of_prior};
use crate::Analysis;
use crate::figures::{Categories, Cell, Chart, Colours, Figure, HeatMap, Mark};
use crate::verdicts::VerdictRow;

/// The conclusions, with the form and point that are shown.
const SHOWN: [(&str, Option<&str>, Option<&str>, &str); 5] = [
    ("lemma1.joint", Some("printed"), Some("probe"), "fixed"),
    ("lemma1.joint", Some("corrected"), Some("probe"), "fixed"),
    ("theorem2.ucb", Some("printed"), None, "adaptive"),
    ("theorem2.ucb", Some("corrected"), None, "adaptive"),
    ("theorem2.pi", Some("printed"), None, "adaptive"),
];

pub(super) fn figures(analysis: &Analysis, prior: usize) -> Vec<Figure> {
    let mut figures = Vec::new();
    for &delta in &analysis.dataset.study.grid.delta {
        for (claim, form, at, design) in SHOWN {
            let of = |row: &VerdictRow| {
                row.claim == claim
                    && row.constants.as_deref() == form
                    && row.at.as_deref() == at
                    && row.design == design
            };
            let name = format!("{claim}, {} constants", form.unwrap_or("no"));
            let stem = format!("heat-{claim}-{}-{}", form.unwrap_or("own"), delta.get());
            figures.extend(figure(analysis, prior, delta.get(), &name, &stem, &of));
        }
        for own in &analysis.dataset.study.claims {
            let of = |row: &VerdictRow| row.claim == own.id && row.method == "pem-bo";
            let stem = format!("heat-{}-{}", own.id, delta.get());
            figures.extend(figure(analysis, prior, delta.get(), &own.id, &stem, &of));
        }
    }
    figures
}

fn figure(
    analysis: &Analysis,
    prior: usize,
    delta: f64,
    name: &str,
    stem: &str,
    of: &dyn Fn(&VerdictRow) -> bool,
) -> Option<Figure> {
    let rows: Vec<&VerdictRow> = analysis
        .verdicts
        .iter()
        .filter(|row| row.prior as usize == prior && row.delta == Some(delta))
        .filter(|row| row.among == "all" && row.is_planned() && row.t.is_some() && row.n.is_some())
        .filter(|row| of(row))
        .collect();
    let functions: BTreeSet<u64> = rows.iter().filter_map(|row| row.n).collect();
    let horizons: BTreeSet<u32> = rows.iter().filter_map(|row| row.t).collect();
    if functions.len() < 2 || horizons.len() < 2 {
        return None;
    }
    let at = |n: u64, t: u32| {
        let mut here = rows.iter().filter(|row| row.n == Some(n) && row.t == Some(t));
        let row = here.next()?;
        // Two rows at one place cannot be one number; tables show them.
        here.next().is_none().then_some(row)
    };
    let cell = |n, t| {
        at(n, t).map_or(Cell { value: None, mark: None }, |row| Cell {
            value: row.coverage,
            mark: match row.verdict.as_str() {
                "confirmed" => Some(Mark::Confirmed),
                "refuted" => Some(Mark::Refuted),
                _ => None,
            },
        })
    };
    let cells = functions.iter().map(|&n| horizons.iter().map(|&t| cell(n, t)).collect()).collect();
    // A map of one number is a sentence; the tables have it.
    if rows.iter().all(|row| row.coverage.is_none_or(|coverage| coverage > 0.9995)) {
        return None;
    }
    let required = rows.iter().find_map(|row| row.required)?;
    Some(Figure {
        id: id(analysis, prior, &stem.replace(['.', '/', '+'], "-")),
        title: format!("Coverage of {name} over N and T"),
        caption: format!(
            "Coverage of {name}, over N and T at δ = {delta}; {required} is claimed. A tick is confirmed, a cross refuted. {}",
            of_prior(analysis, prior)
        ),
        chart: Chart::HeatMap(HeatMap {
            columns: Categories {
                label: "T".into(),
                names: horizons.iter().map(u32::to_string).collect(),
            },
            rows: Categories {
                label: "N".into(),
                names: functions.iter().map(u64::to_string).collect(),
            },
            cells,
            colours: Colours::Diverging { centre: required },
            value: "coverage".into(),
            decimals: 3,
        }),
    })
}
