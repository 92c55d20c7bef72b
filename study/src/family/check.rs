//! Whether families could have been made by study files.
//!
//! A study file is checked where it is parsed. A manifest repeats what was parsed then, may come from anybody, and
//! everything in it is used again: expressions are evaluated, and T, delta and rows become sizes of lists.

use super::{Claims, EarlierFamily, Family};
use crate::file::{ALPHAS, LONGEST, MOST_REPLICATES};
use theory::Delta;

/// The most families that a study can have had before.
pub const MOST_FAMILIES: usize = 4096;

/// The most verdict rows of a family: more than any machine could report on.
const MOST_ROWS: u64 = 1 << 30;

/// The most combinations of a claim, a T and a delta in one cell.
const MOST_PLACES: usize = 1 << 20;

/// The most globs in `claims.test`, and the length of one.
const MOST_GLOBS: usize = 1024;
const LONGEST_GLOB: usize = 200;

/// Why no study file could have made a family.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Impossible(String);

fn ensure(holds: bool, reason: impl FnOnce() -> String) -> Result<(), Impossible> {
    if holds { Ok(()) } else { Err(Impossible(reason())) }
}

impl Family {
    /// Checks the numbers, and that the claims, where they are given, have the family's digest.
    pub fn check(&self, claims: Option<&Claims>) -> Result<(), Impossible> {
        let Self { rows, alpha, evidence, n_opt, digest } = self;
        let trials = 1.0..=MOST_REPLICATES as f64;
        ensure(*rows <= MOST_ROWS, || format!("it has {rows} rows, and {MOST_ROWS} are possible"))?;
        ensure(ALPHAS.contains(alpha), || {
            format!("alpha = {alpha} is not a level between 0 and 1/2")
        })?;
        ensure(evidence.is_finite() && *evidence > 1.0, || {
            format!("evidence = {evidence} is not above 1")
        })?;
        ensure(trials.contains(n_opt), || format!("n_opt = {n_opt} is not a number of trials"))?;
        let Some(claims) = claims else { return Ok(()) };
        claims.check()?;
        ensure(!digest.is_known() || claims.digest() == *digest, || {
            format!("its claims have the digest {}, not {digest}", claims.digest())
        })
    }
}

impl Claims {
    /// Checks every claim, T and delta as a study file's are checked.
    pub fn check(&self) -> Result<(), Impossible> {
        let Self { test, own, t, delta } = self;
        ensure(test.len() <= MOST_GLOBS, || format!("it tests {} globs", test.len()))?;
        ensure(test.iter().all(|glob| glob.len() <= LONGEST_GLOB), || {
            format!("it tests a glob of more than {LONGEST_GLOB} bytes")
        })?;
        let ascend = t.is_sorted_by(|a, b| a < b) && delta.is_sorted_by(|a, b| a < b);
        ensure(!t.is_empty() && !delta.is_empty() && ascend, || {
            "T or delta is empty or not ascending".to_owned()
        })?;
        let horizon = |t: &u32| (1..=LONGEST).contains(&u64::from(*t));
        ensure(t.iter().all(horizon), || format!("a T is not between 1 and {LONGEST}"))?;
        ensure(delta.iter().all(|&delta| Delta::new(delta).is_ok()), || {
            "a delta is not a probability strictly between 0 and 1".to_owned()
        })?;
        let places = [own.len() + 1, t.len(), delta.len()].iter().try_fold(1, |product, length| {
            usize::checked_mul(product, *length).filter(|places| *places <= MOST_PLACES)
        });
        ensure(places.is_some(), || format!("it has more than {MOST_PLACES} rows in a cell"))?;
        for (at, claim) in own.iter().enumerate() {
            claim
                .check()
                .map_err(|reason| Impossible(format!("[[claim]] {}: {reason}", at + 1)))?;
        }
        let mut ids: Vec<&str> = own.iter().map(|claim| claim.id.as_str()).collect();
        ids.sort_unstable();
        ensure(ids.is_sorted_by(|a, b| a < b), || "two [[claim]]s have one id".to_owned())
    }
}

impl EarlierFamily {
    /// Checks the family, its claims and the cells that it counts replicates of.
    pub fn check(&self) -> Result<(), Impossible> {
        self.family.check(self.claims.as_ref())?;
        let digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        let is_cell = |name: &str| name.len() == 16 && name.bytes().all(digit);
        ensure(self.replicates.keys().all(|name| is_cell(name)), || {
            "it counts replicates of what is no cell".to_owned()
        })?;
        ensure(self.replicates.values().all(|&count| count <= MOST_REPLICATES), || {
            format!("a cell has more than {MOST_REPLICATES} replicates")
        })
    }
}
