//! Verifies tokens of issuers.

use std::fmt;
use std::time::Duration;

use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm as Named, DecodingKey, Validation, decode, decode_header};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

use super::signatures::PROVIDER;
use crate::domain::oidc::IssuerUrl;
use crate::domain::oidc::jwk::{Algorithm, Numbers, PublicKey};
use crate::ports::Timestamp;

/// The length of a token in bytes, at most.
pub const JWT_BYTES_MAX: usize = 16 << 10;

/// The maximum difference between the clocks of an issuer and of this server.
const CLOCKS_APART: Duration = Duration::from_secs(60);

/// Keys with the same ID that are tried, at most.
const KEYS_TRIED_MAX: usize = 4;

/// What a token claims, before anything of it is verified.
#[derive(Debug)]
pub(super) struct Unverified {
    pub(super) issuer: String,
    pub(super) subject: Option<String>,
    /// The ID of the key that signed it.
    pub(super) key: Option<String>,
}

/// Why a token is not accepted. For the audit log only: the answer to the client has none of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Wrong {
    #[error("no key of the issuer has the ID of the token's key")]
    NoKey,
    #[error("the signature is wrong")]
    Signature,
    #[error("the key is not for the token's algorithm")]
    Algorithm,
    #[error("it is for another audience")]
    Audience,
    #[error("it has another issuer")]
    Issuer,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    TooEarly,
    #[error("it is malformed: {0}")]
    Malformed(String),
}

impl Wrong {
    /// Whether the signature of the token is right, and what it claims is wrong.
    pub(super) fn is_signed(&self) -> bool {
        match self {
            // The signature is verified before these.
            Self::Audience | Self::Issuer | Self::Expired | Self::TooEarly => true,
            // Some of these are found before.
            Self::Malformed(_) | Self::NoKey | Self::Signature | Self::Algorithm => false,
        }
    }
}

/// Reads what a token claims; `None` if it is not a signed JWT with an issuer.
pub(super) fn unverified(token: &str) -> Option<Unverified> {
    #[derive(Deserialize)]
    struct Claims {
        iss: String,
        sub: Option<Value>,
    }
    let header = decode_header(token).ok()?;
    let claims: Claims = insecure_decode_claims(token).ok()?;
    let subject = claims.sub.as_ref().and_then(Value::as_str).map(str::to_owned);
    Some(Unverified { issuer: claims.iss, subject, key: header.kid })
}

/// The keys that can have signed a token: those with its key's ID. Without an ID, the only key of the issuer.
pub(super) fn candidates<'k>(keys: &'k [PublicKey], id: Option<&str>) -> Vec<&'k PublicKey> {
    match id {
        Some(id) => keys.iter().filter(|key| key.id.as_deref() == Some(id)).take(KEYS_TRIED_MAX).collect(),
        None if keys.len() == 1 => keys.iter().collect(),
        None => Vec::new(),
    }
}

/// Verifies a token: its signature with one of these keys and that key's own algorithm, its issuer, its audience and
/// its times. Returns all claims.
pub(super) fn verify(
    token: &str,
    keys: &[&PublicKey],
    issuer: &IssuerUrl,
    audience: &str,
    now: Timestamp,
) -> Result<Value, Wrong> {
    // Of all calls the first counts, and all install the same.
    let _ = PROVIDER.install_default();
    let mut wrong = Wrong::NoKey;
    for key in keys {
        match verify_with(token, key, issuer, audience) {
            Ok(claims) => {
                // The library accepts a list of issuers too.
                let is_exact = claims.get("iss").and_then(Value::as_str) == Some(issuer.as_str());
                check_times(&claims, now)?;
                return if is_exact { Ok(claims) } else { Err(Wrong::Issuer) };
            }
            Err(error) => wrong = error,
        }
    }
    Err(wrong)
}

fn verify_with(token: &str, key: &PublicKey, issuer: &IssuerUrl, audience: &str) -> Result<Value, Wrong> {
    let malformed = |error: jsonwebtoken::errors::Error| Wrong::Malformed(error.to_string());
    let decoding = match &key.numbers {
        Numbers::Rsa { n, e } => DecodingKey::from_rsa_components(n, e),
        Numbers::Curve { x, y } => DecodingKey::from_ec_components(x, y),
        Numbers::Edwards { x } => DecodingKey::from_ed_components(x),
    };
    let mut validation = Validation::new(named(key.algorithm));
    // Times are checked here, by the clock of the context.
    validation.validate_exp = false;
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    validation.set_issuer(&[issuer.as_str()]);
    validation.set_audience(&[audience]);
    let decoded = decode::<Unique>(token, &decoding.map_err(malformed)?, &validation);
    decoded.map(|token| token.claims.0).map_err(|error| match error.kind() {
        ErrorKind::InvalidSignature => Wrong::Signature,
        ErrorKind::InvalidAlgorithm => Wrong::Algorithm,
        ErrorKind::InvalidAudience => Wrong::Audience,
        ErrorKind::InvalidIssuer => Wrong::Issuer,
        _ => malformed(error),
    })
}

fn named(algorithm: Algorithm) -> Named {
    match algorithm {
        Algorithm::Rs256 => Named::RS256,
        Algorithm::Rs384 => Named::RS384,
        Algorithm::Rs512 => Named::RS512,
        Algorithm::Ps256 => Named::PS256,
        Algorithm::Ps384 => Named::PS384,
        Algorithm::Ps512 => Named::PS512,
        Algorithm::Es256 => Named::ES256,
        Algorithm::Es384 => Named::ES384,
        Algorithm::EdDsa => Named::EdDSA,
    }
}

/// Checks `exp`, `nbf` and `iat`, which are seconds since 1970 and may have a fraction.
fn check_times(claims: &Value, now: Timestamp) -> Result<(), Wrong> {
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(seconds) if seconds.is_finite() => Ok(Some(seconds)),
            _ => Err(Wrong::Malformed(format!("{name} is not a time"))),
        },
    };
    // Whole seconds suffice, and fit a float exactly.
    let (now, apart) = (now.seconds() as f64, CLOCKS_APART.as_secs_f64());
    let expires = time("exp")?.ok_or_else(|| Wrong::Malformed("exp is missing".to_owned()))?;
    if expires + apart <= now {
        return Err(Wrong::Expired);
    }
    for name in ["nbf", "iat"] {
        if time(name)?.is_some_and(|begins| begins > now + apart) {
            return Err(Wrong::TooEarly);
        }
    }
    Ok(())
}

/// A JSON value without two members of the same name: programs differ in which of the two they read.
#[derive(Debug)]
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfUnique).map(Self)
    }
}

struct OfUnique;

impl<'de> Visitor<'de> for OfUnique {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(Unique(value)) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Unique(value))) = map.next_entry::<String, Unique>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("two members have the same name"));
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests;
