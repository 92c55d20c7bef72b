//! The study to begin with.

/// What stands in the text for the study's name.
const NAME: &str = "NAME";

/// A commented study of Lemma 1 and Theorem 2 that runs as it stands; `name` becomes `study.name`, which
/// has to be a valid one.
pub fn template(name: &str) -> String {
    include_str!("template.toml").replacen(NAME, name, 1)
}
