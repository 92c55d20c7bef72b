//! A small study for tests: records of every kind, with all that is awkward to store.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use study::cell::{Estimator, Ground, Policy, PolicyConstants, Training};
use study::{Batch, Cell, CellId, Failure, Record};
use theory::measurement::{AtTau, Deviation};
use theory::{Delta, Measurement};

use crate::counts::Count;
use crate::description::{CellDescription, PriorSummary, Rho, Scalar};
use crate::manifest::Family;
use crate::parquet::Shape;
use crate::seal::{Detail, Sealing};

pub(crate) const CHECKPOINTS: [u32; 3] = [1, 5, 20];

/// Cells by id: GP-UCB, a fixed design and random points, with a number of replicates each.
pub(crate) fn cells(replicates: u64) -> Vec<CellDescription> {
    let training = Training { n: 200, estimator: Estimator::Wishart };
    let delta = Delta::new(0.1).unwrap();
    let policies = [
        Policy::PemUcb { training, delta, constants: PolicyConstants::Printed },
        Policy::Fixed(training),
        Policy::Random,
    ];
    let mut cells: Vec<CellDescription> = policies
        .into_iter()
        .zip([Scalar::Integer(1), Scalar::Float(0.5), Scalar::Integer(2)])
        .map(|(policy, lengthscale)| {
            let cell =
                Cell { shape: [7; 32], noise_variance: 0.01, ground: Ground::Finite, policy };
            let kernel = Scalar::Text("matern32".into());
            CellDescription {
                id: cell.id(),
                cell,
                prior: 0,
                swept: vec![
                    ("prior.kernel.lengthscale".into(), lengthscale),
                    ("prior.kernel.kind".into(), kernel),
                ],
                replicates,
                checkpoints: CHECKPOINTS.to_vec(),
            }
        })
        .collect();
    cells.sort_by_key(|cell| cell.id);
    cells
}

/// All records of the cells, in order.
pub(crate) fn records(cells: &[CellDescription]) -> Vec<Record> {
    cells.iter().flat_map(of_cell).collect()
}

fn of_cell(cell: &CellDescription) -> impl Iterator<Item = Record> + '_ {
    (0..cell.replicates).flat_map(move |replicate| {
        cell.checkpoints.iter().map(move |&t| Record {
            cell: cell.id,
            replicate,
            t,
            outcome: match replicate % 7 {
                3 if t > 1 => Err(Failure::ZeroPivot { step: 2 }),
                5 => Err(Failure::Panicked),
                _ => Ok(measurement(cell.id.0 ^ (replicate << 8) ^ u64::from(t), t)),
            },
        })
    })
}

/// Values without a pattern (SplitMix64), some of them absent, one -0.0, one infinite.
pub(crate) fn measurement(seed: u64, t: u32) -> Measurement {
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    let deviation = |a: f64| Deviation::new(a, a / 2.0 + 1.0, 2.0);
    let at_tau = AtTau {
        tau: 1,
        mean_star: draw(),
        variance_star: draw(),
        mean_tau: -0.0,
        variance_tau: draw(),
        f_tau: draw(),
        zeta: (seed.is_multiple_of(3)).then(&mut draw),
        estimated: None,
        compact: None,
        star_seen: seed.is_multiple_of(5),
    };
    Measurement {
        t,
        x: Some((seed % 80) as u32),
        y: draw(),
        f: draw(),
        f_star: draw(),
        x_star: Some(5),
        prior_known: true,
        expected: None,
        f_range: draw(),
        zeta: (seed.is_multiple_of(3)).then(&mut draw),
        target: None,
        best_sample_regret: draw(),
        simple_regret: draw(),
        cumulative_regret: draw(),
        probe: Some(deviation(draw())),
        star: (t < 20).then(|| deviation(draw())),
        next: (t < 20).then(|| deviation(draw())),
        observed: Some(deviation(draw())),
        k_xy: draw(),
        star_seen: t == 20,
        at_tau,
        y_max: draw(),
        f_at_y_max: draw(),
        f_max: draw(),
        y_at_f_max: draw(),
        information: Some(if seed.is_multiple_of(11) { f64::INFINITY } else { draw() }),
        information_determinant: None,
    }
}

/// The records in batches of at most a number of rows.
pub(crate) fn batches(
    records: &[Record],
    size: usize,
) -> impl Iterator<Item = Result<Batch, Infallible>> {
    let cells = records.chunk_by(|a, b| a.cell == b.cell);
    cells.flat_map(move |cell| cell.chunks(size)).map(|rows| {
        let mut batch = Batch::new(rows[0].cell);
        rows.iter().for_each(|record| batch.push(record));
        Ok(batch)
    })
}

pub(crate) fn prior(index: u32, size: u64, d: u32) -> PriorSummary {
    let coordinates = size * u64::from(d);
    PriorSummary {
        index,
        swept: vec![("prior.kernel.lengthscale".into(), Scalar::Float(0.5))],
        spec: serde_json::json!({ "setting": "finite" }),
        size,
        d,
        c: 1.0,
        rank: 3,
        residual: 1e-13,
        noise_variance: 0.01,
        white: 0.0,
        rho: vec![Rho { t: 1, lo: 0.5, hi: 0.5 }],
        normality: None,
        points: (0..coordinates).map(|at| at as f64 / 8.0).collect(),
        mean: (0..size).map(|at| at as f64).collect(),
    }
}

/// Row groups of 16 rows, files of two.
pub(crate) fn sealing<'a>(
    cells: &'a [CellDescription],
    priors: &'a [PriorSummary],
    out: &'a Path,
) -> Sealing<'a> {
    Sealing {
        study: [0xab; 32],
        name: "small",
        seed: 2018,
        version: "0.1.0",
        numerics: "00ff",
        detail: Detail::Checkpoints,
        family: Family {
            rows: 9,
            alpha: 0.05,
            evidence: 180.0,
            n_opt: 2000.0,
            digest: study::family::FamilyDigest::default(),
        },
        claims: None,
        earlier: &[],
        cells,
        priors,
        file: "",
        out,
        shape: Shape { rows: 16, groups: 2 },
    }
}

/// A count of a cell, of so many trials.
pub(crate) fn count(cell: CellId, trials: u64) -> Count {
    Count {
        cell,
        batch: 0,
        claim: "lemma1.mean".into(),
        constants: None,
        at: None,
        t: 5,
        delta: 0.1,
        budget: 0.05,
        trials,
        refuting: 0,
        confirming: 0,
        failures: 0,
    }
}

/// Every file below a folder with its bytes, by name.
pub(crate) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                files.push((path.strip_prefix(folder).unwrap().to_owned(), bytes));
            }
        }
    }
    files.sort();
    files
}
