//! The `regretta` command: arguments in, text or JSON out, exit codes as documented in `exit`.

mod args;
mod calibration;
mod commands;
mod disk;
mod existing;
mod exit;
mod live;
mod load;
mod logging;
mod outcome;
mod part;
mod place;
mod progress;
mod sealing;
mod signals;
mod table;
mod text;

use std::process::ExitCode;

fn main() -> ExitCode {
    exit::code(&args::dispatch())
}
