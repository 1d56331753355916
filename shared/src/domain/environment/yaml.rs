//! YAML as a tree that knows where each part of it stands.
//!
//! Scalars are read as the client reads them, with yaml.v3: the words of YAML 1.2 for `null` and booleans, and integers in any
//! base that Go writes them in. Aliases are refused, as there.

use saphyr_parser::{Event, Parser, ScalarStyle, Span as Marks, Tag};

use super::{DEFINITION_BYTES_MAX, Position, Span};

/// How deep nodes may lie in each other.
const DEPTH_MAX: usize = 64;

/// Nodes in one text.
const NODES_MAX: usize = 50_000;

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands, without the indicator of a block scalar.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
    /// How it is written.
    pub style: Style,
}

/// How a node is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// On lines of its own, or without quotes.
    Plain,
    /// In quotes.
    Quoted,
    /// Below a `|` or a `>`.
    Block,
    /// In brackets or braces.
    Flow,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, as JSON writes it.
    Number(String),
    /// A text.
    String(String),
    /// A sequence.
    Array(Vec<Node>),
    /// A mapping, in its order. A key may stand there twice.
    Object(Vec<(Key, Node)>),
}

impl Kind {
    /// The kind in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The text.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// Why a text is none that can be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where.
    pub span: Span,
    /// Why.
    pub why: String,
}

/// Reads a text; `None` for one that holds nothing.
///
/// # Errors
/// [`Unreadable`].
pub fn parse(text: &str) -> Result<Option<Node>, Unreadable> {
    if text.len() > DEFINITION_BYTES_MAX {
        let why = format!("the text has {} bytes, and {DEFINITION_BYTES_MAX} are the most", text.len());
        return Err(Unreadable { span: Span::default(), why });
    }
    Reader::new(text).document()
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    /// The byte at which each character begins, and the end; empty where each is a byte.
    bytes: Vec<usize>,
    nodes: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let bytes = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect()
        };
        Self { events: Parser::new_from_str(text), bytes, nodes: 0, depth: 0 }
    }

    fn position(&self, mark: saphyr_parser::Marker) -> Position {
        let byte = self.bytes.get(mark.index()).or(self.bytes.last()).copied().unwrap_or(mark.index());
        Position { line: mark.line(), column: mark.col() + 1, byte }
    }

    fn span(&self, marks: Marks) -> Span {
        Span { begin: self.position(marks.start), end: self.position(marks.end) }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Unreadable> {
        match self.events.next() {
            Some(Ok((event, marks))) => Ok((event, self.span(marks))),
            Some(Err(error)) => {
                let at = self.position(*error.marker());
                Err(Unreadable { span: Span { begin: at, end: at }, why: error.info().to_owned() })
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn document(mut self) -> Result<Option<Node>, Unreadable> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(Unreadable { span, why: "a definition is one document".to_owned() });
                }
                Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
                event => root = Some(self.node(event, span)?),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span) -> Result<Node, Unreadable> {
        let refuse = |why: String| Err(Unreadable { span, why });
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return refuse(format!("there are more than {NODES_MAX} values"));
        }
        if self.depth > DEPTH_MAX {
            return refuse(format!("values are nested deeper than {DEPTH_MAX}"));
        }
        match event {
            Event::Scalar(text, style, _, tag) => {
                let (style, is_plain) = match style {
                    ScalarStyle::Plain => (Style::Plain, true),
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => (Style::Quoted, false),
                    ScalarStyle::Literal | ScalarStyle::Folded => (Style::Block, false),
                };
                let kind = match resolve(text.into_owned(), is_plain, tag.as_deref()) {
                    Ok(kind) => kind,
                    Err(why) => return refuse(why),
                };
                Ok(Node { span, kind, style })
            }
            Event::SequenceStart(..) => {
                let mut items: Vec<Node> = Vec::new();
                self.depth += 1;
                let end = loop {
                    match self.next()? {
                        (Event::SequenceEnd, end) => break end,
                        (event, span) => items.push(self.node(event, span)?),
                    }
                };
                self.depth -= 1;
                let last = items.last().map(|item| item.span.end);
                Ok(whole(span, end, last, Kind::Array(items)))
            }
            Event::MappingStart(..) => {
                let mut members: Vec<(Key, Node)> = Vec::new();
                self.depth += 1;
                let end = loop {
                    let key = match self.next()? {
                        (Event::MappingEnd, end) => break end,
                        (event, span) => self.node(event, span)?,
                    };
                    let Kind::String(text) = key.kind else {
                        let why =
                            format!("the keys of an object are strings, and this is {}", key.kind.name());
                        return Err(Unreadable { span: key.span, why });
                    };
                    let (event, span) = self.next()?;
                    members.push((Key { text, span: key.span }, self.node(event, span)?));
                };
                self.depth -= 1;
                let last = members.last().map(|(_, value)| value.span.end);
                Ok(whole(span, end, last, Kind::Object(members)))
            }
            Event::Alias(_) => refuse("aliases are not supported".to_owned()),
            event => refuse(format!("{event:?} is out of place")),
        }
    }
}

/// A collection: in brackets up to the closing one, or on lines of its own up to the end of its last part.
fn whole(start: Span, end: Span, last: Option<Position>, kind: Kind) -> Node {
    let is_flow = start.end.byte > start.begin.byte;
    // The parser counts what follows a closing brace as a part of it.
    let closed = Position { column: end.begin.column + 1, byte: end.begin.byte + 1, ..end.begin };
    let stop = if is_flow { closed } else { last.unwrap_or(start.end) };
    let style = if is_flow { Style::Flow } else { Style::Plain };
    Node { span: Span { begin: start.begin, end: stop }, kind, style }
}

/// What a scalar stands for, as yaml.v3 resolves it.
fn resolve(text: String, is_plain: bool, tag: Option<&Tag>) -> Result<Kind, String> {
    match tag {
        Some(tag) if tag.is_yaml_core_schema() => match tag.suffix.as_str() {
            "str" | "binary" | "timestamp" => return Ok(Kind::String(text)),
            "null" | "bool" | "int" | "float" => {}
            other => return Err(format!("the tag !!{other} is not supported on a scalar")),
        },
        Some(_) => return Ok(Kind::String(text)),
        None if !is_plain => return Ok(Kind::String(text)),
        None => {}
    }
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Kind::Null),
        "true" | "True" | "TRUE" => return Ok(Kind::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Kind::Bool(false)),
        _ => {}
    }
    match number(&text) {
        Some(Number::Finite(number)) => Ok(Kind::Number(number)),
        Some(Number::Other) => Err(format!("{text} is no number that JSON knows: put it in quotes")),
        None => Ok(Kind::String(text)),
    }
}

enum Number {
    Finite(String),
    /// Infinite, or not a number.
    Other,
}

fn number(text: &str) -> Option<Number> {
    let first = text.bytes().next()?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    let unsigned = text.trim_start_matches(['+', '-']);
    if text.len() - unsigned.len() > 1 {
        return None;
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Some(Number::Other);
    }
    let is_negative = text.starts_with('-');
    if let Some(magnitude) = integer(unsigned) {
        let sign = if is_negative && magnitude > 0 { "-" } else { "" };
        // Beyond 64 bits it is read as a float, as below.
        let fits = if is_negative { magnitude <= 1 << 63 } else { magnitude <= u128::from(u64::MAX) };
        if fits {
            return Some(Number::Finite(format!("{sign}{magnitude}")));
        }
    }
    if !is_float(unsigned) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if !value.is_finite() {
        return Some(Number::Other);
    }
    serde_json::Number::from_f64(value).map(|number| Number::Finite(number.to_string()))
}

/// A whole number without its sign: decimal, or `0x`, `0o`, `0b` and a leading `0` for octal. Underscores may part digits.
fn integer(text: &str) -> Option<u128> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..)?, 16),
        [b'0', b'o' | b'O', ..] => (text.get(2..)?, 8),
        [b'0', b'b' | b'B', ..] => (text.get(2..)?, 2),
        [b'0', _, ..] => (text.get(1..)?, 8),
        _ => (text, 10),
    };
    if digits.starts_with(['+', '-', '_']) || digits.ends_with('_') {
        return None;
    }
    u128::from_str_radix(&digits.replace('_', ""), radix).ok()
}

/// Whether it is digits with at most one point among or before them, and perhaps an exponent.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(text: &str) -> Kind {
        let text = format!("k: {text}\n");
        match parse(&text).unwrap().unwrap().kind {
            Kind::Object(mut members) => members.pop().unwrap().1.kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn scalars_are_what_the_client_takes_them_for() {
        for (text, number) in [
            ("12", "12"),
            ("-12", "-12"),
            ("+3", "3"),
            ("0777", "511"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("0b101", "5"),
            ("1_000", "1000"),
            ("1.5", "1.5"),
            (".5", "0.5"),
            ("2.", "2.0"),
            ("1e3", "1000.0"),
            ("-0", "0"),
            ("18446744073709551615", "18446744073709551615"),
        ] {
            assert_eq!(scalar(text), Kind::Number(number.to_owned()), "{text}");
        }
        for text in [
            "yes",
            "on",
            "1.2.3",
            "0o9",
            "1e",
            ".",
            "--1",
            "2026-11-28",
            "'12'",
            "\"true\"",
            "!!str 12",
            "12a",
        ] {
            assert!(matches!(scalar(text), Kind::String(_)), "{text}");
        }
        assert_eq!(scalar("~"), Kind::Null);
        assert_eq!(scalar(""), Kind::Null);
        assert_eq!(scalar("True"), Kind::Bool(true));
        assert!(parse("k: .inf").unwrap_err().why.contains("no number that JSON knows"));
    }

    #[test]
    fn each_part_knows_where_it_stands() {
        let text = "é: [a, {b: 1}] # comment\nc:\n  d: |\n    x\n  e: 'y'\n";
        let root = parse(text).unwrap().unwrap();
        let Kind::Object(members) = &root.kind else { panic!("{root:?}") };
        let at = |span: Span| &text[span.begin.byte..span.end.byte];
        assert_eq!(at(members[0].0.span), "é");
        assert_eq!(at(members[0].1.span), "[a, {b: 1}]");
        assert_eq!(members[0].1.span.begin, Position { line: 1, column: 4, byte: 4 });
        let Kind::Object(inner) = &members[1].1.kind else { panic!("{root:?}") };
        assert_eq!(inner[0].1.style, Style::Block);
        assert_eq!(at(inner[1].1.span), "'y'");
        assert_eq!(root.span.end.line, 5);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_place() {
        for (text, words) in [
            ("a: &x 1\nb: *x\n", "aliases"),
            ("a: 1\n---\nb: 2\n", "one document"),
            ("1: a\n", "keys of an object"),
            ("a: [\n", ""),
            ("a: 'x\n", ""),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.why.contains(words), "{text:?}: {refused:?}");
        }
        let deep = format!("{}{}", "[".repeat(DEPTH_MAX + 2), "]".repeat(DEPTH_MAX + 2));
        assert!(parse(&deep).unwrap_err().why.contains("deeper"));
        assert!(parse(&"a".repeat(DEFINITION_BYTES_MAX + 1)).unwrap_err().why.contains("bytes"));
        assert_eq!(parse("# nothing\n").unwrap(), None);
    }
}
