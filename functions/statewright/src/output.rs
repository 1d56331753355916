//! The one place that prints. What was asked for goes to stdout: a text or a table for people, one JSON document for
//! scripts. All else goes to stderr.
//!
//! Much of it was written by others: the message of an update, who holds a lock, the name of an output. A control character in it would
//! be a command to the reader's terminal, and one that is not seen can make two texts look alike, so none leaves this place but as an
//! escape.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead as _, ErrorKind, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, bail};
use comfy_table::{ContentArrangement, Table, TableStyle};
use indicatif::{ProgressBar, ProgressStyle};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use serde::{Serialize, Serializer};
use statewright_shared::ports::Timestamp;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

/// How often what goes on shows that it does.
const TICK: Duration = Duration::from_millis(200);

/// Where a command says what came of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    /// For scripts, or for people.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether a script asks.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Answers: with the document as JSON, or with what people read of it. Each command answers once.
    pub(crate) fn answer<T: Serialize>(
        self,
        document: &T,
        for_people: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            let text =
                serde_json::to_string_pretty(document).context("the answer cannot be written as JSON")?;
            print(&in_json(&text))
        } else {
            print(&for_terminals(&for_people(document)))
        }
    }

    /// Prints what has its own form, as it is for a file or another program.
    pub(crate) fn text(self, text: &str) -> anyhow::Result<()> {
        if io::stdout().is_terminal() { print(&for_terminals(text)) } else { print(text) }
    }

    /// Says something next to the answer.
    pub(crate) fn note(self, text: impl fmt::Display) {
        // There is nowhere left to say that stderr is gone.
        let _ = writeln!(io::stderr(), "{}", for_terminals(&text.to_string()));
    }

    /// Says why a command is refused: the whole chain, since each layer says only what it knows.
    pub(crate) fn complain(self, error: &anyhow::Error, next_step: Option<&str>) {
        // What others wrote begins no line: those of our own stand below the first one, behind two blanks.
        let error = format!("{error:#}");
        let lines: Vec<_> = error.split("\n  ").map(on_one_line).collect();
        self.note(format_args!("error: {}", lines.join("\n  ")));
        if let Some(next_step) = next_step {
            self.note(format_args!("  {next_step}"));
        }
    }

    /// Shows that something long goes on, and how far it is where `total` is known: on stderr, and only on a terminal.
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

    /// Asks before what cannot be taken back: no question if the answer was given with `--yes`, and without a terminal
    /// only that answer counts.
    ///
    /// # Errors
    /// When the answer is no, or nobody can be asked.
    pub(crate) fn confirm(self, question: &str, yes: bool) -> anyhow::Result<()> {
        self.confirm_or(question, yes, "--yes")
    }

    /// As [`Output::confirm`], where another option gives the answer.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn confirm_or(self, question: &str, yes: bool, option: &str) -> anyhow::Result<()> {
        if yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            bail!("{question} Nobody can be asked here: add {option} if that is meant");
        }
        let mut stderr = io::stderr();
        write!(stderr, "{} [y/N] ", for_terminals(question))
            .and_then(|()| stderr.flush())
            .context("cannot ask")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        bail!("nothing was done, as you did not say yes")
    }

    /// Asks for a new password: on a terminal twice and without showing it, and else it is the first line of stdin.
    ///
    /// # Errors
    /// If both are not the same, there is none, or the terminal breaks.
    pub(crate) fn ask_for_password(self, question: &str) -> anyhow::Result<String> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return read_line();
        }
        let hidden = Hidden::begin().context("the terminal cannot be kept from showing what is typed")?;
        let typed = |question: &str| {
            let mut stderr = io::stderr();
            write!(stderr, "{question}: ").and_then(|()| stderr.flush()).context("cannot ask")?;
            let line = read_line();
            // The end of the line was not shown either.
            self.note("");
            line
        };
        let password = typed(question)?;
        let again = typed("The same again")?;
        drop(hidden);
        if password == again { Ok(password) } else { bail!("these are not the same; nothing was done") }
    }

    /// Asks for a secret that exists: on a terminal without showing it, and else it is the first line of stdin.
    ///
    /// # Errors
    /// If the terminal breaks.
    pub(crate) fn ask_for_secret(self, question: &str) -> anyhow::Result<String> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return read_line();
        }
        let hidden = Hidden::begin().context("the terminal cannot be kept from showing what is typed")?;
        let mut stderr = io::stderr();
        write!(stderr, "{question}: ").and_then(|()| stderr.flush()).context("cannot ask")?;
        let line = read_line();
        // The end of the line was not shown either.
        self.note("");
        drop(hidden);
        line
    }

    /// Asks for something that was not said; `None` where nobody can be asked, or nothing was answered.
    ///
    /// # Errors
    /// If the terminal breaks.
    pub(crate) fn ask(self, question: &str) -> anyhow::Result<Option<String>> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(None);
        }
        let mut stderr = io::stderr();
        write!(stderr, "{}: ", for_terminals(question))
            .and_then(|()| stderr.flush())
            .context("cannot ask")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        Ok(Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty()))
    }
}

/// Prints the answer.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let printed = write!(stdout, "{text}{end}").and_then(|()| stdout.flush());
    match printed {
        // The reader has enough, as `head` does.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed.context("cannot print the answer"),
    }
}

/// What no terminal may get from others: control characters (Cc), characters that format others and are not seen themselves (Cf, such
/// as those that have no width or turn the direction), and the ends of lines and paragraphs (Zl, Zp). The signs of Cf that are
/// seen, of Arabic and other numbers, are letters as far as a terminal is concerned.
fn is_for_no_terminal(c: char) -> bool {
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

/// Emoji are made of several with the one, and words of Persian and of Indic scripts with both: they stay between two characters that are
/// seen and not of ASCII, where they move nothing and hide nothing.
fn joins(before: Option<char>, c: char, after: Option<char>) -> bool {
    let is_joined = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_for_no_terminal(c));
    matches!(c, '\u{200c}' | '\u{200d}') && is_joined(before) && is_joined(after)
}

/// A text for people, on any number of lines.
fn for_terminals(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_for_no_terminal(c) && !matches!(c, '\n' | '\t'))
}

/// A text for people that others wrote: on one line, whatever is in it.
pub(crate) fn on_one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_for_no_terminal)
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

/// JSON with the same characters as escapes of its own. They are within texts alone.
pub(crate) fn in_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_for_no_terminal(c) && !c.is_ascii_whitespace();
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

/// How the lines of a log are made safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogLines {
    Json,
    Text,
    /// Text with colours, in which the values are safe but for the ends of lines.
    Coloured,
}

/// Writes lines of a log to stderr: one for each write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Log(pub(crate) LogLines);

impl Log {
    fn safe(self, text: &str) -> Cow<'_, str> {
        match self.0 {
            LogLines::Json => in_json(text),
            LogLines::Text => on_one_line(text),
            LogLines::Coloured => escaped(text, |c| is_for_no_terminal(c) && c != '\u{1b}'),
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

/// The next line of stdin.
fn read_line() -> anyhow::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read the answer")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// While it lives, the terminal does not show what is typed.
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
        // Whoever took the terminal away shows nothing on it.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Rows under their headings, with nothing but blanks between, so that it can be cut by other programs too. On a terminal no line is
/// longer than that is wide: a long cell goes on in the next line.
pub(crate) fn table(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    table_within(terminal_width(), headings, rows)
}

/// The width of the terminal that stdout is, if it is one.
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
    // Without the blanks that fill up the last column.
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// A line for each thing that there is to know: its name, and what is known.
pub(crate) fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let line =
        |(name, value): (&str, String)| format!("{name:<10} {}", on_one_line(&value)).trim_end().to_owned();
    facts.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Lines that name things of others, each on its own.
pub(crate) fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| on_one_line(line)).collect::<Vec<_>>().join("\n")
}

/// A word of a command line that people may paste into a shell: in quotes, unless it means itself there.
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

/// An instant of a server's answer for people, to the second.
pub(crate) fn to_the_second(rfc3339: &str) -> String {
    match rfc3339.split_once('.') {
        Some((second, _)) => format!("{second}Z"),
        None => rfc3339.to_owned(),
    }
}

/// How long something lasts, in its largest unit that says enough.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A length for people.
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
    fn a_table_is_rows_with_blanks_between() {
        let rows = [vec!["a".to_owned(), "never".to_owned()], vec!["longer".to_owned(), String::new()]];
        assert_eq!(table(&["NAME", "ENDS"], rows), "NAME    ENDS\na       never\nlonger");
    }

    /// Of each kind that is dangerous some, and next to them one that is not.
    const HOSTILE: &str = "\u{1b}]0;x\u{7}\u{0}\u{8}\r\u{7f}\u{9b}31m\u{85}\u{ad}\u{61c}\u{180e}\u{200b}\u{200e}\u{2028}\u{2029}\u{202e}\
                           \u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}\u{1d173}\u{e0001}\u{e0041}a\u{a0}\u{2070}";

    #[test]
    fn a_table_is_as_wide_as_its_cells_or_as_the_terminal() {
        let rows = || vec![vec!["n".repeat(200), "2".to_owned()], vec!["short".to_owned(), "3".to_owned()]];
        let whole = table_within(None, &["NAME", "VERSION"], rows());
        assert!(whole.lines().any(|line| line == format!("{}  2", "n".repeat(200))), "{whole}");
        assert_eq!(whole.lines().count(), 3);
        let narrow = table_within(Some(60), &["NAME", "VERSION"], rows());
        assert!(narrow.lines().all(|line| line.len() <= 60), "{narrow}");
        assert_eq!(narrow.matches('n').count(), 200, "nothing is left out: {narrow}");
    }

    #[test]
    fn no_control_character_reaches_a_terminal_and_json_stays_json() {
        let safe = "\\u{1b}]0;x\\u{7}\\u{0}\\u{8}\\r\\u{7f}\\u{9b}31m\\u{85}\\u{ad}\\u{61c}\\u{180e}\\u{200b}\\u{200e}\\u{2028}\\u{2029}\\u{202e}\
                    \\u{2060}\\u{2066}\\u{2069}\\u{feff}\\u{fff9}\\u{1d173}\\u{e0001}\\u{e0041}a\u{a0}\u{2070}";
        assert_eq!(for_terminals(HOSTILE), safe);
        assert_eq!(on_one_line(HOSTILE), safe);
        assert_eq!(for_terminals("a\tb\nc"), "a\tb\nc");
        assert_eq!(on_one_line("a\tb\nc"), "a\\tb\\nc");
        let document = serde_json::json!({ "who": HOSTILE, "lines": ["a\nb"] });
        let json = serde_json::to_string_pretty(&document).unwrap();
        let safe = in_json(&json);
        assert!(safe.chars().all(|c| c == '\n' || !is_for_no_terminal(c)), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), document);
    }

    #[test]
    fn what_scripts_and_emoji_are_made_of_stays() {
        // Persian with a non-joiner, a family, Devanagari with a joiner, an Arabic sign of a number.
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
    fn a_cell_a_fact_and_a_line_of_a_log_stay_on_one_line() {
        assert_eq!(
            table(&["NAME", "ENDS"], [vec!["a\nb".to_owned(), "\r".to_owned()]]),
            "NAME  ENDS\na\\nb  \\r"
        );
        assert_eq!(facts([("lock", "free\nstatus clean".to_owned())]), "lock       free\\nstatus clean");
        assert_eq!(lines(&["+ a\nb".to_owned(), "- c".to_owned()]), "+ a\\nb\n- c");
        assert_eq!(word("a\nb"), "'a\\nb'");
        assert_eq!(["a-1", "a b", "$(x)'y", "-x"].map(word), ["a-1", "'a b'", "'$(x)'\\''y'", "'-x'"]);
        assert_eq!(Log(LogLines::Text).safe("a\nb\u{1b}[0m"), "a\\nb\\u{1b}[0m");
        assert_eq!(Log(LogLines::Coloured).safe("a\nb\u{1b}[0m"), "a\\nb\u{1b}[0m");
    }

    #[test]
    fn an_instant_is_rfc_3339_and_people_see_whole_seconds() {
        let at = Rfc3339(Timestamp(1_767_225_601_500_000_000));
        assert_eq!(at.to_string(), "2026-01-01T00:00:01Z");
        assert_eq!(serde_json::to_string(&at).unwrap(), "\"2026-01-01T00:00:01.5Z\"");
    }
}
