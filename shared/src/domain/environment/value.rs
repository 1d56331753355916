//! Values that an environment has.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use serde::Deserialize as _;
use serde_json::value::RawValue;

use super::Range;
use super::access::Step;
use super::emitter;

/// A value. It never changes; where it overrides another one, that one is its base.
#[derive(Debug)]
pub struct Value {
    /// What it is. Of an object, the properties that its base has are not here: see [`Value::property`].
    pub kind: Kind,
    /// Whether it is not known: it was not evaluated, or could not be.
    pub is_unknown: bool,
    /// Whether it is to be kept secret.
    pub is_secret: bool,
    /// Whether nothing may override it.
    pub is_final: bool,
    /// The expression that it comes from.
    pub from: Rc<Range>,
    /// What it overrides.
    pub base: Option<Rc<Self>>,
    /// How many values it overrides, one below the other.
    overrides: usize,
    /// What its expression overrides in its own environment, whatever this was merged with later.
    pub over: Option<Rc<Over>>,
    /// The names of its properties, where those of what it overrides are not among them.
    closed: Option<Rc<BTreeSet<Rc<str>>>>,
    totals: OnceCell<Totals>,
}

/// What an expression overrides: an expression of another environment, which may override a third.
#[derive(Debug)]
pub struct Over {
    /// Where it stands.
    pub from: Rc<Range>,
    /// What that overrides in its turn.
    pub over: Option<Rc<Self>>,
}

/// What a value is.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, as JSON writes it.
    Number(Rc<str>),
    /// A text: of bytes, since base64 may stand for any. Where one that is not UTF-8 is written as JSON, each byte that does not fit is
    /// written as U+FFFD.
    String(Rc<[u8]>),
    /// A sequence.
    Array(Rc<[Rc<Value>]>),
    /// An object.
    Object(Rc<BTreeMap<Rc<str>, Rc<Value>>>),
}

impl Kind {
    /// The kind, as a schema names it.
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

/// What is true of a value and all that is in it.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    has_unknown: bool,
    has_secret: bool,
    has_closed: bool,
    /// Values, and bytes of texts, that are written when it is: shared ones as often as they are.
    size: usize,
    /// How deep values lie in it.
    depth: usize,
    /// How long it is to tell what it overrides, and what that does.
    bases: usize,
}

/// A value is counted as so many bytes, beside its text.
const VALUE_SIZE: usize = 64;

/// What a value may come to when it is written, as it is counted here.
const VALUE_BYTES_MAX: usize = 8 << 20;

/// The longest JSON text that is read: what it becomes takes many times as much.
const JSON_BYTES_MAX: usize = 1 << 20;

/// How deep values may lie in each other.
const DEPTH_MAX: usize = 100;

/// How many values one may override, one below the other: they are walked by recursion. Imports that import the same twice each can
/// come to 2^50.
const OVERRIDES_MAX: usize = 250;

impl Value {
    /// A value that comes from there.
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

    /// A text.
    pub fn string(text: impl AsRef<[u8]>, from: &Rc<Range>) -> Self {
        Self::new(Kind::String(text.as_ref().into()), from)
    }

    /// A text that was made of values.
    pub fn text(text: Text, from: &Rc<Range>) -> Self {
        let value = if text.is_unknown { Self::unknown(from) } else { Self::string(text.bytes, from) };
        value.secret_if(text.is_secret)
    }

    /// A value that is not known.
    pub fn unknown(from: &Rc<Range>) -> Self {
        Self { is_unknown: true, ..Self::new(Kind::Null, from) }
    }

    /// This as a secret, if it is to be one.
    #[must_use]
    pub fn secret_if(self, is_secret: bool) -> Self {
        Self { is_secret: self.is_secret || is_secret, totals: OnceCell::new(), ..self }
    }

    /// This as a value that nothing may override.
    #[must_use]
    pub fn into_final(self) -> Self {
        Self { is_final: true, ..self }
    }

    /// The same value, found there.
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
            // A copy has all properties, and with them what is true of them.
            totals: if self.closed.is_none() { self.totals.clone() } else { OnceCell::new() },
        }
    }

    /// The same value as what a function makes of it: without what it overrides, also when it is merged later, and as a whole not known
    /// or a secret where a part of it is.
    #[must_use]
    pub fn whole_at(&self, from: &Rc<Range>) -> Self {
        if self.has_unknown() {
            return Self::unknown(from).secret_if(self.has_secret());
        }
        let value = Self::new(self.kind.clone(), from).secret_if(self.has_secret());
        let keys = value.keys();
        Self { closed: (!keys.is_empty()).then(|| Rc::new(keys)), ..value }
    }

    /// The same value, with the properties that it has now.
    fn closed(self: &Rc<Self>) -> Rc<Self> {
        let keys = self.keys();
        if self.closed.is_some() || keys.is_empty() {
            return Rc::clone(self);
        }
        Rc::new(Self { closed: Some(Rc::new(keys)), ..self.found_at(&self.from) })
    }

    /// Whether it or anything in it hides properties that it overrides.
    pub fn has_closed(&self) -> bool {
        self.totals().has_closed
    }

    /// The same value with nothing hidden: what is taken from elsewhere has all properties again.
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

    /// Whether it is an object, or may be one.
    pub fn may_be_object(&self) -> bool {
        self.is_unknown || matches!(self.kind, Kind::Object(_))
    }

    /// The names of its properties.
    pub fn keys(&self) -> BTreeSet<Rc<str>> {
        if let Some(closed) = &self.closed {
            return BTreeSet::clone(closed);
        }
        let mut keys = BTreeSet::new();
        let mut next = Some(self);
        // A base that is no object is replaced as a whole, and so is what that overrides.
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

    /// A property: its own, or that of what it overrides, as JSON Merge Patch (RFC 7396) has it.
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

    /// What a path leads to.
    pub fn at(self: &Rc<Self>, path: &[Step]) -> Option<Rc<Self>> {
        path.iter().try_fold(Rc::clone(self), |value, step| match (step, &value.kind) {
            (Step::Index(index), Kind::Array(items)) => items.get(*index).cloned(),
            (Step::Key(key), Kind::Object(_)) => value.property(key),
            _ => None,
        })
    }

    /// Whether anything in it is not known.
    pub fn has_unknown(&self) -> bool {
        self.totals().has_unknown
    }

    /// Whether anything in it is a secret.
    pub fn has_secret(&self) -> bool {
        self.totals().has_secret
    }

    /// Whether it is short and shallow enough to be kept and written. What it is made of has to have been asked before.
    pub fn is_bounded(&self) -> bool {
        let totals = self.totals();
        totals.size <= VALUE_BYTES_MAX && totals.depth <= DEPTH_MAX
    }

    /// How long it is when it is written, as it is counted here. Telling is quick, whatever it comes to.
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
            // Each is told where the value is.
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

    /// Adds it to a text, as an interpolation has it. Of an object that is what it has of its own, without what it overrides.
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
        // Each level quotes the quotes of the one within it.
        if text.bytes.len() > VALUE_BYTES_MAX { Err(TooLong) } else { Ok(()) }
    }

    /// It as plain JSON text.
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

    /// It as plain YAML text, as yaml.v3 writes it.
    ///
    /// # Errors
    /// That it is too long.
    pub fn yaml(&self) -> Result<String, String> {
        emitter::yaml(self)
    }
}

/// A text on its way, made of values.
#[derive(Debug, Default)]
pub struct Text {
    /// It.
    pub bytes: Vec<u8>,
    /// Whether a secret is in it.
    pub is_secret: bool,
    /// Whether something in it is not known.
    pub is_unknown: bool,
}

/// A text becomes longer than is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// A text in quotes, as Go writes JSON: also what HTML or JavaScript could take for a part of itself is escaped.
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

/// A text in quotes, as Go writes it in its own source (`strconv.Quote`).
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

/// Whether a character is shown as something: a letter, a mark, a number, punctuation, a symbol or a blank.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    // The library escapes a mark only where nothing is before it.
    let text = String::from_iter(['x', c]);
    !text.escape_debug().any(|c| c == '\\')
}

/// A list, whatever is in it.
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

/// The value that a JSON text stands for. Numbers stay as they are written.
///
/// # Errors
/// Why it cannot be read.
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
        return Err(format!("it is longer than {JSON_BYTES_MAX} bytes, too long to be read"));
    }
    let text = whole_characters(text);
    let mut values = serde_json::Deserializer::from_str(first_number_cut(&text));
    let raw = <&RawValue>::deserialize(&mut values).map_err(|error| error.to_string())?;
    read(raw, is_secret, from, 0)
}

/// A JSON text without the digits behind a zero that it begins with: what follows the first value counts for nothing, as in Go.
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

/// A JSON text in which each half of a character that has no other half is U+FFFD, as Go reads it.
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
            // What is escaped begins no escape.
            ('\\', _, _) => (text.get(at..at + 2), 2),
            _ => (text.get(at..at + c.len_utf8()), c.len_utf8()),
        };
        whole.push_str(part.unwrap_or_default());
        at += length;
    }
    Cow::Owned(whole)
}

/// This value over that one, as JSON Merge Patch has it; `steps` counts down, and nothing is merged any more when it is zero. It is zero
/// too when a value would override too many others.
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
