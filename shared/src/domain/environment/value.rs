//! Values of environments.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use serde::Deserialize as _;
use serde_json::value::RawValue;

use super::Range;
use super::access::Step;

/// A value. It is immutable. The value that it overrides is its base.
#[derive(Debug)]
pub struct Value {
    /// The value itself. An object has only its own properties here, not those of its base: see
    /// [`Value::property`].
    pub kind: Kind,
    /// Whether the value is unknown: it was not evaluated, or could not be.
    pub is_unknown: bool,
    /// Whether the value is secret.
    pub is_secret: bool,
    /// Whether the value cannot be overridden.
    pub is_final: bool,
    /// The expression that it comes from.
    pub from: Rc<Range>,
    /// The value that it overrides.
    pub base: Option<Rc<Self>>,
    /// The length of the chain of values that it overrides.
    overrides: usize,
    /// What its expression overrides in its own environment. A later merge does not change this.
    pub over: Option<Rc<Over>>,
    /// The names of its properties, if it hides those of its base.
    closed: Option<Rc<BTreeSet<Rc<str>>>>,
    totals: OnceCell<Totals>,
}

/// An overridden expression of another environment, which may override a third.
#[derive(Debug)]
pub struct Over {
    /// The place of the expression.
    pub from: Rc<Range>,
    /// The expression that it overrides itself.
    pub over: Option<Rc<Self>>,
}

#[derive(Debug, Clone)]
pub enum Kind {
    Null,
    Bool(bool),
    /// A number, as written in JSON.
    Number(Rc<str>),
    /// A text, in bytes, because base64 can encode any bytes. In JSON, each byte that is not valid UTF-8
    /// becomes U+FFFD.
    String(Rc<[u8]>),
    Array(Rc<[Rc<Value>]>),
    Object(Rc<BTreeMap<Rc<str>, Rc<Value>>>),
}

impl Kind {
    /// The name of the type in schemas.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Number(_) => "number",
            Self::String(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

/// Properties of a value that include everything in it.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    has_unknown: bool,
    has_secret: bool,
    has_closed: bool,
    /// The size of the written value: of its values and the bytes of its texts. A shared value counts each
    /// time.
    size: usize,
    /// The depth of nesting.
    depth: usize,
    /// The size of the written chain of overridden values.
    bases: usize,
}

/// The size of a value without its text, in bytes, as an estimate.
const VALUE_SIZE: usize = 64;

/// The largest size of a written value, in bytes, by this estimate.
const VALUE_BYTES_MAX: usize = 8 << 20;

/// The longest JSON text that is parsed, in bytes. The values need many times as much memory.
const JSON_BYTES_MAX: usize = 1 << 20;

/// The deepest nesting of values.
const DEPTH_MAX: usize = 100;

/// The longest chain of overridden values, which recursion walks. If each import imports the same environment
/// twice, a chain can have 2^50 values.
const OVERRIDES_MAX: usize = 250;

impl Value {
    /// A value from this expression.
    pub fn new(kind: Kind, from: &Rc<Range>) -> Self {
        Self {
            kind,
            is_unknown: false,
            is_secret: false,
            is_final: false,
            from: Rc::clone(from),
            base: None,
            overrides: 0,
            over: None,
            closed: None,
            totals: OnceCell::new(),
        }
    }

    pub fn string(text: impl AsRef<[u8]>, from: &Rc<Range>) -> Self {
        Self::new(Kind::String(text.as_ref().into()), from)
    }

    /// A text that was built from values, which is secret or unknown if one of them is.
    pub fn text(text: Text, from: &Rc<Range>) -> Self {
        let value = if text.is_unknown { Self::unknown(from) } else { Self::string(text.bytes, from) };
        value.secret_if(text.is_secret)
    }

    pub fn unknown(from: &Rc<Range>) -> Self {
        Self { is_unknown: true, ..Self::new(Kind::Null, from) }
    }

    /// Marks it as secret, if `is_secret` is true.
    #[must_use]
    pub fn secret_if(self, is_secret: bool) -> Self {
        Self { is_secret: self.is_secret || is_secret, totals: OnceCell::new(), ..self }
    }

    /// Marks it as final.
    #[must_use]
    pub fn into_final(self) -> Self {
        Self { is_final: true, ..self }
    }

    /// The same value with another origin.
    pub fn found_at(&self, from: &Rc<Range>) -> Self {
        Self {
            kind: self.kind.clone(),
            is_unknown: self.is_unknown,
            is_secret: self.is_secret,
            is_final: self.is_final,
            from: Rc::clone(from),
            base: self.base.clone(),
            overrides: self.overrides,
            over: self.over.clone(),
            closed: None,
            // A copy of a closed value shows all properties, so its totals differ.
            totals: if self.closed.is_none() { self.totals.clone() } else { OnceCell::new() },
        }
    }

    /// The same value as the result of a function. It has only these properties, even after a later merge, and
    /// is unknown or secret as a whole if any part of it is.
    #[must_use]
    pub fn whole_at(&self, from: &Rc<Range>) -> Self {
        if self.has_unknown() {
            return Self::unknown(from).secret_if(self.has_secret());
        }
        let value = Self::new(self.kind.clone(), from).secret_if(self.has_secret());
        let keys = value.keys();
        Self { closed: (!keys.is_empty()).then(|| Rc::new(keys)), ..value }
    }

    /// The same value, with only the properties that it has now, also after a later merge.
    fn closed(self: &Rc<Self>) -> Rc<Self> {
        let keys = self.keys();
        if self.closed.is_some() || keys.is_empty() {
            return Rc::clone(self);
        }
        Rc::new(Self { closed: Some(Rc::new(keys)), ..self.found_at(&self.from) })
    }

    /// Whether it, or a value in it, hides properties of its base.
    pub fn has_closed(&self) -> bool {
        self.totals().has_closed
    }

    /// The same value without hidden properties, as for a value from another expression.
    pub fn reopened(self: &Rc<Self>) -> Rc<Self> {
        if !self.has_closed() {
            return Rc::clone(self);
        }
        let kind = match &self.kind {
            Kind::Array(items) => Kind::Array(items.iter().map(Self::reopened).collect()),
            Kind::Object(own) => {
                let own = own.iter().map(|(key, value)| (Rc::clone(key), value.reopened()));
                Kind::Object(Rc::new(own.collect()))
            }
            other => other.clone(),
        };
        Rc::new(Self {
            kind,
            base: self.base.as_ref().map(Self::reopened),
            totals: OnceCell::new(),
            ..self.found_at(&self.from)
        })
    }

    /// Whether it is an object, or unknown and so may be one.
    pub fn may_be_object(&self) -> bool {
        self.is_unknown || matches!(self.kind, Kind::Object(_))
    }

    pub fn keys(&self) -> BTreeSet<Rc<str>> {
        if let Some(closed) = &self.closed {
            return BTreeSet::clone(closed);
        }
        let mut keys = BTreeSet::new();
        let mut next = Some(self);
        // A base that is not an object is replaced as a whole, and hides its own base.
        while let Some(Self { kind: Kind::Object(own), base, closed, .. }) = next {
            if let Some(closed) = closed {
                keys.extend(closed.iter().cloned());
                break;
            }
            keys.extend(own.keys().cloned());
            next = base.as_deref();
        }
        keys
    }

    /// A property: its own, or that of its base, as in JSON Merge Patch (RFC 7396).
    pub fn property(&self, key: &str) -> Option<Rc<Self>> {
        if self.is_unknown {
            return Some(Rc::new(Self::unknown(&self.from)));
        }
        let Kind::Object(own) = &self.kind else { return None };
        match own.get(key) {
            Some(value) => Some(Rc::clone(value)),
            None => self.base.as_ref()?.property(key),
        }
    }

    /// The value at a path.
    pub fn at(self: &Rc<Self>, path: &[Step]) -> Option<Rc<Self>> {
        path.iter().try_fold(Rc::clone(self), |value, step| match (step, &value.kind) {
            (Step::Index(index), Kind::Array(items)) => items.get(*index).cloned(),
            (Step::Key(key), Kind::Object(_)) => value.property(key),
            _ => None,
        })
    }

    /// Whether any value in it is unknown.
    pub fn has_unknown(&self) -> bool {
        self.totals().has_unknown
    }

    /// Whether any value in it is secret.
    pub fn has_secret(&self) -> bool {
        self.totals().has_secret
    }

    /// Whether it is short and shallow enough to be kept and written. The caller must have
    /// checked its parts before.
    pub fn is_bounded(&self) -> bool {
        let totals = self.totals();
        totals.size <= VALUE_BYTES_MAX && totals.depth <= DEPTH_MAX
    }

    /// The size of the written value, by the estimate of this file. This takes constant time after the first
    /// call.
    pub fn size(&self) -> usize {
        self.totals().size
    }

    fn totals(&self) -> Totals {
        *self.totals.get_or_init(|| {
            let mut totals = Totals {
                has_unknown: self.is_unknown,
                has_secret: self.is_secret,
                has_closed: self.closed.is_some(),
                size: VALUE_SIZE,
                ..Totals::default()
            };
            let mut add = |name: usize, value: &Self| {
                let of = value.totals();
                totals.has_unknown |= of.has_unknown;
                totals.has_secret |= of.has_secret;
                totals.has_closed |= of.has_closed;
                totals.size = totals.size.saturating_add(of.size).saturating_add(name);
                totals.depth = totals.depth.max(of.depth + 1);
            };
            match &self.kind {
                Kind::Array(items) => items.iter().for_each(|item| add(0, item)),
                Kind::Object(_) => {
                    for key in self.keys() {
                        if let Some(value) = self.property(&key) {
                            add(key.len(), &value);
                        }
                    }
                }
                Kind::String(text) => totals.size += text.len(),
                Kind::Number(text) => totals.size += text.len(),
                Kind::Null | Kind::Bool(_) => {}
            }
            // Each value is written with its base.
            totals.bases = self.base.as_ref().map_or(0, |base| {
                let text = match &base.kind {
                    Kind::String(text) => text.len(),
                    Kind::Number(text) => text.len(),
                    _ => 0,
                };
                base.totals().bases.saturating_add(VALUE_SIZE + text)
            });
            totals.has_closed |= self.base.as_ref().is_some_and(|base| base.totals().has_closed);
            totals.size = totals.size.saturating_add(totals.bases);
            totals
        })
    }

    /// Appends it to a text, as in an interpolation. An object is written without the properties of its base.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn write_text(&self, text: &mut Text) -> Result<(), TooLong> {
        text.is_secret |= self.is_secret;
        if self.is_unknown {
            text.is_unknown = true;
            return Ok(());
        }
        let quoted = |text: &mut Text, value: &Self| {
            let mut inner = Text::default();
            value.write_text(&mut inner)?;
            text.is_secret |= inner.is_secret;
            text.is_unknown |= inner.is_unknown;
            go_quoted(&inner.bytes, &mut text.bytes);
            Ok(())
        };
        match &self.kind {
            Kind::Null => {}
            Kind::Bool(value) => text.bytes.extend_from_slice(value.to_string().as_bytes()),
            Kind::Number(number) => text.bytes.extend_from_slice(number.as_bytes()),
            Kind::String(bytes) => text.bytes.extend_from_slice(bytes),
            Kind::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        text.bytes.push(b',');
                    }
                    quoted(text, item)?;
                }
            }
            Kind::Object(own) => {
                for (index, (key, value)) in own.iter().enumerate() {
                    if index > 0 {
                        text.bytes.push(b',');
                    }
                    go_quoted(key.as_bytes(), &mut text.bytes);
                    text.bytes.push(b'=');
                    quoted(text, value)?;
                }
            }
        }
        // Each level escapes the quotes of the one within it, so a text may double with each level.
        if text.bytes.len() > VALUE_BYTES_MAX { Err(TooLong) } else { Ok(()) }
    }

    /// The value as plain JSON text.
    pub fn json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out);
        out
    }

    fn write_json(&self, out: &mut String) {
        match &self.kind {
            _ if self.is_unknown => out.push_str("\"[unknown]\""),
            Kind::Null => out.push_str("null"),
            Kind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Kind::Number(text) => out.push_str(text),
            Kind::String(text) => out.push_str(&json_string(text)),
            Kind::Array(items) => {
                list(out, '[', items.iter(), ']', |out, item| item.write_json(out));
            }
            Kind::Object(_) => list(out, '{', self.keys(), '}', |out, key| {
                out.push_str(&json_string(key.as_bytes()));
                out.push(':');
                match self.property(&key) {
                    Some(value) => value.write_json(out),
                    None => out.push_str("null"),
                }
            }),
        }
    }
}

/// A text under construction.
#[derive(Debug, Default)]
pub struct Text {
    pub bytes: Vec<u8>,
    /// Whether it includes a secret.
    pub is_secret: bool,
    /// Whether it includes an unknown value.
    pub is_unknown: bool,
}

/// A text is longer than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// A quoted text in Go's JSON format, which also escapes characters with a meaning in HTML or JavaScript.
fn json_string(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    let _ = write!(out, "\\u{:04x}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        for _ in chunk.invalid() {
            out.push_str("\\ufffd");
        }
    }
    out.push('"');
    out
}

/// A quoted text in Go's source format (`strconv.Quote`).
fn go_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            let escaped = match c {
                '"' => "\\\"".to_owned(),
                '\\' => "\\\\".to_owned(),
                '\u{7}' => "\\a".to_owned(),
                '\u{8}' => "\\b".to_owned(),
                '\u{c}' => "\\f".to_owned(),
                '\n' => "\\n".to_owned(),
                '\r' => "\\r".to_owned(),
                '\t' => "\\t".to_owned(),
                '\u{b}' => "\\v".to_owned(),
                '\0'..='\u{1f}' | '\u{7f}' => format!("\\x{:02x}", u32::from(c)),
                c if is_printable(c) => c.to_string(),
                c if u32::from(c) < 0x1_0000 => format!("\\u{:04x}", u32::from(c)),
                c => format!("\\U{:08x}", u32::from(c)),
            };
            out.extend_from_slice(escaped.as_bytes());
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
        }
    }
    out.push(b'"');
}

/// Whether a character is printable: a letter, mark, number, punctuation, symbol or blank.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    // The library escapes a mark only at the start of a text.
    let text = String::from_iter(['x', c]);
    !text.escape_debug().any(|c| c == '\\')
}

/// Writes a list with this function for its items.
fn list<T>(
    out: &mut String,
    open: char,
    items: impl IntoIterator<Item = T>,
    close: char,
    mut write: impl FnMut(&mut String, T),
) {
    out.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}

/// Parses JSON text into a value. Numbers keep their digits.
///
/// # Errors
/// Why the text is invalid.
pub fn read_json(text: &str, is_secret: bool, from: &Rc<Range>) -> Result<Value, String> {
    fn read(raw: &RawValue, is_secret: bool, from: &Rc<Range>, depth: usize) -> Result<Value, String> {
        let text = raw.get();
        let failed = |error: serde_json::Error| error.to_string();
        if depth > DEPTH_MAX {
            return Err(format!("it is nested deeper than {DEPTH_MAX}"));
        }
        let kind = match text.bytes().next() {
            Some(b'{') => {
                let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).map_err(failed)?;
                let members = members
                    .into_iter()
                    .map(|(key, value)| Ok((key.into(), Rc::new(read(&value, is_secret, from, depth + 1)?))));
                Kind::Object(Rc::new(members.collect::<Result<_, String>>()?))
            }
            Some(b'[') => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(text).map_err(failed)?;
                let items = items.iter().map(|item| read(item, is_secret, from, depth + 1).map(Rc::new));
                Kind::Array(items.collect::<Result<_, _>>()?)
            }
            Some(b'"') => {
                let text = serde_json::from_str::<String>(text);
                Kind::String(text.map_err(failed)?.into_bytes().into())
            }
            Some(b't') => Kind::Bool(true),
            Some(b'f') => Kind::Bool(false),
            Some(b'n') => Kind::Null,
            _ => Kind::Number(text.into()),
        };
        Ok(Value::new(kind, from).secret_if(is_secret))
    }
    if text.len() > JSON_BYTES_MAX {
        return Err(format!("it is too long: the limit is {JSON_BYTES_MAX} bytes"));
    }
    let text = whole_characters(text);
    let mut values = serde_json::Deserializer::from_str(first_number_cut(&text));
    let raw = <&RawValue>::deserialize(&mut values).map_err(|error| error.to_string())?;
    read(raw, is_secret, from, 0)
}

/// A JSON text without the digits after a leading zero: like Go, this ignores everything after the first
/// value.
fn first_number_cut(text: &str) -> &str {
    let number = text.trim_start_matches([' ', '\t', '\r', '\n']);
    let digits = number.strip_prefix('-').unwrap_or(number);
    match digits.strip_prefix('0') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            text.get(..text.len() - rest.len()).unwrap_or(text)
        }
        _ => text,
    }
}

/// A JSON text in which each unpaired half of a surrogate pair is U+FFFD, as in Go.
fn whole_characters(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut whole = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let (part, length) = match (c, unit(at), unit(at + 6)) {
            ('\\', Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (text.get(at..at + 12), 12),
            ('\\', Some(0xd800..=0xdfff), _) => (Some("\\ufffd"), 6),
            // The character after a backslash does not start another escape.
            ('\\', _, _) => (text.get(at..at + 2), 2),
            _ => (text.get(at..at + c.len_utf8()), c.len_utf8()),
        };
        whole.push_str(part.unwrap_or_default());
        at += length;
    }
    Cow::Owned(whole)
}

/// Merges a value over its base, as in JSON Merge Patch. Each merge takes one of `steps`; without steps left,
/// nothing is merged. A chain of overridden values that becomes too long sets `steps` to zero.
pub fn merge(value: &Rc<Value>, base: Option<&Rc<Value>>, steps: &mut usize) -> Rc<Value> {
    let Some(base) = base else { return Rc::clone(value) };
    if Rc::ptr_eq(value, base) {
        return Rc::clone(value);
    }
    if let Some(own) = &value.base
        && Rc::ptr_eq(own, base)
    {
        return Rc::clone(value);
    }
    let Some(left) = steps.checked_sub(1) else { return Rc::clone(value) };
    if value.overrides + base.overrides >= OVERRIDES_MAX {
        *steps = 0;
        return Rc::clone(value);
    }
    *steps = left;
    let base = match &value.base {
        Some(own) => merge(own, Some(base), steps),
        None => Rc::clone(base),
    };
    let is_closed = value.closed.is_some();
    let kind = match &value.kind {
        Kind::Object(own) => {
            let merged = own.iter().map(|(key, value)| {
                let below = base.property(key);
                let value = if is_closed { value.closed() } else { Rc::clone(value) };
                (Rc::clone(key), merge(&value, below.as_ref(), steps))
            });
            Kind::Object(Rc::new(merged.collect()))
        }
        other => other.clone(),
    };
    Rc::new(Value {
        kind,
        is_unknown: value.is_unknown,
        is_secret: value.is_secret,
        is_final: value.is_final,
        from: Rc::clone(&value.from),
        overrides: base.overrides + 1,
        base: Some(base),
        over: value.over.clone(),
        closed: value.closed.clone(),
        totals: OnceCell::new(),
    })
}
