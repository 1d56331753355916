//! YAML as a tree with positions.
//!
//! Scalars have the same meaning as in the client, which uses yaml.v3: `null` and booleans as in YAML 1.2,
//! and numbers in all of Go's notations. Aliases are refused, as in the client. Text that yaml.v3 cannot
//! read, or reads differently, is refused too: the client edits the stored text and has to find what it
//! wrote.

mod characters;
mod node;
mod scalar;
#[cfg(test)]
mod tests;

use saphyr_parser::{Event, Parser, ScalarStyle, Span as Marks, Tag};

use self::characters::{Characters, stray_tab, stray_tab_within};
use self::scalar::resolve;
use super::{DEFINITION_BYTES_MAX, Position, Span};

pub use self::node::{Key, Kind, Node, Style};
pub(super) use self::scalar::{base64, number};

/// The deepest nesting of nodes.
const DEPTH_MAX: usize = 64;

/// Nodes in one text, at most.
const NODES_MAX: usize = 50_000;

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
                Ok(self.scalar(text.into_owned(), style, tag.as_deref(), span))
            }
            Event::SequenceStart(..) => self.sequence(span),
            Event::MappingStart(..) => self.mapping(span),
            Event::Alias(_) => {
                self.refuse_tab_before(span.begin.byte);
                self.pass(span.end.byte, None);
                self.faults.push(Unreadable { span, why: "aliases are not supported".to_owned() });
                Ok(Node { span, kind: Kind::Null, style: Style::Plain })
            }
            event => refuse(format!("unexpected {event:?}")),
        }
    }

    fn scalar(&mut self, mut text: String, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Node {
        let (style, is_plain) = match style {
            ScalarStyle::Plain => (Style::Plain, true),
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => (Style::Quoted, false),
            ScalarStyle::Literal | ScalarStyle::Folded => (Style::Block, false),
        };
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
        let kind = resolve(text, is_plain, tag).unwrap_or_else(|why| {
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
                if is_empty && self.text.get(span.begin.byte..).is_some_and(|rest| rest.starts_with(':')) =>
            {
                let at = Position { column: span.begin.column + 1, byte: span.begin.byte + 1, ..span.begin };
                Span { begin: at, end: at }
            }
            _ => span,
        };
        if !(is_empty && is_plain) {
            self.pass_scalar(content, style);
        }
        Node { span, kind, style }
    }

    fn sequence(&mut self, span: Span) -> Result<Node, Unreadable> {
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

    fn mapping(&mut self, span: Span) -> Result<Node, Unreadable> {
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
