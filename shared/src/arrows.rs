//! The allowed imports between modules: finds every path to another module under `src`, and refuses those
//! that are not listed here. Also the order of imports in the other packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of this crate that each module may name in addition to itself. A file comes before its folder.
const MODULES: &[(&str, &[&str])] = &[
    // Pure: it uses only the type of a timestamp from the ports.
    ("domain", &["ports::Timestamp"]),
    ("journal", &["domain", "ports::Timestamp"]),
    ("limits", &[]),
    ("ports", &[]),
    // A request that reserves bytes waits until others release some, or until its timeout.
    ("account", &["ports"]),
    // The storage schema: makes keys and writes from values of the domain.
    ("layout", &["domain", "ports"]),
    ("settings", &[]),
    (
        "cache",
        &[
            "domain",
            "layout::AuditDay",
            "layout::AuditEntry",
            "layout::AuditMark",
            "layout::AuditResult",
            "layout::Token",
            "layout::User",
            "layout::WebSession",
            "ports",
        ],
    ),
    ("context", &["cache", "domain", "layout::SignInProvider", "ports", "settings"]),
    (
        "services",
        &["account", "cache", "context", "domain", "journal", "layout", "limits", "ports", "settings"],
    ),
    ("wire", &["domain", "layout", "limits", "ports::Timestamp"]),
    // Handlers validate batches and deployments before a service stores them.
    (
        "api",
        &[
            "account", "context", "domain", "journal", "layout", "limits", "ports", "services", "settings",
            "wire",
        ],
    ),
    ("adapters", &["domain::oidc::addresses", "domain::oidc::aws", "domain::server_url", "ports"]),
];

/// The modules that may name each of these crates.
const CRATES: &[(&str, &[&str])] = &[
    ("boon", &["domain"]),
    ("rusqlite", &["adapters"]),
    ("aws_config", &["adapters"]),
    ("aws_sdk_dynamodb", &["adapters"]),
    ("aws_sdk_kms", &["adapters"]),
    ("aws_sdk_s3", &["adapters"]),
    ("aws_sigv4", &["adapters"]),
    ("aws_smithy_http_client", &["adapters"]),
    ("rustix", &["adapters"]),
    ("axum", &["api"]),
    ("http", &["api"]),
    ("hyper", &["adapters", "api"]),
    ("hyper_rustls", &["adapters"]),
    ("rustls", &["adapters"]),
    ("tokio_rustls", &["adapters"]),
    ("jsonwebtoken", &["services"]),
    ("ring", &["adapters", "services"]),
    ("tower", &["api"]),
    ("getrandom", &["adapters"]),
    ("tokio", &["account", "adapters", "api", "cache", "services"]),
    ("http_body", &["api"]),
    ("prometheus_client", &["api"]),
    ("async_trait", &["adapters", "ports"]),
    ("aes_gcm", &["adapters", "services"]),
    ("argon2", &["cache", "services"]),
    ("ed25519_dalek", &["services"]),
    ("chrono", &["services"]),
    ("hyper_util", &["adapters"]),
    ("maud", &["api"]),
    ("openidconnect", &["cache", "services"]),
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

/// The code of a file without comments and unit tests, and without the paths that only say who sees an item.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines: Vec<_> = body.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    lines.join("\n").replace("pub(in crate::", "pub(in ")
}

/// The paths that start with `root::`, with groups expanded: `crate::a::{b, c::d}` names `a::b` and
/// `a::c::d`.
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
fn modules_name_only_modules_and_crates_on_their_list() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&source, &mut all);
    let mut forbidden = Vec::new();
    let mut arrows_seen = 0;
    for file in all {
        let place = file.strip_prefix(&source).unwrap();
        let first = place.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = first.strip_suffix(".rs").unwrap_or(first);
        // Test files may name anything, and those in folders are not modules of the program.
        let is_test = TEST_FILES.iter().any(|name| place.ends_with(name));
        if is_test || ["lib", "arrows", "phrases"].contains(&module) {
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
        // The suites run the tests that they contain.
        let is_suite = place.starts_with("ports/contract");
        for (name, modules) in CRATES {
            if !is_suite && !modules.contains(&module) && !paths(&code, name).is_empty() {
                forbidden.push(format!("{} names {name}", place.display()));
            }
        }
    }
    assert!(arrows_seen > 100, "only {arrows_seen} paths were found: the search is broken");
    assert!(forbidden.is_empty(), "forbidden arrows:\n{}", forbidden.join("\n"));
}

/// I8: every request is checked as a request of its access token's caller.
#[test]
fn no_request_is_checked_as_the_operator() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&source.join("api"), &mut all);
    assert!(all.len() > 10, "the files of the API were not found: {all:?}");
    for file in all {
        let code = code(&fs::read_to_string(&file).unwrap());
        let named = paths(&code, "crate").into_iter().find(|path| allows("services::directory", path));
        assert_eq!(named, None, "{}", file.display());
        assert!(!code.contains("directory::"), "{}", file.display());
    }
}

/// The wire and the API show records. Only use cases make keys and writes.
#[test]
fn only_use_cases_make_keys_and_writes() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = vec![source.join("context.rs")];
    files(&source.join("api"), &mut all);
    files(&source.join("wire"), &mut all);
    for file in all {
        let code = code(&fs::read_to_string(&file).unwrap());
        let makers = ["Key", "KeyPrefix", "put", "put_with", "put_bytes", "delete", "check"];
        let named = makers.iter().find(|maker| paths(&code, "crate").contains(&format!("layout::{maker}")));
        assert_eq!(named, None, "{}", file.display());
        assert!(!code.contains("::key("), "{}", file.display());
    }
}

/// The rooms of the use cases, from the lowest. A file names only files of its own room and of lower rooms.
const ROOMS: &[&str] =
    &["store", "audit", "identity", "updates", "keys", "states", "environments", "stacks", "maintenance"];

/// The path of a file's module below `src`: `services::states::locks`, or `services::states` for the file of
/// a room itself.
fn module_of(file: &Path, source: &Path) -> Vec<String> {
    let mut names: Vec<String> = file
        .strip_prefix(source)
        .unwrap()
        .with_extension("")
        .iter()
        .map(|name| name.to_str().unwrap().to_owned())
        .collect();
    names.pop_if(|name| name == "mod");
    names
}

/// The modules of a folder of `src`, each with the modules that its imports and other paths name.
fn named_in(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&source.join(folder), &mut all);
    all.extend(Some(source.join(folder).with_extension("rs")).filter(|file| file.exists()));
    named_by(all, &source)
}

/// The modules in these files of `source`, each with the modules that its imports and other paths name.
fn named_by(mut all: Vec<PathBuf>, source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    all.retain(|file| !TEST_FILES.iter().any(|name| file.ends_with(name)));
    let modules: BTreeSet<String> = all.iter().map(|file| module_of(file, source).join("::")).collect();
    let known = all.iter().map(|file| {
        let own = module_of(file, source);
        let code = code(&fs::read_to_string(file).unwrap());
        let (above, within) = (own[..own.len() - 1].to_vec(), own.clone());
        let named = [(Vec::new(), "crate"), (above, "super"), (within, "self")]
            .into_iter()
            .flat_map(|(base, root)| {
                paths(&code, root).into_iter().map(move |path| absolute(&base, &path)).collect::<Vec<_>>()
            })
            .filter_map(|names| {
                let module = |end: usize| Some(names[..end].join("::")).filter(|name| modules.contains(name));
                (1..=names.len()).rev().find_map(module)
            })
            .filter(|name| *name != own.join("::"))
            .collect();
        (own.join("::"), named)
    });
    known.collect()
}

/// A path from the crate's root. Each further `super` goes up from `base`.
fn absolute(base: &[String], path: &str) -> Vec<String> {
    let mut names = base.to_vec();
    for name in path.split("::") {
        match name {
            "super" => drop(names.pop()),
            name => names.push(name.to_owned()),
        }
    }
    names
}

/// The use cases, each with the use cases that it names.
fn use_cases() -> BTreeMap<String, BTreeSet<String>> {
    let below = |name: &str| name.strip_prefix("services::").map(str::to_owned);
    let known: BTreeMap<String, BTreeSet<String>> = named_in("services")
        .into_iter()
        .filter_map(|(name, others)| {
            Some((below(&name)?, others.iter().filter_map(|other| below(other)).collect()))
        })
        .collect();
    assert!(known.values().map(BTreeSet::len).sum::<usize>() > 200, "the arrows were not found: {known:?}");
    known
}

/// The modules that may be in an import cycle.
fn circles(mut known: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    // A module that names none of the remaining ones cannot be in a cycle.
    while let Some(name) = known.iter().find(|(_, others)| others.is_empty()).map(|(name, _)| name.clone()) {
        known.remove(&name);
        known.values_mut().for_each(|others| {
            others.remove(&name);
        });
    }
    known
}

/// Use cases depend on each other in one direction, so that a reader who follows the imports of a file never
/// returns to it.
#[test]
fn use_cases_have_no_import_cycles() {
    assert_eq!(circles(use_cases()), BTreeMap::new(), "these name themselves through others");
}

/// The files of tests, which may name anything.
const TEST_FILES: &[&str] = &["tests.rs", "properties.rs", "formats.rs"];

/// The folders without import cycles. `services` has a test of its own.
const WITHOUT_CIRCLES: &[&str] =
    &["adapters", "api", "cache", "domain", "journal", "layout", "ports", "wire"];

#[test]
fn listed_folders_have_no_import_cycles() {
    let known: Vec<_> = WITHOUT_CIRCLES.iter().map(|folder| named_in(folder)).collect();
    assert!(known.iter().all(|files| files.len() > 1), "the files are not found any more: {known:?}");
    for files in known {
        assert_eq!(circles(files), BTreeMap::new(), "these import themselves through others");
    }
}

/// A folder's own file only lists its modules and public names. Importing a name through it would hide the
/// file that defines it, and cycles.
#[test]
fn files_of_the_api_import_from_where_a_name_is_defined() {
    let through_root: Vec<String> = named_in("api")
        .into_iter()
        .filter(|(_, others)| others.contains("api"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(through_root, Vec::<String>::new());
}

/// The room of a module: the first part of its path.
fn room_of(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

/// The modules that name a module of a higher room. A module outside the rooms may name any.
fn upward(known: BTreeMap<String, BTreeSet<String>>, rooms: &[&str]) -> Vec<String> {
    let floor = |name: &str| rooms.iter().position(|room| *room == room_of(name));
    known
        .into_iter()
        .filter_map(|(name, others)| Some((floor(&name)?, name, others)))
        .flat_map(|(own, name, others)| {
            let up = move |other: &String| floor(other).is_some_and(|other| other > own);
            others.into_iter().filter(up).map(move |other| format!("{name} names {other}"))
        })
        .collect()
}

#[test]
fn rooms_of_use_cases_name_only_rooms_below() {
    let upward = upward(use_cases(), ROOMS);
    assert!(upward.is_empty(), "against the order of the rooms:\n{}", upward.join("\n"));
}

/// The other packages, none of which has import cycles.
const OTHER_PACKAGES: &[&str] = &[
    "functions/console",
    "functions/lambda",
    "functions/server",
    "functions/statewright",
    "functions/traces",
    "localstack",
    "tests",
    "tests/tools",
];

/// The modules of another package, each with the modules that its imports and other paths name.
fn named_in_package(package: &str) -> BTreeMap<String, BTreeSet<String>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(package).join("src");
    let mut all = Vec::new();
    files(&source, &mut all);
    named_by(all, &source)
}

#[test]
fn other_packages_have_no_import_cycles() {
    for package in OTHER_PACKAGES {
        let known = named_in_package(package);
        assert!(!known.is_empty(), "the files of {package} were not found");
        assert_eq!(circles(known), BTreeMap::new(), "these of {package} import themselves through others");
    }
}

/// The rooms of the program, from the lowest.
const ROOMS_OF_PROGRAM: &[&str] = &[
    "args",
    "certificate",
    "managed",
    "output",
    "audit",
    "hcl",
    "given",
    "recorded",
    "data",
    "client",
    "serve",
    "commands",
];

/// The files above the rooms of the program: its root, and the test of the pages.
const ABOVE_ROOMS: &[&str] = &["lib", "main", "pages"];

#[test]
fn rooms_of_the_program_name_only_rooms_below() {
    let known = named_in_package("functions/statewright");
    let arrows: usize = known.values().map(BTreeSet::len).sum();
    assert!(arrows > 200, "only {arrows} arrows were found: the search is broken");
    for name in known.keys() {
        let is_listed = ROOMS_OF_PROGRAM.iter().chain(ABOVE_ROOMS).any(|room| *room == room_of(name));
        assert!(is_listed, "{name} is in no room of the list");
    }
    let upward = upward(known, ROOMS_OF_PROGRAM);
    assert!(upward.is_empty(), "against the order of the rooms:\n{}", upward.join("\n"));
}

#[test]
fn groups_of_paths_are_taken_apart() {
    let code = "use crate::a::{self, b, c::{d, e as f},\n};\nfn g() { crate::h::i(); my_crate::j(); }";
    let found: Vec<String> = paths(code, "crate").into_iter().collect();
    assert_eq!(found, ["a::b", "a::c::d", "a::c::e", "a::self", "h::i"]);
}
