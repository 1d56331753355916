//! Hidden characters: those that are not seen, and those that change the order of the text around them.
//!
//! Two texts that differ only by them look equal, and a text can seem to say what it does not. New names that people choose
//! have none. What clients send is stored as it is: the console and the commands show a sign for each of them.

/// Whether a character is hidden: a control character, a mark of direction, or a format character without a shape.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Joiners are a part of emoji and of words in some scripts. Between visible characters outside of ASCII, they neither
/// move nor hide anything.
fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let is_joined = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_hidden(c));
    matches!(c, '\u{200c}' | '\u{200d}') && is_joined(before) && is_joined(after)
}

/// The hidden characters of a text, with their places in bytes. Joiners that join are none.
fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (at, c) = chars.next()?;
        let is_found = is_hidden(c) && !joins(before, c, chars.peek().map(|(_, after)| *after));
        before = Some(c);
        Some(is_found.then_some((at, c)))
    })
    .flatten()
}

/// Whether a text has a hidden character.
pub fn has_hidden(text: &str) -> bool {
    hidden(text).next().is_some()
}

/// The text without its hidden characters.
pub fn without_hidden(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, c) in hidden(text) {
        seen.push_str(text.get(rest..at).unwrap_or_default());
        rest = at + c.len_utf8();
    }
    seen.push_str(text.get(rest..).unwrap_or_default());
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_found_and_removed() {
        for c in [
            '\0',
            '\n',
            '\u{7f}',
            '\u{9b}',
            '\u{ad}',
            '\u{61c}',
            '\u{180e}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{fff9}',
            '\u{1d173}',
            '\u{e0041}',
        ] {
            let text = format!("a{c}b");
            assert!(has_hidden(&text), "{text:?}");
            assert_eq!(without_hidden(&text), "ab", "{text:?}");
        }
        assert_eq!(without_hidden("\u{202e}\u{202e}"), "");
    }

    #[test]
    fn joiners_in_scripts_and_emoji_stay() {
        // Persian with a non-joiner, an emoji of two, a word from right to left, an Arabic sign of numbers.
        for text in
            ["", "a b", "\u{645}\u{6cc}\u{200c}\u{62e}", "\u{1f469}\u{200d}\u{1f4bb}", "שלום", "\u{600}1"]
        {
            assert!(!has_hidden(text), "{text:?}");
            assert_eq!(without_hidden(text), text);
        }
        for text in ["ad\u{200d}min", "\u{e9}\u{200c}", "\u{e9}\u{200d}\u{200d}\u{e9}"] {
            assert!(has_hidden(text), "{text:?}");
        }
    }
}
