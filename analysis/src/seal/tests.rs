use std::borrow::Cow;
use std::cell::Cell as Shared;
use std::path::Path;

use proptest::prelude::*;
use study::{Digest, Record};

use super::*;
use crate::dataset::{self, Reader, Selection, merge, select, verify};
use crate::fixture::{batches, cells, contents, measurement, prior, records, sealing};

/// Seals records in batches of a size.
fn sealed(out: &Path, cells: &[CellDescription], records: &[Record], size: usize) -> Manifest {
    let priors = [prior(0, 5, 1), prior(1, 4, 2)];
    seal(&sealing(cells, &priors, out), batches(records, size), None).unwrap()
}

fn refused(cells: &[CellDescription], batches: Vec<Batch>) -> Error {
    let out = tempfile::tempdir().unwrap();
    let batches = batches.into_iter().map(Ok::<_, Source>);
    seal(&sealing(cells, &[], out.path()), batches, None).unwrap_err()
}

fn collected(records: &[Record], size: usize) -> Vec<Batch> {
    batches(records, size).map(|Ok(batch)| batch).collect()
}

fn count(cell: CellId, batch: u64, form: Option<&'static str>) -> Count {
    Count {
        cell,
        batch,
        claim: "lemma1.mean".into(),
        constants: form.map(Cow::from),
        at: Some("probe".into()),
        t: 5,
        delta: 0.1,
        budget: 0.05,
        trials: 40,
        refuting: 3,
        confirming: 4,
        failures: batch,
    }
}

#[test]
fn bytes_do_not_depend_on_how_records_arrived() {
    let cells = cells(10);
    let records = records(&cells);
    let whole = tempfile::tempdir().unwrap();
    let manifest = sealed(whole.path(), &cells, &records, 1000);
    assert_eq!((manifest.trials, manifest.records, manifest.failures), (30, 90, 6));
    let parts = manifest.files.iter().filter(|file| file.name.starts_with("records/"));
    assert_eq!(parts.count(), 90_usize.div_ceil(32));
    for size in [1, 3, 16, 17] {
        let out = tempfile::tempdir().unwrap();
        assert_eq!(sealed(out.path(), &cells, &records, size), manifest);
        assert!(contents(out.path()) == contents(whole.path()), "batches of {size}");
    }
}

#[test]
fn the_digest_is_that_of_the_records() {
    let cells = cells(9);
    let records = records(&cells);
    let mut digest = Digest::new();
    digest.tag("dataset v1");
    records.iter().for_each(|record| record.feed(&mut digest));
    let out = tempfile::tempdir().unwrap();
    assert_eq!(sealed(out.path(), &cells, &records, 4).digest, digest.hex());
    assert_eq!(verify(out.path()).unwrap().digest, digest.hex());
}

#[test]
fn records_come_back_bit_for_bit() {
    let cells = cells(13);
    let records = records(&cells);
    let out = tempfile::tempdir().unwrap();
    sealed(out.path(), &cells, &records, 7);
    let mut back: Vec<Batch> = Vec::new();
    for batch in Reader::open(out.path()).unwrap() {
        let batch = batch.unwrap();
        assert!(batch.len() <= 16, "a row group at a time");
        match back.last_mut().filter(|last| last.cell() == batch.cell()) {
            Some(last) => last.append(batch),
            None => back.push(batch),
        }
    }
    assert_eq!(back, collected(&records, 1000));
    let negative_zero = back.iter().flat_map(Batch::columns).flat_map(study::batch::Values::floats);
    assert!(negative_zero.flatten().any(|value| value == 0.0 && value.is_sign_negative()));
}

#[test]
fn constant_and_swept_columns_are_those_of_the_cell() {
    use polars::prelude::{ParquetReader, SerReader};
    let cells = cells(2);
    let out = tempfile::tempdir().unwrap();
    sealed(out.path(), &cells, &records(&cells), 7);
    let file = std::fs::File::open(out.path().join("records/part-00000.parquet")).unwrap();
    let frame = ParquetReader::new(file).finish().unwrap();
    let names = frame.get_column_names();
    let leading = "study cell replicate status setting design method acquisition policy_constants N \
                   delta t prior.kernel.kind prior.kernel.lengthscale x y";
    assert!(names.iter().zip(leading.split(' ')).all(|(name, expected)| name.as_str() == expected));
    for row in 0..frame.height() {
        let text = |name| frame.column(name).unwrap().str().unwrap().get(row);
        let cell = &cells[row / 6];
        assert_eq!(text("study"), Some("abababababab"));
        assert_eq!(text("cell"), Some(cell.id.to_string().as_str()));
        assert_eq!(text("method"), Some(cell.cell.policy.method()));
        assert_eq!(text("acquisition"), cell.cell.policy.acquisition());
        assert_eq!(text("prior.kernel.kind"), Some("matern32"));
        let n = frame.column("N").unwrap().i64().unwrap().get(row);
        assert_eq!(n, cell.cell.policy.training().map(|training| training.n.cast_signed()));
        let delta = frame.column("delta").unwrap().f64().unwrap().get(row);
        assert_eq!(delta, cell.cell.policy.delta().map(theory::Delta::get));
        let lengthscale = frame.column("prior.kernel.lengthscale").unwrap();
        assert!(lengthscale.f64().unwrap().get(row).is_some());
    }
}

#[test]
fn a_grown_study_equals_a_whole_one() {
    let (small, large) = (cells(6), cells(11));
    let whole = tempfile::tempdir().unwrap();
    let expected = sealed(whole.path(), &large, &records(&large), 50);
    // The base lacks a cell, and has one whose trials are computed again.
    let out = tempfile::tempdir().unwrap();
    sealed(out.path(), &small[..2], &records(&small[..2]), 5);
    let kept = Selection::from([(small[0].id, vec![0..2, 2..4])]);
    let base = select(Reader::open(out.path()).unwrap(), kept);
    let is_new = |record: &&Record| record.cell != small[0].id || record.replicate >= 4;
    let new: Vec<Record> = records(&large).iter().filter(is_new).copied().collect();
    let priors = [prior(0, 5, 1), prior(1, 4, 2)];
    let grown = sealing(&large, &priors, out.path());
    let manifest = seal(&grown, merge(base, batches(&new, 8)), None).unwrap();
    assert_eq!(manifest, expected);
    assert!(contents(out.path()) == contents(whole.path()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_two_halves_merge_into_the_whole(
        halves in proptest::collection::vec(any::<bool>(), 45), a in 1_usize..9, b in 1_usize..9,
    ) {
        let cells = cells(5);
        let records = records(&cells);
        let half = |wanted| -> Vec<Record> {
            records.iter().zip(&halves).filter(|&(_, &half)| half == wanted).map(|(r, _)| *r).collect()
        };
        let (mut whole, mut merged) = (Census::default(), Census::default());
        batches(&records, 7).for_each(|Ok(batch)| whole.add(&batch).unwrap());
        for batch in merge(batches(&half(true), a), batches(&half(false), b)) {
            merged.add(&batch.unwrap()).unwrap();
        }
        prop_assert_eq!(merged.digest(), whole.digest());
        prop_assert_eq!(merged.cells(), whole.cells());
    }
}

#[test]
fn what_is_twice_or_out_of_order_is_refused() {
    let cells = cells(4);
    let records = records(&cells);
    let mut twice = collected(&records, 3);
    twice.insert(1, twice[0].slice(2..3));
    let key = (records[2].cell, records[2].replicate, records[2].t);
    let (cell, replicate, t) = key;
    let error = refused(&cells, twice);
    assert!(
        matches!(error, Error::Disorder(found) if found == crate::census::Disorder::Twice { cell, replicate, t })
    );
    let mut swapped = collected(&records, 3);
    swapped.swap(0, 1);
    assert!(matches!(refused(&cells, swapped), Error::Disorder(_)));
    let mut cells_swapped = collected(&records, 100);
    cells_swapped.swap(0, 2);
    assert!(matches!(refused(&cells, cells_swapped), Error::Disorder(_)));
    let mut merged = merge(batches(&records, 5), batches(&records[20..22], 5));
    assert!(merged.any(|batch| batch.is_err()));
    assert!(merged.next().is_none(), "nothing follows an error");
}

#[test]
fn what_does_not_belong_or_is_missing_is_refused() {
    let cells = cells(4);
    let all = records(&cells);
    let unknown = refused(&cells[1..], collected(&all, 100));
    assert!(matches!(unknown, Error::UnknownCell { cell } if cell == cells[0].id));
    let mut lost = all.clone();
    lost.remove(17);
    assert!(matches!(
        refused(&cells, collected(&lost, 100)),
        Error::Incomplete { records: 11, .. }
    ));
    assert!(matches!(refused(&cells, vec![]), Error::Incomplete { trials: 0, planned: 4, .. }));
    let mut other = all.clone();
    other[0].t = 2;
    assert!(matches!(refused(&cells, collected(&other, 100)), Error::Checkpoint { t: 2, .. }));
    let mut large = all;
    large[11].replicate = u64::MAX;
    assert!(matches!(refused(&cells, collected(&large, 100)), Error::Replicate { .. }));
}

#[test]
fn nothing_is_a_dataset_too() {
    let out = tempfile::tempdir().unwrap();
    let manifest = sealed(out.path(), &[], &[], 1);
    assert_eq!((manifest.trials, manifest.records), (0, 0));
    assert_eq!(verify(out.path()).unwrap(), manifest);
    assert_eq!(Reader::open(out.path()).unwrap().count(), 0);
}

#[test]
fn a_failing_source_leaves_the_old_dataset() {
    let cells = cells(4);
    let records = records(&cells);
    let out = tempfile::tempdir().unwrap();
    sealed(out.path(), &cells, &records, 10);
    let before = contents(out.path());
    let failing = collected(&records, 10).into_iter().map(Ok).chain([Err("the segment is torn")]);
    let error = seal(&sealing(&cells, &[], out.path()), failing, None).unwrap_err();
    assert_eq!(error.to_string(), "the records cannot be read: the segment is torn");
    assert!(contents(out.path()) == before);
}

#[test]
fn counts_are_part_of_the_digest_and_come_back() {
    let cells = cells(4);
    let records = records(&cells);
    let counts: Vec<Count> = cells
        .iter()
        .flat_map(|cell| {
            (0..9).map(|batch| count(cell.id, batch, [None, Some("printed")][batch as usize % 2]))
        })
        .collect();
    let out = tempfile::tempdir().unwrap();
    let summary =
        Sealing { detail: Detail::Summary { failures: 12 }, ..sealing(&cells, &[], out.path()) };
    // Records of some trials only.
    let some = &records[3..9];
    let given = || -> Counts<'_> { Box::new(counts.iter().cloned().map(Ok)) };
    let manifest = seal(&summary, batches(some, 10), Some(given())).unwrap();
    assert_eq!((manifest.trials, manifest.records, manifest.failures), (12, 6, 12));
    let mut digest = Digest::new();
    digest.tag("dataset v1");
    some.iter().for_each(|record| record.feed(&mut digest));
    counts.iter().for_each(|count| count.feed(&mut digest));
    assert_eq!(manifest.digest, digest.hex());
    assert_eq!(verify(out.path()).unwrap(), manifest);
    let back: Result<Vec<Count>, _> = dataset::counts(out.path()).unwrap().unwrap().collect();
    assert_eq!(back.unwrap(), counts);

    let late: Counts<'_> = Box::new(counts.iter().rev().cloned().map(Ok));
    let error = seal(&summary, batches(some, 10), Some(late)).unwrap_err();
    assert!(matches!(error, Error::Counts { .. }));
    // A dataset without counts leaves none behind.
    sealed(out.path(), &cells, &records, 10);
    assert!(dataset::counts(out.path()).unwrap().is_none());
    assert!(!out.path().join("counts.parquet").exists());
}

#[test]
fn a_changed_byte_is_found_in_every_file() {
    let cells = cells(4);
    let out = tempfile::tempdir().unwrap();
    let manifest = sealed(out.path(), &cells, &records(&cells), 10);
    for entry in &manifest.files {
        let path = out.path().join(&entry.name);
        let good = std::fs::read(&path).unwrap();
        for at in [0, good.len() / 3, good.len() / 2, good.len() - 1] {
            let mut bytes = good.clone();
            bytes[at] ^= 4;
            std::fs::write(&path, bytes).unwrap();
            let error = verify(out.path()).unwrap_err();
            let changed =
                matches!(&error, dataset::Error::Changed { name, .. } if *name == entry.name);
            assert!(changed && error.is_mismatch(), "{error}");
        }
        std::fs::remove_file(&path).unwrap();
        let error = verify(out.path()).unwrap_err();
        assert!(matches!(error, dataset::Error::Missing { name } if name == entry.name));
        std::fs::write(&path, good).unwrap();
    }
    assert!(verify(out.path()).is_ok());
}

#[test]
fn a_forged_dataset_is_found_by_its_values() {
    let cells = cells(4);
    let mut records = records(&cells);
    let (honest, forged) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let expected = sealed(honest.path(), &cells, &records, 10).digest;
    records[0].outcome = Ok(measurement(1, 1));
    let mut manifest = sealed(forged.path(), &cells, &records, 10);
    let write = |manifest: &Manifest| {
        std::fs::write(forged.path().join("manifest.json"), manifest.text()).unwrap();
    };
    // The files' digests fit, the records' does not.
    let found = std::mem::replace(&mut manifest.digest, expected.clone());
    write(&manifest);
    match verify(forged.path()).unwrap_err() {
        dataset::Error::Digest { expected: e, found: f } => {
            assert_eq!((e, f), (expected, found.clone()));
        }
        other => panic!("{other}"),
    }
    manifest.digest = found;
    manifest.failures += 1;
    write(&manifest);
    assert!(matches!(
        verify(forged.path()),
        Err(dataset::Error::Total { what: "failed trials", .. })
    ));
}

#[test]
fn a_row_group_is_on_the_disk_before_the_next_is_read() {
    // 64 row groups; a row of these records is more than 100 bytes in Parquet.
    let shape = Shape { rows: 512, groups: 100 };
    let cells = cells(64 * 512 / 9);
    let records = records(&cells);
    let out = tempfile::tempdir().unwrap();
    let (read, checks) = (Shared::new(0_u64), Shared::new(0));
    let staged = || {
        let mut entries = std::fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap());
        let staged = |name: &str| name.starts_with("sealing.tmp-");
        entries.find(|entry| entry.file_name().to_str().is_some_and(staged))
    };
    let watched = batches(&records, 100).inspect(|batch| {
        let file = staged().map(|folder| folder.path().join("records/part-00000.parquet"));
        let file = file.and_then(|file| std::fs::metadata(file).ok());
        let written = file.map_or(0, |file| file.len());
        let buffered = 1 << 17;
        let settled = read.get().saturating_sub(shape.rows as u64 + 100);
        assert!(written + buffered >= 100 * settled, "{written} bytes for {settled} rows");
        checks.set(checks.get() + u64::from(100 * settled > buffered));
        read.set(read.get() + batch.as_ref().map_or(0, |batch| batch.len() as u64));
    });
    seal(&Sealing { shape, ..sealing(&cells, &[], out.path()) }, watched, None).unwrap();
    assert!(checks.get() > 100);
}

#[test]
fn the_space_needed_is_more_than_the_input() {
    assert!(needed(0) > 0);
    assert!(needed(1 << 40) > 1 << 40);
    assert_eq!(needed(u64::MAX), u64::MAX);
}
