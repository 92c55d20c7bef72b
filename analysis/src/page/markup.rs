//! Text into HTML, and paths into links.

use crate::tables::html::escape;
use std::fmt::Write as _;

/// Escaped text, with what stands between two backticks as code. A backtick alone stays.
pub(super) fn inline(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    let mut out = String::new();
    for (at, part) in parts.iter().enumerate() {
        let closed = at + 1 < parts.len();
        if at % 2 == 0 {
            out += &escape(part);
        } else if closed {
            _ = write!(out, "<code>{}</code>", escape(part));
        } else {
            _ = write!(out, "`{}", escape(part));
        }
    }
    out
}

/// A link to a file beside the page. Nothing else can come out: a colon is encoded, and a leading
/// slash is dropped.
pub(super) fn href(path: &str) -> String {
    let mut out = String::new();
    for byte in path.trim_start_matches('/').bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_the_only_markup() {
        assert_eq!(inline("run `a < b` & *go*"), "run <code>a &lt; b</code> &amp; *go*");
        assert_eq!(inline("`a` and `b"), "<code>a</code> and `b");
        assert_eq!(inline("<b>\"'"), "&lt;b&gt;&quot;&#39;");
    }

    #[test]
    fn links_stay_beside_the_page() {
        assert_eq!(href("figures/a b.svg"), "figures/a%20b.svg");
        assert_eq!(href("//evil.example/x"), "evil.example/x");
        assert_eq!(href("javascript:alert(1)"), "javascript%3Aalert%281%29");
        assert_eq!(href("δ\".pdf"), "%CE%B4%22.pdf");
    }
}
