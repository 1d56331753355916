//! The label policy of an organization: rules for the labels of its states.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::labels::{LABEL_BYTES_MAX, LABEL_KEY_BYTES_MAX, LABELS_MAX, LabelKey, LabelValue, Labels};
use crate::domain::plural::count;

/// The longest policy, in bytes of its JSON.
pub(super) const POLICY_BYTES_MAX: usize = 64 << 10;

/// Rules for the labels of states. An absent member allows everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelPolicy {
    /// The allowed keys; `None` allows all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_keys: Option<BTreeSet<LabelKey>>,
    /// The allowed values of some keys.
    pub allowed_values: BTreeMap<LabelKey, Vec<LabelValue>>,
    /// Prefixes of keys that are reserved.
    pub reserved_prefixes: BTreeSet<String>,
    /// Required keys.
    pub required_keys: BTreeSet<LabelKey>,
    /// Keys whose first value is final.
    pub immutable_keys: BTreeSet<LabelKey>,
    /// Labels of a state, at most.
    pub max_keys: usize,
    /// The longest text of a label, in bytes.
    pub max_value_length: usize,
}

impl Default for LabelPolicy {
    fn default() -> Self {
        Self {
            allowed_keys: None,
            allowed_values: BTreeMap::new(),
            reserved_prefixes: BTreeSet::new(),
            required_keys: BTreeSet::new(),
            immutable_keys: BTreeSet::new(),
            max_keys: LABELS_MAX,
            max_value_length: LABEL_BYTES_MAX,
        }
    }
}

/// A rule, by the name of its member in the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// The key is not allowed.
    AllowedKeys,
    /// The value is not allowed.
    AllowedValues,
    /// The prefix of the key is reserved.
    ReservedPrefixes,
    /// A required key is missing.
    RequiredKeys,
    /// The value is final.
    ImmutableKeys,
    /// There are too many labels.
    MaxKeys,
    /// The text is too long.
    MaxValueLength,
}

impl Rule {
    /// The name of its member.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllowedKeys => "allowedKeys",
            Self::AllowedValues => "allowedValues",
            Self::ReservedPrefixes => "reservedPrefixes",
            Self::RequiredKeys => "requiredKeys",
            Self::ImmutableKeys => "immutableKeys",
            Self::MaxKeys => "maxKeys",
            Self::MaxValueLength => "maxValueLength",
        }
    }
}

/// A violation of the policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {words}", rule.as_str())]
pub struct Violation {
    pub rule: Rule,
    pub key: Option<LabelKey>,
    /// What is wrong, and what is allowed.
    pub words: String,
}

/// Why a document is not a valid policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the label policy: {0}")]
pub struct InvalidPolicy(String);

/// Names listed in a message, at most.
const NAMED_MAX: usize = 20;

impl LabelPolicy {
    /// Checks that the labels of a state can satisfy the policy.
    ///
    /// # Errors
    /// [`InvalidPolicy`].
    pub fn check(&self) -> Result<(), InvalidPolicy> {
        let no = |words: String| Err(InvalidPolicy(words));
        if !(1..=LABELS_MAX).contains(&self.max_keys) {
            return no(format!("maxKeys is from 1 to {LABELS_MAX}"));
        }
        if !(1..=LABEL_BYTES_MAX).contains(&self.max_value_length) {
            return no(format!("maxValueLength is from 1 to {LABEL_BYTES_MAX}"));
        }
        if self.required_keys.len() > self.max_keys {
            return no(format!("more keys are required than the {} of maxKeys", self.max_keys));
        }
        for prefix in &self.reserved_prefixes {
            // A key has a prefix and at least one more letter, or is the prefix.
            if prefix.len() > LABEL_KEY_BYTES_MAX || LabelKey::parse(prefix).is_err() {
                return no(format!("no key begins with {:?}", prefix.chars().take(60).collect::<String>()));
            }
        }
        let named = self.required_keys.iter().map(|key| (Rule::RequiredKeys, key));
        let named = named.chain(self.allowed_values.keys().map(|key| (Rule::AllowedValues, key)));
        for (rule, key) in named {
            if let Some(violation) = self.of_key(key) {
                return no(format!("{} names {key}, and {violation}", rule.as_str()));
            }
        }
        for (key, values) in &self.allowed_values {
            if values.is_empty() {
                return no(format!("allowedValues has none for {key}; reserve the key instead"));
            }
            if let Some(violation) = values.iter().find_map(|value| self.of_length(key, value)) {
                return no(format!("allowedValues has one for {key} that is too long: {violation}"));
            }
            if values.iter().any(LabelValue::has_hidden) {
                return no(format!("allowedValues has one for {key} with hidden characters"));
            }
        }
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |text| text.len());
        if bytes > POLICY_BYTES_MAX {
            return no(format!("it has {bytes} bytes, and at most {POLICY_BYTES_MAX} are allowed"));
        }
        Ok(())
    }

    fn of_key(&self, key: &LabelKey) -> Option<Violation> {
        let violation = |rule, words| Some(Violation { rule, key: Some(key.clone()), words });
        if let Some(prefix) = self.reserved_prefixes.iter().find(|prefix| key.as_str().starts_with(*prefix)) {
            let words = format!("the key {key} begins with {prefix}, which is reserved");
            return violation(Rule::ReservedPrefixes, words);
        }
        let allowed = self.allowed_keys.as_ref()?;
        if allowed.contains(key) {
            return None;
        }
        let words = format!("the key {key} is not one of {}", listed(allowed.iter()));
        violation(Rule::AllowedKeys, words)
    }

    fn of_length(&self, key: &LabelKey, value: &LabelValue) -> Option<Violation> {
        let (bytes, bytes_max) = (value.text_bytes(), self.max_value_length);
        (bytes > bytes_max).then(|| Violation {
            rule: Rule::MaxValueLength,
            key: Some(key.clone()),
            words: format!(
                "the value of {key} has {}, and at most {bytes_max} are allowed",
                count(bytes, "byte")
            ),
        })
    }

    fn of_value(&self, key: &LabelKey, value: &LabelValue) -> Option<Violation> {
        let allowed = self.allowed_values.get(key)?;
        (!allowed.contains(value)).then(|| Violation {
            rule: Rule::AllowedValues,
            key: Some(key.clone()),
            words: format!("the value of {key} is not one of {}", listed(allowed.iter().map(json))),
        })
    }

    /// All violations by the labels of a state, however they were set.
    pub fn violations(&self, labels: &Labels) -> Vec<Violation> {
        let mut found = Vec::new();
        if labels.len() > self.max_keys {
            let words = format!(
                "the state has {}, and at most {} are allowed",
                count(labels.len(), "label"),
                self.max_keys
            );
            found.push(Violation { rule: Rule::MaxKeys, key: None, words });
        }
        for key in self.required_keys.iter().filter(|key| !labels.contains_key(*key)) {
            let words = match self.allowed_values.get(key) {
                Some(values) => {
                    format!("the label {key} is missing: one of {}", listed(values.iter().map(json)))
                }
                None => format!("the label {key} is missing"),
            };
            found.push(Violation { rule: Rule::RequiredKeys, key: Some(key.clone()), words });
        }
        for (key, value) in labels {
            found.extend(self.of_key(key));
            found.extend(self.of_value(key, value));
            found.extend(self.of_length(key, value));
        }
        found
    }

    /// Checks whether the labels of a state may become these.
    ///
    /// # Errors
    /// The first violation.
    pub fn judge(&self, before: &Labels, after: &Labels) -> Result<(), Violation> {
        for key in &self.immutable_keys {
            if let Some(value) = before.get(key).filter(|value| after.get(key) != Some(value)) {
                let words = format!("the label {key} stays {}, as it was set first", json(value));
                return Err(Violation { rule: Rule::ImmutableKeys, key: Some(key.clone()), words });
            }
        }
        self.violations(after).into_iter().next().map_or(Ok(()), Err)
    }
}

fn json(value: &LabelValue) -> String {
    serde_json::Value::from(value.clone()).to_string()
}

fn listed(names: impl ExactSizeIterator<Item = impl std::fmt::Display>) -> String {
    let count = names.len();
    let mut words = names.take(NAMED_MAX).map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
    if count > NAMED_MAX {
        words.push_str(&format!(" and {} more", count - NAMED_MAX));
    }
    if count == 0 { "none".to_owned() } else { words }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(value: Value) -> LabelPolicy {
        serde_json::from_value(value).unwrap()
    }

    fn labels(value: Value) -> Labels {
        serde_json::from_value(value).unwrap()
    }

    fn strict() -> LabelPolicy {
        policy(json!({
            "allowedKeys": ["env", "team", "tier", "sys"], "allowedValues": { "env": ["dev", "prod"], "tier": [1, 2] },
            "reservedPrefixes": ["sys"], "requiredKeys": ["env"], "immutableKeys": ["env"],
            "maxKeys": 3, "maxValueLength": 8,
        }))
    }

    fn broken(found: Value) -> Vec<&'static str> {
        strict().violations(&labels(found)).iter().map(|violation| violation.rule.as_str()).collect()
    }

    #[test]
    fn each_violation_names_its_rule() {
        assert_eq!(broken(json!({ "env": "dev", "team": "web", "tier": 2 })), [""; 0]);
        assert_eq!(broken(json!({ "team": "web" })), ["requiredKeys"]);
        assert_eq!(broken(json!({ "env": "test" })), ["allowedValues"]);
        // A number differs from the text with the same digits.
        assert_eq!(broken(json!({ "env": "dev", "tier": "2" })), ["allowedValues"]);
        assert_eq!(broken(json!({ "env": "dev", "owner": "web" })), ["allowedKeys"]);
        assert_eq!(broken(json!({ "env": "dev", "sys": true })), ["reservedPrefixes"]);
        assert_eq!(broken(json!({ "env": "dev", "team": "long-name" })), ["maxValueLength"]);
        let many = json!({ "env": "dev", "team": "a", "tier": 1, "system": 1 });
        assert_eq!(broken(many), ["maxKeys", "reservedPrefixes"]);
    }

    #[test]
    fn an_immutable_label_is_set_once() {
        let (old, new) = (labels(json!({ "env": "dev" })), labels(json!({ "env": "prod" })));
        assert_eq!(strict().judge(&Labels::new(), &old), Ok(()));
        assert_eq!(strict().judge(&old, &old), Ok(()));
        for after in [new, Labels::new()] {
            let violation = strict().judge(&old, &after).unwrap_err();
            assert_eq!(
                violation.to_string(),
                r#"immutableKeys: the label env stays "dev", as it was set first"#
            );
        }
    }

    #[test]
    fn a_policy_that_no_state_could_keep_to_is_refused() {
        for (wrong, word) in [
            (json!({ "maxKeys": 0 }), "maxKeys"),
            (json!({ "maxKeys": 33 }), "maxKeys"),
            (json!({ "maxValueLength": 257 }), "maxValueLength"),
            (json!({ "maxKeys": 1, "requiredKeys": ["a", "b"] }), "required"),
            (json!({ "reservedPrefixes": [""] }), "begins with"),
            (json!({ "reservedPrefixes": ["Sys"] }), "begins with"),
            (json!({ "requiredKeys": ["sys/a"], "reservedPrefixes": ["sys/"] }), "reserved"),
            (json!({ "requiredKeys": ["b"], "allowedKeys": ["a"] }), "not one of a"),
            (json!({ "allowedValues": { "a": [] } }), "allowedValues"),
            (json!({ "allowedValues": { "a": ["long"] }, "maxValueLength": 3 }), "too long"),
            (json!({ "allowedValues": { "b": ["x"] }, "allowedKeys": [] }), "not one of none"),
        ] {
            let words = policy(wrong.clone()).check().unwrap_err().to_string();
            assert!(words.contains(word), "{wrong}: {words}");
        }
        assert_eq!(strict().check(), Ok(()));
        assert_eq!(LabelPolicy::default().check(), Ok(()));
        let values: Vec<_> = (0..1000).map(|number| format!("{number:0>100}")).collect();
        let words = policy(json!({ "allowedValues": { "a": values } })).check().unwrap_err().to_string();
        assert!(words.contains("bytes"), "{words}");
    }

    #[test]
    fn lists_in_messages_are_bounded() {
        let values: Vec<_> = (0..100).collect();
        let policy = policy(json!({ "allowedValues": { "a": values } }));
        let found = policy.violations(&labels(json!({ "a": "x" })));
        let words = found.first().unwrap().to_string();
        assert!(words.ends_with("18, 19 and 80 more"), "{words}");
    }
}
