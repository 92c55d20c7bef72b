//! How large a plan is, from the axes of its study file: nothing is expanded.
//!
//! cells = priors * (policies with training data * |N| + policies without). A cell's rows depend on its policy
//! and on a few facts about its prior, and do not get fewer as N grows, because hypotheses ask for N to be
//! large enough. So the rows at the largest N, on the priors at the corners of the swept keys, bound those of
//! all cells.

use super::{Detail, Replicates, cells};
use crate::cell::Cell;
use crate::file::{FileError, Outline, Study};
use crate::id::StudyId;
use crate::rows;

/// Places at which claims are looked at one by one; beyond that, every claim counts at every place.
const LOOKED_AT: u64 = 1 << 20;

/// N of real data whose rows are not counted yet.
const ALL_ROWS: u64 = 1 << 53;

/// The size of a plan. Numbers of rows are upper bounds, and so is that of cells where a grid names one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Whose it is.
    pub study: StudyId,
    /// Priors.
    pub priors: u64,
    /// Cells.
    pub cells: u64,
    /// Verdict rows that workers count, over all cells.
    pub rows: u64,
    /// Records of a trial.
    pub checkpoints: u64,
    /// Whether cells may stop early.
    pub stops: bool,
}

impl Size {
    /// The size of the plan of a study file. Mistakes that show without expanding anything are refused, and
    /// so are grids that no plan may have.
    pub fn read(file_name: &str, text: &str) -> Result<Self, FileError> {
        let Outline { study, priors, complete } = Outline::parse(file_name, text)?;
        let (trained, untrained) = cells::policy_counts(&study.grid);
        let sizes = sizes_of_training(&study);
        let policies = trained.saturating_mul(sizes).saturating_add(untrained);
        let cells = policies.saturating_mul(priors as u64);
        cells::few_enough(&study, cells)?;
        let checkpoints = match study.detail {
            Detail::Checkpoints | Detail::Summary => study.grid.t.len() as u64,
            Detail::Steps => study.grid.t.last().copied().unwrap_or_default().into(),
        };
        let places = rows::places_of_cell(&study);
        let looked_at = places.saturating_mul((trained + untrained) * study.priors.len() as u64);
        let rows = if complete && looked_at <= LOOKED_AT {
            rows_of_prior(&study, sizes)?.saturating_mul(priors as u64)
        } else {
            places.saturating_mul(cells)
        };
        Ok(Self {
            study: StudyId::new(&study.name, study.seed),
            priors: priors as u64,
            cells,
            rows,
            checkpoints,
            stops: matches!(study.replicates, Replicates::Batched { .. }),
        })
    }
}

/// How many N there are; of real data, some follow from its number of rows.
fn sizes_of_training(study: &Study) -> u64 {
    study.grid.n.len().max(study.grid.portion.len()).max(1) as u64
}

/// A bound on the rows of all cells of a prior.
fn rows_of_prior(study: &Study, sizes: u64) -> Result<u64, FileError> {
    let mut one = study.clone();
    one.grid.n = vec![study.grid.n.last().copied().unwrap_or(ALL_ROWS)];
    let mut most: Vec<u64> = Vec::new();
    for prior in study.priors.iter() {
        let spec = &prior.spec;
        let policies = cells::policies(&one, spec)?;
        most.resize(policies.len(), 0);
        for (most, policy) in most.iter_mut().zip(policies) {
            let (noise_variance, ground) = (spec.noise_variance, spec.ground());
            let cell = Cell { shape: [0; 32], noise_variance, ground, policy };
            let each = if policy.training().is_some() { sizes } else { 1 };
            *most = (*most).max(each * rows::count(&one, &cell));
        }
    }
    Ok(most.into_iter().fold(0, u64::saturating_add))
}
