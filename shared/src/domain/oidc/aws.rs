//! Proofs of principals of AWS: a request to AWS's own service that only the principal could sign, and that this server
//! sends in its place. Source: AWS Signature Version 4, presigned requests; AWS STS, `GetCallerIdentity`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::PrimitiveDateTime;
use time::macros::format_description;

use crate::ports::Timestamp;

/// The address under which an organization registers AWS as an issuer.
pub const ISSUER: &str = "https://sts.amazonaws.com";

/// The type of such a proof in the exchange. It is of this server alone.
pub const PROOF_TYPE: &str = "urn:statewright:token-type:aws-caller-identity";

/// The signed header that names the server for which a proof was made.
pub const SERVER_HEADER: &str = "x-statewright-server";

/// The lifetime of a proof.
pub const LIFETIME: Duration = Duration::from_secs(300);

/// The maximum difference between the clocks of the principal and of this server.
const CLOCKS_APART: Duration = Duration::from_secs(60);

/// A proof as its principal sends it, as base64url of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The presigned request.
    pub url: String,
    /// The value of [`SERVER_HEADER`]: the address of the server.
    pub server: String,
}

/// What is wrong with a proof, for the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProof {
    #[error("its host is not that of AWS STS")]
    Host,
    #[error("its query is not that of a presigned GetCallerIdentity")]
    Query,
    #[error("its signed headers are not exactly the host and {SERVER_HEADER}")]
    Headers,
    #[error("it was made for another server")]
    Server,
    #[error("it is older than five minutes, or not valid yet")]
    Time,
    #[error("its signature is for another region or service")]
    Scope,
}

/// A proof that may be sent to AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presigned {
    pub url: String,
    /// When the proof was made.
    pub made: Timestamp,
    /// The signature, which identifies the proof.
    pub signature: String,
}

/// The length of the ID of an access key, in bytes, at most. Source: AWS IAM, `AccessKeyId`.
const KEY_BYTES_MAX: usize = 128;

impl Proof {
    /// The ID of the access key that made the signature, as the proof says; `None` if it names none.
    pub fn access_key(&self) -> Option<&str> {
        let (_, credential) = self.url.split_once("X-Amz-Credential=")?;
        let key = credential.split(['%', '&']).next().unwrap_or_default();
        (1..=KEY_BYTES_MAX).contains(&key.len()).then_some(key)
    }

    /// Checks everything that AWS does not: that the request goes to AWS and asks for the caller's identity alone, that
    /// it was made for this server, and when.
    ///
    /// # Errors
    /// [`InvalidProof`].
    pub fn check(&self, server: &str, now: Timestamp) -> Result<Presigned, InvalidProof> {
        let rest = self.url.strip_prefix("https://").ok_or(InvalidProof::Host)?;
        let (host, query) = rest.split_once("/?").ok_or(InvalidProof::Query)?;
        let region = region_of(host).ok_or(InvalidProof::Host)?;
        let mut seen = Query::default();
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').ok_or(InvalidProof::Query)?;
            seen.take(name, value)?;
        }
        let query = seen;
        let (algorithm, action, version) = (query.algorithm, query.action, query.version);
        if (algorithm, action, version)
            != (Some("AWS4-HMAC-SHA256"), Some("GetCallerIdentity"), Some("2011-06-15"))
        {
            return Err(InvalidProof::Query);
        }
        let expires =
            query.expires.and_then(|expires| expires.parse::<u64>().ok()).ok_or(InvalidProof::Query)?;
        if query.headers != Some(SIGNED_HEADERS) {
            return Err(InvalidProof::Headers);
        }
        if self.server != server {
            return Err(InvalidProof::Server);
        }
        let date = query.date.ok_or(InvalidProof::Query)?;
        let made = time_of(date).ok_or(InvalidProof::Query)?;
        let lifetime = LIFETIME.min(Duration::from_secs(expires));
        if made > now.plus(CLOCKS_APART) || made.plus(lifetime) <= now {
            return Err(InvalidProof::Time);
        }
        // KEY%2FDATE%2FREGION%2FSERVICE%2Faws4_request
        let mut scope = query.credential.ok_or(InvalidProof::Query)?.split("%2F").skip(1);
        let is_scope = scope.next() == date.get(..8)
            && scope.next() == Some(region)
            && scope.next() == Some("sts")
            && scope.next() == Some("aws4_request")
            && scope.next().is_none();
        if !is_scope {
            return Err(InvalidProof::Scope);
        }
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let signature = query.signature.filter(|text| text.len() == 64 && text.bytes().all(is_digit));
        let signature = signature.ok_or(InvalidProof::Query)?.to_owned();
        Ok(Presigned { url: self.url.clone(), made, signature })
    }
}

/// The headers of a proof, in the order in which they are signed, as a query has them.
const SIGNED_HEADERS: &str = "host%3Bx-statewright-server";

/// Whether it is a host of AWS STS.
pub fn is_host(host: &str) -> bool {
    region_of(host).is_some()
}

/// The region of a host of AWS STS; `None` for any other host. The global host is in `us-east-1`.
fn region_of(host: &str) -> Option<&str> {
    let rest = host.strip_prefix("sts.")?;
    if rest == "amazonaws.com" {
        return Some("us-east-1");
    }
    let region = rest.strip_suffix(".amazonaws.com").or_else(|| {
        let region = rest.strip_suffix(".amazonaws.com.cn")?;
        region.starts_with("cn-").then_some(region)
    })?;
    let parts: Vec<&str> = region.split('-').collect();
    let [partition, middle @ .., number] = &parts[..] else { return None };
    let is_word = |part: &&&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_region = partition.len() == 2
        && is_word(&partition)
        && (1..=2).contains(&middle.len())
        && middle.iter().all(|part| is_word(&part))
        && number.len() == 1
        && number.bytes().all(|byte| byte.is_ascii_digit());
    is_region.then_some(region)
}

/// The parameters of a proof, each of which may come once, and no others.
#[derive(Default)]
struct Query<'a> {
    action: Option<&'a str>,
    version: Option<&'a str>,
    algorithm: Option<&'a str>,
    credential: Option<&'a str>,
    date: Option<&'a str>,
    expires: Option<&'a str>,
    headers: Option<&'a str>,
    signature: Option<&'a str>,
    token: Option<&'a str>,
}

impl<'a> Query<'a> {
    fn take(&mut self, name: &str, value: &'a str) -> Result<(), InvalidProof> {
        let place = match name {
            "Action" => &mut self.action,
            "Version" => &mut self.version,
            "X-Amz-Algorithm" => &mut self.algorithm,
            "X-Amz-Credential" => &mut self.credential,
            "X-Amz-Date" => &mut self.date,
            "X-Amz-Expires" => &mut self.expires,
            "X-Amz-SignedHeaders" => &mut self.headers,
            "X-Amz-Signature" => &mut self.signature,
            "X-Amz-Security-Token" => &mut self.token,
            _ => return Err(InvalidProof::Query),
        };
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'%');
        if !value.bytes().all(is_plain) || place.replace(value).is_some() {
            return Err(InvalidProof::Query);
        }
        Ok(())
    }
}

/// The time of `20260101T000000Z`.
fn time_of(text: &str) -> Option<Timestamp> {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let time = PrimitiveDateTime::parse(text, &format).ok()?;
    Some(Timestamp::from_seconds(time.assume_utc().unix_timestamp()))
}

/// The claims of a principal, from AWS's answer as JSON; `None` if it is another answer.
pub fn claims(answer: &Value) -> Option<Value> {
    let result = answer.get("GetCallerIdentityResponse")?.get("GetCallerIdentityResult")?;
    let text = |name: &str| result.get(name).and_then(Value::as_str);
    let (arn, account, id) = (text("Arn")?, text("Account")?, text("UserId")?);
    let mut claims =
        json!({ "iss": ISSUER, "sub": arn, "aws:arn": arn, "aws:account": account, "aws:userid": id });
    if let Some(role) = role_of(arn) {
        claims["aws:role"] = role.into();
    }
    Some(claims)
}

/// The ARN of a role by that of its session: `arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION`. AWS leaves out the
/// path of the role.
fn role_of(arn: &str) -> Option<String> {
    let mut parts = arn.splitn(6, ':');
    let ("arn", partition, "sts", "", account, resource) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?)
    else {
        return None;
    };
    let (role, _session) = resource.strip_prefix("assumed-role/")?.split_once('/')?;
    Some(format!("arn:{partition}:iam::{account}:role/{role}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "https://state.example.com";
    /// 2026-01-01T00:00:00Z.
    const NOW: Timestamp = Timestamp(1_767_225_600_000_000_000);

    fn proof() -> Proof {
        let query = [
            ("Action", "GetCallerIdentity"),
            ("Version", "2011-06-15"),
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", "AKIA%2F20260101%2Feu-central-1%2Fsts%2Faws4_request"),
            ("X-Amz-Date", "20260101T000000Z"),
            ("X-Amz-Expires", "300"),
            ("X-Amz-SignedHeaders", SIGNED_HEADERS),
            ("X-Amz-Signature", &"ab".repeat(32)),
        ]
        .map(|(name, value)| format!("{name}={value}"));
        let url = format!("https://sts.eu-central-1.amazonaws.com/?{}", query.join("&"));
        Proof { url, server: SERVER.to_owned() }
    }

    #[test]
    fn a_proof_of_the_right_form_is_accepted() {
        let presigned = proof().check(SERVER, NOW).unwrap();
        assert_eq!((presigned.made, presigned.signature), (NOW, "ab".repeat(32)));
        let with_token = Proof { url: format!("{}&X-Amz-Security-Token=abc%2F", proof().url), ..proof() };
        with_token.check(SERVER, NOW).unwrap();
        proof().check(SERVER, NOW.plus(LIFETIME - Duration::from_secs(1))).unwrap();
    }

    #[test]
    fn a_proof_names_its_access_key() {
        assert_eq!(proof().access_key(), Some("AKIA"));
        let with = |credential: &str| Proof { url: format!("X-Amz-Credential={credential}"), ..proof() };
        assert_eq!(with("AKIA&x=y").access_key(), Some("AKIA"));
        for none in ["", "%2F", &"x".repeat(129)] {
            assert_eq!(with(none).access_key(), None, "{none}");
        }
    }

    #[test]
    fn a_proof_with_one_wrong_part_is_refused() {
        let with = |from: &str, to: &str| {
            let changed = Proof { url: proof().url.replace(from, to), ..proof() };
            assert_ne!(changed, proof(), "{from}");
            changed.check(SERVER, NOW).map_err(|error| (from.to_owned(), error))
        };
        for (from, to, why) in [
            ("https://", "http://", InvalidProof::Host),
            ("sts.eu-central-1.amazonaws.com", "sts.eu-central-1.amazonaws.com.evil.com", InvalidProof::Host),
            ("sts.eu-central-1.amazonaws.com", "evil.com", InvalidProof::Host),
            ("sts.eu-central-1.amazonaws.com", "x@sts.eu-central-1.amazonaws.com", InvalidProof::Host),
            ("sts.eu-central-1.amazonaws.com", "sts.eu-central-1.amazonaws.com:444", InvalidProof::Host),
            ("sts.eu-central-1", "s3.eu-central-1", InvalidProof::Host),
            ("sts.eu-central-1", "sts.eu-central-1.x", InvalidProof::Host),
            ("sts.eu-central-1.amazonaws.com", "sts.eu-central-1.amazonaws.com.cn", InvalidProof::Host),
            ("sts.eu-central-1", "sts.eu-west-1", InvalidProof::Scope),
            ("com/?", "com/x?", InvalidProof::Query),
            ("Action=GetCallerIdentity", "Action=AssumeRole", InvalidProof::Query),
            ("Action=GetCallerIdentity", "Action=GetCallerIdentity&Action=AssumeRole", InvalidProof::Query),
            ("Version=", "Other=1&Version=", InvalidProof::Query),
            ("X-Amz-Expires=300", "X-Amz-Expires=abc", InvalidProof::Query),
            ("X-Amz-Expires=300", "X-Amz-Expires=0", InvalidProof::Time),
            (SIGNED_HEADERS, "host", InvalidProof::Headers),
            (SIGNED_HEADERS, "host%3Bx-other%3Bx-statewright-server", InvalidProof::Headers),
            ("20260101T000000Z", "20251231T235459Z", InvalidProof::Time),
            ("%2Fsts%2F", "%2Fs3%2F", InvalidProof::Scope),
            ("%2F20260101", "%2F20260102", InvalidProof::Scope),
            (&"ab".repeat(32), &"AB".repeat(32), InvalidProof::Query),
            (&"ab".repeat(32), "ab", InvalidProof::Query),
        ] {
            assert_eq!(with(from, to), Err((from.to_owned(), why)), "{to}");
        }
        assert_eq!(proof().check("https://other.example.com", NOW), Err(InvalidProof::Server));
        assert_eq!(proof().check(SERVER, NOW.plus(LIFETIME)), Err(InvalidProof::Time));
        let early = Timestamp::from_seconds(NOW.seconds() - 61);
        assert_eq!(proof().check(SERVER, early), Err(InvalidProof::Time));
    }

    #[test]
    fn hosts_of_all_partitions_have_a_region() {
        for (host, region) in [
            ("sts.amazonaws.com", Some("us-east-1")),
            ("sts.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("sts.ap-southeast-2.amazonaws.com", Some("ap-southeast-2")),
            ("sts.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("sts.cn-north-1.amazonaws.com", Some("cn-north-1")),
            ("sts.eu-central-1.amazonaws.com.cn", None),
            ("sts..amazonaws.com", None),
            ("sts.amazonaws.com.evil.com", None),
            ("sts.evil.amazonaws.com", None),
            ("sts.x-y-1.amazonaws.com", None),
            ("amazonaws.com", None),
        ] {
            assert_eq!((region_of(host), is_host(host)), (region, region.is_some()), "{host}");
        }
    }

    #[test]
    fn claims_name_the_account_and_the_role() {
        let answer = |arn: &str| {
            let result = json!({ "Arn": arn, "Account": "123456789012", "UserId": "AROA:run" });
            claims(&json!({ "GetCallerIdentityResponse": { "GetCallerIdentityResult": result } }))
        };
        let session = answer("arn:aws:sts::123456789012:assumed-role/deploy/run").unwrap();
        assert_eq!(session["aws:role"], "arn:aws:iam::123456789012:role/deploy");
        assert_eq!(session["aws:account"], "123456789012");
        let user = answer("arn:aws:iam::123456789012:user/ops").unwrap();
        assert_eq!(
            (&user["sub"], user.get("aws:role")),
            (&"arn:aws:iam::123456789012:user/ops".into(), None)
        );
        assert_eq!(claims(&json!({ "Error": {} })), None);
    }
}
