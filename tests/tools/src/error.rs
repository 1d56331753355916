//! Errors of building tools.

use std::io;
use std::path::Path;
#[cfg(feature = "extended")]
use std::path::PathBuf;

/// Why a tool cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No Python 3.13.
    #[cfg(feature = "extended")]
    #[error(
        "{tool} needs Python 3.13 with venv and pip, and {} is none: put `python3.13` on the PATH, or name it with \
         STATEWRIGHT_PYTHON_3_13",
        tried.display()
    )]
    Python313Missing {
        /// The tool that needs it.
        tool: &'static str,
        /// The path that was tried.
        tried: PathBuf,
    },
    /// No `python3` on the `PATH`.
    #[error("{tool} needs Python 3.10 or later with venv and pip, and there is no `python3` on the PATH")]
    PythonMissing {
        /// The tool to install.
        tool: &'static str,
    },
    /// Neither of the variables that name the cache folder is set.
    #[error("nowhere to keep built tools: set STATEWRIGHT_TOOLS_CACHE or HOME")]
    NoCache,
    /// The compiler failed. Its output says why.
    #[error(
        "building {tool} failed ({status}); what it needs is fetched the first time, which takes the network:\n{output}"
    )]
    Build {
        /// The tool to build.
        tool: &'static str,
        /// The exit status of the compiler.
        status: String,
        /// The output of the compiler.
        output: String,
    },
    /// An operation on the file system failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation, with its path.
        what: String,
        /// The error of the operation.
        source: io::Error,
    },
}

impl ToolError {
    pub(crate) fn io(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: format!("{what} {}", path.display()), source }
    }
}
