//! The only module that prints. The answer goes to stdout: text or a table for people, one JSON document for
//! scripts. Everything else goes to stderr.
//!
//! Much of the text is untrusted: messages of updates, holders of locks, names of outputs. A control
//! character would be a command to the terminal, and an invisible one can make two texts look alike. So both
//! are always escaped.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, bail};
use comfy_table::{ContentArrangement, Table, TableStyle};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use serde::{Serialize, Serializer};
use statewright_server::LogForm;
use statewright_shared::ports::Timestamp;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// The interval between updates of a progress bar.
const TICK: Duration = Duration::from_millis(200);

/// Prints the results of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Whether there is a person at a terminal.
    pub(crate) fn can_ask(self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Prints the answer: the document as JSON, or its text for people. A command answers once.
    pub(crate) fn answer<T: Serialize>(
        self,
        document: &T,
        for_people: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            let text = serde_json::to_string_pretty(document).context("cannot serialize the answer")?;
            print(&in_json(&text))
        } else {
            print(&for_terminals(&for_people(document)))
        }
    }

    /// Prints text in its own format unchanged, for a file or another program.
    pub(crate) fn text(self, text: &str) -> anyhow::Result<()> {
        if io::stdout().is_terminal() { print(&for_terminals(text)) } else { print(text) }
    }

    /// Prints a message on stderr.
    pub(crate) fn note(self, text: impl fmt::Display) {
        // stderr is closed, so the error cannot be reported.
        let _ = writeln!(io::stderr(), "{}", for_terminals(&text.to_string()));
    }

    /// Prints an error with all its causes, since each layer adds only its own context.
    pub(crate) fn complain(self, error: &anyhow::Error, next_step: Option<&str>) {
        // Untrusted text cannot start a line. Our own further lines follow the first one, indented by two
        // spaces.
        let error = format!("{error:#}");
        let lines: Vec<_> = error.split("\n  ").map(on_one_line).collect();
        self.note(format_args!("error: {}", lines.join("\n  ")));
        if let Some(next_step) = next_step {
            self.note(format_args!("  {next_step}"));
        }
    }

    /// Shows the progress of a long operation, with a bar if `total` is known. Only on stderr, and only at a
    /// terminal.
    pub(crate) fn progress(self, what: &'static str, total: Option<u64>) -> ProgressBar {
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), "{msg}: {pos} of {len} {wide_bar} {eta}"),
            None => (ProgressBar::new_spinner(), "{spinner} {msg}: {pos}"),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = bar.with_style(style).with_message(what);
        if !bar.is_hidden() {
            bar.enable_steady_tick(TICK);
        }
        bar
    }

    /// Asks for confirmation before an irreversible change, unless `--yes` was given. Without a terminal only
    /// `--yes` confirms.
    ///
    /// # Errors
    /// If the user does not confirm, or without a terminal to ask at.
    pub(crate) fn confirm(self, question: &str, yes: bool) -> anyhow::Result<()> {
        self.confirm_or(question, yes, "--yes")
    }

    /// Like [`Output::confirm`], with another option instead of `--yes`.
    ///
    /// # Errors
    /// Like [`Output::confirm`].
    pub(crate) fn confirm_or(self, question: &str, yes: bool, option: &str) -> anyhow::Result<()> {
        if yes {
            return Ok(());
        }
        if !self.can_ask() {
            bail!("{question} Cannot ask without a terminal: to confirm, add {option}");
        }
        let mut stderr = io::stderr();
        write!(stderr, "{} [y/N] ", for_terminals(question))
            .and_then(|()| stderr.flush())
            .context("cannot write to the terminal")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        bail!("not confirmed: nothing was changed")
    }

    /// Asks for a new password, twice and without echo at a terminal; otherwise reads the first line of
    /// stdin.
    ///
    /// # Errors
    /// If the two differ, there is none, or the terminal fails.
    pub(crate) fn ask_for_password(self, question: &str) -> anyhow::Result<String> {
        if !self.can_ask() {
            return read_line();
        }
        let hidden = Hidden::begin().context("cannot turn off the terminal's echo")?;
        let password = self.read_unseen(question)?;
        let again = self.read_unseen("Repeat it")?;
        drop(hidden);
        if password == again { Ok(password) } else { bail!("the passwords differ: nothing was changed") }
    }

    /// Asks for an existing secret, without echo at a terminal; otherwise reads the first line of stdin.
    ///
    /// # Errors
    /// If the terminal fails.
    pub(crate) fn ask_for_secret(self, question: &str) -> anyhow::Result<String> {
        if !self.can_ask() {
            return read_line();
        }
        let hidden = Hidden::begin().context("cannot turn off the terminal's echo")?;
        let line = self.read_unseen(question);
        drop(hidden);
        line
    }

    /// Asks at a terminal whose echo is off.
    fn read_unseen(self, question: &str) -> anyhow::Result<String> {
        let mut stderr = io::stderr();
        write!(stderr, "{question}: ")
            .and_then(|()| stderr.flush())
            .context("cannot write to the terminal")?;
        let line = read_line();
        // The line end was not echoed either.
        self.note("");
        line
    }

    /// Asks for a missing value; `None` without a terminal, or if the answer is empty.
    ///
    /// # Errors
    /// If the terminal fails.
    pub(crate) fn ask(self, question: &str) -> anyhow::Result<Option<String>> {
        if !self.can_ask() {
            return Ok(None);
        }
        let mut stderr = io::stderr();
        write!(stderr, "{}: ", for_terminals(question))
            .and_then(|()| stderr.flush())
            .context("cannot write to the terminal")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        Ok(Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty()))
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let printed = write!(stdout, "{text}{end}").and_then(|()| stdout.flush());
    match printed {
        // The reader closed the pipe, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("cannot print the answer"),
    }
}

/// Characters that untrusted text must not send to a terminal: control characters (Cc), invisible format
/// characters (Cf, such as zero-width and direction marks), and line and paragraph separators (Zl, Zp).
/// Visible characters of Cf, such as Arabic number signs, are harmless.
fn is_unsafe(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let is_of_the_kind = matches!(
        c.general_category(),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
    );
    is_of_the_kind && !is_sign_before_a_number(c)
}

/// Unicode's Prepended_Concatenation_Mark: the signs that enclose the digits after them.
fn is_sign_before_a_number(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{605}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{110bd}'
            | '\u{110cd}'
    )
}

/// Zero-width joiners are part of emoji and, like non-joiners, of words in Persian and Indic scripts. They
/// are kept between two visible characters outside ASCII, where they neither move nor hide anything.
fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let is_joined = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_unsafe(c));
    matches!(c, '\u{200c}' | '\u{200d}') && is_joined(before) && is_joined(after)
}

/// Escapes text of any number of lines.
fn for_terminals(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unsafe(c) && !matches!(c, '\n' | '\t'))
}

/// Escapes untrusted text to one line.
pub(crate) fn on_one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let (mut before, mut chars) = (None, text.chars().peekable());
    while let Some(c) = chars.next() {
        if is_escaped(c) && !joins(before, c, chars.peek().copied()) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
        before = Some(c);
    }
    Cow::Owned(safe)
}

/// Escapes the same characters in JSON, where they occur only within strings.
pub(crate) fn in_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_unsafe(c) && !c.is_ascii_whitespace();
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_escaped(c) {
            true => safe.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Writes log lines of this form to stderr, one for each write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log(pub(crate) LogForm);

impl Log {
    fn safe(self, text: &str) -> Cow<'_, str> {
        match self.0 {
            LogForm::Json => in_json(text),
            LogForm::Text => on_one_line(text),
            // Its values are already escaped, except for line ends.
            LogForm::Colored => escaped(text, |c| is_unsafe(c) && c != '\u{1b}'),
        }
    }
}

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        writeln!(io::stderr().lock(), "{}", self.safe(text.trim_end_matches('\n')))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Reads a line of stdin.
fn read_line() -> anyhow::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the answer")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Turns off the terminal's echo while it lives.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// A table with columns separated by spaces only, so that other programs can cut it. At a terminal no line is
/// wider than the screen: long cells continue on the next line.
pub(crate) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    table_within(terminal_width(), headings, rows)
}

/// The width of the terminal at stdout, if it is one.
fn terminal_width() -> Option<u16> {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| tcgetwinsize(&stdout).ok()).flatten();
    size.map(|size| size.ws_col).filter(|columns| *columns > 0)
}

fn table_within(
    width: Option<u16>,
    headings: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.load_style(TableStyle::new()).set_header(headings.iter().copied());
    table.add_rows(rows.into_iter().map(|row| row.into_iter().map(|cell| on_one_line(&cell).into_owned())));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    // Without the padding of the last column.
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// One line for each fact: its name and value.
pub(crate) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let line =
        |(name, value): (&str, String)| format!("{name:<10} {}", on_one_line(&value)).trim_end().to_owned();
    facts.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Escaped lines.
pub(crate) fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| on_one_line(line)).collect::<Vec<_>>().join("\n")
}

/// Quotes an untrusted word for pasting into a shell, where needed.
pub(crate) fn word(text: &str) -> Cow<'_, str> {
    let text = on_one_line(text);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/' | '@');
    match !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        true => text,
        false => Cow::Owned(format!("'{}'", text.replace('\'', "'\\''"))),
    }
}

/// An instant in answers: RFC 3339, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rfc3339(pub(crate) Timestamp);

impl fmt::Display for Rfc3339 {
    /// For people, to the second.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Timestamp::from_seconds(self.0.seconds()).to_rfc3339())
    }
}

impl Serialize for Rfc3339 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_rfc3339())
    }
}

/// An instant from a server's response for people, to the second.
pub(crate) fn to_the_second(rfc3339: &str) -> String {
    match rfc3339.split_once('.') {
        Some((second, _)) => format!("{second}Z"),
        None => rfc3339.to_owned(),
    }
}

/// A duration in its largest useful unit.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A size for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} B"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1_000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_are_separated_by_spaces() {
        let rows = [vec!["a".to_owned(), "never".to_owned()], vec!["longer".to_owned(), String::new()]];
        assert_eq!(table(&["NAME", "ENDS"], rows), "NAME    ENDS\na       never\nlonger");
    }

    /// Characters of each dangerous kind, alongside harmless ones.
    const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{0}\u{8}\r\u{7f}\u{9b}31m\u{85}\u{ad}\u{61c}\u{180e}\u{200b}\u{200e}\u{2028}\u{2029}\u{202e}\
                           \u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}\u{1d173}\u{e0001}\u{e0041}a\u{a0}\u{2070}";

    #[test]
    fn a_table_is_at_most_as_wide_as_the_terminal() {
        let rows = || vec![vec!["n".repeat(200), "2".to_owned()], vec!["short".to_owned(), "3".to_owned()]];
        let whole = table_within(None, &["NAME", "VERSION"], rows());
        assert!(whole.lines().any(|line| line == format!("{}  2", "n".repeat(200))), "{whole}");
        assert_eq!(whole.lines().count(), 3);
        let narrow = table_within(Some(60), &["NAME", "VERSION"], rows());
        assert!(narrow.lines().all(|line| line.len() <= 60), "{narrow}");
        assert_eq!(narrow.matches('n').count(), 200, "nothing is left out: {narrow}");
    }

    #[test]
    fn control_characters_are_escaped_and_json_stays_valid() {
        let safe = "\\u{1b}]0;x\\u{7}\\u{0}\\u{8}\\r\\u{7f}\\u{9b}31m\\u{85}\\u{ad}\\u{61c}\\u{180e}\\u{200b}\\u{200e}\\u{2028}\\u{2029}\\u{202e}\
                    \\u{2060}\\u{2066}\\u{2069}\\u{feff}\\u{fff9}\\u{1d173}\\u{e0001}\\u{e0041}a\u{a0}\u{2070}";
        assert_eq!(for_terminals(HOSTILE), safe);
        assert_eq!(on_one_line(HOSTILE), safe);
        assert_eq!(for_terminals("a\tb\nc"), "a\tb\nc");
        assert_eq!(on_one_line("a\tb\nc"), "a\\tb\\nc");
        let document = serde_json::json!({ "who": HOSTILE, "lines": ["a\nb"] });
        let json = serde_json::to_string_pretty(&document).unwrap();
        let safe = in_json(&json);
        assert!(safe.chars().all(|c| c == '\n' || !is_unsafe(c)), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), document);
    }

    #[test]
    fn joiners_in_scripts_and_emoji_are_kept() {
        // Persian with a non-joiner, a family emoji, Devanagari with a joiner, an Arabic number sign.
        for text in [
            "\u{645}\u{6cc}\u{200c}\u{62e}",
            "\u{1f469}\u{200d}\u{1f4bb}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{600}1",
        ] {
            assert_eq!(for_terminals(text), text);
            assert_eq!(on_one_line(text), text);
        }
        for (hidden, shown) in [
            ("ad\u{200d}min", "ad\\u{200d}min"),
            ("\u{e9}\u{200c}", "\u{e9}\\u{200c}"),
            ("\u{e9}\u{200d}\u{200d}\u{e9}", "\u{e9}\\u{200d}\\u{200d}\u{e9}"),
        ] {
            assert_eq!(for_terminals(hidden), shown);
        }
    }

    #[test]
    fn cells_facts_and_log_lines_stay_on_one_line() {
        assert_eq!(
            table(&["NAME", "ENDS"], [vec!["a\nb".to_owned(), "\r".to_owned()]]),
            "NAME  ENDS\na\\nb  \\r"
        );
        assert_eq!(facts([("lock", "free\nstatus clean".to_owned())]), "lock       free\\nstatus clean");
        assert_eq!(lines(&["+ a\nb".to_owned(), "- c".to_owned()]), "+ a\\nb\n- c");
        assert_eq!(word("a\nb"), "'a\\nb'");
        assert_eq!(["a-1", "a b", "$(x)'y", "-x"].map(word), ["a-1", "'a b'", "'$(x)'\\''y'", "'-x'"]);
        assert_eq!(Log(LogForm::Text).safe("a\nb\u{1b}[0m"), "a\\nb\\u{1b}[0m");
        assert_eq!(Log(LogForm::Colored).safe("a\nb\u{1b}[0m"), "a\\nb\u{1b}[0m");
    }

    #[test]
    fn instants_are_rfc_3339_and_people_see_seconds() {
        let at = Rfc3339(Timestamp(1_767_225_601_500_000_000));
        assert_eq!(at.to_string(), "2026-01-01T00:00:01Z");
        assert_eq!(serde_json::to_string(&at).unwrap(), "\"2026-01-01T00:00:01.5Z\"");
    }
}
