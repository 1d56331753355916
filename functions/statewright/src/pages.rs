//! Tests of the pages for users: their links lead somewhere, their shell commands are valid command lines of this
//! program, and the reference of options is the program's own help.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};

use crate::commands::Args;

/// The length limit of a line of prose, in characters.
const COLUMNS_MAX: usize = 100;

/// The length limit of the README, in lines, so that it can be read in one sitting.
const README_LINES_MAX: usize = 250;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn search(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || name.starts_with("target") || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            search(&path, end, found);
        } else if name.ends_with(end) {
            found.push(path);
        }
    }
}

/// All pages of the tree.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    search(&root(), ".md", &mut found);
    assert!(found.len() > 30, "the pages are not found any more: {found:?}");
    found
}

/// The pages that users read.
fn user_pages() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("infra/README.md")];
    search(&root().join("shared/docs"), ".md", &mut found);
    found
}

/// A page's lines outside of its blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// The lines of the blocks for a shell.
fn shell(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let line = line.trim_start();
        if line.starts_with("```") {
            inside = line == "```sh" || line.starts_with("```sh ");
            return false;
        }
        inside
    })
}

/// The anchor that a heading has.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

#[test]
fn links_of_pages_lead_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = read(&page);
        let text: String = prose(&text).collect::<Vec<_>>().join("\n");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let is_there = target.exists()
                && (fragment.is_empty()
                    || prose(&read(&target)).any(|line| {
                        line.starts_with('#') && anchor(line.trim_start_matches('#').trim()) == fragment
                    }));
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn the_readme_names_every_page_and_stays_short() {
    let readme = read(&root().join("README.md"));
    let lines = readme.lines().count();
    assert!(lines <= README_LINES_MAX, "the README has {lines} lines");
    for page in user_pages() {
        let path = page.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        assert!(
            path == "README.md" || readme.contains(&format!("({path})")),
            "the README does not link to {path}"
        );
    }
}

#[test]
fn lines_of_pages_are_short() {
    for page in pages() {
        let name = page.display().to_string();
        let text = read(&page);
        let is_long = |line: &&str| line.chars().count() > COLUMNS_MAX && line.trim().contains(' ');
        let long: Vec<&str> =
            prose(&text).filter(is_long).filter(|line| !line.starts_with(['|', '#'])).collect();
        assert!(long.is_empty(), "{name}:\n{}", long.join("\n"));
    }
}

/// The words of a line of a shell, as far as pages need it: quotes, and a comment at the end.
fn words(line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ') => found.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word);
    found
}

/// What blocks start besides this program, and what each may be asked for there. Blocks that do not run are held to this alone.
const PROGRAMS: [(&str, &[&str]); 13] = [
    ("aws", &["dynamodb"]),
    ("cargo", &["build", "build-tools", "functions", "run", "test"]),
    ("docker", &["compose"]),
    ("go", &["build"]),
    ("ln", &["pulumi-resource-bench"]),
    ("npm", &["ci", "run"]),
    ("openssl", &["req"]),
    ("pulumi", &["api", "config", "env", "login", "org", "stack", "up"]),
    ("python3", &["-m"]),
    ("python3.13", &["-m"]),
    ("rustup", &["target"]),
    ("sam", &["deploy"]),
    ("tofu", &["init", "plan"]),
];

/// The commands of a page's blocks, as words, each with its line. Assignments before a command are left out.
fn commands(text: &str) -> Vec<(String, Vec<String>)> {
    let lines = shell(text).collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let mut found = Vec::new();
    for line in lines.lines().filter(|line| !line.starts_with("export ")) {
        for words in words(line.trim()).split(|word| ["&&", "&", "|", ";"].contains(&word.as_str())) {
            // Without assignments before the command, and without the file that its output goes to.
            let words = words.iter().skip_while(|word| word.contains('=')).take_while(|word| *word != ">");
            let words: Vec<String> = words.cloned().collect();
            if !words.is_empty() {
                found.push((line.to_owned(), words));
            }
        }
    }
    found
}

#[test]
fn pages_show_command_lines_that_the_program_takes() {
    let mut checked = 0;
    for page in pages() {
        for (line, words) in commands(&read(&page)) {
            let place = format!("{}: `{line}`", page.display());
            let (program, rest) = words.split_first().unwrap();
            let end = words.iter().position(|word| word == "--");
            let ours = match (program.trim_start_matches("target/debug/"), end) {
                ("statewright", _) => rest,
                ("cargo", Some(end)) if !rest.contains(&"-p".to_owned()) => &words[end + 1..],
                _ => {
                    let known = PROGRAMS.iter().find(|(name, _)| name == program);
                    let may = known.map_or(&[][..], |(_, may)| may);
                    let is_known = program.starts_with("/tmp/")
                        || rest.first().is_some_and(|it| may.contains(&it.as_str()));
                    assert!(is_known, "{place}: is this right? If so, add it to the programs of pages");
                    continue;
                }
            };
            checked += 1;
            let line = ["statewright"].into_iter().chain(ours.iter().map(String::as_str));
            if let Err(error) = Args::try_parse_from(line) {
                assert!(!error.use_stderr(), "{place}: {error}");
            }
        }
    }
    assert!(checked > 40, "only {checked} command lines were found");
}

#[test]
fn the_page_of_guarantees_names_tests_that_exist() {
    let page = read(&root().join("shared/docs/behaviour.md"));
    let mut files = Vec::new();
    search(&root().join("tests"), ".rs", &mut files);
    search(&root().join("shared/src"), ".rs", &mut files);
    let sources: String = files.iter().map(|file| read(file)).collect();
    let named: BTreeSet<&str> = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.ends_with("` |"))
        .filter_map(|line| line.rsplit('`').nth(1))
        .collect();
    assert!(named.len() > 20, "the tests of the page are not found any more: {named:?}");
    for test in named {
        assert!(sources.contains(&format!("fn {test}(")), "there is no test {test}");
    }
}

#[test]
fn the_page_of_functions_has_each_parameter_of_the_template() {
    let template = read(&root().join("infra/sam/template.yaml"));
    let page = read(&root().join("infra/README.md"));
    let parameters = template.split("\nParameters:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut name = "";
    let mut found = 0;
    for line in parameters.lines() {
        if let Some(text) = line.strip_prefix("    Description: ") {
            found += 1;
            let row = page.lines().find(|row| row.starts_with(&format!("| `{name}` |")));
            assert!(row.is_some_and(|row| row.ends_with(&format!("| {text} |"))), "{name}: {text}");
        } else if let Some(text) = line.strip_prefix("  ").filter(|text| !text.starts_with(' ')) {
            name = text.trim_end_matches(':');
        }
    }
    assert!(found > 20, "only {found} parameters were found");
}

/// The reference of the options of `serve`, from the program's own help.
fn reference() -> String {
    let mut command = Args::command();
    command.build();
    let serve = command.find_subcommand("serve").expect("the program serves");
    let mut table = String::from("| option | variable | default | meaning |\n|---|---|---|---|\n");
    for argument in serve.get_arguments().filter(|argument| argument.get_long().is_some()) {
        let long = argument.get_long().unwrap_or_default();
        if long == "help" || argument.is_hide_set() {
            continue;
        }
        let values: Vec<&str> =
            argument.get_value_names().unwrap_or_default().iter().map(clap::builder::Str::as_str).collect();
        let takes_value = argument.get_action().takes_values();
        let value = if takes_value { format!(" {}", values.join(" ")) } else { String::new() };
        let variable = argument.get_env().and_then(|name| name.to_str());
        let variable = variable.map_or(String::new(), |name| format!("`{name}`"));
        let defaults: Vec<&str> =
            argument.get_default_values().iter().filter_map(|value| value.to_str()).collect();
        let default = if takes_value && !defaults.is_empty() {
            format!("`{}`", defaults.join(" "))
        } else {
            String::new()
        };
        let help =
            argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        table += &format!("| `--{long}{value}` | {variable} | {default} | {help} |\n");
    }
    table
}

/// Regenerated with `UPDATE_PAGES=1 cargo test --workspace --bin statewright the_reference_of_options`.
#[test]
fn the_reference_of_options_is_the_programs_help() {
    let path = root().join("shared/docs/configuration.md");
    let page = read(&path);
    let (start, end) = ("<!-- generated -->\n", "<!-- end -->");
    let (before, rest) = page.split_once(start).expect("the page has a generated part");
    let (_, after) = rest.split_once(end).expect("the generated part has an end");
    let wanted = format!("{before}{start}{}{end}{after}", reference());
    if std::env::var_os("UPDATE_PAGES").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    assert_eq!(read(&path), wanted, "{} is not what the program says", path.display());
}
