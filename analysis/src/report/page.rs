//! `report.html`: the sentences, then tables and figures, then methods, then where it comes from.

use study::family::EarlierFamily;

use super::{Report, methods};
use crate::figures::Figure;
use crate::manifest::Family;
use crate::page::{Block, Download, Page, Section};
use crate::tables::{Row, Table};
use crate::words;

/// Rows from which on a table is folded.
const LONG: usize = 24;

/// Sections: heading, ids of tables, beginnings of the ids of figures.
const SECTIONS: [(&str, &str, &[&str], &[&str]); 6] = [
    ("verdicts", "Verdicts", &["summary", "summary-use"], &[]),
    (
        "coverage",
        "Coverage",
        &[
            "coverage-lemma1",
            "coverage-theorem2",
            "coverage-lemma5",
            "coverage-lemma3",
            "coverage-theorem4",
            "coverage-own",
            "means",
            "bias",
        ],
        &["coverage", "heat", "exact-laws"],
    ),
    ("regret", "Regret and its bounds", &["regret-bounds", "rates"], &["regret", "tightness"]),
    ("rates", "Empirical against theoretical rates", &["exponents"], &["rate"]),
    ("audit", "Proof audit", &["proof-audit"], &["proof-audit"]),
    ("methods", "Methods compared", &["best-values", "methods"], &["best"]),
];

pub(super) fn html(report: &Report<'_>) -> String {
    let manifest = &report.analysis.dataset.manifest;
    let mut sections: Vec<Section> = SECTIONS
        .iter()
        .map(|(id, heading, tables, figures)| Section {
            id: (*id).into(),
            heading: (*heading).into(),
            blocks: blocks(report, tables, figures),
        })
        .filter(|section| !section.blocks.is_empty())
        .collect();
    sections.push(Section {
        id: "how".into(),
        heading: "How it was done".into(),
        blocks: vec![Block::Definitions(
            methods::paragraphs(report.analysis)
                .into_iter()
                .map(|(heading, text)| (heading.to_owned(), text))
                .collect(),
        )],
    });
    sections.push(provenance(report));
    Page { title: format!("Study {}", manifest.name), lead: report.lead.to_vec(), sections }.html()
}

fn blocks(report: &Report<'_>, tables: &[&str], figures: &[&str]) -> Vec<Block> {
    let shown = |figure: &&Figure| {
        figures.iter().any(|stem| {
            figure.id == *stem
                || figure.id.strip_prefix(stem).is_some_and(|rest| rest.starts_with('-'))
        })
    };
    let figures = report.figures.iter().filter(shown).map(figure);
    let tables = tables.iter().filter_map(|id| report.tables.iter().find(|table| table.id == *id));
    figures.chain(tables.map(table)).collect()
}

fn figure(figure: &Figure) -> Block {
    let download = |suffix: &str| Download {
        label: suffix.to_uppercase(),
        path: format!("figures/{}.{suffix}", figure.id),
    };
    Block::Figure {
        id: figure.id.clone(),
        svg: figure.svg(),
        caption: figure.caption.clone(),
        downloads: ["svg", "pdf", "csv"].map(download).to_vec(),
    }
}

fn table(table: &Table) -> Block {
    let rows = table.rows().iter().filter(|row| matches!(row, Row::Cells(_))).count();
    let block = Block::Table(table.clone());
    if rows <= LONG {
        return block;
    }
    Block::Details { summary: format!("{} ({rows} rows)", table.caption), blocks: vec![block] }
}

/// What a study that was changed says of its past.
fn earlier(families: &[EarlierFamily]) -> String {
    if families.is_empty() {
        return String::new();
    }
    let each: Vec<String> = families.iter().map(one_earlier).collect();
    format!(
        "the study was changed or has grown, and this is a new family of verdicts; before it had {}. Verdicts that were \
         published then keep their family.",
        each.join(", then ")
    )
}

fn one_earlier(earlier: &EarlierFamily) -> String {
    let Family { rows, digest, .. } = earlier.family;
    let rows = format!("{} rows", words::count(rows));
    let range = earlier.replicates.values().min().zip(earlier.replicates.values().max());
    match range {
        Some((least, most)) if digest.is_known() => {
            let replicates = if least == most {
                words::count(*most)
            } else {
                format!("{} to {}", words::count(*least), words::count(*most))
            };
            format!("{rows} (claims `{digest:.12}`, until cells had {replicates} replicates)")
        }
        _ => rows,
    }
}

fn provenance(report: &Report<'_>) -> Section {
    let dataset = &report.analysis.dataset;
    let manifest = &dataset.manifest;
    let pairs = [
        ("Study", format!("{} ({}), seed {}", manifest.name, manifest.study, manifest.seed)),
        ("Dataset digest", format!("`{}`", manifest.digest)),
        ("Trials", words::count(manifest.trials)),
        ("Records", words::count(manifest.records)),
        ("Failed trials", words::count(manifest.failures)),
        ("Recorded", manifest.detail.clone()),
        (
            "Family",
            format!(
                "{} rows at alpha = {}, evidence {}, n_opt {}{}",
                words::count(manifest.family.rows),
                manifest.family.alpha,
                words::number(manifest.family.evidence, 6),
                manifest.family.n_opt,
                match manifest.family.digest {
                    digest if digest.is_known() => format!(", claims `{digest:.12}`"),
                    _ => String::new(),
                }
            ),
        ),
        ("Families before", earlier(&manifest.earlier_families)),
        ("regretta", manifest.version.clone()),
        ("Numerics digest", format!("`{}`", manifest.numerics)),
        (
            "Check it",
            "`regretta verify DIR --recompute 1%` recomputes trials; `python3 recheck.py` counts again without regretta; \
             `regretta replay study.toml ADDRESS` shows one trial."
                .to_owned(),
        ),
    ];
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value)).collect();
    Section {
        id: "provenance".into(),
        heading: "Provenance".into(),
        blocks: vec![Block::Definitions(pairs)],
    }
}
