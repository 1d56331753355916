//! Proof Key for Code Exchange (RFC 7636), only with the method S256: the program that began a login proves
//! it when it gets the token.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The only method. With `plain`, the challenge in an address would be the proof itself.
pub const METHOD: &str = "S256";

/// The length of a challenge: a SHA-256 in base64url.
const CHALLENGE_CHARACTERS: usize = 43;

/// The characters of a verifier (RFC 7636, section 4.1).
const VERIFIER_CHARACTERS: std::ops::RangeInclusive<usize> = 43..=128;

/// The SHA-256 of a verifier, which its owner shows first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge(String);

impl Challenge {
    /// Reads a challenge. `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == CHALLENGE_CHARACTERS && URL_SAFE_NO_PAD.decode(text).is_ok();
        is_one.then(|| Self(text.to_owned()))
    }

    /// The challenge of a verifier. `None` if the text is not a verifier.
    pub fn of(verifier: &str) -> Option<Self> {
        let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_one = VERIFIER_CHARACTERS.contains(&verifier.len()) && verifier.bytes().all(is_unreserved);
        is_one.then(|| Self(URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_that_of_its_verifier() {
        // RFC 7636, appendix B.
        let challenge = Challenge::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk").unwrap();
        assert_eq!(challenge.as_str(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(Challenge::parse(challenge.as_str()), Some(challenge));
        for bad in ["", "short", &"x".repeat(129), &"+".repeat(43), &format!("{}\n", "x".repeat(43))] {
            assert_eq!(Challenge::of(bad), None, "{bad:?}");
        }
        for bad in ["", &"x".repeat(42), &"x".repeat(44), &"=".repeat(43), &"+".repeat(43), &"&".repeat(43)] {
            assert_eq!(Challenge::parse(bad), None, "{bad:?}");
        }
    }
}
