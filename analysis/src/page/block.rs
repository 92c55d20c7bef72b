//! What a section is made of.

use super::markup::{href, inline};
use crate::tables::html::escape;
use crate::tables::{Format, Table, render};
use std::fmt::Write as _;

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph of text.
    Paragraph(String),
    /// HTML that is trusted to be well-formed.
    Html(String),
    /// A table.
    Table(Table),
    /// A picture with its caption.
    Figure {
        /// Its anchor.
        id: String,
        /// An `<svg>` element, trusted; it is shown on white.
        svg: String,
        /// What it shows.
        caption: String,
        /// The same picture, or its data, as files.
        downloads: Vec<Download>,
    },
    /// Names with what they stand for.
    Definitions(Vec<(String, String)>),
    /// What is folded away until asked for; printed in full.
    Details {
        /// What is inside.
        summary: String,
        /// The inside.
        blocks: Vec<Block>,
    },
}

/// A file beside the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// What the link says.
    pub label: String,
    /// Path from the page.
    pub path: String,
}

impl Block {
    pub(super) fn html(&self) -> String {
        match self {
            Self::Paragraph(text) => format!("<p>{}</p>\n", inline(text)),
            Self::Html(html) => format!("{}\n", html.trim_end()),
            Self::Table(table) => render(table, Format::Html),
            Self::Figure { id, svg, caption, downloads } => figure(id, svg, caption, downloads),
            Self::Definitions(pairs) => definitions(pairs),
            Self::Details { summary, blocks } => {
                let inside: String = blocks.iter().map(Self::html).collect();
                let summary = inline(summary);
                format!("<details>\n<summary>{summary}</summary>\n{inside}</details>\n")
            }
        }
    }
}

fn figure(id: &str, svg: &str, caption: &str, downloads: &[Download]) -> String {
    let links: Vec<String> = downloads
        .iter()
        .map(|file| {
            format!("<a href=\"{}\" download>{}</a>", href(&file.path), inline(&file.label))
        })
        .collect();
    let links = match links.len() {
        0 => String::new(),
        _ => format!(" <span class=\"downloads\">{}</span>", links.join(" ")),
    };
    format!(
        "<figure id=\"{}\">\n<div class=\"card\">\n{}\n</div>\n<figcaption>{}{links}</figcaption>\n\
         </figure>\n",
        escape(id),
        embedded(svg),
        inline(caption)
    )
}

/// An `<svg>` element without what only a file of its own needs.
fn embedded(svg: &str) -> String {
    let element = svg.find("<svg").map_or(svg, |start| &svg[start..]);
    element.trim_end().replace(" xmlns=\"http://www.w3.org/2000/svg\"", "")
}

fn definitions(pairs: &[(String, String)]) -> String {
    let mut out = String::from("<dl>\n");
    for (name, value) in pairs {
        _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", inline(name), inline(value));
    }
    out + "</dl>\n"
}
