//! The identity of a study: its name and its seed, and nothing that may grow.

use std::fmt;

use crate::digest::Digest;

/// BLAKE3 over a study's name and seed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StudyId(pub [u8; 32]);

impl StudyId {
    /// The study of that name and seed.
    pub fn new(name: &str, seed: u64) -> Self {
        let mut digest = Digest::new();
        digest.tag("study v1").text(name).u64(seed);
        Self(digest.finish())
    }

    /// All 64 hexadecimal digits.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }
}

impl fmt::Display for StudyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.hex()[..12])
    }
}

impl fmt::Debug for StudyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_seed_make_the_study() {
        let id = StudyId::new("lemma1", 2018);
        assert_ne!(id, StudyId::new("lemma1", 2019));
        assert_ne!(id, StudyId::new("lemma2", 2018));
        assert_eq!(id.to_string().len(), 12);
        assert_eq!(id.hex().len(), 64);
        assert!(id.hex().starts_with(&id.to_string()));
        // Addresses that people have written down depend on this.
        assert_eq!(id.to_string(), "2015b874b57d");
    }
}
