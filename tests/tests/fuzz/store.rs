//! The folder of a store of which any byte may be wrong: opening it is refused, or what it then holds is
//! what was committed. Shards may be missing, and are computed anew; none is invented or altered.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use coordinator::store::{
    Error, Options, Recovered, ShardRow, State, Store, StoredShard, StoredStudy, Sum,
};
use study::{CellId, StudyId};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::harness::{Answer, Inputs, fuzz};

const STUDIES: [StudyId; 2] = [StudyId([7; 32]), StudyId([8; 32])];
const TEXT: &str = "[study]\nname = \"a\"\n";
const OPTIONS: Options<'_> = Options { numerics: "numerics", version: "0.0.0" };

/// Longer than any recovery of so little.
const HANG: Duration = Duration::from_secs(60);

/// A folder's files by their paths within it, and what was committed to it.
struct Folder {
    files: Vec<(PathBuf, Vec<u8>)>,
}

/// In memory where that can be: not the syncs are tried here.
fn room() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}

fn row(token: u64) -> ShardRow {
    let first = token / 3 * 8;
    ShardRow {
        study: STUDIES[usize::from(token.is_multiple_of(5))],
        cell: CellId(token % 3),
        range: first..first + 8,
        checkpoints: [1; 32],
        digest: *blake3::hash(&token.to_le_bytes()).as_bytes(),
        tally: Bytes::from(vec![token as u8; 9]),
        records: 8,
        worker: "w1".to_owned(),
        seconds: 0.25,
    }
}

fn batches(token: u64) -> Vec<Bytes> {
    (0..=token % 3).map(|i| Bytes::from(format!("{token}.{i};").repeat(9))).collect()
}

async fn commit(store: &Store, token: u64) -> Result<(), Error> {
    let (row, mut draft) = (row(token), store.writer().draft(token));
    let sum = Sum { records: row.records, digest: row.digest };
    for batch in batches(token) {
        draft.append(batch, sum).await?;
    }
    draft.commit(row, sum).await.map(drop)
}

/// A store that was opened three times, so that it has three segments. `killed`: as it lay on disk while
/// it was open, with a write-ahead log.
async fn folder(killed: bool) -> Folder {
    let dir = room();
    let mut files = vec![];
    for session in 0..3 {
        let (store, _) = Store::open(dir.path(), OPTIONS).await.unwrap();
        if session == 0 {
            for study in STUDIES {
                store.put_study(study, "a.toml", TEXT, &[]).await.unwrap();
            }
        }
        for token in session * 8..session * 8 + 8 {
            commit(&store, token).await.unwrap();
        }
        if session == 2 {
            store.set_state(STUDIES[1], State::Cancelled, "enough").await.unwrap();
        }
        if killed {
            files = read_all(dir.path());
        }
        store.close().await.unwrap();
    }
    if !killed {
        files = read_all(dir.path());
    }
    Folder { files }
}

fn read_all(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = vec![];
    for folder in [dir.to_path_buf(), dir.join("segments")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // Neither outlives a process.
            if path.is_file() && name != "lock" && !name.ends_with("-shm") {
                let bytes = std::fs::read(&path).unwrap();
                files.push((path.strip_prefix(dir).unwrap().to_path_buf(), bytes));
            }
        }
    }
    files.sort();
    files
}

impl Folder {
    /// The folder with one file replaced, or without it; and perhaps without its ledger.
    fn write(&self, dir: &Path, which: usize, content: &[u8], how: u8) {
        std::fs::create_dir_all(dir.join("segments")).unwrap();
        for (i, (path, bytes)) in self.files.iter().enumerate() {
            let is_ledger = path.to_string_lossy().starts_with("ledger");
            let missing = is_ledger && how & 1 > 0 || i == which && how & 6 == 6;
            if !missing {
                let bytes = if i == which { content } else { bytes };
                std::fs::write(dir.join(path), bytes).unwrap();
            }
        }
    }
}

/// Opens a folder and compares all that it holds with what was committed.
async fn check(dir: &Path) -> Answer {
    let opened = timeout(HANG, Store::open(dir, OPTIONS)).await.expect("opening hangs");
    let (store, recovered) = match opened {
        Ok(opened) => opened,
        Err(error) => return kind(&error),
    };
    let Recovered { studies, damaged_studies, rebuilt, damaged, torn_bytes, .. } = recovered;
    let mut found = BTreeMap::new();
    for study in &studies {
        assert!(STUDIES.contains(&study.id) && study.text == TEXT && study.file_name == "a.toml");
        let shards = match store.shards(study.id).await {
            Ok(shards) => shards,
            Err(error) => return format!("shards: {}", kind(&error)),
        };
        for shard in shards {
            verify(&store, &shard);
            assert!(found.insert(shard.token, shard).is_none(), "a shard is there twice");
        }
    }
    let mut answer = format!(
        "{} there, {rebuilt} {} {} {}",
        found.len(),
        damaged.len(),
        damaged_studies.len(),
        torn_bytes > 0
    );
    // And it goes on: a study that is damaged or gone can be put again, what it still has is what was
    // committed, and what is missing can be committed, under leases of its own.
    if let Err(error) = go_on(&store, &studies, found).await {
        answer = format!("{answer}, then {}", kind(&error));
    }
    timeout(HANG, store.close()).await.expect("closing hangs").ok();
    answer
}

async fn go_on(
    store: &Store,
    studies: &[StoredStudy],
    mut found: BTreeMap<u64, StoredShard>,
) -> Result<(), Error> {
    for id in STUDIES {
        if studies.iter().any(|study| study.id == id) {
            continue;
        }
        store.put_study(id, "a.toml", TEXT, &[]).await?;
        store.verify_study(id).await?;
        for shard in store.shards(id).await? {
            verify(store, &shard);
            assert!(found.insert(shard.token, shard).is_none(), "a shard is there twice");
        }
    }
    for token in (0..24).filter(|token| !found.contains_key(token)) {
        commit(store, token).await?;
    }
    Ok(())
}

fn verify(store: &Store, shard: &StoredShard) {
    assert!(shard.token < 24, "{shard:?} was never committed");
    assert_eq!(shard.row, row(shard.token));
    let mut reader = store.reader();
    let read: Result<Vec<Bytes>, Error> = reader.read(shard).unwrap().collect();
    assert_eq!(read.expect("what recovery left can be read"), batches(shard.token));
}

/// An error's kind; details differ from folder to folder.
fn kind(error: &Error) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn run(runtime: &Runtime, folder: &Folder, input: &[u8]) -> Answer {
    let [which, how, content @ ..] = input else { return String::new() };
    let which = usize::from(*which) % folder.files.len();
    let dir = room();
    folder.write(dir.path(), which, content, *how);
    let file = folder.files[which].0.display();
    format!("{file} {} {}", how & 1 > 0, runtime.block_on(check(dir.path())))
}

/// An input is the place of a file in the folder, what else is done to the folder, and the file's new
/// content: the first are mutated too.
fn fuzz_folder(name: &str, killed: bool) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let folder = runtime.block_on(folder(killed));
    let files = folder.files.iter().enumerate();
    let valid = files.flat_map(|(which, (_, bytes))| {
        [0, 1].map(|how| [&[which as u8, how], bytes.as_slice()].concat())
    });
    let valid: Vec<Vec<u8>> = valid.collect();
    for input in &valid {
        let answer = run(&runtime, &folder, input);
        assert!(answer.contains("24 there"), "{answer}");
    }
    let tokens: [&[u8]; 4] = [&[0; 64], &[0xff; 16], b"SQLite format 3\0", &[0, 0, 0, 1]];
    fuzz(Inputs { name, valid, tokens: &tokens }, |input| run(&runtime, &folder, input));
}

#[test]
fn folder_of_a_store() {
    fuzz_folder("store", false);
}

#[test]
fn folder_of_a_killed_store() {
    fuzz_folder("killed-store", true);
}

/// An input is what a byte of the studies' rows is changed by, and where: pages of the ledger stay whole, so that
/// it has to be opened, without the study or with it as it was put.
#[test]
fn rows_of_studies() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let folder = runtime.block_on(folder(false));
    let is_ledger = |path: &Path| path.ends_with("ledger.db");
    let ledger = folder.files.iter().position(|(path, _)| is_ledger(path)).unwrap();
    let whole = &folder.files[ledger].1;
    // Free pages hold old copies of rows, too: those must not matter.
    let mut places: Vec<usize> = vec![];
    for text in [TEXT.as_bytes(), b"a.toml", b"active", b"cancelled", b"enough"] {
        let found = whole.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
        places.extend(found.flat_map(|(at, _)| at..at + text.len()));
    }
    assert!(places.len() > 2 * TEXT.len(), "{}", places.len());
    let valid: Vec<Vec<u8>> =
        (0..places.len()).map(|at| vec![1, at as u8, (at >> 8) as u8]).collect();
    let mut lost = 0;
    fuzz(Inputs { name: "rows", valid, tokens: &[] }, |input| {
        let mut bytes = whole.clone();
        for change in input.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[1], change[2]])) % places.len();
            bytes[places[at]] ^= change[0];
        }
        let dir = room();
        folder.write(dir.path(), ledger, &bytes, 0);
        let answer = runtime.block_on(check(dir.path()));
        assert!(answer.contains(" there, false"), "the ledger was not opened: {answer}");
        lost += usize::from(!answer.contains("24 there"));
        answer
    });
    assert!(lost > 0, "no change cost a study");
}
