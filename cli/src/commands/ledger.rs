//! The address of a PostgreSQL ledger, which may have a password in the environment but not on a command line.

use anyhow::bail;
use coordinator::store::{LedgerAt, has_password};

use crate::exit::BadInput;

/// Where the address may stand with its password.
pub(crate) const VARIABLE: &str = "REGRETTA_LEDGER";

/// An address from a command line, which every user of the machine can read. Errors do not repeat it.
pub(crate) fn from_argument(text: &str) -> anyhow::Result<LedgerAt> {
    if has_password(text) {
        bail!(BadInput(format!(
            "--ledger has a password, and everyone on this machine can read command lines: give \
             postgres://USER@HOST/DATABASE with the password in PGPASSWORD or ~/.pgpass, or the whole address in \
             {VARIABLE}; change the password if others use this machine"
        )));
    }
    text.parse().map_err(|error| BadInput(format!("--ledger: {error}")).into())
}

/// Whether a text has the address of a ledger with its password somewhere in it.
pub(crate) fn is_in(text: &str) -> bool {
    let schemes = ["postgres://", "postgresql://"];
    schemes.iter().any(|scheme| text.match_indices(scheme).any(|(at, _)| has_password(&text[at..])))
}

/// The ledger of an argument, or else of the environment.
pub(crate) fn ledger(argument: Option<&str>) -> anyhow::Result<LedgerAt> {
    match (argument, std::env::var(VARIABLE)) {
        (Some(text), _) => from_argument(text),
        (None, Ok(text)) => {
            text.parse().map_err(|error| BadInput(format!("{VARIABLE}: {error}")).into())
        }
        (None, Err(_)) => Ok(LedgerAt::default()),
    }
}
