//! Canonical identity hashing.
//!
//! A value is fed as a kind byte, then its bits, with the length before anything of variable
//! length: two different sequences of calls never feed the same bytes.

/// Bytes collected before they are hashed: BLAKE3 is fastest on many chunks at a time.
const BUFFER: usize = 1 << 16;

/// BLAKE3 over a sequence of typed values.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    hasher: blake3::Hasher,
    pending: Vec<u8>,
}

impl Digest {
    /// An empty sequence.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name of what follows: a field, or a variant.
    pub fn tag(&mut self, name: &str) -> &mut Self {
        self.variable(b't', name.as_bytes())
    }

    /// A number, by its bits; -0.0 is the same number as 0.0.
    pub fn f64(&mut self, value: f64) -> &mut Self {
        let value = if value == 0.0 { 0.0 } else { value };
        self.fixed(b'f', value.to_bits())
    }

    /// A count, an index or a seed.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.fixed(b'u', value)
    }

    /// A string.
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.variable(b's', value.as_bytes())
    }

    /// Raw bytes, such as a file's digest.
    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.variable(b'b', value)
    }

    /// The digest of all that has been fed.
    pub fn finish(&self) -> [u8; 32] {
        self.hash().into()
    }

    /// The digest in hexadecimal.
    pub fn hex(&self) -> String {
        self.hash().to_hex().to_string()
    }

    fn hash(&self) -> blake3::Hash {
        let mut hasher = self.hasher.clone();
        hasher.update(&self.pending).finalize()
    }

    /// Two counts, as two calls of [`Self::u64`] would feed them; records are made of such pairs.
    pub(crate) fn pair(&mut self, first: u64, second: u64) -> &mut Self {
        let mut bytes = [b'u'; 18];
        bytes[1..9].copy_from_slice(&first.to_le_bytes());
        bytes[10..].copy_from_slice(&second.to_le_bytes());
        self.pending.extend_from_slice(&bytes);
        self
    }

    fn fixed(&mut self, kind: u8, bits: u64) -> &mut Self {
        self.pending.push(kind);
        self.pending.extend_from_slice(&bits.to_le_bytes());
        if self.pending.len() >= BUFFER {
            self.hasher.update(&self.pending);
            self.pending.clear();
        }
        self
    }

    fn variable(&mut self, kind: u8, bytes: &[u8]) -> &mut Self {
        self.fixed(kind, bytes.len() as u64);
        self.pending.extend_from_slice(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(feed: impl Fn(&mut Digest)) -> [u8; 32] {
        let mut digest = Digest::new();
        feed(&mut digest);
        digest.finish()
    }

    #[test]
    fn kinds_lengths_and_order_matter() {
        let all = [
            digest(|_| ()),
            digest(|d| _ = d.text("ab")),
            digest(|d| _ = d.tag("ab")),
            digest(|d| _ = d.bytes(b"ab")),
            digest(|d| _ = d.text("a").text("b")),
            digest(|d| _ = d.text("b").text("a")),
            digest(|d| _ = d.text("").text("ab")),
            digest(|d| _ = d.u64(0)),
            digest(|d| _ = d.f64(0.0)),
            digest(|d| _ = d.f64(1.0)),
            digest(|d| _ = d.u64(1.0_f64.to_bits())),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "{i}");
        }
    }

    #[test]
    fn a_pair_is_two_counts() {
        assert_eq!(digest(|d| _ = d.pair(3, u64::MAX)), digest(|d| _ = d.u64(3).u64(u64::MAX)));
    }

    #[test]
    fn negative_zero_is_zero() {
        assert_eq!(digest(|d| _ = d.f64(-0.0)), digest(|d| _ = d.f64(0.0)));
    }

    #[test]
    fn the_encoding_is_pinned() {
        let mut bytes = Vec::new();
        for (kind, value) in [(b't', "k"), (b's', "v")] {
            bytes.push(kind);
            bytes.extend(1_u64.to_le_bytes());
            bytes.extend(value.as_bytes());
        }
        bytes.push(b'f');
        bytes.extend(0.5_f64.to_le_bytes());
        let expected: [u8; 32] = blake3::hash(&bytes).into();
        assert_eq!(digest(|d| _ = d.tag("k").text("v").f64(0.5)), expected);
    }
}
