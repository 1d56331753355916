//! What keeps a tool from being built.

use std::io;
use std::path::Path;
#[cfg(feature = "extended")]
use std::path::PathBuf;

/// What keeps a tool from being built.
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
        /// What was tried.
        tried: PathBuf,
    },
    /// No `python3` on the `PATH`.
    #[error("{tool} needs Python 3.10 or later with venv and pip, and there is no `python3` on the PATH")]
    PythonMissing {
        /// The tool that was to be installed.
        tool: &'static str,
    },
    /// Neither of the variables that name the cache folder is set.
    #[error("nowhere to keep built tools: set STATEWRIGHT_TOOLS_CACHE or HOME")]
    NoCache,
    /// The compiler refused; its output says why.
    #[error(
        "building {tool} failed ({status}); what it needs is fetched the first time, which takes the network:\n{output}"
    )]
    Build {
        /// The tool that was to be built.
        tool: &'static str,
        /// How the compiler ended.
        status: String,
        /// What it printed.
        output: String,
    },
    /// The file system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, to which path.
        what: String,
        /// The refusal.
        source: io::Error,
    },
}

impl ToolError {
    pub(crate) fn io(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: format!("{what} {}", path.display()), source }
    }
}
