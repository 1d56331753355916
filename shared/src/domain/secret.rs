//! Secrets within states, for a server that does not decrypt them.

use std::ops::Range;

use serde_json::Value;

use super::json::{Reader, Visitor, members, unquote};

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

/// Levels of objects and arrays that lead to a secret, at most. Each is a pass over the text.
const LEVELS_MAX: usize = 100;

/// What [`masked`] shows as one secret.
#[derive(Debug, Clone, PartialEq)]
pub enum Sealed {
    /// A secret: its ciphertext.
    Secret(String),
    /// A string of JSON that has secrets: what it has.
    Text(Value),
}

impl Sealed {
    /// Finds the secret at a place of a JSON text. The place is a JSON pointer (RFC 6901) such as `/outputs/list/0`.
    /// `None` if nothing is there, or a value that is not a secret.
    pub fn at(text: &str, pointer: &str) -> Option<Self> {
        let found = value_at(text, pointer)?;
        if masked(found).as_deref() != Some(SHOWN) {
            return None;
        }
        let value: Value = serde_json::from_str(found).ok()?;
        match value {
            Value::Object(members) if is_secret(&members) => {
                Some(Self::Secret(members.get("ciphertext")?.as_str()?.to_owned()))
            }
            Value::String(text) => {
                let inner: Value = serde_json::from_str(&text).ok()?;
                any_secret(&inner).then_some(Self::Text(inner))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// The ciphertexts, in the order that [`Sealed::opened`] expects for their plaintexts.
    pub fn ciphertexts(&self) -> Vec<&str> {
        match self {
            Self::Secret(ciphertext) => vec![ciphertext],
            Self::Text(value) => ciphertexts(value),
        }
    }

    /// The value as JSON. Each plaintext is JSON; `None` if one is missing or is not JSON.
    pub fn opened(self, plaintexts: Vec<Vec<u8>>) -> Option<String> {
        match self {
            Self::Secret(_) => {
                let text = String::from_utf8(plaintexts.into_iter().next()?).ok()?;
                is_json(&text).then_some(text)
            }
            Self::Text(mut value) => {
                let values: Result<Vec<Value>, _> =
                    plaintexts.iter().map(|text| serde_json::from_slice(text)).collect();
                replace(&mut value, &mut values.ok()?.into_iter());
                serde_json::to_string(&value.to_string()).ok()
            }
        }
    }
}

fn is_json(text: &str) -> bool {
    let mut reader = Reader::new(text);
    let read = reader.raw();
    read.and_then(|_| reader.finish()).is_ok()
}

/// The text of the value at a JSON pointer.
fn value_at<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    let names = pointer.strip_prefix('/')?;
    if names.split('/').count() > LEVELS_MAX {
        return None;
    }
    let mut here = text.trim_ascii();
    for name in names.split('/') {
        let name = name.replace("~1", "/").replace("~0", "~");
        let inner = match here.starts_with('[') {
            true => item_at(here, name.parse().ok()?)?,
            false => members(here).ok()?.into_iter().rfind(|(key, _)| key.name == name.as_str())?.1,
        };
        here = inner.trim_ascii();
    }
    Some(here)
}

fn item_at(text: &str, wanted: usize) -> Option<&str> {
    let (mut number, mut found) = (0, None);
    let items = Reader::new(text).array(|reader| {
        let item = reader.raw()?;
        if number == wanted {
            found = Some(item);
        }
        number += 1;
        Ok(())
    });
    items.ok()?;
    found
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
    fn a_secret_is_found_by_its_place() {
        let secret = |text: &str| format!(r#"{{"{SIGNATURE}":"{SECRET}","ciphertext":"{text}"}}"#);
        let inside = serde_json::to_string(&format!(r#"{{"b":{}}}"#, secret("CCCC"))).unwrap();
        let text = format!(
            r#"{{"inputs":{{"a/b":[0, {}],"~":{{"":{}}},"text":{inside},"plain":"x"}}}}"#,
            secret("AAAA"),
            secret("BBBB")
        );
        let at = |pointer: &str| Sealed::at(&text, pointer);
        assert_eq!(at("/inputs/a~1b/1"), Some(Sealed::Secret("AAAA".to_owned())));
        assert_eq!(at("/inputs/~0/"), Some(Sealed::Secret("BBBB".to_owned())));
        assert_eq!(at("/inputs/text").unwrap().ciphertexts(), ["CCCC"]);
        for wrong in ["", "/", "inputs", "/inputs", "/inputs/a~1b", "/inputs/a~1b/0", "/inputs/a~1b/2"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
        for wrong in ["/inputs/plain", "/inputs/plain/x", "/inputs/a~1b/1/ciphertext", "/inputs/a~1b/-1"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
        assert_eq!(at(&"/inputs".repeat(LEVELS_MAX + 1)), None);
    }

    #[test]
    fn an_opened_secret_is_json() {
        let secret = Sealed::Secret("AAAA".to_owned());
        let open = |text: &str| secret.clone().opened(vec![text.as_bytes().to_vec()]);
        assert_eq!(open(r#"{"n":1e400}"#).as_deref(), Some(r#"{"n":1e400}"#), "as it was encrypted");
        assert_eq!((open("hunter2"), secret.clone().opened(Vec::new())), (None, None));
        let inside = json_with(&format!(r#"{{"{SIGNATURE}":"{SECRET}","ciphertext":"AAAA"}}"#));
        let opened = inside.opened(vec![br#""hunter2""#.to_vec()]);
        assert_eq!(opened.as_deref(), Some(r#""{\"b\":\"hunter2\"}""#));
    }

    fn json_with(secret: &str) -> Sealed {
        Sealed::Text(serde_json::from_str(&format!(r#"{{"b":{secret}}}"#)).unwrap())
    }

    #[test]
    fn text_nested_too_deep_counts_as_plaintext() {
        let text = format!(r#"{{"{SECRET}":"plaintext","a":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
        assert!(holds_plaintext(text.as_bytes()));
    }
}
