//! Coverage against t, as far as it is known, with limits that hold at every number of trials at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use analysis::figures::{
    Axis, Chart, Figure, Lines, Look, Panel, Point, Reference, Series, verbatim,
};
use proto::v1::{Family, RowStatus, StudyStatus};
use serde::Serialize;
use theory::evidence::{Counts, Mixture, confidence_sequence};

use super::groups::{by_numbers, group};
use super::verdicts::{Verdict, coverage};

/// Panels of one view; of more, those with refutations come first.
const MOST_PANELS: usize = 12;

/// The width of a panel in points: that of a phone's screen.
const WIDTH: f64 = 262.0;

/// What a reader can choose to see: a claim at one of its points, in cells that differ in N alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct View {
    claim: String,
    at: Option<String>,
    group: String,
}

impl View {
    /// Whether a row of a cell with this label is in it.
    pub(super) fn shows(&self, row: &RowStatus, label: &str) -> bool {
        self.claim == row.claim && self.at == row.at && self.group == group(label).0
    }
}

/// All views of a study, in the order of their names.
pub(super) fn views(status: &StudyStatus) -> Vec<View> {
    let groups: HashMap<u64, String> =
        status.cells.iter().map(|cell| (cell.cell, group(&cell.label).0)).collect();
    let chosen: BTreeSet<(&str, Option<&str>, &str)> = status
        .rows
        .iter()
        .filter_map(|row| {
            let group = groups.get(&row.cell)?;
            Some((row.claim.as_str(), row.at.as_deref(), group.as_str()))
        })
        .collect();
    let mut views: Vec<View> = chosen
        .into_iter()
        .map(|(claim, at, group)| View {
            claim: claim.to_owned(),
            at: at.map(str::to_owned),
            group: group.to_owned(),
        })
        .collect();
    views.sort_by(|one, other| {
        let names = (&one.claim, &one.at).cmp(&(&other.claim, &other.at));
        names.then_with(|| by_numbers(&one.group, &other.group))
    });
    views
}

/// A view as it is sent to the page.
#[derive(Serialize)]
pub(super) struct Shown<'a> {
    #[serde(flatten)]
    view: &'a View,
    statement: &'static str,
    panels: Vec<ShownPanel>,
    /// Panels for which there is no room.
    more: usize,
}

#[derive(Serialize)]
struct ShownPanel {
    title: String,
    forms: Vec<ShownForm>,
    svg: String,
}

/// At which t the claim in one form is refuted, confirmed, or neither.
#[derive(Default, Serialize)]
struct ShownForm {
    form: String,
    refuted: Vec<u32>,
    confirmed: Vec<u32>,
    open: Vec<u32>,
}

type Judged<'a> = (&'a RowStatus, Option<Verdict>);

/// Draws a view.
pub(super) fn show<'a>(
    status: &StudyStatus,
    verdicts: &[Option<Verdict>],
    view: &'a View,
) -> Shown<'a> {
    let labels: HashMap<u64, (String, Option<u64>)> =
        status.cells.iter().map(|cell| (cell.cell, group(&cell.label))).collect();
    let mut places: BTreeMap<(Option<u64>, u64), Vec<Judged<'_>>> = BTreeMap::new();
    for (row, &verdict) in status.rows.iter().zip(verdicts) {
        if row.claim != view.claim || row.at != view.at {
            continue;
        }
        if let Some((group, n)) = labels.get(&row.cell)
            && *group == view.group
        {
            places.entry((*n, row.delta.to_bits())).or_default().push((row, verdict));
        }
    }
    let family = status.family.unwrap_or_default();
    let more = places.len().saturating_sub(MOST_PANELS);
    let panels = fitting(places).into_iter().map(|(n, rows)| panel(&family, view, n, rows));
    Shown {
        view,
        statement: theory::claims::find(&view.claim).map_or("", |claim| claim.statement),
        panels: panels.collect(),
        more,
    }
}

/// As many as there is room for, in their order.
fn fitting(
    places: BTreeMap<(Option<u64>, u64), Vec<Judged<'_>>>,
) -> Vec<(Option<u64>, Vec<Judged<'_>>)> {
    let mut all: Vec<(usize, (Option<u64>, Vec<_>))> =
        places.into_iter().map(|((n, _), rows)| (n, rows)).enumerate().collect();
    if all.len() > MOST_PANELS {
        let refuted = |rows: &[Judged<'_>]| {
            rows.iter().any(|(_, verdict)| *verdict == Some(Verdict::Refuted))
        };
        all.sort_by_key(|(_, (_, rows))| !refuted(rows));
        all.truncate(MOST_PANELS);
        all.sort_by_key(|(place, _)| *place);
    }
    all.into_iter().map(|(_, panel)| panel).collect()
}

fn panel(family: &Family, view: &View, n: Option<u64>, mut rows: Vec<Judged<'_>>) -> ShownPanel {
    rows.sort_by_key(|(row, _)| row.t);
    let delta = rows.first().map_or(0.0, |(row, _)| row.delta);
    let title = n.map_or(format!("δ = {delta}"), |n| format!("N = {n}, δ = {delta}"));
    let mut forms: BTreeMap<&str, (Vec<Point>, ShownForm)> = BTreeMap::new();
    let mut required: Vec<f64> = Vec::new();
    for (row, verdict) in &rows {
        let form = row.form.as_deref().unwrap_or("measured");
        let (points, shown) = forms.entry(form).or_default();
        points.extend(point(family, row));
        match verdict {
            Some(Verdict::Refuted) => shown.refuted.push(row.t),
            Some(Verdict::Confirmed) => shown.confirmed.push(row.t),
            None => shown.open.push(row.t),
        }
        if !required.contains(&row.required) {
            required.push(row.required);
        }
    }
    let caption = format!("{} in {}, {title}", view.claim, view.group);
    let series = |(form, (points, _)): (&&str, &(Vec<Point>, ShownForm))| Series {
        name: verbatim(form),
        look: Look::LineAndMarkers,
        points: points.clone(),
    };
    let reference = |&y: &f64| Reference::Horizontal { y, label: "required".into() };
    let chart = Panel {
        title: String::new(),
        x: Axis::log("t"),
        y: Axis::linear("coverage"),
        series: forms.iter().map(series).collect(),
        references: required.iter().map(reference).collect(),
    };
    let figure = Figure {
        id: "coverage".into(),
        title: format!("Coverage of {} against t", view.claim),
        caption,
        chart: Chart::Lines(Lines { panels: vec![chart], columns: 1, shared: false }),
    };
    let forms =
        forms.into_iter().map(|(form, (_, shown))| ShownForm { form: form.to_owned(), ..shown });
    ShownPanel { title, forms: forms.collect(), svg: figure.svg_within(WIDTH) }
}

/// A row's coverage with its limits: below by the violations with one end of rho's bracket, above by those
/// with the other.
fn point(family: &Family, row: &RowStatus) -> Option<Point> {
    let mixture = Mixture::new(1.0 - row.required, family.alpha, family.n_opt);
    let rates = |violations| {
        let counts = Counts { trials: row.trials, violations, failures: 0 };
        confidence_sequence(counts, &mixture, family.alpha)
    };
    let low = 1.0 - rates(row.violations_confirming).high;
    let high = 1.0 - rates(row.violations).low;
    Some(Point::with_interval(f64::from(row.t), coverage(row)?, low, high))
}

#[cfg(test)]
mod tests {
    use super::super::verdicts::tests::{row, status};
    use super::*;

    #[test]
    fn a_view_has_a_panel_for_every_n_and_delta() {
        let mut two = status(vec![row(5, 9.0, 0.0), row(1, 0.0, 0.0), row(1, 0.0, 9.0)], 1);
        two.rows[2].delta = 0.05;
        two.rows[2].form = Some("sharp".into());
        let views = views(&two);
        assert_eq!(views.len(), 1);
        assert!(views[0].shows(&two.rows[0], "fixed design, N = 7"));
        let verdicts = [Some(Verdict::Refuted), None, Some(Verdict::Confirmed)];
        let shown = show(&two, &verdicts, &views[0]);
        let titles: Vec<&str> = shown.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["N = 100, δ = 0.05", "N = 100, δ = 0.1"]);
        let printed = &shown.panels[1].forms[0];
        assert_eq!((&printed.refuted[..], &printed.open[..]), (&[5][..], &[1][..]));
        assert!(shown.panels[0].svg.contains(">sharp</text>"), "{}", shown.panels[0].svg);
        assert!(!shown.statement.is_empty());
    }

    #[test]
    fn limits_are_around_the_coverage_and_know_both_ends_of_rho() {
        let family = Family { alpha: 0.05, ln_evidence: 3.0, n_opt: 2000.0, rows: 1 };
        let alone = point(&family, &row(1, 0.0, 0.0)).unwrap();
        let (low, high) = alone.interval.unwrap();
        assert!(low > 0.6 && low < 0.8 && high > 0.8 && high < 0.95, "{low} {high}");
        let open = RowStatus { violations_confirming: 60, ..row(1, 0.0, 0.0) };
        let (lower, same) = point(&family, &open).unwrap().interval.unwrap();
        assert!(lower < 0.4 && same == high);
        assert!(
            point(
                &family,
                &RowStatus { trials: 0, violations: 0, violations_confirming: 0, ..open }
            )
            .is_none()
        );
    }

    #[test]
    fn refutations_find_room() {
        let mut many = status((1..40).map(|t| row(t, 0.0, 0.0)).collect(), 1);
        for (place, row) in many.rows.iter_mut().enumerate() {
            row.delta = 0.01 * (place + 1) as f64;
        }
        let mut verdicts = vec![None; many.rows.len()];
        verdicts[38] = Some(Verdict::Refuted);
        let views = views(&many);
        let shown = show(&many, &verdicts, &views[0]);
        assert_eq!((shown.panels.len(), shown.more), (MOST_PANELS, 39 - MOST_PANELS));
        assert_eq!(shown.panels.last().unwrap().forms[0].refuted, [39]);
    }
}
