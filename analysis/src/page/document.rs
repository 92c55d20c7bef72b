//! The document around the blocks: head, lead, contents, sections.

use super::block::Block;
use super::markup::inline;
use super::style::STYLE;
use crate::tables::html::escape;
use std::fmt::Write as _;

/// A page in one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// What a reader must know even if nothing else is read: a few sentences, a paragraph each.
    pub lead: Vec<String>,
    /// The rest.
    pub sections: Vec<Section>,
}

/// A section with its heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its anchor, unique in the page.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// What it holds.
    pub blocks: Vec<Block>,
}

impl Page {
    /// The document.
    pub fn html(&self) -> String {
        let title = escape(&self.title.replace('`', ""));
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n",
            inline(&self.title)
        );
        if !self.lead.is_empty() {
            out += "<div class=\"lead\">\n";
            for text in &self.lead {
                _ = writeln!(out, "<p>{}</p>", inline(text));
            }
            out += "</div>\n";
        }
        out += "</header>\n";
        out += &self.contents();
        out += "<main>\n";
        for section in &self.sections {
            out += &section.html();
        }
        out + "</main>\n</body>\n</html>\n"
    }

    fn contents(&self) -> String {
        if self.sections.len() < 2 {
            return String::new();
        }
        let mut out = String::from("<nav aria-label=\"Contents\">\n<ol>\n");
        for section in &self.sections {
            let (id, heading) = (escape(&section.id), inline(&section.heading));
            _ = writeln!(out, "<li><a href=\"#{id}\">{heading}</a></li>");
        }
        out + "</ol>\n</nav>\n"
    }
}

impl Section {
    fn html(&self) -> String {
        let (id, heading) = (escape(&self.id), inline(&self.heading));
        let blocks: String = self.blocks.iter().map(Block::html).collect();
        format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{blocks}</section>\n")
    }
}
