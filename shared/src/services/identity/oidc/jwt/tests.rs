use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::json;

use super::*;
use crate::domain::oidc::jwk::usable;

const ISSUER: &str = "https://ci.example.com";
const AUDIENCE: &str = "urn:pulumi:org:acme";
const NOW: Timestamp = Timestamp(1_767_225_600_000_000_000);

/// The example of RFC 7515, appendix A.2, with RS256: its key, and its token.
const RSA_N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-\
                     SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQO\
                     S-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8\
                     q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
const RSA_TOKEN: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVl\
     fQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUA\
     r7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi\
     12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGl\
     UPQGe77Rw";

fn verified(token: &str, set: &Value) -> Result<Value, Wrong> {
    let keys = usable(set).unwrap();
    let url = IssuerUrl::parse(ISSUER).unwrap();
    verify(token, &keys.iter().collect::<Vec<_>>(), &url, AUDIENCE, NOW)
}

/// Its claims have no audience, which is refused only after the signature was found to be right.
#[test]
fn a_signature_of_the_standard_is_right() {
    let key = json!({ "keys": [{ "kty": "RSA", "n": RSA_N, "e": "AQAB" }] });
    let right = verified(RSA_TOKEN, &key).unwrap_err();
    assert!(matches!(&right, Wrong::Malformed(why) if why.contains("Missing required claim")), "{right}");
    let other = RSA_TOKEN.replacen("eyJpc3MiOiJqb2Ui", "eyJpc3MiOiJqb2Yi", 1);
    assert_eq!(verified(&other, &key), Err(Wrong::Signature));
    let ps256 = json!({ "keys": [{ "kty": "RSA", "n": RSA_N, "e": "AQAB", "alg": "PS256" }] });
    assert_eq!(verified(RSA_TOKEN, &ps256), Err(Wrong::Algorithm));
}

struct Edwards(Ed25519KeyPair);

impl Edwards {
    fn new() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn set(&self) -> Value {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x }] })
    }

    fn sign(&self, claims: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let unsigned = format!("{}.{}", part(r#"{"alg":"EdDSA"}"#), part(claims));
        format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(self.0.sign(unsigned.as_bytes()).as_ref()))
    }
}

#[test]
fn a_token_of_an_edwards_key_is_verified() {
    let key = Edwards::new();
    let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": NOW.seconds() + 1, "sub": "job" });
    assert_eq!(verified(&key.sign(&claims.to_string()), &key.set()), Ok(claims.clone()));
    assert_eq!(verified(&key.sign(&claims.to_string()), &Edwards::new().set()), Err(Wrong::Signature));
    // A list of issuers is not an issuer.
    let mut several = claims;
    several["iss"] = json!([ISSUER]);
    assert_eq!(verified(&key.sign(&several.to_string()), &key.set()), Err(Wrong::Issuer));
}

#[test]
fn members_of_the_same_name_are_refused() {
    let key = Edwards::new();
    let end = NOW.seconds() + 1;
    let claims = |more: &str| format!(r#"{{"iss":"{ISSUER}","aud":"{AUDIENCE}","exp":{end}{more}}}"#);
    verified(&key.sign(&claims("")), &key.set()).unwrap();
    for twice in [r#","a":1,"a":1"#, r#","iss":"x""#, r#","o":{"a":1,"a":2}"#, r#","l":[{"a":1,"a":2}]"#] {
        let refused = verified(&key.sign(&claims(twice)), &key.set()).unwrap_err();
        assert!(matches!(refused, Wrong::Malformed(_)), "{twice}: {refused}");
    }
}

#[test]
fn a_token_without_a_key_id_needs_an_issuer_with_one_key() {
    let keys = |ids: &[&str]| -> Vec<PublicKey> {
        let x = URL_SAFE_NO_PAD.encode([7; 32]);
        let key = |id: &&str| json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": id });
        usable(&json!({ "keys": ids.iter().map(key).collect::<Vec<_>>() })).unwrap()
    };
    let found = |ids: &[&str], id| candidates(&keys(ids), id).len();
    assert_eq!((found(&["a"], None), found(&["a", "b"], None)), (1, 0));
    assert_eq!((found(&["a", "b"], Some("b")), found(&["a", "b"], Some("c"))), (1, 0));
    assert_eq!(found(&["a"; 10], Some("a")), KEYS_TRIED_MAX);
}
