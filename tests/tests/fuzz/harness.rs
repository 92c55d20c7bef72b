//! Running a target on mutated inputs for a while.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::mutate::mutate;

/// An input that takes longer has no bound that deserves the name; a busy machine is forgiven.
const LONGEST: Duration = Duration::from_secs(5);

/// What the process may take, with all targets at once.
const MOST_MEMORY: u64 = 2 << 30;

/// Inputs that are kept.
const CORPUS: usize = 2000;

/// How a target answered, without what differs from input to input: a new answer is worth keeping.
pub(crate) type Answer = String;

/// A target's corpus.
pub(crate) struct Inputs<'a> {
    /// The name, and that of the folder of more inputs.
    pub(crate) name: &'a str,
    /// Valid inputs.
    pub(crate) valid: Vec<Vec<u8>>,
    /// What valid inputs are made of.
    pub(crate) tokens: &'a [&'a [u8]],
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Files of `tests/corpus/NAME`, in order.
fn stored(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Tries mutations until the time is over.
///
/// # Panics
/// Where the target panics, takes too long or too much memory.
pub(crate) fn fuzz(inputs: Inputs<'_>, mut target: impl FnMut(&[u8]) -> Answer) {
    let Inputs { name, mut valid, tokens } = inputs;
    if let Some(path) = std::env::var_os("FUZZ_INPUT") {
        println!("{name}: {}", target(&fs::read(path).expect("FUZZ_INPUT is a file")));
        return;
    }
    // What is at hand is written down before it is tried: it may not only panic but abort or hang.
    let at_hand = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
    let mut file = fs::File::create(&at_hand).unwrap();
    valid.extend(stored(name));
    let seconds = Duration::from_secs(variable("FUZZ_SECONDS").unwrap_or(3));
    let mut rng = ChaCha8Rng::seed_from_u64(variable("FUZZ_SEED").unwrap_or(0));
    let mut seen = BTreeSet::new();
    let (begin, mut tried) = (Instant::now(), 0_usize);
    let mut slowest = Duration::ZERO;
    while begin.elapsed() < seconds || tried < valid.len() {
        // First those that are valid, as they are.
        let input = match valid.get(tried) {
            Some(input) if seen.len() <= tried => input.clone(),
            _ => {
                let chosen = valid.choose(&mut rng).expect("some");
                mutate(&mut rng, chosen, &valid, tokens)
            }
        };
        file.rewind().and_then(|()| file.set_len(0)).unwrap();
        file.write_all(&input).unwrap();
        let start = Instant::now();
        let answer = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let took = start.elapsed();
        tried += 1;
        slowest = slowest.max(took);
        let failed = |why: &str| -> ! {
            let kept = keep(&at_hand, name, &input);
            panic!("{name}: {why}; replay it with FUZZ_INPUT={}", kept.display());
        };
        let Ok(answer) = answer else { failed("an input panics") };
        if took > LONGEST {
            failed(&format!("an input takes {took:?}"));
        }
        if tried.is_multiple_of(64) && peak_of_memory() > MOST_MEMORY {
            failed("memory is not bounded");
        }
        if seen.insert(without_digits(&answer)) && valid.len() < CORPUS {
            valid.push(input);
        }
    }
    println!("{name}: {tried} inputs, {} answers, slowest {slowest:?}", seen.len());
    fs::remove_file(at_hand).unwrap();
}

fn keep(at_hand: &Path, name: &str, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let kept = at_hand.with_file_name(format!("fuzz-{name}-{:016x}", hasher.finish()));
    fs::write(&kept, input).unwrap();
    kept
}

/// A hash of the answer's words: numbers in it are what was put in.
fn without_digits(answer: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for byte in answer.bytes().filter(|byte| !byte.is_ascii_digit()).take(200) {
        byte.hash(&mut hasher);
    }
    hasher.finish()
}

/// VmHWM of /proc/self/status, in bytes; 0 where there is none.
fn peak_of_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}
