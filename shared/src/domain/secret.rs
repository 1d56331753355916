//! Secrets within states, for a server that does not decrypt them.

use std::ops::Range;

use serde_json::Value;

use super::json::{self, Reader, Visitor, unquote};

/// The key that marks an object in a state as special (pulumi v3.274.1, `sdk/go/common/resource/sig`).
pub(super) const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";

/// The value of that key for a secret.
pub(crate) const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";

/// Whether JSON has a secret that is not encrypted. A client sends one only if its user edited an export made with
/// `--show-secrets`. A text that is not JSON counts as having one.
pub fn holds_plaintext(text: &[u8]) -> bool {
    // Two byte searches avoid reading nearly every text.
    if !contains(text, SECRET.as_bytes()) || !contains(text, b"plaintext") {
        return false;
    }
    std::str::from_utf8(text).map_or(true, |text| Kinds::of(text).is_none_or(|kinds| kinds.plaintext))
}

/// Whether JSON has a secret, encrypted or not. A text that is not JSON counts as having one.
pub fn holds_secret(text: &str) -> bool {
    contains(text.as_bytes(), SECRET.as_bytes()) && Kinds::of(text).is_none_or(|kinds| kinds.secret)
}

/// The kinds of secrets that a text has.
#[derive(Default)]
struct Kinds {
    /// The open objects: whether each is a secret, and whether it has a plaintext.
    open: Vec<(bool, bool)>,
    secret: bool,
    plaintext: bool,
}

impl Kinds {
    /// `None` for a text that is not JSON.
    fn of(text: &str) -> Option<Self> {
        let mut kinds = Self::default();
        read_whole(text, &mut kinds).then_some(kinds)
    }
}

impl<'a> Visitor<'a> for Kinds {
    fn object_begins(&mut self, _start: usize) {
        self.open.push((false, false));
    }

    fn object_ends(&mut self, _end: usize) {
        if let Some((true, has_plaintext)) = self.open.pop() {
            self.secret = true;
            self.plaintext |= has_plaintext;
        }
    }

    fn member(&mut self, name: &'a str) {
        if let Some((_, has_plaintext)) = self.open.last_mut()
            && unquote(name) == "plaintext"
        {
            *has_plaintext = true;
        }
    }

    fn text_member(&mut self, name: &'a str, value: &'a str, _start: usize) {
        if is_mark(name, value)
            && let Some((is_secret, _)) = self.open.last_mut()
        {
            *is_secret = true;
        }
    }
}

/// Passes over a whole text; false if it is not JSON.
fn read_whole<'a>(text: &'a str, visitor: &mut impl Visitor<'a>) -> bool {
    let mut reader = Reader::new(text);
    reader.walk(visitor).and_then(|()| reader.finish()).is_ok()
}

/// Whether this member marks its object as a secret. Both are as in the text.
fn is_mark(name: &str, value: &str) -> bool {
    unquote(value) == SECRET && unquote(name) == SIGNATURE
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
    read_whole(text, &mut places).then_some(())?;
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

/// Levels of objects and arrays that lead to a secret, at most.
const LEVELS_MAX: usize = 100;

/// What [`masked`] shows as one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sealed {
    /// A secret: its ciphertext.
    Secret(String),
    /// A string of JSON that has secrets.
    Text(SealedText),
}

/// JSON that has secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedText {
    text: String,
    /// The outermost secrets, in text order: where each is, and its ciphertext.
    secrets: Vec<(Range<usize>, String)>,
}

impl Sealed {
    /// Finds the secret at a place of a JSON text. The place is a JSON pointer (RFC 6901) such as `/outputs/list/0`.
    /// `None` if nothing is there, or a value that is not a secret. The text is read once, and a string in it once more.
    pub fn at(text: &str, pointer: &str) -> Option<Self> {
        let found = value_at(text, pointer)?;
        if found.starts_with('"') {
            let text = unquote(found).into_owned();
            let has_words = [SIGNATURE, SECRET].iter().all(|word| text.contains(word));
            let secrets = if has_words { Secrets::of(&text)? } else { Vec::new() };
            return (!secrets.is_empty()).then_some(Self::Text(SealedText { text, secrets }));
        }
        match <[_; 1]>::try_from(Secrets::of(found)?) {
            // The value itself, and not one in it.
            Ok([(place, ciphertext)]) if place == (0..found.len()) => Some(Self::Secret(ciphertext)),
            Ok(_) | Err(_) => None,
        }
    }

    /// The ciphertexts, in the order that [`Sealed::opened`] expects for their plaintexts.
    pub fn ciphertexts(&self) -> Vec<&str> {
        match self {
            Self::Secret(ciphertext) => vec![ciphertext],
            Self::Text(text) => text.secrets.iter().map(|(_, ciphertext)| ciphertext.as_str()).collect(),
        }
    }

    /// The value as JSON. Each plaintext is JSON; `None` if one is missing or is not JSON.
    pub fn opened(self, plaintexts: Vec<Vec<u8>>) -> Option<String> {
        let mut plaintexts = plaintexts.into_iter();
        let mut next = || {
            let text = String::from_utf8(plaintexts.next()?).ok()?;
            read_whole(&text, &mut ()).then_some(text)
        };
        match self {
            Self::Secret(_) => next(),
            Self::Text(SealedText { text, secrets }) => {
                let (mut opened, mut from) = (String::with_capacity(text.len()), 0);
                for (place, _) in secrets {
                    opened.push_str(text.get(from..place.start)?);
                    opened.push_str(&next()?);
                    from = place.end;
                }
                opened.push_str(text.get(from..)?);
                serde_json::to_string(&opened).ok()
            }
        }
    }
}

/// Finds the outermost secrets in a text, with their ciphertexts.
#[derive(Default)]
struct Secrets<'a> {
    /// The open objects: where each begins, whether it is a secret, and its ciphertext as in the text.
    open: Vec<(usize, bool, &'a str)>,
    found: Vec<(Range<usize>, &'a str)>,
}

impl<'a> Secrets<'a> {
    /// `None` for a text that is not JSON. A secret without a ciphertext has an empty one.
    fn of(text: &'a str) -> Option<Vec<(Range<usize>, String)>> {
        let mut secrets = Self::default();
        read_whole(text, &mut secrets).then_some(())?;
        Some(secrets.found.into_iter().map(|(place, raw)| (place, unquote(raw).into_owned())).collect())
    }
}

impl<'a> Visitor<'a> for Secrets<'a> {
    fn object_begins(&mut self, start: usize) {
        self.open.push((start, false, ""));
    }

    fn object_ends(&mut self, end: usize) {
        if let Some((start, true, ciphertext)) = self.open.pop() {
            while self.found.pop_if(|(inner, _)| inner.start > start).is_some() {}
            self.found.push((start..end, ciphertext));
        }
    }

    fn text_member(&mut self, name: &'a str, value: &'a str, _start: usize) {
        let is_mark = is_mark(name, value);
        if let Some((_, is_secret, ciphertext)) = self.open.last_mut() {
            *is_secret |= is_mark;
            if unquote(name) == "ciphertext" {
                *ciphertext = value;
            }
        }
    }
}

/// The text of the value at a JSON pointer. One pass over the text.
fn value_at<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    let names = pointer.strip_prefix('/')?.split('/');
    let names: Vec<String> = names.map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    if names.len() > LEVELS_MAX {
        return None;
    }
    let mut reader = Reader::new(text);
    let found = value_below(text, &mut reader, &names).ok()?;
    reader.finish().ok()?;
    found.map(str::trim_ascii)
}

/// The text of the value to which these names lead from the next one.
fn value_below<'a>(text: &str, reader: &mut Reader<'a>, names: &[String]) -> json::Result<Option<&'a str>> {
    let Some((name, rest)) = names.split_first() else { return reader.raw().map(Some) };
    let mut found = None;
    let start = reader.start();
    match text.as_bytes().get(start) {
        Some(b'{') => reader.object(|reader, key| {
            match key.name == name.as_str() {
                // Of members with one name, the last one counts.
                true => found = value_below(text, reader, rest)?,
                false => drop(reader.raw()?),
            }
            Ok(())
        })?,
        Some(b'[') => {
            let (wanted, mut number) = (name.parse::<usize>().ok(), 0);
            reader.array(|reader| {
                match wanted == Some(number) {
                    true => found = value_below(text, reader, rest)?,
                    false => drop(reader.raw()?),
                }
                number += 1;
                Ok(())
            })?;
        }
        _ => drop(reader.raw()?),
    }
    Ok(found)
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
        if is_mark(name, value)
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

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
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
        let inside = serde_json::to_string(&format!(r#"{{"b":{secret}}}"#)).unwrap();
        Sealed::at(&format!(r#"{{"a":{inside}}}"#), "/a").unwrap()
    }

    #[test]
    fn what_surrounds_a_secret_in_a_string_stays() {
        let secret = |text: &str| format!(r#"{{"{SIGNATURE}":"{SECRET}","ciphertext":"{text}"}}"#);
        let outer = format!(r#"{{"value":[{}],"{SIGNATURE}":"{SECRET}","ciphertext":"BB"}}"#, secret("x"));
        let inside = format!(r#" [1e400, {}, {{"z":{outer},"a":1}}] "#, secret("AA"));
        let text = format!(r#"{{"a":{}}}"#, serde_json::to_string(&inside).unwrap());
        let sealed = Sealed::at(&text, "/a").unwrap();
        assert_eq!(sealed.ciphertexts(), ["AA", "BB"], "the outermost ones");
        assert_eq!(sealed.clone().opened(vec![b"1".to_vec()]), None);
        let opened = sealed.opened(vec![b"1".to_vec(), b"{}".to_vec()]).unwrap();
        let opened: String = serde_json::from_str(&opened).unwrap();
        assert_eq!(opened, r#" [1e400, 1, {"z":{},"a":1}] "#);
    }

    #[test]
    fn the_last_of_members_with_one_name_counts() {
        let secret = |text: &str| format!(r#"{{"{SIGNATURE}":"{SECRET}","ciphertext":"{text}"}}"#);
        let text = format!(r#"{{"a":{{"b":{}}},"a":{{"b":{}}}}}"#, secret("AA"), secret("BB"));
        assert_eq!(Sealed::at(&text, "/a/b"), Some(Sealed::Secret("BB".to_owned())));
        let text = format!(r#"{{"a":{{"b":{}}},"a":0}}"#, secret("AA"));
        assert_eq!(Sealed::at(&text, "/a/b"), None);
        assert_eq!(Sealed::at(&format!(r#"{{"a":{},"b":"#, secret("AA")), "/a"), None, "it is not JSON");
    }

    #[test]
    fn deep_nesting_hides_no_secret_in_plain_text() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = deep(&format!(r#"{{"{SIGNATURE}":"{SECRET}","plaintext":1}}"#));
        assert!(holds_plaintext(text.as_bytes()) && holds_secret(&text));
        let text = deep(&format!(r#"{{"{SIGNATURE}":"{SECRET}","a":{{"plaintext":1}}}}"#));
        assert!(!holds_plaintext(text.as_bytes()) && holds_secret(&text));
        assert!(holds_plaintext(text.trim_end_matches(']').as_bytes()), "it is not JSON");
    }
}
