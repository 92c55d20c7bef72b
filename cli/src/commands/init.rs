//! `regretta init`: a study file to begin with.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;

use crate::exit::BadInput;

/// Write a commented study file to begin with
///
/// The file runs as it stands, and says what every part of it is for. An existing file is never overwritten.
#[derive(Args)]
#[command(after_help = "Examples:
  regretta init mine.toml
  regretta init mine.toml && regretta plan mine.toml && regretta run mine.toml")]
pub(crate) struct Arguments {
    /// The file to write; its stem is the study's name
    #[arg(default_value = "study.toml")]
    file: PathBuf,
    /// Print the file's name as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.file;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let text = study::file::template(&name);
    study::file::Study::parse(&path.display().to_string(), &text)
        .map_err(|error| BadInput(format!("{error}; choose another name for the file")))?;
    let refused = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            BadInput(format!("{} is there already; name another file", path.display()))
        }
        _ => BadInput(format!("cannot write {}: {error}", path.display())),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(refused)?;
    file.write_all(text.as_bytes()).map_err(refused)?;
    if arguments.json {
        return super::print_json(&serde_json::json!({ "file": path, "name": name }));
    }
    let path = path.display();
    super::print(&format!("wrote {path}; next:\n  regretta plan {path}\n  regretta run {path}"))
}
