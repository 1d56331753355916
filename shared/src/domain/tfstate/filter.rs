//! Filters over labels: `env == "prod" and not (team in ["web", "data"] or tier > 2)`.
//!
//! ```text
//! any     = all { "or" all }
//! all     = one { "and" one }
//! one     = "not" one | "(" any ")" | test
//! test    = key ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) value
//!         | key [ "not" ] "in" "[" [ value { "," value } ] "]"
//!         | key [ "not" ] ( "contains" | "matches" ) value
//!         | key "is" [ "not" ] "empty"
//!         | value [ "not" ] "in" key
//! key     = letters, digits, "_" and "/" as in labels, with or without "labels." before
//! value   = "text" | `text` | number | "true" | "false" | a bare word
//! ```
//!
//! A value has a type: `tier == 2` does not match the text `"2"`. A missing label equals nothing, so `!=` and anything that
//! begins with `not` matches it. It is `empty`, like an empty text. Parsing and matching take time linear in the length.

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

use super::labels::{LABEL_BYTES_MAX, LabelKey, LabelNumber, LabelValue, Labels, is_key_byte};

/// The longest filter, in bytes.
pub const FILTER_BYTES_MAX: usize = 4096;

/// The deepest nesting of parentheses and `not`.
const DEPTH_MAX: usize = 32;

/// The longest pattern of `matches`, in bytes. Matching takes time proportional to the lengths of the pattern and the label.
const PATTERN_BYTES_MAX: usize = 256;

/// The largest compiled pattern, in bytes: `(a{99}){99}` grows large.
const PATTERN_SIZE_MAX: usize = 8 << 10;

/// Patterns in a filter, at most.
const PATTERNS_MAX: usize = 4;

/// Why a text is not a filter, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the filter, at character {at}: {what}")]
pub struct InvalidFilter {
    /// The character, from 1.
    pub at: usize,
    pub what: String,
}

/// A filter over labels.
#[derive(Debug, Clone)]
pub struct Filter(Node);

#[derive(Debug, Clone)]
enum Node {
    Any(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    Test { key: LabelKey, test: Test },
}

#[derive(Debug, Clone)]
enum Test {
    Equals(LabelValue),
    /// Whether a number is on this side of another one, or equal to it.
    Compares(Order, LabelNumber),
    OneOf(Vec<LabelValue>),
    Contains(String),
    Matches(Regex),
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Below,
    UpTo,
    Above,
    From,
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// [`InvalidFilter`].
    pub fn parse(text: &str) -> Result<Self, InvalidFilter> {
        if text.len() > FILTER_BYTES_MAX {
            let what = format!("it has {} bytes, and at most {FILTER_BYTES_MAX} are allowed", text.len());
            return Err(InvalidFilter { at: 1, what });
        }
        let mut parser = Parser { text, at: 0, depth: 0, patterns: 0 };
        let node = parser.any()?;
        match parser.next()? {
            (_, Token::End) => Ok(Self(node)),
            (at, token) => Err(parser.unexpected(at, &token, "`and`, `or` or the end")),
        }
    }

    /// Whether the filter matches these labels.
    pub fn finds(&self, labels: &Labels) -> bool {
        self.0.finds(labels)
    }
}

impl Node {
    fn finds(&self, labels: &Labels) -> bool {
        match self {
            Self::Any(nodes) => nodes.iter().any(|node| node.finds(labels)),
            Self::All(nodes) => nodes.iter().all(|node| node.finds(labels)),
            Self::Not(node) => !node.finds(labels),
            Self::Test { key, test } => test.holds(labels.get(key)),
        }
    }
}

impl Test {
    fn holds(&self, label: Option<&LabelValue>) -> bool {
        match (self, label) {
            (Self::Empty, label) => label.is_none_or(|label| *label == LabelValue::Text(String::new())),
            (_, None) => false,
            (Self::Equals(value), Some(label)) => label == value,
            (Self::OneOf(values), Some(label)) => values.contains(label),
            (Self::Compares(order, number), Some(LabelValue::Number(label))) => match order {
                Order::Below => label < number,
                Order::UpTo => label <= number,
                Order::Above => label > number,
                Order::From => label >= number,
            },
            (Self::Contains(part), Some(LabelValue::Text(label))) => label.contains(part),
            (Self::Matches(pattern), Some(LabelValue::Text(label))) => pattern.is_match(label),
            (Self::Compares(..), Some(LabelValue::Text(_) | LabelValue::Bool(_)))
            | (Self::Contains(_) | Self::Matches(_), Some(LabelValue::Number(_) | LabelValue::Bool(_))) => {
                false
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token<'a> {
    /// A word: the characters of a key, a path or a bare value.
    Word(&'a str),
    Text(String),
    Number(LabelNumber),
    /// One of `== != < <= > >= ( ) [ ] ,`.
    Sign(&'static str),
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "`{}`", word.chars().take(40).collect::<String>()),
            Self::Text(_) => f.write_str("a text"),
            Self::Number(_) => f.write_str("a number"),
            Self::Sign(sign) => write!(f, "`{sign}`"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// Longer ones first.
const SIGNS: [&str; 12] = ["==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ",", "="];

/// The prefix of a key that is also a word of the language.
const LABELS: &str = "labels.";

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    patterns: usize,
}

type Read<T> = Result<T, InvalidFilter>;

impl<'a> Parser<'a> {
    fn error(&self, at: usize, what: impl Into<String>) -> InvalidFilter {
        let at = self.text.get(..at).map_or(0, |before| before.chars().count()) + 1;
        InvalidFilter { at, what: what.into() }
    }

    fn unexpected(&self, at: usize, found: &Token<'_>, expected: &str) -> InvalidFilter {
        self.error(at, format!("expected {expected}, and found {found}"))
    }

    fn any(&mut self) -> Read<Node> {
        let mut nodes = vec![self.all()?];
        while self.word_is("or")? {
            nodes.push(self.all()?);
        }
        Ok(single(nodes, Node::Any))
    }

    fn all(&mut self) -> Read<Node> {
        let mut nodes = vec![self.one()?];
        while self.word_is("and")? {
            nodes.push(self.one()?);
        }
        Ok(single(nodes, Node::All))
    }

    fn one(&mut self) -> Read<Node> {
        let (at, token) = self.next()?;
        match token {
            Token::Word("not") => {
                let node = self.deeper(at, Self::one)?;
                Ok(Node::Not(Box::new(node)))
            }
            Token::Sign("(") => {
                let node = self.deeper(at, Self::any)?;
                self.sign(")")?;
                Ok(node)
            }
            first => self.test(at, first),
        }
    }

    fn deeper(&mut self, at: usize, read: fn(&mut Self) -> Read<Node>) -> Read<Node> {
        if self.depth == DEPTH_MAX {
            return Err(self.error(at, format!("it is nested deeper than {DEPTH_MAX}")));
        }
        self.depth += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn test(&mut self, at: usize, first: Token<'a>) -> Read<Node> {
        let (operator_at, operator) = self.next()?;
        let (is_not, operator_at, operator) = match operator {
            Token::Word("not") => {
                let (at, operator) = self.next()?;
                (true, at, operator)
            }
            operator => (false, operator_at, operator),
        };
        let node = match operator {
            Token::Word("in") => self.test_of_in(at, first)?,
            Token::Word("contains") => {
                let key = self.key(at, &first)?;
                Node::Test { key, test: Test::Contains(self.text_value("contains")?) }
            }
            Token::Word("matches") => {
                let key = self.key(at, &first)?;
                Node::Test { key, test: Test::Matches(self.pattern()?) }
            }
            Token::Word("is") if !is_not => {
                let key = self.key(at, &first)?;
                let is_not = self.word_is("not")?;
                let (at, word) = self.next()?;
                if word != Token::Word("empty") {
                    return Err(self.unexpected(at, &word, "`empty`"));
                }
                return Ok(negated(is_not, Node::Test { key, test: Test::Empty }));
            }
            Token::Sign(sign @ ("==" | "!=" | "<" | "<=" | ">" | ">=")) if !is_not => {
                let key = self.key(at, &first)?;
                return self.comparison(key, sign);
            }
            Token::Sign("=") => return Err(self.error(operator_at, "write `==`")),
            other => {
                let expected = "`==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `contains`, `matches` or `is`";
                return Err(self.unexpected(operator_at, &other, expected));
            }
        };
        Ok(negated(is_not, node))
    }

    fn comparison(&mut self, key: LabelKey, sign: &str) -> Read<Node> {
        let at = self.position();
        let value = self.value()?;
        let order = match sign {
            "<" => Order::Below,
            "<=" => Order::UpTo,
            ">" => Order::Above,
            ">=" => Order::From,
            _ => return Ok(negated(sign == "!=", Node::Test { key, test: Test::Equals(value) })),
        };
        match value {
            LabelValue::Number(number) => Ok(Node::Test { key, test: Test::Compares(order, number) }),
            LabelValue::Text(_) | LabelValue::Bool(_) => {
                Err(self.error(at, format!("expected a number behind `{sign}`")))
            }
        }
    }

    /// `key in [values]`, or `value in key`.
    fn test_of_in(&mut self, at: usize, first: Token<'a>) -> Read<Node> {
        let (next_at, next) = self.next()?;
        if next != Token::Sign("[") {
            let key = self.key(next_at, &next)?;
            return match self.as_value(at, first)? {
                LabelValue::Text(part) => Ok(Node::Test { key, test: Test::Contains(part) }),
                LabelValue::Number(_) | LabelValue::Bool(_) => {
                    Err(self.error(at, "expected a text: labels that are texts contain texts"))
                }
            };
        }
        let key = self.key(at, &first)?;
        let mut values = Vec::new();
        let before = self.at;
        if self.next()?.1 == Token::Sign("]") {
            return Ok(Node::Test { key, test: Test::OneOf(values) });
        }
        self.at = before;
        loop {
            values.push(self.value()?);
            match self.next()? {
                (_, Token::Sign(",")) => {}
                (_, Token::Sign("]")) => return Ok(Node::Test { key, test: Test::OneOf(values) }),
                (at, token) => return Err(self.unexpected(at, &token, "`,` or `]`")),
            }
        }
    }

    fn pattern(&mut self) -> Read<Regex> {
        let at = self.position();
        let pattern = self.text_value("matches")?;
        self.patterns += 1;
        if self.patterns > PATTERNS_MAX {
            return Err(self.error(at, format!("there are more than {PATTERNS_MAX} patterns")));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            let words = format!("the pattern has more than {PATTERN_BYTES_MAX} bytes");
            return Err(self.error(at, words));
        }
        RegexBuilder::new(&pattern)
            .size_limit(PATTERN_SIZE_MAX)
            .build()
            .map_err(|error| self.error(at, format!("this is not a pattern: {error}")))
    }

    fn text_value(&mut self, behind: &str) -> Read<String> {
        let at = self.position();
        match self.value()? {
            LabelValue::Text(text) => Ok(text),
            LabelValue::Number(_) | LabelValue::Bool(_) => {
                Err(self.error(at, format!("expected a text behind `{behind}`")))
            }
        }
    }

    fn value(&mut self) -> Read<LabelValue> {
        let (at, token) = self.next()?;
        self.as_value(at, token)
    }

    fn as_value(&self, at: usize, token: Token<'_>) -> Read<LabelValue> {
        match token {
            Token::Word("true") => Ok(LabelValue::Bool(true)),
            Token::Word("false") => Ok(LabelValue::Bool(false)),
            Token::Word(word) => Ok(LabelValue::Text(word.to_owned())),
            Token::Text(text) => Ok(LabelValue::Text(text)),
            Token::Number(number) => Ok(LabelValue::Number(number)),
            token @ (Token::Sign(_) | Token::End) => Err(self.unexpected(at, &token, "a value")),
        }
    }

    fn key(&self, at: usize, token: &Token<'_>) -> Read<LabelKey> {
        let Token::Word(word) = token else { return Err(self.unexpected(at, token, "the key of a label")) };
        let word = word.strip_prefix(LABELS).unwrap_or(word);
        LabelKey::parse(word).map_err(|error| self.error(at, error.to_string()))
    }

    fn sign(&mut self, wanted: &'static str) -> Read<()> {
        let (at, token) = self.next()?;
        if token == Token::Sign(wanted) {
            return Ok(());
        }
        Err(self.unexpected(at, &token, &format!("`{wanted}`")))
    }

    /// Accepts this word if it comes next.
    fn word_is(&mut self, wanted: &str) -> Read<bool> {
        let before = self.at;
        let is_it = self.next()?.1 == Token::Word(wanted);
        if !is_it {
            self.at = before;
        }
        Ok(is_it)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The position of the next token.
    fn position(&mut self) -> usize {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.at
    }

    fn next(&mut self) -> Read<(usize, Token<'a>)> {
        let at = self.position();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok((at, Token::End)) };
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            self.at += sign.len();
            return Ok((at, Token::Sign(sign)));
        }
        let token = match first {
            '"' => Token::Text(self.quoted(at)?),
            '`' => Token::Text(self.raw(at)?),
            _ => {
                let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
                let word = rest.get(..length).unwrap_or_default();
                if word.is_empty() {
                    return Err(self.error(at, format!("{first:?} needs quotes in a filter")));
                }
                self.at += length;
                self.of_word(at, word)?
            }
        };
        Ok((at, token))
    }

    fn of_word(&self, at: usize, word: &'a str) -> Read<Token<'a>> {
        // `inf`, `nan`, and words that begin with digits such as `1a`, are words and not numbers.
        let looks_so = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
        let number = looks_so.then(|| word.parse::<f64>().ok()).flatten();
        match number.map(LabelNumber::new) {
            Some(Some(number)) => Ok(Token::Number(number)),
            Some(None) => Err(self.error(at, "a number is between -2^53 and 2^53")),
            None if word.len() > LABEL_BYTES_MAX => Err(self.error(at, "no label is as long as this word")),
            None => Ok(Token::Word(word)),
        }
    }

    /// A text in double quotes, with the escapes of JSON.
    fn quoted(&mut self, at: usize) -> Read<String> {
        let mut is_escaped = false;
        for (index, byte) in self.rest().bytes().enumerate().skip(1) {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    let text = self.rest().get(..=index).unwrap_or_default();
                    let text = serde_json::from_str(text)
                        .map_err(|_| self.error(at, "this text has escapes that JSON does not know"))?;
                    self.at += index + 1;
                    return Ok(text);
                }
                _ => {}
            }
        }
        Err(self.error(at, "this text has no end"))
    }

    /// A text in backticks, without escapes: for patterns.
    fn raw(&mut self, at: usize) -> Read<String> {
        let inside = self.rest().get(1..).unwrap_or_default();
        let length = inside.find('`').ok_or_else(|| self.error(at, "this text has no end"))?;
        self.at += length + 2;
        Ok(inside.get(..length).unwrap_or_default().to_owned())
    }
}

/// The characters of a key and of a bare value.
fn is_word(c: char) -> bool {
    u8::try_from(c)
        .is_ok_and(|byte| is_key_byte(byte) || matches!(byte, b'A'..=b'Z' | b'.' | b'-' | b':' | b'+'))
}

fn single(mut nodes: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(node) if nodes.is_empty() => node,
        last => {
            nodes.extend(last);
            many(nodes)
        }
    }
}

fn negated(is_so: bool, node: Node) -> Node {
    if is_so { Node::Not(Box::new(node)) } else { node }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels() -> Labels {
        let labels = json!({
            "env": "prod", "team/name": "web", "tier": 2, "ratio": -0.5, "critical": true, "text": "2", "blank": "",
            "not": "word", "url": "https://a.b/c-d",
        });
        serde_json::from_value(labels).unwrap()
    }

    #[track_caller]
    fn check(filter: &str, expected: bool) {
        let parsed = Filter::parse(filter).unwrap_or_else(|error| panic!("{filter}: {error}"));
        assert_eq!(parsed.finds(&labels()), expected, "{filter}");
    }

    #[test]
    fn filters_match_as_documented() {
        for found in [
            r#"env == "prod""#,
            "env == prod",
            "env != dev",
            r#"team/name == "web""#,
            "tier == 2",
            "tier == 2.0",
            "tier != \"2\"",
            "text == \"2\"",
            "tier > 1 and tier >= 2 and tier < 3 and tier <= 2",
            "ratio < 0",
            "critical == true",
            "critical != false",
            "env in [\"dev\", prod]",
            "tier in [1, 2]",
            "env not in [dev, test]",
            "env not in []",
            "env contains \"ro\"",
            "env not contains x",
            r#""ro" in env"#,
            "ro in env",
            r#""x" not in env"#,
            "missing is empty",
            "blank is empty",
            "env is not empty",
            "missing != anything",
            "missing not in [a]",
            "env matches `^p.*d$`",
            r#"env matches "^p\\w+$""#,
            "env not matches `^dev`",
            "url == \"https://a.b/c-d\"",
            "labels.env == prod",
            "labels.not == word",
            "not env == dev",
            "not not env == prod",
            "env == dev or tier == 2",
            "env == dev and tier == 3 or critical == true",
            "(env == dev or env == prod) and not (tier == 3 or tier == 4)",
            "  env==\"prod\"and tier==2  ",
        ] {
            check(found, true);
        }
        for not_found in [
            "env == \"PROD\"",
            "tier == \"2\"",
            "text == 2",
            "text > 1",
            "critical == \"true\"",
            "missing == \"\"",
            "missing > 0",
            "missing in [a, b]",
            "missing contains \"\"",
            "missing is not empty",
            "tier contains 2x",
            "tier is empty",
            "critical is empty",
            "env in []",
            "not (env == prod)",
            "env == prod and tier == 3",
            // `and` binds tighter than `or`.
            "env == dev and (tier == 3 or critical == true)",
        ] {
            check(not_found, false);
        }
    }

    #[test]
    fn errors_are_reported_with_their_place() {
        for (filter, at, words) in [
            ("", 1, "expected `==`"),
            ("env", 4, "and found the end"),
            ("env = prod", 5, "write `==`"),
            ("env == ", 8, "expected a value"),
            ("env == \"prod", 8, "no end"),
            ("env == `prod", 8, "no end"),
            (r#"env == "\x""#, 8, "escapes"),
            ("env == prod tier", 13, "expected `and`, `or` or the end"),
            ("(env == prod", 13, "expected `)`"),
            ("env == prod)", 12, "and found `)`"),
            ("Env == prod", 1, "not a valid label key"),
            ("\"env\" == prod", 1, "the key of a label"),
            ("env is full", 8, "expected `empty`"),
            ("env in (a)", 8, "the key of a label"),
            ("env in [a", 10, "`,` or `]`"),
            ("env in [a,]", 11, "expected a value"),
            ("tier < x", 8, "a number behind `<`"),
            ("env contains 1", 14, "a text behind `contains`"),
            ("1 in env", 1, "expected a text"),
            ("env matches `(`", 13, "not a pattern"),
            ("env matches `(((a{50}){50}){50}){50}`", 13, "not a pattern"),
            ("tier == 1e300", 9, "2^53"),
            ("ä == 1", 1, "needs quotes in a filter"),
            ("env == \"ä\" ;", 12, "needs quotes in a filter"),
            ("env not == x", 9, "expected `==`"),
            ("not", 4, "expected `==`"),
        ] {
            let error = Filter::parse(filter).unwrap_err();
            assert_eq!(error.at, at, "{filter}: {error}");
            assert!(error.what.contains(words), "{filter}: {error}");
        }
    }

    #[test]
    fn length_depth_and_patterns_are_bounded() {
        let deep = |depth: usize| format!("{}a==1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(Filter::parse(&deep(DEPTH_MAX)).is_ok());
        let error = Filter::parse(&deep(DEPTH_MAX + 1)).unwrap_err().to_string();
        assert!(error.contains("deeper"), "{error}");
        assert!(Filter::parse(&format!("{}a==1", "not ".repeat(DEPTH_MAX + 1))).is_err());
        let wide = |count: usize| vec!["a==1"; count].join(" or ");
        assert!(Filter::parse(&wide(500)).is_ok());
        let error = Filter::parse(&wide(1000)).unwrap_err().to_string();
        assert!(error.contains("4096"), "{error}");
        let patterns = ["a matches x"; PATTERNS_MAX + 1].join(" or ");
        assert!(Filter::parse(&patterns).unwrap_err().to_string().contains("patterns"));
        let long = format!("a matches `{}`", "x".repeat(PATTERN_BYTES_MAX + 1));
        assert!(Filter::parse(&long).unwrap_err().to_string().contains("pattern has more"));
    }
}
