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

use crate::figures::Figure;
use crate::pass::Extent;
use crate::seal::Lock;
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

    /// Writes everything into the dataset's folder; where the analysis is for verdicts alone, these. Each file
    /// is replaced as a whole, by one analysis at a time, and only while the dataset that was analysed is there.
    ///
    /// # Panics
    /// Never: verdicts have text keys.
    pub fn write(&self) -> Result<(), Error> {
        // Others wait while the folder is locked, so that everything is made before.
        let files = self.render();
        let lock = Lock::take(&self.analysis.dataset.dir)?;
        self.analysis.dataset.confirm()?;
        files.iter().try_for_each(|(name, bytes)| lock.put(name, bytes))?;
        Ok(())
    }

    /// The files by their names in the dataset's folder.
    fn render(&self) -> Vec<(String, Vec<u8>)> {
        let verdicts = serde_json::to_string_pretty(&self.analysis.verdicts);
        let verdicts = verdicts.expect("verdicts have text keys") + "\n";
        let mut files = vec![("verdicts.json".to_owned(), verdicts.into_bytes())];
        if self.analysis.extent == Extent::Verdicts {
            return files;
        }
        for table in &self.tables {
            for (suffix, format) in
                [("csv", Format::Csv), ("md", Format::Markdown), ("tex", Format::Latex)]
            {
                let name = format!("tables/{}.{suffix}", table.id);
                files.push((name, render(table, format).into_bytes()));
            }
        }
        for figure in &self.figures {
            let name = |suffix: &str| format!("figures/{}.{suffix}", figure.id);
            files.push((name("svg"), figure.svg().into_bytes()));
            files.push((name("pdf"), figure.pdf()));
            files.push((name("csv"), figure.csv().into_bytes()));
        }
        files.push(("recheck.py".to_owned(), RECHECK.as_bytes().to_vec()));
        files.push(("report.html".to_owned(), self.html().into_bytes()));
        files
    }
}
