//! The folder with everything of one client.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

/// The folder with everything of one client. It is deleted, and its processes killed, when the last user drops it.
#[derive(Debug)]
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    /// A folder with these subfolders.
    pub(crate) fn with(prefix: &str, below: &[&str]) -> Self {
        let folder =
            tempfile::Builder::new().prefix(prefix).tempdir().expect("a temporary folder can be made");
        let home = Self { folder };
        for below in below {
            make_folder(&home.path(below));
        }
        home
    }

    /// The whole folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A path in it.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }
}

impl Drop for Home {
    /// Kills the remaining processes before the folder is deleted.
    fn drop(&mut self) {
        // A killed process takes a moment to end, and one may have started another meanwhile.
        for _ in 0..1000 {
            let left = processes_of(self.folder.path());
            if left.is_empty() {
                return;
            }
            for pid in left {
                // It may have ended in between.
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::yield_now();
        }
    }
}

/// The running processes that a client with this home started, itself included.
///
/// A client that was killed leaves its plugins behind, which notice it only minutes later. They are recognized
/// by the `TMPDIR` that they inherited, which no other process has. Without `/proc`, none is found.
pub fn processes_of(home: &Path) -> Vec<Pid> {
    let mut theirs = OsString::from("TMPDIR=");
    theirs.push(home.join("tmp"));
    let is_theirs = |environment: Vec<u8>| {
        environment.split(|byte| *byte == 0).any(|entry| entry == theirs.as_encoded_bytes())
    };
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|process| fs::read(process.path().join("environ")).is_ok_and(is_theirs))
        .filter_map(|process| Pid::from_raw(process.file_name().to_str()?.parse().ok()?))
        .collect()
}

pub(crate) fn make_folder(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
}
