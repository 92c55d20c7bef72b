//! The `regretta` command: arguments in, text or JSON out, exit codes as documented in `exit`.

mod args;
mod commands;
mod exit;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    exit::code(&args::run())
}
