//! One file per command.

pub(crate) mod bench;
pub(crate) mod claims;
pub(crate) mod doctor;
pub(crate) mod theory;

use std::io::Write;

/// Prints a value as indented JSON.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Prints text to stdout; a closed pipe is an error value, not a panic.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    Ok(out.flush()?)
}
