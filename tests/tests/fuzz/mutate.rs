//! Mutations of bytes.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// Inputs do not grow beyond this.
const LONGEST: usize = 64 << 10;

/// Numbers at which things change.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "2",
    "8",
    "100",
    "65535",
    "65536",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "1e308",
    "1e-320",
    "-0.0",
    "nan",
];

/// One to eight mutations of `input`; `others` are spliced in.
pub(crate) fn mutate(
    rng: &mut ChaCha8Rng,
    input: &[u8],
    others: &[Vec<u8>],
    tokens: &[&[u8]],
) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..1 << rng.random_range(0..=3) {
        once(rng, &mut bytes, others, tokens);
        bytes.truncate(LONGEST);
    }
    bytes
}

fn once(rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>, others: &[Vec<u8>], tokens: &[&[u8]]) {
    let (at, end) = span(rng, bytes.len());
    match rng.random_range(0..12) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.random_range(0..8),
        2 if at < bytes.len() => bytes[at] = *[0, 1, 0x7f, 0x80, 0xff].choose(rng).expect("some"),
        3 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(rng.random_range(0..=255)),
        4 => drop(bytes.drain(at..end)),
        5 => {
            let twice = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, twice));
        }
        6 => {
            let noise: Vec<u8> = (0..rng.random_range(1..9)).map(|_| rng.random()).collect();
            drop(bytes.splice(at..at, noise));
        }
        7 => bytes.truncate(at),
        8 | 9 => {
            if let Some(token) = tokens.choose(rng) {
                let end = if rng.random() { at } else { end };
                drop(bytes.splice(at..end, token.iter().copied()));
            }
        }
        10 => {
            if let Some(other) = others.choose(rng) {
                let (from, to) = span(rng, other.len());
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
        }
        _ => number(rng, bytes, at),
    }
}

/// A place, and another one not far behind it more often than not.
fn span(rng: &mut ChaCha8Rng, length: usize) -> (usize, usize) {
    let at = rng.random_range(0..=length);
    let most = if rng.random_ratio(3, 4) { 16 } else { length };
    (at, at + rng.random_range(0..=most.min(length - at)))
}

/// Another number in place of the next one that is written in digits.
fn number(rng: &mut ChaCha8Rng, bytes: &mut Vec<u8>, at: usize) {
    let digit = |byte: &u8| byte.is_ascii_digit();
    let Some(start) = bytes[at..].iter().position(digit) else { return };
    let start = at + start;
    let length = bytes[start..].iter().take_while(|byte| digit(byte)).count();
    let new = NUMBERS.choose(rng).expect("some").bytes();
    drop(bytes.splice(start..start + length, new));
}
