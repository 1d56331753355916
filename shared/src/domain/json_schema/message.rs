//! Messages about values that do not match their schema. They are ours, because those of the library quote
//! values.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

use boon::{ErrorKind, InstanceToken, ValidationError};
use serde_json::{Number, Value};

use super::reference::target;

/// The longest message and the longest path, in characters.
const MESSAGE_CHARS_MAX: usize = 200;

/// Values of a schema that a message lists, at most.
const LISTED_MAX: usize = 10;

pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}

/// The first failure, as a message and a path. With `names`, the path shows only these names of members. It
/// ends before an element whose index the library may get wrong.
pub(super) fn of(
    error: &ValidationError<'_, '_>,
    schema: &Value,
    names: Option<&BTreeSet<String>>,
    miscounts: bool,
) -> (String, String) {
    let mut error = error;
    while let ErrorKind::Group | ErrorKind::Schema { .. } | ErrorKind::Reference { .. } | ErrorKind::AllOf =
        &error.kind
        && let Some(cause) = error.causes.first()
    {
        error = cause;
    }
    let mut tokens = error.instance_location.tokens.clone();
    if let ErrorKind::AdditionalProperties { got } = &error.kind {
        tokens.extend(got.first().map(|name| InstanceToken::Prop(Cow::Borrowed(&**name))));
    }
    if let Some(first) = tokens.iter().position(|token| miscounts && matches!(token, InstanceToken::Item(_)))
    {
        tokens.truncate(first);
    }
    (shortened(&message(error, schema)), path(&tokens, names))
}

fn message(error: &ValidationError<'_, '_>, schema: &Value) -> String {
    let fewer = |least: usize, what: &str| format!("it has fewer than {least} {what}");
    let more = |most: usize, what: &str| format!("it has more than {most} {what}");
    let missing = |names: &[&str]| match names.first() {
        Some(name) => format!("the member {name:?} is missing"),
        None => "a member is missing".to_owned(),
    };
    match &error.kind {
        ErrorKind::FalseSchema | ErrorKind::AdditionalProperties { .. } => {
            "no value is allowed here".to_owned()
        }
        ErrorKind::Type { want, .. } => {
            // In the order of the schema, which the library does not keep.
            let written = target(schema, error.schema_url).and_then(|schema| schema["type"].as_array());
            let types: Vec<String> = match written {
                Some(types) => types.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                None => want.iter().map(|kind| kind.to_string()).collect(),
            };
            format!("it is not of type {}", types.join(" or "))
        }
        ErrorKind::Enum { want } => format!("it is not one of {}", listed(want)),
        ErrorKind::Const { want } => format!("it is not {want}"),
        ErrorKind::MultipleOf { want, .. } => format!("it is not a multiple of {}", number(want)),
        ErrorKind::Minimum { want, .. } => format!("it is below {}", number(want)),
        ErrorKind::ExclusiveMinimum { want, .. } => format!("it is not above {}", number(want)),
        ErrorKind::Maximum { want, .. } => format!("it is above {}", number(want)),
        ErrorKind::ExclusiveMaximum { want, .. } => format!("it is not below {}", number(want)),
        ErrorKind::MinLength { want, .. } => fewer(*want, "characters"),
        ErrorKind::MaxLength { want, .. } => more(*want, "characters"),
        ErrorKind::MinItems { want, .. } => fewer(*want, "items"),
        ErrorKind::MaxItems { want, .. } => more(*want, "items"),
        ErrorKind::MinProperties { want, .. } => fewer(*want, "members"),
        ErrorKind::MaxProperties { want, .. } => more(*want, "members"),
        ErrorKind::Pattern { want, .. } => {
            // The library has the pattern in its own notation.
            let written = target(schema, error.schema_url).and_then(|schema| schema["pattern"].as_str());
            format!("it does not match {:?}", written.unwrap_or(want))
        }
        ErrorKind::UniqueItems { .. } => "two of its items are equal".to_owned(),
        ErrorKind::Contains | ErrorKind::MinContains { .. } | ErrorKind::MaxContains { .. } => {
            "too few or too many items match `contains`".to_owned()
        }
        ErrorKind::Required { want } => missing(want),
        ErrorKind::DependentRequired { missing: names, .. } => missing(names),
        ErrorKind::PropertyName { .. } => "the name of a member does not match `propertyNames`".to_owned(),
        ErrorKind::AnyOf => "it matches none of `anyOf`".to_owned(),
        ErrorKind::OneOf(None) => "it matches none of `oneOf`".to_owned(),
        ErrorKind::OneOf(Some(_)) => "it matches several of `oneOf`".to_owned(),
        ErrorKind::Not => "it matches `not`".to_owned(),
        _ => "it does not match the schema".to_owned(),
    }
}

/// A number without a fraction of zero.
fn number(number: &Number) -> String {
    number
        .as_f64()
        .filter(|_| number.is_f64())
        .map_or_else(|| number.to_string(), |number| number.to_string())
}

/// Values of a schema, as many as fit into a message.
fn listed(values: &[Value]) -> String {
    let shown: Vec<_> = values.iter().take(LISTED_MAX).map(Value::to_string).collect();
    let more = if values.len() > LISTED_MAX { " and others" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn path(tokens: &[InstanceToken<'_>], names: Option<&BTreeSet<String>>) -> String {
    let mut path = "$".to_owned();
    let mut push = |step: &dyn Display| {
        // Writing to a string cannot fail.
        let _ = write!(path, "{step}");
    };
    for token in tokens {
        match token {
            InstanceToken::Item(index) => push(&format_args!("[{index}]")),
            InstanceToken::Prop(name) if names.is_some_and(|names| !names.contains(&**name)) => push(&".*"),
            InstanceToken::Prop(name) if is_plain(name) => push(&format_args!(".{name}")),
            InstanceToken::Prop(name) => push(&format_args!("[{}]", Value::from(&**name))),
        }
    }
    shortened(&path)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
