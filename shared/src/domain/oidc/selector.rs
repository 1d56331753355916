//! Paths to claims, as rules name them.

use std::borrow::Cow;

use serde_json::Value;

/// The length of a path in bytes, at most.
const PATH_BYTES_MAX: usize = 256;

/// The keys in a path, at most: no issuer nests claims as deeply.
const KEYS_MAX: usize = 8;

/// A path to a claim: keys between periods, the first one in the token itself. A key with a period in its name is
/// quoted: `"kubernetes.io".namespace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimPath<'a>(Vec<&'a str>);

impl<'a> ClaimPath<'a> {
    /// Parses a path; `None` if it does not parse.
    pub fn parse(text: &'a str) -> Option<Self> {
        if text.len() > PATH_BYTES_MAX {
            return None;
        }
        let (mut keys, mut rest) = (Vec::new(), text);
        loop {
            let (key, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
            };
            if key.is_empty() || key.contains('"') || keys.len() == KEYS_MAX {
                return None;
            }
            keys.push(key);
            match after.strip_prefix('.') {
                Some(more) => rest = more,
                None => return after.is_empty().then_some(Self(keys)),
            }
        }
    }

    /// The first key, which is the name of a claim.
    pub fn first(&self) -> &'a str {
        self.0.first().copied().unwrap_or_default()
    }

    /// Whether the path has one key only.
    pub fn is_single(&self) -> bool {
        self.0.len() == 1
    }

    /// The value at the path.
    pub fn find<'c>(&self, claims: &'c Value) -> Option<&'c Value> {
        self.0.iter().try_fold(claims, |value, key| value.as_object()?.get(*key))
    }
}

/// The texts of a claim that a pattern can match: of a text, a number or a boolean, and of each of these in an array.
/// An object has none, and neither has `null`.
pub fn texts(claim: &Value) -> Vec<Cow<'_, str>> {
    match claim {
        Value::Array(elements) => elements.iter().filter_map(text).collect(),
        value => text(value).into_iter().collect(),
    }
}

fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        Value::Bool(is_true) => Some(Cow::Borrowed(if *is_true { "true" } else { "false" })),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(path: &str, claims: &Value) -> Option<Vec<String>> {
        let value = ClaimPath::parse(path).unwrap().find(claims)?;
        Some(texts(value).into_iter().map(Cow::into_owned).collect())
    }

    #[test]
    fn a_path_goes_into_objects_and_keys_may_be_quoted() {
        let claims = json!({
            "sub": "job", "a.b": "flat", "a": { "b": "deep" }, "n": 7, "yes": true, "aud": ["x", 1, {}, "y"],
            "kubernetes.io": { "namespace": "ci", "serviceaccount": { "name": "deploy" } },
        });
        let one = |text: &str| Some(vec![text.to_owned()]);
        assert_eq!(found("sub", &claims), one("job"));
        assert_eq!(found("a.b", &claims), one("deep"));
        assert_eq!(found("\"a.b\"", &claims), one("flat"));
        assert_eq!(found("\"kubernetes.io\".namespace", &claims), one("ci"));
        assert_eq!(found("\"kubernetes.io\".serviceaccount.name", &claims), one("deploy"));
        assert_eq!(found("n", &claims), one("7"));
        assert_eq!(found("yes", &claims), one("true"));
        assert_eq!(found("aud", &claims), Some(vec!["x".to_owned(), "1".to_owned(), "y".to_owned()]));
        assert_eq!(found("a", &claims), Some(Vec::new()), "an object has no text");
        for missing in ["b", "sub.x", "kubernetes.io", "aud.x"] {
            assert_eq!(found(missing, &claims), None, "{missing}");
        }
    }

    #[test]
    fn a_path_that_does_not_parse_is_refused() {
        for bad in ["", ".", "a.", ".a", "a..b", "\"a", "\"a\"b", "a\"b\"", "\"\"", "a.b.c.d.e.f.g.h.i"] {
            assert_eq!(ClaimPath::parse(bad), None, "{bad}");
        }
        assert_eq!(ClaimPath::parse(&"x".repeat(PATH_BYTES_MAX + 1)), None);
    }
}
