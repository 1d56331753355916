//! Numbers and texts as bytes, and compressed blocks.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::model::Damaged;

/// Appends a number: seven bits a byte, the lowest first.
pub(in crate::domain) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a text after its length.
pub(in crate::domain) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Appends bytes after their length.
pub(in crate::domain) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a number that may be absent.
pub(super) fn put_some(out: &mut Vec<u8>, number: Option<u32>) {
    put_number(out, number.map_or(0, |number| u64::from(number) + 1));
}

/// Reads what was appended.
pub(in crate::domain) struct Taker<'a>(&'a [u8]);

impl<'a> Taker<'a> {
    pub(in crate::domain) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(in crate::domain) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::domain) fn number(&mut self) -> Result<u64, Damaged> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (first, rest) = self.0.split_first().ok_or(Damaged("a number is cut off"))?;
            self.0 = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Damaged("a number is too long"))
    }

    pub(in crate::domain) fn small(&mut self) -> Result<u32, Damaged> {
        u32::try_from(self.number()?).map_err(|_| Damaged("a number is too large"))
    }

    pub(super) fn some(&mut self) -> Result<Option<u32>, Damaged> {
        match self.number()?.checked_sub(1) {
            None => Ok(None),
            Some(number) => u32::try_from(number).map(Some).map_err(|_| Damaged("a number is too large")),
        }
    }

    pub(in crate::domain) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Damaged("it is cut off"))?;
        self.0 = rest;
        Ok(*first)
    }

    pub(in crate::domain) fn text(&mut self) -> Result<&'a str, Damaged> {
        std::str::from_utf8(self.slice()?).map_err(|_| Damaged("a text is not UTF-8"))
    }

    /// What [`put_bytes`] appended.
    pub(in crate::domain) fn slice(&mut self) -> Result<&'a [u8], Damaged> {
        let length = usize::try_from(self.number()?).map_err(|_| Damaged("a text is too long"))?;
        let (slice, rest) = self.0.split_at_checked(length).ok_or(Damaged("a text is cut off"))?;
        self.0 = rest;
        Ok(slice)
    }
}

/// Compresses a block. The same bytes result in the same block.
pub(in crate::domain) fn compress(raw: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(raw.len() / 3 + 64), Compression::fast());
    encoder.write_all(raw).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail")
}

/// Inflates a block of this many bytes.
pub(in crate::domain) fn decompress(compressed: &[u8], bytes: usize) -> Result<Vec<u8>, Damaged> {
    let mut raw = Vec::with_capacity(bytes + 1);
    let mut decoder = DeflateDecoder::new(compressed).take(bytes as u64 + 1);
    decoder.read_to_end(&mut raw).map_err(|_| Damaged("a block does not inflate"))?;
    if raw.len() == bytes { Ok(raw) } else { Err(Damaged("a block has another length")) }
}
