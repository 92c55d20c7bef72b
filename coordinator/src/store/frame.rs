//! The segment format: a header, then frames.
//!
//! A frame is mark (4), payload length u32, kind u8, token u64, checksum (8), payload; integers
//! little-endian. The checksum is the first 8 bytes of BLAKE3 over kind, token and payload, so a
//! frame that was torn, or whose length was, is not taken for one. The mark lets a scan go on
//! behind a damaged frame.

/// What every segment begins with; the last byte is the format's version.
pub(super) const HEADER: [u8; 16] = *b"regretta-seg\0\0\0\x01";

/// The largest payload of a frame.
pub const MAX_PAYLOAD: usize = 32 << 20;

/// Bytes of a frame before its payload.
pub(super) const HEAD: usize = 25;

pub(super) const MARK: [u8; 4] = [0xb1, 0x9e, 0x5d, 0xf7];

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Whose segment this is.
    Origin = 1,
    /// A study's definition and state.
    Study = 2,
    /// Records of the shard that `token` is computing.
    Payload = 3,
    /// The end of a shard, with all that its ledger row holds.
    Commit = 4,
    /// The end of a study.
    Deleted = 5,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Origin, Self::Study, Self::Payload, Self::Commit, Self::Deleted]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// The part of a frame before its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: usize,
    pub(super) kind: Kind,
    pub(super) token: u64,
    checksum: [u8; 8],
}

impl Head {
    fn new(kind: Kind, token: u64, payload: &[u8]) -> Self {
        Self { length: payload.len(), kind, token, checksum: checksum(kind, token, payload) }
    }

    /// A head that could be one: mark, kind and length are in order.
    pub(super) fn parse(bytes: &[u8; HEAD]) -> Option<Self> {
        let (mark, rest) = bytes.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first()?;
        let (token, rest) = rest.split_first_chunk::<8>()?;
        let checksum = *rest.first_chunk::<8>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let head =
            Self { length, kind: Kind::of(*kind)?, token: u64::from_le_bytes(*token), checksum };
        (*mark == MARK && length <= MAX_PAYLOAD).then_some(head)
    }

    /// Whether this is the payload that the head was written for.
    pub(super) fn fits(&self, payload: &[u8]) -> bool {
        payload.len() == self.length && checksum(self.kind, self.token, payload) == self.checksum
    }

    fn bytes(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..4].copy_from_slice(&MARK);
        bytes[4..8].copy_from_slice(&(self.length as u32).to_le_bytes());
        bytes[8] = self.kind as u8;
        bytes[9..17].copy_from_slice(&self.token.to_le_bytes());
        bytes[17..].copy_from_slice(&self.checksum);
        bytes
    }
}

/// Appends a frame to `buffer`.
pub(super) fn write(buffer: &mut Vec<u8>, kind: Kind, token: u64, payload: &[u8]) {
    debug_assert!(payload.len() <= MAX_PAYLOAD, "callers check the length");
    buffer.extend_from_slice(&Head::new(kind, token, payload).bytes());
    buffer.extend_from_slice(payload);
}

fn checksum(kind: Kind, token: u64, payload: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind as u8]).update(&token.to_le_bytes()).update(payload);
    short(&hasher)
}

/// The first 8 bytes of a BLAKE3 digest.
pub(super) fn short(hasher: &blake3::Hasher) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_pinned() {
        let mut bytes = vec![];
        write(&mut bytes, Kind::Commit, 0x0102, b"abc");
        let mut expected = vec![0xb1, 0x9e, 0x5d, 0xf7, 3, 0, 0, 0, 4, 2, 1, 0, 0, 0, 0, 0, 0];
        expected.extend(&blake3::hash(b"\x04\x02\x01\0\0\0\0\0\0abc").as_bytes()[..8]);
        expected.extend(b"abc");
        assert_eq!(bytes, expected);
    }
}
