//! `statewright tf`: the client itself, on a state of a server.
//!
//! The token reaches it by its environment and is written nowhere, since clients keep what they find in a backend's block in
//! clear. A folder that is linked to a state and has no backend gets one for as long as the client runs.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, IsTerminal as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};
use statewright_shared::domain::server_url::ServerUrl;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::EndsWith;
use super::dep::{DEPENDENCIES_FILE, mocked_inputs};
use super::state::wire::State;
use crate::client::{At, Client, Failure, LINK_FILE, Linked, StateRef, WhichState, place, server_of};
use crate::given::{self, Given, VARIABLES};
use crate::hcl::{self, Address, Backend, PASSING_FILE};
use crate::managed::{self, Found};
use crate::output::{self, Output};
use crate::recorded::Recorded;

#[derive(Debug, clap::Args)]
pub(crate) struct Tf {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    which: WhichState,
    /// The client, by its name or path [env: STATEWRIGHT_TF] [default: tofu or else terraform, as found in PATH].
    #[arg(long, value_name = "PROGRAM")]
    client: Option<PathBuf>,
    /// What the client is given, such as `-- plan -out=plan.bin`. `env` alone runs none, and prints the lines that a shell needs to
    /// run it: `eval "$(statewright tf env)"`.
    #[arg(value_name = "ARGS", trailing_var_arg = true, required = true)]
    arguments: Vec<OsString>,
}

/// Commands of the clients that look at no state and at no backend.
const WITHOUT_STATE: &[&str] = &["fmt", "version", "login", "logout", "metadata"];

/// Where clients leave a state that they could not save.
const ERRORED: &str = "errored.tfstate";

/// The marks of the environment by which clients find credentials for an HTTP backend.
const USERNAME: &str = "TF_HTTP_USERNAME";
const PASSWORD: &str = "TF_HTTP_PASSWORD";

pub(crate) async fn run(tf: Tf, out: Output) -> anyhow::Result<()> {
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
    drop(prepared.passing);
    // A plan may end with 2 to say that there is something to do.
    if !status.success() && status.code() != Some(2) {
        explain(&prepared.client, prepared.state.as_ref(), out).await;
        let now = stamp(&folder);
        if now.is_some() && now != errored {
            tell_of_errored(out);
        }
    }
    ends_as(status)
}

/// Prints what a shell exports so that clients run in it by themselves: the credentials, and the state's addresses where one is named
/// or the folder is linked to one.
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

/// A text as one word of a shell, whatever is in it.
fn in_shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What a run needs beside its arguments.
struct Prepared {
    client: Client,
    state: Option<StateRef>,
    /// Whether all that the client asks is of the server that the token is for.
    takes_token: bool,
    passing: Option<Passing>,
}

/// Finds out which state the run is about, and gives the folder a backend if it has none. `None` if the run is about no state,
/// or about one that is kept elsewhere.
async fn prepare(tf: &Tf, folder: &Path, out: Output) -> anyhow::Result<Option<Prepared>> {
    let mut words = tf.arguments.iter().filter_map(|argument| argument.to_str());
    let word = words.find(|word| !word.starts_with('-'));
    if word.is_none_or(|word| WITHOUT_STATE.contains(&word)) {
        return Ok(None);
    }
    let is_init = word == Some("init");
    let is_forgotten = is_init
        && words.any(|option| matches!(option.trim_start_matches('-'), "reconfigure" | "reconfigure=true"));
    // The one before is asked too, with the same credentials, unless it keeps its own or is to be forgotten.
    let before = Recorded::of(folder).filter(|before| !before.has_password && !is_forgotten);
    let passing = folder.join(PASSING_FILE);
    let is_ours = matches!(managed::look(&passing)?, Found::Ours(_));
    let mut backends = hcl::backends(folder)?;
    backends.retain(|backend| !(is_ours && backend.file == passing));
    let is_named = tf.which.state.is_some();
    let given = if is_init { given::by_options(&tf.arguments, folder) } else { Vec::new() };
    let run = Run { at: &tf.at, folder, before, given, out };
    match backends.first() {
        Some(_) if backends.iter().any(|backend| backend.kind == "http") => {
            if is_named {
                let file = backends[0].file.file_name().unwrap_or_default().display();
                bail!("{file} says which state this configuration has, so -s cannot say it too");
            }
            run.as_configured(&backends)
        }
        Some(backend) => match run.before.as_ref().filter(|_| is_init) {
            Some(before) => run.away_from(before),
            None => {
                let file = backend.file.file_name().unwrap_or_default().display();
                let kind = &backend.kind;
                out.note(format_args!(
                    "note: {file} keeps the state elsewhere ({kind}), so no token is passed on"
                ));
                Ok(None)
            }
        },
        None => match run.before.as_ref().filter(|_| is_init && !is_named) {
            // Its backend was taken out, and so was its link: the state goes into a file.
            Some(before) if Linked::of(folder)?.is_none() => run.away_from(before),
            Some(_) | None => run.without_backend(tf.which.state.as_ref(), passing).await.map(Some),
        },
    }
}

/// A run of a client, as far as it is known what it asks.
struct Run<'a> {
    at: &'a At,
    folder: &'a Path,
    /// The backend before, if that is asked with the credentials of the environment.
    before: Option<Recorded>,
    /// What it is given beside the files of the configuration.
    given: Vec<Given>,
    out: Output,
}

/// Something that a client asks, in words, and the server that it leads to, if that is one of this kind.
type Lead = (String, Option<ServerUrl>);

/// Where a setting of a backend leads.
fn lead(what: String, it: &Address) -> Lead {
    let is_state = |text: &&str| it.setting != "address" || place(text).is_some();
    (what, it.text.as_deref().filter(is_state).and_then(server_of))
}

impl Run<'_> {
    /// The configuration has a backend that somebody wrote: it tells its server as well as a link does. What is not written out
    /// in it comes from an option or from the environment.
    ///
    /// One file may override another, and which one counts differs between the clients. So each address in each file, and each that
    /// the client is given beside them, has to be one of the server that the token is for.
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
            // Of two states it is not known which one the run is about.
            Some(first) => first.filter(|_| set.all(|other| other == first)),
            None => {
                let before = self.before.as_ref().and_then(Recorded::address);
                before.or(of_variable.and_then(|given| given.address.text.as_deref()))
            }
        };
        let place = address.and_then(place);
        all.extend(of_environment.iter().map(|given| (given.what.clone(), &given.address)));
        self.passed_on(all.into_iter().map(|(what, it)| lead(what, it)).collect(), place)
    }

    /// The state goes from a server to something else.
    fn away_from(&self, before: &Recorded) -> anyhow::Result<Option<Prepared>> {
        self.passed_on(Vec::new(), before.address().and_then(place))
    }

    /// The configuration has no backend, and gets one for as long as the client runs.
    async fn without_backend(&self, named: Option<&StateRef>, passing: PathBuf) -> anyhow::Result<Prepared> {
        if named.is_none() {
            self.refuse_from_above()?;
        }
        let client = Client::open_in(self.at, self.folder)?;
        let state = client.state::<State>(named).await?.read;
        let (id, address) = state.identity()?;
        let text = hcl::passing_backend(client.server(), id, &address);
        let passing = Some(Passing::lay(passing, &text)?);
        let mut leads: Vec<Lead> =
            self.given.iter().map(|given| lead(given.what.clone(), &given.address)).collect();
        leads.extend(self.leads_of_before());
        let takes_token = !self.strays(&leads, client.server());
        Ok(Prepared { client, state: Some(StateRef::Id(id)), takes_token, passing })
    }

    /// A client sees the configuration of one folder, and would make that of this one out of the state of a folder above.
    fn refuse_from_above(&self) -> anyhow::Result<()> {
        match Linked::find(self.folder)? {
            Some(linked) if linked.folder != self.folder => bail!(
                "{} is not linked to a state, and {} is that of the configuration in its own folder: name the state with -s \
                 PROJECT/STATE, or link this folder with `statewright state init STATE`",
                self.folder.display(),
                linked.folder.join(LINK_FILE).display()
            ),
            Some(_) | None => Ok(()),
        }
    }

    /// Passes the token on if all that is asked is of the server that it is for. `None` if some of it leads to no server of
    /// this kind.
    fn passed_on(
        &self,
        mut leads: Vec<Lead>,
        place: Option<(ServerUrl, StateRef)>,
    ) -> anyhow::Result<Option<Prepared>> {
        leads.extend(self.leads_of_before());
        if let Some((what, _)) = leads.iter().find(|(_, server)| server.is_none()) {
            self.tell(what, "no server of this kind");
            return Ok(None);
        }
        let of_folder = leads.iter().find_map(|(_, server)| server.as_ref());
        let client = Client::open_at(self.at, of_folder, self.folder)?;
        let takes_token = !self.strays(&leads, client.server());
        let state = place.filter(|_| takes_token).map(|(_, state)| state);
        Ok(Some(Prepared { client, state, takes_token, passing: None }))
    }

    fn leads_of_before(&self) -> Vec<Lead> {
        let addresses = self.before.iter().flat_map(|before| &before.addresses);
        addresses.map(|address| (BEFORE.to_owned(), server_of(address))).collect()
    }

    /// Whether something leads to another server than this one, which is told.
    fn strays(&self, leads: &[Lead], from: &ServerUrl) -> bool {
        let stray = leads.iter().find(|(_, server)| server.as_ref() != Some(from));
        if let Some((what, _)) = stray {
            self.tell(what, &format!("another server than {from}"));
        }
        stray.is_some()
    }

    fn tell(&self, what: &str, whither: &str) {
        // A client has one password for the backend before and the one that it moves to.
        let way_on = if what == BEFORE {
            "\n  move the state into a file first (`backend \"local\" {}`) with that server's own password in \
             TF_HTTP_PASSWORD, and from there on; or forget that backend with -reconfigure"
        } else {
            ""
        };
        self.out.note(format_args!("note: {what} leads to {whither}, so no token is passed on{way_on}"));
    }
}

/// What a client was initialised with, in words.
const BEFORE: &str = "the backend that this folder was initialised with";

/// The folder of the configuration.
fn folder(arguments: &[OsString]) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("the folder that this runs in is gone")?;
    // Only what stands before the client's command is for it as a whole.
    let globals =
        arguments.iter().filter_map(|argument| argument.to_str()).take_while(|it| it.starts_with('-'));
    let other = globals.filter_map(|global| global.trim_start_matches('-').strip_prefix("chdir=")).last();
    Ok(other.map_or_else(|| here.clone(), |other| here.join(other)))
}

/// The client that was named, or the first that there is.
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

/// A child beside a person at a terminal shares that with us, so Ctrl-C reaches it without us. Elsewhere it has a group of its
/// own, so that a signal for our group reaches it once, by us: a second one would make it stop where it is.
fn start(mut command: Command, program: &Path) -> anyhow::Result<Child> {
    if !is_at_terminal() {
        command.process_group(0);
    }
    command.spawn().with_context(|| format!("cannot run {}", program.display()))
}

fn is_at_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// The signals that would end us. While a client runs they are for it.
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

    /// Waits for the end of a client, and passes on what comes meanwhile.
    async fn wait_for(&mut self, mut child: Child) -> anyhow::Result<ExitStatus> {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        // What a terminal sends comes to both.
        let is_told = is_at_terminal();
        loop {
            let passed_on = tokio::select! {
                status = child.wait() => return status.context("cannot wait for the client"),
                _ = self.interrupt.recv() => (!is_told).then_some(Signal::INT),
                _ = self.quit.recv() => (!is_told).then_some(Signal::QUIT),
                _ = self.terminate.recv() => Some(Signal::TERM),
                _ = self.hang_up.recv() => Some(Signal::HUP),
            };
            if let (Some(pid), Some(signal)) = (pid, passed_on) {
                // It may have ended just now, which is told above.
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Ends as the client did: by its code, or as a shell tells a signal.
fn ends_as(status: ExitStatus) -> anyhow::Result<()> {
    if status.success() {
        return Ok(());
    }
    let by_signal = status.signal().and_then(|signal| signal.checked_add(128));
    let code = status.code().or(by_signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(EndsWith(code).into())
}

/// Says what a client cannot: who holds the lock, and why a server refuses.
async fn explain(client: &Client, state: Option<&StateRef>, out: Output) {
    let Some(named) = state else { return };
    let state = match client.state::<State>(Some(named)).await {
        Ok(state) => state.read,
        Err(error) => {
            // The run has said what went wrong; a server that cannot be reached adds nothing. A name that leads nowhere yet is none
            // of a client's failures.
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
    if let Some(lock) = &state.lock {
        out.note(format_args!(
            "note: {name} is locked by {}\n  if that run is gone for good: statewright state unlock {name} --id {} --reason WHY",
            lock.describe(),
            output::word(&lock.id)
        ));
    }
}

/// What tells whether a run left a state that it could not save: one from before is none of its.
fn stamp(folder: &Path) -> Option<(std::time::SystemTime, u64)> {
    let found = fs::metadata(folder.join(ERRORED)).ok()?;
    Some((found.modified().ok()?, found.len()))
}

fn tell_of_errored(out: Output) {
    out.note(format_args!(
        "note: {ERRORED} has what could not be saved\n  statewright state rejected   says whether the server kept it, and why it \
         was refused\n  statewright state import {ERRORED}   sends it, unless something newer is there"
    ));
}

/// Commands of clients that change infrastructure.
const CHANGING: &[&str] = &["apply", "destroy"];

/// A mock value is for plans and checks: an apply makes real things of it.
fn warn_of_mocks(arguments: &[OsString], folder: &Path, out: Output) {
    let mut words = arguments.iter().filter_map(|argument| argument.to_str());
    if words.find(|word| !word.starts_with('-')).is_none_or(|word| !CHANGING.contains(&word)) {
        return;
    }
    let Ok(Found::Ours(text)) = managed::look(&folder.join(DEPENDENCIES_FILE)) else { return };
    let mocked = mocked_inputs(&text);
    if !mocked.is_empty() {
        out.note(format_args!(
            "warning: {DEPENDENCIES_FILE} has mock values for {}; `statewright dep sync` writes it anew",
            mocked.join(", ")
        ));
    }
}

/// A backend that lies in a folder for as long as clients run there.
struct Passing {
    path: PathBuf,
    /// Locked, as by each run that needs it.
    file: File,
}

impl Passing {
    fn lay(path: PathBuf, text: &str) -> anyhow::Result<Self> {
        let cannot = || format!("cannot use {}", path.display());
        // Another run may take it away, or lay one, at any time.
        for _ in 0..10 {
            let file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    managed::write(&path, text, false)?;
                    continue;
                }
                Err(error) => return Err(error).with_context(cannot),
            };
            let is_same = matches!(managed::look(&path)?, Found::Ours(found) if found == text);
            if !is_same {
                // One that nobody uses was left by a run that was killed.
                if file.try_lock().is_err() {
                    bail!("another `statewright tf` runs in this folder, on another state");
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
        bail!("{} comes and goes: other runs in this folder are in the way", path.display())
    }
}

impl Drop for Passing {
    /// The last run takes it away. Where that cannot be done, the next run does.
    fn drop(&mut self) {
        let is_last = self.file.unlock().is_ok() && self.file.try_lock().is_ok();
        if is_last {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
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
    fn a_passing_backend_goes_with_the_last_who_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(PASSING_FILE);
        let text = format!("{}: x\n", managed::HEADER);
        let first = Passing::lay(path.clone(), &text).unwrap();
        let second = Passing::lay(path.clone(), &text).unwrap();
        let other = Passing::lay(path.clone(), &format!("{text}# other\n"));
        assert!(other.is_err_and(|error| error.to_string().contains("another")));
        drop(first);
        assert_eq!(managed::look(&path).unwrap(), Found::Ours(text.clone()));
        drop(second);
        assert_eq!(managed::look(&path).unwrap(), Found::Nothing);
        // Left by a run that was killed.
        managed::write(&path, &format!("{text}# other\n"), false).unwrap();
        drop(Passing::lay(path.clone(), &text).unwrap());
        assert_eq!(managed::look(&path).unwrap(), Found::Nothing);
        fs::write(&path, "theirs").unwrap();
        assert!(Passing::lay(path, &text).is_err());
    }
}
