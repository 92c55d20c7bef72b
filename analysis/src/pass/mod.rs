//! One pass over the records of a dataset, and what every analysis is made of.
//!
//! Row groups are read and evaluated by as many threads as there are, each by itself, and put together
//! in their order, so that results depend on no timing. Memory is bounded by the number of cells, by
//! [`KEPT`] trials of the cells being put together, and by a row group per thread; never by the number
//! of records.

mod bounded;
mod columns;
mod gathered;
mod ordered;
mod partial;
mod questions;
mod rivals;
mod series;
mod spare;
mod worst;

use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;
use study::CellId;
use study::rows::{MeanRow, Row};
use study::tally::RowCounts;
use theory::Delta;
use theory::claims::{LANES, Quantities, Trials};
use theory::evidence::MeanSample;

use crate::dataset::{self, Dataset};
use crate::parquet::{self, FileError, Group};
use crate::schema::{self, Type};

use columns::Columns;
use gathered::Gathered;
use ordered::in_order;
use partial::{Moments, Partial};
use questions::Questions;
use rivals::{Rivals, is_random};
use spare::Spare;

pub use bounded::Slack;
pub use gathered::{Blocks, KEPT, SeriesResult};
pub use worst::{Trial, worst};

/// What is kept of each trial, in the order in which [`AtResult::series`] has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// r_t.
    BestSample,
    /// R_t.
    Simple,
    /// The sum of regrets.
    Cumulative,
    /// (mu_hat_t - mu_t)^2/(k_t + sigma^2) at the probe.
    Error,
    /// k_hat_t/(k_t + sigma^2) at the probe.
    Ratio,
    /// I_t.
    Information,
    /// min_{s <= t} k_{s-1}(x_s).
    LeastVariance,
    /// max_{s <= t} f(x_s).
    BestValue,
    /// (mu_hat_t - mu_t)/sqrt(k_t + sigma^2) at the probe.
    Signed,
    /// What the exact law expects of it, in the compact setting.
    ExpectedSigned,
    /// What the exact law expects of the ratio, in the compact setting.
    ExpectedRatio,
}

/// What the records of a cell amount to.
#[derive(Debug)]
pub struct CellResult {
    /// The cell's place in [`Dataset::cells`].
    pub cell: usize,
    /// The rows of verdicts.
    pub rows: Vec<RowResult>,
    /// The claims about means.
    pub means: Vec<MeanResult>,
    /// By T of the grid.
    pub at: Vec<AtResult>,
}

/// Trials of one batch of a cell, drawn between two changes of the study's claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The batch's number within its cell, from 0.
    pub batch: u64,
    /// How many changes came before.
    pub period: usize,
}

/// The counts of some periods, by batch of trials, in order.
pub fn batches(spans: &[(Span, RowCounts)], periods: RangeInclusive<usize>) -> Vec<RowCounts> {
    let mut batches: Vec<(u64, RowCounts)> = Vec::new();
    for (span, counts) in spans.iter().filter(|(span, _)| periods.contains(&span.period)) {
        match batches.last_mut() {
            Some((batch, sum)) if *batch == span.batch => sum.plus(counts),
            _ => batches.push((span.batch, *counts)),
        }
    }
    batches.into_iter().map(|(_, counts)| counts).collect()
}

/// Why a row is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The study plans it.
    Planned,
    /// The analysis was asked for its delta.
    Further,
    /// The study planned it before it was changed.
    Before,
}

/// What the records say about one row.
#[derive(Debug)]
pub struct RowResult {
    /// The row.
    pub row: Row,
    /// Why it is there.
    pub asked: Asked,
    /// In the order of the trials.
    pub spans: Vec<(Span, RowCounts)>,
    /// Among trials in which x* was not observed before tau, for steps of proofs.
    pub unseen: Option<RowCounts>,
    /// How much of a regret bound is used.
    pub slack: Option<Slack>,
}

/// What the records say about the mean of a statistic.
#[derive(Debug)]
pub struct MeanResult {
    /// The row.
    pub row: MeanRow,
    /// Why it is there.
    pub asked: Asked,
    /// By period.
    periods: Vec<(usize, Moments)>,
}

impl MeanResult {
    /// The sample of some periods.
    pub fn sample(&self, periods: RangeInclusive<usize>) -> MeanSample {
        let mut sum = Moments::default();
        let chosen = self.periods.iter().filter(|(period, _)| periods.contains(period));
        chosen.for_each(|(_, moments)| sum.plus(*moments));
        gathered::sample(sum, self.row.claim)
    }
}

/// What the records say at one t.
#[derive(Debug)]
pub struct AtResult {
    /// t.
    pub t: u32,
    /// Trials that failed.
    pub failures: u64,
    /// In the order of [`Series`].
    pub series: Vec<SeriesResult>,
}

impl AtResult {
    /// One of the series.
    pub fn of(&self, series: Series) -> &SeriesResult {
        &self.series[series as usize]
    }
}

/// Why records cannot be analysed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The dataset cannot be read.
    #[error(transparent)]
    Dataset(#[from] dataset::Error),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// Records that should be elsewhere, or should not be.
    #[error(
        "record {row} should be cell {cell}, replicate {replicate}, t = {t}, and is not: the dataset is \
         not what its manifest says; `regretta verify` tells more"
    )]
    Misplaced {
        /// Counted from 0 over all files.
        row: u64,
        /// The cell that the manifest has there.
        cell: CellId,
        /// The replicate.
        replicate: u64,
        /// The checkpoint.
        t: u32,
    },
    /// A bug of ours.
    #[error(
        "{claim} does not hold at t = {t} of trial {address}: this is a bug of regretta, not of the paper, \
         and no verdict is given; please report it with the output of \
         `regretta replay STUDY.toml {address} --trace DIR`"
    )]
    Invariant {
        /// The invariant.
        claim: &'static str,
        /// The checkpoint.
        t: u32,
        /// The trial.
        address: String,
    },
}

/// How much is made of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What verdicts need: no sums of series, and files are compared with the manifest by their lengths
    /// alone. What is damaged in them is found where it changes a count that was sealed.
    Verdicts,
    /// Also what rates, tables and figures need.
    All,
}

/// Evaluates all records, at further deltas too. The dataset must have records of all trials.
pub fn run(dataset: &Dataset, further: &[Delta], extent: Extent) -> Result<Vec<CellResult>, Error> {
    match extent {
        Extent::All => {
            check_files(dataset)?;
            evaluate(dataset, further, extent)
        }
        Extent::Verdicts => {
            check_lengths(dataset)?;
            // A damaged file is named, rather than what it led to.
            let damaged = |error| check_files(dataset).and(Err(error));
            evaluate(dataset, further, extent).or_else(damaged)
        }
    }
}

fn evaluate(
    dataset: &Dataset,
    further: &[Delta],
    extent: Extent,
) -> Result<Vec<CellResult>, Error> {
    let questions = |cell| Questions::new(dataset, cell, further, extent);
    let pass = Pass {
        dataset,
        questions: dataset.cells.par_iter().map(questions).collect(),
        starts: starts(dataset),
        groups: open(dataset)?,
        spare: Default::default(),
    };
    let mut results = pass.scan()?;
    results.sort_by_key(|result| result.cell);
    Ok(results)
}

struct Pass<'a> {
    dataset: &'a Dataset,
    questions: Vec<Questions>,
    /// The first row of each cell, and the number of all rows.
    starts: Vec<u64>,
    groups: Vec<(u64, Group)>,
    /// Vectors of parts, and of whole cells.
    spare: [Spare; 2],
}

/// Records of one cell within a row group.
struct Segment {
    cell: usize,
    partial: Partial,
}

fn starts(dataset: &Dataset) -> Vec<u64> {
    let mut starts = vec![0];
    for cell in &dataset.cells {
        let rows = cell.replicates * cell.checkpoints.len() as u64;
        starts.push(starts[starts.len() - 1] + rows);
    }
    starts
}

/// Compares all files of records with their digests.
fn check_files(dataset: &Dataset) -> Result<(), Error> {
    let files = dataset.record_files();
    Ok(files.par_iter().try_for_each(|file| dataset::check(&dataset.dir, file).map(drop))?)
}

/// Compares their lengths, which costs nothing; a file that has another is changed or missing.
fn check_lengths(dataset: &Dataset) -> Result<(), Error> {
    for file in dataset.record_files() {
        let found = std::fs::metadata(dataset.dir.join(&file.name)).map(|found| found.len());
        if found.ok() != Some(file.bytes) {
            dataset::check(&dataset.dir, file)?;
        }
    }
    Ok(())
}

/// The row groups of all files of records, with the number of rows before them.
fn open(dataset: &Dataset) -> Result<Vec<(u64, Group)>, Error> {
    let files = dataset.record_files();
    let mut groups = Vec::new();
    let mut rows = 0;
    for file in files {
        for group in parquet::groups(&dataset.dir.join(&file.name), &columns())? {
            let before = rows;
            rows += group.rows as u64;
            groups.push((before, group));
        }
    }
    let expected = dataset.manifest.records;
    if rows == expected {
        return Ok(groups);
    }
    Err(dataset::Error::Total { what: "records", expected, found: rows }.into())
}

/// The columns that may be read: a record's place and its measurement.
fn columns() -> Vec<(String, Type)> {
    let all = schema::of_records().into_iter();
    all.filter(|(_, kind)| *kind != Type::Text).collect()
}

impl Pass<'_> {
    /// Reads all row groups, and finishes each cell when it is whole. Random search comes first: the bounds
    /// of the others are compared with what it reaches.
    fn scan(&self) -> Result<Vec<CellResult>, Error> {
        let mut wanted = Vec::with_capacity(self.groups.len() + 1);
        for random in [true, false] {
            let chosen = |cell: &usize| is_random(&self.dataset.cells[*cell]) == random;
            for (first, group) in &self.groups {
                let cells = self.cells(*first..first + group.rows as u64).filter(chosen);
                wanted.push((*first, group, cells.collect::<Vec<usize>>()));
            }
        }
        wanted.retain(|(_, _, cells)| !cells.is_empty());
        let mut rivals = Rivals::new(self.dataset.priors.len());
        let mut results = Vec::with_capacity(self.questions.len());
        let mut finish = |gathered: Gathered<'_>, rivals: &mut Rivals| {
            rivals.learn(&gathered);
            results.push(gathered.finish(&self.spare[1]));
        };
        let mut open: Option<Gathered<'_>> = None;
        let read = |columns: &mut Columns, (first, group, cells): &(u64, &Group, Vec<usize>)| {
            self.read(columns, *first, group, cells)
        };
        in_order(&wanted, read, |segments: Result<Vec<Segment>, Error>| {
            for Segment { cell, partial } in segments? {
                if let Some(whole) = open.take_if(|known| known.cell != cell) {
                    finish(whole, &mut rivals);
                }
                let questions = &self.questions[cell];
                let fresh = || Gathered::new(self.dataset, cell, questions, &self.spare[1]);
                open.get_or_insert_with(fresh).absorb(partial, &rivals, &self.spare[0]);
            }
            Ok::<(), Error>(())
        })?;
        if let Some(whole) = open {
            finish(whole, &mut rivals);
        }
        Ok(results)
    }

    /// The cells that have rows in a range.
    fn cells(&self, rows: Range<u64>) -> impl Iterator<Item = usize> + '_ {
        let first = self.starts.partition_point(|&start| start <= rows.start).saturating_sub(1);
        let count = self.questions.len();
        let within = move |&cell: &usize| self.starts[cell] < rows.end;
        (first..count).take_while(within).filter(|&cell| self.starts[cell] < self.starts[cell + 1])
    }

    fn read(
        &self,
        columns: &mut Columns,
        first: u64,
        group: &Group,
        cells: &[usize],
    ) -> Result<Vec<Segment>, Error> {
        let rows = first..first + group.rows as u64;
        let reads = cells.iter().map(|&cell| self.questions[cell].reads);
        columns.read(group, reads.fold(Quantities::default(), Quantities::and))?;
        let mut segments = Vec::new();
        for &cell in cells {
            let start = self.starts[cell].max(rows.start);
            let end = self.starts[cell + 1].min(rows.end);
            let partial = self.evaluate(columns, first, cell, start..end)?;
            segments.push(Segment { cell, partial });
        }
        Ok(segments)
    }

    /// Evaluates some rows of a row group, all of one cell; `first` is the row group's.
    fn evaluate(
        &self,
        columns: &Columns,
        first: u64,
        cell: usize,
        rows: Range<u64>,
    ) -> Result<Partial, Error> {
        let questions = &self.questions[cell];
        let data = &self.dataset.cells[cell];
        let id = data.id;
        let per_trial = questions.at.len() as u64;
        let start = self.starts[cell];
        let (mut replicate, slot) =
            ((rows.start - start) / per_trial, (rows.start - start) % per_trial);
        let mut slot = slot as usize;
        for row in rows.clone() {
            let t = questions.at[slot].t;
            if !columns.is_at((row - first) as usize, replicate, t) {
                return Err(Error::Misplaced { row, cell: id, replicate, t });
            }
            slot += 1;
            if slot == questions.at.len() {
                (replicate, slot) = (replicate + 1, 0);
            }
        }
        let batch_size = self.dataset.study.replicates.batch_size();
        let mut partial = Partial::new(questions, &self.spare[0]);
        let mut trials = Trials::new();
        let mut failed = Vec::new();
        let mut replicate = (rows.start - start) / per_trial;
        while start + replicate * per_trial < rows.end {
            let batch = replicate / batch_size;
            let span = Span { batch, period: data.period(replicate) };
            let end = data.replaced_at.get(span.period).copied().unwrap_or(u64::MAX);
            let next = (replicate + LANES as u64).min((batch + 1) * batch_size).min(end);
            let mut violated: Option<(u64, u32, &'static str)> = None;
            for (slot, checkpoint) in questions.at.iter().enumerate() {
                // The first and the last trial may have some of their rows in other row groups.
                let row = |replicate: u64| start + replicate * per_trial + slot as u64;
                let from = replicate + u64::from(row(replicate) < rows.start);
                let to = (from..next).rev().find(|&last| row(last) < rows.end);
                let Some(to) = to else { continue };
                let count = (to - from + 1) as usize;
                let at = (row(from) - first) as usize;
                columns.gather(at, per_trial as usize, count, questions.reads, &mut trials);
                trials.drop_unmeasured(&mut failed);
                let seen = partial.observe(questions, slot, span, &trials, &failed);
                if let Err((lane, claim)) = seen {
                    let place =
                        failed.iter().fold(lane, |at, &failed| at + usize::from(failed <= at));
                    let trial = from + place as u64;
                    if violated.is_none_or(|(known, ..)| trial < known) {
                        violated = Some((trial, checkpoint.t, claim));
                    }
                }
            }
            if let Some((trial, t, claim)) = violated {
                let address = self.dataset.address(id, trial);
                return Err(Error::Invariant { claim, t, address });
            }
            replicate = next;
        }
        Ok(partial)
    }
}
