//! Families of claims: what a study tests, what it tested before it was changed, and from which
//! replicate on a change counts.
//!
//! A row of verdicts is planned for the replicates that were drawn while its family was in force. On the
//! replicates that existed when the row was written down it is exploratory.

mod check;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use theory::Delta;

use crate::cell::{Cell, CellId};
use crate::digest::Digest;
use crate::file::{OwnClaim, Study};
use crate::plan::{Plan, Replicates};
use crate::rows;

pub use check::{Impossible, MOST_FAMILIES};

/// The digest of a family's claims; all zeros where a version that knew none sealed the dataset.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FamilyDigest(pub [u8; 32]);

impl FamilyDigest {
    /// Whether it is known.
    pub fn is_known(&self) -> bool {
        *self != Self::default()
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    fn is_unknown(&self) -> bool {
        !self.is_known()
    }
}

impl fmt::Display for FamilyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for FamilyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:.12}")
    }
}

impl Serialize for FamilyDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FamilyDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let hash = blake3::Hash::from_hex(text).map_err(serde::de::Error::custom)?;
        Ok(Self(hash.into()))
    }
}

/// The family of verdicts and its thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Family {
    /// Planned verdict rows.
    pub rows: u64,
    /// Level of the whole family.
    pub alpha: f64,
    /// An e-value at or above this decides a row.
    pub evidence: f64,
    /// Trials that the tuned prior is strongest at.
    pub n_opt: f64,
    /// Digest of its claims.
    #[serde(default, skip_serializing_if = "FamilyDigest::is_unknown")]
    pub digest: FamilyDigest,
}

impl Family {
    /// The family of a plan.
    pub fn of(plan: &Plan) -> Self {
        let Plan { study, rows, evidence, .. } = plan;
        let digest = Claims::of(study).digest();
        Self { rows: *rows, alpha: study.alpha, evidence: *evidence, n_opt: study.n_opt, digest }
    }

    /// Whether both are one family.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.rows, self.evidence) == (other.rows, other.evidence) && self.tests_as(other)
    }

    /// Whether both test the same in cells that both have; claims whose digest is not known may be any.
    pub fn tests_as(&self, other: &Self) -> bool {
        let is_known = self.digest.is_known() && other.digest.is_known();
        self.weighs_as(other) && (!is_known || self.digest == other.digest)
    }

    /// Whether evidence is weighed alike in both, so that a row may be in both.
    fn weighs_as(&self, other: &Self) -> bool {
        (self.alpha, self.n_opt) == (other.alpha, other.n_opt)
    }
}

/// What is tested in every cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claims {
    /// `claims.test`: globs; empty for all claims.
    test: Vec<String>,
    /// Every `[[claim]]`.
    own: Vec<OwnClaim>,
    /// The T of the grid.
    #[serde(rename = "T")]
    t: Vec<u32>,
    delta: Vec<f64>,
}

impl Claims {
    /// What a study tests.
    pub fn of(study: &Study) -> Self {
        Self {
            test: study.test.clone(),
            own: study.claims.clone(),
            t: study.grid.t.clone(),
            delta: study.grid.delta.iter().map(|delta| delta.get()).collect(),
        }
    }

    /// Changes with everything that a row of verdicts in a cell depends on.
    pub fn digest(&self) -> FamilyDigest {
        let mut digest = Digest::new();
        digest.tag("family v1").tag("test");
        self.test.iter().for_each(|glob| _ = digest.text(glob));
        for OwnClaim { id, holds, budget, quantifier, .. } in &self.own {
            digest.tag("claim").text(id).text(holds).text(budget).text(quantifier.name());
        }
        digest.tag("T");
        self.t.iter().for_each(|&t| _ = digest.u64(t.into()));
        digest.tag("delta");
        self.delta.iter().for_each(|&delta| _ = digest.f64(delta));
        FamilyDigest(digest.finish())
    }

    /// A study with these claims in place of its own.
    fn in_place_of(&self, study: &Study) -> Study {
        let mut earlier = study.clone();
        earlier.test.clone_from(&self.test);
        earlier.claims.clone_from(&self.own);
        earlier.grid.t.clone_from(&self.t);
        earlier.grid.delta =
            self.delta.iter().filter_map(|&delta| Delta::new(delta).ok()).collect();
        earlier
    }
}

/// A family that a study had before it was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierFamily {
    /// The family.
    #[serde(flatten)]
    pub family: Family,
    /// Its claims; versions that did not keep them judged whatever came later as if planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<Claims>,
    /// Replicates of each cell that existed when the change was recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub replicates: BTreeMap<String, u64>,
}

impl EarlierFamily {
    /// The family of a plan, at a time when cells had these replicates.
    pub fn new(plan: &Plan, replicates: BTreeMap<String, u64>) -> Self {
        let claims = Some(Claims::of(&plan.study));
        Self { family: Family::of(plan), claims, replicates }
    }

    /// Notes that cells had at least these replicates.
    fn had(&mut self, replicates: &BTreeMap<String, u64>) {
        for (cell, &existed) in replicates {
            let known = self.replicates.entry(cell.clone()).or_default();
            *known = existed.max(*known);
        }
    }

    /// The study with this family's claims; its own where they were not kept.
    pub fn study(&self, now: &Study) -> Study {
        let mut study =
            self.claims.as_ref().map_or_else(|| now.clone(), |claims| claims.in_place_of(now));
        (study.alpha, study.n_opt) = (self.family.alpha, self.family.n_opt);
        study
    }
}

/// Families that cannot be read back.
#[derive(Debug, thiserror::Error)]
#[error("the earlier families of claims cannot be read: {0}")]
pub struct Unreadable(#[from] serde_json::Error);

/// Families as text, empty for none.
///
/// # Panics
/// Never: families have text keys and finite numbers.
pub fn encode(earlier: &[EarlierFamily]) -> String {
    match earlier {
        [] => String::new(),
        _ => serde_json::to_string(earlier).expect("families have text keys and finite numbers"),
    }
}

/// Families from their text.
pub fn decode(text: &str) -> Result<Vec<EarlierFamily>, Unreadable> {
    Ok(if text.is_empty() { Vec::new() } else { serde_json::from_str(text)? })
}

/// The families before one that is planned now, after it has taken the place of the last: the last is
/// added where it was another and had trials. What existed at one change existed at every later one.
pub fn replaced(
    mut earlier: Vec<EarlierFamily>,
    last: &Plan,
    now: &Plan,
    replicates: BTreeMap<String, u64>,
) -> Vec<EarlierFamily> {
    if Family::of(last).is_same(&Family::of(now)) {
        return earlier;
    }
    let mut replaced = EarlierFamily::new(last, replicates);
    earlier.iter().for_each(|one| replaced.had(&one.replicates));
    if !replaced.replicates.is_empty() {
        earlier.push(replaced);
    }
    earlier
}

/// The families before one that is planned now, of a dataset that takes the place of another: those that
/// the sealed one has, its own as `last`, and those that the ledger knows. The ledger's continue the
/// dataset's, unless it was lost, or the trials come from elsewhere.
pub fn continued(
    sealed: Vec<EarlierFamily>,
    last: EarlierFamily,
    known: &[EarlierFamily],
    now: &Family,
) -> Vec<EarlierFamily> {
    let mut all = sealed;
    let overlaps = |both: &usize| {
        let pairs = all[all.len() - both..].iter().zip(known);
        pairs.into_iter().all(|(one, other)| one.family.is_same(&other.family))
    };
    let both = (0..=all.len().min(known.len())).rev().find(overlaps).unwrap_or(0);
    let (seen, rest) = known.split_at(both);
    let from = all.len() - both;
    all[from..].iter_mut().zip(seen).for_each(|(one, other)| one.had(&other.replicates));
    let mut rest = rest.to_vec();
    match rest.first_mut() {
        Some(next) if last.family.is_same(&next.family) => next.had(&last.replicates),
        None if last.family.is_same(now) => {}
        _ => all.push(last),
    }
    all.extend(rest);
    all
}

/// What distinguishes a row within its cell: all that decides what it counts and how.
pub type RowKey = String;

/// The rows of a cell in the families of a study, oldest first and the present one last.
pub struct Membership {
    families: Vec<(Family, BTreeSet<RowKey>)>,
}

impl Membership {
    /// The rows of a cell by family and the study of each.
    pub fn new<'a>(families: impl IntoIterator<Item = (Family, &'a Study)>, cell: &Cell) -> Self {
        let keys = |study: &Study| {
            let rows = rows::rows(study, cell);
            let own = rows::own_rows(study, cell);
            let mut keys: BTreeSet<RowKey> = rows.iter().map(rows::Row::key).collect();
            keys.extend(own.iter().map(|row| row.key(study)));
            if matches!(study.replicates, Replicates::Fixed(_)) {
                keys.extend(rows::mean_rows(study, cell).iter().map(rows::MeanRow::key));
            }
            keys
        };
        Self { families: families.into_iter().map(|(family, s)| (family, keys(s))).collect() }
    }

    /// Whether a family has a row.
    pub fn has(&self, family: usize, key: &str) -> bool {
        self.families.get(family).is_some_and(|(_, keys)| keys.contains(key))
    }

    /// The family since which a row of one has been there without interruption.
    pub fn joined(&self, family: usize, key: &str) -> usize {
        let judged = &self.families[family].0;
        let same = |at: &usize| self.families[*at].0.weighs_as(judged) && self.has(*at, key);
        let before = (0..family).rev().take_while(same).count();
        family - before
    }
}

/// The places of rows in their cells that are exploratory on all trials of a plan.
pub fn exploratory(earlier: &[EarlierFamily], plan: &Plan) -> BTreeMap<CellId, BTreeSet<usize>> {
    let mut found = BTreeMap::new();
    let now = Family::of(plan);
    if earlier.iter().all(|one| one.family.tests_as(&now)) {
        return found;
    }
    let studies: Vec<Study> = earlier.iter().map(|one| one.study(&plan.study)).collect();
    let families = earlier.iter().map(|one| one.family).zip(&studies);
    let families: Vec<_> = families.chain([(now, &plan.study)]).collect();
    for cell in &plan.cells {
        let id = cell.id.to_string();
        let existed = |one: &EarlierFamily| one.replicates.get(&id).is_some_and(|&count| count > 0);
        let Some(first) = earlier.iter().position(existed) else { continue };
        let members = Membership::new(families.iter().copied(), &cell.cell);
        let rows = rows::rows(&plan.study, &cell.cell);
        let late = rows.iter().map(|row| members.joined(earlier.len(), &row.key()) > first);
        let late = late.enumerate().filter(|(_, late)| *late).map(|(place, _)| place);
        found.insert(cell.id, late.collect());
    }
    found
}

#[cfg(test)]
mod tests {
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
        let kept =
            |sealed: &[EarlierFamily], last: &EarlierFamily, known: &[EarlierFamily], plan| {
                continued(sealed.to_vec(), last.clone(), known, &now(plan))
            };
        // Nothing changed; the ledger saw the change; it saw two; it saw none of them.
        assert_eq!(kept(&[], &was, &[], &one), []);
        assert_eq!(kept(&[], &was, &[was.clone()], &two), [was.clone()]);
        let both = [was.clone(), is.clone()];
        assert_eq!(kept(&[], &was, &both, &one), both);
        assert_eq!(kept(&both[..1], &is, &both, &one), both);
        assert_eq!(kept(&[], &was, &[], &two), [was.clone()]);
        assert_eq!(kept(&both[..1], &is, &[], &one), both);
        assert_eq!(kept(&both[..1], &is, &[is.clone()], &one), both);
        assert_eq!(kept(&both, &was, &[is.clone()], &one), both);
        // Nor a replicate: a ledger that was rebuilt may know of fewer.
        let fewer = EarlierFamily::new(&one, drawn(&one, 3));
        assert_eq!(kept(&[], &was, &[fewer.clone()], &two), both[..1]);
        assert_eq!(kept(&both[..1], &is, &[fewer], &two), both[..1]);
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
        let found = exploratory(&earlier(12), &both);
        let cell = &both.cells[0];
        let new = |(_, row): &(usize, rows::Row)| row.delta.get() == 0.2;
        let listed = rows::rows(&both.study, &cell.cell).into_iter().enumerate();
        let expected: BTreeSet<usize> = listed.filter(new).map(|(place, _)| place).collect();
        assert!(!expected.is_empty());
        assert_eq!(found[&cell.id], expected);
        assert_eq!(exploratory(&earlier(0), &both), BTreeMap::new());
        assert_eq!(exploratory(&[], &both), BTreeMap::new());
    }

    #[test]
    fn families_of_earlier_versions_are_read() {
        let text = r#"{"rows": 3, "alpha": 0.05, "evidence": 120.0, "n_opt": 2000.0}"#;
        let family: EarlierFamily = serde_json::from_str(text).unwrap();
        assert!(!family.family.digest.is_known() && family.claims.is_none());
        let now = plan(STUDY);
        assert_eq!(family.study(&now.study).claims, now.study.claims);
    }
}
