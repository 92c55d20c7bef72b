//! The three sentences that a reader needs: what was tested, what is refuted, what is confirmed and
//! whether that says anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::Analysis;
use crate::verdicts::VerdictRow;
use crate::words;

/// The three sentences.
pub(crate) fn sentences(analysis: &Analysis) -> [String; 3] {
    [tested(analysis), refuted(analysis), confirmed(analysis)]
}

fn tested(analysis: &Analysis) -> String {
    let dataset = &analysis.dataset;
    let rows = analysis.verdicts.iter().filter(|row| row.is_tested());
    let claims: BTreeSet<&str> = rows.clone().map(|row| row.claim.as_str()).collect();
    let priors = match dataset.priors.as_slice() {
        [prior] => format!("a GP prior with {}", words::prior(prior)),
        priors => format!("{} GP priors", priors.len()),
    };
    let list = |name: &str, values: Vec<String>| match values.as_slice() {
        [] => String::new(),
        [one] => format!(", {name} = {one}"),
        [first, .., last] if values.len() > 6 => format!(", {name} from {first} to {last}"),
        _ => format!(", {name} in {{{}}}", values.join(", ")),
    };
    let grid = &dataset.study.grid;
    format!(
        "{} claims were tested at {} places with {} trials on {priors}{}{}{}; the probability of any wrong verdict is at most {}.",
        claims.len(),
        words::count(rows.count() as u64),
        words::count(dataset.manifest.trials),
        list("N", grid.n.iter().map(u64::to_string).collect()),
        list("T", grid.t.iter().map(u32::to_string).collect()),
        list("δ", grid.delta.iter().map(|delta| delta.get().to_string()).collect()),
        dataset.manifest.family.alpha
    )
}

/// A statement in one form, and the rows that have a verdict.
type Groups<'a> = BTreeMap<(usize, String), Vec<&'a VerdictRow>>;

fn groups<'a>(analysis: &'a Analysis, verdict: &str) -> Groups<'a> {
    let mut order: Vec<&str> = Vec::new();
    let mut groups = Groups::new();
    for row in analysis.verdicts.iter().filter(|row| row.is_tested()) {
        if !order.contains(&row.claim.as_str()) {
            order.push(&row.claim);
        }
        if row.verdict != verdict {
            continue;
        }
        let place = order.iter().position(|known| *known == row.claim).unwrap_or(0);
        let form = row.constants.as_deref().map_or(String::new(), |form| format!(" ({form})"));
        groups.entry((place, format!("`{}`{form}", row.claim))).or_default().push(row);
    }
    groups
}

fn refuted(analysis: &Analysis) -> String {
    let groups = groups(analysis, "refuted");
    if groups.is_empty() {
        return "Nothing is refuted.".to_owned();
    }
    let parts: Vec<String> = groups
        .iter()
        .map(|((_, name), rows)| {
            let worst = rows
                .iter()
                .filter_map(|row| {
                    Some((row.coverage? - row.required?, row.coverage?, row.required?))
                })
                .min_by(|a, b| a.0.total_cmp(&b.0));
            let worst = worst.map_or(String::new(), |(_, coverage, required)| {
                format!(
                    ", down to {} where {} is claimed",
                    words::percent(coverage),
                    words::percent(required)
                )
            });
            format!("{name} {}{worst}", at(analysis, rows))
        })
        .collect();
    format!("Refuted: {}.", parts.join("; "))
}

fn confirmed(analysis: &Analysis) -> String {
    let groups = groups(analysis, "confirmed");
    if groups.is_empty() {
        return "Nothing is confirmed: more trials may decide.".to_owned();
    }
    let whole: Vec<&String> = groups.keys().map(|(_, name)| name).collect();
    let rows: Vec<&&VerdictRow> = groups.values().flatten().collect();
    let bounds: Vec<&&&VerdictRow> = rows.iter().filter(|row| row.vacuous.is_some()).collect();
    let vacuous = bounds.iter().filter(|row| row.vacuous == Some(true)).count();
    let remark = match (bounds.len(), vacuous) {
        (0, _) => String::new(),
        (all, 0) => format!(" None of the {all} confirmed regret bounds is vacuous."),
        (all, some) => format!(
            " Of the {all} confirmed regret bounds {some} are vacuous: even the worst point of the domain satisfies them."
        ),
    };
    let names: Vec<String> = whole.iter().map(|name| (*name).clone()).collect();
    let undecided = analysis.verdicts.iter().filter(|row| row.verdict == "undecided").count();
    let open = if undecided == 0 {
        String::new()
    } else {
        format!(" {} places are undecided.", words::count(undecided as u64))
    };
    format!(
        "Confirmed at {} places: {}.{remark}{open}",
        words::count(rows.len() as u64),
        names.join(", ")
    )
}

/// Where rows lie: all of a claim's places, or their t.
fn at(analysis: &Analysis, rows: &[&VerdictRow]) -> String {
    let Some(first) = rows.first() else { return String::new() };
    let all = analysis.verdicts.iter().filter(|row| {
        row.is_tested() && row.claim == first.claim && row.constants == first.constants
    });
    let total = all.count();
    let checkpoints: BTreeSet<u32> = rows.iter().filter_map(|row| row.t).collect();
    let list: Vec<String> = checkpoints.iter().map(u32::to_string).collect();
    let t = match list.as_slice() {
        [] => String::new(),
        [first, .., last] if list.len() > 6 => format!(" (t from {first} to {last})"),
        _ => format!(" (t = {})", list.join(", ")),
    };
    format!("at {} of {} places{t}", rows.len(), total)
}
