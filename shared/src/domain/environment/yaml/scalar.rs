//! The values of scalars, as yaml.v3 resolves them.

use saphyr_parser::Tag;

use super::node::Kind;

/// The value of a scalar, as yaml.v3 resolves it.
pub(super) fn resolve(text: String, is_plain: bool, tag: Option<&Tag>) -> Result<Kind, String> {
    let named = match tag {
        Some(tag) if tag.is_yaml_core_schema() => Some(tag.suffix.as_str()),
        // `!` alone has no effect.
        Some(tag) if tag.handle.is_empty() && matches!(tag.suffix.as_str(), "" | "!") => None,
        Some(tag) if tag.handle == "!" && tag.suffix.is_empty() => None,
        // A custom tag.
        Some(_) => return Ok(Kind::String(text)),
        None => None,
    };
    match named {
        Some("null" | "bool" | "int" | "float") => {}
        Some("binary") => {
            return match base64(&text) {
                Some(_) => Ok(Kind::String(text)),
                None => Err("what is tagged !!binary is not base64".to_owned()),
            };
        }
        Some("timestamp") if !is_timestamp(&text) => {
            return Err("what is tagged !!timestamp is not a date or a time".to_owned());
        }
        Some(_) => return Ok(Kind::String(text)),
        None if !is_plain => return Ok(Kind::String(text)),
        None => {}
    }
    let (kind, is) = match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => (Kind::Null, "null"),
        "true" | "True" | "TRUE" => (Kind::Bool(true), "bool"),
        "false" | "False" | "FALSE" => (Kind::Bool(false), "bool"),
        _ => match number(&text) {
            Some(Number::Integer(number)) if named == Some("float") => match number.parse::<i64>() {
                #[expect(clippy::cast_precision_loss, reason = "it is tagged as a float")]
                Ok(number) => (Kind::Number(float(number as f64)), "float"),
                Err(_) => (Kind::Number(number), "int"),
            },
            Some(Number::Integer(number)) => (Kind::Number(number), "int"),
            Some(Number::Float(number)) => (Kind::Number(float(number)), "float"),
            Some(Number::Other) => {
                return Err(format!("{text} is not a number that JSON knows: put it in quotes"));
            }
            None => (Kind::String(text), "str"),
        },
    };
    match named {
        Some(named) if named != is => Err(format!("this is tagged !!{named}, and is {}", kind.name())),
        _ => Ok(kind),
    }
}

/// Decodes base64 like Go: line breaks are ignored, and unused bits may be set.
pub(in crate::domain::environment) fn base64(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    use base64::Engine as _;
    use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
    const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    const GO: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, CONFIG);
    let digits: Vec<u8> =
        text.as_ref().iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    GO.decode(digits).ok()
}

/// Whether a text starts with a date, perhaps with a time after it.
fn is_timestamp(text: &str) -> bool {
    let date = text.split(['T', 't', ' ']).next().unwrap_or_default();
    let mut parts = date.split('-').map(str::parse::<u16>);
    let parts = [parts.next(), parts.next(), parts.next(), parts.next()];
    matches!(parts, [Some(Ok(_)), Some(Ok(1..=12)), Some(Ok(1..=31)), None]) && date.find('-') == Some(4)
}

#[derive(Debug)]
pub(in crate::domain::environment) enum Number {
    /// A whole number in decimal.
    Integer(String),
    Float(f64),
    /// Infinity, or not a number.
    Other,
}

/// The number that yaml.v3 reads in a plain scalar.
pub(in crate::domain::environment) fn number(text: &str) -> Option<Number> {
    let first = text.bytes().next()?;
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Some(Number::Other);
    }
    let plain = match first {
        b'.' => text.to_owned(),
        b'0'..=b'9' | b'+' | b'-' => text.replace('_', ""),
        _ => return None,
    };
    if first != b'.'
        && let Some(integer) = integer(&plain)
    {
        return Some(Number::Integer(integer));
    }
    // A number beyond the range of a float is a text.
    is_float(&plain).then(|| plain.parse::<f64>().ok())?.filter(|value| value.is_finite()).map(Number::Float)
}

/// A whole number of up to 64 bits, with or without a sign, converted to decimal. It is written in decimal,
/// with the prefix `0x`, `0o` or `0b`, or in octal with the prefix `0`.
fn integer(text: &str) -> Option<String> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' | b'-' => text.split_at(1),
        _ => ("", text),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (digits.get(2..)?, 16),
        [b'0', b'o' | b'O', ..] => (digits.get(2..)?, 8),
        [b'0', b'b' | b'B', ..] => (digits.get(2..)?, 2),
        [b'0', _, ..] => (digits.get(1..)?, 8),
        _ => (digits, 10),
    };
    if digits.starts_with(['+', '-']) {
        // yaml.v3 accepts a sign after these two prefixes too.
        let lower = text.starts_with("0b") || text.starts_with("0o");
        return lower.then(|| i64::from_str_radix(digits, radix).ok())?.map(|value| value.to_string());
    }
    if sign.is_empty() {
        return u64::from_str_radix(digits, radix).ok().map(|value| value.to_string());
    }
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(|value| value.to_string())
}

/// Whether a text is digits with at most one point among or before them, and perhaps an exponent.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, part)) => is_digits(whole) && is_digits(part) && !(whole.is_empty() && part.is_empty()),
        None => is_digits(mantissa) && !mantissa.is_empty(),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        is_digits(digits) && !digits.is_empty()
    });
    mantissa_fits && exponent_fits
}

/// A float with the fewest digits, as in Go (`strconv.FormatFloat(value, 'g', -1, 64)`): with an exponent of
/// at least two digits if the number has more than six digits before the point, or more than three zeros
/// after it.
fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}
