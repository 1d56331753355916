//! The scripts that are published with the `esc` CLI end as published, except for those named here: 17 need
//! missing features, and 6 differ as decision 30 says.

use std::collections::{BTreeMap, BTreeSet};

use statewright_tests::esc_scripts::{self, Report};

const CHANGE_REQUESTS: &str = "drafts, change requests and requests to open an environment are not supported";
const REFERRERS: &str = "stacks and accounts that use an environment are not listed";
const SCHEDULES: &str = "schedules are not supported";
const WEBHOOKS: &str = "webhooks are not supported";
// Decision 30 gives more details.
const LAYOUT: &str = "a text stays as it was sent, and the stand-in rewrites it";
const SAME_TEXT: &str = "the same text again is not a revision";
const BASES: &str = "the values within an overridden object are left out, and a list ends at its bracket";
const NOTHING: &str = "the stand-in returns nothing for an empty environment, which is impossible over HTTP";

/// Scripts that end differently, with the reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("env-change-request", CHANGE_REQUESTS),
    ("env-change-request-org", CHANGE_REQUESTS),
    ("env-change-request-rebase-conflict", CHANGE_REQUESTS),
    ("env-draft-reason", CHANGE_REQUESTS),
    ("env-edit-editor-conflict", LAYOUT),
    ("env-edit-editor-conflict-draft", CHANGE_REQUESTS),
    ("env-edit-editor-invalid-draft", CHANGE_REQUESTS),
    ("env-edit-editor-ok-draft", CHANGE_REQUESTS),
    ("env-edit-flag-editor-args", SAME_TEXT),
    ("env-get-each-value-detailed", BASES),
    ("env-open-request-ok", CHANGE_REQUESTS),
    ("env-provider-azure-login-oidc", LAYOUT),
    ("env-referrer-list-ok", REFERRERS),
    ("env-schedule-ok", SCHEDULES),
    ("env-set-draft", CHANGE_REQUESTS),
    ("env-set-secret", LAYOUT),
    ("env-version-rollback-draft", CHANGE_REQUESTS),
    ("env-webhook-edit-events", WEBHOOKS),
    ("env-webhook-ok", WEBHOOKS),
    ("open-draft", CHANGE_REQUESTS),
    ("open-json", NOTHING),
    ("run-draft", CHANGE_REQUESTS),
    ("run-draft-diags", CHANGE_REQUESTS),
];

#[tokio::test]
async fn scripts_of_the_client_end_as_they_are_published() {
    let Report { same, different, text } = esc_scripts::run(None).await.expect("they run");
    let known: BTreeMap<&str, &str> = DIFFERENT.iter().copied().collect();
    let found: BTreeSet<&str> = different.iter().map(String::as_str).collect();
    let new: Vec<_> = found.iter().filter(|name| !known.contains_key(*name)).collect();
    assert!(new.is_empty(), "{new:?} differ, but are not in the list:\n{text}");
    let gone: Vec<_> = known.iter().filter(|(name, _)| !found.contains(*name)).collect();
    assert!(gone.is_empty(), "these are equal now, remove them from the list: {gone:?}");
    assert_eq!(same.len() + different.len(), 114);
}
