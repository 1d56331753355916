//! Tools in Python, each in its own environment.

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

/// Installs the packages in `requirements.txt` of a tool into its own environment, or finds it in the cache.
pub(crate) fn install(tool: &'static str) -> Result<Ready, ToolError> {
    install_for(tool, Path::new("python3"))
}

/// The same for this Python.
pub(crate) fn install_for(tool: &'static str, interpreter: &Path) -> Result<Ready, ToolError> {
    let requirements = cache::sources(tool).join("requirements.txt");
    let mut key = Sha256::new();
    // An environment works with one version of Python only.
    feed(&mut key, &run_python(tool, interpreter, &["-VV"])?);
    feed(&mut key, &fs::read(&requirements).map_err(ToolError::io("cannot read", &requirements))?);
    in_cache(tool, &short_hex(key), |folder| {
        run_python(tool, interpreter, &["-m".as_ref(), "venv".as_ref(), folder.as_os_str()])?;
        // Through `python`, because the first line of `pip` has the path of the folder, which is about to be
        // renamed.
        let pip = pip("install").map(OsStr::new).into_iter();
        let arguments = pip.chain([OsStr::new("--requirement"), requirements.as_os_str()]);
        run_python(tool, &folder.join("bin").join("python"), &arguments.collect::<Vec<_>>()).map(drop)
    })
}

/// The output of a Python command.
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
        // Depending on the module, errors are on either stream.
        output: String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned(),
    })
}
