//! Validates a schema and selects the parts to compile.

use std::collections::{BTreeMap, BTreeSet};

use regex_lite::RegexBuilder;
use serde_json::{Map, Value};

use super::InvalidSchema;
use super::message::shortened;
use super::reference::{self, target};

/// The longest schema, in bytes of its JSON text.
pub const SCHEMA_BYTES_MAX: usize = 32 << 10;

/// The deepest nesting of schemas.
const DEPTH_MAX: usize = 32;

/// The deepest nesting of a schema including the values in it. The reader of stored schemas stops at 128.
const VALUE_DEPTH_MAX: usize = 100;

/// Schemas after replacing each `$ref` with its target, at most.
const UNFOLDED_MAX: usize = 100_000;

/// The longest pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 256;

/// The largest compiled pattern, in bytes.
const PATTERN_SIZE_MAX: usize = 8 << 10;

/// Patterns of a schema, at most. Each may hold 2 MB while it matches.
const PATTERNS_MAX: usize = 16;

/// The longest pointer to a schema, in bytes.
const PLACE_BYTES_MAX: usize = 1024;

/// Factors must be multiples of 1/1024. Only for such binary fractions, the library recognizes multiples
/// exactly.
const FRACTIONS: f64 = 1024.0;

/// A validated schema.
pub(super) struct Read {
    pub(super) json: Value,
    /// The names in `properties`.
    pub(super) names: BTreeSet<String>,
    /// Whether the library may get indexes of elements wrong: it does not count those before `items`.
    pub(super) miscounts: bool,
}

/// The argument of a keyword.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// An annotation, or a keyword that changes how a schema is found.
    Ignored,
    Schema,
    Schemas,
    NamedSchemas,
    Types,
    List,
    Anything,
    Number,
    Factor,
    Whole,
    Flag,
    Pattern,
    Names,
    NamedNames,
    Reference,
}

const KEYWORDS: [(&str, Takes); 51] = [
    ("$comment", Takes::Ignored),
    ("$defs", Takes::NamedSchemas),
    ("$id", Takes::Ignored),
    ("$ref", Takes::Reference),
    ("$schema", Takes::Ignored),
    ("additionalProperties", Takes::Schema),
    ("allOf", Takes::Schemas),
    ("anyOf", Takes::Schemas),
    ("const", Takes::Anything),
    ("contains", Takes::Schema),
    ("contentEncoding", Takes::Ignored),
    ("contentMediaType", Takes::Ignored),
    ("default", Takes::Ignored),
    ("definitions", Takes::NamedSchemas),
    ("dependentRequired", Takes::NamedNames),
    ("dependentSchemas", Takes::NamedSchemas),
    ("deprecated", Takes::Ignored),
    ("description", Takes::Ignored),
    ("else", Takes::Schema),
    ("enum", Takes::List),
    ("examples", Takes::Ignored),
    ("exclusiveMaximum", Takes::Number),
    ("exclusiveMinimum", Takes::Number),
    ("format", Takes::Ignored),
    ("if", Takes::Schema),
    ("items", Takes::Schema),
    ("maxContains", Takes::Whole),
    ("maxItems", Takes::Whole),
    ("maxLength", Takes::Whole),
    ("maxProperties", Takes::Whole),
    ("maximum", Takes::Number),
    ("minContains", Takes::Whole),
    ("minItems", Takes::Whole),
    ("minLength", Takes::Whole),
    ("minProperties", Takes::Whole),
    ("minimum", Takes::Number),
    ("multipleOf", Takes::Factor),
    ("not", Takes::Schema),
    ("oneOf", Takes::Schemas),
    ("pattern", Takes::Pattern),
    ("patternProperties", Takes::NamedSchemas),
    ("prefixItems", Takes::Schemas),
    ("properties", Takes::NamedSchemas),
    ("propertyNames", Takes::Schema),
    ("readOnly", Takes::Ignored),
    ("required", Takes::Names),
    ("then", Takes::Schema),
    ("title", Takes::Ignored),
    ("type", Takes::Types),
    ("uniqueItems", Takes::Flag),
    ("writeOnly", Takes::Ignored),
];

const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

type Result<T> = std::result::Result<T, InvalidSchema>;

pub(super) fn read(schema: &Value) -> Result<Read> {
    let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
    if bytes > SCHEMA_BYTES_MAX {
        return Err(invalid(
            "#",
            format!("it has {bytes} bytes, and at most {SCHEMA_BYTES_MAX} are allowed"),
        ));
    }
    if !is_shallow(schema, VALUE_DEPTH_MAX) {
        return Err(invalid("#", format!("it is nested deeper than {VALUE_DEPTH_MAX}")));
    }
    let mut reader = Reader::default();
    let json = reader.schema(schema, "#", 0)?;
    for (at, target) in &reader.references {
        if !reader.places.contains(target) {
            let what = format!(
                "$ref points to {target:?}, where there is no schema: a schema can refer only to parts of its own"
            );
            return Err(invalid(at, what));
        }
    }
    let mut unfold = Unfold { root: &json, known: BTreeMap::new(), open: vec!["#"] };
    if unfold.schema(&json) > UNFOLDED_MAX {
        return Err(invalid("#", format!("its references expand to more than {UNFOLDED_MAX} schemas")));
    }
    Ok(Read { json, names: reader.names, miscounts: reader.miscounts })
}

fn invalid(at: &str, what: impl Into<String>) -> InvalidSchema {
    InvalidSchema { at: shortened(at), what: what.into() }
}

fn is_shallow(value: &Value, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_shallow(item, below)),
        Value::Object(members) => members.values().all(|member| is_shallow(member, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[derive(Default)]
struct Reader {
    names: BTreeSet<String>,
    miscounts: bool,
    patterns: usize,
    /// The places of schemas, as JSON pointers.
    places: BTreeSet<String>,
    /// The places of references, with their targets.
    references: Vec<(String, String)>,
}

impl Reader {
    /// A copy of the schema at this place, without ignored keywords.
    fn schema(&mut self, schema: &Value, at: &str, depth: usize) -> Result<Value> {
        if depth > DEPTH_MAX {
            return Err(invalid(at, format!("schemas are nested deeper than {DEPTH_MAX}")));
        }
        if at.len() > PLACE_BYTES_MAX {
            return Err(invalid(at, "the path to this schema is too long"));
        }
        self.places.insert(at.to_owned());
        let members = match schema {
            Value::Bool(_) => return Ok(schema.clone()),
            Value::Object(members) => members,
            _ => return Err(invalid(at, "a schema must be an object, true or false")),
        };
        let mut read = Map::new();
        for (name, value) in members {
            let place = format!("{at}/{}", escaped(name));
            let Some((_, takes)) = KEYWORDS.iter().find(|(known, _)| known == name) else {
                return Err(invalid(&place, "this keyword is not known"));
            };
            if *takes == Takes::Ignored {
                continue;
            }
            if name == "properties" {
                self.names.extend(value.as_object().into_iter().flat_map(Map::keys).cloned());
            }
            if name == "patternProperties" {
                for pattern in value.as_object().into_iter().flat_map(Map::keys) {
                    self.pattern(pattern, &place)?;
                }
            }
            read.insert(name.clone(), self.keyword(*takes, value, &place, depth)?);
        }
        self.count_elements(&mut read);
        Ok(Value::Object(read))
    }

    /// Compiles `items: false` after `prefixItems` as `maxItems`, because the library counts elements wrong
    /// there.
    fn count_elements(&mut self, schema: &mut Map<String, Value>) {
        let Some(first) = schema.get("prefixItems").and_then(Value::as_array).map(Vec::len) else { return };
        match schema.get("items") {
            Some(Value::Bool(false)) => {
                let most = schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
                schema.insert("maxItems".to_owned(), most.min(first as u64).into());
                schema.remove("items");
            }
            Some(Value::Object(_)) => self.miscounts = true,
            _ => {}
        }
    }

    fn keyword(&mut self, takes: Takes, value: &Value, at: &str, depth: usize) -> Result<Value> {
        let needed = match takes {
            Takes::Schema => return self.schema(value, at, depth + 1),
            Takes::Schemas => {
                let schemas = value.as_array().ok_or_else(|| invalid(at, "this must be a list"))?;
                if schemas.is_empty() {
                    return Err(invalid(at, "this must be a list of one schema at least"));
                }
                let schemas = schemas.iter().enumerate();
                return schemas
                    .map(|(index, it)| self.schema(it, &format!("{at}/{index}"), depth + 1))
                    .collect();
            }
            Takes::NamedSchemas => {
                let schemas = value.as_object().ok_or_else(|| invalid(at, "this must be an object"))?;
                let read = schemas.iter().map(|(name, it)| {
                    Ok((name.clone(), self.schema(it, &format!("{at}/{}", escaped(name)), depth + 1)?))
                });
                return read.collect::<Result<Map<_, _>>>().map(Value::Object);
            }
            Takes::Pattern => {
                let pattern = value.as_str().ok_or_else(|| invalid(at, "this must be a string"))?;
                self.pattern(pattern, at)?;
                return Ok(value.clone());
            }
            Takes::Reference => {
                let target = value.as_str().ok_or_else(|| invalid(at, "this must be a string"))?;
                self.references.push((at.to_owned(), target.to_owned()));
                return Ok(reference::url(target).into());
            }
            Takes::Types if !is_type(value) && !is_list(value, is_type) => {
                "a type must be null, boolean, number, integer, string, array or object, or a list of these"
            }
            Takes::List if !value.is_array() => "this must be a list",
            Takes::Number if !value.as_f64().is_some_and(f64::is_finite) => "this must be a number",
            Takes::Factor => match value.as_f64() {
                Some(number) if number > 0.0 && (number * FRACTIONS).fract() == 0.0 => {
                    return Ok(value.clone());
                }
                Some(number) if number > 0.0 => {
                    "this must be a whole number or a binary fraction such as 0.25, because multiples of others are inexact"
                }
                _ => "this must be a number above 0",
            },
            Takes::Whole if !value.is_u64() => "this must be a whole number from 0",
            Takes::Flag if !value.is_boolean() => "this must be true or false",
            Takes::Names if !value.is_array() => "this must be a list",
            Takes::Names if !is_names(value) => "this must be a list, and each item a string",
            Takes::NamedNames if !value.as_object().is_some_and(|all| all.values().all(is_names)) => {
                "this must be an object of lists of strings"
            }
            _ => return Ok(value.clone()),
        };
        Err(invalid(at, needed))
    }

    fn pattern(&mut self, pattern: &str, at: &str) -> Result<()> {
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(invalid(at, format!("a schema has at most {PATTERNS_MAX} patterns")));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(invalid(at, format!("a pattern has at most {PATTERN_BYTES_MAX} bytes")));
        }
        let built = RegexBuilder::new(pattern).size_limit(PATTERN_SIZE_MAX).build();
        built.map(drop).map_err(|error| invalid(at, format!("this is not a pattern: {error}")))
    }
}

fn is_type(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_list(value: &Value, is_item: fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is_item))
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The schemas directly within a schema.
fn within(members: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    members.iter().flat_map(|(name, value)| {
        let takes = KEYWORDS.iter().find(|(known, _)| known == name).map(|(_, takes)| *takes);
        match (takes, value) {
            (Some(Takes::Schema), schema) => vec![schema],
            (Some(Takes::Schemas), Value::Array(schemas)) => schemas.iter().collect(),
            // They count where a reference points to them.
            _ if name == "$defs" || name == "definitions" => Vec::new(),
            (Some(Takes::NamedSchemas), Value::Object(schemas)) => schemas.values().collect(),
            _ => Vec::new(),
        }
    })
}

/// Counts the schemas after replacing each reference with its target. A reference back to a schema around it
/// counts as one, because the value decides how often it is followed.
struct Unfold<'a> {
    root: &'a Value,
    known: BTreeMap<&'a str, usize>,
    /// The references that are being followed.
    open: Vec<&'a str>,
}

impl<'a> Unfold<'a> {
    fn schema(&mut self, schema: &'a Value) -> usize {
        let Value::Object(members) = schema else { return 1 };
        let mut count: usize = 1;
        for schema in within(members) {
            count = count.saturating_add(self.schema(schema));
        }
        if let Some(Value::String(reference)) = members.get("$ref") {
            count = count.saturating_add(self.reference(reference));
        }
        count
    }

    fn reference(&mut self, reference: &'a str) -> usize {
        if self.open.contains(&reference) {
            return 1;
        }
        if let Some(known) = self.known.get(reference) {
            return *known;
        }
        self.open.push(reference);
        let count = target(self.root, reference).map_or(1, |target| self.schema(target));
        self.open.pop();
        self.known.insert(reference, count);
        count
    }
}
