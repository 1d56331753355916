//! HCL, as far as backends need it: the block that is written for a state, and whether a configuration has one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::StateAddress;
use statewright_shared::domain::server_url::ServerUrl;

use crate::managed::HEADER;

/// The file that a backend is written to.
pub(crate) const BACKEND_FILE: &str = "backend.tf";

/// The file that one is written to for as long as a client runs.
pub(crate) const PASSING_FILE: &str = "statewright_backend.tf";

/// A text as HCL has it between quotes (hashicorp/hcl, `hclsyntax/spec.md`, "Template Expressions"): nothing in it is read as
/// the end of it, or as a template.
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

/// The backend of a state, as a file of its own: by its id, so that renaming it changes nothing; with methods that pass
/// everywhere; without credentials, since clients keep what is written into a backend in clear.
pub(crate) fn backend(server: &ServerUrl, id: StateId, address: &StateAddress) -> String {
    backend_of(
        server,
        id,
        address,
        "`statewright state init` writes this file anew, and what is changed here is lost.",
    )
}

/// As [`backend`], for a file that lies there for as long as a client runs.
pub(crate) fn passing_backend(server: &ServerUrl, id: StateId, address: &StateAddress) -> String {
    backend_of(server, id, address, "this file lies here while `statewright tf` runs, and goes with it.")
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

/// The settings of an HTTP backend that say where requests go, each with the credentials.
pub(crate) const ADDRESSES: [&str; 3] = ["address", "lock_address", "unlock_address"];

/// Where a configuration keeps its state, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Backend {
    /// The file that says so.
    pub(crate) file: PathBuf,
    /// `http`, `s3`, …; `cloud` for a cloud block.
    pub(crate) kind: String,
    /// Those of [`ADDRESSES`] that are set.
    pub(crate) addresses: Vec<Address>,
}

/// A setting that says where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// Its name.
    pub(crate) setting: String,
    /// What it says; `None` where that is worked out, and not written out as a text.
    pub(crate) text: Option<String>,
}

/// What a file says of a backend.
type Said = (String, Vec<Address>);

/// The backends of the configuration in this folder, as clients read it: there is at most one in a configuration that works.
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
        // Clients leave out what editors leave behind.
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

/// Those of [`ADDRESSES`] that a file sets which has the settings of a backend and nothing else; `None` if it cannot be read.
pub(crate) fn settings(file: &Path) -> Option<Vec<Address>> {
    let text = String::from_utf8_lossy(&fs::read(file).ok()?).into_owned();
    if file.extension().is_some_and(|extension| extension == "json") {
        return serde_json::from_str(&text).ok().map(|document| settings_in_json(&document));
    }
    // As in a block of their own.
    let said = in_hcl(&format!("terraform {{\nbackend \"http\" {{\n{text}\n}}\n}}\n"));
    Some(said.into_iter().flat_map(|(_, addresses)| addresses).collect())
}

fn settings_in_json(settings: &Value) -> Vec<Address> {
    let set = ADDRESSES.iter().filter_map(|name| Some((*name, settings.get(name)?)));
    let address = |(name, value): (&str, &Value)| Address {
        setting: name.to_owned(),
        text: value.as_str().map(str::to_owned),
    };
    set.filter(|(_, value)| !value.is_null()).map(address).collect()
}

/// Backends with their addresses. What is no JSON has none: the client says what is wrong with it.
fn in_json(text: &str) -> Vec<Said> {
    /// A block may be an object, or several in a list.
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

/// Backends with their addresses.
fn in_hcl(text: &str) -> Vec<Said> {
    let words = words(text);
    let (mut found, mut open): (Vec<Said>, Vec<&Word>) = (Vec::new(), Vec::new());
    let name = |word: Option<&&Word>| match word {
        Some(Word::Name(name)) => Some(name.clone()),
        _ => None,
    };
    for (at, word) in words.iter().enumerate() {
        match word {
            // What opens a block is the name at the start of its line.
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
                    // Nothing but a text.
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

/// What a text is made of, as far as blocks and plain settings need it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Name(String),
    /// What stands between quotes, with its escapes.
    Text(String),
    Open,
    Close,
    Equals,
    Other,
}

/// Takes a text apart. Comments are left out; what is in quotes or in a heredoc is one word, whatever it looks like.
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
                // The end of a line ends what it said.
                '\n' => words.push(Word::Other),
                c if c.is_whitespace() => {}
                _ => words.push(Word::Other),
            }
            rest = behind;
        }
    }
    words
}

/// What stands before the closing quote, and what comes behind it. A template may hold quotes of its own.
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
            // Doubled, it stands for itself.
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

/// What comes behind a heredoc.
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
    fn quotes_hold_whatever_is_between_them() {
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
    fn what_is_quoted_reads_back_as_one_word() {
        for text in [r#"a"b\c"#, "${\"x\"}", "${", "%{ if \"}\" }", "#", "<<END", "/* \" */"] {
            let found = words(&quoted(text));
            assert!(matches!(found[..], [Word::Text(_)]), "{text:?}: {found:?}");
        }
    }

    fn said(setting: &str, text: Option<&str>) -> Address {
        Address { setting: setting.to_owned(), text: text.map(str::to_owned) }
    }

    #[test]
    fn a_backend_is_by_id_and_without_credentials() {
        let server = ServerUrl::parse("https://state.example.com").unwrap();
        let id = StateId::parse("019b7c3a-0000-7000-8000-000000000001").unwrap();
        let text = backend(&server, id, &StateAddress::parse("acme", "net", None).unwrap());
        assert!(text.starts_with(HEADER));
        let address = "https://state.example.com/tfstate/019b7c3a-0000-7000-8000-000000000001";
        let lock = format!("{address}/lock");
        let expected = [
            said("address", Some(address)),
            said("lock_address", Some(&lock)),
            said("unlock_address", Some(&lock)),
        ];
        assert_eq!(in_hcl(&text), [("http".to_owned(), expected.to_vec())]);
        assert_eq!(text.matches(&format!("{address}/lock\"")).count(), 2);
        assert!(!text.contains("password ") && !text.contains("username "));
    }

    #[test]
    fn a_backend_is_found_however_it_is_written() {
        let with = |addresses: &[Address]| vec![("http".to_owned(), addresses.to_vec())];
        let http =
            |address: Option<&str>| with(address.map(|address| said("address", Some(address))).as_slice());
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
                with(&[said("address", None), said("lock_address", Some("http://b"))]),
            ),
            (
                "terraform {\n  backend \"http\" { unlock_address = true ? \"http://a\" : \"http://b\" }\n}",
                with(&[said("unlock_address", None)]),
            ),
            (
                "terraform {\n  backend \"http\" {\n    address = \"http://a\" == \"x\" ? 1 : 2\n  }\n}",
                with(&[said("address", None)]),
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
            assert_eq!(in_json(text), [("http".to_owned(), vec![said("address", Some("http://a"))])]);
        }
        let odd = r#"{"terraform":{"backend":{"http":{"address":null,"lock_address":7}}}}"#;
        assert_eq!(in_json(odd), [("http".to_owned(), vec![said("lock_address", None)])]);
        assert_eq!(in_json(r#"{"terraform":{"cloud":{}}}"#), [("cloud".to_owned(), vec![])]);
        assert_eq!(in_json("{"), []);
    }

    #[test]
    fn a_folder_has_the_backends_that_its_client_would_read() {
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
