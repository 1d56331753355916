//! Values that an environment has.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::Range;
use super::access::Step;
use super::sealed::quoted;

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
    totals: OnceCell<Totals>,
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
    /// A text.
    String(Rc<str>),
    /// A sequence.
    Array(Rc<[Rc<Value>]>),
    /// An object.
    Object(Rc<BTreeMap<Rc<str>, Rc<Value>>>),
}

impl Kind {
    /// The kind in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// What is true of a value and all that is in it.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    has_unknown: bool,
    has_secret: bool,
    /// Values, and bytes of texts, that are written when it is: shared ones as often as they are.
    size: usize,
    /// How deep values lie in it.
    depth: usize,
    /// What it overrides, and what that does.
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
            totals: OnceCell::new(),
        }
    }

    /// A text.
    pub fn string(text: &str, from: &Rc<Range>) -> Self {
        Self::new(Kind::String(text.into()), from)
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
            totals: self.totals.clone(),
        }
    }

    /// Whether it is an object, or may be one.
    pub fn may_be_object(&self) -> bool {
        self.is_unknown || matches!(self.kind, Kind::Object(_))
    }

    /// The names of its properties.
    pub fn keys(&self) -> BTreeSet<Rc<str>> {
        let mut keys = BTreeSet::new();
        let mut next = Some(self);
        // A base that is no object is replaced as a whole, and so is what that overrides.
        while let Some(Self { kind: Kind::Object(own), base, .. }) = next {
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
                size: VALUE_SIZE,
                ..Totals::default()
            };
            let mut add = |name: usize, value: &Self| {
                let of = value.totals();
                totals.has_unknown |= of.has_unknown;
                totals.has_secret |= of.has_secret;
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
                Kind::String(text) | Kind::Number(text) => totals.size += text.len(),
                Kind::Null | Kind::Bool(_) => {}
            }
            // Each is told where the value is.
            totals.bases = self.base.as_ref().map_or(0, |base| base.totals().bases + 1);
            totals.size = totals.size.saturating_add(totals.bases * VALUE_SIZE);
            totals
        })
    }

    /// It as a text, as an interpolation has it; `None` where that is too long.
    pub fn text(&self) -> Option<String> {
        let quoted = |value: &Self| value.text().map(|text| json_string(&text));
        let text = match &self.kind {
            Kind::Null => String::new(),
            Kind::Bool(value) => value.to_string(),
            Kind::Number(text) | Kind::String(text) => text.to_string(),
            Kind::Array(items) => {
                items.iter().map(|item| quoted(item)).collect::<Option<Vec<_>>>()?.join(",")
            }
            Kind::Object(_) => {
                let keys = self.keys();
                let member = |key: &Rc<str>| {
                    Some(format!("{}={}", json_string(key), quoted(self.property(key)?.as_ref())?))
                };
                keys.iter().map(member).collect::<Option<Vec<_>>>()?.join(",")
            }
        };
        // Each level quotes the quotes of the one within it.
        (text.len() <= VALUE_BYTES_MAX).then_some(text)
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
                out.push_str(&json_string(&key));
                out.push(':');
                match self.property(&key) {
                    Some(value) => value.write_json(out),
                    None => out.push_str("null"),
                }
            }),
        }
    }

    /// It as plain YAML text, a line for each value.
    pub fn yaml(&self) -> String {
        let mut out = String::new();
        self.write_yaml(&mut out, 0, true);
        out.trim_start_matches(' ').to_owned() + "\n"
    }

    /// Behind a key or a dash: a scalar and an empty collection on the same line, and behind a dash the first of any other.
    fn write_yaml(&self, out: &mut String, indent: usize, is_behind_dash: bool) {
        let line = |out: &mut String, index: usize| {
            if index == 0 && is_behind_dash {
                out.push(' ');
            } else {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
            }
        };
        match &self.kind {
            Kind::String(text) => {
                out.push(' ');
                out.push_str(&quoted(text));
            }
            Kind::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    line(out, index);
                    out.push('-');
                    item.write_yaml(out, indent + 2, true);
                }
            }
            Kind::Object(_) if !self.keys().is_empty() => {
                for (index, key) in self.keys().iter().enumerate() {
                    line(out, index);
                    out.push_str(&quoted(key));
                    out.push(':');
                    if let Some(value) = self.property(key) {
                        value.write_yaml(out, indent + 2, false);
                    }
                }
            }
            _ => {
                out.push(' ');
                self.write_json(out);
            }
        }
    }

    /// It as the client reads it (`esc.Value`, pulumi v3.274.1): `{"value":…,"secret"?,"unknown"?,"trace":{"def":…,"base"?}}`.
    /// A base is told by where it comes from alone, since what it was is in nobody's view any more.
    pub fn export(&self, out: &mut String) {
        out.push_str("{\"value\":");
        match &self.kind {
            Kind::Array(items) => list(out, '[', items.iter(), ']', |out, item| item.export(out)),
            Kind::Object(_) => self.export_properties(out),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => {
                if self.is_unknown {
                    out.push_str("null")
                } else {
                    self.write_json(out)
                }
            }
        }
        if self.is_secret {
            out.push_str(",\"secret\":true");
        }
        if self.is_unknown {
            out.push_str(",\"unknown\":true");
        }
        out.push_str(",\"trace\":");
        self.export_trace(out);
        out.push('}');
    }

    /// The properties of an object as the client reads them.
    pub fn export_properties(&self, out: &mut String) {
        list(out, '{', self.keys(), '}', |out, key| {
            out.push_str(&json_string(&key));
            out.push(':');
            match self.property(&key) {
                Some(value) => value.export(out),
                None => out.push_str("null"),
            }
        });
    }

    fn export_trace(&self, out: &mut String) {
        let mut depth = 0;
        let mut next = Some(self);
        while let Some(value) = next {
            if depth > 0 {
                out.push_str(",\"base\":{\"value\":null,\"trace\":");
            }
            let range = serde_json::to_string(value.from.as_ref()).unwrap_or_default();
            let _ = write!(out, "{{\"def\":{range}");
            depth += 1;
            next = value.base.as_deref();
        }
        out.push('}');
        for _ in 1..depth {
            out.push_str("}}");
        }
    }
}

/// A text in quotes, as JSON has it.
pub(super) fn json_string(text: &str) -> String {
    Json::from(text).to_string()
}

/// A list, whatever is in it.
pub(super) fn list<T>(
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
            Some(b'"') => Kind::String(serde_json::from_str::<String>(text).map_err(failed)?.into()),
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
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
    read(raw, is_secret, from, 0)
}

/// This value over that one, as JSON Merge Patch has it; `steps` counts down, and nothing is merged any more when it is zero.
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
    *steps = left;
    let base = match &value.base {
        Some(own) => merge(own, Some(base), steps),
        None => Rc::clone(base),
    };
    let kind = match &value.kind {
        Kind::Object(own) => {
            let merged = own.iter().map(|(key, value)| {
                let below = base.property(key);
                (Rc::clone(key), merge(value, below.as_ref(), steps))
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
        base: Some(base),
        totals: OnceCell::new(),
    })
}
