//! How long a token lives that is given for the token of another issuer.

use std::time::Duration;

/// The lifetime if the request asks for none. Source: Pulumi's documentation of OIDC issuers, `maxExpiration`.
pub const DEFAULT: Duration = Duration::from_secs(7200);

/// The longest lifetime, whatever the issuer's registration allows. Source: the same.
pub const MAX: Duration = Duration::from_secs(25 * 3600);

/// The lifetime of a token: what the request asks for, and at most what the issuer's registration allows. The answer
/// contains it, so a shorter one is not a refusal. `None` if the request asks for no time at all.
pub fn lifetime(requested_seconds: Option<i64>, max: Option<Duration>) -> Option<Duration> {
    let requested = match requested_seconds {
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).ok().filter(|seconds| *seconds > 0)?),
        None => DEFAULT,
    };
    Some(requested.min(max.unwrap_or(MAX)).min(MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_bounded_by_the_issuer_and_by_a_day() {
        let seconds = |requested, max: Option<u64>| {
            lifetime(requested, max.map(Duration::from_secs)).map(|lifetime| lifetime.as_secs())
        };
        assert_eq!(seconds(None, None), Some(7200));
        assert_eq!(seconds(None, Some(600)), Some(600));
        assert_eq!(seconds(Some(60), Some(600)), Some(60));
        assert_eq!(seconds(Some(7200), Some(600)), Some(600));
        assert_eq!(seconds(Some(i64::MAX), None), Some(25 * 3600));
        assert_eq!(seconds(Some(i64::MAX), Some(u64::MAX)), Some(25 * 3600));
        for nothing in [0, -1, i64::MIN] {
            assert_eq!(seconds(Some(nothing), None), None, "{nothing}");
        }
    }
}
