//! The console that is in the repository is the one that its sources make.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use statewright_shared::api;
use statewright_tests::tools;

const CONSOLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../functions/console");

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let listed = fs::read_dir(folder).unwrap();
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    };
    listed.map(|entry| read(entry.unwrap().path())).collect()
}

/// Made again with `UPDATE_PAGES=1 cargo test --workspace --test http the_console_is`.
#[test]
fn the_console_is_what_its_sources_and_the_document_make() {
    let built = tools::build_console(&api::openapi());
    let types = "web/src/api/schema.ts";
    let (new, kept) = (built.path(), Path::new(CONSOLE));
    let read = |folder: &Path| (files(&folder.join("dist")), fs::read_to_string(folder.join(types)).unwrap());
    let (dist, schema) = read(new);
    if std::env::var_os("UPDATE_PAGES").is_some() {
        fs::remove_dir_all(kept.join("dist")).unwrap();
        fs::create_dir(kept.join("dist")).unwrap();
        for (name, bytes) in &dist {
            fs::write(kept.join("dist").join(name), bytes).unwrap();
        }
        fs::write(kept.join(types), &schema).unwrap();
    }
    let (kept_dist, kept_schema) = read(kept);
    assert!(kept_schema == schema, "the types of the API have changed: see the command above");
    assert_eq!(kept_dist.keys().collect::<Vec<_>>(), dist.keys().collect::<Vec<_>>());
    for (name, bytes) in &dist {
        assert!(
            kept_dist[name] == *bytes,
            "{name} differs from what its sources make: see the command above"
        );
    }
}
