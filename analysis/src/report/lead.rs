//! The three sentences that a reader needs: what was tested, what is refuted, what is confirmed and
//! whether that says anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::Analysis;
use crate::dataset::Dataset;
use crate::description::Normality;
use crate::verdicts::{self, Kind, VerdictRow};
use crate::words;

/// The three sentences; more than one where steps and uses have to be told from conclusions.
pub(crate) fn sentences(analysis: &Analysis) -> [String; 3] {
    [tested(analysis), refuted(analysis), confirmed(analysis)]
}

fn tested(analysis: &Analysis) -> String {
    let dataset = &analysis.dataset;
    let rows = analysis.verdicts.iter().filter(|row| row.is_tested());
    let claims: BTreeSet<&str> = rows.clone().map(|row| row.claim.as_str()).collect();
    if claims.is_empty()
        && let Some(why) = analysis.verdicts.iter().find_map(|row| row.reason.as_deref())
    {
        let on = dataset.priors.iter().map(words::prior).collect::<Vec<_>>().join("; ");
        return format!(
            "No claim of the theory is tested by these {} trials ({on}), because {why}; methods are compared.{}",
            words::count(dataset.manifest.trials),
            normality(analysis)
        );
    }
    let priors = match dataset.priors.as_slice() {
        [prior] if prior.spec["setting"] == "data" => {
            format!("real data ({})", words::prior(prior))
        }
        [prior] => format!("a GP prior with {}", words::prior(prior)),
        priors => format!("{} GP priors", priors.len()),
    };
    let list = |name: &str, values: Vec<String>| match values.as_slice() {
        [] => String::new(),
        [one] => format!(", {name} = {one}"),
        [first, .., last] if values.len() > 7 => format!(", {name} from {first} to {last}"),
        _ => format!(", {name} in {{{}}}", values.join(", ")),
    };
    let grid = &dataset.study.grid;
    format!(
        "{} claims were tested at {} places with {} trials on {priors}{}{}{}; the probability of any wrong verdict \
         is at most {}.",
        claims.len(),
        words::count(rows.count() as u64),
        words::count(dataset.manifest.trials),
        list("N", grid.n.iter().map(u64::to_string).collect()),
        list("T", grid.t.iter().map(u32::to_string).collect()),
        list("δ", grid.delta.iter().map(|delta| delta.get().to_string()).collect()),
        dataset.manifest.family.alpha
    )
}

/// How far real data are from what the theory assumes.
fn normality(analysis: &Analysis) -> String {
    let found = analysis.dataset.priors.iter().find_map(|prior| prior.normality);
    let Some(Normality { columns, varying, rejected }) = found else { return String::new() };
    format!(
        " Of the data's {columns} columns {varying} vary, and a Jarque-Bera test at 1 % finds {rejected} of these not normal."
    )
}

/// Statements in one form with all their rows, in the order in which they come.
fn conclusions(analysis: &Analysis) -> Vec<(String, Vec<&VerdictRow>)> {
    let mut order: Vec<String> = Vec::new();
    let mut groups: BTreeMap<usize, Vec<&VerdictRow>> = BTreeMap::new();
    for row in analysis.verdicts.iter().filter(|row| row.is_tested()) {
        if row.kind() != Kind::Conclusion {
            continue;
        }
        let form = row.constants.as_deref().map_or(String::new(), |form| format!(" ({form})"));
        let name = format!("`{}`{form}", row.claim);
        let place = order.iter().position(|known| *known == name).unwrap_or_else(|| {
            order.push(name);
            order.len() - 1
        });
        groups.entry(place).or_default().push(row);
    }
    order.into_iter().zip(groups.into_values()).collect()
}

fn refuted(analysis: &Analysis) -> String {
    let mut parts = Vec::new();
    for (name, rows) in conclusions(analysis) {
        let refuted: Vec<&&VerdictRow> =
            rows.iter().filter(|row| row.verdict == "refuted").collect();
        if !refuted.is_empty() {
            parts.push(format!("{name} {}{}", at(&refuted, rows.len()), lowest(&refuted)));
        }
    }
    let unevaluated = unevaluated(analysis);
    let mut text = match (parts.is_empty(), unevaluated.is_empty()) {
        (true, true) => "No statement is refuted under its own hypotheses.".to_owned(),
        (true, false) => {
            "No statement that can be evaluated is refuted under its own hypotheses.".to_owned()
        }
        (false, _) => format!("Refuted: {}.", parts.join("; ")),
    };
    text += &unevaluated;
    text += &before(analysis);
    text += &exploratory(analysis);
    text += &failing_steps(analysis);
    let uses: Vec<&VerdictRow> =
        analysis.verdicts.iter().filter(|row| row.is_tested() && row.kind() == Kind::Use).collect();
    let wrong = uses.iter().filter(|row| row.verdict == "refuted").count();
    if wrong > 0 {
        _ = write!(
            text,
            " At points that the method chose, where the theorem uses it, Lemma 1 is refuted at {} of {} places.",
            words::count(wrong as u64),
            words::count(uses.len() as u64)
        );
    }
    text
}

/// Claims without verdicts because they cannot be evaluated, those of earlier families too.
fn unevaluated(analysis: &Analysis) -> String {
    let rows = analysis.verdicts.iter().filter(|row| row.unevaluated && !row.exploratory);
    let mut claims: BTreeMap<String, (u64, &str)> = BTreeMap::new();
    for row in rows {
        let reason = row.reason.as_deref().unwrap_or_default();
        claims.entry(row.name()).or_insert((0, reason)).0 += 1;
    }
    if claims.is_empty() {
        return String::new();
    }
    let all: u64 = claims.values().map(|(rows, _)| rows).sum();
    let list: Vec<String> = claims
        .iter()
        .map(|(claim, (rows, reason))| format!("`{claim}` at {}: {reason}", words::count(*rows)))
        .collect();
    format!(
        " {} rows have no verdict, whatever they said before, because their claim cannot be evaluated ({}).",
        words::count(all),
        list.join("; ")
    )
}

/// What earlier families refuted before their claims were changed.
fn before(analysis: &Analysis) -> String {
    let mut text = lost(&analysis.dataset);
    let mut seen = BTreeSet::new();
    for earlier in &analysis.dataset.earlier {
        let digest = earlier.family.digest.to_string();
        // A family that came back has its rows together.
        if !seen.insert(digest.clone()) {
            continue;
        }
        let rows = analysis.verdicts.iter().filter(|row| row.family.as_ref() == Some(&digest));
        let mut claims: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for row in rows.filter(|row| row.verdict != "not-applicable") {
            let form = row.constants.as_deref().map_or(String::new(), |form| format!(" ({form})"));
            let counts = claims.entry(format!("`{}`{form}", row.claim)).or_default();
            counts.0 += usize::from(row.verdict == "refuted");
            counts.1 += 1;
        }
        let refuted = claims.iter().filter(|(_, (refuted, _))| *refuted > 0);
        let refuted: Vec<String> = refuted
            .map(|(claim, (refuted, all))| format!("{claim} at {refuted} of {all} places"))
            .collect();
        if !refuted.is_empty() {
            _ = write!(
                text,
                " Refuted before the claims were changed (family {}): {}.",
                &digest[..12],
                refuted.join("; ")
            );
        }
    }
    text
}

/// A summary has counts of the present rows alone.
fn lost(dataset: &Dataset) -> String {
    let rows = if dataset.has_all_records() { 0 } else { verdicts::ended(dataset) };
    if rows == 0 {
        return String::new();
    }
    format!(
        " {} rows that were planned before the claims were changed are not shown, refuted or not: this is a \
         summary, which keeps no counts of them. Their verdicts are in the verdicts.json from before the change.",
        words::count(rows)
    )
}

/// Rows that were written down after trials existed.
fn exploratory(analysis: &Analysis) -> String {
    let rows = analysis.verdicts.iter().filter(|row| row.exploratory);
    let rows: Vec<&VerdictRow> = rows.filter(|row| row.verdict != "not-applicable").collect();
    if rows.is_empty() {
        return String::new();
    }
    let count = |verdict: &str| rows.iter().filter(|row| row.verdict == verdict).count();
    format!(
        " {} rows are exploratory, because they were written down after trials existed, and count for nothing \
         above: on all trials {} of them are refuted and {} confirmed.",
        words::count(rows.len() as u64),
        words::count(count("refuted") as u64),
        words::count(count("confirmed") as u64)
    )
}

fn failing_steps(analysis: &Analysis) -> String {
    let mut under: BTreeSet<&str> = BTreeSet::new();
    let mut alone: BTreeSet<&str> = BTreeSet::new();
    for step in analysis.audits.iter().flat_map(|audit| &audit.steps) {
        if !step.claim.contains("/step.") {
            continue;
        }
        if step.refuted_under_conclusion > 0 {
            under.insert(&step.claim);
        } else if step.refuted > 0 {
            alone.insert(&step.claim);
        }
    }
    alone.retain(|step| !under.contains(step));
    let list = |steps: &BTreeSet<&str>| {
        steps.iter().map(|step| format!("`{step}`")).collect::<Vec<_>>().join(", ")
    };
    let mut text = String::new();
    if !under.is_empty() {
        _ = write!(
            text,
            " Steps of proofs that fail although their conclusion holds: {}.",
            list(&under)
        );
    }
    if !alone.is_empty() {
        _ = write!(text, " Other steps that fail: {}.", list(&alone));
    }
    text
}

fn confirmed(analysis: &Analysis) -> String {
    let mut everywhere = Vec::new();
    let mut somewhere = Vec::new();
    let mut bounds = (0, 0);
    for (name, rows) in conclusions(analysis) {
        let confirmed: Vec<&&VerdictRow> =
            rows.iter().filter(|row| row.verdict == "confirmed").collect();
        let vacuous = |row: &&&&VerdictRow| row.vacuous == Some(true);
        bounds.0 += confirmed.iter().filter(|row| row.vacuous.is_some()).count();
        bounds.1 += confirmed.iter().filter(vacuous).count();
        if confirmed.len() == rows.len() {
            everywhere.push(name);
        } else if !confirmed.is_empty() {
            somewhere.push(format!("{name} {}", at(&confirmed, rows.len())));
        }
    }
    let mut text = match (everywhere.is_empty(), somewhere.is_empty()) {
        (true, true) => "No conclusion is confirmed.".to_owned(),
        (true, false) => format!("Confirmed: {}.", somewhere.join("; ")),
        (false, true) => format!("Confirmed everywhere: {}.", everywhere.join(", ")),
        (false, false) => format!(
            "Confirmed everywhere: {}; in part: {}.",
            everywhere.join(", "),
            somewhere.join("; ")
        ),
    };
    match bounds {
        (0, _) => {}
        (all, 0) => _ = write!(text, " None of the {all} confirmed regret bounds is vacuous."),
        (all, some) => {
            _ = write!(
                text,
                " Of the {all} confirmed regret bounds, {some} are vacuous: even the worst point of the domain satisfies them."
            );
        }
    }
    text
}

/// Where rows lie, among all places of a statement.
fn at(rows: &[&&VerdictRow], all: usize) -> String {
    if rows.len() == all {
        return if all == 1 {
            "at its one place".to_owned()
        } else {
            format!("at all {all} places")
        };
    }
    let checkpoints: BTreeSet<u32> = rows.iter().filter_map(|row| row.t).collect();
    let list: Vec<String> = checkpoints.iter().map(u32::to_string).collect();
    let t = match list.as_slice() {
        [] => String::new(),
        [first, .., last] if list.len() > 7 => format!(" (t from {first} to {last})"),
        _ => format!(" (t = {})", list.join(", ")),
    };
    format!("at {} of {all} places{t}", rows.len())
}

/// The lowest coverage, relative to what is claimed.
fn lowest(rows: &[&&VerdictRow]) -> String {
    let worst = rows
        .iter()
        .filter_map(|row| Some((row.coverage? - row.required?, row.coverage?, row.required?)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    worst.map_or(String::new(), |(_, coverage, required)| {
        format!(
            ", down to {} where {} is claimed",
            words::percent(coverage),
            words::percent(required)
        )
    })
}
