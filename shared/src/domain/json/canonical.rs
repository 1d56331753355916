//! A canonical text of a JSON value, to compare two values.

use std::ops::Range;

use super::{Reader, Result, write_string};

/// Deeper nesting is compared as it is written, so that recursion is bounded.
const DEPTH_MAX: usize = 64;

/// The canonical text of a value: members sorted by name, no whitespace, one form for each string and number.
pub(crate) fn canonical(raw: &str) -> Result<String> {
    let mut reader = Reader::new(raw);
    let mut text = String::with_capacity(raw.len());
    write_value(&mut reader, 0, &mut text)?;
    reader.finish()?;
    Ok(text)
}

fn write_value(reader: &mut Reader<'_>, depth: usize, text: &mut String) -> Result<()> {
    match reader.peek() {
        Some(b'{') if depth < DEPTH_MAX => write_object(reader, depth, text),
        Some(b'[') if depth < DEPTH_MAX => {
            text.push('[');
            let mut is_first = true;
            reader.array(|reader| {
                if !std::mem::take(&mut is_first) {
                    text.push(',');
                }
                write_value(reader, depth + 1, text)
            })?;
            text.push(']');
            Ok(())
        }
        Some(b'"') => {
            let string = reader.string()?;
            write_string(text, &string);
            Ok(())
        }
        Some(b'-' | b'0'..=b'9') => {
            let start = reader.start();
            reader.skip_number()?;
            write_number(reader.text_since(start), text);
            Ok(())
        }
        _ => {
            text.push_str(reader.raw()?.trim_ascii_end());
            Ok(())
        }
    }
}

fn write_object(reader: &mut Reader<'_>, depth: usize, text: &mut String) -> Result<()> {
    text.push('{');
    let start = text.len();
    let mut members: Vec<(String, Range<usize>)> = Vec::new();
    reader.object(|reader, key| {
        if !members.is_empty() {
            text.push(',');
        }
        let from = text.len();
        write_string(text, &key.name);
        text.push(':');
        write_value(reader, depth + 1, text)?;
        members.push((key.name.into_owned(), from..text.len()));
        Ok(())
    })?;
    // Clients usually write maps in this order already; then nothing is copied.
    if !members.is_sorted_by(|(one, _), (other, _)| one <= other) {
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut sorted = String::with_capacity(text.len() - start);
        for (_, range) in members {
            if !sorted.is_empty() {
                sorted.push(',');
            }
            sorted.push_str(text.get(range).unwrap_or_default());
        }
        text.truncate(start);
        text.push_str(&sorted);
    }
    text.push('}');
    Ok(())
}

/// A number as digits and a power of ten, so that `100`, `1e2` and `100.0` are equal.
fn write_number(raw: &str, text: &mut String) {
    let (mantissa, exponent) = raw.split_once(['e', 'E']).unwrap_or((raw, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        text.push('0');
        return;
    }
    let dropped = i64::try_from(digits.len() - significant.len()).ok();
    let after_point = i64::try_from(fraction.len()).ok();
    let exponent = exponent.parse::<i64>().ok().zip(dropped).zip(after_point).and_then(
        |((exponent, dropped), after_point)| exponent.checked_add(dropped)?.checked_sub(after_point),
    );
    let number = match exponent {
        Some(exponent) => format!("{sign}{significant}e{exponent}"),
        // An exponent too large for any number: the text is compared as it is.
        None => raw.to_owned(),
    };
    text.push_str(&number);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn same(one: &str, other: &str) -> bool {
        canonical(one).unwrap() == canonical(other).unwrap()
    }

    #[test]
    fn one_value_has_one_text_however_it_is_written() {
        for (one, other) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("-0.0", "0"),
            ("0.10", "1E-1"),
            ("12345678901234567890.10", "12345678901234567890.1"),
            ("\"\\u00e4\\/\"", "\"ä/\""),
            ("{\"b\": 1, \"a\": [ 1 , null ]}", "{\"a\":[1,null],\"b\":1}"),
            ("{\"b\":{\"d\":1,\"c\":2},\"a\":0}", "{\"a\":0,\"b\":{\"c\":2,\"d\":1}}"),
        ] {
            assert!(same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn different_values_have_different_texts() {
        let values = [
            "1",
            "-1",
            "10",
            "0",
            "1.5",
            "\"1\"",
            "null",
            "true",
            "false",
            "[]",
            "{}",
            "[1]",
            "[[1]]",
            "[1,1]",
            "[1,[1]]",
            "{\"a\":1}",
            "{\"a\":\"1\"}",
            "{\"a\":{}}",
            "\"\"",
            "\"[]\"",
            "9007199254740993",
            "9007199254740992",
            "1e99999999999999999999",
            "1e99999999999999999998",
        ];
        for (at, one) in values.iter().enumerate() {
            for other in &values[at + 1..] {
                assert!(!same(one, other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn deeply_nested_text_is_compared_within_the_stack() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(same(&deep("1"), &deep("1")));
        assert!(!same(&deep("1"), &deep("2")));
        assert!(canonical(&"[".repeat(100_000)).is_err());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-d]{1,2}", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// The same value with its members reversed and whitespace added.
    fn reversed(value: &Value) -> String {
        match value {
            Value::Array(elements) => {
                format!("[ {} ]", elements.iter().map(reversed).collect::<Vec<_>>().join(" , "))
            }
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    format!("{} : {}", Value::from(name.as_str()), reversed(value))
                };
                format!("{{ {} }}", members.iter().rev().map(member).collect::<Vec<_>>().join(" , "))
            }
            other => other.to_string(),
        }
    }

    proptest! {
        #[test]
        fn the_order_of_members_and_space_do_not_count(value in any_value()) {
            let text = canonical(&value.to_string()).unwrap();
            prop_assert_eq!(&text, &canonical(&reversed(&value)).unwrap());
            // It equals the value, and is its own canonical text.
            prop_assert_eq!(canonical(&text).unwrap(), text);
        }

        #[test]
        fn two_values_have_one_text_exactly_if_they_are_equal(one in any_value(), other in any_value()) {
            prop_assert_eq!(same(&one.to_string(), &other.to_string()), one == other);
        }

        #[test]
        fn no_text_makes_a_panic(text in "[\\[\\]{}\",:a1.eE+\\\\ -]{0,40}") {
            let _ = canonical(&text);
        }
    }
}
