//! Parts of a study without a coordinator: what a part has, its file, computing it, putting all together.
//!
//! `regretta run STUDY.toml --part 3/200` writes `OUT/parts/3-of-200.part`; `regretta merge` seals the parts
//! into the dataset that a whole run would give. Nothing is shared but a folder: no server, no ledger.

mod compute;
mod gather;
mod log;
mod run;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use study::plan::{Plan, PlannedCell, Replicates};
use worker::trial::LANES;

use compute::compute;
pub(crate) use gather::{Progress, cut, gather, progress};
pub(crate) use run::run;

/// The most parts of a study.
const MOST: u32 = 1_000_000;

/// One of the parts into which a study is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    /// Counted from 1.
    pub(crate) index: u32,
    pub(crate) count: u32,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("\"{text}\" is no part; use I/K with 1 <= I <= K, such as 3/200");
        let (index, count) = text.split_once('/').ok_or_else(refused)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| refused());
        let part = Self { index: number(index)?, count: number(count)? };
        let valid = (1..=part.count).contains(&part.index) && part.count <= MOST;
        valid.then_some(part).ok_or_else(refused)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl Part {
    /// The part's file in an output folder.
    pub(crate) fn path(self, out: &Path) -> PathBuf {
        folder(out).join(format!("{}-of-{}.part", self.index, self.count))
    }

    /// The replicates of the plan's cell number `at` that are this part's. A cell that may stop early is
    /// decided by its own trials in order, so that it is whole in one part; others are cut evenly, at whole
    /// lockstep groups.
    fn replicates(self, plan: &Plan, at: usize) -> Range<u64> {
        let max = plan.replicates.max();
        if let Replicates::Batched { .. } = plan.replicates {
            let mine = at as u64 % u64::from(self.count) == u64::from(self.index - 1);
            return if mine { 0..max } else { 0..0 };
        }
        let cut = |index: u32| {
            let exact = (u128::from(max) * u128::from(index) / u128::from(self.count)) as u64;
            if index == self.count { max } else { exact / LANES as u64 * LANES as u64 }
        };
        cut(self.index - 1)..cut(self.index)
    }

    /// The cells of which this part has trials, and which.
    fn cells(self, plan: &Plan) -> impl Iterator<Item = (&PlannedCell, Range<u64>)> {
        let cells = plan.cells.iter().enumerate();
        let cells = cells.map(move |(at, cell)| (cell, self.replicates(plan, at)));
        cells.filter(|(_, range)| !range.is_empty())
    }

    /// Trials of this part at most.
    pub(crate) fn trials(self, plan: &Plan) -> u64 {
        self.cells(plan).map(|(_, range)| range.end - range.start).sum()
    }
}

/// Where an output folder keeps its parts.
fn folder(out: &Path) -> PathBuf {
    out.join("parts")
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::file::Study;
    use study::prior::Files;

    fn plan(replicates: &str) -> Plan {
        let text = format!(
            "[study]\nname = \"p\"\nseed = 1\nreplicates = {replicates}\n[prior]\n\
             domain = {{ kind = \"grid\", points = 9, dimension = 1 }}\n\
             kernel = {{ kind = \"squared-exponential\", lengthscale = 0.3 }}\nnoise_variance = 0.1\n\
             [grid]\nN = [60, 80, 100]\nT = [1, 2]\ndelta = 0.1\n"
        );
        Plan::new(Study::parse("p.toml", &text).unwrap(), &Files::default()).unwrap()
    }

    #[test]
    fn parts_read_as_they_are_written() {
        assert_eq!("3/200".parse(), Ok(Part { index: 3, count: 200 }));
        assert_eq!(Part { index: 3, count: 200 }.to_string(), "3/200");
        for wrong in ["3", "0/5", "6/5", "a/5", "1/0", "-1/5", "1/2/3", "1/9999999"] {
            let error = wrong.parse::<Part>().unwrap_err();
            assert!(error.contains("such as 3/200"), "{error}");
        }
    }

    #[test]
    fn every_trial_is_in_one_part() {
        for (replicates, counts) in [("1003", [1, 7, 200]), ("{ batch = 10, max = 95 }", [1, 2, 8])]
        {
            let plan = plan(replicates);
            for count in counts {
                let mut next = vec![0; plan.cells.len()];
                for index in 1..=count {
                    for (at, next) in next.iter_mut().enumerate() {
                        let range = Part { index, count }.replicates(&plan, at);
                        if !range.is_empty() {
                            assert_eq!(range.start, *next);
                            *next = range.end;
                        }
                    }
                }
                assert!(next.iter().all(|&end| end == plan.replicates.max()), "{next:?}");
            }
        }
    }
}
