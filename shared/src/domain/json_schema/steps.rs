//! Counts an upper bound of the work before a check: each schema that the library may visit with each part of
//! the value.

use serde_json::{Map, Value};

use super::reference::target;

/// The steps of all checks of one write or evaluation, at most: a second in the worst case, with patterns on
/// long texts. The library stores some 200 bytes for each failed step.
const STEPS_MAX: usize = 150_000;

/// The depth of a check through the value and through references, at most. Without optimization, the library
/// takes 10 KB of the stack for each level.
const DEPTH_MAX: usize = 100;

/// The number of levels in the value that add the cost of one step, because a failure is stored with its
/// path.
const LEVELS_PER_STEP: usize = 8;

/// The longest list that the library compares pairwise.
const PAIRWISE_MAX: usize = 20;

/// The steps left for checks.
#[derive(Debug)]
pub struct Steps(usize);

impl Default for Steps {
    fn default() -> Self {
        Self(STEPS_MAX)
    }
}

impl Steps {
    /// Subtracts an upper bound of the steps for this value.
    ///
    /// # Errors
    /// Why too few steps are left.
    pub(super) fn take_for(&mut self, schema: &Value, value: &Value) -> Result<(), &'static str> {
        Count { root: schema, steps: self, levels: 0 }.schema(schema, value, 0)
    }

    fn take(&mut self, steps: usize) -> Result<(), &'static str> {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or(0);
        left.map(drop).ok_or("it takes too many steps to check")
    }
}

struct Count<'a> {
    root: &'a Value,
    steps: &'a mut Steps,
    /// The current depth in the value.
    levels: usize,
}

impl Count<'_> {
    fn schema(&mut self, schema: &Value, value: &Value, depth: usize) -> Result<(), &'static str> {
        if depth == DEPTH_MAX {
            return Err("it is nested too deep to check, or refers to itself without end");
        }
        let Value::Object(members) = schema else { return self.steps.take(1) };
        self.steps.take((1 + members.len()) * (1 + self.levels / LEVELS_PER_STEP))?;
        for (keyword, argument) in members {
            match (keyword.as_str(), argument, value) {
                ("$ref", Value::String(reference), _) => {
                    if let Some(target) = target(self.root, reference) {
                        self.schema(target, value, depth + 1)?;
                    }
                }
                ("not" | "if" | "then" | "else", schema, _) => self.schema(schema, value, depth + 1)?,
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas), _) => {
                    for schema in schemas {
                        self.schema(schema, value, depth + 1)?;
                    }
                }
                ("enum", Value::Array(values), _) => {
                    self.steps.take(values.len().saturating_mul(size(value)))?
                }
                ("const", _, _) => self.steps.take(size(value))?,
                (_, _, Value::String(text)) => self.text(keyword, text)?,
                (_, _, Value::Array(items)) => self.items(members, keyword, argument, items, depth)?,
                (_, _, Value::Object(own)) => self.members(members, keyword, argument, own, value, depth)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn text(&mut self, keyword: &str, text: &str) -> Result<(), &'static str> {
        match keyword {
            "pattern" => self.steps.take(text.len()),
            "minLength" | "maxLength" => self.steps.take(text.len() / 64),
            _ => Ok(()),
        }
    }

    fn items(
        &mut self,
        schema: &Map<String, Value>,
        keyword: &str,
        argument: &Value,
        items: &[Value],
        depth: usize,
    ) -> Result<(), &'static str> {
        let first = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
        match (keyword, argument) {
            ("prefixItems", Value::Array(schemas)) => {
                items.iter().zip(schemas).try_for_each(|(item, schema)| self.below(schema, item, depth))
            }
            ("items", schema) => {
                items.iter().skip(first).try_for_each(|item| self.below(schema, item, depth))
            }
            ("contains", schema) => items.iter().try_for_each(|item| self.below(schema, item, depth)),
            ("uniqueItems", Value::Bool(true)) => {
                let times = if items.len() <= PAIRWISE_MAX { items.len() } else { 2 };
                self.steps.take(items.iter().map(size).sum::<usize>().saturating_mul(times))
            }
            _ => Ok(()),
        }
    }

    fn members(
        &mut self,
        schema: &Map<String, Value>,
        keyword: &str,
        argument: &Value,
        members: &Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Result<(), &'static str> {
        match (keyword, argument) {
            ("properties", Value::Object(schemas)) => members.iter().try_for_each(|(name, member)| {
                self.steps.take(1)?;
                schemas.get(name).map_or(Ok(()), |schema| self.below(schema, member, depth))
            }),
            // As if each pattern matched each name.
            ("patternProperties", Value::Object(schemas)) => members.iter().try_for_each(|(name, member)| {
                schemas.values().try_for_each(|schema| {
                    self.steps.take(1 + name.len())?;
                    self.below(schema, member, depth)
                })
            }),
            ("additionalProperties", rest) => {
                let named = schema.get("properties").and_then(Value::as_object);
                let others =
                    members.iter().filter(|(name, _)| !named.is_some_and(|it| it.contains_key(*name)));
                others.map(|(_, member)| member).try_for_each(|member| self.below(rest, member, depth))
            }
            ("propertyNames", schema) => {
                members.keys().try_for_each(|name| self.below(schema, &Value::from(name.as_str()), depth))
            }
            ("dependentSchemas", Value::Object(schemas)) => {
                schemas.values().try_for_each(|schema| self.schema(schema, value, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn below(&mut self, schema: &Value, value: &Value, depth: usize) -> Result<(), &'static str> {
        self.levels += 1;
        let counted = self.schema(schema, value, depth + 1);
        self.levels -= 1;
        counted
    }
}

/// The number of values in a value, and of pieces of its texts.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(size).sum::<usize>(),
    }
}
