//! Exit codes: 0 done, 1 internal error, 2 bad input, 3 the study failed or a check did not hold, 4
//! `--expect` is not met, 130 interrupted.

use std::process::ExitCode;

/// What the user asked for cannot be done as asked; the message says what would be valid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadInput(pub(crate) String);

/// A check that the command makes did not hold.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CheckFailed(pub(crate) String);

/// The verdicts are not what `--expect` says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unexpected(pub(crate) String);

/// The user ended it; the message says how to go on.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Interrupted(pub(crate) String);

/// Prints an error to stderr and turns the outcome into an exit code.
pub(crate) fn code(outcome: &anyhow::Result<()>) -> ExitCode {
    let Err(error) = outcome else {
        return ExitCode::SUCCESS;
    };
    if closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    eprintln!("regretta: {error:#}");
    if error.is::<BadInput>() {
        ExitCode::from(2)
    } else if error.is::<CheckFailed>() {
        ExitCode::from(3)
    } else if error.is::<Unexpected>() {
        ExitCode::from(4)
    } else if error.is::<Interrupted>() {
        ExitCode::from(130)
    } else {
        ExitCode::from(1)
    }
}

/// Whether the reader of our output went away, as in `regretta claims | head`.
fn closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
}
