use std::path::Path;

use super::*;

/// What a page should be: itself, with each block in its place.
fn updated(page: &str, blocks: &[Block]) -> String {
    let mut text = page.to_owned();
    for block in blocks {
        let begin = format!("<!-- generated: {} -->\n", block.name);
        let from = text.find(&begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
        let length = text[from..].find("<!-- end -->").unwrap_or_else(|| panic!("no end: {begin}"));
        text.replace_range(from..from + length, &format!("\n{}\n", block.text));
    }
    assert_eq!(text.matches("<!-- generated: ").count(), blocks.len(), "blocks without a source");
    text
}

/// Compares a page of `docs/` with its source, or writes it with `UPDATE_DOCS=1`.
fn check(name: &str, blocks: &[Block]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let page = std::fs::read_to_string(&path).unwrap();
    let updated = updated(&page, blocks);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, updated).unwrap();
        return;
    }
    let differs = page.lines().zip(updated.lines()).find(|(old, new)| old != new);
    assert!(
        page == updated,
        "docs/{name} is not what the code says: {differs:?}\nTo update it: UPDATE_DOCS=1 cargo \
         test --release --workspace --lib reference"
    );
}

#[test]
fn the_study_file_is_documented() {
    check("study-file.md", &study_file());
}

#[test]
fn the_claims_are_documented() {
    let blocks = claims();
    for claim in theory::claims::all() {
        let name = format!("`{}`", claim.id);
        let heading = format!("### {name}\n");
        let row = format!("| {name} |");
        let text = &blocks[0].text;
        let places = text.matches(&heading).count() + text.matches(&row).count();
        assert_eq!(places, 1, "{}", claim.id);
    }
    check("claims.md", &blocks);
}

#[test]
fn the_records_are_documented() {
    check("records.md", &records());
}

#[test]
fn only_what_stands_between_the_marks_is_replaced() {
    let page = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb <!-- end -->\n";
    let block = Block { name: "x", text: "new\n".to_owned() };
    let new = "a\n<!-- generated: x -->\n\nnew\n\n<!-- end -->\nb <!-- end -->\n";
    assert_eq!(updated(page, std::slice::from_ref(&block)), new);
    assert_eq!(updated(new, &[block]), new);
}

#[test]
fn a_bar_does_not_end_a_cell() {
    let text = table(["a", "b"], [["1|2".to_owned(), "3".to_owned()]].into_iter());
    assert_eq!(text, "| a | b |\n|---|---|\n| 1\\|2 | 3 |\n");
}
