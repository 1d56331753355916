//! The parts of HCL that backends need: writes the backend block of a state, and finds backend blocks in a
//! configuration.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::StateAddress;
use statewright_shared::domain::server_url::ServerUrl;

use crate::managed::HEADER;

/// The file with the backend of a state.
pub(crate) const BACKEND_FILE: &str = "backend.tf";

/// The file with a temporary backend, which exists while a client runs.
pub(crate) const TEMPORARY_FILE: &str = "statewright_backend.tf";

/// Quotes a string for HCL so that nothing in it ends the string or is read as a template (hashicorp/hcl,
/// `hclsyntax/spec.md`, "Template Expressions").
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '$' | '%' if characters.peek() == Some(&'{') => quoted.extend([c, c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The backend file of a state. It uses the id, so that renaming the state changes nothing; methods that all
/// proxies pass; and no credentials, since clients store backend settings in plain text.
pub(crate) fn backend(server: &ServerUrl, id: StateId, address: &StateAddress) -> String {
    backend_of(server, id, address, "`statewright state init` overwrites this file.")
}

/// Like [`backend`], for a file that exists while a client runs.
pub(crate) fn temporary_backend(server: &ServerUrl, id: StateId, address: &StateAddress) -> String {
    backend_of(server, id, address, "`statewright tf` deletes this file when it ends.")
}

fn backend_of(server: &ServerUrl, id: StateId, address: &StateAddress, what: &str) -> String {
    let at = format!("{server}/tfstate/{id}");
    let (lock, at) = (quoted(&format!("{at}/lock")), quoted(&at));
    format!(
        "{HEADER}: {what}\n\
         # It belongs to the state {address}. The token comes from the environment: `statewright tf -- plan`, or\n\
         # TF_HTTP_USERNAME and TF_HTTP_PASSWORD.\n\n\
         terraform {{\n  backend \"http\" {{\n    \
         address        = {at}\n    \
         lock_address   = {lock}\n    lock_method    = \"POST\"\n    \
         unlock_address = {lock}\n    unlock_method  = \"DELETE\"\n  }}\n}}\n"
    )
}

/// The settings of an HTTP backend with addresses that receive the credentials.
pub(crate) const ADDRESSES: [&str; 3] = ["address", "lock_address", "unlock_address"];

/// A backend block of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    /// The file with the block.
    pub(crate) file: PathBuf,
    /// `http`, `s3`, …; `cloud` for a cloud block.
    pub(crate) kind: String,
    /// The [`ADDRESSES`] that it sets.
    pub(crate) addresses: Vec<Address>,
}

/// An address setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The name of the setting.
    pub(crate) setting: String,
    /// Its value; `None` for an expression other than a string.
    pub(crate) text: Option<String>,
}

/// The kind of a backend and its addresses.
type Block = (String, Vec<Address>);

/// The backends of the configuration in this folder, in the files that clients read. A valid configuration
/// has at most one.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn backends(folder: &Path) -> anyhow::Result<Vec<Backend>> {
    let cannot = || format!("cannot read the configuration in {}", folder.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        files.push(entry.with_context(cannot)?.path());
    }
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_json = name.ends_with(".tf.json") || name.ends_with(".tofu.json");
        let is_hcl = name.ends_with(".tf") || name.ends_with(".tofu");
        // Clients ignore the backup files of editors.
        let is_read =
            (is_json || is_hcl) && !name.starts_with(['.', '#']) && !name.ends_with('~') && file.is_file();
        if !is_read {
            continue;
        }
        let text = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let text = String::from_utf8_lossy(&text);
        let kinds = if is_json { in_json(&text) } else { in_hcl(&text) };
        let backend = |(kind, addresses)| Backend { file: file.clone(), kind, addresses };
        found.extend(kinds.into_iter().map(backend));
    }
    Ok(found)
}

/// The [`ADDRESSES`] in a file that contains only backend settings; `None` if it cannot be read.
pub(crate) fn settings(file: &Path) -> Option<Vec<Address>> {
    let text = String::from_utf8_lossy(&fs::read(file).ok()?).into_owned();
    if file.extension().is_some_and(|extension| extension == "json") {
        return serde_json::from_str(&text).ok().map(|document| settings_in_json(&document));
    }
    // Parsed as if they were in a block.
    let backends = in_hcl(&format!("terraform {{\nbackend \"http\" {{\n{text}\n}}\n}}\n"));
    Some(backends.into_iter().flat_map(|(_, addresses)| addresses).collect())
}

fn settings_in_json(settings: &Value) -> Vec<Address> {
    let set = ADDRESSES.iter().filter_map(|name| Some((*name, settings.get(name)?)));
    let address = |(name, value): (&str, &Value)| Address {
        setting: name.to_owned(),
        text: value.as_str().map(str::to_owned),
    };
    set.filter(|(_, value)| !value.is_null()).map(address).collect()
}

/// Backends with their addresses. Invalid JSON has none: the client reports the error.
fn in_json(text: &str) -> Vec<Block> {
    /// A block is an object, or a list of several.
    fn blocks(value: &Value) -> Vec<&Value> {
        match value {
            Value::Array(blocks) => blocks.iter().collect(),
            block => vec![block],
        }
    }
    let Ok(document) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let mut found = Vec::new();
    for terraform in document.get("terraform").map(blocks).unwrap_or_default() {
        for backend in terraform.get("backend").map(blocks).unwrap_or_default() {
            for (kind, settings) in backend.as_object().into_iter().flatten() {
                let addresses = blocks(settings).into_iter().flat_map(settings_in_json).collect();
                found.push((kind.clone(), addresses));
            }
        }
        found.extend(terraform.get("cloud").map(|_| ("cloud".to_owned(), Vec::new())));
    }
    found
}

fn in_hcl(text: &str) -> Vec<Block> {
    let words = words(text);
    let (mut found, mut open): (Vec<Block>, Vec<&Word>) = (Vec::new(), Vec::new());
    let name = |word: Option<&&Word>| match word {
        Some(Word::Name(name)) => Some(name.clone()),
        _ => None,
    };
    for (at, word) in words.iter().enumerate() {
        match word {
            // A block is opened by the name at the start of its line.
            Word::Open => {
                let head = words.get(..at).unwrap_or_default().iter().rev();
                let head: Vec<&Word> =
                    head.take_while(|word| matches!(word, Word::Name(_) | Word::Text(_))).collect();
                let first = head.last().copied().unwrap_or(&Word::Open);
                let is_in_terraform = name(open.first()).as_deref() == Some("terraform") && open.len() == 1;
                match (first, head.first()) {
                    (Word::Name(name), Some(Word::Text(kind))) if is_in_terraform && name == "backend" => {
                        found.push((kind.clone(), Vec::new()));
                    }
                    (Word::Name(name), _) if is_in_terraform && name == "cloud" => {
                        found.push((name.clone(), Vec::new()));
                    }
                    _ => {}
                }
                open.push(first);
            }
            Word::Close => drop(open.pop()),
            Word::Name(setting) if ADDRESSES.contains(&setting.as_str()) => {
                let is_in_backend = open.len() == 2 && name(open.get(1)).as_deref() == Some("backend");
                let text = match words.get(at + 1..at + 4).unwrap_or_default() {
                    // Only a plain string is a known value.
                    [Word::Equals, Word::Text(text), Word::Other | Word::Close] => Some(Some(text.clone())),
                    [Word::Equals, ..] => Some(None),
                    _ => None,
                };
                if let (true, Some(text), Some((_, addresses))) = (is_in_backend, text, found.last_mut()) {
                    addresses.push(Address { setting: setting.clone(), text });
                }
            }
            Word::Name(_) | Word::Text(_) | Word::Equals | Word::Other => {}
        }
    }
    found
}

/// The tokens of HCL, as far as blocks and plain settings need them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Name(String),
    /// A quoted string, with its escapes.
    Text(String),
    Open,
    Close,
    Equals,
    Other,
}

/// Splits HCL into tokens without comments. A quoted string or heredoc is one token, whatever it contains.
fn words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let behind = rest.get(c.len_utf8()..).unwrap_or_default();
        if c == '#' || rest.starts_with("//") {
            rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, rest)| rest);
        } else if rest.starts_with("<<") {
            words.push(Word::Other);
            rest = behind_heredoc(rest);
        } else if c == '"' {
            let (text, behind) = in_quotes(behind);
            words.push(Word::Text(text));
            rest = behind;
        } else if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')));
            let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
            words.push(Word::Name(name.to_owned()));
            rest = behind;
        } else {
            match c {
                '{' => words.push(Word::Open),
                '}' => words.push(Word::Close),
                '=' => words.push(Word::Equals),
                // The end of a line ends a setting.
                '\n' => words.push(Word::Other),
                c if c.is_whitespace() => {}
                _ => words.push(Word::Other),
            }
            rest = behind;
        }
    }
    words
}

/// Splits at the closing quote. Templates may contain quotes.
fn in_quotes(text: &str) -> (String, &str) {
    let (mut depth, mut inner, mut found) = (0_usize, false, String::new());
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => {
                if let Some((_, escaped)) = characters.next() {
                    found.extend(['\\', escaped]);
                }
                continue;
            }
            // A doubled sign is an escape.
            '$' | '%' if depth == 0 && !found.ends_with(c) => {
                depth = usize::from(characters.peek().is_some_and(|(_, next)| *next == '{'));
            }
            '{' if depth > 0 && !inner && !found.ends_with(['$', '%']) => depth += 1,
            '}' if depth > 0 && !inner => depth -= 1,
            '"' if depth > 0 => inner = !inner,
            '"' => return (found, text.get(at + 1..).unwrap_or_default()),
            _ => {}
        }
        found.push(c);
    }
    (found, "")
}

/// The text after a heredoc.
fn behind_heredoc(text: &str) -> &str {
    let (first, body) = text.split_once('\n').unwrap_or((text, ""));
    let end = first.trim_start_matches("<<").trim_start_matches('-').trim();
    let mut rest = body;
    while !rest.is_empty() {
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = behind;
        if line.trim() == end {
            break;
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_escapes_every_special_character() {
        for (text, expected) in [
            ("plain", r#""plain""#),
            (r#"a"b\c"#, r#""a\"b\\c""#),
            ("${x} %{y} $ % $$ {", r#""$${x} %%{y} $ % $$ {""#),
            ("$${x}", r#""$$${x}""#),
            ("a\nb\r\tc\u{0}\u{7f}", r#""a\nb\r\tc\u0000\u007f""#),
            ("naïve 🦀", "\"naïve 🦀\""),
        ] {
            assert_eq!(quoted(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_quoted_string_reads_back_as_one_word() {
        for text in [r#"a"b\c"#, "${\"x\"}", "${", "%{ if \"}\" }", "#", "<<END", "/* \" */"] {
            let found = words(&quoted(text));
            assert!(matches!(found[..], [Word::Text(_)]), "{text:?}: {found:?}");
        }
    }

    fn setting_of(setting: &str, text: Option<&str>) -> Address {
        Address { setting: setting.to_owned(), text: text.map(str::to_owned) }
    }

    #[test]
    fn a_backend_uses_the_id_and_has_no_credentials() {
        let server = ServerUrl::parse("https://state.example.com").unwrap();
        let id = StateId::parse("019b7c3a-0000-7000-8000-000000000001").unwrap();
        let text = backend(&server, id, &StateAddress::parse("acme", "net", None).unwrap());
        assert!(text.starts_with(HEADER));
        let address = "https://state.example.com/tfstate/019b7c3a-0000-7000-8000-000000000001";
        let lock = format!("{address}/lock");
        let expected = [
            setting_of("address", Some(address)),
            setting_of("lock_address", Some(&lock)),
            setting_of("unlock_address", Some(&lock)),
        ];
        assert_eq!(in_hcl(&text), [("http".to_owned(), expected.to_vec())]);
        assert_eq!(text.matches(&format!("{address}/lock\"")).count(), 2);
        assert!(!text.contains("password ") && !text.contains("username "));
    }

    #[test]
    fn backends_are_found_in_every_spelling() {
        let with = |addresses: &[Address]| vec![("http".to_owned(), addresses.to_vec())];
        let http = |address: Option<&str>| {
            with(address.map(|address| setting_of("address", Some(address))).as_slice())
        };
        for (text, expected) in [
            ("terraform {\n  backend \"http\" {\n  }\n}\n", http(None)),
            ("terraform { backend \"http\" {} }", http(None)),
            (
                "terraform {\n  required_version = \">= 1\"\n\n  backend \"http\" {\n    address = \"http://a\" # here\n  }\n}",
                http(Some("http://a")),
            ),
            ("terraform {\n  cloud {\n    workspaces {}\n  }\n}", vec![("cloud".to_owned(), vec![])]),
            (
                "terraform {\n  backend \"http\" {\n    address = local.a\n    lock_address = \"http://b\"\n  }\n}",
                with(&[setting_of("address", None), setting_of("lock_address", Some("http://b"))]),
            ),
            (
                "terraform {\n  backend \"http\" { unlock_address = true ? \"http://a\" : \"http://b\" }\n}",
                with(&[setting_of("unlock_address", None)]),
            ),
            (
                "terraform {\n  backend \"http\" {\n    address = \"http://a\" == \"x\" ? 1 : 2\n  }\n}",
                with(&[setting_of("address", None)]),
            ),
            ("terraform { backend \"http\" { address = \"http://a\" } }", http(Some("http://a"))),
            ("# terraform { backend \"http\" {} }\n", vec![]),
            ("/* terraform {\n backend \"http\" {} } */ // x", vec![]),
            ("locals {\n  a = \"terraform { backend \\\"http\\\" {} }\"\n}\n", vec![]),
            ("locals {\n  a = <<-EOT\n terraform {\n backend \"http\" {}\n }\n EOT\n}\n", vec![]),
            ("resource \"x\" \"backend\" {\n  backend \"http\" {}\n}\n", vec![]),
            ("terraform {\n  required_providers {\n    backend \"http\" {}\n  }\n}\n", vec![]),
            (
                "locals {\n  a = \"${f(\"}\")}\"\n}\nterraform {\n  backend \"s3\" {}\n}",
                vec![("s3".to_owned(), vec![])],
            ),
            ("terraform {", vec![]),
            ("terraform {\n  backend \"http", vec![]),
            ("}}}}\"", vec![]),
        ] {
            assert_eq!(in_hcl(text), expected, "{text}");
        }
    }

    #[test]
    fn a_backend_in_json_is_found_too() {
        let one = r#"{"terraform":{"backend":{"http":{"address":"http://a"}}}}"#;
        let lists = r#"{"terraform":[{"backend":[{"http":[{"address":"http://a"}]}]}]}"#;
        for text in [one, lists] {
            assert_eq!(in_json(text), [("http".to_owned(), vec![setting_of("address", Some("http://a"))])]);
        }
        let odd = r#"{"terraform":{"backend":{"http":{"address":null,"lock_address":7}}}}"#;
        assert_eq!(in_json(odd), [("http".to_owned(), vec![setting_of("lock_address", None)])]);
        assert_eq!(in_json(r#"{"terraform":{"cloud":{}}}"#), [("cloud".to_owned(), vec![])]);
        assert_eq!(in_json("{"), []);
    }

    #[test]
    fn backends_are_read_from_the_same_files_as_by_clients() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str| fs::write(folder.path().join(name), "terraform { backend \"http\" {} }").unwrap();
        for name in ["a.txt", ".a.tf", "a.tf~", "#a.tf#"] {
            write(name);
        }
        fs::create_dir(folder.path().join("dir.tf")).unwrap();
        assert_eq!(backends(folder.path()).unwrap(), []);
        write("b.tofu");
        assert_eq!(backends(folder.path()).unwrap()[0].file, folder.path().join("b.tofu"));
    }
}
