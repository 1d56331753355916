//! `statewright tf`: runs Terraform or OpenTofu on a state of a server.
//!
//! The token is passed in the environment and never written to a file, since clients store the settings of a
//! backend block in plain text. A folder that is linked to a state and has no backend gets a temporary one
//! while the client runs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, IsTerminal as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use statewright_shared::domain::access::Scope;
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::wire::access::{OwnRights, UsersWithRole};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::dep::{DEPENDENCIES_FILE, mocked_inputs};
use super::state::of_command;
use super::state::wire::State;
use crate::client::{
    At, Call, Client, Failure, LINK_FILE, Linked, Oidc, StateRef, WhichState, server_of, state_of,
};
use crate::given::{self, GivenAddress, VARIABLES};
use crate::hcl::{self, Address, Backend, TEMPORARY_FILE};
use crate::managed::{self, Found};
use crate::output::{self, Output};
use crate::recorded::Recorded;

#[derive(Debug, clap::Args)]
pub(crate) struct Tf {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    which: WhichState,
    #[command(flatten)]
    oidc: Oidc,
    /// The client, by name or path [env: STATEWRIGHT_TF] [default: tofu, else terraform, from PATH].
    #[arg(long, value_name = "PROGRAM")]
    client: Option<PathBuf>,
    /// The arguments of the client, such as `-- plan -out=plan.bin`. `env` alone runs no client and prints
    /// the variables for a shell: `eval "$(statewright tf env)"`.
    #[arg(value_name = "ARGS", trailing_var_arg = true, required = true)]
    arguments: Vec<OsString>,
}

/// Client commands that read neither state nor backend.
const WITHOUT_STATE: &[&str] = &["fmt", "version", "login", "logout", "metadata"];

/// The file in which clients leave a state that they could not save.
const ERRORED: &str = "errored.tfstate";

/// The environment variables with the credentials of an HTTP backend.
const USERNAME: &str = "TF_HTTP_USERNAME";
const PASSWORD: &str = "TF_HTTP_PASSWORD";

pub(crate) async fn run(mut tf: Tf, out: Output) -> anyhow::Result<()> {
    tf.at = tf.at.with_exchanged(&tf.oidc).await?;
    if let [only] = &tf.arguments[..]
        && only == "env"
    {
        return env(&tf, out).await;
    }
    let of_variable = || std::env::var_os("STATEWRIGHT_TF").filter(|it| !it.is_empty()).map(PathBuf::from);
    let program = program(tf.client.clone().or_else(of_variable).as_deref())?;
    let folder = folder(&tf.arguments)?;
    let mut signals = Signals::new()?;
    let mut command = Command::new(&program);
    command.args(&tf.arguments);
    let Some(prepared) = prepare(&tf, &folder, out).await? else {
        return ends_as(signals.wait_for(start(command, &program)?).await?);
    };
    if prepared.takes_token {
        command.env(USERNAME, "statewright").env(PASSWORD, prepared.client.token().as_str());
    }
    warn_of_mocks(&tf.arguments, &folder, out);
    let errored = stamp(&folder);
    let status = signals.wait_for(start(command, &program)?).await?;
    drop(prepared.temporary);
    // `plan -detailed-exitcode` exits with 2 when there are changes.
    if !status.success() && status.code() != Some(2) {
        let word = tf.arguments.iter().filter_map(|it| it.to_str()).find(|it| !it.starts_with('-'));
        let needs = if is_changing(&tf.arguments) { Role::Apply } else { Role::Plan };
        let ran = Ran { word: word.unwrap_or("the client"), needs };
        explain(&prepared.client, prepared.state.as_ref(), &ran, out).await;
        let now = stamp(&folder);
        if now.is_some() && now != errored {
            tell_of_errored(out);
        }
    }
    ends_as(status)
}

/// Prints shell exports for running clients directly: the credentials, and the addresses of the state if one
/// is named or the folder is linked to one.
async fn env(tf: &Tf, out: Output) -> anyhow::Result<()> {
    let folder = folder(&[])?;
    let client = Client::open(&tf.at)?;
    let mut lines = Vec::new();
    if tf.which.state.is_some() || Linked::of(&folder)?.is_some() {
        let state = client.state::<State>(tf.which.state.as_ref()).await?.read;
        let at = format!("{}/tfstate/{}", client.server(), state.identity()?.0);
        lines.extend([
            (VARIABLES[0], at.clone()),
            (VARIABLES[1], format!("{at}/lock")),
            ("TF_HTTP_LOCK_METHOD", "POST".to_owned()),
            (VARIABLES[2], format!("{at}/lock")),
            ("TF_HTTP_UNLOCK_METHOD", "DELETE".to_owned()),
        ]);
    }
    lines.extend([(USERNAME, "statewright".to_owned()), (PASSWORD, client.token().as_str().to_owned())]);
    let line = |(name, value): (&str, String)| format!("export {name}={}", in_shell(&value));
    out.text(&lines.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Quotes any text as one shell word.
fn in_shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

struct Prepared {
    client: Client,
    state: Option<StateRef>,
    /// Whether every address that the client will use belongs to the server of the token.
    takes_token: bool,
    temporary: Option<TemporaryBackend>,
}

async fn prepare(tf: &Tf, folder: &Path, out: Output) -> anyhow::Result<Option<Prepared>> {
    let mut words = tf.arguments.iter().filter_map(|argument| argument.to_str());
    let word = words.find(|word| !word.starts_with('-'));
    if word.is_none_or(|word| WITHOUT_STATE.contains(&word)) {
        return Ok(None);
    }
    let is_init = word == Some("init");
    let is_forgotten = is_init
        && words.any(|option| matches!(option.trim_start_matches('-'), "reconfigure" | "reconfigure=true"));
    // `init` sends the same credentials to the previous backend, unless that has its own password or is
    // discarded.
    let before = Recorded::of(folder).filter(|before| !before.has_password && !is_forgotten);
    let temporary = folder.join(TEMPORARY_FILE);
    let is_ours = matches!(managed::read(&temporary)?, Found::Ours(_));
    let mut backends = hcl::backends(folder)?;
    backends.retain(|backend| !(is_ours && backend.file == temporary));
    let is_named = tf.which.state.is_some();
    let given = if is_init { given::by_options(&tf.arguments, folder) } else { Vec::new() };
    let run = Run { at: &tf.at, folder, before, given, out };
    match backends.first() {
        Some(_) if backends.iter().any(|backend| backend.kind == "http") => {
            if is_named {
                let file = backends[0].file.file_name().unwrap_or_default().display();
                bail!("{file} already names the state of this configuration: leave out -s");
            }
            run.as_configured(&backends)
        }
        Some(backend) => match run.before.as_ref().filter(|_| is_init) {
            Some(before) => run.away_from(before),
            None => {
                let file = backend.file.file_name().unwrap_or_default().display();
                let kind = &backend.kind;
                out.note(format_args!(
                    "note: {file} stores the state elsewhere ({kind}), so the token is not passed to the client"
                ));
                Ok(None)
            }
        },
        None => match run.before.as_ref().filter(|_| is_init && !is_named) {
            // Both the backend and the link were removed: the state moves to a file.
            Some(before) if Linked::of(folder)?.is_none() => run.away_from(before),
            Some(_) | None => run.without_backend(tf.which.state.as_ref(), temporary).await.map(Some),
        },
    }
}

/// A run of a client.
struct Run<'a> {
    at: &'a At,
    folder: &'a Path,
    /// The previous backend, if the client will use the credentials of the environment for it.
    before: Option<Recorded>,
    /// Addresses given outside the configuration's files.
    given: Vec<GivenAddress>,
    out: Output,
}

/// The description of an address that a client will use, and its server if it is a Statewright address.
type Lead = (String, Option<ServerUrl>);

fn lead(what: String, it: &Address) -> Lead {
    let is_state = |text: &&str| it.setting != "address" || state_of(text).is_some();
    (what, it.text.as_deref().filter(is_state).and_then(server_of))
}

impl Run<'_> {
    /// The configuration has a backend, which names the server as a link would. Settings missing there come
    /// from an option or the environment.
    ///
    /// One file can override another, and the precedence differs between clients. So every address in every
    /// file, option and variable must belong to the server of the token.
    fn as_configured(&self, backends: &[Backend]) -> anyhow::Result<Option<Prepared>> {
        let written = backends.iter().flat_map(|backend| {
            let file = backend.file.file_name().unwrap_or_default().display();
            backend.addresses.iter().map(move |it| (format!("{} in {file}", it.setting), it))
        });
        let mut all: Vec<(String, &Address)> = written.collect();
        all.extend(self.given.iter().map(|given| (given.what.clone(), &given.address)));
        let mut of_environment = given::by_environment();
        of_environment.retain(|given| all.iter().all(|(_, it)| it.setting != given.address.setting));
        let mut set = all.iter().filter(|(_, it)| it.setting == "address").map(|(_, it)| it.text.as_deref());
        let of_variable = of_environment.iter().find(|given| given.address.setting == "address");
        let address = match set.next() {
            // If two differ, the state of the run is unknown.
            Some(first) => first.filter(|_| set.all(|other| other == first)),
            None => {
                let before = self.before.as_ref().and_then(Recorded::address);
                before.or(of_variable.and_then(|given| given.address.text.as_deref()))
            }
        };
        let state = address.and_then(state_of);
        all.extend(of_environment.iter().map(|given| (given.what.clone(), &given.address)));
        self.passed_on(all.into_iter().map(|(what, it)| lead(what, it)).collect(), state)
    }

    /// The state moves from a server to another kind of backend.
    fn away_from(&self, before: &Recorded) -> anyhow::Result<Option<Prepared>> {
        self.passed_on(Vec::new(), before.address().and_then(state_of))
    }

    /// The configuration has no backend, so it gets a temporary one while the client runs.
    async fn without_backend(
        &self,
        named: Option<&StateRef>,
        temporary: PathBuf,
    ) -> anyhow::Result<Prepared> {
        if named.is_none() {
            self.refuse_from_above()?;
        }
        let client = Client::open_in(self.at, self.folder)?;
        let state = client.state::<State>(named).await?.read;
        let (id, address) = state.identity()?;
        let text = hcl::temporary_backend(client.server(), id, &address);
        let temporary = Some(TemporaryBackend::create(temporary, &text)?);
        let mut leads: Vec<Lead> =
            self.given.iter().map(|given| lead(given.what.clone(), &given.address)).collect();
        leads.extend(self.leads_of_before());
        let takes_token = !self.strays(&leads, client.server());
        Ok(Prepared { client, state: Some(StateRef::Id(id)), takes_token, temporary })
    }

    /// A client reads the configuration of one folder only, so with the state of a parent folder it would
    /// destroy that folder's resources.
    fn refuse_from_above(&self) -> anyhow::Result<()> {
        match Linked::find(self.folder)? {
            Some(linked) if linked.folder != self.folder => bail!(
                "{} is not linked to a state, and {} belongs to the configuration in the parent folder: name \
                 the state with -s PROJECT/STATE, or link this folder with `statewright state init STATE`",
                self.folder.display(),
                linked.folder.join(LINK_FILE).display()
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// Passes the token on if every address belongs to its server. `None` if an address does not belong to a
    /// Statewright server.
    fn passed_on(
        &self,
        mut leads: Vec<Lead>,
        state: Option<(ServerUrl, StateRef)>,
    ) -> anyhow::Result<Option<Prepared>> {
        leads.extend(self.leads_of_before());
        if let Some((what, _)) = leads.iter().find(|(_, server)| server.is_none()) {
            self.warn_about(what, "something other than a Statewright state");
            return Ok(None);
        }
        let of_folder = leads.iter().find_map(|(_, server)| server.as_ref());
        let client = Client::open_at(self.at, of_folder, self.folder)?;
        let takes_token = !self.strays(&leads, client.server());
        let state = state.filter(|_| takes_token).map(|(_, state)| state);
        Ok(Some(Prepared { client, state, takes_token, temporary: None }))
    }

    fn leads_of_before(&self) -> Vec<Lead> {
        let addresses = self.before.iter().flat_map(|before| &before.addresses);
        addresses.map(|address| (BEFORE.to_owned(), server_of(address))).collect()
    }

    /// Whether an address belongs to another server. Prints a note if so.
    fn strays(&self, leads: &[Lead], from: &ServerUrl) -> bool {
        let stray = leads.iter().find(|(_, server)| server.as_ref() != Some(from));
        if let Some((what, _)) = stray {
            self.warn_about(what, &format!("another server than {from}"));
        }
        stray.is_some()
    }

    fn warn_about(&self, what: &str, whither: &str) {
        // A client sends the same password to the previous backend and to the new one.
        let way_on = if what == BEFORE {
            "\n  either move the state to a file first (`backend \"local\" {}`) with the password of the \
             previous server in TF_HTTP_PASSWORD, and then to the new server; or discard the previous \
             backend with -reconfigure"
        } else {
            ""
        };
        self.out.note(format_args!(
            "note: {what} leads to {whither}, so the token is not passed to the client{way_on}"
        ));
    }
}

/// The description of the backend that a client was initialized with.
const BEFORE: &str = "the backend that this folder was initialized with";

/// The folder of the configuration.
fn folder(arguments: &[OsString]) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("the current folder no longer exists")?;
    // Only options before the client's command are global.
    let globals =
        arguments.iter().filter_map(|argument| argument.to_str()).take_while(|it| it.starts_with('-'));
    let other = globals.filter_map(|global| global.trim_start_matches('-').strip_prefix("chdir=")).last();
    Ok(other.map_or_else(|| here.clone(), |other| here.join(other)))
}

/// The path of the named client, or of the first client in PATH.
fn program(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named.filter(|named| named.components().count() > 1) {
        return Ok(named.to_owned());
    }
    let names: Vec<&OsStr> = match named {
        Some(named) => vec![named.as_os_str()],
        None => vec![OsStr::new("tofu"), OsStr::new("terraform")],
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = names
        .iter()
        .find_map(|name| std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program));
    found.with_context(|| {
        let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
        format!(
            "{} is not in PATH: install it, or name the program with --client or STATEWRIGHT_TF",
            names.join(" or ")
        )
    })
}

/// At a terminal the child shares our process group and receives Ctrl-C directly. Otherwise it gets a group
/// of its own, so that it receives a signal once, from us: a second signal makes clients stop immediately.
fn start(mut command: Command, program: &Path) -> anyhow::Result<Child> {
    if !is_at_terminal() {
        command.process_group(0);
    }
    command.spawn().with_context(|| format!("cannot run {}", program.display()))
}

fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// The signals that would end this process. While a client runs they are passed on to it.
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            quit: listen(SignalKind::quit())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for a client to exit, and passes signals on to it.
    async fn wait_for(&mut self, mut child: Child) -> anyhow::Result<ExitStatus> {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        // The terminal sends these to both processes.
        let is_logged = is_at_terminal();
        loop {
            let passed_on = tokio::select! {
                status = child.wait() => return status.context("cannot wait for the client"),
                _ = self.interrupt.recv() => (!is_logged).then_some(Signal::INT),
                _ = self.quit.recv() => (!is_logged).then_some(Signal::QUIT),
                _ = self.terminate.recv() => Some(Signal::TERM),
                _ = self.hang_up.recv() => Some(Signal::HUP),
            };
            if let (Some(pid), Some(signal)) = (pid, passed_on) {
                // The client may have just exited: the wait above reports that.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Ends this process with the exit code of a child process, which has reported its own error.
#[derive(Debug, thiserror::Error)]
#[error("the child process exited with code {0}")]
pub(crate) struct EndsWith(pub(crate) u8);

/// Exits with the client's exit code, or like a shell with 128 plus the signal.
fn ends_as(status: ExitStatus) -> anyhow::Result<()> {
    if status.success() {
        return Ok(());
    }
    let by_signal = status.signal().and_then(|signal| signal.checked_add(128));
    let code = status.code().or(by_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(EndsWith(code).into())
}

/// A client's command that failed.
struct Ran<'a> {
    word: &'a str,
    /// The role that it needs on the state.
    needs: Role,
}

/// Adds what clients do not show: who holds the lock, which right the caller lacks, and why the server refused.
async fn explain(client: &Client, state: Option<&StateRef>, ran: &Ran<'_>, out: Output) {
    let needs = ran.needs;
    let Some(named) = state else { return };
    let state = match client.state::<State>(Some(named)).await {
        Ok(state) => state.read,
        Err(error) => {
            // The client has reported its own error; an unreachable server adds nothing, nor does a state
            // name that does not exist yet.
            let error = of_command(error, needs);
            let failure = error.downcast_ref::<Failure>().filter(|failure| {
                failure.is_of_caller() || (matches!(named, StateRef::Id(_)) && failure.is_not_there())
            });
            if let Some(failure) = failure {
                let next = failure.next_step().map(|next| format!("\n  {next}")).unwrap_or_default();
                out.note(format_args!("note: {} says: {failure}{next}", client.server()));
            }
            return;
        }
    };
    let name = state.name();
    // The client reports a missing right as `invalid auth`. Without an answer of the server, there is no note.
    if let Ok(Some(lack)) = lack(client, &state, ran).await {
        out.note(lack);
    }
    if let Some(protection) = state.protection.as_ref().filter(|_| needs == Role::Apply) {
        out.note(format_args!(
            "note: {name} is protected {}\n  a run that destroys all resources cannot save that. An admin lifts \
             it: statewright unprotect {name} --kind tfstate",
            protection.describe()
        ));
    }
    if let Some(lock) = &state.lock {
        out.note(format_args!(
            "note: {name} is locked by {}\n  if that run is no longer active: statewright state unlock {name} --id {} --reason WHY",
            lock.describe(),
            output::word(&lock.id)
        ));
    }
}

/// The note about a right that the caller lacks on the state.
///
/// # Errors
/// [`Failure`].
async fn lack(client: &Client, state: &State, ran: &Ran<'_>) -> Result<Option<String>, Failure> {
    let org = state.organization.as_str();
    let own: OwnRights = client.json(Call::get(["api", "orgs", org, "rights"])).await?;
    let is_in = |scope: &str| Scope::parse(scope).is_ok_and(|scope| state.is_in(&scope));
    let Some(note) = lacks(&own, &state.name(), ran, is_in) else { return Ok(None) };
    // Who may not see the members asks whom they know.
    let path = ["api", "orgs", org, "roles", Role::Admin.as_str(), "users"];
    let admins = client.json::<UsersWithRole>(Call::get(path)).await.map(|admins| admins.users);
    let admins: Vec<String> = admins.into_iter().flatten().map(|admin| admin.github_login).collect();
    Ok(Some(match admins.is_empty() {
        true => format!("{note}\n  ask an admin of {org}"),
        false => format!("{note}\n  ask an admin: {}", admins.join(", ")),
    }))
}

/// The rights on a state that a command needs and the caller has not. `is_in` tells whether a scope reaches the
/// state.
fn lacks(own: &OwnRights, name: &str, ran: &Ran<'_>, is_in: impl Fn(&str) -> bool) -> Option<String> {
    let Ran { word, needs } = ran;
    if let Some(within) = &own.within {
        // Within its part, the server does not say what the token may do.
        let is_outside = !is_in(within);
        return is_outside.then(|| {
            format!("note: `{word}` needs the role {needs} on {name}; your token works only on {within}")
        });
    }
    let granted = own.grants.iter().filter(|grant| is_in(&grant.on)).flat_map(|grant| &grant.rights);
    let held: BTreeSet<&str> = own.rights.iter().chain(granted).map(String::as_str).collect();
    if held.contains(needs.as_str()) {
        return None;
    }
    let shown = Right::ALL.map(Right::as_str).into_iter().filter(|right| *right != Right::See.as_str());
    let shown: Vec<&str> = shown.filter(|right| held.contains(right)).collect();
    let shown = if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") };
    Some(format!("note: `{word}` needs the role {needs} on {name}; you have: {shown}"))
}

/// Identifies an errored.tfstate, to detect whether this run wrote it.
fn stamp(folder: &Path) -> Option<(std::time::SystemTime, u64)> {
    let found = fs::metadata(folder.join(ERRORED)).ok()?;
    Some((found.modified().ok()?, found.len()))
}

fn tell_of_errored(out: Output) {
    out.note(format_args!(
        "note: the client left a state that it could not save in {ERRORED}\n  statewright state rejected   \
         shows whether the server kept it, and why it was rejected\n  statewright state import {ERRORED}   \
         sends it, unless the server has a newer one"
    ));
}

/// Whether the client's command changes resources.
fn is_changing(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().filter_map(|argument| argument.to_str());
    words.find(|word| !word.starts_with('-')).is_some_and(|word| matches!(word, "apply" | "destroy"))
}

/// Mock values are for plans: an apply would create resources with them.
fn warn_of_mocks(arguments: &[OsString], folder: &Path, out: Output) {
    if !is_changing(arguments) {
        return;
    }
    let Ok(Found::Ours(text)) = managed::read(&folder.join(DEPENDENCIES_FILE)) else { return };
    let mocked = mocked_inputs(&text);
    if !mocked.is_empty() {
        out.note(format_args!(
            "warning: {DEPENDENCIES_FILE} has mock values for {}; to update it, run `statewright dep sync`",
            mocked.join(", ")
        ));
    }
}

/// A backend that exists in a folder only while clients run there.
struct TemporaryBackend {
    path: PathBuf,
    /// Each run holds a shared lock.
    file: File,
}

impl TemporaryBackend {
    fn create(path: PathBuf, text: &str) -> anyhow::Result<Self> {
        let cannot = || format!("cannot use {}", path.display());
        // Another run may delete or create the file at any time.
        for _ in 0..10 {
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    managed::write(&path, text, false)?;
                    continue;
                }
                Err(error) => return Err(error).with_context(cannot),
            };
            let is_same = matches!(managed::read(&path)?, Found::Ours(found) if found == text);
            if !is_same {
                // An unlocked file was left behind by a run that was killed.
                if file.try_lock().is_err() {
                    bail!(
                        "another `statewright tf` is running in this folder, on another state: wait for it"
                    );
                }
                managed::write(&path, text, false)?;
                continue;
            }
            file.lock_shared().with_context(cannot)?;
            let is_still_there = fs::metadata(&path).is_ok_and(|there| {
                file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
            });
            if is_still_there {
                return Ok(Self { path, file });
            }
        }
        bail!("{} was repeatedly deleted by other runs in this folder: run this again", path.display())
    }
}

impl Drop for TemporaryBackend {
    /// The last run deletes the file. If that fails, the next run does.
    fn drop(&mut self) {
        let is_last = self.file.unlock().is_ok() && self.file.try_lock().is_ok();
        if is_last {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use statewright_shared::wire::access::OwnGrant;

    use super::*;

    #[test]
    fn a_shell_reads_a_text_as_one_word() {
        assert_eq!(in_shell("swt_1"), "'swt_1'");
        assert_eq!(in_shell("$(a) `b` \"c\" 'd'"), r#"'$(a) `b` "c" '\''d'\'''"#);
    }

    #[test]
    fn only_an_option_before_the_command_changes_the_folder() {
        let of =
            |arguments: &[&str]| folder(&arguments.iter().map(OsString::from).collect::<Vec<_>>()).unwrap();
        let here = std::env::current_dir().unwrap();
        assert_eq!(of(&["-chdir=sub", "plan"]), here.join("sub"));
        assert_eq!(of(&["-chdir=/other", "plan"]), Path::new("/other"));
        assert_eq!(of(&["plan", "-chdir=sub"]), here);
    }

    #[test]
    fn a_missing_right_is_named_with_those_that_are_held() {
        let grant = |on: &str, role: Role, rights: &[&str]| OwnGrant {
            on: on.to_owned(),
            role,
            rights: rights.iter().copied().map(str::to_owned).collect(),
        };
        let own = |rights: &[&str], grants: Vec<OwnGrant>, within: Option<&str>| OwnRights {
            login: "vera".to_owned(),
            role: Role::View,
            admin: false,
            rights: rights.iter().copied().map(str::to_owned).collect(),
            somewhere: Vec::new(),
            teams: Vec::new(),
            grants,
            within: within.map(str::to_owned),
            server_admin: false,
        };
        let plan = Ran { word: "plan", needs: Role::Plan };
        let note = |own: &OwnRights| lacks(own, "acme/net/default", &plan, |scope| scope == "net/*");
        let viewer = own(&["see", "view"], Vec::new(), None);
        let expected = "note: `plan` needs the role plan on acme/net/default; you have: view";
        assert_eq!(note(&viewer).as_deref(), Some(expected));
        let elsewhere = own(&["see", "view"], vec![grant("web/*", Role::Plan, &["see", "plan"])], None);
        assert_eq!(note(&elsewhere).as_deref(), Some(expected));
        let here = own(&["see", "view"], vec![grant("net/*", Role::Plan, &["see", "plan"])], None);
        assert_eq!(note(&here), None);
        let both = own(&["see", "view", "outputs"], Vec::new(), None);
        assert!(note(&both).unwrap().ends_with("; you have: view, outputs"));
        assert!(note(&own(&[], Vec::new(), None)).unwrap().ends_with("; you have: nothing"));
        assert_eq!(note(&own(&[], Vec::new(), Some("net/*"))), None);
        let outside = note(&own(&[], Vec::new(), Some("web/*"))).unwrap();
        assert_eq!(
            outside,
            "note: `plan` needs the role plan on acme/net/default; your token works only on web/*"
        );
    }

    #[test]
    fn the_last_run_deletes_the_temporary_backend() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TEMPORARY_FILE);
        let text = format!("{}: x\n", managed::HEADER);
        let first = TemporaryBackend::create(path.clone(), &text).unwrap();
        let second = TemporaryBackend::create(path.clone(), &text).unwrap();
        let other = TemporaryBackend::create(path.clone(), &format!("{text}# other\n"));
        assert!(other.is_err_and(|error| error.to_string().contains("another")));
        drop(first);
        assert_eq!(managed::read(&path).unwrap(), Found::Ours(text.clone()));
        drop(second);
        assert_eq!(managed::read(&path).unwrap(), Found::Nothing);
        // Left behind by a run that was killed.
        managed::write(&path, &format!("{text}# other\n"), false).unwrap();
        drop(TemporaryBackend::create(path.clone(), &text).unwrap());
        assert_eq!(managed::read(&path).unwrap(), Found::Nothing);
        fs::write(&path, "theirs").unwrap();
        assert!(TemporaryBackend::create(path, &text).is_err());
    }
}
