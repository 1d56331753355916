//! JSON schemas of Rust types.
//!
//! [`of`] derives the schema of a type from its `Deserialize` implementation: it acts as a deserializer and
//! records each request for a type or a member. So the documented schema is always what the server reads.

use std::cell::Cell;

use serde::Deserialize;
use serde::de::value::Error;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// The schema of the JSON that `T` is read from. A number without a fraction is an `integer`; `{}` is a value
/// that is kept as sent.
pub(crate) fn of<'de, T: Deserialize<'de>>() -> Value {
    describe::<T>(&mut Vec::new())
}

/// The schema of an object with the members of both.
pub(crate) fn both(mut first: Value, mut second: Value) -> Value {
    if let (Some(all), Some(more)) =
        (first["properties"].as_object_mut(), second["properties"].as_object_mut())
    {
        all.append(more);
    }
    first
}

/// The schema of a page of a list.
pub(crate) fn page(name: &str, item: Value) -> Value {
    let members =
        json!({ name: { "type": "array", "items": item }, "continuationToken": { "type": "string" } });
    json!({ "type": "object", "properties": members })
}

fn describe<'de, T: Deserialize<'de>>(path: &mut Vec<Step>) -> Value {
    let seen = Cell::new(Seen::Nothing);
    let is_nullable = Cell::new(false);
    // The result is always an error, which ends the deserialization after the request was recorded.
    let _ = T::deserialize(Ask { path, seen: &seen, is_nullable: &is_nullable });
    let mut below = |step| {
        path.push(step);
        let schema = describe::<T>(path);
        path.pop();
        schema
    };
    let mut schema = match seen.get() {
        Seen::Nothing => json!({}),
        Seen::Simple(kind) => json!({ "type": kind }),
        Seen::Word(words) => json!({ "type": "string", "enum": words }),
        Seen::List => json!({ "type": "array", "items": below(Step::Inside) }),
        Seen::Map => json!({ "type": "object", "additionalProperties": below(Step::Inside) }),
        Seen::Object(members) => {
            let members: Map<String, Value> =
                members.iter().map(|name| ((*name).to_owned(), below(Step::Member(name)))).collect();
            json!({ "type": "object", "properties": members })
        }
    };
    if is_nullable.get() && schema["type"].is_string() {
        schema["nullable"] = true.into();
    }
    schema
}

/// A step on the path to a part of a value.
#[derive(Clone, Copy)]
enum Step {
    Inside,
    Member(&'static str),
}

/// The type requested at the end of the path.
#[derive(Clone, Copy)]
enum Seen {
    Nothing,
    Simple(&'static str),
    Word(&'static [&'static str]),
    List,
    Map,
    Object(&'static [&'static str]),
}

/// A deserializer that follows a path and records the type requested at its end.
struct Ask<'a> {
    path: &'a [Step],
    seen: &'a Cell<Seen>,
    is_nullable: &'a Cell<bool>,
}

impl<'a> Ask<'a> {
    fn further(&self) -> Option<(Step, Ask<'a>)> {
        let (step, path) = self.path.split_first()?;
        Some((*step, Ask { path, ..*self }))
    }

    fn note<V>(&self, seen: Seen) -> Result<V, Error> {
        if self.path.is_empty() {
            self.seen.set(seen);
        }
        Err(Error::custom("that is all"))
    }
}

macro_rules! simple {
    ($kind:literal: $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            self.note(Seen::Simple($kind))
        }
    )*};
}

impl<'de> Deserializer<'de> for Ask<'_> {
    type Error = Error;

    simple!("boolean": deserialize_bool);
    simple!("integer": deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128);
    simple!("integer": deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128);
    simple!("number": deserialize_f32 deserialize_f64);
    simple!("string": deserialize_char deserialize_str deserialize_string deserialize_bytes deserialize_byte_buf);

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.note(Seen::Nothing)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.note(Seen::Nothing)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.note(Seen::Nothing)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.note(Seen::Nothing)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, _: V) -> Result<V::Value, Error> {
        self.note(Seen::Nothing)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.path.is_empty() {
            self.is_nullable.set(true);
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        // The name by which serde_json requests raw JSON text.
        if name.starts_with("$serde_json::private::") {
            self.note(Seen::Nothing)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.further() {
            Some((Step::Inside, item)) => visitor.visit_seq(One { key: None, value: Some(item) }),
            Some((Step::Member(_), _)) | None => self.note(Seen::List),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.further() {
            Some((Step::Inside, value)) => visitor.visit_map(One { key: Some("any"), value: Some(value) }),
            Some((Step::Member(_), _)) | None => self.note(Seen::Map),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.further() {
            Some((Step::Member(name), value)) => {
                visitor.visit_map(One { key: Some(name), value: Some(value) })
            }
            Some((Step::Inside, _)) | None => self.note(Seen::Object(members)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.note(Seen::Word(words))
    }
}

/// A list or a map with one item.
struct One<'a> {
    key: Option<&'static str>,
    value: Option<Ask<'a>>,
}

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.value.take().map(|value| seed.deserialize(value)).transpose()
    }
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.key.take().map(|key| seed.deserialize(key.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let value = self.value.take().ok_or_else(|| Error::custom("there is no value without a key"))?;
        seed.deserialize(value)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use crate::wire::Members;
    use crate::wire::pulumi::Base64;

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "it is only described")]
    struct Outer<'a> {
        a_name: Option<String>,
        inner: Vec<Inner>,
        #[serde(borrow)]
        raw: &'a RawValue,
        tags: Option<Members<bool>>,
        secret: Base64,
        #[serde(default)]
        anything: Value,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "it is only described")]
    struct Inner {
        kind: Kind,
        count: Option<u64>,
        ratio: f64,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        FirstOne,
        Second,
    }

    #[test]
    fn the_schema_of_a_type_is_what_it_reads() {
        let inner = json!({
            "kind": { "type": "string", "enum": ["first-one", "second"] },
            "count": { "type": "integer", "nullable": true },
            "ratio": { "type": "number" },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "aName": { "type": "string", "nullable": true },
                "inner": { "type": "array", "items": { "type": "object", "properties": inner } },
                "raw": {},
                "tags": { "type": "object", "additionalProperties": { "type": "boolean" }, "nullable": true },
                "secret": { "type": "string" },
                "anything": {},
            },
        });
        assert_eq!(of::<Outer<'_>>(), expected);
        assert_eq!(of::<Option<Value>>(), json!({}));
    }
}
