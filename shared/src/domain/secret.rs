//! Secrets within states, for a server that does not decrypt them.

use std::ops::Range;

use serde_json::Value;

use super::json::{Reader, Visitor, unquote};

/// The key that marks an object in a state as special (pulumi v3.274.1, `sdk/go/common/resource/sig`).
pub(super) const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";

/// The value of that key for a secret.
pub(crate) const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";

/// Whether JSON has a secret that is not encrypted. A client sends one only if its user edited an export made with
/// `--show-secrets`. Text nested too deeply to be checked counts as having one.
pub fn holds_plaintext(text: &[u8]) -> bool {
    // Two byte searches avoid parsing nearly every text.
    if !contains(text, SECRET.as_bytes()) || !contains(text, b"plaintext") {
        return false;
    }
    serde_json::from_slice::<Value>(text).map_or(true, |value| any_plaintext(&value))
}

/// Whether JSON has a secret, encrypted or not. Text nested too deeply to be checked counts as having one.
pub fn holds_secret(text: &str) -> bool {
    contains(text.as_bytes(), SECRET.as_bytes())
        && serde_json::from_str::<Value>(text).map_or(true, |value| any_secret(&value))
}

/// The ciphertexts of all encrypted secrets in a value, in the order that [`replace`] expects for their plaintexts.
pub fn ciphertexts(value: &Value) -> Vec<&str> {
    fn collect<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) if is_secret(members) => {
                found.push(members.get("ciphertext").and_then(Value::as_str).unwrap_or_default());
            }
            Value::Object(members) => members.values().for_each(|value| collect(value, found)),
            Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

/// Replaces all encrypted secrets in a value.
pub fn replace(value: &mut Value, opened: &mut impl Iterator<Item = Value>) {
    match value {
        Value::Object(members) if is_secret(members) => *value = opened.next().unwrap_or_default(),
        Value::Object(members) => members.values_mut().for_each(|value| replace(value, opened)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, opened)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What stands for a secret in JSON that is shown.
const SHOWN: &str = r#"{"secret":true}"#;

/// JSON with `{"secret":true}` for each secret, encrypted or not, and for each string with a secret in JSON: providers
/// have such strings in their settings. The rest stays as it is. `None` for a text that is not JSON.
pub fn masked(text: &str) -> Option<String> {
    let mut places = Places { open: Vec::new(), found: Vec::new() };
    let mut reader = Reader::new(text);
    reader.walk(&mut places).and_then(|()| reader.finish()).ok()?;
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    for place in places.found {
        shown.push_str(text.get(from..place.start)?);
        shown.push_str(SHOWN);
        from = place.end;
    }
    shown.push_str(text.get(from..)?);
    Some(shown)
}

/// Finds the secrets in a text.
struct Places {
    /// The open objects: where each begins, and whether it is a secret.
    open: Vec<(usize, bool)>,
    /// The outermost secrets, and strings with secrets, in text order.
    found: Vec<Range<usize>>,
}

impl<'a> Visitor<'a> for Places {
    fn object_begins(&mut self, start: usize) {
        self.open.push((start, false));
    }

    fn object_ends(&mut self, end: usize) {
        if let Some((start, true)) = self.open.pop() {
            while self.found.pop_if(|inner| inner.start > start).is_some() {}
            self.found.push(start..end);
        }
    }

    fn text_member(&mut self, name: &'a str, value: &'a str, start: usize) {
        self.text(value, start);
        if unquote(value) == SECRET
            && unquote(name) == SIGNATURE
            && let Some((_, is_secret)) = self.open.last_mut()
        {
            *is_secret = true;
        }
    }

    fn text(&mut self, value: &'a str, start: usize) {
        let is_long = value.len() > SIGNATURE.len() + SECRET.len();
        let has_secret = |text: &str| [SIGNATURE, SECRET].iter().all(|word| text.contains(word));
        if is_long && has_secret(&unquote(value)) {
            self.found.push(start..start + value.len());
        }
    }
}

fn is_secret(members: &serde_json::Map<String, Value>) -> bool {
    members.get(SIGNATURE).and_then(Value::as_str) == Some(SECRET)
}

fn any_secret(value: &Value) -> bool {
    match value {
        Value::Object(members) => is_secret(members) || members.values().any(any_secret),
        Value::Array(items) => items.iter().any(any_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

fn any_plaintext(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            (is_secret(members) && members.contains_key("plaintext")) || members.values().any(any_plaintext)
        }
        Value::Array(items) => items.iter().any(any_plaintext),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_plain_text_is_found_wherever_it_is() {
        let secret = format!(r#"{{"{SIGNATURE}":"{SECRET}","plaintext":"\"hunter2\""}}"#);
        let text = format!(r#"{{"resources":[{{"outputs":{{"a":[0,{secret}]}}}}]}}"#);
        assert!(holds_plaintext(text.as_bytes()));
    }

    #[test]
    fn ciphertexts_and_the_bare_word_are_not_secrets() {
        let sealed = format!(r#"{{"{SIGNATURE}":"{SECRET}","ciphertext":"AAAA"}}"#);
        let text = format!(r#"{{"resources":[{{"outputs":{{"a":{sealed},"plaintext":"just a name"}}}}]}}"#);
        assert!(!holds_plaintext(text.as_bytes()));
        assert!(holds_secret(&text));
        assert!(!holds_secret(&text.replace(SIGNATURE, "another")));
    }

    #[test]
    fn secrets_are_masked_and_every_other_byte_stays() {
        let secret = format!(r#"{{"ciphertext":"AAAA", "{SIGNATURE}" : "{SECRET}"}}"#);
        let escaped = secret.replace("4dab", "\\u0034dab").replace("1b47", "\\u0031b47");
        let nested = format!(r#"{{"{SIGNATURE}":"{SECRET}","value":[{secret},{{"a":{secret}}}]}}"#);
        let text = |of: &str| format!(r#"{{"n":1e400 ,"a":[{of},{{"b":{of}}}],"ciphertext":"{SECRET}"}}"#);
        for one in [&secret, &escaped, &nested] {
            assert_eq!(masked(&text(one)).unwrap(), text(SHOWN), "{one}");
        }
        // A string of JSON, once and twice.
        let once = serde_json::to_string(&secret).unwrap();
        let twice = serde_json::to_string(&format!("[{once}]")).unwrap();
        for one in [&once, &twice] {
            assert_eq!(masked(&text(one)).unwrap(), text(SHOWN), "{one}");
            assert_eq!(masked(one).unwrap(), SHOWN);
        }
        let other = secret.replace(SECRET, "c44067f5952c0a294b673a41bacd8c17");
        assert_eq!(masked(&other).unwrap(), other, "assets and references are no secrets");
        assert_eq!(masked("{\"a\":"), None);
    }

    #[test]
    fn text_nested_too_deep_counts_as_plaintext() {
        let text = format!(r#"{{"{SECRET}":"plaintext","a":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
        assert!(holds_plaintext(text.as_bytes()));
    }
}
