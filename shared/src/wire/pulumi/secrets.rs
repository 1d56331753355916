//! Secrets that the service encrypts.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::bounded;

/// Bytes as standard base64 with padding, as Go writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // In pieces: a value may be as long as memory allows once.
        serializer.collect_str(&Base64Display::new(&self.0, &STANDARD))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(OfBase64)
    }
}

struct OfBase64;

impl Visitor<'_> for OfBase64 {
    type Value = Base64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string of standard base64")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Base64, E> {
        let decoded = STANDARD.decode(text.as_bytes());
        decoded.map(Base64).map_err(|error| E::custom(format!("not standard base64: {error}")))
    }
}

/// `POST {stack}/encrypt`, and the answer to a decrypt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Plaintext {
    pub plaintext: Base64,
}

/// `POST {stack}/decrypt`, and the answer to an encrypt.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ciphertext {
    pub ciphertext: Base64,
}

/// `POST {stack}/batch-encrypt`.
#[derive(Debug, Deserialize)]
pub struct BatchEncrypt {
    #[serde(default, deserialize_with = "bounded::items")]
    pub plaintexts: Option<Vec<Base64>>,
}

/// The answer to `batch-encrypt`, in the order of the request.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchEncrypted {
    pub ciphertexts: Vec<Base64>,
}

/// `POST {stack}/batch-decrypt`. The ciphertexts are stored as sent: they are the keys of the answer.
#[derive(Debug, Deserialize)]
pub struct BatchDecrypt {
    /// The ciphertexts. One may be repeated.
    #[serde(default, deserialize_with = "bounded::items")]
    pub ciphertexts: Option<Vec<String>>,
}

/// The answer to `batch-decrypt`.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchDecrypted {
    /// Ciphertext, exactly as sent, to plaintext. The CLI requires an entry for every ciphertext.
    pub plaintexts: BTreeMap<String, Base64>,
}
