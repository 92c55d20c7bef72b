//! Whatever comes from outside is refused or understood, in bounded time and memory: study files and
//! tables, every message of the wire, batches and tallies, and the folder of a store.
//!
//! A small mutation fuzzer on stable Rust: inputs that the code itself made, and those under
//! `tests/corpus/TARGET/`, are mutated; one that the target answers in a way not seen before joins them.
//! `FUZZ_SECONDS=60` is the time for each target, `FUZZ_SEED=5` another sequence, and
//! `FUZZ_INPUT=FILE` tries one input alone. One that fails is kept, and its path printed.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod harness;
mod mutate;
mod records;
mod store;
mod study_file;
mod wire;
