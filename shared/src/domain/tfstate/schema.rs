//! What an output may be: a JSON Schema of draft 2020-12, as much of it as can be checked in bounded time.
//!
//! A schema stands alone: `$ref` leads to a place of its own (`#/$defs/…`), and nothing is fetched. Patterns are matched
//! in time that grows with the text alone. A keyword that is not known is refused, since most are misspelt; `format`,
//! `title` and what else only tells people something is kept and not checked. What a finding says comes from the schema,
//! never from a value, and of a sensitive output not even the names of members that the schema does not name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use regex_lite::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::document::Output;

/// The longest schema, in bytes of its JSON text.
pub const SCHEMA_BYTES_MAX: usize = 32 << 10;

/// How deep schemas may lie in each other.
const DEPTH_MAX: usize = 32;

/// How deep a schema may be with the values in it: what is kept has to be read again by a reader that stops at 128.
const VALUE_DEPTH_MAX: usize = 100;

/// How deep a check may go: into the value, and through what refers to each other.
const CHECK_DEPTH_MAX: usize = 200;

/// The longest pointer to a schema, in bytes.
const PLACE_BYTES_MAX: usize = 1024;

/// The longest pattern, in bytes, and what it may become.
const PATTERN_BYTES_MAX: usize = 256;
const PATTERN_SIZE_MAX: usize = 8 << 10;

/// Steps that the outputs of one write may take together: a second at the very worst, for patterns on long texts.
const STEPS_MAX: usize = 500_000;

/// The longest message, and the longest path, in characters.
const MESSAGE_CHARS_MAX: usize = 200;

/// Why a text is no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema, at {at}: {what}")]
pub struct InvalidSchema {
    /// The place, as a JSON pointer from `#`.
    pub at: String,
    /// What is wrong there.
    pub what: String,
}

/// What became of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The value is as the schema says.
    Valid,
    /// It is not.
    Invalid {
        /// What the schema says there.
        message: String,
        /// Where in the value: `$.subnets[0].id`.
        path: String,
    },
    /// It could not be told.
    Error(String),
}

/// How an output stands to its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is as its schema says.
    Valid,
    /// It is not.
    Invalid,
    /// It could not be told: the schema cannot be read, or the check took too long.
    Error,
    /// It has no schema, or is too long to be looked at.
    NotValidated,
}

/// How an output stands to its schema, and why. It is advice: no write is refused for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validity {
    /// How.
    pub status: Standing,
    /// Why, in words of the schema: nothing of the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where in the value: `$.subnets[0].id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl Validity {
    fn because(status: Standing, message: impl Into<String>) -> Self {
        Self { status, message: Some(message.into()), path: None }
    }
}

impl From<Checked> for Validity {
    fn from(checked: Checked) -> Self {
        match checked {
            Checked::Valid => Self { status: Standing::Valid, message: None, path: None },
            Checked::Invalid { message, path } => {
                Self { path: Some(path), ..Self::because(Standing::Invalid, message) }
            }
            Checked::Error(why) => Self::because(Standing::Error, why),
        }
    }
}

/// The longest output that is checked, in bytes of its text.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// Says of each output how it stands to its schema. `texts` are those of the state.
pub fn judge_outputs(outputs: &mut [Output], texts: &[(String, &str)], schemas: &BTreeMap<String, &Value>) {
    let texts: BTreeMap<&str, &str> = texts.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    let mut steps = Steps::default();
    for output in outputs {
        let text = texts.get(output.name.as_str()).copied();
        output.validity = Some(match (schemas.get(&output.name), text) {
            (Some(schema), Some(text)) => judge_output(schema, text, output.sensitive, &mut steps),
            _ => Validity { status: Standing::NotValidated, message: None, path: None },
        });
    }
}

fn judge_output(schema: &Value, text: &str, is_sensitive: bool, steps: &mut Steps) -> Validity {
    if text.len() > OUTPUT_BYTES_MAX {
        let words =
            format!("it has {} bytes, and {OUTPUT_BYTES_MAX} are the most that is looked at", text.len());
        return Validity::because(Standing::NotValidated, words);
    }
    let schema = match Schema::read(schema) {
        Ok(schema) => schema,
        Err(error) => return Validity::because(Standing::Error, shortened(&error.to_string())),
    };
    match serde_json::from_str::<Value>(text) {
        Ok(output) => {
            let value = output.get("value").unwrap_or(&Value::Null);
            schema.check(value, is_sensitive, steps).into()
        }
        // What a parser says of a text may quote it.
        Err(_) => Validity::because(Standing::Error, "the output is nested too deep to be looked at"),
    }
}

/// The steps that are left for checks.
#[derive(Debug)]
pub struct Steps(usize);

impl Default for Steps {
    fn default() -> Self {
        Self(STEPS_MAX)
    }
}

impl Steps {
    fn take(&mut self, steps: usize) -> Result<(), Stop> {
        self.0 = self.0.checked_sub(steps).ok_or(Stop("it takes too many steps to check"))?;
        Ok(())
    }
}

/// Why a check ended before it was over.
struct Stop(&'static str);

/// A schema that can be checked.
#[derive(Debug, Clone)]
pub struct Schema(Vec<Node>);

/// A schema or a part of one: what it demands, in the order in which it is checked.
#[derive(Debug, Clone, Default)]
struct Node(Vec<Demand>);

/// The place of a node.
type At = usize;

#[derive(Debug, Clone)]
enum Demand {
    Never,
    Types(Vec<Type>),
    OneOfValues(Vec<Value>),
    MultipleOf(f64),
    Least { number: f64, itself: bool },
    Most { number: f64, itself: bool },
    Length { of: Countable, least: usize, most: usize },
    Pattern(String, Regex),
    Items { first: Vec<At>, rest: Option<At> },
    Contains { node: At, least: usize, most: usize },
    Unique,
    Members { named: BTreeMap<String, At>, like: Vec<(Regex, At)>, rest: Option<At> },
    Required(Vec<String>),
    Names(At),
    RequiredWith(BTreeMap<String, Vec<String>>),
    With(BTreeMap<String, At>),
    All(Vec<At>),
    Any(Vec<At>),
    One(Vec<At>),
    Not(At),
    If { test: At, then: Option<At>, otherwise: Option<At> },
    Reference(At),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Number,
    Integer,
    String,
    Array,
    Object,
}

const TYPES: [(&str, Type); 7] = [
    ("null", Type::Null),
    ("boolean", Type::Boolean),
    ("number", Type::Number),
    ("integer", Type::Integer),
    ("string", Type::String),
    ("array", Type::Array),
    ("object", Type::Object),
];

impl Type {
    fn is_of(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            (Self::Integer, Value::Number(number)) => as_f64(number).fract() == 0.0,
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        TYPES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Countable {
    Characters,
    Items,
    Members,
}

fn as_f64(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// Keywords that only tell people something, and those that another one reads.
const SILENT: [&str; 19] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "then",
    "else",
    "minContains",
    "maxContains",
    "contentMediaType",
    "contentEncoding",
];

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// [`InvalidSchema`].
    pub fn read(schema: &Value) -> Result<Self, InvalidSchema> {
        let mut reader = Reader::default();
        let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
        if bytes > SCHEMA_BYTES_MAX {
            let what = format!("it has {bytes} bytes, and {SCHEMA_BYTES_MAX} are the most");
            return Err(InvalidSchema { at: "#".to_owned(), what });
        }
        if !is_shallow(schema, VALUE_DEPTH_MAX) {
            let what = format!("it is nested deeper than {VALUE_DEPTH_MAX}");
            return Err(InvalidSchema { at: "#".to_owned(), what });
        }
        reader.node(schema, "#", 0)?;
        for (from, target) in std::mem::take(&mut reader.references) {
            let Some(at) = reader.places.get(&target).copied() else {
                let what = format!(
                    "$ref leads to {target:?}, where there is no schema: only those of its own are found"
                );
                return Err(invalid(&from.1, what));
            };
            if let Some(node) = reader.nodes.get_mut(from.0) {
                node.0.push(Demand::Reference(at));
            }
        }
        Ok(Self(reader.nodes))
    }

    /// Checks a value. Of a sensitive one nothing is told but what the schema says.
    pub fn check(&self, value: &Value, is_sensitive: bool, steps: &mut Steps) -> Checked {
        let mut check =
            Check { nodes: &self.0, steps, is_sensitive, path: Vec::new(), depth: 0, found: None };
        match check.node(0, value) {
            Err(Stop(why)) => Checked::Error(why.to_owned()),
            Ok(true) => Checked::Valid,
            Ok(false) => {
                let (message, path) = check.found.unwrap_or_default();
                Checked::Invalid { message, path }
            }
        }
    }
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

fn shortened(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}

#[derive(Default)]
struct Reader {
    nodes: Vec<Node>,
    /// Where each schema stands, as a JSON pointer, and which node it is.
    places: BTreeMap<String, At>,
    /// Nodes that refer to another, with where they stand, and the pointer.
    references: Vec<((At, String), String)>,
}

type Read<T> = Result<T, InvalidSchema>;

impl Reader {
    /// Reads the schema at this place.
    fn node(&mut self, schema: &Value, at: &str, depth: usize) -> Read<At> {
        if depth > DEPTH_MAX {
            return Err(invalid(at, format!("schemas lie in each other deeper than {DEPTH_MAX}")));
        }
        if at.len() > PLACE_BYTES_MAX {
            return Err(invalid(at, "the names on the way to this schema are too long"));
        }
        let index = self.nodes.len();
        self.nodes.push(Node::default());
        self.places.insert(at.to_owned(), index);
        let demands = match schema {
            Value::Bool(true) => Vec::new(),
            Value::Bool(false) => vec![Demand::Never],
            Value::Object(members) => self.demands(members, index, at, depth)?,
            _ => return Err(invalid(at, "a schema is an object, true or false")),
        };
        if let Some(node) = self.nodes.get_mut(index) {
            node.0 = demands;
        }
        Ok(index)
    }

    fn demands(
        &mut self,
        members: &Map<String, Value>,
        node: At,
        at: &str,
        depth: usize,
    ) -> Read<Vec<Demand>> {
        for name in ["$defs", "definitions"] {
            if let Some(value) = members.get(name) {
                self.map_of_nodes(value, &format!("{at}/{name}"), depth)?;
            }
        }
        let mut demands = Vec::new();
        let mut counted: Vec<(Countable, usize, usize)> = Vec::new();
        let mut count = |of: Countable, least: Option<usize>, most: Option<usize>| match counted
            .iter_mut()
            .find(|(it, ..)| *it == of)
        {
            Some((_, low, high)) => (*low, *high) = (least.unwrap_or(*low), most.unwrap_or(*high)),
            None => counted.push((of, least.unwrap_or(0), most.unwrap_or(usize::MAX))),
        };
        for (name, value) in members {
            let place = format!("{at}/{}", escaped(name));
            let place = place.as_str();
            match name.as_str() {
                "type" => demands.push(Demand::Types(types(value, place)?)),
                "enum" => demands.push(Demand::OneOfValues(list(value, place)?.clone())),
                "const" => demands.push(Demand::OneOfValues(vec![value.clone()])),
                "multipleOf" => {
                    let number = number(value, place)?;
                    if number <= 0.0 {
                        return Err(invalid(place, "this is a number above 0"));
                    }
                    demands.push(Demand::MultipleOf(number));
                }
                "minimum" => demands.push(Demand::Least { number: number(value, place)?, itself: true }),
                "exclusiveMinimum" => {
                    demands.push(Demand::Least { number: number(value, place)?, itself: false })
                }
                "maximum" => demands.push(Demand::Most { number: number(value, place)?, itself: true }),
                "exclusiveMaximum" => {
                    demands.push(Demand::Most { number: number(value, place)?, itself: false })
                }
                "minLength" => count(Countable::Characters, Some(whole(value, place)?), None),
                "maxLength" => count(Countable::Characters, None, Some(whole(value, place)?)),
                "minItems" => count(Countable::Items, Some(whole(value, place)?), None),
                "maxItems" => count(Countable::Items, None, Some(whole(value, place)?)),
                "minProperties" => count(Countable::Members, Some(whole(value, place)?), None),
                "maxProperties" => count(Countable::Members, None, Some(whole(value, place)?)),
                "pattern" => {
                    let pattern = text(value, place)?;
                    demands.push(Demand::Pattern(pattern.to_owned(), self.pattern(pattern, place)?));
                }
                "items" | "prefixItems" if demands.iter().any(|it| matches!(it, Demand::Items { .. })) => {}
                "items" | "prefixItems" => demands.push(self.items(members, at, depth)?),
                "contains" => {
                    let bound = |name: &str, otherwise: usize| {
                        members.get(name).map_or(Ok(otherwise), |value| whole(value, &format!("{at}/{name}")))
                    };
                    let (least, most) = (bound("minContains", 1)?, bound("maxContains", usize::MAX)?);
                    demands.push(Demand::Contains { node: self.node(value, place, depth + 1)?, least, most });
                }
                "uniqueItems" => match value {
                    Value::Bool(true) => demands.push(Demand::Unique),
                    Value::Bool(false) => {}
                    _ => return Err(invalid(place, "this is true or false")),
                },
                "properties" | "patternProperties" | "additionalProperties"
                    if demands.iter().any(|it| matches!(it, Demand::Members { .. })) => {}
                "properties" | "patternProperties" | "additionalProperties" => {
                    demands.push(self.members(members, at, depth)?);
                }
                "required" => demands.push(Demand::Required(texts(value, place)?)),
                "propertyNames" => demands.push(Demand::Names(self.node(value, place, depth + 1)?)),
                "dependentRequired" => {
                    let each = object(value, place)?.iter();
                    let each = each.map(|(name, value)| Ok((name.clone(), texts(value, place)?)));
                    demands.push(Demand::RequiredWith(each.collect::<Read<_>>()?));
                }
                "dependentSchemas" => demands.push(Demand::With(self.map_of_nodes(value, place, depth)?)),
                "allOf" => demands.push(Demand::All(self.list_of_nodes(value, place, depth)?)),
                "anyOf" => demands.push(Demand::Any(self.list_of_nodes(value, place, depth)?)),
                "oneOf" => demands.push(Demand::One(self.list_of_nodes(value, place, depth)?)),
                "not" => demands.push(Demand::Not(self.node(value, place, depth + 1)?)),
                "if" => {
                    let test = self.node(value, place, depth + 1)?;
                    let mut branch = |name: &str| {
                        let branch = members.get(name);
                        branch.map(|value| self.node(value, &format!("{at}/{name}"), depth + 1)).transpose()
                    };
                    demands.push(Demand::If { test, then: branch("then")?, otherwise: branch("else")? });
                }
                "$ref" => {
                    let target = text(value, place)?.to_owned();
                    self.references.push(((node, place.to_owned()), target));
                }
                name if SILENT.contains(&name) => {}
                _ => {
                    let what = "this keyword is not known here; see the README for those that are";
                    return Err(invalid(place, what));
                }
            }
        }
        demands.extend(counted.into_iter().map(|(of, least, most)| Demand::Length { of, least, most }));
        Ok(demands)
    }

    fn items(&mut self, members: &Map<String, Value>, at: &str, depth: usize) -> Read<Demand> {
        let first = match members.get("prefixItems") {
            Some(value) => self.list_of_nodes(value, &format!("{at}/prefixItems"), depth)?,
            None => Vec::new(),
        };
        let rest = members.get("items");
        let rest = rest.map(|value| self.node(value, &format!("{at}/items"), depth + 1)).transpose()?;
        Ok(Demand::Items { first, rest })
    }

    fn members(&mut self, members: &Map<String, Value>, at: &str, depth: usize) -> Read<Demand> {
        let named = match members.get("properties") {
            Some(value) => self.map_of_nodes(value, &format!("{at}/properties"), depth)?,
            None => BTreeMap::new(),
        };
        let mut like = Vec::new();
        if let Some(value) = members.get("patternProperties") {
            let place = format!("{at}/patternProperties");
            for (pattern, node) in self.map_of_nodes(value, &place, depth)? {
                like.push((self.pattern(&pattern, &place)?, node));
            }
        }
        let rest = members.get("additionalProperties");
        let rest = rest
            .map(|value| self.node(value, &format!("{at}/additionalProperties"), depth + 1))
            .transpose()?;
        Ok(Demand::Members { named, like, rest })
    }

    fn map_of_nodes(&mut self, value: &Value, at: &str, depth: usize) -> Read<BTreeMap<String, At>> {
        let members = object(value, at)?.iter();
        let read = members.map(|(name, schema)| {
            Ok((name.clone(), self.node(schema, &format!("{at}/{}", escaped(name)), depth + 1)?))
        });
        read.collect()
    }

    fn list_of_nodes(&mut self, value: &Value, at: &str, depth: usize) -> Read<Vec<At>> {
        let list = list(value, at)?;
        if list.is_empty() {
            return Err(invalid(at, "this is a list of one schema at least"));
        }
        list.iter()
            .enumerate()
            .map(|(index, it)| self.node(it, &format!("{at}/{index}"), depth + 1))
            .collect()
    }

    fn pattern(&self, pattern: &str, at: &str) -> Read<Regex> {
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(invalid(at, format!("a pattern has at most {PATTERN_BYTES_MAX} bytes")));
        }
        let built = RegexBuilder::new(pattern).size_limit(PATTERN_SIZE_MAX).build();
        built.map_err(|error| invalid(at, format!("this is no pattern: {error}")))
    }
}

/// A name as it stands in a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn types(value: &Value, at: &str) -> Read<Vec<Type>> {
    let one = |value: &Value| {
        let found = value.as_str().and_then(|name| TYPES.iter().find(|(known, _)| *known == name));
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            invalid(
                at,
                "a type is null, boolean, number, integer, string, array or object, or a list of these",
            )
        })
    };
    match value {
        Value::Array(list) if !list.is_empty() => list.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

fn number(value: &Value, at: &str) -> Read<f64> {
    value.as_f64().filter(|number| number.is_finite()).ok_or_else(|| invalid(at, "this is a number"))
}

fn whole(value: &Value, at: &str) -> Read<usize> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| invalid(at, "this is a whole number from 0"))
}

fn text<'v>(value: &'v Value, at: &str) -> Read<&'v str> {
    value.as_str().ok_or_else(|| invalid(at, "this is a string"))
}

fn list<'v>(value: &'v Value, at: &str) -> Read<&'v Vec<Value>> {
    value.as_array().ok_or_else(|| invalid(at, "this is a list"))
}

fn object<'v>(value: &'v Value, at: &str) -> Read<&'v Map<String, Value>> {
    value.as_object().ok_or_else(|| invalid(at, "this is an object"))
}

fn texts(value: &Value, at: &str) -> Read<Vec<String>> {
    list(value, at)?.iter().map(|value| text(value, at).map(str::to_owned)).collect()
}

/// A step on the way into a value.
enum Step<'v> {
    Item(usize),
    Member { name: &'v str, is_of_schema: bool },
}

struct Check<'s, 'v> {
    nodes: &'s [Node],
    steps: &'s mut Steps,
    is_sensitive: bool,
    path: Vec<Step<'v>>,
    depth: usize,
    /// The first thing that is wrong.
    found: Option<(String, String)>,
}

impl<'s, 'v> Check<'s, 'v> {
    fn node(&mut self, at: At, value: &'v Value) -> Result<bool, Stop> {
        if self.depth == CHECK_DEPTH_MAX {
            return Err(Stop("it is nested too deep to check, or refers to itself without end"));
        }
        self.depth += 1;
        let nodes = self.nodes;
        let mut is_so = true;
        for demand in nodes.get(at).map_or(&[][..], |node| &node.0) {
            self.steps.take(1)?;
            is_so = self.demand(demand, value)?;
            if !is_so {
                break;
            }
        }
        self.depth -= 1;
        Ok(is_so)
    }

    /// The same, where a failure is no finding.
    fn quietly(&mut self, at: At, value: &'v Value) -> Result<bool, Stop> {
        let before = self.found.take();
        let is_so = self.node(at, value);
        self.found = before;
        is_so
    }

    fn within(&mut self, step: Step<'v>, at: At, value: &'v Value) -> Result<bool, Stop> {
        self.path.push(step);
        let is_so = self.node(at, value);
        self.path.pop();
        is_so
    }

    /// Notes what is wrong here, unless something deeper was noted.
    fn holds(&mut self, is_so: bool, message: impl FnOnce() -> String) -> bool {
        if !is_so && self.found.is_none() {
            self.found = Some((shortened(&message()), self.here()));
        }
        is_so
    }

    fn here(&self) -> String {
        let mut path = "$".to_owned();
        for step in &self.path {
            // Writing to a text does not fail.
            let _ = match step {
                Step::Item(index) => write!(path, "[{index}]"),
                Step::Member { is_of_schema: false, .. } if self.is_sensitive => write!(path, ".*"),
                Step::Member { name, .. } if is_plain(name) => write!(path, ".{name}"),
                Step::Member { name, .. } => write!(path, "[{}]", Value::from(*name)),
            };
        }
        shortened(&path)
    }

    fn demand(&mut self, demand: &'s Demand, value: &'v Value) -> Result<bool, Stop> {
        Ok(match (demand, value) {
            (Demand::Never, _) => self.holds(false, || "nothing may be here".to_owned()),
            (Demand::Types(types), value) => {
                let is_so = types.iter().any(|kind| kind.is_of(value));
                let names = || types.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" or ");
                self.holds(is_so, || format!("it is not of type {}", names()))
            }
            (Demand::OneOfValues(values), value) => {
                let mut is_so = false;
                for one in values {
                    is_so = is_so || equal(one, value, self.steps)?;
                }
                self.holds(is_so, || format!("it is none of {}", listed(values)))
            }
            (Demand::MultipleOf(of), Value::Number(number)) => {
                let times = as_f64(number) / of;
                let is_so = (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0);
                self.holds(is_so, || format!("it is no multiple of {of}"))
            }
            (Demand::Least { number: least, itself }, Value::Number(number)) => {
                let number = as_f64(number);
                let words = if *itself { "below" } else { "not above" };
                self.holds(number > *least || (*itself && number >= *least), || {
                    format!("it is {words} {least}")
                })
            }
            (Demand::Most { number: most, itself }, Value::Number(number)) => {
                let number = as_f64(number);
                let words = if *itself { "above" } else { "not below" };
                self.holds(number < *most || (*itself && number <= *most), || format!("it is {words} {most}"))
            }
            (Demand::Length { of: Countable::Characters, least, most }, Value::String(text)) => {
                self.steps.take(text.len() / 64)?;
                self.counts("characters", text.chars().count(), *least, *most)
            }
            (Demand::Length { of: Countable::Items, least, most }, Value::Array(items)) => {
                self.counts("items", items.len(), *least, *most)
            }
            (Demand::Length { of: Countable::Members, least, most }, Value::Object(members)) => {
                self.counts("members", members.len(), *least, *most)
            }
            (Demand::Pattern(pattern, regex), Value::String(text)) => {
                self.steps.take(text.len())?;
                self.holds(regex.is_match(text), || format!("it does not match {pattern:?}"))
            }
            (Demand::Items { first, rest }, Value::Array(items)) => {
                let nodes = first.iter().copied().map(Some).chain(std::iter::repeat(*rest));
                for ((index, item), node) in items.iter().enumerate().zip(nodes) {
                    let Some(node) = node else { break };
                    if !self.within(Step::Item(index), node, item)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Demand::Contains { node, least, most }, Value::Array(items)) => {
                let mut count = 0;
                for item in items {
                    count += usize::from(self.quietly(*node, item)?);
                }
                let is_so = (*least..=*most).contains(&count);
                self.holds(is_so, || "not as many items as `contains` asks for are so".to_owned())
            }
            (Demand::Unique, Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    for other in items.iter().take(index) {
                        if equal(item, other, self.steps)? {
                            return Ok(self.holds(false, || "two of its items are equal".to_owned()));
                        }
                    }
                }
                true
            }
            (Demand::Members { named, like, rest }, Value::Object(members)) => {
                return self.members(named, like, *rest, members);
            }
            (Demand::Required(names), Value::Object(members)) => self.has(names, members),
            (Demand::Names(node), Value::Object(members)) => return self.names(*node, members),
            (Demand::RequiredWith(names), Value::Object(members)) => {
                let mut asked = names.iter().filter(|(name, _)| members.contains_key(*name));
                asked.all(|(_, required)| self.has(required, members))
            }
            (Demand::With(nodes), Value::Object(members)) => {
                for (_, node) in nodes.iter().filter(|(name, _)| members.contains_key(*name)) {
                    if !self.node(*node, value)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Demand::All(nodes), value) => {
                for node in nodes {
                    if !self.node(*node, value)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Demand::Any(nodes), value) => {
                let is_so = self.count(nodes, value, 1)? > 0;
                self.holds(is_so, || "it is as none of `anyOf` says".to_owned())
            }
            (Demand::One(nodes), value) => {
                let count = self.count(nodes, value, 2)?;
                self.holds(count == 1, || match count {
                    0 => "it is as none of `oneOf` says".to_owned(),
                    _ => "it is as several of `oneOf` say".to_owned(),
                })
            }
            (Demand::Not(node), value) => {
                let is_so = !self.quietly(*node, value)?;
                self.holds(is_so, || "it is as `not` says".to_owned())
            }
            (Demand::If { test, then, otherwise }, value) => {
                let branch = if self.quietly(*test, value)? { then } else { otherwise };
                match branch {
                    Some(node) => self.node(*node, value)?,
                    None => true,
                }
            }
            (Demand::Reference(node), value) => self.node(*node, value)?,
            // What speaks of another type says nothing of this one.
            _ => true,
        })
    }

    /// How many of these it is as, up to so many.
    fn count(&mut self, nodes: &[At], value: &'v Value, most: usize) -> Result<usize, Stop> {
        let mut count = 0;
        for node in nodes {
            count += usize::from(self.quietly(*node, value)?);
            if count == most {
                break;
            }
        }
        Ok(count)
    }

    fn counts(&mut self, what: &str, count: usize, least: usize, most: usize) -> bool {
        self.holds(count >= least, || format!("it has fewer than {least} {what}"))
            && self.holds(count <= most, || format!("it has more than {most} {what}"))
    }

    fn has(&mut self, names: &[String], members: &Map<String, Value>) -> bool {
        match names.iter().find(|name| !members.contains_key(*name)) {
            Some(name) => self.holds(false, || format!("the member {name:?} is missing")),
            None => true,
        }
    }

    fn members(
        &mut self,
        named: &BTreeMap<String, At>,
        like: &[(Regex, At)],
        rest: Option<At>,
        members: &'v Map<String, Value>,
    ) -> Result<bool, Stop> {
        for (name, value) in members {
            self.steps.take(1)?;
            let own = named.get(name).copied();
            let mut is_known = own.is_some();
            if let Some(node) = own
                && !self.within(Step::Member { name, is_of_schema: true }, node, value)?
            {
                return Ok(false);
            }
            for (pattern, node) in like {
                self.steps.take(name.len())?;
                if pattern.is_match(name) {
                    is_known = true;
                    if !self.within(Step::Member { name, is_of_schema: false }, *node, value)? {
                        return Ok(false);
                    }
                }
            }
            if let Some(node) = rest.filter(|_| !is_known)
                && !self.within(Step::Member { name, is_of_schema: false }, node, value)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn names(&mut self, node: At, members: &'v Map<String, Value>) -> Result<bool, Stop> {
        for name in members.keys() {
            // A finding about a name speaks of the object.
            let value = Value::from(name.as_str());
            let mut check = Check {
                nodes: self.nodes,
                steps: &mut *self.steps,
                is_sensitive: self.is_sensitive,
                path: Vec::new(),
                depth: self.depth,
                found: None,
            };
            if !check.node(node, &value)? {
                return Ok(
                    self.holds(false, || "the name of a member is not as `propertyNames` says".to_owned())
                );
            }
        }
        Ok(true)
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Values of a schema, as many as a message holds.
fn listed(values: &[Value]) -> String {
    const LISTED_MAX: usize = 10;
    let shown: Vec<_> = values.iter().take(LISTED_MAX).map(Value::to_string).collect();
    let more = if values.len() > LISTED_MAX { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Whether two values are the same, numbers by what they are.
fn equal(one: &Value, other: &Value, steps: &mut Steps) -> Result<bool, Stop> {
    steps.take(1)?;
    Ok(match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || as_f64(one) == as_f64(other),
        (Value::String(one), Value::String(other)) => {
            steps.take(one.len().min(other.len()) / 64)?;
            one == other
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (one, other) in one.iter().zip(other) {
                if !equal(one, other, steps)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => {
            for (name, one) in one {
                let Some(other) = other.get(name) else { return Ok(false) };
                if !equal(one, other, steps)? {
                    return Ok(false);
                }
            }
            true
        }
        (one, other) => one == other,
    })
}

/// A schema that an output fits now, from the type that its configuration gives it and, where that leaves it open, from its
/// value. Null is let in where there is null now. Of a sensitive output it tells no more than the kind.
///
/// `None` for an output that is too long to be looked at, and for what would be a schema that is.
pub fn infer(text: &str) -> Option<Value> {
    let output = serde_json::from_str(text).ok().filter(|_| text.len() <= OUTPUT_BYTES_MAX)?;
    infer_of(&output)
}

fn infer_of(output: &Value) -> Option<Value> {
    let value = output.get("value").unwrap_or(&Value::Null);
    let is_sensitive = output.get("sensitive") == Some(&Value::Bool(true));
    let schema = match is_sensitive {
        true => outline(value),
        false => of_type(output.get("type").unwrap_or(&Value::Null), &[value], 0),
    };
    Schema::read(&schema).is_ok().then_some(schema)
}

fn outline(value: &Value) -> Value {
    match value {
        Value::Null => Value::Object(Map::new()),
        value => typed(name_of(value), false),
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn typed(name: &str, or_null: bool) -> Value {
    let kind = if or_null { Value::from(vec![name, "null"]) } else { Value::from(name) };
    Value::Object(Map::from_iter([("type".to_owned(), kind)]))
}

/// What lies below this is not looked at.
const INFERRED_DEPTH_MAX: usize = 12;

/// Values that are looked at in a list or a map.
const SAMPLES_MAX: usize = 100;

/// The schema of a type as it stands in a state (`"string"`, `["list","string"]`, `["object",{…}]`), with values of it.
fn of_type(kind: &Value, samples: &[&Value], depth: usize) -> Value {
    let anything = || Value::Object(Map::new());
    if depth > INFERRED_DEPTH_MAX {
        return anything();
    }
    let or_null = samples.iter().any(|value| value.is_null());
    let arguments = kind.as_array().map_or(&[][..], Vec::as_slice);
    let name = kind.as_str().or_else(|| arguments.first().and_then(Value::as_str)).unwrap_or_default();
    let inner = arguments.get(1).unwrap_or(&Value::Null);
    let with = |name: &str, members: Vec<(&str, Value)>| {
        let mut schema = typed(name, or_null);
        if let Value::Object(schema) = &mut schema {
            schema.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        schema
    };
    let items = || {
        let items = samples.iter().filter_map(|value| value.as_array()).flatten();
        items.take(SAMPLES_MAX).collect::<Vec<_>>()
    };
    match name {
        "string" | "number" => typed(name, or_null),
        "bool" => typed("boolean", or_null),
        "list" | "set" => with("array", vec![("items", of_type(inner, &items(), depth + 1))]),
        "map" => {
            let members = samples.iter().filter_map(|value| value.as_object()).flat_map(Map::values);
            let members: Vec<&Value> = members.take(SAMPLES_MAX).collect();
            with("object", vec![("additionalProperties", of_type(inner, &members, depth + 1))])
        }
        "object" => {
            let optional: BTreeSet<&str> = arguments
                .get(2)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let kinds = inner.as_object();
            let properties: Map<String, Value> = kinds
                .into_iter()
                .flatten()
                .map(|(name, kind)| {
                    let of_name = samples.iter().filter_map(|value| value.get(name)).collect::<Vec<_>>();
                    (name.clone(), of_type(kind, &of_name, depth + 1))
                })
                .collect();
            let required: Vec<Value> = properties
                .keys()
                .filter(|name| !optional.contains(name.as_str()))
                .map(|name| Value::from(name.as_str()))
                .collect();
            with("object", vec![("properties", properties.into()), ("required", required.into())])
        }
        "tuple" => {
            let kinds = inner.as_array().map_or(&[][..], Vec::as_slice);
            let of_items: Vec<Value> = kinds
                .iter()
                .enumerate()
                .map(|(index, kind)| {
                    let of_place = samples.iter().filter_map(|value| value.get(index)).collect::<Vec<_>>();
                    of_type(kind, &of_place, depth + 1)
                })
                .collect();
            // `[a, b]` is a tuple for the client, and a list for who wrote it.
            match of_items.split_first() {
                None => typed("array", or_null),
                Some((first, others)) if others.iter().all(|other| other == first) => {
                    with("array", vec![("items", first.clone())])
                }
                Some(_) => with("array", vec![("prefixItems", of_items.into())]),
            }
        }
        _ => of_values(samples, depth),
    }
}

/// The schema of values alone, where all of them are of one kind.
fn of_values(samples: &[&Value], depth: usize) -> Value {
    let mut kinds = samples.iter().filter(|value| !value.is_null()).map(|value| kind_of(value));
    match kinds.next() {
        Some(kind) if kinds.all(|other| other == kind) => of_type(&kind, samples, depth),
        _ => Value::Object(Map::new()),
    }
}

/// The type of a value as it would stand in a state, one level of it.
fn kind_of(value: &Value) -> Value {
    let open = || Value::from("dynamic");
    match value {
        Value::Null => open(),
        Value::Bool(_) => Value::from("bool"),
        Value::Number(_) => Value::from("number"),
        Value::String(_) => Value::from("string"),
        Value::Array(items) => {
            let items = items.iter().take(SAMPLES_MAX).map(|_| open()).collect::<Vec<_>>();
            Value::from(vec![Value::from("tuple"), Value::from(items)])
        }
        Value::Object(members) => {
            let members: Map<String, Value> = members.keys().map(|name| (name.clone(), open())).collect();
            Value::from(vec![Value::from("object"), members.into()])
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Checked {
        let schema = Schema::read(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
        schema.check(value, false, &mut Steps::default())
    }

    #[track_caller]
    fn invalid(schema: Value, value: Value, at: &str, words: &str) {
        match check(&schema, &value) {
            Checked::Invalid { message, path } => {
                assert_eq!(path, at, "{schema} of {value}: {message}");
                assert!(message.contains(words), "{schema} of {value}: {message}");
            }
            other => panic!("{schema} of {value}: {other:?}"),
        }
    }

    #[test]
    fn each_keyword_tells_what_it_demands_and_where() {
        invalid(json!(false), json!(1), "$", "nothing");
        invalid(json!({ "type": "string" }), json!(1), "$", "not of type string");
        invalid(json!({ "type": ["string", "null"] }), json!(1), "$", "string or null");
        invalid(json!({ "type": "integer" }), json!(1.5), "$", "integer");
        invalid(json!({ "enum": ["a", 1] }), json!("b"), "$", r#"none of "a", 1"#);
        invalid(json!({ "const": { "a": [1] } }), json!({ "a": [2] }), "$", "none of");
        invalid(json!({ "multipleOf": 0.1 }), json!(0.25), "$", "multiple of 0.1");
        invalid(json!({ "minimum": 2 }), json!(1), "$", "below 2");
        invalid(json!({ "exclusiveMinimum": 2 }), json!(2), "$", "not above 2");
        invalid(json!({ "maximum": 2 }), json!(3), "$", "above 2");
        invalid(json!({ "exclusiveMaximum": 2 }), json!(2), "$", "not below 2");
        invalid(json!({ "minLength": 2 }), json!("ä"), "$", "fewer than 2 characters");
        invalid(json!({ "maxLength": 1 }), json!("äb"), "$", "more than 1 characters");
        invalid(json!({ "pattern": "^a+$" }), json!("ab"), "$", "match");
        invalid(json!({ "items": { "type": "string" } }), json!(["a", 1]), "$[1]", "string");
        invalid(json!({ "prefixItems": [true], "items": false }), json!([1, 2]), "$[1]", "nothing");
        invalid(json!({ "contains": { "const": 1 } }), json!([2]), "$", "contains");
        invalid(json!({ "contains": { "const": 1 }, "maxContains": 1 }), json!([1, 1]), "$", "contains");
        invalid(json!({ "minItems": 1 }), json!([]), "$", "fewer than 1 items");
        invalid(json!({ "maxItems": 1 }), json!([1, 2]), "$", "more than 1 items");
        invalid(json!({ "uniqueItems": true }), json!([1, 2, 1.0]), "$", "equal");
        let deep = json!({ "properties": { "a": { "properties": { "b c": { "type": "null" } } } } });
        invalid(deep, json!({ "a": { "b c": 1 } }), r#"$.a["b c"]"#, "null");
        invalid(
            json!({ "patternProperties": { "^x": { "type": "null" } } }),
            json!({ "xy": 1 }),
            "$.xy",
            "null",
        );
        let closed = json!({ "properties": { "a": true }, "additionalProperties": false });
        invalid(closed, json!({ "a": 1, "b": 2 }), "$.b", "nothing");
        invalid(json!({ "required": ["a"] }), json!({}), "$", r#""a" is missing"#);
        invalid(json!({ "propertyNames": { "maxLength": 1 } }), json!({ "ab": 1 }), "$", "propertyNames");
        invalid(json!({ "minProperties": 1 }), json!({}), "$", "fewer than 1 members");
        invalid(json!({ "maxProperties": 0 }), json!({ "a": 1 }), "$", "more than 0 members");
        invalid(json!({ "dependentRequired": { "a": ["b"] } }), json!({ "a": 1 }), "$", r#""b" is missing"#);
        invalid(
            json!({ "dependentSchemas": { "a": { "required": ["b"] } } }),
            json!({ "a": 1 }),
            "$",
            "missing",
        );
        invalid(json!({ "allOf": [true, { "type": "null" }] }), json!(1), "$", "null");
        invalid(json!({ "anyOf": [{ "type": "null" }] }), json!(1), "$", "anyOf");
        invalid(json!({ "oneOf": [true, true] }), json!(1), "$", "several");
        invalid(json!({ "oneOf": [false] }), json!(1), "$", "none of `oneOf`");
        invalid(json!({ "not": {} }), json!(1), "$", "not");
        let branches =
            json!({ "if": { "type": "string" }, "then": { "minLength": 1 }, "else": { "minimum": 1 } });
        invalid(branches.clone(), json!(""), "$", "characters");
        invalid(branches, json!(0), "$", "below 1");
        let list = json!({ "$defs": { "list": { "properties": { "next": { "$ref": "#/$defs/list" } }, "type": "object" } },
                           "$ref": "#/$defs/list" });
        invalid(list, json!({ "next": { "next": 1 } }), "$.next.next", "object");
    }

    #[test]
    fn what_fits_is_valid() {
        for (schema, value) in [
            (json!(true), json!(null)),
            (json!({}), json!([{}])),
            (json!({ "type": "integer" }), json!(2.0)),
            (json!({ "type": "number", "multipleOf": 0.01 }), json!(19.99)),
            (json!({ "enum": [1.0] }), json!(1)),
            // What speaks of another type says nothing.
            (json!({ "minLength": 5, "minimum": 5, "required": ["a"], "minItems": 4 }), json!(true)),
            (json!({ "prefixItems": [{ "type": "string" }] }), json!([])),
            (json!({ "prefixItems": [{ "type": "string" }] }), json!(["a", 1])),
            (json!({ "contains": { "const": 1 }, "minContains": 0 }), json!([])),
            (
                json!({ "format": "ipv4", "title": "t", "$schema": "https://json-schema.org/draft/2020-12/schema" }),
                json!("x"),
            ),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), json!(null)),
            (json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }), json!("a")),
            (json!({ "not": { "type": "string" } }), json!(1)),
            (json!({ "if": false, "then": false }), json!(1)),
            (
                json!({ "properties": { "a/b": { "$ref": "#/properties/c" }, "c": { "type": "null" } } }),
                json!({ "a/b": null }),
            ),
        ] {
            assert_eq!(check(&schema, &value), Checked::Valid, "{schema} of {value}");
        }
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({ "not": inner }));
        for (schema, at, words) in [
            (json!(1), "#", "an object, true or false"),
            (json!({ "type": "text" }), "#/type", "a type is"),
            (json!({ "type": [] }), "#/type", "a type is"),
            (json!({ "requried": ["a"] }), "#/requried", "not known"),
            (json!({ "$dynamicRef": "#a" }), "#/$dynamicRef", "not known"),
            (json!({ "properties": { "a": { "items": 1 } } }), "#/properties/a/items", "an object"),
            (json!({ "properties": [] }), "#/properties", "an object"),
            (json!({ "required": "a" }), "#/required", "a list"),
            (json!({ "required": [1] }), "#/required", "a string"),
            (json!({ "minLength": -1 }), "#/minLength", "whole number"),
            (json!({ "minimum": "1" }), "#/minimum", "a number"),
            (json!({ "multipleOf": 0 }), "#/multipleOf", "above 0"),
            (json!({ "pattern": "(" }), "#/pattern", "no pattern"),
            (json!({ "pattern": "(a{100}){100}" }), "#/pattern", "no pattern"),
            (json!({ "patternProperties": { "(": true } }), "#/patternProperties", "no pattern"),
            (json!({ "anyOf": [] }), "#/anyOf", "one schema at least"),
            (json!({ "uniqueItems": 1 }), "#/uniqueItems", "true or false"),
            (json!({ "$ref": "https://example.com/s.json" }), "#/$ref", "of its own"),
            (json!({ "$ref": "#/$defs/none" }), "#/$ref", "no schema"),
            (json!({ "enum": ["x".repeat(40_000)] }), "#", "bytes"),
            (json!({ "const": (0..120).fold(json!(1), |inner, _| json!([inner])) }), "#", "nested deeper"),
            (deep, "#/not/not", "deeper"),
        ] {
            let error = Schema::read(&schema).unwrap_err();
            assert!(error.at.starts_with(at), "{schema}: {error}");
            assert!(error.what.contains(words), "{schema}: {error}");
        }
    }

    #[test]
    fn no_schema_takes_long() {
        let doubling = |depth: usize| -> Value {
            let mut defs = Map::new();
            for level in 0..depth {
                let next = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
                defs.insert(format!("l{level}"), json!({ "allOf": [next, next] }));
            }
            defs.insert(format!("l{depth}"), json!(true));
            json!({ "$defs": defs, "$ref": "#/$defs/l0" })
        };
        assert_eq!(check(&doubling(5), &json!(1)), Checked::Valid);
        let many = check(&doubling(60), &json!(1));
        assert!(matches!(&many, Checked::Error(why) if why.contains("steps")), "{many:?}");
        let endless = check(&json!({ "$ref": "#" }), &json!(1));
        assert!(matches!(&endless, Checked::Error(why) if why.contains("without end")), "{endless:?}");
        let long: Vec<_> = (0..5_000).collect();
        let unique = check(&json!({ "uniqueItems": true }), &json!(long));
        assert!(matches!(unique, Checked::Error(_)), "{unique:?}");
    }

    #[test]
    fn nothing_of_a_sensitive_value_is_told() {
        let schema = json!({ "properties": { "known": { "type": "string" } }, "additionalProperties": { "type": "string" } });
        let schema = Schema::read(&schema).unwrap();
        let told = |value: Value| format!("{:?}", schema.check(&value, true, &mut Steps::default()));
        let words = told(json!({ "hunter2": 4711 }));
        assert!(words.contains("$.*") && !words.contains("hunter2") && !words.contains("4711"), "{words}");
        assert!(told(json!({ "known": 4711 })).contains("$.known"));
    }

    #[test]
    fn a_schema_is_inferred_from_the_type_and_where_that_is_open_from_the_value() {
        let infer = |kind: Value, value: Value| infer_of(&json!({ "type": kind, "value": value })).unwrap();
        assert_eq!(infer(json!("string"), json!("x")), json!({ "type": "string" }));
        assert_eq!(infer(json!("string"), json!(null)), json!({ "type": ["string", "null"] }));
        assert_eq!(infer(json!("bool"), json!(true)), json!({ "type": "boolean" }));
        let list = json!({ "type": "array", "items": { "type": "string" } });
        assert_eq!(infer(json!(["list", "string"]), json!([])), list);
        assert_eq!(infer(json!(["tuple", ["string", "string"]]), json!(["a", "b"])), list);
        let mixed = infer(json!(["tuple", ["string", "number"]]), json!(["a", 1]));
        assert_eq!(
            mixed,
            json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "number" }] })
        );
        let map = infer(json!(["map", "number"]), json!({ "a": 1, "b": null }));
        assert_eq!(map, json!({ "type": "object", "additionalProperties": { "type": ["number", "null"] } }));
        let object =
            infer(json!(["object", { "a": "string", "b": "number" }, ["b"]]), json!({ "a": "x", "b": null }));
        let expected = json!({
            "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": ["number", "null"] } },
            "required": ["a"],
        });
        assert_eq!(object, expected);
        let open = infer(json!("dynamic"), json!({ "a": [1, 2] }));
        let numbers = json!({ "type": "array", "items": { "type": "number" } });
        assert_eq!(open, json!({ "type": "object", "properties": { "a": numbers }, "required": ["a"] }));
        assert_eq!(infer(json!("dynamic"), json!(null)), json!({}));
        assert_eq!(infer(json!(7), json!("x")), json!({ "type": "string" }));
    }

    #[test]
    fn what_is_inferred_fits_and_of_a_sensitive_output_tells_the_kind_alone() {
        let value = json!({ "hunter2": { "deep": [1, "x", null] } });
        let secret = infer_of(&json!({ "type": "dynamic", "value": value, "sensitive": true })).unwrap();
        assert_eq!(secret, json!({ "type": "object" }));
        for value in [value, json!([[], [1], ["a"]]), json!([null, { "a": 1 }, { "b": 2 }]), json!(1e300)] {
            let schema = infer_of(&json!({ "type": "dynamic", "value": value })).unwrap();
            assert_eq!(check(&schema, &value), Checked::Valid, "{schema} of {value}");
        }
    }

    #[test]
    fn each_output_is_judged_by_its_schema_and_in_bounded_time() {
        let output =
            |name: &str, sensitive| Output { name: name.to_owned(), sensitive, mark: None, validity: None };
        let names = ["fits", "secret", "none", "broken", "long"];
        let mut outputs: Vec<Output> = names.iter().map(|name| output(name, *name == "secret")).collect();
        let long = format!(r#"{{"value":"{}"}}"#, "x".repeat(OUTPUT_BYTES_MAX));
        let value = r#"{"value":"hunter2"}"#;
        let texts: Vec<(String, &str)> = names
            .iter()
            .map(|name| ((*name).to_owned(), if *name == "long" { &long } else { value }))
            .collect();
        let (fits, number, broken) =
            (json!({ "type": "string" }), json!({ "type": "number" }), json!({ "typ": 1 }));
        let schemas = [("fits", &fits), ("secret", &number), ("broken", &broken), ("long", &fits)];
        judge_outputs(&mut outputs, &texts, &schemas.map(|(name, schema)| (name.to_owned(), schema)).into());
        let told: Vec<_> = outputs.iter().map(|it| it.validity.as_ref().unwrap()).collect();
        use Standing::{Error, Invalid, NotValidated, Valid};
        let standings: Vec<_> = told.iter().map(|it| it.status).collect();
        assert_eq!(standings, [Valid, Invalid, NotValidated, Error, NotValidated]);
        assert_eq!(told[1].path.as_deref(), Some("$"));
        assert!(!format!("{told:?}").contains("hunter2"));
    }
}
