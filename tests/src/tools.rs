//! The programs that the tests run: those of `tests/tools`, and ours, which cargo builds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use statewright_shared::api::routes::Group;
pub use statewright_tools::*;

/// The `statewright` binary of this tree, debug build.
///
/// # Panics
/// If it does not compile; the message is the compiler's.
pub fn statewright() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| cargo_build("statewright", &["statewright"], &["--workspace"]))
}

/// The folder with the programs of all functions of this tree, debug builds: `statewright-` and the function's name each.
///
/// # Panics
/// If they do not compile; the message is the compiler's.
pub fn functions() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let names: Vec<String> = function_names().map(|name| format!("statewright-{name}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let program = cargo_build("functions", &names, &["--workspace"]);
        program.parent().map_or_else(PathBuf::new, Path::to_owned)
    })
}

/// All functions: a group of routes each, and the sweep.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    Group::ALL.into_iter().map(Group::name).chain(["sweep"])
}

/// The `statewright` binary of this tree as it is shipped: the one to measure.
///
/// # Panics
/// If it does not compile; the message is the compiler's.
pub fn statewright_dist() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let shipped = ["--profile", "dist", "--package", "statewright", "--features", "dist"];
        cargo_build("statewright", &["statewright"], &shipped)
    })
}

/// Builds these binaries with cargo, or finds them up to date, and returns the path of the last one; all are
/// in one folder. Tests build them as a part of the workspace, so that they can use what `cargo test` has
/// built. Benches build them alone, as users do.
fn cargo_build(tool: &'static str, binaries: &[&str], arguments: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    // Variables that cargo set for this process's own package. Build scripts that read them would run again,
    // and everything that depends on them would be built again.
    for (name, _) in std::env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_MANIFEST") || name.starts_with("CARGO_PKG"))
        {
            command.env_remove(name);
        }
    }
    let built = command
        .current_dir(root)
        .args(["build", "--message-format=json-render-diagnostics"])
        .args(binaries.iter().flat_map(|binary| ["--bin", binary]))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("cannot run cargo in {}: {error}", root.display()));
    // Cargo writes one JSON object per line. Those of our binaries have their paths, for any configured
    // target folder.
    String::from_utf8_lossy(&built.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| binaries.iter().any(|binary| message["target"]["name"] == *binary))
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
        .filter(|_| built.status.success())
        .unwrap_or_else(|| {
            panic!("building {tool} failed ({}):\n{}", built.status, String::from_utf8_lossy(&built.stderr))
        })
}
