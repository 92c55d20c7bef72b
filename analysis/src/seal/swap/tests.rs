//! Every state between two steps of a swap, for writers that are interrupted and for readers beside it.

use std::fs::TryLockError;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use study::{Study, StudyId};

use super::*;
use crate::dataset::{self, Dataset, Mismatch, Patience, Reader};
use crate::fixture::{self, contents, sealing};
use crate::manifest::tests::manifest;
use crate::manifest::{FileEntry, NAME};
use crate::seal::{Counts, Sealing, seal};

/// A file of records that no other dataset of these tests has.
fn records(name: &str) -> String {
    format!("{RECORDS}/part-{:05}.parquet", name.len())
}

/// A dataset of two files, one of the records, each holding the dataset's name.
fn write(folder: &Path, name: &str, other: &str) {
    fs::create_dir_all(folder.join(RECORDS)).unwrap();
    let bytes = name.len() as u64;
    let file = |name: String| FileEntry { name, bytes, blake3: String::new() };
    let files = [records(name), other.to_owned()].map(file);
    for FileEntry { name: file, .. } in &files {
        fs::write(folder.join(file), name).unwrap();
    }
    fs::write(folder.join(STUDY), name).unwrap();
    let manifest = Manifest { name: name.into(), files: files.into(), ..manifest() };
    fs::write(folder.join(NAME), manifest.text()).unwrap();
}

/// What swaps leave in a folder.
fn leftovers(out: &Path) -> Vec<String> {
    let names = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("sealing")).collect()
}

fn assert_holds(out: &Path, name: &str, other: &str) {
    let found = contents(out).into_iter().map(|(path, _)| path);
    let found: Vec<PathBuf> = found.filter(|path| !path.ends_with(".lock")).collect();
    let mut expected = [NAME.into(), STUDY.into(), records(name), other.into()].map(PathBuf::from);
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(Manifest::read(out).unwrap().name, name);
    for file in [STUDY, other] {
        assert_eq!(fs::read_to_string(out.join(file)).unwrap(), name);
    }
    assert_eq!(leftovers(out), [] as [String; 0]);
}

/// The steps of a whole swap are `decide` and, once those are done, `install`.
fn perform(out: &Path, steps: usize) -> bool {
    let decide = decide(out, &out.join(STAGED));
    let first = steps.min(decide.len());
    decide[..first].iter().for_each(|step| step.perform().unwrap());
    if first < decide.len() {
        return false;
    }
    let install = install(out).unwrap();
    let second = (steps - first).min(install.len());
    install[..second].iter().for_each(|step| step.perform().unwrap());
    second == install.len()
}

#[test]
fn a_crash_between_any_two_steps_leaves_the_old_or_the_newer() {
    let mut outcomes = Vec::new();
    for steps in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        write(out, "old", "counts.parquet");
        write(&out.join(STAGED), "newer", "priors.json");
        let finished = perform(out, steps);
        recover(out).unwrap();
        recover(out).unwrap();
        let new = !out.join(STAGED).exists();
        // What opens the folder next for sealing starts from nothing staged.
        drop(Staging::create(&Lock::take(out).unwrap()).unwrap());
        if new {
            assert_holds(out, "newer", "priors.json");
        } else {
            assert_holds(out, "old", "counts.parquet");
        }
        outcomes.push(new);
        if finished {
            break;
        }
    }
    // Old up to the renaming that decides, new from there on.
    assert_eq!(outcomes.iter().filter(|&&new| !new).count(), 3);
    assert!(outcomes.is_sorted() && outcomes.len() > 12);
}

#[test]
fn a_crash_during_recovery_is_recovered_from() {
    for crash in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        write(out, "old", "counts.parquet");
        write(&out.join(STAGED), "newer", "priors.json");
        // The old records are aside, the new ones not in place; then another crash.
        perform(out, decide(out, &out.join(STAGED)).len() + 1);
        install(out).unwrap().iter().take(crash).for_each(|step| step.perform().unwrap());
        recover(out).unwrap();
        assert_holds(out, "newer", "priors.json");
    }
}

#[test]
fn a_removal_that_was_begun_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    write(out, "newer", "priors.json");
    fs::create_dir_all(out.join(REPLACED)).unwrap();
    fs::write(out.join(REPLACED).join("part"), "old").unwrap();
    fs::create_dir_all(out.join(REPLACING)).unwrap();
    recover(out).unwrap();
    assert_holds(out, "newer", "priors.json");
}

#[test]
fn whoever_hung_while_another_sealed_has_nothing_to_put_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let create = || Staging::create(&Lock::take(out).unwrap()).unwrap();
    let hung = create();
    write(&hung.folder, "hung", "counts.parquet");
    let other = create();
    assert_ne!(hung.folder, other.folder);
    write(&other.folder, "newer", "priors.json");
    assert!(hung.publish().is_err());
    other.publish().unwrap();
    assert_holds(out, "newer", "priors.json");
    // The same after the other has finished.
    let hung = Staging { out: out.to_owned(), folder: out.join("sealing.tmp-gone") };
    assert!(hung.publish().is_err());
    assert_holds(out, "newer", "priors.json");
}

fn no_locks(_: &File) -> Result<(), TryLockError> {
    Err(TryLockError::Error(Errno::NOLCK.into()))
}

/// Without locks, two writers finish the same swap, and each may stop for any time at any step.
#[test]
fn two_that_finish_a_swap_without_locks_lose_nothing() {
    let steps = |out: &Path| install(out).unwrap();
    let most = 14;
    for (first, second) in (0..most).flat_map(|first| (0..most).map(move |second| (first, second)))
    {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        write(out, "old", "counts.parquet");
        write(&out.join(REPLACING), "newer", "priors.json");
        let (one, other) = (steps(out), steps(out));
        assert!(one.len() < most);
        let (first, second) = (first.min(one.len()), second.min(other.len()));
        let all = one[..first].iter().chain(&other[..second]);
        for step in all.chain(&one[first..]).chain(&other[second..]) {
            step.perform().unwrap();
        }
        assert_holds(out, "newer", "priors.json");
    }
}

/// Whoever sets old records aside may find that they were the new ones, which are then put back.
#[test]
fn records_that_another_put_in_place_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    write(out, "old", "counts.parquet");
    write(&out.join(REPLACING), "newer", "priors.json");
    let steps = install(out).unwrap();
    let Step::Replace(late) = &steps[1] else { panic!("{steps:?}") };
    let late = Records { aside: out.join(format!("{REPLACED}-late")), ..late.clone() };
    steps[..2].iter().for_each(|step| step.perform().unwrap());
    // Between looking whether there are new records and moving the old ones.
    fs::rename(&late.place, &late.aside).unwrap();
    steps[2..].iter().for_each(|step| step.perform().unwrap());
    assert!(late.aside.exists(), "what the manifest lists is not deleted");
    late.replace().unwrap();
    remove_asides(out).unwrap();
    assert_holds(out, "newer", "priors.json");
}

#[test]
fn without_locks_only_those_who_seal_finish_a_swap() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    write(out, "old", "counts.parquet");
    write(&out.join(REPLACING), "newer", "priors.json");
    let before = snapshot(out);
    let lock = Lock::within(out, Duration::ZERO, no_locks).unwrap();
    fs::remove_file(out.join(".lock")).unwrap();
    assert!(snapshot(out) == before, "taking the lock moved something");
    let staging = Staging::create(&lock).unwrap();
    assert_eq!(Manifest::read(out).unwrap().name, "newer");
    write(&staging.folder, "third", "codebook.csv");
    staging.publish_with(&lock).unwrap();
    assert_holds(out, "third", "codebook.csv");
}

#[test]
fn whoever_was_overtaken_hears_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let cells = fixture::cells(4);
    let priors = [fixture::prior(0, 5, 1)];
    let records = fixture::records(&cells);
    let batches = fixture::batches(&records, 10).inspect(|_| {
        drop(Staging::create(&Lock::take(out).unwrap()).unwrap());
    });
    let error = seal(&sealing(&cells, &priors, out), batches, None).unwrap_err().to_string();
    assert!(error.contains("another process has begun to seal"), "{error}");
}

#[test]
fn a_folder_without_leftovers_needs_no_recovery() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "old", "priors.json");
    write(&folder.path().join(STAGED), "half", "priors.json");
    let before = contents(folder.path());
    recover(folder.path()).unwrap();
    assert!(contents(folder.path()) == before, "another process may be sealing");
    recover(&folder.path().join("nowhere")).unwrap();
    assert!(!folder.path().join("nowhere").exists());
}

const FILE: &str = r#"
[study]
name = "small"
seed = 2018
replicates = 10

[prior]
setting = "finite"
domain = { kind = "grid", points = 5, dimension = 1 }
kernel = { kind = "squared-exponential", lengthscale = 0.5, variance = 1.0 }
noise_variance = 0.01

[grid]
N = [200]
T = [1, 5]
delta = [0.1]
"#;

/// Seals a dataset that can be opened, of so many replicates.
fn sealed(out: &Path, replicates: u64) {
    let study = Study::parse("study.toml", FILE).unwrap();
    let cells = fixture::cells(replicates);
    let priors = [fixture::prior(0, 5, 1)];
    let records = fixture::records(&cells);
    let mut whole = Sealing {
        study: StudyId::new(&study.name, study.seed).0,
        file: FILE,
        ..sealing(&cells, &priors, out)
    };
    (whole.family.alpha, whole.family.n_opt) = (study.alpha, study.n_opt);
    let count = |cell: &crate::CellDescription| fixture::count(cell.id, replicates);
    let counts = || -> Counts<'_> { Box::new(cells.iter().map(count).map(Ok)) };
    seal(&whole, fixture::batches(&records, 10), Some(counts())).unwrap();
    // The rows that the study makes are counted where the dataset is opened.
    let error = Dataset::open(out).unwrap_err();
    let dataset::Error::Mismatch(Mismatch::OtherFamily { found, .. }) = error else {
        panic!("{error}")
    };
    whole.family.rows = found;
    seal(&whole, fixture::batches(&records, 10), Some(counts())).unwrap();
}

/// Two datasets of one study, with as many replicates as they are named after.
struct Pair {
    folder: tempfile::TempDir,
}

const SIZES: [u64; 2] = [4, 9];

impl Pair {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for size in SIZES {
            sealed(&folder.path().join(size.to_string()), size);
        }
        Self { folder }
    }

    /// Links the files of one into a folder.
    fn link(&self, size: u64, to: &Path) {
        let from = self.folder.path().join(size.to_string());
        fs::create_dir_all(to.join(RECORDS)).unwrap();
        for (name, _) in contents(&from).iter().filter(|(name, _)| !name.ends_with(".lock")) {
            fs::hard_link(from.join(name), to.join(name)).unwrap();
        }
    }
}

const IMPATIENT: Patience = Patience { waiting: Duration::from_millis(50), readings: 3 };

/// What each way to read a folder finds: how many replicates each cell has, or that it is being replaced.
fn read(out: &Path) -> Vec<Result<u64, dataset::Error>> {
    let records = || -> Result<u64, dataset::Error> {
        let mut reader = Reader::open_within(IMPATIENT, out)?;
        let promised = reader.manifest().records;
        let found = reader.try_fold(0, |sum, batch| Ok::<_, dataset::Error>(sum + batch?.len()))?;
        assert_eq!(found as u64, promised);
        Ok(promised / 9)
    };
    let counts = || -> Result<u64, dataset::Error> {
        let mut counts = dataset::counts_within(IMPATIENT, out)?.unwrap();
        Ok(counts.next().unwrap().unwrap().trials)
    };
    vec![
        Dataset::open_within(IMPATIENT, out).map(|dataset| dataset.cells[0].replicates),
        records(),
        counts(),
        dataset::verify_within(IMPATIENT, out).map(|manifest| manifest.records / 9),
    ]
}

/// Everything in a folder, folders too.
fn snapshot(out: &Path) -> (Vec<PathBuf>, Vec<(PathBuf, Vec<u8>)>) {
    let entries = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    (entries, contents(out))
}

#[test]
fn readers_change_nothing_in_any_state_and_see_one_of_the_two_or_that_it_is_being_replaced() {
    let pair = Pair::new();
    let mut seen = Vec::new();
    for steps in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        pair.link(SIZES[0], out);
        pair.link(SIZES[1], &out.join(STAGED));
        let finished = perform(out, steps);
        let before = snapshot(out);
        let found = read(out);
        assert!(snapshot(out) == before, "a reader changed the folder after {steps} steps");
        let found = found.into_iter().map(|found| match found {
            Ok(size) => Some(size),
            Err(dataset::Error::Replaced { .. }) => None,
            Err(error) => panic!("after {steps} steps: {error}"),
        });
        let found: Vec<Option<u64>> = found.collect();
        assert!(found.iter().all(|one| *one == found[0]), "after {steps} steps: {found:?}");
        seen.push(found[0]);
        recover(out).unwrap();
        if finished {
            break;
        }
    }
    seen.dedup();
    assert_eq!(seen, [Some(SIZES[0]), None, Some(SIZES[1])]);
}

/// Writers at every step of a swap for a moment, and readers all the time.
#[test]
fn readers_beside_slow_swaps_lose_nothing() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    pair.link(SIZES[0], out);
    let (done, reads, retries) = (AtomicBool::new(false), AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for found in read(out) {
                        match found {
                            Ok(size) => assert!(SIZES.contains(&size)),
                            Err(dataset::Error::Replaced { .. }) => {
                                retries.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(error) => panic!("{error}"),
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let slow = |step: &Step| {
            thread::sleep(Duration::from_millis(4));
            step.perform().unwrap();
        };
        for round in 1..=20 {
            let lock = Lock::take(out).unwrap();
            let staging = Staging::create(&lock).unwrap();
            pair.link(SIZES[round % 2], &staging.folder);
            decide(out, &staging.folder).iter().for_each(slow);
            install(out).unwrap().iter().for_each(slow);
            drop(lock);
            let now = dataset::verify(out).unwrap().records / 9;
            assert_eq!(now, SIZES[round % 2], "the dataset that was published");
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(reads.into_inner() > 20);
}

/// Whoever comes last wins, whoever was overtaken hears of it, and what is there is whole.
#[test]
fn two_that_seal_at_once_leave_a_whole_dataset() {
    let pair = Pair::new();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    pair.link(SIZES[0], out);
    let published = AtomicU32::new(0);
    thread::scope(|scope| {
        for size in SIZES {
            let (pair, published) = (&pair, &published);
            scope.spawn(move || {
                for _ in 0..30 {
                    let staging = Staging::create(&Lock::take(out).unwrap()).unwrap();
                    // The other may remove it at any moment.
                    let from = pair.folder.path().join(size.to_string());
                    let files = contents(&from).into_iter().map(|(name, _)| name);
                    let mut files = files.filter(|name| !name.ends_with(".lock"));
                    let linked = files.try_for_each(|name| {
                        fs::hard_link(from.join(&name), staging.folder.join(&name))
                    });
                    if linked.is_ok() && staging.publish().is_ok() {
                        published.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(published.into_inner() > 0);
    dataset::verify(out).unwrap();
    assert_eq!(leftovers(out), [] as [String; 0]);
}
