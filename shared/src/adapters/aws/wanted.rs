//! The settings of a store on AWS: `aws setup` makes them, `doctor` checks them, and tests compare the
//! templates of functions with them.

use aws_sdk_s3::error::BuildError;
use aws_sdk_s3::types::{
    AbortIncompleteMultipartUpload, ExpirationStatus, LifecycleExpiration, LifecycleRule,
    LifecycleRuleFilter, Transition, TransitionStorageClass,
};
use serde_json::{Value, json};

/// No single call can delete the table.
pub(super) const PROTECTION: &str = "protection against deletion";
/// The table deletes expired items.
pub(super) const EXPIRY: &str = "expiry of items";
/// The table can be restored to a point in time.
pub(super) const RECOVERY: &str = "recovery to any point of 35 days";
/// The bucket cannot be made public.
pub(super) const CLOSED: &str = "no access for the public";
/// The bucket encrypts what it stores.
pub(super) const ENCRYPTION: &str = "encryption at rest";
/// The bucket refuses requests without TLS.
pub(super) const TLS: &str = "access by TLS alone";
/// The bucket has the rules of [`LIFECYCLE`].
pub(super) const RULES: &str = "lifecycle of objects";
/// KMS rotates the key's material.
pub(super) const ROTATION: &str = "rotation each year";

/// All settings, by the names that `aws setup` and `doctor` show.
pub const FEATURES: [&str; 8] = [EXPIRY, RECOVERY, PROTECTION, CLOSED, ENCRYPTION, TLS, RULES, ROTATION];

/// A lifecycle rule of the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its ID in the bucket.
    pub id: &'static str,
    /// The prefix of the objects that it applies to; empty for all.
    pub prefix: &'static str,
    pub then: Then,
}

/// What a rule does, and after how many days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Deletes the parts of unfinished uploads.
    AbortUploads(i32),
    /// Deletes objects.
    Expire(i32),
    /// Moves objects to the class that costs half as much to store, and more to read.
    InfrequentAccess(i32),
}

/// The rules of the bucket. None deletes an object that an item may name: only the sweep does that.
pub const LIFECYCLE: [Rule; 6] = [
    Rule { id: "unfinished-uploads", prefix: "", then: Then::AbortUploads(1) },
    Rule { id: "probes", prefix: PROBES, then: Then::Expire(1) },
    Rule { id: "logs-are-read-within-days", prefix: "log/", then: Then::InfrequentAccess(30) },
    Rule { id: "events-are-read-within-days", prefix: "events/", then: Then::InfrequentAccess(30) },
    Rule { id: "old-versions-are-seldom-read", prefix: "snap/", then: Then::InfrequentAccess(90) },
    Rule { id: "old-terraform-states-are-seldom-read", prefix: "tf/", then: Then::InfrequentAccess(90) },
];

/// The prefix of the objects that `doctor` writes.
pub(super) const PROBES: &str = "probe/";

impl Rule {
    /// Whether a rule of a bucket does the same, under any name.
    pub(super) fn is(&self, other: &LifecycleRule) -> bool {
        let does = match self.then {
            Then::AbortUploads(days) => other
                .abort_incomplete_multipart_upload()
                .is_some_and(|abort| abort.days_after_initiation() == Some(days)),
            Then::Expire(days) => {
                other.expiration().is_some_and(|expiration| expiration.days() == Some(days))
            }
            Then::InfrequentAccess(days) => other.transitions().iter().any(|transition| {
                transition.days() == Some(days)
                    && transition.storage_class() == Some(&TransitionStorageClass::StandardIa)
            }),
        };
        let is_narrower = other.filter().is_some_and(|filter| {
            let sizes = [filter.object_size_greater_than(), filter.object_size_less_than()];
            filter.and().is_some() || filter.tag().is_some() || sizes.iter().any(Option::is_some)
        });
        let is_on = *other.status() == ExpirationStatus::Enabled;
        does && is_on && !is_narrower && prefix(other) == self.prefix
    }

    /// The rule as the service's type.
    pub(super) fn to_sdk(self) -> Result<LifecycleRule, BuildError> {
        let rule = LifecycleRule::builder()
            .id(self.id)
            .status(ExpirationStatus::Enabled)
            .filter(LifecycleRuleFilter::builder().prefix(self.prefix).build());
        match self.then {
            Then::AbortUploads(days) => rule.abort_incomplete_multipart_upload(
                AbortIncompleteMultipartUpload::builder().days_after_initiation(days).build(),
            ),
            Then::Expire(days) => rule.expiration(LifecycleExpiration::builder().days(days).build()),
            Then::InfrequentAccess(days) => rule.transitions(
                Transition::builder().days(days).storage_class(TransitionStorageClass::StandardIa).build(),
            ),
        }
        .build()
    }
}

/// Those of [`LIFECYCLE`] that are missing among the rules of a bucket.
pub(super) fn missing(rules: &[LifecycleRule]) -> Vec<Rule> {
    LIFECYCLE.into_iter().filter(|rule| !rules.iter().any(|found| rule.is(found))).collect()
}

/// The prefix that a rule applies to, in the newer spelling or the older one.
#[expect(deprecated, reason = "rules that were created long ago have it")]
pub(super) fn prefix(rule: &LifecycleRule) -> &str {
    rule.filter().and_then(LifecycleRuleFilter::prefix).or(rule.prefix()).unwrap_or_default()
}

/// A rule in the newer spelling, which cannot be mixed with the older one. It applies to the same objects.
#[expect(deprecated, reason = "rules that were created long ago have it")]
pub(super) fn spell_anew(rule: &mut LifecycleRule) {
    let says_nothing = LifecycleRuleFilter::builder().build();
    if rule.filter.as_ref().is_none_or(|filter| *filter == says_nothing) {
        let prefix = rule.prefix.take().unwrap_or_default();
        rule.filter = Some(LifecycleRuleFilter::builder().prefix(prefix).build());
    }
}

/// The statement of a bucket's policy that refuses requests without TLS.
pub fn tls_only(bucket_arn: &str) -> Value {
    json!({
        "Sid": "OnlyByTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket_arn, format!("{bucket_arn}/*")],
        "Condition": { "Bool": { "aws:SecureTransport": "false" } },
    })
}

/// Whether a bucket's policy refuses requests without TLS; false for a policy that cannot be parsed.
pub(super) fn refuses_without_tls(policy: &Value) -> bool {
    let statements = match &policy["Statement"] {
        Value::Array(statements) => statements.iter().collect(),
        statement => vec![statement],
    };
    statements.into_iter().any(|statement| {
        let is_without_tls = &statement["Condition"]["Bool"]["aws:SecureTransport"];
        let is_all = |action: &Value| action == "s3:*" || action == "*";
        let actions = &statement["Action"];
        statement["Effect"] == "Deny"
            && (is_without_tls == "false" || *is_without_tls == Value::Bool(false))
            && (is_all(actions) || actions.as_array().is_some_and(|actions| actions.iter().any(is_all)))
    })
}

/// The partition of AWS that a region belongs to, as ARNs begin.
pub(super) fn partition(region: Option<&str>) -> &'static str {
    match region {
        Some(region) if region.starts_with("cn-") => "aws-cn",
        Some(region) if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_refuses_without_tls_or_does_not() {
        let ours = tls_only("arn:aws:s3:::b");
        for (policy, expected) in [
            (json!({ "Statement": [ours] }), true),
            (json!({ "Statement": ours }), true),
            (json!({ "Statement": [] }), false),
            (json!({}), false),
            (json!({ "Statement": [{ "Effect": "Allow", "Action": "s3:*", "Principal": "*" }] }), false),
            (
                json!({ "Statement": {
                    "Effect": "Deny", "Action": ["s3:PutObject"],
                    "Condition": { "Bool": { "aws:SecureTransport": "false" } },
                } }),
                false,
            ),
        ] {
            assert_eq!(refuses_without_tls(&policy), expected, "{policy}");
        }
    }

    #[test]
    fn a_rule_is_recognized_by_its_effect() {
        let all: Vec<LifecycleRule> = LIFECYCLE.iter().map(|rule| rule.to_sdk().unwrap()).collect();
        assert_eq!(missing(&all), []);
        assert_eq!(missing(&all[1..]), [LIFECYCLE[0]]);
        assert_eq!(missing(&[]), LIFECYCLE);
        let other = Rule { id: "uploads", ..LIFECYCLE[0] }.to_sdk().unwrap();
        assert!(LIFECYCLE[0].is(&other), "under any name");
        let mut narrower = LIFECYCLE[0].to_sdk().unwrap();
        narrower.filter = Some(LifecycleRuleFilter::builder().object_size_less_than(9).build());
        assert!(!LIFECYCLE[0].is(&narrower));
        let later = Rule { then: Then::AbortUploads(7), ..LIFECYCLE[0] }.to_sdk().unwrap();
        assert!(!LIFECYCLE[0].is(&later));
    }

    /// A rule for some objects that loses its filter would delete all of them.
    #[test]
    #[expect(deprecated, reason = "this tests the older spelling")]
    fn a_rule_in_the_older_spelling_stays_about_the_same_objects() {
        let rule = || LifecycleRule::builder().status(ExpirationStatus::Enabled);
        let filter = |prefix: &str| LifecycleRuleFilter::builder().prefix(prefix).build();
        let empty = LifecycleRuleFilter::builder().build();
        for (rule, expected) in [
            (rule().prefix("import/"), filter("import/")),
            (rule().prefix("import/").filter(empty.clone()), filter("import/")),
            (rule().filter(filter("log/")), filter("log/")),
            (rule().filter(empty), filter("")),
            (rule(), filter("")),
        ] {
            let mut rule = rule.build().unwrap();
            spell_anew(&mut rule);
            assert_eq!((rule.filter.as_ref(), rule.prefix.as_ref()), (Some(&expected), None));
            spell_anew(&mut rule);
            assert_eq!(rule.filter, Some(expected));
        }
    }
}
