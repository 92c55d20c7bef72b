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
use crate::plan::{Plan, PlannedCell, Replicates};
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
    /// Replicates of each planned cell that existed when the change was recorded.
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

    /// Its `[[claim]]`s; none where they were not kept.
    pub(crate) fn own(&self) -> &[OwnClaim] {
        self.claims.as_ref().map_or(&[], |claims| &claims.own)
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
/// added where it was another and had trials, and where trials of it have to be computed anew, so that
/// these stay known to have been seen. What existed at one change existed at every later one.
pub fn replaced(
    mut earlier: Vec<EarlierFamily>,
    last: &Plan,
    now: &Plan,
    replicates: BTreeMap<String, u64>,
) -> Vec<EarlierFamily> {
    let is_dropped = |cell: &PlannedCell| {
        let exists = replicates.get(&cell.id.to_string()).is_some_and(|&count| count > 0);
        exists && now.cell(cell.id).is_none_or(|grown| grown.checkpoints != cell.checkpoints)
    };
    if Family::of(last).is_same(&Family::of(now)) && !last.cells.iter().any(is_dropped) {
        return earlier;
    }
    let mut replaced = EarlierFamily::new(last, replicates);
    earlier.iter().for_each(|one| replaced.had(&one.replicates));
    if replaced.replicates.values().any(|&count| count > 0) {
        // Cells without trials were planned all the same.
        let planned = last.cells.iter().map(|cell| (cell.id.to_string(), 0)).collect();
        replaced.had(&planned);
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

    /// How many rows of the cell were planned by families before this one that `had_cell`, and are not in
    /// this one. They were taken away when trials existed, so that its other rows are judged as if they
    /// were there. A family that weighs evidence otherwise has no row in common with those before.
    pub fn dropped(&self, family: usize, had_cell: impl Fn(usize) -> bool) -> u64 {
        let (judged, keys) = &self.families[family];
        let alike = |at: &usize| self.families[*at].0.weighs_as(judged);
        let before = (0..family).rev().take_while(alike).filter(|&at| had_cell(at));
        let gone: BTreeSet<&RowKey> =
            before.flat_map(|at| self.families[at].1.difference(keys)).collect();
        gone.len() as u64
    }

    /// How many rows of a family are not continued by the next one.
    pub fn ending(&self, family: usize) -> u64 {
        let keys = &self.families[family].1;
        keys.iter().filter(|key| !self.goes_on(family, key)).count() as u64
    }

    /// How many rows of a family were not in the one before.
    fn joining(&self, family: usize) -> u64 {
        let keys = &self.families[family].1;
        keys.iter().filter(|key| self.joined(family, key) == family).count() as u64
    }

    /// Whether the next family continues a row of this one.
    pub fn goes_on(&self, family: usize, key: &str) -> bool {
        let next = family + 1;
        self.has(next, key) && self.joined(next, key) < next
    }

    /// The family since which a row of one has been there without interruption.
    pub fn joined(&self, family: usize, key: &str) -> usize {
        let judged = &self.families[family].0;
        let same = |at: &usize| self.families[*at].0.weighs_as(judged) && self.has(*at, key);
        let before = (0..family).rev().take_while(same).count();
        family - before
    }
}

/// What earlier families mean for a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What was written down in a cell when it had trials; for every cell that had any.
    pub late: BTreeMap<CellId, Late>,
    /// Rows that earlier families planned and the plan does not have.
    pub dropped: u64,
}

/// Rows of a cell that were written down when it had trials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// By place among the cell's rows, the replicates that existed then.
    pub rows: BTreeMap<usize, u64>,
    /// The same of the last of the study's own claims; 0 where none is late.
    pub own: u64,
}

impl Changes {
    /// Of a plan after these families.
    pub fn of(earlier: &[EarlierFamily], plan: &Plan) -> Self {
        let mut changes = Self::default();
        let now = Family::of(plan);
        if earlier.iter().all(|one| one.family.tests_as(&now)) {
            return changes;
        }
        let studies: Vec<Study> = earlier.iter().map(|one| one.study(&plan.study)).collect();
        let families = earlier.iter().map(|one| one.family).zip(&studies);
        let families: Vec<_> = families.chain([(now, &plan.study)]).collect();
        for cell in &plan.cells {
            let id = cell.id.to_string();
            let had_cell = |family: usize| earlier[family].replicates.contains_key(&id);
            if !(0..earlier.len()).any(had_cell) {
                continue;
            }
            let members = Membership::new(families.iter().copied(), &cell.cell);
            changes.dropped += members.dropped(earlier.len(), had_cell);
            let existed = existing(earlier, &id);
            if existed.last().is_some_and(|&count| count > 0) {
                changes.late.insert(cell.id, Late::of(&members, &existed, plan, &cell.cell));
            }
        }
        changes
    }
}

/// The replicates of a cell at the end of each family: what existed at a change existed at every later one.
pub fn existing(earlier: &[EarlierFamily], cell: &str) -> Vec<u64> {
    let most = |most: &mut u64, family: &EarlierFamily| {
        *most = family.replicates.get(cell).copied().unwrap_or(0).max(*most);
        Some(*most)
    };
    earlier.iter().scan(0, most).collect()
}

impl Late {
    fn of(members: &Membership, existed: &[u64], plan: &Plan, cell: &Cell) -> Self {
        let since = |key: RowKey| {
            let joined = members.joined(existed.len(), &key);
            joined.checked_sub(1).map_or(0, |before| existed[before])
        };
        let rows = rows::rows(&plan.study, cell).into_iter().map(|row| since(row.key()));
        let own = rows::own_rows(&plan.study, cell);
        Self {
            rows: rows.enumerate().filter(|(_, since)| *since > 0).collect(),
            own: own.iter().map(|row| since(row.key(&plan.study))).max().unwrap_or(0),
        }
    }
}

/// The places of rows in their cells that are exploratory on all trials.
pub fn exploratory(changes: &Changes) -> BTreeMap<CellId, BTreeSet<usize>> {
    let late = changes.late.iter();
    late.map(|(&cell, late)| (cell, late.rows.keys().copied().collect())).collect()
}

/// What becomes of the rows of a study's cells when a plan takes its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// Rows that will be exploratory on the trials that exist.
    pub exploratory: u64,
    /// Rows that will be planned no longer, and keep the verdict that they have.
    pub dropped: u64,
}

impl Preview {
    /// Of a study whose cells have these replicates.
    pub fn of(last: &Study, now: &Plan, replicates: &BTreeMap<String, u64>) -> Self {
        let family = |study: &Study| {
            let digest = Claims::of(study).digest();
            Family { rows: 0, alpha: study.alpha, evidence: 0.0, n_opt: study.n_opt, digest }
        };
        let (was, is) = (family(last), family(&now.study));
        let mut preview = Self::default();
        if was.tests_as(&is) {
            return preview;
        }
        for cell in &now.cells {
            if replicates.get(&cell.id.to_string()).is_some_and(|&count| count > 0) {
                let members = Membership::new([(was, last), (is, &now.study)], &cell.cell);
                preview.exploratory += members.joining(1);
                preview.dropped += members.dropped(1, |_| true);
            }
        }
        preview
    }
}

#[cfg(test)]
mod tests;
