//! Secrets within states, for a server that does not decrypt them.

use serde_json::Value;

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
    fn text_nested_too_deep_counts_as_plaintext() {
        let text = format!(r#"{{"{SECRET}":"plaintext","a":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
        assert!(holds_plaintext(text.as_bytes()));
    }
}
