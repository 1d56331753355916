//! Tools in Python: an environment of their own for each.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use crate::ToolError;
use crate::cache::{self, Ready, feed, in_cache, short_hex};

/// The arguments of `pip`: quiet, and without questions.
pub(crate) fn pip(what: &str) -> [&str; 6] {
    ["-m", "pip", what, "--quiet", "--no-input", "--disable-pip-version-check"]
}

/// Installs what `requirements.txt` of a tool names into an environment of its own, or finds it there.
pub(crate) fn install(tool: &'static str) -> Result<Ready, ToolError> {
    install_for(tool, Path::new("python3"))
}

/// The same for this Python.
pub(crate) fn install_for(tool: &'static str, interpreter: &Path) -> Result<Ready, ToolError> {
    let requirements = cache::sources(tool).join("requirements.txt");
    let mut key = Sha256::new();
    // What is installed is for one version of Python.
    feed(&mut key, &run_python(tool, interpreter, &["-VV"])?);
    feed(&mut key, &fs::read(&requirements).map_err(ToolError::io("cannot read", &requirements))?);
    in_cache(tool, &short_hex(key), |folder| {
        run_python(tool, interpreter, &["-m".as_ref(), "venv".as_ref(), folder.as_os_str()])?;
        // Through `python`, not through `pip`, whose first line names the folder that is about to be renamed.
        let pip = pip("install").map(OsStr::new).into_iter();
        let arguments = pip.chain([OsStr::new("--requirement"), requirements.as_os_str()]);
        run_python(tool, &folder.join("bin").join("python"), &arguments.collect::<Vec<_>>()).map(drop)
    })
}

/// What Python printed.
pub(crate) fn run_python(
    tool: &'static str,
    python: &Path,
    arguments: &[impl AsRef<OsStr>],
) -> Result<Vec<u8>, ToolError> {
    let ran = Command::new(python).args(arguments).stdin(Stdio::null()).output().map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            ToolError::PythonMissing { tool }
        } else {
            ToolError::io("cannot run", python)(error)
        }
    })?;
    if ran.status.success() {
        return Ok(ran.stdout);
    }
    Err(ToolError::Build {
        tool,
        status: ran.status.to_string(),
        // Which of the two it complains on depends on the module.
        output: String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned(),
    })
}
