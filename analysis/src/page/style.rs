//! The style of a page.

/// Embedded in every page; no address in it.
pub(super) const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_comes_from_outside() {
        for outside in ["url(", "@import", "@font-face", "http", "</"] {
            assert!(!STYLE.contains(outside), "{outside}");
        }
    }

    /// Relative luminance of `#rrggbb`, as WCAG 2 defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    /// The value of a variable in one of the two themes: 0 is light, 1 is dark.
    fn colour(name: &str, theme: usize) -> &'static str {
        let start = format!("--{name}: ");
        let found = STYLE.match_indices(&start).nth(theme).unwrap_or_else(|| panic!("{name}"));
        &STYLE[found.0 + start.len()..found.0 + start.len() + 7]
    }

    #[test]
    fn text_can_be_read_in_both_themes() {
        for theme in [0, 1] {
            for ground in ["ground", "panel"] {
                let ground = luminance(colour(ground, theme));
                for text in ["text", "soft", "link", "refuted", "confirmed", "undecided"] {
                    let text_luminance = luminance(colour(text, theme));
                    let (high, low) = if text_luminance > ground {
                        (text_luminance, ground)
                    } else {
                        (ground, text_luminance)
                    };
                    let contrast = (high + 0.05) / (low + 0.05);
                    assert!(contrast >= 4.5, "{text} in theme {theme}: {contrast}");
                }
            }
        }
    }
}
