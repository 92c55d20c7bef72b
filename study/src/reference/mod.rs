//! The parts of `docs/` that say what the code says: every key of the study file, every claim of the
//! registry, every column of records. They stand between `<!-- generated: NAME -->` and `<!-- end -->`,
//! and a test compares.

mod claims;
mod records;
mod study_file;

pub use claims::claims;
pub use records::records;
pub use study_file::study_file;

/// A generated part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its name in the page.
    pub name: &'static str,
    /// Markdown, with a line break at the end.
    pub text: String,
}

/// A table in Markdown.
fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    // A bar would end its cell.
    let line =
        |cells: [String; N]| format!("| {} |\n", cells.map(|c| c.replace('|', "\\|")).join(" | "));
    let rows: String = rows.map(line).collect();
    format!("{}|{}\n{rows}", line(head.map(str::to_owned)), "---|".repeat(N))
}

/// Text that Markdown leaves alone.
fn code(text: &str) -> String {
    format!("`{text}`")
}

#[cfg(test)]
mod tests;
