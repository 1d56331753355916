//! Mutations of values, of texts and of gzips.

use fastrand::Rng;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Number, Value, json};
use std::io::Write as _;

use super::corpus::Corpus;

/// Names with a meaning for the readers of these bodies.
const WORDS: [&str; 26] = [
    "",
    "null",
    "dev",
    "prod",
    "..",
    "a/b",
    "\u{0}",
    "\u{202e}😀",
    "urn:pulumi:dev::p::t::n",
    "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev",
    "urn:pulumi:dev::p::pulumi:providers:bench::default",
    "urn:pulumi:::::",
    "::",
    "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
    "4dabf18193072939515e22adb298388d",
    "1b47061264138c4ac30d75fd1eb44270",
    "5cf8f73096256a8f31e491e813e4eb8e",
    "2026-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-99-99",
    "service",
    "succeeded",
    "failed",
    "update",
    "c2VjcmV0",
    "creating",
];

/// Fragments that parsers get wrong.
const TOKENS: [&str; 22] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "null",
    "true",
    "-",
    "0",
    "1e400",
    "-0",
    "1.5",
    "18446744073709551616",
    "\"\\ud800\"",
    "\\u0000",
    "\"a\":1,",
    "\"entries\":[],",
    "\u{feff}",
    "//",
];

fn odd(dice: &mut Rng, corpus: &Corpus) -> Value {
    match dice.u8(..14) {
        0 => Value::Null,
        1 => json!(dice.bool()),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(dice.i64(..)),
        5 => json!(u64::MAX),
        6 => json!(dice.u8(..12)),
        7 => Number::from_f64(dice.f64() * 1e300).map_or(Value::Null, Value::Number),
        8 => json!([]),
        9 => json!({}),
        10 => json!("x".repeat(dice.usize(..5_000))),
        11 => (0..dice.usize(..60)).fold(json!(1), |inner, _| json!([inner])),
        12 => {
            let mut whole = corpus.any(dice);
            let part = place(&mut whole, dice);
            part.take()
        }
        _ => json!(dice.choice(WORDS).unwrap_or_default()),
    }
}

/// A random value inside this one.
fn place<'v>(value: &'v mut Value, dice: &mut Rng) -> &'v mut Value {
    let is_deeper = match value {
        Value::Array(list) => !list.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    };
    if !is_deeper || dice.u8(..5) == 0 {
        return value;
    }
    let inner = match value {
        Value::Array(list) => {
            let index = dice.usize(..list.len());
            &mut list[index]
        }
        Value::Object(members) => {
            let index = dice.usize(..members.len());
            members.iter_mut().nth(index).map(|(_, value)| value).expect("the index is below the length")
        }
        _ => unreachable!("only lists and objects are deeper"),
    };
    place(inner, dice)
}

/// All strings of a value: names that other parts of it may refer to.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| strings(value, found)),
        Value::Object(members) => members.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

/// Changes a value in a few places.
pub(super) fn value(whole: &mut Value, dice: &mut Rng, corpus: &Corpus) {
    let mut known = Vec::new();
    strings(whole, &mut known);
    for _ in 0..=dice.u8(..4) {
        let part = place(whole, dice);
        match (part, dice.u8(..4)) {
            (Value::Array(list), 0) if !list.is_empty() => {
                list.remove(dice.usize(..list.len()));
            }
            (Value::Array(list), 1) if !list.is_empty() => {
                let twice = list[dice.usize(..list.len())].clone();
                list.insert(dice.usize(..=list.len()), twice);
            }
            (Value::Array(list), 2) if list.len() > 1 => {
                let (one, other) = (dice.usize(..list.len()), dice.usize(..list.len()));
                list.swap(one, other);
            }
            (Value::Object(members), 0..3) if !members.is_empty() => object(members, dice, corpus),
            (Value::String(text), 0..3) => {
                *text = match dice.choice(&known) {
                    Some(other) if dice.bool() => other.clone(),
                    _ => dice.choice(WORDS).unwrap_or_default().to_owned(),
                };
            }
            (Value::Number(number), 0..3) => {
                let old = number.as_i64().unwrap_or(0);
                let new = old.wrapping_add(dice.i64(-2..=2));
                *number = dice
                    .choice([new, old.wrapping_neg(), old.saturating_mul(10), i64::MAX])
                    .unwrap_or(0)
                    .into();
            }
            (part, _) => *part = odd(dice, corpus),
        }
    }
}

fn object(members: &mut Map<String, Value>, dice: &mut Rng, corpus: &Corpus) {
    let name = members.keys().nth(dice.usize(..members.len())).cloned().unwrap_or_default();
    match dice.u8(..4) {
        0 => drop(members.remove(&name)),
        1 => {
            let value = members.remove(&name).unwrap_or_default();
            members.insert(dice.choice(WORDS).unwrap_or_default().to_owned(), value);
        }
        2 => {
            // The client's decoders ignore the case of names.
            let value = members.get(&name).cloned().unwrap_or_default();
            members.insert(name.to_uppercase(), value);
        }
        _ => drop(members.insert(name, odd(dice, corpus))),
    }
}

/// Changes a text in a few places, so that it is usually not JSON any more.
pub(super) fn text(bytes: &mut Vec<u8>, dice: &mut Rng) {
    for _ in 0..=dice.u8(..3) {
        let at = dice.usize(..=bytes.len());
        let length = dice.usize(..=(bytes.len() - at).min(40));
        match dice.u8(..6) {
            0 => drop(bytes.drain(at..at + length)),
            1 => {
                let part = bytes[at..at + length].to_vec();
                bytes.splice(at..at, part);
            }
            2 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.u8(..8);
                }
            }
            3 => bytes.truncate(at),
            4 => {
                let token =
                    dice.choice(TOKENS).unwrap_or_default().repeat(dice.choice([1, 1, 1, 200]).unwrap_or(1));
                bytes.splice(at..at, token.into_bytes());
            }
            _ => {
                let token = dice.choice(TOKENS).unwrap_or_default();
                bytes.splice(at..at + length, token.bytes());
            }
        }
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).and_then(|()| gzip.finish()).expect("writing to memory does not fail")
}

/// The bytes of a body: usually unchanged, sometimes mutated once more.
pub(super) fn body(value: &Value, dice: &mut Rng) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    if dice.u8(..4) == 0 {
        text(&mut bytes, dice);
    }
    bytes
}

/// A body as it is sent: plain or compressed, and rarely damaged.
pub(super) fn sent(bytes: Vec<u8>, dice: &mut Rng) -> Vec<u8> {
    let mut bytes = match dice.u8(..4) {
        0 => bytes,
        1 => [gzip(&bytes[..bytes.len() / 2]), gzip(&bytes[bytes.len() / 2..])].concat(),
        _ => gzip(&bytes),
    };
    if dice.u8(..12) == 0 {
        text(&mut bytes, dice);
    }
    bytes
}
