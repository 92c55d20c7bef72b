//! The proof audit as bars: what share of trials violates each step, and what the paper allows.

use crate::Analysis;
use crate::audit::{Audit, Step};
use crate::figures::{Axis, Bar, Bars, Chart, Figure, Group, Status, verbatim};

pub(super) fn figure(analysis: &Analysis) -> Option<Figure> {
    let groups: Vec<Group> = analysis.audits.iter().map(group).collect();
    if groups.iter().all(|group| group.bars.is_empty()) {
        return None;
    }
    Some(Figure {
        id: "proof-audit".into(),
        title: "Proof audit".into(),
        caption: "Share of trials that violate each step of a proof, at the place of the study where it is largest relative to what \
                  the paper budgets for the step (tick), with its interval."
            .into(),
        chart: Chart::Bars(Bars {
            x: Axis::log("share of trials that violate the step"),
            budget: "budgeted by the paper".into(),
            groups,
        }),
    })
}

/// The steps as the paper states them: with printed constants, at the points of the proof.
fn group(audit: &Audit) -> Group {
    // A lemma is audited under its own hypothesis where the study has it, and as it is used elsewhere.
    let lemma = audit.title.starts_with("Lemma 1") || audit.title.starts_with("Lemma 3");
    let fixed = audit.steps.iter().any(|step| step.design == "fixed");
    let shown = |step: &&Step| {
        let printed = step.constants.as_deref().is_none_or(|form| form == "printed");
        printed && (!lemma || !fixed || step.design == "fixed")
    };
    let mut designs: Vec<&str> =
        audit.steps.iter().filter(shown).map(|step| step.design.as_str()).collect();
    designs.dedup();
    let several = designs.len() > 1;
    let conclusions = audit.conclusions.iter().filter(shown).map(|step| bar(step, true, several));
    let steps = audit.steps.iter().filter(shown).map(|step| bar(step, false, several));
    Group { heading: audit.title.to_owned(), bars: conclusions.chain(steps).collect() }
}

/// A step, with its design where the audit shows several.
fn bar(step: &Step, conclusion: bool, several: bool) -> Bar {
    let worst = &step.worst;
    let name = step.claim.rsplit(['/', '.']).next().unwrap_or(&step.claim);
    let mut label = if conclusion { "conclusion".to_owned() } else { verbatim(name) };
    if step.claim.starts_with("lemma1") || step.claim.starts_with("lemma3") {
        let at = step.at.as_deref().map_or(String::new(), |at| format!(" at {}", verbatim(at)));
        let design = if step.design == "adaptive" { ", in use" } else { "" };
        label = format!("{label}{at}{design}");
    } else if several {
        label = format!("{label}, {}", verbatim(&step.design));
    }
    Bar {
        label,
        value: 1.0 - worst.coverage.unwrap_or(1.0),
        interval: worst.ci_low.zip(worst.ci_high).map(|(low, high)| (1.0 - high, 1.0 - low)),
        budget: worst.required.map(|required| 1.0 - required).filter(|budget| *budget > 0.0),
        status: match worst.verdict.as_str() {
            "refuted" => Status::Refuted,
            "confirmed" => Status::Confirmed,
            _ => Status::Undecided,
        },
    }
}
