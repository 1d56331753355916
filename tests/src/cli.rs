//! The real `pulumi` client in a home of its own.
//!
//! Nothing of the caller's environment reaches it: no account, no CI or git variables, no proxy, no plugin of
//! the machine. It finds only the bench provider, its language host and the YAML language host. All waiting is
//! asynchronous, so a server may run in the same runtime.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;

pub use crate::running::{Output, Running};
use crate::{filters, running, tools};

/// The timeout of a command, unless [`PulumiCli::patience`] sets another.
const PATIENCE: Duration = Duration::from_secs(120);

/// The version that the bench plugins report; the client looks them up under it.
const BENCH_VERSION: &str = "1.0.0";

/// A client with a fresh home and one project folder.
#[derive(Clone, Debug)]
pub struct PulumiCli {
    home: Arc<Home>,
    /// The folder of the client and its plugins.
    programs: &'static Path,
    environment: Vec<(OsString, OsString)>,
    patience: Duration,
}

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

impl PulumiCli {
    /// A client that has never run and is not logged in.
    ///
    /// The first call on a machine builds the client, which takes minutes.
    #[expect(clippy::new_without_default, reason = "it builds programs and makes folders: no default value")]
    pub fn new() -> Self {
        Self::of(tools::pulumi_bin_dir())
    }

    /// The same with the client of [`tools::OLDER_PULUMI_VERSION`].
    #[cfg(feature = "extended")]
    pub fn older() -> Self {
        Self::of(tools::older_pulumi_bin_dir())
    }

    fn of(programs: &'static Path) -> Self {
        let home = Home::with("pulumi-home-", &["pulumi", "project", "state", "tmp"]);
        // Link it as if installed, outside the `PATH`: for plugins on the `PATH` the client prints a warning.
        for kind in ["resource", "language"] {
            let plugin = home.path(&format!("pulumi/plugins/{kind}-bench-v{BENCH_VERSION}"));
            make_folder(&plugin);
            let name = format!("pulumi-{kind}-bench");
            std::os::unix::fs::symlink(programs.join(&name), plugin.join(&name))
                .expect("a link can be made in a new folder");
        }
        let environment = [
            ("HOME", home.folder.path().as_os_str()),
            ("PULUMI_HOME", home.path("pulumi").as_os_str()),
            ("TMPDIR", home.path("tmp").as_os_str()),
            ("PATH", programs.as_os_str()),
            ("USER", OsStr::new("tester")),
            ("TZ", OsStr::new("UTC")),
            ("NO_COLOR", OsStr::new("1")),
            ("PULUMI_SKIP_UPDATE_CHECK", OsStr::new("true")),
            ("PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION", OsStr::new("true")),
            ("PULUMI_IGNORE_AMBIENT_PLUGINS", OsStr::new("true")),
        ]
        .map(|(name, value)| (name.into(), value.to_owned()))
        .into();
        Self { home: Arc::new(home), programs, environment, patience: PATIENCE }
    }

    /// Adds an environment variable; a later value of the same name wins.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Sets a backend, so that the client needs no `pulumi login`: `http://127.0.0.1:PORT` or `file:///...`.
    #[must_use]
    pub fn backend(self, url: impl Into<OsString>) -> Self {
        self.env("PULUMI_BACKEND_URL", url)
    }

    /// Sets an access token for the backend.
    #[must_use]
    pub fn token(self, token: impl Into<OsString>) -> Self {
        self.env("PULUMI_ACCESS_TOKEN", token)
    }

    /// Sets a folder of its home as backend and a passphrase for secrets: Pulumi's own reference for states.
    #[must_use]
    pub fn diy(self, passphrase: &str) -> Self {
        let url = format!("file://{}", self.home.path("state").display());
        self.backend(url).env("PULUMI_CONFIG_PASSPHRASE", passphrase)
    }

    /// Sets another timeout for commands.
    #[must_use]
    pub fn patience(mut self, bound: Duration) -> Self {
        self.patience = bound;
        self
    }

    /// The folder with everything of this client.
    pub fn home_dir(&self) -> &Path {
        self.home.folder.path()
    }

    /// The folder in which commands run.
    pub fn project_dir(&self) -> PathBuf {
        self.home.path("project")
    }

    /// Makes the project folder a git repository with one commit, whose hash is returned.
    ///
    /// # Panics
    /// If `git` is missing or refuses.
    pub fn commit(&self) -> String {
        let git = |arguments: &[&str]| {
            let output = std::process::Command::new("git")
                .args(["-c", "user.name=tester", "-c", "user.email=tester@localhost"])
                .args(["-c", "commit.gpgsign=false"])
                .args(arguments)
                .current_dir(self.project_dir())
                .env("HOME", self.home_dir())
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .output()
                .expect("git runs");
            assert!(
                output.status.success(),
                "git {arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8(output.stdout).expect("git writes UTF-8").trim().to_owned()
        };
        git(&["init", "--quiet", "--initial-branch", "trunk"]);
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", "Start the project"]);
        git(&["rev-parse", "HEAD"])
    }

    /// Writes a file below the project folder, replacing an existing one.
    pub fn write(&self, name: &str, text: &str) {
        let file = self.project_dir().join(name);
        fs::write(&file, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    }

    /// Makes the project a bench program with these settings (`tests/tools/bench-provider/README.md` lists
    /// them), or changes the settings of the existing one. Values are YAML scalars: `("count", "5")`.
    pub fn bench_project(&self, name: &str, settings: &[(&str, &str)]) {
        let options: String = settings.iter().map(|(key, value)| format!("    {key}: {value}\n")).collect();
        let options = if options.is_empty() { String::new() } else { format!("  options:\n{options}") };
        self.write("Pulumi.yaml", &format!("name: {name}\nruntime:\n  name: bench\n{options}"));
    }

    /// Makes the project a Pulumi YAML program: `program` is what follows name and runtime (`resources:`,
    /// `outputs:`).
    pub fn yaml_project(&self, name: &str, program: &str) {
        self.write("Pulumi.yaml", &format!("name: {name}\nruntime: yaml\n{program}"));
    }

    /// Runs `pulumi` with these arguments to its end.
    pub async fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Output {
        self.spawn(arguments).wait().await
    }

    /// Starts `pulumi` with these arguments in the background.
    pub fn spawn<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        let (command, shown) = self.command(arguments);
        Running::start(command, shown, self.patience, self.home.clone())
    }

    /// Starts `pulumi` with these arguments on a terminal, where it asks questions: see [`Running::types`]. Its
    /// stdout is everything that it prints.
    pub fn spawn_at_terminal<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        let (command, shown) = self.command(arguments);
        Running::start_at_terminal(command, shown, self.patience, self.home.clone())
    }

    /// The same on a terminal of 40 rows and 160 columns, on which it draws what it does.
    pub fn spawn_at_sized_terminal<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Running {
        let (command, shown) = self.command(arguments);
        Running::start_at_terminal_of((40, 160), command, shown, self.patience, self.home.clone())
    }

    /// Runs another program, which finds this client on its `PATH`, to its end.
    pub async fn run_program(&self, program: &Path, arguments: &[&OsStr]) -> Output {
        let (command, shown) = self.command_of(program, arguments);
        Running::start(command, shown, self.patience, self.home.clone()).wait().await
    }

    /// The same on a terminal, in the background.
    pub fn spawn_program_at_terminal(&self, program: &Path, arguments: &[&str]) -> Running {
        let (command, shown) = self.command_of(program, arguments);
        Running::start_at_terminal(command, shown, self.patience, self.home.clone())
    }

    /// The command to start, and its text.
    fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> (Command, String) {
        self.command_of(&self.programs.join("pulumi"), arguments)
    }

    fn command_of<A: AsRef<OsStr>>(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> (Command, String) {
        running::command(program, arguments, &self.project_dir(), &self.environment)
    }

    /// Snapshot settings that hide what differs from run to run, including this client's folders.
    ///
    /// ```no_run
    /// # async fn journey(cli: statewright_tests::cli::PulumiCli) {
    /// let output = cli.run(["up", "--yes"]).await;
    /// cli.snapshots().bind(|| insta::assert_snapshot!(output));
    /// # }
    /// ```
    pub fn snapshots(&self) -> insta::Settings {
        filters::settings(self.home_dir())
    }
}

fn make_folder(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
}
