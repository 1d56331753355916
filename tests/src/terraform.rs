//! The real `tofu` and `terraform` in a home of their own, as [`crate::cli`] runs the real `pulumi`.
//!
//! They come without providers and need none: `terraform_data` and `terraform_remote_state` are built in.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

use crate::app::TestApp;
use crate::home::Home;
pub use crate::running::{Output, Running};
use crate::{running, tools};

/// The timeout of a command.
const PATIENCE: Duration = Duration::from_secs(180);

const PAGE: &str = include_str!("../../shared/docs/terraform.md");

/// The address in the page's example.
const SHOWN: &str = "http://localhost:8080/tfstate/main/network";

/// The client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Tofu,
    Terraform,
}

impl Client {
    fn program(self) -> &'static Path {
        match self {
            Self::Tofu => tools::tofu(),
            Self::Terraform => tools::terraform(),
        }
    }

    /// The name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tofu => "tofu",
            Self::Terraform => "terraform",
        }
    }

    /// Its version, as it writes it into states and locks.
    pub fn version(self) -> &'static str {
        match self {
            Self::Tofu => tools::TOFU_VERSION,
            Self::Terraform => tools::TERRAFORM_VERSION,
        }
    }
}

/// A client with a fresh home and one configuration.
#[derive(Clone, Debug)]
pub struct TerraformCli {
    client: Client,
    home: Arc<Home>,
    /// The folder in which commands run, below the home.
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl TerraformCli {
    /// A client that has never run, with a server's token in its environment.
    ///
    /// The first call on a machine builds the client, which takes minutes.
    pub fn new(client: Client, token: &str) -> Self {
        let home = Home::with(&format!("{}-home-", client.name()), &["project", "tmp"]);
        let environment = [
            ("HOME", home.folder().as_os_str()),
            ("TMPDIR", home.path("tmp").as_os_str()),
            // For provisioners.
            ("PATH", OsStr::new("/usr/bin:/bin")),
            ("USER", OsStr::new("tester")),
            ("TZ", OsStr::new("UTC")),
            ("CHECKPOINT_DISABLE", OsStr::new("1")),
            ("TF_IN_AUTOMATION", OsStr::new("1")),
            ("TF_INPUT", OsStr::new("0")),
            ("TF_CLI_ARGS", OsStr::new("-no-color")),
            ("TF_HTTP_USERNAME", OsStr::new("anybody")),
            ("TF_HTTP_PASSWORD", OsStr::new(token)),
        ]
        .map(|(name, value)| (name.into(), value.to_owned()))
        .into();
        Self { client, home: Arc::new(home), folder: "project".into(), environment }
    }

    /// A client without a token.
    pub fn without_token(client: Client) -> Self {
        let mut cli = Self::new(client, "");
        cli.environment.retain(|(name, _)| !name.to_string_lossy().starts_with("TF_HTTP_"));
        cli
    }

    /// A client without a token, whose user has the commands of `statewright` with this server and its token.
    pub fn with_commands(client: Client, url: &str, token: &str) -> Self {
        let cli = Self::without_token(client);
        let mut path =
            client.program().parent().map_or_else(OsString::new, |folder| folder.as_os_str().to_owned());
        path.push(":/usr/bin:/bin");
        cli.env("PATH", path).env("STATEWRIGHT_URL", url).env("STATEWRIGHT_TOKEN", token)
    }

    /// This client in a new subfolder of the one in which it runs.
    #[must_use]
    pub fn below(mut self, name: &str) -> Self {
        self.folder.push(name);
        let folder = self.project_dir();
        fs::create_dir_all(&folder)
            .unwrap_or_else(|error| panic!("cannot make {}: {error}", folder.display()));
        self
    }

    /// Everything of this client: its home, with its working folders.
    pub fn home(&self) -> &Path {
        self.home.folder()
    }

    /// Adds an environment variable; a later value of the same name wins.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The folder in which commands run.
    pub fn project_dir(&self) -> PathBuf {
        self.home.folder().join(&self.folder)
    }

    /// Writes a file below the project folder, replacing an existing one.
    pub fn write(&self, name: &str, text: &str) {
        let file = self.project_dir().join(name);
        fs::write(&file, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
    }

    /// Reads a file below the project folder.
    pub fn read(&self, name: &str) -> String {
        let file = self.project_dir().join(name);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
    }

    /// Configures the backend as the page for Terraform shows it, for the state with this address: `acme/net`.
    pub fn backend(&self, app: &TestApp, state: &str) {
        self.backend_at(&app.url, state);
    }

    /// The same at the server with this URL.
    pub fn backend_at(&self, url: &str, state: &str) {
        let block = PAGE.split("```hcl\n").nth(1).and_then(|rest| rest.split("```").next());
        let block = block.expect("the page shows a backend");
        assert_eq!(block.matches(SHOWN).count(), 3, "three addresses: {block}");
        self.write("backend.tf", &block.replace(SHOWN, &format!("{url}/tfstate/{state}")));
    }

    /// Runs the client with these arguments to its end.
    pub async fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Output {
        self.spawn(arguments).wait().await
    }

    /// Starts the client with these arguments in the background.
    pub fn spawn<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        let (command, shown) = self.command(self.client.program(), arguments);
        Running::start(command, shown, PATIENCE, Arc::clone(&self.home))
    }

    /// Starts the client with these arguments on a terminal.
    pub fn spawn_at_terminal<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        let (command, shown) = self.command(self.client.program(), arguments);
        Running::start_at_terminal(command, shown, PATIENCE, Arc::clone(&self.home))
    }

    /// Runs a command of `statewright` instead of the client, to its end.
    pub async fn statewright<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Output {
        self.spawn_statewright(arguments).wait().await
    }

    /// Starts a command of `statewright` instead of the client.
    pub fn spawn_statewright<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        let (command, shown) = self.command(tools::statewright(), arguments);
        Running::start(command, shown, PATIENCE, Arc::clone(&self.home))
    }

    /// Starts a command of `statewright` instead of the client, on a terminal.
    pub fn spawn_statewright_at_terminal<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Running {
        let (command, shown) = self.command(tools::statewright(), arguments);
        Running::start_at_terminal(command, shown, PATIENCE, Arc::clone(&self.home))
    }

    fn command<A: AsRef<OsStr>>(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> (Command, String) {
        running::command(program, arguments, &self.project_dir(), &self.environment)
    }
}
