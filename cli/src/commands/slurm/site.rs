//! Asking Slurm.

use std::process::Command;

use anyhow::bail;

use crate::exit::BadInput;

/// What Slurm allows where nobody changed it.
pub(super) const DEFAULT_LARGEST: u32 = 1000;

/// What a program of Slurm prints.
pub(super) fn ask(program: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| {
        BadInput(format!(
            "cannot run {program}: {error}; is this a login node of a Slurm cluster? --dry-run prints the scripts"
        ))
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!(BadInput(format!("{program} {}: {said}", arguments.join(" "))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The longest array: indices are below MaxArraySize.
pub(super) fn largest_array() -> anyhow::Result<u32> {
    let config = ask("scontrol", &["show", "config"])?;
    Ok(array_size(&config).unwrap_or(DEFAULT_LARGEST))
}

fn array_size(config: &str) -> Option<u32> {
    let line = config.lines().find(|line| line.trim_start().starts_with("MaxArraySize"))?;
    let size: u32 = line.split_once('=')?.1.trim().parse().ok()?;
    Some(size.saturating_sub(1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read_from_the_configuration() {
        assert_eq!(
            array_size("MailProg = /bin/mail\nMaxArraySize            = 1001\n"),
            Some(1000)
        );
        assert_eq!(array_size("MaxJobCount = 10000\n"), None);
    }
}
