//! `regretta completions` and `regretta man`: what shells and `man` know of the commands.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::BadInput;

/// Print the completions of a shell
///
/// Write them where the shell looks for them, and open a new one.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta completions bash > ~/.local/share/bash-completion/completions/regretta
  regretta completions zsh > ~/.zfunc/_regretta
  regretta completions fish > ~/.config/fish/completions/regretta.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Write the manual pages
///
/// One page for regretta and one for each command, in a folder that is made if need be.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta man --out ~/.local/share/man/man1
  regretta man --out man && man -l man/regretta-run.1")]
pub(crate) struct Man {
    /// The folder
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print the files' names as JSON
    #[arg(long)]
    json: bool,
}

/// Runs `completions`.
pub(crate) fn completions(arguments: &Completions, mut command: Command) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "regretta", &mut text);
    super::print(&String::from_utf8(text).context("completions are text")?)
}

/// Runs `man`.
pub(crate) fn man(arguments: &Man, command: Command) -> anyhow::Result<()> {
    let out = &arguments.out;
    std::fs::create_dir_all(out)
        .map_err(|error| BadInput(format!("cannot create {}: {error}", out.display())))?;
    let mut pages = Vec::new();
    write(&command.disable_help_subcommand(true), "regretta", out, &mut pages)?;
    if arguments.json {
        return super::print_json(&pages);
    }
    super::print(&format!("{} pages in {}", pages.len(), out.display()))
}

/// Writes the page of a command and those of its subcommands.
fn write(
    command: &Command,
    name: &str,
    out: &std::path::Path,
    pages: &mut Vec<PathBuf>,
) -> anyhow::Result<()> {
    let path = out.join(format!("{name}.1"));
    let mut text = Vec::new();
    let page = command.clone().bin_name(name.replace('-', " "));
    clap_mangen::Man::new(page).title(name).render(&mut text)?;
    std::fs::write(&path, text)
        .map_err(|error| BadInput(format!("cannot write {}: {error}", path.display())))?;
    pages.push(path);
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write(inner, &format!("{name}-{}", inner.get_name()), out, pages)?;
    }
    Ok(())
}
