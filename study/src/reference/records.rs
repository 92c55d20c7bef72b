//! `docs/records.md`: the columns of records, and what `status` may say.

use super::{Block, code, table};
use crate::record::{COLUMNS, Failure, LEADING, Type};

/// The generated parts of `docs/records.md`.
pub fn records() -> Vec<Block> {
    vec![
        Block { name: "leading", text: leading() },
        Block { name: "measured", text: measured() },
        Block { name: "status", text: statuses() },
    ]
}

fn row(name: &str, kind: Type, meaning: String, null: &str) -> [String; 4] {
    let null = if null.is_empty() { "never" } else { null };
    [code(name), kind.name().to_owned(), meaning, null.to_owned()]
}

fn leading() -> String {
    let rows = LEADING
        .iter()
        .map(|column| row(column.name, column.kind, column.meaning.to_owned(), column.null));
    table(["column", "type", "meaning", "null"], rows)
}

fn measured() -> String {
    let rows = COLUMNS
        .iter()
        .map(|column| row(column.name, column.kind.into(), code(column.meaning), column.null));
    table(["column", "type", "meaning", "null with status `ok`"], rows)
}

fn statuses() -> String {
    // The number of the evaluation is the trial's own.
    const STEP: u32 = u32::MAX;
    let words = |failure: Failure| failure.to_string().replace(&STEP.to_string(), "s");
    let failures = Failure::all(STEP).map(|failure| [code(failure.name()), words(failure)]);
    let ok = [code("ok"), "everything was measured".to_owned()];
    table(["`status`", "what happened"], [ok].into_iter().chain(failures))
}
