//! What is written beside a dataset: verdicts, tables, figures, the page that shows them all, and a
//! program that counts again by itself.
//!
//! Everything here is a function of the dataset alone: the same on every run and machine.

mod figures;
mod lead;
mod methods;
mod page;
mod shape;
pub(crate) mod tables;

use std::path::Path;

use crate::figures::Figure;
use crate::parquet::FileError;
use crate::pass::Extent;
use crate::tables::{Format, Table, render};
use crate::{Analysis, Error};

pub use shape::{ShapeError, Show, Wanted, shape, shape_of};

/// The program that counts again; it needs Python, polars and numpy, and nothing of regretta's.
const RECHECK: &str = include_str!("recheck.py");

/// A report, before it is written.
pub struct Report<'a> {
    analysis: &'a Analysis,
    lead: [String; 3],
    tables: Vec<Table>,
    figures: Vec<Figure>,
}

impl<'a> Report<'a> {
    /// Makes the tables and figures of an analysis; where it is for verdicts alone, the table of these.
    pub fn new(analysis: &'a Analysis) -> Self {
        let lead = lead::sentences(analysis);
        let (tables, figures) = match analysis.extent {
            Extent::All => (tables::all(analysis), figures::all(analysis)),
            Extent::Verdicts => (tables::summary(analysis), vec![]),
        };
        Self { analysis, lead, tables, figures }
    }

    /// The three sentences that a reader needs.
    pub fn lead(&self) -> &[String; 3] {
        &self.lead
    }

    /// The tables.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The figures.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// The page.
    pub fn html(&self) -> String {
        page::html(self)
    }

    /// Writes everything into a folder; where the analysis is for verdicts alone, these. Each file is
    /// replaced as a whole.
    ///
    /// # Panics
    /// Never: verdicts have text keys.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let verdicts = serde_json::to_string_pretty(&self.analysis.verdicts);
        let verdicts = verdicts.expect("verdicts have text keys") + "\n";
        put(&dir.join("verdicts.json"), verdicts.as_bytes())?;
        if self.analysis.extent == Extent::Verdicts {
            return Ok(());
        }
        for folder in ["tables", "figures"] {
            let path = dir.join(folder);
            std::fs::create_dir_all(&path).map_err(FileError::io("create", &path))?;
        }
        for table in &self.tables {
            for (suffix, format) in
                [("csv", Format::Csv), ("md", Format::Markdown), ("tex", Format::Latex)]
            {
                let path = dir.join("tables").join(format!("{}.{suffix}", table.id));
                put(&path, render(table, format).as_bytes())?;
            }
        }
        for figure in &self.figures {
            let path = |suffix: &str| dir.join("figures").join(format!("{}.{suffix}", figure.id));
            put(&path("svg"), figure.svg().as_bytes())?;
            put(&path("pdf"), &figure.pdf())?;
            put(&path("csv"), figure.csv().as_bytes())?;
        }
        put(&dir.join("recheck.py"), RECHECK.as_bytes())?;
        put(&dir.join("report.html"), self.html().as_bytes())?;
        Ok(())
    }
}

/// Writes a file beside its place and moves it there.
fn put(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let beside = path.with_file_name(name);
    std::fs::write(&beside, bytes).map_err(FileError::io("write", &beside))?;
    std::fs::rename(&beside, path).map_err(FileError::io("write", path))
}
