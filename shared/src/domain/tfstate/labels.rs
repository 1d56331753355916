//! Labels of states, to filter lists by. A key has one value: a text, a number or a boolean.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::hidden::has_hidden;

/// Labels of a state, at most.
pub const LABELS_MAX: usize = 32;

/// The longest text of a label, in bytes.
pub const LABEL_BYTES_MAX: usize = 256;

/// The longest key, in bytes.
pub(super) const LABEL_KEY_BYTES_MAX: usize = 32;

/// The bound below which a 64-bit float represents every integer.
const NUMBER_END: f64 = 9_007_199_254_740_992.0;

/// The labels of a state.
pub type Labels = BTreeMap<LabelKey, LabelValue>;

/// Changes of labels: a value sets one, `None` removes it. Others stay.
pub type LabelChanges = BTreeMap<LabelKey, Option<LabelValue>>;

/// Why a label is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabel {
    /// The key breaks its rule.
    #[error(
        "{0:?} is not a valid label key: use 1 to 32 lower-case letters, digits, `_` and `/`, a letter first"
    )]
    Key(String),
    /// The text is too long or has control characters.
    #[error("invalid value of the label {0}: use at most 256 bytes and no control characters")]
    Text(String),
    /// The text has characters that are not seen, or that turn what is around them.
    #[error("invalid value of the label {0}: it has hidden characters, so write it without them")]
    Hidden(String),
    /// The number would change when stored.
    #[error("invalid value of the label {0}: use a finite number between -2^53 and 2^53")]
    Number(String),
    /// The value is a list, an object or null.
    #[error("invalid value of the label {0}: use a text, a number, true or false")]
    Kind(String),
    /// There are too many.
    #[error("too many labels: use at most {LABELS_MAX}")]
    TooMany,
}

/// The key of a label: `[a-z][a-z0-9_/]{0,31}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LabelKey(String);

impl LabelKey {
    /// Parses a key.
    ///
    /// # Errors
    /// [`InvalidLabel::Key`].
    pub fn parse(text: &str) -> Result<Self, InvalidLabel> {
        let is_key = text.len() <= LABEL_KEY_BYTES_MAX
            && text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(is_key_byte);
        if is_key {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidLabel::Key(text.chars().take(60).collect()))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a key is made of, after its first letter.
pub(super) fn is_key_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'/')
}

impl TryFrom<String> for LabelKey {
    type Error = InvalidLabel;
    fn try_from(text: String) -> Result<Self, InvalidLabel> {
        Self::parse(&text)
    }
}

impl From<LabelKey> for String {
    fn from(key: LabelKey) -> Self {
        key.0
    }
}

impl fmt::Display for LabelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A finite number that a 64-bit float represents.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct LabelNumber(f64);

/// It is never NaN, so that it equals itself.
impl Eq for LabelNumber {}

impl LabelNumber {
    /// A number; `None` for one that would change when stored.
    pub fn new(number: f64) -> Option<Self> {
        // `-0` becomes `0`.
        (number.abs() < NUMBER_END).then_some(Self(number + 0.0))
    }

    /// The number as a float.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl From<LabelNumber> for Value {
    fn from(LabelNumber(number): LabelNumber) -> Self {
        if number.fract() == 0.0 {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole, and at most 2^53")]
            return Self::from(number as i64);
        }
        Self::from(number)
    }
}

/// The value of a label: a string, a number or a boolean in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum LabelValue {
    Text(String),
    Number(LabelNumber),
    Bool(bool),
}

impl LabelValue {
    /// Makes a value of a text.
    ///
    /// # Errors
    /// [`InvalidLabel::Text`] with the given key.
    pub fn text(key: &str, text: &str) -> Result<Self, InvalidLabel> {
        if text.len() > LABEL_BYTES_MAX || text.chars().any(char::is_control) {
            return Err(InvalidLabel::Text(key.to_owned()));
        }
        Ok(Self::Text(text.to_owned()))
    }

    /// Makes the value for a key.
    ///
    /// # Errors
    /// [`InvalidLabel`] for a value that a label cannot have.
    pub fn of(key: &str, value: &Value) -> Result<Self, InvalidLabel> {
        match value {
            Value::String(text) => Self::text(key, text),
            Value::Bool(value) => Ok(Self::Bool(*value)),
            Value::Number(number) => number
                .as_f64()
                .and_then(LabelNumber::new)
                .map(Self::Number)
                .ok_or_else(|| InvalidLabel::Number(key.to_owned())),
            Value::Null | Value::Array(_) | Value::Object(_) => Err(InvalidLabel::Kind(key.to_owned())),
        }
    }

    /// The length of a text in bytes; 0 for another value.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Number(_) | Self::Bool(_) => 0,
        }
    }

    /// Whether it is a text with hidden characters.
    pub(super) fn has_hidden(&self) -> bool {
        matches!(self, Self::Text(text) if has_hidden(text))
    }
}

impl TryFrom<Value> for LabelValue {
    type Error = InvalidLabel;
    fn try_from(value: Value) -> Result<Self, InvalidLabel> {
        Self::of("value", &value)
    }
}

impl From<LabelValue> for Value {
    fn from(value: LabelValue) -> Self {
        match value {
            LabelValue::Text(text) => Self::String(text),
            LabelValue::Number(number) => number.into(),
            LabelValue::Bool(value) => Self::Bool(value),
        }
    }
}

/// Without quotes, for people.
impl fmt::Display for LabelValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => Value::from(*number).fmt(f),
            Self::Bool(value) => value.fmt(f),
        }
    }
}

/// The new value of a label. Only stored ones of before may have hidden characters.
fn new_value(key: &str, value: &Value) -> Result<LabelValue, InvalidLabel> {
    match LabelValue::of(key, value)? {
        value if value.has_hidden() => Err(InvalidLabel::Hidden(key.to_owned())),
        value => Ok(value),
    }
}

/// Reads changes of labels from JSON, where `null` removes.
///
/// # Errors
/// [`InvalidLabel`] for the first invalid one.
pub fn read_changes(sent: &BTreeMap<String, Value>) -> Result<LabelChanges, InvalidLabel> {
    // As many to set as a state may have, and as many to remove.
    if sent.len() > 2 * LABELS_MAX {
        return Err(InvalidLabel::TooMany);
    }
    sent.iter()
        .map(|(key, value)| {
            let change = match value {
                Value::Null => None,
                value => Some(new_value(key, value)?),
            };
            Ok((LabelKey::parse(key)?, change))
        })
        .collect()
}

/// The labels after a change.
///
/// # Errors
/// [`InvalidLabel::TooMany`].
pub fn merged(labels: &Labels, changes: &LabelChanges) -> Result<Labels, InvalidLabel> {
    let mut merged = labels.clone();
    for (key, change) in changes {
        match change {
            Some(value) => drop(merged.insert(key.clone(), value.clone())),
            None => drop(merged.remove(key)),
        }
    }
    if merged.len() > LABELS_MAX { Err(InvalidLabel::TooMany) } else { Ok(merged) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(value: Value) -> BTreeMap<String, Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn keys_are_small_letters_digits_underscores_and_slashes() {
        for good in ["a", "env", "team/web_2", &"a".repeat(32)] {
            assert_eq!(LabelKey::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "A", "1a", "_a", "/a", "a-b", "a.b", "a b", "ä", "a\n", &"a".repeat(33)] {
            assert!(LabelKey::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_value_has_a_type_and_comes_back_with_it() {
        for value in [json!("3"), json!(3), json!(-2.5), json!(true), json!(""), json!(0)] {
            let label = LabelValue::of("k", &value).unwrap();
            assert_eq!(serde_json::to_value(&label).unwrap(), value);
            assert_eq!(serde_json::from_value::<LabelValue>(value).unwrap(), label);
        }
        assert_ne!(LabelValue::of("k", &json!("3")), LabelValue::of("k", &json!(3)));
        assert_eq!(LabelValue::of("k", &json!(-0.0)), LabelValue::of("k", &json!(0)));
        assert_eq!(LabelValue::of("k", &json!(3.0)), LabelValue::of("k", &json!(3)));
        // One that was stored before they were refused.
        assert!(serde_json::from_value::<LabelValue>(json!("a\u{202e}b")).is_ok());
    }

    #[test]
    fn an_invalid_label_is_refused_with_its_key() {
        let long = json!("x".repeat(257));
        for (value, word) in [
            (json!([1]), "true or false"),
            (json!({}), "true or false"),
            (json!(9_007_199_254_740_993_u64), "2^53"),
            (json!(1e300), "2^53"),
            (long, "256 bytes"),
            (json!("a\u{0}"), "control"),
            (json!("a\u{202e}b"), "hidden"),
            (json!("ad\u{200b}min"), "hidden"),
        ] {
            let words = read_changes(&sent(json!({ "team": value }))).unwrap_err().to_string();
            assert!(words.contains("team") && words.contains(word), "{words}");
        }
    }

    #[test]
    fn a_change_sets_some_removes_some_and_leaves_the_others() {
        let changes = |value| read_changes(&sent(value)).unwrap();
        let labels = merged(&Labels::new(), &changes(json!({ "a": 1, "b": "x", "none": null }))).unwrap();
        let labels = merged(&labels, &changes(json!({ "a": null, "c": true }))).unwrap();
        assert_eq!(serde_json::to_value(&labels).unwrap(), json!({ "b": "x", "c": true }));
    }

    #[test]
    fn labels_are_bounded() {
        let many = |count: usize| -> BTreeMap<String, Value> {
            (0..count).map(|number| (format!("k{number}"), json!(1))).collect()
        };
        let fits = merged(&Labels::new(), &read_changes(&many(32)).unwrap());
        assert_eq!(fits.unwrap().len(), 32);
        let over = merged(&Labels::new(), &read_changes(&many(33)).unwrap());
        assert_eq!(over, Err(InvalidLabel::TooMany));
        assert_eq!(read_changes(&many(65)), Err(InvalidLabel::TooMany));
    }
}
