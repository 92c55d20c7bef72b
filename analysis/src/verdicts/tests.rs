//! The workers' counts beside those of the records.

use std::convert::Infallible;

use study::folder::Moment;
use study::plan::Plan;
use study::prior::Files;
use study::rows::{Row, rows};
use study::tally::RowCounts;
use study::{CellId, Study};

use super::assemble::compare;
use super::{Error, Sealed, sort};
use crate::counts::Count;
use crate::dataset::{DataCell, Dataset};
use crate::fixture;
use crate::manifest::tests::manifest;
use crate::pass::{Asked, CellResult, RowResult, Span, batches};

const STUDY: &str = r#"
[study]
name = "small"
seed = 7
replicates = { batch = 100, max = 250 }

[prior]
domain = { kind = "grid", points = 20, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.2 }
noise_variance = 0.01

[grid]
N = [60]
T = [1, 5]
delta = [0.1]
design = ["fixed"]
"#;

/// Two batches of 100 trials and one of 50.
fn dataset() -> Dataset {
    let study = Study::parse("s.toml", STUDY).unwrap();
    let plan = Plan::new(study.clone(), &Files::default()).unwrap();
    let cell = &plan.cells[0];
    let cell = DataCell {
        id: cell.id,
        cell: cell.cell,
        prior: 0,
        replicates: 250,
        checkpoints: cell.checkpoints.to_vec(),
        swept: vec![],
        replaced_at: vec![],
    };
    Dataset {
        dir: ".".into(),
        manifest: manifest(),
        study,
        priors: vec![fixture::prior(0, 20, 1)],
        cells: vec![cell],
        earlier: vec![],
        opened: Moment::of(".".as_ref()),
    }
}

fn planned(dataset: &Dataset) -> Vec<Row> {
    rows(&dataset.study, &dataset.cells[0].cell)
}

fn sealed(dataset: &Dataset, batches: &[u64], cell: CellId) -> Result<Sealed, Error> {
    let planned = planned(dataset);
    let count = |batch: u64, row: &Row| Count {
        cell,
        batch,
        claim: row.claim.id.into(),
        constants: row.form.map(|form| form.name().into()),
        at: row.at.map(|at| at.to_string().into()),
        t: row.t,
        delta: row.delta.get(),
        budget: row.budget,
        trials: 100,
        refuting: batch,
        confirming: batch,
        failures: 0,
    };
    let of = |&batch: &u64| planned.iter().map(move |row| Ok(count(batch, row)));
    let counts: Vec<Result<Count, Infallible>> = batches.iter().flat_map(of).collect();
    sort(dataset, counts.into_iter()).unwrap()
}

#[test]
fn sealed_counts_are_of_every_batch_and_no_other() {
    let dataset = dataset();
    let cell = dataset.cells[0].id;
    let of = |batches: &[u64]| sealed(&dataset, batches, cell);
    let whole = of(&[0, 1, 2]).unwrap();
    assert_eq!((whole.len(), whole[0].len(), whole[0][2][0].refuting), (1, 3, 2));
    let error = of(&[0, 1]).unwrap_err();
    assert!(matches!(error, Error::Batches { batch: 2, found: 2, expected: 3, .. }), "{error}");
    assert!(error.to_string().contains("batch 2 is missing"), "{error}");
    let error = of(&[0, 1, 2, 3]).unwrap_err();
    assert!(matches!(error, Error::Batches { batch: 3, found: 4, expected: 3, .. }), "{error}");
    assert!(error.to_string().contains("batch 3 is one too many"), "{error}");
    assert!(error.to_string().contains(&cell.to_string()), "{error}");
    for (batches, wrong) in [(&[0, 2, 3][..], 2), (&[1, 2, 3], 1), (&[0, 1, 1], 1)] {
        let error = of(batches).unwrap_err();
        assert!(matches!(error, Error::Misplaced { batch, .. } if batch == wrong), "{error}");
    }
    let other = sealed(&dataset, &[0, 1, 2], CellId(1)).unwrap_err();
    assert!(matches!(other, Error::Batches { found: 0, .. }), "{other}");
}

#[test]
fn counts_of_a_cell_that_is_not_there_are_noticed() {
    let mut dataset = dataset();
    let cell = dataset.cells[0].id;
    dataset.cells[0].id = CellId(cell.0 - 1);
    dataset.cells[0].replicates = 0;
    let error = sealed(&dataset, &[0, 1, 2], cell).unwrap_err();
    assert!(matches!(error, Error::Misplaced { batch: 0, .. }), "{error}");
}

#[test]
fn the_records_counts_are_compared_with_every_sealed_batch() {
    let dataset = dataset();
    let cell = &dataset.cells[0];
    let whole = sealed(&dataset, &[0, 1, 2], cell.id).unwrap().remove(0);
    let result = |sealed: &[Vec<RowCounts>]| CellResult {
        cell: 0,
        rows: planned(&dataset)
            .into_iter()
            .enumerate()
            .map(|(place, row)| RowResult {
                row,
                asked: Asked::Planned,
                spans: (0..)
                    .zip(sealed)
                    .map(|(batch, counts)| (Span { batch, period: 0 }, counts[place]))
                    .collect(),
                unseen: None,
                slack: None,
            })
            .collect(),
        means: vec![],
        at: vec![],
    };
    compare(cell, &result(&whole), &whole).unwrap();
    // Neither a batch that only the workers counted passes nor one that only the records have.
    let error = compare(cell, &result(&whole[..2]), &whole).unwrap_err();
    assert!(matches!(error, Error::Batches { batch: 2, found: 3, expected: 2, .. }), "{error}");
    let error = compare(cell, &result(&whole), &whole[..2]).unwrap_err();
    assert!(matches!(error, Error::Batches { batch: 2, found: 2, expected: 3, .. }), "{error}");
    let mut other = whole.clone();
    other[1][0].refuting += 1;
    let error = compare(cell, &result(&whole), &other).unwrap_err();
    assert!(matches!(error, Error::Differs { batch: 1, found: 1, sealed: 2, .. }), "{error}");
}

#[test]
fn spans_add_up_to_the_batches_of_their_periods() {
    let one = |trials| RowCounts { trials, ..RowCounts::default() };
    let spans = [
        (Span { batch: 0, period: 0 }, one(60)),
        (Span { batch: 0, period: 1 }, one(40)),
        (Span { batch: 1, period: 1 }, one(100)),
    ];
    assert_eq!(batches(&spans, 0..=1), [one(100), one(100)]);
    assert_eq!(batches(&spans, 1..=1), [one(40), one(100)]);
    assert_eq!(batches(&spans, 0..=0), [one(60)]);
    assert_eq!(batches(&spans, 2..=2), []);
}

#[test]
fn trials_are_counted_by_the_changes_before_them() {
    let mut cell = dataset().cells.remove(0);
    cell.replaced_at = vec![0, 60, 60, 100];
    let periods = [0, 59, 60, 99, 100].map(|replicate| cell.period(replicate));
    assert_eq!(periods, [1, 1, 3, 3, 4]);
    assert_eq!([0, 1, 2, 3, 4].map(|family| cell.first(family)), [0, 0, 60, 60, 100]);
}
