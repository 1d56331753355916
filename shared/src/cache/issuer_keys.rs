//! The public keys of issuers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::oidc::IssuerUrl;
use crate::domain::oidc::jwk::PublicKey;
use crate::ports::Timestamp;

/// Issuers whose keys are kept, at most: some megabytes if each has the most keys.
const ISSUERS_MAX: usize = 64;

/// What was fetched from an issuer.
#[derive(Debug, Default)]
pub(crate) struct FetchedKeys {
    /// The time of the last fetch, also of one that failed.
    pub(crate) tried: Option<Timestamp>,
    /// The keys, and when they were fetched.
    pub(crate) keys: Option<(Timestamp, Arc<[PublicKey]>)>,
    /// The SHA-256 of the issuer's certificate.
    pub(crate) certificate: Option<[u8; 32]>,
    /// Why the last fetch failed.
    pub(crate) failure: Option<String>,
}

/// The keys of each issuer, behind a lock that is held during a fetch.
#[derive(Default)]
pub(crate) struct IssuerKeys(Mutex<HashMap<IssuerUrl, Arc<tokio::sync::Mutex<FetchedKeys>>>>);

impl IssuerKeys {
    /// The entry of an issuer. If there are too many, the one that was fetched longest ago is dropped.
    pub(crate) fn of(&self, url: &IssuerUrl) -> Arc<tokio::sync::Mutex<FetchedKeys>> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= ISSUERS_MAX && !map.contains_key(url) {
            let idle = |entry: (&IssuerUrl, &Arc<tokio::sync::Mutex<FetchedKeys>>)| {
                Some((entry.1.try_lock().ok()?.tried, entry.0.clone()))
            };
            if let Some((_, oldest)) = map.iter().filter_map(idle).min() {
                map.remove(&oldest);
            }
        }
        Arc::clone(map.entry(url.clone()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_issuer_that_was_fetched_longest_ago_is_dropped() {
        let issuers = IssuerKeys::default();
        let url = |number: usize| IssuerUrl::parse(&format!("https://ci-{number}.example.com")).unwrap();
        for number in 0..ISSUERS_MAX {
            let tried = Timestamp::from_seconds(if number == 7 { 1 } else { 2 });
            issuers.of(&url(number)).try_lock().unwrap().tried = Some(tried);
        }
        assert!(
            issuers.of(&url(8)).try_lock().unwrap().tried.is_some(),
            "nothing is dropped for a known one"
        );
        issuers.of(&url(ISSUERS_MAX));
        let map = issuers.0.lock().unwrap();
        assert_eq!((map.len(), map.contains_key(&url(7))), (ISSUERS_MAX, false));
    }
}
