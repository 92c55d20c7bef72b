//! A whole page: nothing from outside, nothing unescaped, nothing left open.

use super::{Block, Download, Page, Section};
use crate::tables::{Align, Cell, Column, Table, Tone};

const HOSTILE: &str = "<script src=\"//x\">'&'</script> `<b>`";

/// Every kind of block, every text hostile.
fn page() -> Page {
    let mut table = Table::new("t<1>", HOSTILE, vec![Column::new(HOSTILE, HOSTILE, Align::Left)]);
    table.group(HOSTILE);
    table.push(vec![Cell::text(HOSTILE)]);
    table.push(vec![Cell::flag(HOSTILE, Tone::Refuted)]);
    table.note(HOSTILE);
    let svg = "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\">\
               <path d=\"M0 0\"/></svg>\n";
    let figure = Block::Figure {
        id: "f\"1".into(),
        svg: svg.into(),
        caption: HOSTILE.into(),
        downloads: vec![Download { label: HOSTILE.into(), path: "https://x/y".into() }],
    };
    let blocks = vec![
        Block::Paragraph(HOSTILE.into()),
        Block::Html("<p>trusted</p>".into()),
        Block::Definitions(vec![(HOSTILE.into(), HOSTILE.into())]),
        Block::Details { summary: HOSTILE.into(), blocks: vec![Block::Table(table), figure] },
    ];
    let section = Section { id: "a\"b".into(), heading: HOSTILE.into(), blocks };
    let other = Section { id: "c".into(), heading: "Other".into(), blocks: vec![] };
    Page { title: HOSTILE.into(), lead: vec![HOSTILE.into()], sections: vec![section, other] }
}

/// The tags of a document, in order, each without its brackets.
fn tags(html: &str) -> Vec<&str> {
    let starts = html.match_indices('<').map(|(at, _)| &html[at + 1..]);
    starts.map(|rest| &rest[..rest.find('>').expect("a tag is closed")]).collect()
}

#[test]
fn nothing_comes_from_outside() {
    let html = page().html();
    for tag in tags(&html) {
        for outside in ["http:", "https:", "\"//", "script", "link", "iframe", "onload"] {
            assert!(!tag.contains(outside), "<{tag}>");
        }
    }
    assert!(html.contains("<a href=\"https%3A//x/y\" download>"));
    assert!(html.contains("<svg viewBox="));
}

#[test]
fn every_tag_is_closed() {
    let html = page().html();
    let mut open = Vec::new();
    for tag in tags(&html) {
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !(name == "!DOCTYPE" || name == "meta" || tag.ends_with('/')) {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn all_text_is_escaped() {
    let html = page().html();
    let escaped = "&lt;script src=&quot;//x&quot;&gt;&#39;&amp;&#39;&lt;/script&gt; ";
    // Title twice, lead, heading twice, paragraph, definition twice, summary, caption of the table,
    // head, group, two cells, note, caption of the figure, download.
    assert_eq!(html.matches(escaped).count(), 17);
    assert_eq!(html.matches("<code>&lt;b&gt;</code>").count(), 10);
    assert!(html.contains("<section id=\"a&quot;b\">") && html.contains("href=\"#a&quot;b\""));
}

#[test]
fn the_frame() {
    let page = Page { title: "A `b`".into(), lead: vec![], sections: vec![] };
    let html = page.html();
    assert!(
        html.starts_with("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
    );
    assert!(html.contains("<title>A b</title>"));
    assert!(html.ends_with(
        "<body>\n<header>\n<h1>A <code>b</code></h1>\n</header>\n<main>\n</main>\n</body>\n</html>\n"
    ));
}
