//! Completions agree with numpy's, whose values `worker/tests/completion.py` makes.

use serde_json::Value;

use super::super::{Completed, HeldOut, Incomplete, Lambda, Options, Path, complete};
use crate::Cpu;

/// Rounding to 7 decimals, on entries of size 1 and more.
const CLOSE: f64 = 2e-7;

fn cases(kind: &str) -> Vec<Value> {
    let text = include_str!("../../../tests/completion.json");
    let reference: Value = serde_json::from_str(text).unwrap();
    reference[kind].as_array().unwrap().clone()
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()
}

fn run(case: &Value, options: &Options) -> Completed {
    let size = |name: &str| usize::try_from(case[name].as_u64().unwrap()).unwrap();
    let values = numbers(&case["values"]);
    let observed: Vec<bool> = values.iter().map(|value| !value.is_nan()).collect();
    let (rows, columns) = (size("rows"), size("columns"));
    let data = Incomplete { rows, columns, values: &values, observed: &observed };
    complete(&data, options, Cpu::detect()).unwrap()
}

fn compare(done: &Completed, case: &Value) {
    for (found, expected) in done.values.iter().zip(numbers(&case["completed"])) {
        assert!((found - expected).abs() < CLOSE, "{found} {expected}");
    }
}

#[test]
fn at_a_given_lambda() {
    for case in cases("given") {
        let lambda = case["lambda"].as_f64().unwrap();
        let options =
            Options { lambda: Lambda::Given(lambda), tolerance: 1e-10, ..Options::held_out(0) };
        compare(&run(&case, &options), &case);
    }
}

#[test]
fn with_lambda_from_held_out_entries() {
    for case in cases("chosen") {
        let number = |name: &str| case[name].as_f64().unwrap();
        let seed = case["seed"].as_u64().unwrap();
        let options = Options {
            lambda: Lambda::HeldOut(HeldOut { seed, share: number("share") }),
            path: Path { count: number("count") as usize, smallest: number("smallest") },
            tolerance: 1e-10,
            iterations: 100_000,
        };
        let done = run(&case, &options);
        assert!((done.lambda - number("lambda")).abs() < 1e-8);
        assert!((done.held_out_error.unwrap() - number("held_out_error")).abs() < CLOSE);
        assert_eq!(done.rank as f64, number("rank"));
        compare(&done, &case);
    }
}
