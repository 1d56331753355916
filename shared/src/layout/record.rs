//! The envelope of every persisted value: a format version, a JSON header, and a tail of bytes.
//!
//! ```text
//! format: u8 | header length: u32, big endian | header: JSON | tail: the rest
//! ```
//!
//! The tail holds opaque or compressed bytes, so that these are never escaped or encoded again.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ports::{Expect, Item, Revision};

/// A stored value that this program cannot read: a newer version wrote it, or it is damaged.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    /// The format version is newer than this program knows.
    #[error(
        "a {name} record has format {found}, and this version of statewright reads up to {known}: upgrade it"
    )]
    TooNew { name: &'static str, found: u8, known: u8 },
    /// The bytes are not a record.
    #[error("a {name} record is damaged: {detail}")]
    Damaged { name: &'static str, detail: String },
}

/// A value that is stored in the ledger.
pub trait Record: Serialize + DeserializeOwned {
    /// The name of the record in messages.
    const NAME: &'static str;
    /// The newest format version, which is written unless [`Record::format`] returns an older one. Newer ones
    /// are refused.
    const FORMAT: u8 = 1;

    /// The format version to write for this value. It can be an older one if a program that knows only that
    /// one handles the value correctly.
    fn format(&self) -> u8 {
        Self::FORMAT
    }

    /// The stored form with a tail.
    fn encode_with(&self, tail: &[u8]) -> Bytes {
        let header = serde_json::to_vec(self).expect("records hold only what JSON can express");
        let length = u32::try_from(header.len()).expect("a header is far below 4 GiB");
        let mut bytes = Vec::with_capacity(5 + header.len() + tail.len());
        bytes.push(self.format());
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(tail);
        bytes.into()
    }

    fn encode(&self) -> Bytes {
        self.encode_with(&[])
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`Broken`] if a newer version wrote it or it is damaged.
    fn decode_with(bytes: &Bytes) -> Result<(Self, Bytes), Broken> {
        let damaged = |detail: &str| Broken::Damaged { name: Self::NAME, detail: detail.to_owned() };
        let (&format, rest) = bytes.split_first().ok_or_else(|| damaged("it is empty"))?;
        if format > Self::FORMAT {
            return Err(Broken::TooNew { name: Self::NAME, found: format, known: Self::FORMAT });
        }
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(|| damaged("it ends in its length"))?;
        let length = u32::from_be_bytes(*length) as usize;
        let header = rest.get(..length).ok_or_else(|| damaged("it ends in its header"))?;
        let value = serde_json::from_slice(header)
            .map_err(|error| Broken::Damaged { name: Self::NAME, detail: error.to_string() })?;
        Ok((value, bytes.slice(5 + length..)))
    }

    /// Reads the stored form and ignores its tail.
    ///
    /// # Errors
    /// As [`Record::decode_with`].
    fn decode(bytes: &Bytes) -> Result<Self, Broken> {
        Self::decode_with(bytes).map(|(value, _)| value)
    }
}

/// A record that was read: its value, and the revision for a conditional write.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    pub value: T,
    /// The revision of the put that wrote it.
    pub revision: Revision,
}

impl<T: Record> Stored<T> {
    /// Reads an item.
    ///
    /// # Errors
    /// As [`Record::decode_with`].
    pub fn read(item: &Item) -> Result<Self, Broken> {
        Ok(Self { value: T::decode(&item.value)?, revision: item.revision })
    }

    /// The condition that no other write came since.
    pub fn unchanged(&self) -> Expect {
        Expect::Revision(self.revision)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Sample {
        n: u32,
    }

    impl Record for Sample {
        const NAME: &'static str = "sample";
    }

    #[test]
    fn header_and_tail_read_back() {
        let bytes = Sample { n: 7 }.encode_with(b"\x00tail");
        let (value, tail) = Sample::decode_with(&bytes).unwrap();
        assert_eq!((value, tail.as_ref()), (Sample { n: 7 }, b"\x00tail".as_ref()));
    }

    #[test]
    fn a_newer_format_is_refused_by_name() {
        let mut bytes = Sample { n: 7 }.encode().to_vec();
        bytes[0] = 2;
        let refusal = Sample::decode(&bytes.into()).unwrap_err().to_string();
        assert_eq!(
            refusal,
            "a sample record has format 2, and this version of statewright reads up to 1: upgrade it"
        );
    }

    #[test]
    fn every_truncation_is_damage_and_never_a_panic() {
        let whole = Sample { n: 7 }.encode();
        for length in 0..whole.len() {
            assert!(
                matches!(Sample::decode(&whole.slice(..length)), Err(Broken::Damaged { .. })),
                "{length} bytes of {} were read as a record",
                whole.len()
            );
        }
    }
}
