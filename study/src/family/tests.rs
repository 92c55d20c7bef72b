//! What was recorded of earlier families, and which rows are planned for which replicates.

use std::slice::from_ref;

use super::*;
use crate::prior::Files;

const STUDY: &str = r#"
[study]
name = "small"
seed = 7
replicates = 12

[prior]
domain = { kind = "grid", points = 20, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
noise_variance = 0.01

[grid]
N = [60]
T = [1, 5]
delta = [0.1]
design = ["fixed"]

[claims]
test = ["lemma1.mean", "mine"]

[[claim]]
id = "mine"
holds = "y <= 1"
budget = "delta"
"#;

fn plan(text: &str) -> Plan {
    Plan::new(Study::parse("s.toml", text).unwrap(), &Files::default()).unwrap()
}

fn drawn(plan: &Plan, replicates: u64) -> BTreeMap<String, u64> {
    plan.cells.iter().map(|cell| (cell.id.to_string(), replicates)).collect()
}

#[test]
fn whatever_changes_a_row_changes_the_digest() {
    let family = Family::of(&plan(STUDY));
    for (from, to) in [
        ("y <= 1", "y <= 2"),
        ("budget = \"delta\"", "budget = \"delta/2\""),
        ("budget = \"delta\"", "budget = \"delta\"\nquantifier = \"all t\""),
        ("delta = [0.1]", "delta = [0.1, 0.2]"),
        ("T = [1, 5]", "T = [1, 3, 5]"),
        ("lemma1.mean", "lemma1.variance"),
    ] {
        let changed = STUDY.replacen(from, to, 1);
        assert_ne!(changed, STUDY);
        assert_ne!(Family::of(&plan(&changed)).digest, family.digest, "{to}");
    }
    // Comments, replicates and names of files are nothing that is tested.
    let same = STUDY.replace("replicates = 12", "replicates = 40 # more");
    assert_eq!(Family::of(&plan(&same)), family);
}

#[test]
fn a_change_is_recorded_once_and_only_where_trials_exist() {
    let (one, two) = (plan(STUDY), plan(&STUDY.replace("y <= 1", "y <= 2")));
    assert_eq!(replaced(vec![], &one, &one, drawn(&one, 12)), vec![]);
    assert_eq!(replaced(vec![], &one, &two, BTreeMap::new()), vec![]);
    let changed = replaced(vec![], &one, &two, drawn(&one, 12));
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].family, Family::of(&one));
    assert_eq!(changed[0].study(&two.study).claims, one.study.claims);
    // What was computed anew since has been seen all the same.
    let back = replaced(changed.clone(), &two, &one, drawn(&one, 5));
    assert_eq!(back[1].replicates, drawn(&one, 12));
    assert_eq!(decode(&encode(&back)).unwrap(), back);
    assert_eq!(decode(&encode(&[])).unwrap(), []);
    assert!(decode("[{}]").is_err());
}

#[test]
fn a_ledger_that_was_lost_loses_no_family() {
    let (one, two) = (plan(STUDY), plan(&STUDY.replace("y <= 1", "y <= 2")));
    let [was, is] = [&one, &two].map(|plan| EarlierFamily::new(plan, drawn(plan, 12)));
    let now = |plan: &Plan| Family::of(plan);
    let kept = |sealed: &[EarlierFamily], last: &EarlierFamily, known: &[EarlierFamily], plan| {
        continued(sealed.to_vec(), last.clone(), known, &now(plan))
    };
    let (was_alone, fewer) = ([was.clone()], EarlierFamily::new(&one, drawn(&one, 3)));
    // Nothing changed; the ledger saw the change; it saw two; it saw none of them.
    assert_eq!(kept(&[], &was, &[], &one), []);
    assert_eq!(kept(&[], &was, &was_alone, &two), was_alone);
    let both = [was.clone(), is.clone()];
    assert_eq!(kept(&[], &was, &both, &one), both);
    assert_eq!(kept(&both[..1], &is, &both, &one), both);
    assert_eq!(kept(&[], &was, &[], &two), was_alone);
    assert_eq!(kept(&both[..1], &is, &[], &one), both);
    assert_eq!(kept(&both[..1], &is, from_ref(&is), &one), both);
    assert_eq!(kept(&both, &was, from_ref(&is), &one), both);
    // Nor a replicate: a ledger that was rebuilt may know of fewer.
    assert_eq!(kept(&[], &was, from_ref(&fewer), &two), both[..1]);
    assert_eq!(kept(&both[..1], &is, from_ref(&fewer), &two), both[..1]);
}

#[test]
fn a_row_counts_from_the_family_that_it_joined_last() {
    let (one, two) = (plan(STUDY), plan(&STUDY.replace("y <= 1", "y <= 2")));
    let sequence = [&one, &two, &one].map(|plan| (Family::of(plan), &plan.study));
    let cell = &one.cells[0].cell;
    let rows = Membership::new(sequence, cell);
    let own = |plan: &Plan| rows::own_rows(&plan.study, cell)[0].key(&plan.study);
    assert_eq!(rows.joined(2, &own(&one)), 2, "changing back restores nothing");
    assert_eq!((rows.joined(1, &own(&two)), rows.joined(0, &own(&one))), (1, 0));
    assert!(!rows.has(1, &own(&one)));
    let kept = rows::rows(&one.study, cell)[0].key();
    assert_eq!(rows.joined(2, &kept), 0, "the other rows stay planned");
    // Another level weighs evidence otherwise: every row begins anew.
    let other = plan(&STUDY.replace("seed = 7", "seed = 7\nalpha = 0.2"));
    let rows = Membership::new([&one, &other].map(|p| (Family::of(p), &p.study)), cell);
    assert_eq!(rows.joined(1, &kept), 1);
}

#[test]
fn rows_of_a_level_that_is_added_are_exploratory_where_trials_exist() {
    let one = plan(STUDY);
    let both = plan(&STUDY.replace("delta = [0.1]", "delta = [0.1, 0.2]"));
    let earlier = |replicates| [EarlierFamily::new(&one, drawn(&one, replicates))];
    let found = exploratory(&Changes::of(&earlier(12), &both));
    let cell = &both.cells[0];
    let new = |(_, row): &(usize, rows::Row)| row.delta.get() == 0.2;
    let listed = rows::rows(&both.study, &cell.cell).into_iter().enumerate();
    let expected: BTreeSet<usize> = listed.filter(new).map(|(place, _)| place).collect();
    assert!(!expected.is_empty());
    assert_eq!(found[&cell.id], expected);
    assert_eq!(Changes::of(&earlier(0), &both).late, BTreeMap::new());
    assert_eq!(Changes::of(&[], &both), Changes::default());
}

/// Narrowing a family to its best rows must not lower their thresholds.
#[test]
fn what_was_dropped_is_counted_as_long_as_other_rows_go_on() {
    let all = plan(&STUDY.replace("\"mine\"]", "\"mine\", \"lemma1.variance\"]"));
    let few = plan(STUDY);
    let gone = all.rows - few.rows;
    assert!(gone > 0);
    let dropped = |families: &[(&Plan, u64)], now: &Plan| {
        let earlier = |&(plan, count): &(&Plan, u64)| EarlierFamily::new(plan, drawn(plan, count));
        let earlier: Vec<_> = families.iter().map(earlier).collect();
        Changes::of(&earlier, now).dropped
    };
    assert_eq!(dropped(&[(&all, 12)], &few), gone);
    // They were planned in cells without trials, too, and count once.
    assert_eq!(dropped(&[(&all, 0)], &few), gone);
    assert_eq!(dropped(&[(&all, 12), (&few, 12), (&all, 12)], &few), gone);
    assert_eq!(dropped(&[(&all, 12), (&few, 12)], &all), 0);
    assert_eq!(dropped(&[(&few, 12)], &all), 0);
    // They were never planned in a cell that was added since.
    let grown = plan(&STUDY.replace("N = [60]", "N = [60, 90]"));
    assert_eq!(dropped(&[(&all, 12)], &grown), gone);
    // Another level weighs all evidence anew, so that no row goes on.
    let level = plan(&STUDY.replace("seed = 7", "seed = 7\nalpha = 0.2"));
    assert_eq!(dropped(&[(&all, 12)], &level), 0);
    assert_eq!(dropped(&[(&all, 12), (&level, 12)], &few), 0);
}

#[test]
fn a_claim_about_all_t_is_another_one_with_another_t() {
    let late = |claim: &str| {
        let text = STUDY.replace("budget = \"delta\"", claim);
        let (one, more) = (plan(&text), plan(&text.replace("T = [1, 5]", "T = [1, 3, 5]")));
        let cell = &one.cells[0].cell;
        let families = [&one, &more].map(|plan| (Family::of(plan), &plan.study));
        let members = Membership::new(families, cell);
        let own = rows::own_rows(&more.study, cell);
        let joined = own.iter().map(|row| members.joined(1, &row.key(&more.study)));
        joined.collect::<Vec<_>>()
    };
    assert_eq!(late("budget = \"delta\"\nquantifier = \"all t\""), [1]);
    assert_eq!(late("budget = \"delta\""), [0, 1, 0], "only the new t is new");
}

#[test]
fn white_space_does_not_make_another_claim() {
    let of = |holds: &str| {
        let plan = plan(&STUDY.replace("\"y <= 1\"", &format!("'''{holds}'''")));
        rows::own_rows(&plan.study, &plan.cells[0].cell)[0].key(&plan.study)
    };
    assert_eq!(of("y <= 1"), of("  y\n\t <=  1 "));
    for (one, other) in [
        ("y <= 1", "y<=1"),
        ("status = 'a  b' AND y <= 1", "status = 'a b' AND y <= 1"),
        ("y <= 1 -- x\n AND t > 1", "y <= 1 -- x AND t > 1"),
    ] {
        assert_ne!(of(one), of(other));
    }
}

#[test]
fn what_a_change_will_do_is_foreseen() {
    let (one, two) = (plan(STUDY), plan(&STUDY.replace("y <= 1", "y <= 2")));
    let preview =
        |last: &Plan, now: &Plan, count| Preview::of(&last.study, now, &drawn(last, count));
    assert_eq!(preview(&one, &two, 12), Preview { exploratory: 2, dropped: 2 });
    assert_eq!(preview(&one, &two, 0), Preview::default());
    assert_eq!(preview(&one, &one, 12), Preview::default());
    let level = plan(&STUDY.replace("seed = 7", "seed = 7\nalpha = 0.2"));
    let all = Preview { exploratory: level.rows, dropped: 0 };
    assert_eq!(preview(&one, &level, 12), all);
}

/// Records of every step take the place of those of checkpoints, but what was seen has been seen.
#[test]
fn trials_that_are_computed_anew_are_remembered() {
    let steps = STUDY.replace("seed = 7", "seed = 7\ndetail = \"steps\"");
    let (one, all) = (plan(STUDY), plan(&steps));
    assert!(Family::of(&one).is_same(&Family::of(&all)));
    assert_eq!(replaced(vec![], &one, &all, BTreeMap::new()), vec![]);
    let seen = replaced(vec![], &one, &all, drawn(&one, 12));
    assert_eq!(seen.len(), 1);
    assert_eq!(Changes::of(&seen, &all), Changes::default(), "nothing is marked");
    let reworded = plan(&steps.replace("y <= 1", "y <= 2"));
    let seen = replaced(seen, &all, &reworded, drawn(&all, 3));
    assert_eq!(seen[1].replicates, drawn(&one, 12));
    assert_eq!(Changes::of(&seen, &reworded).late[&one.cells[0].id].own, 12);
}

#[test]
fn a_record_names_all_cells_that_were_planned() {
    let one = plan(&STUDY.replace("N = [60]", "N = [60, 90]"));
    let two = plan(&STUDY.replace("N = [60]", "N = [60, 90]").replace("y <= 1", "y <= 2"));
    let first = one.cells[0].id.to_string();
    let existed = BTreeMap::from([(first.clone(), 12)]);
    let record = replaced(vec![], &one, &two, existed).remove(0).replicates;
    assert_eq!((record.len(), record[&first]), (2, 12));
    assert_eq!(record.values().sum::<u64>(), 12);
}

#[test]
fn families_of_earlier_versions_are_read() {
    let text = r#"{"rows": 3, "alpha": 0.05, "evidence": 120.0, "n_opt": 2000.0}"#;
    let family: EarlierFamily = serde_json::from_str(text).unwrap();
    assert!(!family.family.digest.is_known() && family.claims.is_none());
    let now = plan(STUDY);
    assert_eq!(family.study(&now.study).claims, now.study.claims);
}
