//! Evaluated environments in the form that clients read. Each shape has its name in pulumi v3.274.1,
//! `sdk/go/common/esc/`: `esc.Expr`, `esc.Value` and so on.
//!
//! Lists and maps are serialized from the evaluation itself, without a second tree in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::domain::environment::access::{Accessor, Part, Step};
use crate::domain::environment::definition::{self, Call, ExprKind, Function};
use crate::domain::environment::evaluate::Evaluation;
use crate::domain::environment::tree::{self, Expression, Parts};
use crate::domain::environment::value::{self, Kind, Over};
use crate::domain::environment::yaml::Key;
use crate::domain::environment::{Diagnostic, Range, Span};

/// An environment as JSON text.
///
/// # Errors
/// If a number is not valid JSON, which the evaluation excludes.
pub fn environment(evaluation: &Evaluation<'_>) -> serde_json::Result<String> {
    serde_json::to_string(&Environment::of(evaluation, &[]))
}

/// An environment and its diagnostics as JSON text.
///
/// # Errors
/// As for [`environment`].
pub fn checked(evaluation: &Evaluation<'_>) -> serde_json::Result<String> {
    serde_json::to_string(&Environment::of(evaluation, &evaluation.diagnostics))
}

/// A value as JSON text.
///
/// # Errors
/// As for [`environment`].
pub fn value(value: &value::Value) -> serde_json::Result<String> {
    serde_json::to_string(&Value::of(value))
}

/// `esc.Environment`, with the diagnostics of `apitype.CheckYAMLResponse`. An empty definition has only
/// these.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Environment<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    exprs: Option<Exprs<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Properties<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_context: Option<ExecutionContext<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    diagnostics: &'a [Diagnostic],
}

impl<'a> Environment<'a> {
    fn of(evaluation: &'a Evaluation<'_>, diagnostics: &'a [Diagnostic]) -> Self {
        let environment = evaluation.environment.as_ref();
        Self {
            exprs: environment.map(|tree::Environment { name, exprs, .. }| Exprs(exprs, name)),
            properties: environment.map(|it| Properties(&it.properties)),
            execution_context: environment.map(|it| ExecutionContext { properties: Properties(&it.context) }),
            diagnostics,
        }
    }
}

/// `esc.EvaluatedExecutionContext`.
#[derive(serde::Serialize)]
struct ExecutionContext<'a> {
    properties: Properties<'a>,
}

/// `esc.Expr`.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Expr<'a> {
    range: Cow<'a, Range>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Box<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    literal: Option<Literal<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<Accessors<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpolate: Option<Interpolations<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<List<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_ranges: Option<KeyRanges<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Object<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    builtin: Option<Box<Builtin<'a>>>,
}

impl<'a> Expr<'a> {
    fn at(range: Cow<'a, Range>) -> Self {
        Self {
            range,
            base: None,
            literal: None,
            symbol: None,
            interpolate: None,
            list: None,
            key_ranges: None,
            object: None,
            builtin: None,
        }
    }

    fn literal(environment: &str, span: Span, text: &'a str) -> Self {
        let range = Cow::Owned(Range::new(environment, span));
        Self { literal: Some(Literal::String(text)), ..Self::at(range) }
    }

    fn overridden(over: &'a Over) -> Self {
        let base = over.over.as_deref().map(|over| Box::new(Self::overridden(over)));
        Self { base, ..Self::at(Cow::Borrowed(&over.from)) }
    }

    fn of(expression: &'a Expression<'_>, environment: &'a str) -> Self {
        let Expression { syntax, over, parts } = expression;
        let mut expr = Self::at(Cow::Owned(Range::new(environment, syntax.span)));
        expr.base = over.as_deref().map(|over| Box::new(Self::overridden(over)));
        match (&syntax.kind, parts) {
            (ExprKind::Bool(value), _) => expr.literal = Some(Literal::Bool(*value)),
            (ExprKind::Number(text), _) => expr.literal = Some(Literal::Number(Number(text))),
            (ExprKind::String(text), _) => expr.literal = Some(Literal::String(text)),
            (ExprKind::Symbol(accessors), _) => expr.symbol = Some(Accessors(accessors, environment)),
            (ExprKind::Interpolate(parts), _) => {
                expr.interpolate = Some(Interpolations(parts, environment));
            }
            (ExprKind::Array(_), Parts::Array(items)) => expr.list = Some(List(items, environment)),
            (ExprKind::Object(written), Parts::Object(members)) => {
                expr.key_ranges = Some(KeyRanges(written, environment));
                expr.object = Some(Object::Members(Exprs(members, environment)));
            }
            (ExprKind::Call(call), parts) => {
                let arguments = match parts {
                    Parts::Arguments(arguments) => arguments.as_slice(),
                    _ => &[],
                };
                expr.builtin = Some(Box::new(Builtin {
                    name: &call.name.text,
                    name_range: Range::new(environment, call.name.span),
                    arg: argument(call, arguments, environment),
                }));
            }
            _ => {}
        }
        expr
    }
}

/// `esc.BuiltinExpr`.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Builtin<'a> {
    name: &'a str,
    name_range: Range,
    arg: Expr<'a>,
}

/// The argument of a call as written, without the plain text of unsealed secrets.
fn argument<'a>(call: &'a Call, arguments: &'a [Expression<'_>], environment: &'a str) -> Expr<'a> {
    let literal = |span: Span, text: &'a str| Expr::literal(environment, span, text);
    let mut members: Vec<(&str, Expr<'a>)> = Vec::new();
    let names: &[&str] = match (&call.function, arguments) {
        (Function::Ciphertext(text, span), _) => {
            members.push(("ciphertext", literal(*span, text)));
            &[]
        }
        (Function::Open { provider, named: Some(span), .. }, _) => {
            members.push(("provider", literal(*span, provider)));
            &["inputs"]
        }
        (Function::Rotate { provider, named, .. }, _) => {
            members.extend(named.map(|span| ("provider", literal(span, provider))));
            &["inputs", "state"]
        }
        (Function::Validate { .. }, _) => &["schema", "value"],
        (_, [only]) => return Expr::of(only, environment),
        _ => &[],
    };
    members.extend(names.iter().zip(arguments).map(|(name, it)| (*name, Expr::of(it, environment))));
    let mut expr = Expr::at(Cow::Owned(Range::new(environment, call.argument)));
    if !members.is_empty() {
        expr.object = Some(Object::Arguments(members));
    } else if !arguments.is_empty() {
        expr.list = Some(List(arguments, environment));
    }
    expr
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Literal<'a> {
    Bool(bool),
    Number(Number<'a>),
    String(&'a str),
}

/// A number with the digits of its source.
struct Number<'a>(&'a str);

impl Serialize for Number<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number: &RawValue = serde_json::from_str(self.0).map_err(S::Error::custom)?;
        number.serialize(serializer)
    }
}

/// Expressions of an environment, by name.
struct Exprs<'a>(&'a BTreeMap<&'a str, Expression<'a>>, &'a str);

impl Serialize for Exprs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, it)| (name, Expr::of(it, self.1))))
    }
}

/// Expressions of an environment, in order.
struct List<'a>(&'a [Expression<'a>], &'a str);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|it| Expr::of(it, self.1)))
    }
}

/// The members of an expression.
enum Object<'a> {
    Members(Exprs<'a>),
    Arguments(Vec<(&'a str, Expr<'a>)>),
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Members(members) => members.serialize(serializer),
            Self::Arguments(arguments) => {
                serializer.collect_map(arguments.iter().map(|(name, it)| (name, it)))
            }
        }
    }
}

/// The places of an object's keys, with the last of each name.
struct KeyRanges<'a>(&'a [(Key, definition::Expr)], &'a str);

impl Serialize for KeyRanges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spans: BTreeMap<&str, Span> =
            self.0.iter().map(|(key, _)| (key.text.as_str(), key.span)).collect();
        serializer.collect_map(spans.into_iter().map(|(key, span)| (key, Range::new(self.1, span))))
    }
}

/// A list of `esc.Interpolation`.
struct Interpolations<'a>(&'a [Part], &'a str);

#[derive(serde::Serialize)]
struct Interpolation<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Accessors<'a>>,
}

impl Serialize for Interpolations<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|Part { text, access }| Interpolation {
            text,
            value: access.as_deref().map(|access| Accessors(access, self.1)),
        }))
    }
}

/// A list of `esc.PropertyAccessor`.
struct Accessors<'a>(&'a [Accessor], &'a str);

#[derive(serde::Serialize)]
struct PropertyAccessor<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    range: Range,
}

impl Serialize for Accessors<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|Accessor { step, span }| {
            let (key, index) = match step {
                Step::Key(key) => (Some(key.as_str()), None),
                Step::Index(index) => (None, Some(*index)),
            };
            PropertyAccessor { key, index, range: Range::new(self.1, *span) }
        }))
    }
}

/// `esc.Value`.
#[derive(serde::Serialize)]
struct Value<'a> {
    value: Content<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    secret: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unknown: bool,
    trace: Trace<'a>,
}

impl<'a> Value<'a> {
    fn of(value: &'a value::Value) -> Self {
        Self::with(
            value,
            match &value.kind {
                _ if value.is_unknown => Content::Null,
                Kind::Array(items) => Content::Array(Items(items)),
                Kind::Object(_) => Content::Object(Properties(value)),
                scalar => Content::scalar(scalar),
            },
        )
    }

    /// An overridden value. An array or an object has only its place, because its content would grow with
    /// each level of imports.
    fn overridden(value: &'a value::Value) -> Self {
        Self::with(
            value,
            match &value.kind {
                _ if value.is_unknown => Content::Null,
                kind => Content::scalar(kind),
            },
        )
    }

    fn with(value: &'a value::Value, content: Content<'a>) -> Self {
        Self {
            value: content,
            secret: value.is_secret,
            unknown: value.is_unknown,
            trace: Trace { def: &value.from, base: value.base.as_deref().map(Overridden) },
        }
    }
}

/// `esc.Trace`.
#[derive(serde::Serialize)]
struct Trace<'a> {
    def: &'a Range,
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Overridden<'a>>,
}

struct Overridden<'a>(&'a value::Value);

impl Serialize for Overridden<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Value::overridden(self.0).serialize(serializer)
    }
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Null,
    Bool(bool),
    Number(Number<'a>),
    String(Cow<'a, str>),
    Array(Items<'a>),
    Object(Properties<'a>),
}

impl<'a> Content<'a> {
    fn scalar(kind: &'a Kind) -> Self {
        match kind {
            Kind::Bool(value) => Self::Bool(*value),
            Kind::Number(text) => Self::Number(Number(text)),
            Kind::String(text) => Self::String(characters(text)),
            Kind::Null | Kind::Array(_) | Kind::Object(_) => Self::Null,
        }
    }
}

/// The characters of a text. Each byte that is not valid UTF-8 becomes U+FFFD.
fn characters(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(text) {
        return Cow::Borrowed(text);
    }
    let mut characters = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        characters.push_str(chunk.valid());
        characters.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(characters)
}

/// The elements of an array.
struct Items<'a>(&'a [Rc<value::Value>]);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|item| Value::of(item)))
    }
}

/// The properties of an object, including those of its base.
struct Properties<'a>(&'a value::Value);

struct Property(Rc<value::Value>);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let properties = self.0.keys().into_iter().map(|key| {
            let property = self.0.property(&key).map(Property);
            (key, property)
        });
        serializer.collect_map(properties)
    }
}

impl Serialize for Property {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Value::of(&self.0).serialize(serializer)
    }
}
