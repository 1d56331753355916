//! Who may know whom: this reads every path into another module under `src` and refuses one that is not on the list.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may name of this crate besides itself. A file comes before the folder it lies in.
const MODULES: &[(&str, &[&str])] = &[
    // Pure: the only thing they take from a port is what an instant is.
    ("domain", &["ports::Timestamp"]),
    ("journal", &["domain", "ports::Timestamp"]),
    ("limits", &[]),
    ("ports", &[]),
    // Who reserves bytes waits for others to give some back, or for the time to be over.
    ("account", &["ports"]),
    // The one schema: it makes keys and writes of the ports from values of the domain.
    ("layout", &["domain", "ports"]),
    ("settings", &[]),
    ("cache", &["domain", "layout::records", "ports"]),
    ("context", &["cache", "domain", "ports", "settings"]),
    (
        "services",
        &["account", "cache", "context", "domain", "journal", "layout", "limits", "ports", "settings"],
    ),
    ("wire", &["domain", "layout::records", "limits", "ports::Timestamp"]),
    // Handlers judge batches and deployments before a service records them, and keep what was sent to be shown.
    (
        "api",
        &[
            "account",
            "context",
            "domain",
            "journal",
            "layout::records",
            "limits",
            "ports",
            "services",
            "settings",
            "wire",
        ],
    ),
    ("adapters", &["ports"]),
];

/// Which modules may name these crates.
const CRATES: &[(&str, &[&str])] = &[
    ("rusqlite", &["adapters"]),
    ("aws_config", &["adapters"]),
    ("aws_sdk_dynamodb", &["adapters"]),
    ("aws_sdk_kms", &["adapters"]),
    ("aws_sdk_s3", &["adapters"]),
    ("aws_smithy_http_client", &["adapters"]),
    ("aws_smithy_runtime_api", &["adapters"]),
    ("rustix", &["adapters"]),
    ("axum", &["api"]),
    ("http", &["api"]),
    ("hyper", &["api"]),
    ("tower", &["api"]),
    ("getrandom", &["adapters"]),
    ("tokio", &["account", "adapters", "api", "cache", "services"]),
    ("http_body", &["api"]),
    ("prometheus_client", &["api"]),
    ("async_trait", &["adapters", "ports"]),
    ("aes_gcm", &["adapters", "services"]),
    ("argon2", &["cache", "services"]),
    ("ed25519_dalek", &["services"]),
];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file without its comments and its unit tests.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    body.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The paths that begin with `root::`, with groups taken apart: `crate::a::{b, c::d}` names `a::b` and `a::c::d`.
fn paths(code: &str, root: &str) -> BTreeSet<String> {
    let start = format!("{root}::");
    let mut found = BTreeSet::new();
    for (index, _) in code.match_indices(&start) {
        let stands_alone = !code[..index].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
        if stands_alone {
            expand(&code[index + start.len()..], "", &mut found);
        }
    }
    found
}

fn expand<'a>(text: &'a str, prefix: &str, found: &mut BTreeSet<String>) -> &'a str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let path = if prefix.is_empty() || name.is_empty() {
        format!("{prefix}{name}")
    } else {
        format!("{prefix}::{name}")
    };
    if let Some(rest) = rest.strip_prefix("::") {
        return expand(rest, &path, found);
    }
    let Some(mut group) = rest.strip_prefix('{') else {
        found.insert(path);
        return rest;
    };
    loop {
        group = expand(group.trim_start(), &path, found).trim_start();
        match group.strip_prefix(',') {
            Some(next) if !next.trim_start().starts_with('}') => group = next,
            Some(next) => return next.trim_start().strip_prefix('}').unwrap_or_default(),
            None => return group.strip_prefix('}').unwrap_or_default(),
        }
    }
}

fn allows(allowed: &str, path: &str) -> bool {
    path == allowed || path.strip_prefix(allowed).is_some_and(|rest| rest.starts_with("::"))
}

#[test]
fn every_module_knows_only_what_it_may() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&source, &mut all);
    let mut forbidden = Vec::new();
    let mut arrows_seen = 0;
    for file in all {
        let place = file.strip_prefix(&source).unwrap();
        let first = place.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = first.strip_suffix(".rs").unwrap_or(first);
        // Files of tests may know what they test with; the two below are not modules of the program.
        let is_test = place
            .file_name()
            .is_some_and(|name| name == "tests.rs" || name == "properties.rs" || name == "formats.rs");
        if is_test || module == "lib" || module == "arrows" {
            continue;
        }
        let Some((_, allowed)) = MODULES.iter().find(|(name, _)| *name == module) else {
            panic!("{module} has no row in the table of modules");
        };
        let code = code(&fs::read_to_string(&file).unwrap());
        for path in paths(&code, "crate") {
            arrows_seen += 1;
            let is_own = allows(module, &path);
            // The contract suites are macros, which the crate's root exports.
            let is_macro = module == "ports" && path.ends_with("_contract") || path == "contract_tests";
            if !is_own && !is_macro && !allowed.iter().any(|allowed| allows(allowed, &path)) {
                forbidden.push(format!("{} names crate::{path}", place.display()));
            }
        }
        // The suites run the tests that they hold.
        let is_suite = place.starts_with("ports/contract");
        for (name, modules) in CRATES {
            if !is_suite && !modules.contains(&module) && !paths(&code, name).is_empty() {
                forbidden.push(format!("{} names {name}", place.display()));
            }
        }
    }
    assert!(arrows_seen > 100, "only {arrows_seen} paths were found: this test reads them no more");
    assert!(forbidden.is_empty(), "forbidden arrows:\n{}", forbidden.join("\n"));
}

/// I8: a request is judged by the caller of its access token, and by no other.
#[test]
fn no_request_is_judged_as_that_of_the_operator() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&source.join("api"), &mut all);
    assert!(all.len() > 10, "the files of the API are not found any more: {all:?}");
    for file in all {
        let code = code(&fs::read_to_string(&file).unwrap());
        let named = paths(&code, "crate").into_iter().find(|path| allows("services::directory", path));
        assert_eq!(named, None, "{}", file.display());
        assert!(!code.contains("directory::"), "{}", file.display());
    }
}

/// The rooms of the use cases, from the lowest: a file names only files of its own room and of rooms before it.
const ROOMS: &[&str] =
    &["store", "identity", "updates", "keys", "states", "environments", "stacks", "maintenance"];

/// The path of a file's module below `services`: `states::locks`, or `states` for the file of a room itself.
fn module_of(file: &Path, services: &Path) -> Vec<String> {
    let mut names: Vec<String> = file
        .strip_prefix(services)
        .unwrap()
        .with_extension("")
        .iter()
        .map(|name| name.to_str().unwrap().to_owned())
        .collect();
    names.pop_if(|name| name == "mod");
    names
}

/// Each use case with the use cases that it names.
fn use_cases() -> BTreeMap<String, BTreeSet<String>> {
    let services = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/services");
    let mut all = Vec::new();
    files(&services, &mut all);
    let modules: BTreeSet<String> = all.iter().map(|file| module_of(file, &services).join("::")).collect();
    let known: BTreeMap<String, BTreeSet<String>> = all
        .iter()
        .filter(|file| **file != services.join("mod.rs"))
        .map(|file| {
            let own = module_of(file, &services);
            let code = code(&fs::read_to_string(file).unwrap());
            let above = own[..own.len() - 1].join("::");
            let named = [(String::new(), "crate::services"), (above, "super"), (own.join("::"), "self")]
                .into_iter()
                .flat_map(|(base, root)| {
                    let join = move |path: String| {
                        if base.is_empty() { path } else { format!("{base}::{path}") }
                    };
                    paths(&code, root).into_iter().map(join).collect::<Vec<_>>()
                })
                .filter_map(|path| {
                    let names: Vec<&str> = path.split("::").collect();
                    let modules = &modules;
                    (1..=names.len())
                        .rev()
                        .map(|end| names[..end].join("::"))
                        .find(|name| modules.contains(name))
                })
                .filter(|name| *name != own.join("::"))
                .collect();
            (own.join("::"), named)
        })
        .collect();
    assert!(
        known.values().map(BTreeSet::len).sum::<usize>() > 200,
        "the arrows are not found any more: {known:?}"
    );
    known
}

/// Use cases build on each other in one direction: a reader of a file that opens what it names never comes back to it.
#[test]
fn no_use_case_knows_itself_through_others() {
    let mut known = use_cases();
    // A file that names none of those that are left cannot be in a circle.
    while let Some(name) = known.iter().find(|(_, others)| others.is_empty()).map(|(name, _)| name.clone()) {
        known.remove(&name);
        known.values_mut().for_each(|others| {
            others.remove(&name);
        });
    }
    assert_eq!(known, BTreeMap::new(), "these know themselves through others");
}

#[test]
fn rooms_of_use_cases_name_only_rooms_below() {
    let floor = |name: &str| {
        let room = name.split("::").next().unwrap_or_default();
        ROOMS.iter().position(|known| *known == room)
    };
    let upward: Vec<String> = use_cases()
        .into_iter()
        .filter_map(|(name, others)| Some((floor(&name)?, name, others)))
        .flat_map(|(own, name, others)| {
            let up = move |other: &String| floor(other).is_some_and(|other| other > own);
            others.into_iter().filter(up).map(move |other| format!("{name} names {other}"))
        })
        .collect();
    assert!(upward.is_empty(), "against the order of the rooms:\n{}", upward.join("\n"));
}

#[test]
fn groups_of_paths_are_taken_apart() {
    let code = "use crate::a::{self, b, c::{d, e as f},\n};\nfn g() { crate::h::i(); my_crate::j(); }";
    let found: Vec<String> = paths(code, "crate").into_iter().collect();
    assert_eq!(found, ["a::b", "a::c::d", "a::c::e", "a::self", "h::i"]);
}
