//! `docs/study-file.md`: tables of keys and kinds.

use super::{Block, code, table};
use crate::file::MOST_PRIORS;
use crate::file::keys::{TABLES, Table};
use crate::file::schema::{Absent, DOMAINS, FEATURES, Field, KERNELS, Kind, MEANS};
use crate::plan::MOST_CELLS;

/// The generated parts of `docs/study-file.md`.
pub fn study_file() -> Vec<Block> {
    let mut blocks: Vec<Block> =
        TABLES.iter().map(|table| Block { name: table.name, text: keys(table) }).collect();
    let formula = "k(x, y), rho^2 = sum_j ((x_j - y_j)/l_j)^2";
    blocks.extend([
        Block { name: "domain.kind", text: kinds("`domain.kind`", "points", DOMAINS) },
        Block { name: "kernel.kind", text: kinds("`kernel.kind`", formula, KERNELS) },
        Block { name: "mean.kind", text: kinds("`mean.kind`", "mu(x)", MEANS) },
        Block {
            name: "features.kind",
            text: kinds("`features.kind`", "basis functions", FEATURES),
        },
        Block { name: "limits", text: limits() },
    ]);
    blocks
}

fn keys(of: &Table) -> String {
    let rows = of
        .keys
        .iter()
        .map(|key| [code(key.name), (key.takes)(), (key.default)(), key.meaning.to_owned()]);
    table(["key", "takes", "default", "meaning"], rows)
}

fn kinds(head: &str, meaning: &str, kinds: &[Kind]) -> String {
    let rows = kinds.iter().map(|kind| {
        let fields: Vec<String> = kind.fields.iter().map(field).collect();
        [format!("`\"{}\"`", kind.name), fields.join(", "), kind.meaning.to_owned()]
    });
    table([head, "keys (default)", meaning], rows)
}

fn field(field: &Field) -> String {
    match field.absent {
        Absent::Required => code(field.name),
        Absent::Number(number) => format!("`{}` ({number})", field.name),
        Absent::Name(name) => format!("`{}` (`\"{name}\"`)", field.name),
    }
}

fn limits() -> String {
    format!("A study has at most {MOST_PRIORS} priors and {MOST_CELLS} cells.\n")
}
