//! Completes a matrix of doubles, for `bench/impute.py`.
//!
//!     impute ROWS COLUMNS SEED TOLERANCE COUNT SMALLEST VALUES OUT
//!
//! VALUES holds little-endian doubles row by row, NaN where an entry is missing; OUT gets the
//! completed ones. Prints what it took as JSON.

use std::error::Error;
use std::fs;
use std::time::Instant;

use worker::Cpu;
use worker::completion::{Incomplete, Options, Path, complete};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rows, columns, seed, tolerance, count, smallest, from, to] = &arguments[..] else {
        return Err("usage: impute ROWS COLUMNS SEED TOLERANCE COUNT SMALLEST VALUES OUT".into());
    };
    let bytes = fs::read(from)?;
    let values: Vec<f64> = bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    let observed: Vec<bool> = values.iter().map(|value| !value.is_nan()).collect();
    let (rows, columns) = (rows.parse()?, columns.parse()?);
    let data = Incomplete { rows, columns, values: &values, observed: &observed };
    let options = Options {
        tolerance: tolerance.parse()?,
        path: Path { count: count.parse()?, smallest: smallest.parse()? },
        ..Options::held_out(seed.parse()?)
    };
    let cpu = Cpu::detect();
    let start = Instant::now();
    let done = complete(&data, &options, cpu)?;
    let seconds = start.elapsed().as_secs_f64();
    let bytes: Vec<u8> = done.values.iter().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(to, bytes)?;
    println!(
        "{}",
        serde_json::json!({
            "seconds": seconds, "cpu": cpu.name(), "rank": done.rank, "lambda": done.lambda,
            "iterations": done.iterations, "held_out_error": done.held_out_error,
        })
    );
    Ok(())
}
