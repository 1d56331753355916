//! A JSON reader that preserves the text.
//!
//! A state is mostly values that the server never reads and must return byte for byte: big integers, odd floats, odd
//! escapes. So the reader passes over the text once, checks the whole grammar, and returns slices of it. It skips values
//! that are not needed without recursion, so deep nesting cannot exhaust the stack.

mod canonical;

use std::borrow::Cow;
use std::fmt;

pub(crate) use canonical::canonical;

/// Why a text is not the expected JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// The members that lead to the fault, outermost first.
    path: Vec<String>,
    what: Cow<'static, str>,
    /// The byte offset of the fault.
    at: usize,
}

impl Malformed {
    pub(crate) fn new(what: impl Into<Cow<'static, str>>, at: usize) -> Self {
        Self { path: Vec::new(), what: what.into(), at }
    }

    /// The same fault, one level further out.
    pub(crate) fn within(mut self, member: &str) -> Self {
        const NAME_CHARS_MAX: usize = 64;
        self.path.insert(0, member.chars().take(NAME_CHARS_MAX).collect());
        self
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path.join("."))?;
        }
        write!(f, "expected {} at byte {}", self.what, self.at)
    }
}

pub(crate) type Result<T> = std::result::Result<T, Malformed>;

/// The name of a member, as in the text and decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key<'a> {
    /// With its quotes and escapes.
    pub(crate) raw: &'a str,
    pub(crate) name: Cow<'a, str>,
}

/// A reader at a position of a JSON text.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The open containers of [`Reader::walk`]: `{` or `[`.
    open: Vec<u8>,
}

/// What [`Reader::walk`] reports about a value, in text order.
pub(crate) trait Visitor<'a> {
    /// An object begins at offset `start`.
    fn object_begins(&mut self, _start: usize) {}
    /// The innermost open object ends before offset `end`.
    fn object_ends(&mut self, _end: usize) {}
    /// A member of that object has this name, as in the text.
    fn member(&mut self, _name: &'a str) {}
    /// A member of that object is a string. Both are as in the text (see [`unquote`]); the string begins at offset `start`.
    fn text_member(&mut self, _name: &'a str, _value: &'a str, _start: usize) {}
    /// A string outside of the members of an object, as in the text, begins at offset `start`.
    fn text(&mut self, _value: &'a str, _start: usize) {}
}

/// Ignores everything.
impl Visitor<'_> for () {}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, open: Vec::new() }
    }

    /// A reader of bytes that must be UTF-8, as all JSON of clients is.
    pub(crate) fn from_bytes(bytes: &'a [u8]) -> Result<Self> {
        std::str::from_utf8(bytes)
            .map(Self::new)
            .map_err(|error| Malformed::new("text in UTF-8", error.valid_up_to()))
    }

    /// The offset of the next value.
    pub(crate) fn start(&mut self) -> usize {
        self.skip_whitespace();
        self.at
    }

    /// The offset just after the last value.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Returns to an offset from [`Reader::start`].
    pub(crate) fn return_to(&mut self, start: usize) {
        self.at = start;
        self.open.clear();
    }

    /// The text from offset `start` to the current position.
    pub(super) fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// The fault that `what` is expected here.
    pub(crate) fn expected(&self, what: &'static str) -> Malformed {
        Malformed::new(what, self.at)
    }

    /// Checks that the text ends here.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.skip_whitespace();
        if self.at == self.text.len() { Ok(()) } else { Err(self.expected("the end of the text")) }
    }

    /// Reads a `null`, if it comes next.
    pub(crate) fn null(&mut self) -> Result<bool> {
        if self.peek() != Some(b'n') {
            return Ok(false);
        }
        self.literal("null")?;
        Ok(true)
    }

    /// Reads a value unless it is `null`.
    pub(crate) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if self.null()? { Ok(None) } else { read(self).map(Some) }
    }

    /// Reads an object; `member` must read the value of each member.
    pub(crate) fn object(&mut self, mut member: impl FnMut(&mut Self, Key<'a>) -> Result<()>) -> Result<()> {
        if self.peek() != Some(b'{') {
            return Err(self.expected("an object"));
        }
        self.at += 1;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let key = self.key()?;
            let name = key.name.clone();
            member(self, key).map_err(|fault| fault.within(&name))?;
            if self.take(b'}') {
                return Ok(());
            }
            self.comma("`,` or `}`")?;
        }
    }

    /// Reads an array; `element` must read each element.
    pub(crate) fn array(&mut self, mut element: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        if self.peek() != Some(b'[') {
            return Err(self.expected("an array"));
        }
        self.at += 1;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.take(b']') {
                return Ok(());
            }
            self.comma("`,` or `]`")?;
        }
    }

    /// Reads an array into a list.
    pub(crate) fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut list = Vec::new();
        self.array(|reader| {
            list.push(element(reader)?);
            Ok(())
        })?;
        Ok(list)
    }

    /// Reads a string. A lone surrogate reads as U+FFFD, as it does for the CLI.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        let start = self.at;
        self.skip_string()?;
        Ok(unquote(self.text_since(start)))
    }

    /// Reads `true` or `false`.
    pub(crate) fn boolean(&mut self) -> Result<bool> {
        match self.peek() {
            Some(b't') => self.literal("true").map(|()| true),
            Some(b'f') => self.literal("false").map(|()| false),
            _ => Err(self.expected("true or false")),
        }
    }

    /// Reads a number that is written as an integer: no fraction, no exponent.
    pub(crate) fn integer(&mut self) -> Result<i64> {
        let start = self.start();
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.expected("an integer"));
        }
        self.skip_number()?;
        self.text_since(start).parse().map_err(|_| Malformed::new("an integer of 64 bits", start))
    }

    /// Skips a value and returns its text.
    pub(crate) fn raw(&mut self) -> Result<&'a str> {
        let start = self.start();
        self.walk(&mut ())?;
        Ok(self.text_since(start))
    }

    /// Passes over a value without recursion and reports its contents.
    pub(crate) fn walk(&mut self, visitor: &mut impl Visitor<'a>) -> Result<()> {
        let mut name = "";
        loop {
            match self.peek() {
                Some(b'{') => {
                    visitor.object_begins(self.at);
                    self.at += 1;
                    if self.take(b'}') {
                        visitor.object_ends(self.at);
                    } else {
                        name = self.skip_key()?;
                        visitor.member(name);
                        self.open.push(b'{');
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.take(b']') {
                        self.open.push(b'[');
                        continue;
                    }
                }
                Some(b'"') => {
                    let start = self.at;
                    self.skip_string()?;
                    let value = self.text_since(start);
                    match self.open.last() {
                        Some(b'{') => visitor.text_member(name, value, start),
                        _ => visitor.text(value, start),
                    }
                }
                Some(b'-' | b'0'..=b'9') => self.skip_number()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(self.expected("a value")),
            }
            // A value has ended, and possibly the containers that end with it.
            loop {
                match (self.open.last().copied(), self.peek()) {
                    (None, _) => return Ok(()),
                    (Some(b'{'), Some(b'}')) => {
                        self.at += 1;
                        self.open.pop();
                        visitor.object_ends(self.at);
                    }
                    (Some(b'['), Some(b']')) => {
                        self.at += 1;
                        self.open.pop();
                    }
                    (Some(b'{'), Some(b',')) => {
                        self.at += 1;
                        name = self.skip_key()?;
                        visitor.member(name);
                        break;
                    }
                    (Some(_), Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    _ => return Err(self.expected("`,` or the end of an array or object")),
                }
            }
        }
    }

    fn key(&mut self) -> Result<Key<'a>> {
        let start = self.start();
        let name = self.string()?;
        let raw = self.text_since(start);
        self.colon()?;
        Ok(Key { raw, name })
    }

    /// Skips the name of a member and returns it as in the text.
    fn skip_key(&mut self) -> Result<&'a str> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("the name of a member"));
        }
        let start = self.at;
        self.skip_string()?;
        let name = self.text_since(start);
        self.colon()?;
        Ok(name)
    }

    fn colon(&mut self) -> Result<()> {
        if self.take(b':') { Ok(()) } else { Err(self.expected("`:`")) }
    }

    fn comma(&mut self, what: &'static str) -> Result<()> {
        if self.take(b',') { Ok(()) } else { Err(self.expected(what)) }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_whitespace();
        self.byte(self.at)
    }

    fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.byte(self.at) {
            self.at += 1;
            // Indentation usually has many spaces in a row.
            while self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(b"    ")) {
                self.at += 4;
            }
        }
    }

    fn literal(&mut self, word: &'static str) -> Result<()> {
        if self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.expected(word))
    }

    /// Skips a string whose opening quote comes next.
    fn skip_string(&mut self) -> Result<()> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        loop {
            at += bytes.get(at..).map_or(0, plain_length);
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    at += match bytes.get(at + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
                        Some(b'u')
                            if bytes
                                .get(at + 2..at + 6)
                                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) =>
                        {
                            6
                        }
                        _ => return Err(Malformed::new("a valid escape", at)),
                    };
                }
                Some(_) => return Err(Malformed::new("control characters to be escaped", at)),
                None => return Err(Malformed::new("the end of a string", at)),
            }
        }
    }

    fn skip_number(&mut self) -> Result<()> {
        if self.byte(self.at) == Some(b'-') {
            self.at += 1;
        }
        if self.byte(self.at) == Some(b'0') {
            self.at += 1;
        } else {
            self.skip_digits()?;
        }
        if self.byte(self.at) == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if matches!(self.byte(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<()> {
        let start = self.at;
        while self.byte(self.at).is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.expected("a digit")) } else { Ok(()) }
    }
}

/// The number of bytes at the start of a string up to a quote, an escape or a control character. Checks eight bytes at a
/// time, since most of a state is strings.
fn plain_length(bytes: &[u8]) -> usize {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    /// Sets the high bit of each byte below `bound`, which is at most 128. Bits above the first of these may be wrong.
    fn below(word: u64, bound: u8) -> u64 {
        word.wrapping_sub(EACH * u64::from(bound)) & !word & (EACH << 7)
    }
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = below(word, b' ')
            | below(word ^ (EACH * u64::from(b'"')), 1)
            | below(word ^ (EACH * u64::from(b'\\')), 1);
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let plain = rest.iter().take_while(|&&b| b != b'"' && b != b'\\' && b >= b' ').count();
    bytes.len() - rest.len() + plain
}

/// The members of an object with the texts of their values, in order.
pub(crate) fn members(text: &str) -> Result<Vec<(Key<'_>, &str)>> {
    let mut reader = Reader::new(text);
    let mut members = Vec::new();
    reader.object(|reader, key| {
        members.push((key, reader.raw()?));
        Ok(())
    })?;
    Ok(members)
}

/// Decodes a string from its text with quotes and escapes, which have been checked. A lone surrogate becomes U+FFFD, as it
/// does for the CLI.
pub(super) fn unquote(raw: &str) -> Cow<'_, str> {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if inner.contains('\\') { Cow::Owned(unescape(inner)) } else { Cow::Borrowed(inner) }
}

/// Decodes the inside of a string whose escapes have been checked.
fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let (decoded, length) = unescape_unicode(after);
                out.push(decoded);
                rest = after.get(length..).unwrap_or_default();
                continue;
            }
            Some(other) => out.push(other),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

/// Decodes `uXXXX`, or `uXXXX\uXXXX` for a surrogate pair. Returns the character and the number of bytes read.
fn unescape_unicode(text: &str) -> (char, usize) {
    let unit = |at: usize| text.get(at..at + 4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let first = unit(1).unwrap_or(0xfffd);
    let second = text.get(5..7).filter(|mark| *mark == "\\u").and_then(|_| unit(7));
    match char::decode_utf16([first].into_iter().chain(second)).next() {
        Some(Ok(decoded)) => (decoded, if decoded.len_utf16() == 2 { 11 } else { 5 }),
        _ => (char::REPLACEMENT_CHARACTER, 5),
    }
}

/// Appends a string as JSON.
pub(super) fn write_string(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Appends `[..]`, with `write` for each element.
pub(super) fn write_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// Writes an object, one member at a time.
pub(crate) struct ObjectWriter<'o> {
    out: &'o mut String,
    empty: bool,
}

impl<'o> ObjectWriter<'o> {
    pub(crate) fn new(out: &'o mut String) -> Self {
        out.push('{');
        Self { out, empty: true }
    }

    /// A member whose name needs no escape.
    pub(crate) fn member(&mut self, name: &str) -> &mut String {
        self.separate();
        self.out.push('"');
        self.out.push_str(name);
        self.out.push_str("\":");
        self.out
    }

    /// A member whose name may need escapes.
    pub(crate) fn named(&mut self, name: &str) -> &mut String {
        self.separate();
        write_string(self.out, name);
        self.out.push(':');
        self.out
    }

    /// A member whose name and value are copied from a text.
    pub(crate) fn copy(&mut self, key: &Key<'_>, value: &str) {
        self.separate();
        self.out.push_str(key.raw);
        self.out.push(':');
        self.out.push_str(value);
    }

    pub(crate) fn end(self) {
        self.out.push('}');
    }

    fn separate(&mut self) {
        if !std::mem::replace(&mut self.empty, false) {
            self.out.push(',');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn skip_all(text: &str) -> Result<&str> {
        let mut reader = Reader::new(text);
        let raw = reader.raw()?;
        reader.finish()?;
        Ok(raw)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn our_parser_accepts_the_same_json_as_serde_json(text in "[-0-9eE.+{}\\[\\],:\"a\\\\u0f \ntrfalsn]{0,24}") {
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(skip_all(&text).is_ok(), theirs, "{}", text);
        }

        #[test]
        fn a_value_is_returned_byte_for_byte(parts in prop::collection::vec("[a-z\\\\\"\u{e9}\u{1f980}\u{1}]{0,6}", 0..6)) {
            let text = serde_json::to_string(&parts).unwrap();
            prop_assert_eq!(skip_all(&text).unwrap(), &text);
            let read = Reader::new(&text).list(|reader| reader.string().map(Cow::into_owned)).unwrap();
            prop_assert_eq!(&read, &parts);
            let mut written = String::new();
            write_list(&mut written, &parts, |out, part| write_string(out, part));
            prop_assert_eq!(serde_json::from_str::<Vec<String>>(&written).unwrap(), parts);
        }
    }

    #[test]
    fn a_walk_reports_objects_and_their_strings() {
        const TEXT: &str = r#" ["no", {"a": "x", "b": [{}, "no", {"\u0063" : "\"}"}], "d": 1, "e":"y"}]"#;
        struct Events(Vec<String>);
        impl<'a> Visitor<'a> for Events {
            fn object_begins(&mut self, _start: usize) {
                self.0.push("{".to_owned());
            }
            fn object_ends(&mut self, _end: usize) {
                self.0.push("}".to_owned());
            }
            fn text_member(&mut self, name: &'a str, value: &'a str, start: usize) {
                assert!(TEXT[start..].starts_with(value), "{value} is not at {start}");
                self.0.push(format!("{name} {value}"));
            }
        }
        let mut events = Events(Vec::new());
        Reader::new(TEXT).walk(&mut events).unwrap();
        assert_eq!(events.0, ["{", r#""a" "x""#, "{", "}", "{", r#""\u0063" "\"}""#, "}", r#""e" "y""#, "}"]);
    }

    #[test]
    fn special_bytes_of_a_string_are_found_at_any_offset() {
        for before in 0..20 {
            for after in [0, 1, 7, 8, 9] {
                for (odd, reads) in [
                    ("", true),
                    ("\\\"", true),
                    ("\\\\", true),
                    ("\u{7f}", true),
                    ("\u{80}", true),
                    ("\u{ff}!", true),
                    ("\u{1f}", false),
                    ("\0", false),
                    ("\n", false),
                    ("\\x", false),
                ] {
                    let string = format!("\"{}{odd}{}\"", "é".repeat(before), "a".repeat(after));
                    let text = format!("{string}, \"b\"");
                    let mut reader = Reader::new(&text);
                    assert_eq!(reader.raw().ok(), reads.then_some(string.as_str()), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn nesting_of_a_million_levels_is_skipped() {
        let depth = 1_000_000;
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(skip_all(&text), Ok(text.as_str()));
        assert!(skip_all(&"{\"a\":[".repeat(depth)).is_err());
    }

    #[test]
    fn surrogates_are_joined_and_lone_ones_replaced() {
        for (text, read) in [
            (r#""\ud83e\udd80""#, "🦀"),
            (r#""\ud83e!""#, "\u{fffd}!"),
            (r#""\ud83e\u0041""#, "\u{fffd}A"),
            (r#""\udd80""#, "\u{fffd}"),
            (r#""\u00e9\/""#, "é/"),
        ] {
            assert_eq!(Reader::new(text).string().unwrap(), read, "{text}");
        }
    }

    #[test]
    fn an_integer_is_written_as_one() {
        for (text, value) in [("0", Some(0)), ("-7", Some(-7)), ("9223372036854775807", Some(i64::MAX))] {
            assert_eq!(Reader::new(text).integer().ok(), value);
        }
        for text in ["1.0", "1e3", "\"1\"", "9223372036854775808", "null", "-", ""] {
            assert!(Reader::new(text).integer().is_err(), "{text}");
        }
    }
}
