//! Public keys of issuers (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// Keys of a set that are used, at most. Issuers publish two to ten.
pub const KEYS_MAX: usize = 64;

/// The longest text of a number in a key: that of 8,192 bits.
const NUMBER_BYTES_MAX: usize = 1400;

/// The algorithms that are accepted: signatures with a public key only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

/// A public key, with its numbers as base64url text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Numbers {
    Rsa { n: String, e: String },
    Curve { x: String, y: String },
    Edwards { x: String },
}

/// A public key for one algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    pub id: Option<String>,
    /// The only algorithm that a token may use with this key: the one that the key names, else the usual one of its
    /// kind.
    pub algorithm: Algorithm,
    pub numbers: Numbers,
}

/// A text that is not a set of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKeys {
    #[error("the keys are not a JSON Web Key Set: use an object with the list `keys`")]
    NotASet,
    #[error(
        "a key contains a private part or a shared secret: register public keys only, and replace this key"
    )]
    Private,
    #[error(
        "no key can verify signatures: use RSA keys of 2,048 bits or more, EC keys on P-256 or P-384, or Ed25519"
    )]
    NoneUsable,
}

/// The keys of a set that can verify signatures. Others are skipped: a set may have keys of other kinds.
///
/// # Errors
/// [`InvalidKeys`] if there is none.
pub fn usable(set: &Value) -> Result<Vec<PublicKey>, InvalidKeys> {
    let keys = set.get("keys").and_then(Value::as_array).ok_or(InvalidKeys::NotASet)?;
    let usable: Vec<PublicKey> = keys.iter().filter_map(key).take(KEYS_MAX).collect();
    if usable.is_empty() { Err(InvalidKeys::NoneUsable) } else { Ok(usable) }
}

/// Checks a set that an admin registers.
///
/// # Errors
/// [`InvalidKeys`] if it has no usable key, or one with a secret.
pub fn check_registered(set: &Value) -> Result<(), InvalidKeys> {
    let keys = set.get("keys").and_then(Value::as_array).ok_or(InvalidKeys::NotASet)?;
    let is_secret = |key: &Value| ["d", "p", "q", "k"].iter().any(|name| key.get(name).is_some());
    if keys.iter().any(is_secret) {
        return Err(InvalidKeys::Private);
    }
    usable(set).map(drop)
}

fn key(key: &Value) -> Option<PublicKey> {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let is_for_signatures = text("use").is_none_or(|purpose| purpose == "sig");
    let operations = key.get("key_ops").and_then(Value::as_array);
    let verifies = operations.is_none_or(|all| all.iter().any(|operation| operation == "verify"));
    if !is_for_signatures || !verifies {
        return None;
    }
    let (numbers, usual) = match (text("kty")?, text("crv")) {
        ("RSA", _) => {
            (Numbers::Rsa { n: number(text("n")?, None)?, e: number(text("e")?, None)? }, Algorithm::Rs256)
        }
        ("EC", Some("P-256")) => (point(text("x")?, text("y")?, 32)?, Algorithm::Es256),
        ("EC", Some("P-384")) => (point(text("x")?, text("y")?, 48)?, Algorithm::Es384),
        ("OKP", Some("Ed25519")) => (Numbers::Edwards { x: number(text("x")?, Some(32))? }, Algorithm::EdDsa),
        _ => return None,
    };
    let algorithm = match text("alg") {
        Some(named) => named_algorithm(named).filter(|named| fits(*named, usual))?,
        None => usual,
    };
    Some(PublicKey { id: text("kid").map(str::to_owned), algorithm, numbers })
}

/// A number as base64url text, of this length in bytes if one is given.
fn number(text: &str, length: Option<usize>) -> Option<String> {
    if text.len() > NUMBER_BYTES_MAX {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    length.is_none_or(|length| bytes.len() == length).then(|| text.to_owned())
}

fn point(x: &str, y: &str, length: usize) -> Option<Numbers> {
    Some(Numbers::Curve { x: number(x, Some(length))?, y: number(y, Some(length))? })
}

fn named_algorithm(name: &str) -> Option<Algorithm> {
    Some(match name {
        "RS256" => Algorithm::Rs256,
        "RS384" => Algorithm::Rs384,
        "RS512" => Algorithm::Rs512,
        "PS256" => Algorithm::Ps256,
        "PS384" => Algorithm::Ps384,
        "PS512" => Algorithm::Ps512,
        "ES256" => Algorithm::Es256,
        "ES384" => Algorithm::Es384,
        "EdDSA" | "Ed25519" => Algorithm::EdDsa,
        _ => return None,
    })
}

/// Whether a key of a kind, given by its usual algorithm, can have this algorithm.
fn fits(named: Algorithm, usual: Algorithm) -> bool {
    use Algorithm::{Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
    match usual {
        Rs256 => matches!(named, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512),
        other => named == other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_32() -> String {
        URL_SAFE_NO_PAD.encode([7; 32])
    }

    fn algorithm(key: Value) -> Option<Algorithm> {
        usable(&json!({ "keys": [key] })).ok().map(|keys| keys[0].algorithm)
    }

    #[test]
    fn a_key_has_one_algorithm() {
        let (n, e) = (URL_SAFE_NO_PAD.encode([7; 256]), "AQAB");
        let rsa = json!({ "kty": "RSA", "n": n, "e": e });
        assert_eq!(algorithm(rsa.clone()), Some(Algorithm::Rs256));
        let with = |name: &str, value: Value| {
            let mut key = rsa.clone();
            key[name] = value;
            algorithm(key)
        };
        assert_eq!(with("alg", json!("PS512")), Some(Algorithm::Ps512));
        for refused in ["HS256", "none", "ES256", "RSA-OAEP", "EdDSA"] {
            assert_eq!(with("alg", json!(refused)), None, "{refused}");
        }
        assert_eq!(with("use", json!("enc")), None);
        assert_eq!(with("key_ops", json!(["encrypt"])), None);
        assert_eq!(with("key_ops", json!(["verify"])), Some(Algorithm::Rs256));
        assert_eq!(with("n", json!("!")), None);
    }

    #[test]
    fn a_point_has_the_length_of_its_curve() {
        let (x, y) = (of_32(), of_32());
        let ec = |curve: &str| algorithm(json!({ "kty": "EC", "crv": curve, "x": x, "y": y }));
        assert_eq!(ec("P-256"), Some(Algorithm::Es256));
        assert_eq!(ec("P-384"), None, "its numbers have 48 bytes");
        assert_eq!(ec("secp256k1"), None);
        let edwards = algorithm(json!({ "kty": "OKP", "crv": "Ed25519", "x": x }));
        assert_eq!(edwards, Some(Algorithm::EdDsa));
        assert_eq!(algorithm(json!({ "kty": "oct", "k": "c2VjcmV0" })), None);
    }

    #[test]
    fn a_registered_set_has_public_keys_only() {
        let public = json!({ "kty": "OKP", "crv": "Ed25519", "x": of_32() });
        check_registered(&json!({ "keys": [public, { "kty": "new" }] })).unwrap();
        let mut private = public;
        private["d"] = json!(of_32());
        assert_eq!(check_registered(&json!({ "keys": [private] })), Err(InvalidKeys::Private));
        let shared = json!({ "keys": [{ "kty": "oct", "k": "c2VjcmV0" }] });
        assert_eq!(check_registered(&shared), Err(InvalidKeys::Private));
        assert_eq!(check_registered(&json!({ "keys": [] })), Err(InvalidKeys::NoneUsable));
        assert_eq!(check_registered(&json!([])), Err(InvalidKeys::NotASet));
    }
}
