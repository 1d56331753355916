//! References in texts, such as `${database.hosts[0]["name"]}`, alone or within other text, and paths, which
//! are the same without braces.

use super::Span;
use super::yaml::{Node, Style};

/// One step of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accessor {
    pub step: Step,
    /// Its place, as exactly as it is known: the step alone, or the whole text.
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// A part of a text: plain text, and the reference after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub text: String,
    /// The reference, of at least one step.
    pub access: Option<Vec<Accessor>>,
}

/// An error in a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misspelling {
    pub span: Span,
    pub what: &'static str,
}

/// Splits a text into parts. `$$` is a `$` that starts no reference.
pub fn parts(node: &Node, text: &str) -> (Vec<Part>, Vec<Misspelling>) {
    let mut reader = Reader { node: Some(node), text, at: 0, misspelled: Vec::new() };
    let mut parts = Vec::new();
    let mut plain = String::new();
    while let Some(rest) = text.get(reader.at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("$$") {
            plain.push('$');
            reader.at += 2;
        } else if rest.starts_with("${") {
            reader.at += 2;
            let access = reader.access();
            parts.push(Part { text: std::mem::take(&mut plain), access: Some(access) });
        } else {
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let end = rest.get(first..).and_then(|after| after.find('$')).map_or(rest.len(), |at| first + at);
            plain.push_str(rest.get(..end).unwrap_or_default());
            reader.at += end;
        }
    }
    if !plain.is_empty() {
        parts.push(Part { text: plain, access: None });
    }
    (parts, reader.misspelled)
}

/// Parses a path as clients send it: a reference without its braces.
///
/// # Errors
/// The error in the path.
pub fn path(text: &str) -> Result<Vec<Step>, &'static str> {
    if text.is_empty() {
        return Err("the path is empty: write the name of a value");
    }
    let braced = format!("{text}}}");
    let mut reader = Reader { node: None, text: &braced, at: 0, misspelled: Vec::new() };
    let accessors = reader.access();
    match reader.misspelled.first() {
        Some(misspelled) => Err(misspelled.what),
        None if reader.at < braced.len() => Err("the path has a closing brace: remove it"),
        None => Ok(accessors.into_iter().map(|accessor| accessor.step).collect()),
    }
}

struct Reader<'a> {
    node: Option<&'a Node>,
    text: &'a str,
    at: usize,
    misspelled: Vec<Misspelling>,
}

const UNCLOSED: &str = "the reference has no closing brace";

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn skip(&mut self, c: char) {
        self.at += c.len_utf8();
    }

    /// From `start` to here. Only a plain text on one line is the same in the definition, so that a part of
    /// it has a known place.
    fn since(&self, start: usize) -> Span {
        let Some(node) = self.node else { return Span::default() };
        let span = node.span;
        if node.style != Style::Plain || span.begin.line != span.end.line {
            return span;
        }
        let place = |at: usize| {
            let columns = self.text.get(..at).map_or(at, |before| before.chars().count());
            super::Position {
                line: span.begin.line,
                column: span.begin.column + columns,
                byte: span.begin.byte + at,
            }
        };
        Span { begin: place(start), end: place(self.at) }
    }

    fn wrong(&mut self, start: usize, what: &'static str) {
        let span = self.since(start);
        self.misspelled.push(Misspelling { span, what });
    }

    /// Reads the reference after `${`, and the closing brace.
    fn access(&mut self) -> Vec<Accessor> {
        let mut accessors = Vec::new();
        let start = self.at;
        loop {
            let at = self.at;
            match self.peek() {
                Some('}') => {
                    self.skip('}');
                    break;
                }
                Some('.') => {
                    self.skip('.');
                    accessors.push(self.name(at));
                }
                Some('[') => {
                    self.skip('[');
                    let accessor = self.subscript(at);
                    if accessors.is_empty() && matches!(accessor.step, Step::Index(_)) {
                        self.wrong(at, "a reference must start with a name, not with an index");
                    }
                    accessors.push(accessor);
                }
                Some(c) if !c.is_whitespace() => accessors.push(self.name(at)),
                Some(_) | None => {
                    self.wrong(at, UNCLOSED);
                    break;
                }
            }
        }
        if accessors.is_empty() {
            // A value may have an empty name.
            accessors.push(Accessor { step: Step::Key(String::new()), span: self.since(start) });
        }
        accessors
    }

    fn name(&mut self, start: usize) -> Accessor {
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| !matches!(c, '.' | '[' | '}') && !c.is_whitespace()) {
            name.push(c);
            self.skip(c);
        }
        if name.is_empty() {
            self.wrong(start, "a name is missing");
        }
        Accessor { step: Step::Key(name), span: self.since(start) }
    }

    /// Reads the subscript after `[`, and the closing bracket.
    fn subscript(&mut self, start: usize) -> Accessor {
        let step = if self.peek() == Some('"') {
            self.skip('"');
            Step::Key(self.quoted(start))
        } else {
            let digits_at = self.at;
            while let Some(c) =
                self.peek().filter(|c| !matches!(c, ']' | '.' | '[' | '}') && !c.is_whitespace())
            {
                self.skip(c);
            }
            let digits = self.text.get(digits_at..self.at).unwrap_or_default();
            match digits.parse() {
                Ok(index) => Step::Index(index),
                Err(_) => {
                    let key = digits.to_owned();
                    self.wrong(
                        digits_at,
                        "an index must be a whole number from 0, and a key must be in double quotes",
                    );
                    Step::Key(key)
                }
            }
        };
        if self.peek() == Some(']') {
            self.skip(']');
        } else {
            self.wrong(start, "the closing bracket is missing");
        }
        Accessor { step, span: self.since(start) }
    }

    /// Reads the key after `["`, and the closing quote. Only `\"` is an escape.
    fn quoted(&mut self, start: usize) -> String {
        let mut key = String::new();
        loop {
            match self.peek() {
                None => {
                    self.wrong(start, "the closing quote is missing");
                    return key;
                }
                Some('"') => {
                    self.skip('"');
                    if key.is_empty() {
                        self.wrong(start, "a key is missing between the quotes");
                    }
                    return key;
                }
                Some('\\') if self.text.get(self.at + 1..).is_some_and(|rest| rest.starts_with('"')) => {
                    self.at += 2;
                    key.push('"');
                }
                Some(c) => {
                    self.skip(c);
                    key.push(c);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml::{self, Kind};
    use super::*;

    fn read(text: &str) -> (Vec<Part>, Vec<Misspelling>) {
        let node = yaml::parse(&format!("k: {text}")).unwrap().unwrap();
        let Kind::Object(members) = node.kind else { panic!("{text}") };
        let (_, value) = &members[0];
        let Kind::String(text) = &value.kind else { panic!("{text}") };
        parts(value, text)
    }

    fn spelled(steps: &[Accessor]) -> String {
        let step = |accessor: &Accessor| match &accessor.step {
            Step::Key(key) => format!("<{key}>"),
            Step::Index(index) => format!("<#{index}>"),
        };
        steps.iter().map(step).collect()
    }

    #[test]
    fn references_are_separated_from_text() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a$b $$ $${x}", "a$b $ ${x}"),
            ("${a}", "[<a>]"),
            ("x${}y", "x[<>]y"),
            ("x ${a.b[0].c} y", "x [<a><b><#0><c>] y"),
            ("'${a[\"b c\"]}é'", "[<a><b c>]é"),
            ("'${[\"a\\\"b\"].c}'", "[<a\"b><c>]"),
            ("é$${a}${b}", "é${a}[<b>]"),
        ] {
            let (parts, misspelled) = read(text);
            assert!(misspelled.is_empty(), "{text}: {misspelled:?}");
            let message: String = parts
                .iter()
                .map(|part| {
                    let access = part.access.as_deref().map(|access| format!("[{}]", spelled(access)));
                    part.text.clone() + &access.unwrap_or_default()
                })
                .collect();
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn an_invalid_reference_is_reported_with_its_place() {
        for (text, what, column) in [
            ("${a", UNCLOSED, 7),
            ("x ${a b}", UNCLOSED, 9),
            ("${a..b}", "a name is missing", 7),
            ("${a[0}", "closing bracket", 7),
            ("${[0]}", "not with an index", 6),
            ("${a[x]}", "whole number", 8),
            ("${a[-1]}", "whole number", 8),
        ] {
            let text = if text.contains('[') && text.starts_with('x') {
                format!("'{text}'")
            } else {
                text.to_owned()
            };
            let (_, misspelled) = read(&text);
            let first = misspelled.first().unwrap_or_else(|| panic!("{text} was taken"));
            assert!(first.what.contains(what), "{text}: {first:?}");
            assert_eq!(first.span.begin.column, column, "{text}: {first:?}");
        }
    }

    #[test]
    fn paths_are_references_without_braces() {
        let key = |key: &str| Step::Key(key.to_owned());
        assert_eq!(path("a.b[1]"), Ok(vec![key("a"), key("b"), Step::Index(1)]));
        assert_eq!(path("a[\"x.y\"]"), Ok(vec![key("a"), key("x.y")]));
        for bad in ["", "a}", "a b", "a[", "a."] {
            path(bad).unwrap_err();
        }
    }
}
