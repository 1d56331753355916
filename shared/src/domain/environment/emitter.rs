//! The text of `fn::toYAML`, byte for byte in the format of the client's library (yaml.v3 with an indent of
//! four).
//!
//! Texts that are hashed or compared have to be the same in the server and the client, even where the format
//! is odd: numbers are texts, keys are in natural order, and what YAML 1.1 reads as a boolean is in quotes.

use std::cmp::Ordering;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::value::{Kind, Value};
use super::yaml::number;

const INDENT: usize = 4;

/// The longest text, in bytes. Indentation can make it longer than its values.
const BYTES_MAX: usize = 8 << 20;

/// The longest key without a `?` before it, in bytes.
const SIMPLE_KEY_MAX: usize = 128;

/// The length of a line of base64.
const BASE64_LINE: usize = 70;

/// A value as YAML text.
///
/// # Errors
/// If the text is too long.
pub(super) fn yaml(value: &Value) -> Result<String, String> {
    let mut emitter = Emitter { out: String::new(), column: 0, is_after_blank: true, is_indenting: true };
    emitter.node(value, None, Within::Document)?;
    emitter.line(0);
    Ok(emitter.out)
}

/// The parent of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Document,
    Sequence,
    Mapping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
}

struct Emitter {
    out: String,
    column: usize,
    /// Whether the last character separates what is before it from what follows.
    is_after_blank: bool,
    /// Whether the line has only indicators so far.
    is_indenting: bool,
}

/// The indentation of the content of a node.
fn deeper(indent: Option<usize>, within: Within, is_scalar: bool) -> usize {
    match (indent, within) {
        (None, _) if is_scalar => INDENT,
        (None, _) => 0,
        // The dash counts as indentation.
        (Some(indent), Within::Sequence) => indent + 2,
        (Some(indent), _) => (indent + INDENT) / INDENT * INDENT,
    }
}

impl Emitter {
    fn push(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn end_line(&mut self) {
        self.out.push('\n');
        (self.column, self.is_indenting) = (0, true);
    }

    fn line(&mut self, indent: usize) {
        let is_there =
            self.is_indenting && (self.column < indent || (self.column == indent && self.is_after_blank));
        if !is_there {
            self.end_line();
        }
        while self.column < indent {
            self.push(' ');
        }
        self.is_after_blank = true;
    }

    fn indicator(&mut self, text: &str, needs_blank: bool, is_indentation: bool) {
        if needs_blank && !self.is_after_blank {
            self.push(' ');
        }
        text.chars().for_each(|c| self.push(c));
        self.is_after_blank = false;
        self.is_indenting &= is_indentation;
    }

    fn node(&mut self, value: &Value, indent: Option<usize>, within: Within) -> Result<(), String> {
        if self.out.len() > BYTES_MAX {
            return Err("the text is too long".to_owned());
        }
        match &value.kind {
            _ if value.is_unknown => self.scalar(b"[unknown]", indent, within),
            Kind::Null => self.styled("null", Style::Plain, deeper(indent, within, true)),
            Kind::Bool(value) => self.styled(&value.to_string(), Style::Plain, deeper(indent, within, true)),
            Kind::Number(text) => self.scalar(text.as_bytes(), indent, within),
            Kind::String(text) => self.scalar(text, indent, within),
            Kind::Array(items) if items.is_empty() => self.indicator("[]", true, false),
            Kind::Array(items) => {
                let inner = deeper(indent, within, false);
                for item in items.iter() {
                    self.line(inner);
                    self.indicator("-", true, true);
                    self.node(item, Some(inner), Within::Sequence)?;
                }
            }
            Kind::Object(_) => {
                let keys = value.keys();
                if keys.is_empty() {
                    self.indicator("{}", true, false);
                }
                let inner = deeper(indent, within, false);
                for key in in_order(keys.into_iter().collect()) {
                    self.line(inner);
                    let scalar = Scalar::new(&key);
                    let is_simple = !scalar.is_multiline && key.len() <= SIMPLE_KEY_MAX;
                    if is_simple {
                        self.styled(&key, scalar.style(true), inner);
                        self.indicator(":", false, false);
                    } else {
                        self.indicator("?", true, true);
                        self.styled(&key, scalar.style(false), deeper(Some(inner), Within::Mapping, true));
                        self.line(inner);
                        self.indicator(":", true, true);
                    }
                    if let Some(value) = value.property(&key) {
                        self.node(&value, Some(inner), Within::Mapping)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn scalar(&mut self, text: &[u8], indent: Option<usize>, within: Within) {
        let inner = deeper(indent, within, true);
        match std::str::from_utf8(text) {
            Ok(text) => self.styled(text, Scalar::new(text).style(false), inner),
            Err(_) => {
                let base64 = STANDARD.encode(text);
                let lines: Vec<&str> = (0..base64.len())
                    .step_by(BASE64_LINE)
                    .filter_map(|at| base64.get(at..(at + BASE64_LINE).min(base64.len())))
                    .collect();
                self.indicator("!!binary", true, false);
                match lines.as_slice() {
                    [one] if one.len() < BASE64_LINE => self.styled(one, Style::Plain, inner),
                    lines => self.styled(&(lines.join("\n") + "\n"), Style::Literal, inner),
                }
            }
        }
    }

    fn styled(&mut self, text: &str, style: Style, indent: usize) {
        match style {
            // It has its own indicator for the end of its last line.
            Style::Literal => return self.literal(text, indent),
            Style::Plain => {
                if !text.is_empty() && !self.is_after_blank {
                    self.push(' ');
                }
                text.chars().for_each(|c| self.push(c));
            }
            Style::Single => self.single(text, indent),
            Style::Double => self.double(text),
        }
        (self.is_after_blank, self.is_indenting) = (false, false);
    }

    /// A single-quoted text. Its line breaks are not line feeds.
    fn single(&mut self, text: &str, indent: usize) {
        self.indicator("'", true, false);
        let mut is_after_break = false;
        for c in text.chars() {
            if is_break(c) {
                self.out.push(c);
                (self.column, self.is_indenting) = (0, true);
                is_after_break = true;
                continue;
            }
            if std::mem::take(&mut is_after_break) {
                self.line(indent);
            }
            if c == '\'' {
                self.push('\'');
            }
            self.push(c);
            self.is_indenting = false;
        }
        self.indicator("'", false, false);
    }

    fn double(&mut self, text: &str) {
        self.indicator("\"", true, false);
        let is_marked = text.starts_with('\u{feff}');
        for c in text.chars() {
            if is_printable(c) && !is_marked && !is_break(c) && !matches!(c, '"' | '\\') {
                self.push(c);
                continue;
            }
            let escaped = match c {
                '\0' => "0".to_owned(),
                '\u{7}' => "a".to_owned(),
                '\u{8}' => "b".to_owned(),
                '\t' => "t".to_owned(),
                '\n' => "n".to_owned(),
                '\u{b}' => "v".to_owned(),
                '\u{c}' => "f".to_owned(),
                '\r' => "r".to_owned(),
                '\u{1b}' => "e".to_owned(),
                '"' | '\\' => c.to_string(),
                '\u{85}' => "N".to_owned(),
                '\u{a0}' => "_".to_owned(),
                '\u{2028}' => "L".to_owned(),
                '\u{2029}' => "P".to_owned(),
                c if u32::from(c) <= 0xff => format!("x{:02X}", u32::from(c)),
                c if u32::from(c) <= 0xffff => format!("u{:04X}", u32::from(c)),
                c => format!("U{:08X}", u32::from(c)),
            };
            self.push('\\');
            escaped.chars().for_each(|c| self.push(c));
        }
        self.indicator("\"", false, false);
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", true, false);
        if text.starts_with(|c: char| c == ' ' || is_break(c)) {
            self.indicator(&INDENT.to_string(), false, false);
        }
        let mut last = text.chars().rev().map(is_break);
        match (last.next(), last.next()) {
            (Some(true), Some(false)) => {}
            (Some(true), _) => self.indicator("+", false, false),
            _ => self.indicator("-", false, false),
        }
        // A text that starts with a line break ends this line with it. Reading it back drops that break, as
        // in yaml.v3.
        self.is_after_blank = true;
        let mut is_after_break = true;
        for c in text.chars() {
            if c == '\n' {
                self.end_line();
                is_after_break = true;
            } else if is_break(c) {
                self.out.push(c);
                (self.column, self.is_indenting) = (0, true);
                is_after_break = true;
            } else {
                if std::mem::take(&mut is_after_break) {
                    self.line(indent);
                }
                self.push(c);
                self.is_indenting = false;
            }
        }
    }
}

/// Whether yaml.v3 reads the character as the end of a line.
fn is_break(c: char) -> bool {
    matches!(c, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// The properties that decide the style of a text.
struct Scalar<'t> {
    text: &'t str,
    is_multiline: bool,
    may_be_plain: bool,
    may_be_single: bool,
    may_be_literal: bool,
}

impl<'t> Scalar<'t> {
    fn new(text: &'t str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let mut may_be_plain = !text.starts_with("---") && !text.starts_with("...");
        let (mut is_special, mut has_tab, mut is_multiline) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let mut before: Option<char> = None;
        for (index, &c) in characters.iter().enumerate() {
            let is_followed_by_blank = characters.get(index + 1).is_none_or(|c| matches!(c, ' ' | '\t'));
            let is_indicator = match (before, c) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                    | '`',
                ) => true,
                (None, '?' | ':' | '-') | (Some(_), ':') => is_followed_by_blank,
                (Some(before), '#') => matches!(before, ' ' | '\t' | '\0') || is_break(before),
                _ => false,
            };
            may_be_plain &= !is_indicator;
            has_tab |= c == '\t';
            is_special |= c != '\t' && !is_printable(c);
            is_multiline |= is_break(c);
            break_space |= c == ' ' && before.is_some_and(is_break);
            space_break |= is_break(c) && before == Some(' ');
            before = Some(c);
        }
        let is_edge = |c: &char| *c == ' ' || is_break(*c);
        may_be_plain &= !characters.first().is_some_and(is_edge) && !characters.last().is_some_and(is_edge);
        let is_bad = space_break || is_special;
        Self {
            text,
            is_multiline,
            may_be_plain: may_be_plain && !is_multiline && !break_space && !is_bad && !has_tab,
            may_be_single: !break_space && !is_bad && !has_tab,
            may_be_literal: !is_bad && !text.is_empty() && !text.ends_with(' '),
        }
    }

    fn style(&self, is_simple_key: bool) -> Style {
        let wanted = if self.text.contains('\n') {
            Style::Literal
        } else if is_string(self.text) {
            Style::Plain
        } else {
            Style::Double
        };
        match wanted {
            Style::Literal if self.may_be_literal && !is_simple_key => Style::Literal,
            Style::Plain if self.may_be_plain => Style::Plain,
            Style::Plain if self.may_be_single => Style::Single,
            _ => Style::Double,
        }
    }
}

/// Whether an unquoted text is a string in YAML 1.2, and also in YAML 1.1, which has more booleans and
/// numbers.
fn is_string(text: &str) -> bool {
    let is_word = matches!(
        text,
        "" | "~" | "null" | "Null" | "NULL" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE"
    );
    let is_old_boolean = matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    );
    !is_word && !is_old_boolean && number(text).is_none() && !is_sexagesimal(text) && !is_timestamp(text)
}

/// Whether a text is a number in base 60, such as `1:30`.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let is_part = |part: &&str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    };
    first.starts_with(|c: char| c.is_ascii_digit())
        && is_digits(first)
        && is_digits(fraction)
        && !rest.is_empty()
        && rest.iter().all(is_part)
}

/// Whether a text is a date, or a date with a time.
fn is_timestamp(text: &str) -> bool {
    fn whole(text: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u32> {
        (digits.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit()))
            .then(|| text.parse().ok())?
    }
    fn date(text: &str) -> Option<()> {
        let [year, month, day] = <[_; 3]>::try_from(text.split('-').collect::<Vec<_>>()).ok()?;
        let (year, month, day) = (whole(year, 4..=4)?, whole(month, 1..=2)?, whole(day, 1..=2)?);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        (1..=days).contains(&day).then_some(())
    }
    fn time(text: &str) -> Option<()> {
        let [hour, minute, second] = <[_; 3]>::try_from(text.split(':').collect::<Vec<_>>()).ok()?;
        let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, "0"));
        let is_time = whole(hour, 1..=2)? < 24 && whole(minute, 1..=2)? < 60 && whole(second, 1..=2)? < 60;
        (is_time && !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit())).then_some(())
    }
    fn zoned(text: &str) -> Option<()> {
        if let Some(text) = text.strip_suffix('Z') {
            return time(text);
        }
        let at = text.rfind(['+', '-'])?;
        let (hour, minute) = text.get(at + 1..)?.split_once(':')?;
        let is_zone = whole(hour, 2..=2)? <= 24 && whole(minute, 2..=2)? < 60;
        is_zone.then(|| time(text.get(..at).unwrap_or_default()))?
    }
    let read = match text.find(['T', 't', ' ']) {
        None => date(text),
        Some(at) => {
            let (day, rest) = text.split_at(at);
            date(day).and(match rest.split_at(1) {
                (" ", rest) => time(rest),
                (_, rest) => zoned(rest),
            })
        }
    };
    read.is_some()
}

/// Sorts keys as yaml.v3 does: numbers within them by value, and letters after other characters.
///
/// The comparison is not a total order, so the algorithm must not depend on one.
fn in_order(mut keys: Vec<Rc<str>>) -> Vec<Rc<str>> {
    if keys.len() < 2 {
        return keys;
    }
    let right = in_order(keys.split_off(keys.len() / 2));
    let mut left = in_order(keys).into_iter().peekable();
    let mut right = right.into_iter().peekable();
    let mut sorted = Vec::new();
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        let next = if compare(second, first) == Ordering::Less { right.next() } else { left.next() };
        sorted.extend(next);
    }
    sorted.extend(left.chain(right));
    sorted
}

fn compare(first: &str, second: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
    let is_digit = |c: &char| if c.is_ascii() { c.is_ascii_digit() } else { c.is_numeric() };
    let mut is_after_digit = false;
    for (index, (x, y)) in a.iter().zip(&b).enumerate() {
        if x == y {
            is_after_digit = is_digit(x);
            continue;
        }
        match (x.is_alphabetic(), y.is_alphabetic()) {
            (true, true) => return x.cmp(y),
            (is_letter @ true, false) | (is_letter @ false, true) => {
                let is_less = if is_after_digit { is_letter } else { !is_letter };
                return if is_less { Ordering::Less } else { Ordering::Greater };
            }
            (false, false) => {}
        }
        let is_within_number = || a.iter().take(index).rev().take_while(|c| is_digit(c)).any(|c| *c != '0');
        let start = i64::from((*x == '0' || *y == '0') && is_within_number());
        let count = |text: &[char]| {
            let digits: Vec<&char> = text.iter().skip(index).take_while(|c| is_digit(c)).collect();
            let value = digits.iter().fold(start, |value, c| {
                value.wrapping_mul(10).wrapping_add(i64::from(u32::from(**c)) - i64::from(u32::from('0')))
            });
            (value, digits.len())
        };
        return count(&a).cmp(&count(&b)).then(x.cmp(y));
    }
    a.len().cmp(&b.len())
}
