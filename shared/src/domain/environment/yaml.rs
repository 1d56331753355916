//! YAML as a tree with positions.
//!
//! Scalars have the same meaning as in the client, which uses yaml.v3: `null` and booleans as in YAML 1.2,
//! and numbers in all of Go's notations. Aliases are refused, as in the client. Text that yaml.v3 cannot
//! read, or reads differently, is refused too: the client edits the stored text and has to find what it
//! wrote.

mod characters;

use characters::{Characters, stray_tab, stray_tab_within};
use saphyr_parser::{Event, Parser, ScalarStyle, Span as Marks, Tag};

use super::{DEFINITION_BYTES_MAX, Position, Span};

/// The deepest nesting of nodes.
const DEPTH_MAX: usize = 64;

/// Nodes in one text, at most.
const NODES_MAX: usize = 50_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The place of the node. A block scalar starts at its indicator.
    pub span: Span,
    pub kind: Kind,
    pub style: Style,
}

/// The style of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// On its own lines, or unquoted.
    Plain,
    /// Quoted.
    Quoted,
    /// Below a `|` or a `>`.
    Block,
    /// In brackets or braces.
    Flow,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Null,
    Bool(bool),
    /// A number, as written in JSON.
    Number(String),
    String(String),
    Array(Vec<Node>),
    /// A mapping, in order. A key may occur twice.
    Object(Vec<(Key, Node)>),
}

impl Kind {
    /// The type as text, for messages.
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
    pub text: String,
    pub span: Span,
    pub style: Style,
}

/// Why a text cannot be parsed, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub span: Span,
    pub why: String,
}

/// Parses a text; `None` for an empty one.
///
/// # Errors
/// The first error.
pub fn parse(text: &str) -> Result<Option<Node>, Unreadable> {
    read(text).map_err(|mut faults| faults.swap_remove(0))
}

/// Parses a text; `None` for an empty one.
///
/// # Errors
/// All errors, at least one.
pub fn read(text: &str) -> Result<Option<Node>, Vec<Unreadable>> {
    if text.len() > DEFINITION_BYTES_MAX {
        let why =
            format!("the text has {} bytes, and at most {DEFINITION_BYTES_MAX} are allowed", text.len());
        return Err(vec![Unreadable { span: Span::default(), why }]);
    }
    if let Some(foreign) = foreign_character(text) {
        return Err(vec![foreign]);
    }
    let first_line = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    if first_line.is_some_and(|line| line.starts_with("...")) {
        let why = "the text begins with the end of a document".to_owned();
        return Err(vec![Unreadable { span: Span::default(), why }]);
    }
    let mut reader = Reader::new(text);
    let root = reader.document();
    let mut faults = std::mem::take(&mut reader.faults);
    match root {
        Ok(root) if faults.is_empty() => Ok(root),
        Ok(_) => Err(faults),
        Err(fault) => {
            faults.push(fault);
            Err(faults)
        }
    }
}

/// The first character that yaml.v3 refuses or reads as the end of a line.
fn foreign_character(text: &str) -> Option<Unreadable> {
    let (mut line, mut column) = (1, 1);
    for (byte, c) in text.char_indices() {
        let why = match c {
            '\n' => {
                (line, column) = (line + 1, 1);
                continue;
            }
            '\t' | '\r' | ' '..='~' => None,
            '\u{85}' | '\u{2028}' | '\u{2029}' => Some("clients take it for the end of a line"),
            '\u{feff}' if byte == 0 => None,
            '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => {
                Some("clients cannot read it")
            }
            _ => None,
        };
        if let Some(why) = why {
            let at = Position { line, column, byte };
            let why = format!(
                "the character U+{:04X} must be escaped, since {why}: write it as \\u{0:04x} in double quotes",
                u32::from(c)
            );
            return Some(Unreadable { span: Span { begin: at, end: at }, why });
        }
        column += 1;
    }
    None
}

struct Reader<'a> {
    text: &'a str,
    events: Parser<'a, Characters<'a>>,
    /// The byte at which each character starts, and the end of the text; empty if the text is ASCII.
    bytes: Vec<usize>,
    nodes: usize,
    depth: usize,
    /// The number of open brackets and braces.
    flows: usize,
    /// The byte at which the last token ends.
    behind: usize,
    /// If the last token is an unquoted text or a block scalar: the column, from 0, from which tabs in the
    /// blank lines below it belong to it.
    least: Option<usize>,
    /// The column of the innermost collection outside of brackets; 0 without one.
    column: usize,
    is_tab_reported: bool,
    /// Errors of single nodes. The text is read to its end anyway, so that all errors are reported together.
    faults: Vec<Unreadable>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let bytes = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(byte, _)| byte).chain([text.len()]).collect()
        };
        Self {
            text,
            events: Parser::new(Characters::new(text)),
            bytes,
            nodes: 0,
            depth: 0,
            flows: 0,
            behind: 0,
            least: None,
            column: 0,
            is_tab_reported: false,
            faults: Vec::new(),
        }
    }

    fn position(&self, mark: saphyr_parser::Marker) -> Position {
        let byte = self.bytes.get(mark.index()).or(self.bytes.last()).copied().unwrap_or(mark.index());
        Position { line: mark.line(), column: mark.col() + 1, byte }
    }

    fn span(&self, marks: Marks) -> Span {
        Span { begin: self.position(marks.start), end: self.position(marks.end) }
    }

    /// Whether a block scalar ends in the middle of the text's last line. The parser adds the missing line
    /// end.
    fn is_cut_off(&self, span: Span) -> bool {
        let last_line = self.text.rsplit(['\n', '\r']).next().unwrap_or_default();
        span.end.byte >= self.text.len() && !last_line.trim_matches([' ', '\t']).is_empty()
    }

    /// Refuses a tab between the last token and the next one where clients do not accept it.
    fn refuse_tab_before(&mut self, next: usize) {
        if self.flows > 0 {
            return;
        }
        let gap = self.text.get(self.behind..next).unwrap_or_default();
        if let Some(tab) = stray_tab(gap, self.behind == 0, self.least) {
            self.refuse_tab(self.behind + tab);
        }
    }

    /// Refuses a tab. Only the first is reported, because the others are probably on every line.
    fn refuse_tab(&mut self, byte: usize) {
        if std::mem::replace(&mut self.is_tab_reported, true) {
            return;
        }
        let before = self.text.get(..byte).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let at = Position { line: before.matches('\n').count() + 1, column: line.chars().count() + 1, byte };
        let why = "clients cannot read a tab here: indent with spaces".to_owned();
        self.faults.push(Unreadable { span: Span { begin: at, end: at }, why });
    }

    /// Notes the end of a token.
    fn pass(&mut self, end: usize, least: Option<usize>) {
        (self.behind, self.least) = (end, least);
    }

    /// Notes the end of a scalar with a text.
    fn pass_scalar(&mut self, span: Span, style: Style) {
        let Span { begin, end } = span;
        match style {
            Style::Plain => {
                let text = self.text.get(begin.byte..end.byte).unwrap_or_default();
                let tab = stray_tab_within(text, self.column).filter(|_| self.flows == 0);
                if let Some(tab) = tab {
                    self.refuse_tab(begin.byte + tab);
                }
                self.pass(end.byte, Some(self.column));
            }
            Style::Block => {
                // The blank lines at its end are within its span.
                let whole = self.text.get(..end.byte).unwrap_or_default();
                let content = whole.trim_end_matches([' ', '\t', '\r', '\n']).len().max(self.behind);
                self.pass(content, (begin.byte <= content).then_some(begin.column - 1));
            }
            Style::Quoted | Style::Flow => self.pass(end.byte, None),
        }
    }

    /// The `|` or `>` of a block scalar: on the last line before its text that is not empty, followed only by
    /// hints and a comment.
    fn indicator_before(&self, content: Position) -> Position {
        let before =
            self.text.get(..content.byte).unwrap_or_default().trim_end_matches([' ', '\t', '\r', '\n']);
        let start = before.rfind('\n').map_or(0, |at| at + 1).max(self.behind);
        let line = before.get(start..).unwrap_or_default();
        let is_indicator = |at: &usize| {
            let rest = line
                .get(at + 1..)
                .unwrap_or_default()
                .trim_start_matches(|c: char| matches!(c, '+' | '-' | '1'..='9'));
            rest.is_empty() || rest.trim_start().starts_with('#')
        };
        let places = line.match_indices(['|', '>']).map(|(at, _)| at);
        let Some(at) = places.into_iter().find(is_indicator) else { return content };
        let lines = self.text.get(start..content.byte).unwrap_or_default().matches('\n').count();
        let byte = start + at;
        let line = self.text.get(..byte).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
        Position { line: content.line - lines, column: line.chars().count() + 1, byte }
    }

    /// The end of a quoted text, after its closing quote.
    fn end_of_quoted(&self, span: Span) -> Position {
        let whole = self.text.get(span.begin.byte..span.end.byte).unwrap_or_default();
        let Some(end) = end_of_quoted(whole) else { return span.end };
        let quoted = whole.get(..end).unwrap_or_default();
        let column = match quoted.rsplit_once('\n') {
            Some((_, last)) => last.chars().count() + 1,
            None => span.begin.column + quoted.chars().count(),
        };
        Position { line: span.begin.line + quoted.matches('\n').count(), column, byte: span.begin.byte + end }
    }

    /// The dash of the first item of a sequence. If the dashes are in the column of the key above, the parser
    /// starts the sequence after the first dash.
    fn dash_before(&self, begin: Position) -> Position {
        let before = self.text.get(..begin.byte).unwrap_or_default();
        let trimmed = before.trim_end_matches([' ', '\t', '\r', '\n']);
        let is_there = self.text.get(begin.byte..).is_some_and(|rest| rest.starts_with('-'));
        let Some(head) = trimmed.strip_suffix('-').filter(|_| !is_there) else { return begin };
        let lines = before.get(head.len()..).unwrap_or_default().matches('\n').count();
        let column = head.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Position { line: begin.line - lines, column, byte: head.len() }
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

    fn document(&mut self) -> Result<Option<Node>, Unreadable> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => {
                    self.refuse_tab_before(self.text.len());
                    return Ok(root);
                }
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
                let mut text = text.into_owned();
                if style == Style::Block && self.is_cut_off(span) && text.ends_with('\n') {
                    text.pop();
                }
                let is_foreign = text.contains('?') || text.starts_with([':', '|', '>']);
                if self.flows > 0 && is_plain && is_foreign {
                    let why = format!(
                        "clients cannot read {text:?} without quotes between brackets or braces: put it in quotes"
                    );
                    self.faults.push(Unreadable { span, why });
                }
                let is_empty = text.is_empty();
                if !(is_empty && is_plain) {
                    self.refuse_tab_before(span.begin.byte);
                }
                let kind = resolve(text, is_plain, tag.as_deref()).unwrap_or_else(|why| {
                    self.faults.push(Unreadable { span, why });
                    Kind::Null
                });
                let content = span;
                let span = match style {
                    Style::Block => Span { begin: self.indicator_before(span.begin), ..span },
                    // The parser's span includes a comment on the same line.
                    Style::Quoted => Span { end: self.end_of_quoted(span), ..span },
                    // An omitted value has its place after the colon or the dash.
                    Style::Plain
                        if is_empty
                            && self.text.get(span.begin.byte..).is_some_and(|rest| rest.starts_with(':')) =>
                    {
                        let at = Position {
                            column: span.begin.column + 1,
                            byte: span.begin.byte + 1,
                            ..span.begin
                        };
                        Span { begin: at, end: at }
                    }
                    _ => span,
                };
                if !(is_empty && is_plain) {
                    self.pass_scalar(content, style);
                }
                Ok(Node { span, kind, style })
            }
            Event::SequenceStart(..) => {
                let mut items: Vec<Node> = Vec::new();
                let is_flow = span.end.byte > span.begin.byte;
                let begin = if is_flow { span.begin } else { self.dash_before(span.begin) };
                let span = if is_flow { span } else { Span { begin, end: begin } };
                let outer = self.open(span, is_flow);
                let end = loop {
                    match self.next()? {
                        (Event::SequenceEnd, end) => break end,
                        (event, span) => items.push(self.node(event, span)?),
                    }
                };
                let last = items.last().map(|item| item.span.end);
                Ok(self.close(outer, span, end, last, Kind::Array(items)))
            }
            Event::MappingStart(..) => {
                let mut members: Vec<(Key, Node)> = Vec::new();
                let is_flow = span.end.byte > span.begin.byte;
                let outer = self.open(span, is_flow);
                let end = loop {
                    let key = match self.next()? {
                        (Event::MappingEnd, end) => break end,
                        (event, span) => self.node(event, span)?,
                    };
                    let text = match key.kind {
                        Kind::String(text) => text,
                        other => {
                            let why = format!(
                                "the keys of an object must be strings, and this is {}: put it in quotes",
                                other.name()
                            );
                            self.faults.push(Unreadable { span: key.span, why });
                            String::new()
                        }
                    };
                    let (event, span) = self.next()?;
                    members.push((Key { text, span: key.span, style: key.style }, self.node(event, span)?));
                };
                let last = members.last().map(|(_, value)| value.span.end);
                Ok(self.close(outer, span, end, last, Kind::Object(members)))
            }
            Event::Alias(_) => {
                self.refuse_tab_before(span.begin.byte);
                self.pass(span.end.byte, None);
                self.faults.push(Unreadable { span, why: "aliases are not supported".to_owned() });
                Ok(Node { span, kind: Kind::Null, style: Style::Plain })
            }
            event => refuse(format!("unexpected {event:?}")),
        }
    }

    /// Begins a collection, and returns the column of the one around it.
    fn open(&mut self, start: Span, is_flow: bool) -> usize {
        self.depth += 1;
        let outer = self.column;
        if is_flow {
            self.refuse_tab_before(start.begin.byte);
            self.flows += 1;
        } else {
            self.column = start.begin.column;
        }
        outer
    }

    /// Ends a collection: at its closing bracket, or with its last part.
    fn close(&mut self, outer: usize, start: Span, end: Span, last: Option<Position>, kind: Kind) -> Node {
        self.depth -= 1;
        if start.end.byte == start.begin.byte {
            self.column = outer;
            let end = last.unwrap_or(start.end);
            return Node { span: Span { begin: start.begin, end }, kind, style: Style::Plain };
        }
        self.flows -= 1;
        // The parser's span includes what follows a closing brace.
        let end = Position { column: end.begin.column + 1, byte: end.begin.byte + 1, ..end.begin };
        self.pass(end.byte, None);
        Node { span: Span { begin: start.begin, end }, kind, style: Style::Flow }
    }
}

/// The length of the quoted text at the start of `text`. A quote is escaped by doubling it, or by a backslash
/// within double quotes.
fn end_of_quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut rest = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = rest.next() {
        let is_next_quote = rest.peek().is_some_and(|(_, next)| *next == quote);
        match c {
            '\\' if quote == '"' => _ = rest.next(),
            '\'' if quote == c && is_next_quote => _ = rest.next(),
            _ if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

/// The value of a scalar, as yaml.v3 resolves it.
fn resolve(text: String, is_plain: bool, tag: Option<&Tag>) -> Result<Kind, String> {
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
pub(super) fn base64(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
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
pub(super) enum Number {
    /// A whole number in decimal.
    Integer(String),
    Float(f64),
    /// Infinity, or not a number.
    Other,
}

/// The number that yaml.v3 reads in a plain scalar.
pub(super) fn number(text: &str) -> Option<Number> {
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
    fn scalars_have_the_same_meaning_as_in_the_client() {
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
            ("2.", "2"),
            ("1.0", "1"),
            ("2.50", "2.5"),
            ("1e3", "1000"),
            ("1e6", "1e+06"),
            ("1234567.5", "1.2345675e+06"),
            ("999999.5", "999999.5"),
            ("1e-7", "1e-07"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e-400", "0"),
            ("-0.0", "-0"),
            ("08", "8"),
            ("1_000.5", "1000.5"),
            ("1_", "1"),
            ("0b-1", "-1"),
            ("-0", "0"),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            ("!!float 1", "1"),
            ("!!int '12'", "12"),
            ("! 12", "12"),
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
            "1e400",
            ".5_0",
            "!mine 12",
            "!!binary aGk=",
            "!!timestamp 2026-11-28",
        ] {
            assert!(matches!(scalar(text), Kind::String(_)), "{text}");
        }
        assert_eq!(scalar("~"), Kind::Null);
        assert_eq!(scalar(""), Kind::Null);
        assert_eq!(scalar("True"), Kind::Bool(true));
        assert!(parse("k: .inf").unwrap_err().why.contains("not a number that JSON knows"));
        for text in [
            "!!int x",
            "!!float true",
            "!!bool yes",
            "!!null 1",
            "!!int 1.5",
            "!!binary '!'",
            "!!timestamp x",
        ] {
            assert!(parse(&format!("k: {text}")).unwrap_err().why.contains("tagged"), "{text}");
        }
    }

    #[test]
    fn each_part_has_its_place() {
        let text = "é: [a, {b: 1}] # comment\nc:\n  d: |\n    x\n  e: 'y'\n";
        let root = parse(text).unwrap().unwrap();
        let Kind::Object(members) = &root.kind else { panic!("{root:?}") };
        let at = |span: Span| &text[span.begin.byte..span.end.byte];
        assert_eq!(at(members[0].0.span), "é");
        assert_eq!(at(members[0].1.span), "[a, {b: 1}]");
        assert_eq!(members[0].1.span.begin, Position { line: 1, column: 4, byte: 4 });
        let Kind::Object(inner) = &members[1].1.kind else { panic!("{root:?}") };
        assert_eq!(inner[0].1.style, Style::Block);
        assert!(at(inner[0].1.span).starts_with("|\n    x"));
        let list = parse("a:\n- b\n- [c]\n").unwrap().unwrap();
        let Kind::Object(members) = &list.kind else { panic!("{list:?}") };
        assert_eq!(members[0].1.span.begin, Position { line: 2, column: 1, byte: 3 });
        assert_eq!(at(inner[1].1.span), "'y'");
        assert_eq!(root.span.end.line, 5);
    }

    #[test]
    fn a_comment_may_begin_right_behind_a_quote_or_a_bracket() {
        for (text, value) in [
            ("k: {}#\n", "{}"),
            ("k: [a]# é\n", "[a]"),
            ("k: 'x'#y\n", "'x'"),
            ("k: \"x\"# y\nl: 1\n", "\"x\""),
            ("k: 'it''s \\' # 'y'\n", "'it''s \\'"),
            ("k: \"é\\\\\\\"\n  y\" # \"z\"\n", "\"é\\\\\\\"\n  y\""),
            ("k: ['', \"\"]\n", "['', \"\"]"),
            ("k: [#x\n  a,#y\n  b#z\n  ]#\n", "[#x\n  a,#y\n  b#z\n  ]"),
            ("k#k: |-#x\n  y\n", "|-#x\n  y\n"),
        ] {
            let root = parse(text).unwrap().unwrap();
            let Kind::Object(members) = &root.kind else { panic!("{root:?}") };
            let span = members[0].1.span;
            assert_eq!(&text[span.begin.byte..span.end.byte], value, "{text:?}");
        }
    }

    #[test]
    fn a_colon_without_a_blank_is_a_part_of_a_text() {
        let root = parse("k: {a:,b:c: 1,d:}\n").unwrap().unwrap();
        let Kind::Object(members) = &root.kind else { panic!("{root:?}") };
        let Kind::Object(inner) = &members[0].1.kind else { panic!("{root:?}") };
        let keys: Vec<_> = inner.iter().map(|(key, value)| (key.text.as_str(), &value.kind)).collect();
        let one = Kind::Number("1".to_owned());
        assert_eq!(keys, [("a:", &Kind::Null), ("b:c", &one), ("d:", &Kind::Null)]);
        for text in ["k: {a:[b]}\n", "k: {a:{b: 1}}\n"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_tab_is_not_indentation() {
        for (text, line, column) in [
            (" \tk: 1\n", 1, 2),
            ("k:\n \tl: 1\n", 2, 2),
            ("k: 'x'\n\t\nl: 1\n", 2, 1),
            ("k:\n-\tl\n", 2, 2),
            ("k: 1\n# é\n\t", 3, 1),
            ("k: é\n\t# x", 2, 1),
            ("k: a\n\t\n  b\n", 2, 1),
            ("k: |\n  a\n \t\n", 3, 2),
            ("k:\n\t\n", 2, 1),
            ("k:\n  l: 1\n  \t\n", 3, 3),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.why.contains("indent with spaces"), "{text:?}: {refused:?}");
            assert_eq!((refused.span.begin.line, refused.span.begin.column), (line, column), "{text:?}");
        }
        for text in ["k:\t1\t# x\n", "k: [\n \ta,\n \tb]\n", "k: 1\n \t\n", "k: |\n  \tx\n", "k: 'a\n \tb'\n"]
        {
            assert!(parse(text).is_ok(), "{text:?}: {:?}", parse(text));
        }
    }

    #[test]
    fn invalid_text_is_refused_with_its_place() {
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
        for (text, column) in [("a: \u{7}", 4), ("# \u{2028}", 3), ("'\u{85}'", 2), ("x\u{feff}", 2)] {
            let refused = parse(text).unwrap_err();
            assert!(refused.why.contains("in double quotes"), "{text:?}: {refused:?}");
            assert_eq!(refused.span.begin.column, column);
        }
        let faults = read("1: a\nb: *x\nc: !!int x\n").unwrap_err();
        assert!(faults.len() >= 2, "all errors are reported: {faults:?}");
        let deep = format!("{}{}", "[".repeat(DEPTH_MAX + 2), "]".repeat(DEPTH_MAX + 2));
        assert!(parse(&deep).unwrap_err().why.contains("deeper"));
        assert!(parse(&"a".repeat(DEFINITION_BYTES_MAX + 1)).unwrap_err().why.contains("bytes"));
        assert_eq!(parse("# nothing\n").unwrap(), None);
    }
}
