//! How this workspace is written: refuses phrases that readers have to translate, and names of tests that are
//! too long to read. `shared/docs/style.md` has the terms to write instead.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use regex_lite::Regex;

/// A phrase to refuse, in any case, and what to write instead.
struct Phrase {
    pattern: &'static str,
    /// Longer texts that begin or end with the phrase and are plain English.
    except: &'static [&'static str],
    instead: &'static str,
}

/// The refused phrases. This list may only grow.
const PHRASES: &[Phrase] = &[
    Phrase {
        pattern: r"\bwhoever\b",
        except: &[],
        instead: "the noun: the operator, the holder, the client, the caller",
    },
    Phrase { pattern: r"\bbeside\b", except: &[], instead: "next to, alongside, in addition to" },
    Phrase { pattern: r"\bnobody\b", except: &[], instead: "the noun: no user, no client, no process" },
    Phrase { pattern: r"\b(is|are) told\b", except: &[], instead: "gets, learns; the server reports" },
    Phrase { pattern: r"\blies?\b", except: &[], instead: "is stored in, is in" },
    Phrase { pattern: r"\bso many\b", except: &[], instead: "the noun: at most N, the number of" },
    Phrase { pattern: r"\bso long\b", except: &["so long as"], instead: "the noun: the time, the timeout" },
    Phrase { pattern: r"\bso much\b", except: &[], instead: "the noun: the size, the bytes, at most N" },
    Phrase { pattern: r"\bso often\b", except: &[], instead: "the noun: the attempts, N times" },
    Phrase {
        pattern: r"\bstands (there|in|beside)\b",
        except: &["stands in for"],
        instead: "is stored in, is in, is next to",
    },
    Phrase { pattern: r"\bin words\b", except: &[], instead: "as text, with an explanation" },
    Phrase {
        pattern: r"\bis no\b",
        except: &["there is no", "is no longer", "is no more than", "is no less than", "is no safer than"],
        instead: "is not a, has no",
    },
    Phrase {
        pattern: r"\bis none (of|in)\b",
        except: &["there is none of", "there is none in"],
        instead: "is not one of, is not",
    },
    Phrase { pattern: r"\banew\b", except: &[], instead: "again" },
    Phrase {
        pattern: r"\b(colour\w*|licences?|learnt|(mis)?spelt|towards|(label|model)led|cancelling|(organ|recogn)is\w+)\b",
        except: &[],
        instead: "the American spelling",
    },
];

/// The most characters of a function's name. The names of tests are sentences, and a reader takes in this many.
const NAME_LENGTH_MAX: usize = 60;

/// This file, whose literals are the patterns.
const PATTERNS: &str = "shared/src/phrases.rs";

/// The page that lists what not to write.
const TERMS: &str = "shared/docs/style.md";

/// Quotes of other people's words, as (file, text).
const QUOTES: &[(&str, &str)] = &[];

/// A text that people read, with its line.
struct Text {
    line: usize,
    text: String,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files that people write, by the ends of their names.
const KINDS: &[&str] = &["md", "rs", "toml", "ts", "tsx", "mjs", "css", "go", "py", "yaml"];

/// The files of the workspace that people write, with their paths in it.
fn files() -> Vec<(String, String)> {
    let root = workspace();
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| KINDS.iter().any(|known| kind == *known)) {
                let place = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                found.push((place, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(found.len() > 300, "only {} files were found", found.len());
    found
}

fn is_clean(file: &str) -> bool {
    file != TERMS
}

/// The comment of a line of Rust: all of it, or what follows the code.
fn comment(line: &str) -> Option<&str> {
    if let Some(comment) = line.trim_start().strip_prefix("//") {
        return Some(comment.trim_start_matches(['/', '!']));
    }
    let (code, comment) = line.split_once(" // ")?;
    (code.matches('"').count() % 2 == 0).then_some(comment)
}

/// The comments and the texts of attributes (`#[error]`, `#[arg]`, `#[expect]`) of a Rust file. Lines that follow
/// each other are one text, because a phrase may wrap.
fn texts_of_rust(source: &str) -> Vec<Text> {
    let mut found: Vec<Text> = Vec::new();
    let mut last_line = 0;
    let mut in_attribute = false;
    for (index, line) in source.lines().enumerate() {
        let starts_attribute = line.trim_start().starts_with("#[");
        in_attribute |= starts_attribute;
        let text = if in_attribute { Some(line) } else { comment(line) };
        if let Some(text) = text {
            match found.last_mut() {
                Some(before) if last_line == index && !starts_attribute => {
                    before.text.push('\n');
                    before.text.push_str(text.trim());
                }
                _ => found.push(Text { line: index + 1, text: text.trim().to_owned() }),
            }
            last_line = index + 1;
        }
        if line.trim_end().ends_with(']') || line.contains("] ") {
            in_attribute = false;
        }
    }
    found
}

/// The string literals of Rust that have a blank: what the program prints. Tests quote what clients send, so theirs are not
/// among them.
fn literals(source: &str) -> Vec<Text> {
    let tests = source.find("#[cfg(test)]\nmod ").unwrap_or(source.len());
    let literal =
        Regex::new(r##"(?s)//[^\n]*|'(?:[^'\\]|\\.)'|r#"(.*?)"#|r"([^"]*)"|"((?:[^"\\]|\\.)*)""##).unwrap();
    let mut found = Vec::new();
    for hit in literal.captures_iter(&source[..tests]) {
        if let Some(text) =
            (1..=3).find_map(|group| hit.get(group)).filter(|text| text.as_str().contains(' '))
        {
            let line = source[..text.start()].matches('\n').count() + 1;
            // A literal may go on in the next line.
            found.push(Text { line, text: text.as_str().replace("\\\n", " \n") });
        }
    }
    found
}

fn texts(file: &str, content: &str) -> Vec<Text> {
    if !file.ends_with(".rs") {
        return vec![Text { line: 1, text: content.to_owned() }];
    }
    let mut found = texts_of_rust(content);
    if !file.starts_with("tests/") && file != PATTERNS {
        found.extend(literals(content));
    }
    found
}

/// The text with single blanks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The refused phrases of a text: the line, the words and what to write instead.
fn refused<'a>(text: &Text, phrases: &'a [(Regex, &'static Phrase)]) -> Vec<(usize, String, &'a str)> {
    let mut found = Vec::new();
    // The lengths stay, so that the place of a hit gives its line.
    let flat = text.text.replace(['\n', '\t'], " ").to_ascii_lowercase();
    for (regex, phrase) in phrases {
        for hit in regex.find_iter(&flat) {
            let (from, to) = (words(&flat[hit.start()..]), words(&flat[..hit.end()]));
            let is_plain = phrase.except.iter().any(|plain| from.starts_with(plain) || to.ends_with(plain));
            if !is_plain {
                let lines_before =
                    text.text.get(..hit.start()).map_or(0, |before| before.matches('\n').count());
                found.push((text.line + lines_before, hit.as_str().to_owned(), phrase.instead));
            }
        }
    }
    found.sort_by_key(|(line, ..)| *line);
    found
}

fn compiled() -> Vec<(Regex, &'static Phrase)> {
    PHRASES.iter().map(|phrase| (Regex::new(&phrase.pattern.replace(' ', " +")).unwrap(), phrase)).collect()
}

#[test]
fn texts_are_in_plain_english() {
    let phrases = compiled();
    let mut report = String::new();
    for (file, content) in files() {
        if !is_clean(&file) {
            continue;
        }
        let mut content = content;
        for (_, quote) in QUOTES.iter().filter(|(place, _)| *place == file) {
            assert!(content.contains(quote), "{file} no longer quotes {quote:?}: remove the quote here");
            content = content.replace(quote, &" ".repeat(quote.len()));
        }
        for text in texts(&file, &content) {
            for (line, words, instead) in refused(&text, &phrases) {
                writeln!(report, "{file}:{line}: \"{words}\": write {instead}").unwrap();
            }
        }
    }
    assert!(report.is_empty(), "phrases that have to be read twice:\n{report}");
}

#[test]
fn names_of_functions_are_short_enough_to_read() {
    let name = Regex::new(r"\bfn ([a-z0-9_]+)").unwrap();
    let mut report = String::new();
    for (file, content) in files() {
        if !file.ends_with(".rs") || !is_clean(&file) {
            continue;
        }
        for (index, line) in content.lines().enumerate() {
            for hit in name.captures_iter(line) {
                let name = &hit[1];
                if name.len() > NAME_LENGTH_MAX {
                    let length = name.len();
                    writeln!(report, "{file}:{}: {name} has {length} characters", index + 1).unwrap();
                }
            }
        }
    }
    assert!(report.is_empty(), "names of more than {NAME_LENGTH_MAX} characters:\n{report}");
}

#[test]
fn phrases_are_found_in_what_the_program_prints() {
    let source = "let c = '\"'; // \"it lacks words\"\nlet a = \"one\";\nlet b = \"it \\\"is\\\" so \\\n  long\";\n\
                  let r = r#\"a \"towards\" b\"#;\n#[cfg(test)]\nmod tests { const T: &str = \"nobody is here\"; }\n";
    let phrases = compiled();
    let found: Vec<(usize, String)> = literals(source)
        .iter()
        .flat_map(|text| refused(text, &phrases))
        .map(|(line, hit, _)| (line, words(&hit)))
        .collect();
    assert_eq!(found, [(3, "so long".to_owned()), (5, "towards".to_owned())]);
}

#[test]
fn phrases_are_found_in_comments_and_attributes_alone() {
    let source = "/// It is stored so\n/// long.\nlet a = \"whoever\"; // Nobody.\n#[error(\n    \"it is no file\"\n)]\nstruct B;\n\
                  // There is no file, and so long as it is no longer there, it stands in for another.\n";
    let phrases = compiled();
    let found: Vec<(usize, String)> = texts_of_rust(source)
        .iter()
        .flat_map(|text| refused(text, &phrases))
        .map(|(line, words, _)| (line, words))
        .collect();
    assert_eq!(found, [(1, "so long".to_owned()), (3, "nobody".to_owned()), (5, "is no".to_owned())]);
}
