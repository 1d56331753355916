//! The functions of definitions: `fn::join`, `fn::open` and the others.

use std::collections::BTreeMap;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::definition::{Call, Expr, Function};
use super::evaluate::{Evaluator, ProviderCall, ProviderOutputs};
use super::value::{Kind, Text, Value, read_json};
use super::{Diagnostic, Range, Severity, emitter, yaml};
use crate::domain::json_schema::{Checked, Schema};

/// Pieces of a split text, or elements of a concatenated list, at most.
const PIECES_MAX: usize = 1 << 17;

const TOO_LONG: &str = "the result is too long";

impl<'a> Evaluator<'_, 'a> {
    pub(super) fn call(&mut self, id: usize, syntax: &'a Expr, call: &'a Call, from: &Rc<Range>) -> Value {
        match &call.function {
            Function::Plaintext(text) => {
                return Value::string(text, &self.range(call.argument)).secret_if(true);
            }
            Function::Ciphertext(text, _) => return self.opened(syntax, text, from),
            Function::Unreadable => return Value::unknown(from),
            _ => {}
        }
        let arguments = self.arguments(id);
        // The parts of its result are shared, so it costs nothing.
        let is_free = matches!(call.function, Function::Final(_) | Function::Validate { .. });
        let is_secret = arguments.iter().any(|argument| argument.has_secret());
        if !is_free && !self.takes(arguments.iter().map(|argument| argument.size()).sum()) {
            self.wrong(syntax.span, "the values of the environment are too long");
            return Value::unknown(from).secret_if(is_secret);
        }
        let computed = match arguments.as_slice() {
            [only] => self.call_with_one(syntax, call, only, from),
            [first, second] => self.call_with_two(call, first, second, from),
            _ => Ok(None),
        };
        match computed {
            Ok(Some(value)) if is_free => value,
            Ok(Some(value)) => self.made(syntax, value),
            Ok(None) => Value::unknown(from).secret_if(is_secret),
            Err(what) => {
                self.wrong(syntax.span, what);
                Value::unknown(from).secret_if(is_secret)
            }
        }
    }

    /// Calls a function of one argument. `None` if the argument is unknown.
    fn call_with_one(
        &mut self,
        syntax: &Expr,
        call: &Call,
        value: &Rc<Value>,
        from: &Rc<Range>,
    ) -> Result<Option<Value>, String> {
        let is_secret = value.has_secret();
        let string = |text: &[u8]| Ok(Some(Value::string(text, from).secret_if(is_secret)));
        match &call.function {
            Function::Final(_) => return Ok(Some(value.whole_at(from).into_final())),
            Function::Open { provider, .. } => return self.open(syntax, provider, value, from),
            Function::ToString(_) => {
                let mut text = Text::default();
                value.write_text(&mut text).map_err(|_| TOO_LONG)?;
                return Ok(Some(Value::text(text, from)));
            }
            Function::Concat(_) => {
                let lists: Vec<_> = self.items(value).iter().map(|item| self.items(item)).collect();
                if value.has_unknown() {
                    return Ok(None);
                }
                if lists.iter().map(|list| list.len()).sum::<usize>() > PIECES_MAX {
                    return Err(TOO_LONG.to_owned());
                }
                let all = Kind::Array(lists.iter().flat_map(|list| list.iter().cloned()).collect());
                return Ok(Some(Value::new(all, from).secret_if(is_secret)));
            }
            _ => {}
        }
        if let Function::ToJson(_) | Function::ToYaml(_) = &call.function {
            return match (value.has_unknown(), &call.function) {
                (true, _) => Ok(None),
                (false, Function::ToJson(_)) => string(value.json().as_bytes()),
                (false, _) => string(emitter::yaml(value)?.as_bytes()),
            };
        }
        let Some(text) = self.text(value) else { return Ok(None) };
        match &call.function {
            Function::FromBase64(_) => string(&yaml::base64(&text).ok_or("this is not base64")?),
            Function::FromJson(_) => {
                let text =
                    std::str::from_utf8(&text).map_err(|_| "this is not JSON: it is not a text in UTF-8")?;
                let read = read_json(text, is_secret, from);
                read.map(Some).map_err(|error| format!("this is not JSON: {error}"))
            }
            Function::ToBase64(_) => string(STANDARD.encode(&text).as_bytes()),
            _ => Ok(None),
        }
    }

    fn call_with_two(
        &mut self,
        call: &Call,
        first: &Rc<Value>,
        second: &Rc<Value>,
        from: &Rc<Range>,
    ) -> Result<Option<Value>, String> {
        match &call.function {
            Function::Validate { schema, value } => {
                if !first.has_unknown() {
                    match read_schema(first) {
                        Err(what) => self.wrong(schema.span, what),
                        Ok(_) if second.has_unknown() => {}
                        Ok(schema) => {
                            if let Some(what) = self.misfit(&schema, second) {
                                self.wrong(value.span, what);
                            }
                        }
                    }
                }
                return Ok(Some(second.whole_at(from)));
            }
            Function::Rotate { .. } if !self.session.request.is_opened => return Ok(None),
            Function::Rotate { provider, .. } => {
                return Err(format!("this server has no rotator {provider:?}"));
            }
            _ => {}
        }
        let is_secret = first.has_secret() || second.has_secret();
        let delimiter = self.text(first);
        match &call.function {
            Function::Join(..) => {
                let texts: Option<Vec<_>> = {
                    let items = self.items(second);
                    let texts: Vec<_> = items.iter().map(|item| self.text(item)).collect();
                    texts.into_iter().collect()
                };
                let (Some(delimiter), Some(texts), false) = (delimiter, texts, second.has_unknown()) else {
                    return Ok(None);
                };
                if !matches!(second.kind, Kind::Array(_)) {
                    return Ok(None);
                }
                let bytes: usize = texts.iter().map(|text| text.len() + delimiter.len()).sum();
                if bytes > self.session.budget.made {
                    return Err(TOO_LONG.to_owned());
                }
                Ok(Some(Value::string(texts.join(&*delimiter), from).secret_if(is_secret)))
            }
            Function::Split(..) => {
                let (Some(delimiter), Some(whole)) = (delimiter, self.text(second)) else { return Ok(None) };
                // A piece takes many times the memory of its text.
                if whole.len() > PIECES_MAX {
                    return Err(TOO_LONG.to_owned());
                }
                let pieces = split(&whole, &delimiter)
                    .into_iter()
                    .map(|piece| Rc::new(Value::string(piece, from).secret_if(is_secret)));
                Ok(Some(Value::new(Kind::Array(pieces.collect()), from).secret_if(is_secret)))
            }
            _ => Ok(None),
        }
    }

    /// An argument that must be a text. Another value is reported at the place that it comes from.
    fn text(&mut self, value: &Value) -> Option<Rc<[u8]>> {
        match &value.kind {
            _ if value.is_unknown => None,
            Kind::String(text) => Some(Rc::clone(text)),
            other => {
                let what = format!("expected string, got {}", other.name());
                self.report(Diagnostic {
                    range: (*value.from).clone(),
                    summary: what,
                    severity: Severity::Error,
                });
                None
            }
        }
    }

    /// An argument that must be a list, in the same way.
    fn items(&mut self, value: &Value) -> Rc<[Rc<Value>]> {
        match &value.kind {
            Kind::Array(items) => Rc::clone(items),
            _ if value.is_unknown => Rc::default(),
            other => {
                let what = format!("expected array, got {}", other.name());
                self.report(Diagnostic {
                    range: (*value.from).clone(),
                    summary: what,
                    severity: Severity::Error,
                });
                Rc::default()
            }
        }
    }

    /// Why a value does not match its schema.
    fn misfit(&mut self, schema: &Schema, value: &Value) -> Option<String> {
        let Ok(json) = serde_json::from_str::<Json>(&value.json()) else {
            return Some("it is nested too deep to be validated".to_owned());
        };
        match schema.check(&json, value.has_secret(), &mut self.session.budget.checks) {
            Checked::Valid => None,
            Checked::Invalid { message, path } => Some(format!("{path}: {message}")),
            Checked::Error(why) => Some(why),
        }
    }

    /// The value of a sealed secret.
    fn opened(&mut self, syntax: &Expr, ciphertext: &str, from: &Rc<Range>) -> Value {
        match self.source.secrets.get(ciphertext) {
            Some(Ok(text)) => Value::string(text, from).secret_if(true),
            Some(Err(why)) => {
                self.wrong(syntax.span, why.clone());
                Value::unknown(from).secret_if(true)
            }
            None => Value::unknown(from).secret_if(true),
        }
    }

    /// The outputs of a provider. If one of the inputs is unknown, or the provider was not called yet, they
    /// are unknown.
    fn open(
        &mut self,
        syntax: &Expr,
        provider: &str,
        inputs: &Rc<Value>,
        from: &Rc<Range>,
    ) -> Result<Option<Value>, String> {
        if inputs.has_unknown() || !self.session.request.is_opened {
            return Ok(None);
        }
        let call = ProviderCall { provider: provider.to_owned(), inputs: inputs.json() };
        match self.session.request.outputs.get(&call) {
            Some(Ok(outputs)) => {
                let value = self.value_of(syntax, outputs, from)?;
                Ok(Some(value))
            }
            Some(Err(why)) => Err(why.clone()),
            None => {
                if !self.session.calls.contains(&call) {
                    self.session.calls.push(call);
                }
                Ok(None)
            }
        }
    }

    fn value_of(
        &mut self,
        syntax: &Expr,
        outputs: &ProviderOutputs,
        from: &Rc<Range>,
    ) -> Result<Value, String> {
        let members = match outputs {
            ProviderOutputs::Value { json, is_secret } => return read_json(json, *is_secret, from),
            ProviderOutputs::Object(members) => members,
        };
        let mut object = BTreeMap::new();
        for (name, outputs) in members {
            let value = Rc::new(self.value_of(syntax, outputs, from)?);
            object.insert(Rc::from(name.as_str()), self.bounded(value, syntax.span));
        }
        Ok(Value::new(Kind::Object(Rc::new(object)), from))
    }
}

/// The only provider of this server: outputs of its own stacks.
pub const STACKS_PROVIDER: &str = "pulumi-stacks";

/// The message for an unknown provider.
pub fn no_provider(provider: &str) -> String {
    format!(
        "this server has no provider {provider:?}; its only provider is {STACKS_PROVIDER:?}, for outputs of stacks"
    )
}

/// The schema of `fn::validate`, in the form of Pulumi ESC: with fewer keywords than JSON Schema, and one
/// type instead of a list of types.
fn read_schema(schema: &Value) -> Result<Schema, String> {
    let json: Json = serde_json::from_str(&schema.json())
        .map_err(|_| "the schema is nested too deep to be read".to_owned())?;
    if let Some(what) = malformed(&json) {
        return Err(what);
    }
    Schema::read(&json).map_err(|error| error.to_string())
}

/// Why the form of a schema is invalid.
fn malformed(schema: &Json) -> Option<String> {
    const TYPES: [&str; 6] = ["string", "number", "boolean", "array", "object", "null"];
    let members = match schema {
        Json::Object(members) => members,
        Json::Bool(_) => return None,
        _ => return Some("a schema must be an object, true or false".to_owned()),
    };
    let is_texts = |value: &Json| value.as_array().is_some_and(|items| items.iter().all(Json::is_string));
    for (keyword, value) in members {
        let within: Vec<&Json> = match (keyword.as_str(), value) {
            ("items" | "additionalProperties", schema) => vec![schema],
            ("anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => schemas.iter().collect(),
            ("$defs" | "properties", Json::Object(schemas)) => schemas.values().collect(),
            _ => Vec::new(),
        };
        if let Some(what) = within.into_iter().find_map(malformed) {
            return Some(what);
        }
        let needed = match keyword.as_str() {
            "type" if value.as_str().is_none_or(|name| !TYPES.contains(&name)) => {
                return Some(format!("the type of a schema must be one of {}", TYPES.join(", ")));
            }
            "anyOf" | "oneOf" | "prefixItems" | "enum" | "examples" if !value.is_array() => "a list",
            "$defs" | "properties" if !value.is_object() => "an object",
            "$ref" | "pattern" | "title" | "description" if !value.is_string() => "a string",
            "uniqueItems" | "deprecated" if !value.is_boolean() => "true or false",
            "multipleOf" | "maximum" | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" | "maxLength"
            | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties"
                if !value.is_number() =>
            {
                "a number"
            }
            "required" if !is_texts(value) => "a list of strings",
            "dependentRequired"
                if value.as_object().is_none_or(|members| !members.values().all(is_texts)) =>
            {
                "an object of lists of strings"
            }
            _ => continue,
        };
        return Some(format!("{keyword:?} in a schema must be {needed}"));
    }
    None
}

/// Splits a text at each delimiter, or into its characters if the delimiter is empty.
fn split<'t>(text: &'t [u8], delimiter: &[u8]) -> Vec<&'t [u8]> {
    let mut pieces = Vec::new();
    if delimiter.is_empty() {
        for chunk in text.utf8_chunks() {
            pieces.extend(
                chunk
                    .valid()
                    .char_indices()
                    .map(|(at, c)| chunk.valid().as_bytes().get(at..at + c.len_utf8()).unwrap_or_default()),
            );
            pieces.extend(chunk.invalid().chunks(1));
        }
        return pieces;
    }
    let (mut from, mut at) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(delimiter) {
            pieces.push(text.get(from..at).unwrap_or_default());
            at += delimiter.len();
            from = at;
        } else {
            at += 1;
        }
    }
    pieces.push(text.get(from..).unwrap_or_default());
    pieces
}
