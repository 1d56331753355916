//! Characters that yaml.v3 reads differently from YAML 1.2.

use saphyr_parser::StrInput;
use saphyr_parser::input::{Input, SkipTabs, is_blank_or_breakz};

/// The text for the parser. A comment may start right after a quote or a bracket, and a tab separates a key
/// from its value. Between brackets, a colon without a blank after it belongs to an unquoted text: `{a:,b:
/// 1}` has the keys `a:` and `b`.
pub(super) struct Characters<'a>(StrInput<'a>);

impl<'a> Characters<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(StrInput::new(text))
    }
}

impl Input for Characters<'_> {
    fn lookahead(&mut self, count: usize) {
        self.0.lookahead(count);
    }

    fn buflen(&self) -> usize {
        self.0.buflen()
    }

    fn bufmaxlen(&self) -> usize {
        self.0.bufmaxlen()
    }

    fn raw_read_ch(&mut self) -> char {
        self.0.raw_read_ch()
    }

    fn raw_read_non_breakz_ch(&mut self) -> Option<char> {
        self.0.raw_read_non_breakz_ch()
    }

    fn skip(&mut self) {
        self.0.skip();
    }

    fn skip_n(&mut self, count: usize) {
        self.0.skip_n(count);
    }

    fn peek(&self) -> char {
        self.0.peek()
    }

    fn peek_nth(&self, n: usize) -> char {
        self.0.peek_nth(n)
    }

    fn peek_opt(&self) -> Option<char> {
        self.0.peek_opt()
    }

    fn skip_ws_to_eol(&mut self, skip_tabs: SkipTabs) -> (usize, Result<SkipTabs, &'static str>) {
        if self.0.look_ch() == '#' {
            return (self.0.skip_while_non_breakz(), Ok(SkipTabs::Result(false, false)));
        }
        let (skipped, result) = self.0.skip_ws_to_eol(skip_tabs);
        (
            skipped,
            result.map(|it| SkipTabs::Result(it.found_tabs(), it.found_tabs() || it.has_valid_yaml_ws())),
        )
    }

    fn next_can_be_plain_scalar(&self, in_flow: bool) -> bool {
        match self.0.peek() {
            ':' => !is_blank_or_breakz(self.0.peek_nth(1)),
            _ => self.0.next_can_be_plain_scalar(in_flow),
        }
    }
}

/// The first tab between two tokens outside of brackets that yaml.v3 does not accept as a blank: at the start
/// of a line, or after the dash of an item. If the first token is a text that includes the blank lines below
/// it, tabs in these from the column `least` on belong to the text. Blanks between comments on their own
/// lines may be tabs.
pub(super) fn stray_tab(gap: &str, begins_line: bool, mut least: Option<usize>) -> Option<usize> {
    let mut start = 0;
    let mut is_below_comment = false;
    let mut stray = None;
    for (index, line) in gap.split(['\n', '\r']).enumerate() {
        let is_behind_token = index == 0 && !begins_line;
        let content = line.trim_start_matches([' ', '\t']);
        let tab = tab_before_content(line).filter(|column| least.is_none_or(|least| *column < least));
        let tab = tab.filter(|_| !is_behind_token).or_else(|| tab_behind_dash(line));
        let is_comment = content.trim_start_matches(['-', ' ']).starts_with('#')
            && !(is_behind_token && content.starts_with('#'));
        match tab {
            Some(tab) if is_below_comment && content.is_empty() => stray = stray.or(Some(start + tab)),
            Some(tab) if !is_below_comment || !is_comment => return stray.or(Some(start + tab)),
            _ if content.is_empty() => {}
            _ if content.starts_with('#') => stray = None,
            _ if stray.is_some() => return stray,
            _ => is_below_comment = false,
        }
        is_below_comment |= is_comment;
        if !content.is_empty() {
            least = None;
        }
        start += line.len() + 1;
    }
    stray
}

/// The first tab in an unquoted text before the column `least`, from which on tabs count as blanks.
pub(super) fn stray_tab_within(text: &str, least: usize) -> Option<usize> {
    let mut start = 0;
    for (index, line) in text.split(['\n', '\r']).enumerate() {
        if let Some(tab) = tab_before_content(line).filter(|column| index > 0 && *column < least) {
            return Some(start + tab);
        }
        start += line.len() + 1;
    }
    None
}

fn tab_before_content(line: &str) -> Option<usize> {
    let content = line.trim_start_matches(' ');
    content.starts_with('\t').then(|| line.len() - content.len())
}

fn tab_behind_dash(line: &str) -> Option<usize> {
    let mut rest = line.trim_start_matches(' ');
    let mut tab = None;
    while let Some(item) = rest.strip_prefix('-').filter(|item| item.starts_with([' ', '\t'])) {
        rest = item.trim_start_matches(' ');
        tab = rest.starts_with('\t').then(|| line.len() - rest.len());
    }
    tab
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_are_no_indentation() {
        for (gap, begins_line, least, place) in [
            ("\t", true, None, Some(0)),
            ("\t", false, None, None),
            (":\t", false, None, None),
            (":\n \t", false, None, Some(3)),
            (":\n-\t", false, None, Some(3)),
            (":\n- - \t", false, None, Some(6)),
            ("- \t# x\n", true, None, Some(2)),
            (" #\t\n# -\t\n", false, None, None),
            ("---\t\n", true, None, None),
            (":\r\n\t", false, None, Some(3)),
            ("\n  \t\n", false, Some(2), None),
            ("\n \t\n", false, Some(2), Some(2)),
            ("\n# x\n  \t\n", false, Some(2), Some(7)),
            ("\n# x\n\t\n\t# y\n", false, None, None),
            (" # x\n\t# y\n", false, None, Some(5)),
            ("\n# x\n\t# y\n\t", false, None, Some(10)),
            ("\n# x\n\t\n-", false, None, Some(5)),
        ] {
            assert_eq!(stray_tab(gap, begins_line, least), place, "{gap:?}");
        }
    }
}
