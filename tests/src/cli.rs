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

use tokio::process::Command;

pub use crate::home::processes_of;
use crate::home::{Home, make_folder};
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
            ("HOME", home.folder().as_os_str()),
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
        self.home.folder()
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
