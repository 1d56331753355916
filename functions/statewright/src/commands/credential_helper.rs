//! `statewright credential-helper`: gives the `pulumi` CLI the token of `statewright login`, so that it needs
//! no login of its own. The CLI runs it under the name [`NAME`] from its own folder or from the PATH, with
//! one request on stdin.
//!
//! Source: pulumi v3.274.1, `pkg/auth/credentialhelper/helper.go`.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use directories::BaseDirs;
use serde::{Deserialize, Serialize};
use statewright_shared::domain::server_url::ServerUrl;

use crate::client::{Failure, Login, Logins, ShortLived};
use crate::output::{Output, Rfc3339};

/// The name under which the CLI finds a helper.
pub(crate) const NAME: &str = "pulumi-credential-helper";

/// The version of the protocol.
const VERSION: u32 = 1;

/// The length of a request, at most.
const REQUEST_BYTES_MAX: u64 = 64 << 10;

/// The variables that the CLI reads itself.
const CONSOLE: &str = "PULUMI_CONSOLE_DOMAIN";
const TOKEN: &str = "PULUMI_ACCESS_TOKEN";

/// Hosts of this form have their pages at `app.`, as the CLI knows.
const API: &str = "api.";

#[derive(Debug, clap::Args)]
pub(crate) struct CredentialHelper {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Link this program into a folder of the PATH as the credential helper of `pulumi`.
    Install(Install),
    /// Remove that link.
    Uninstall(Uninstall),
    /// Answer one request of `pulumi`, on stdin.
    Get,
}

#[derive(Debug, clap::Args)]
struct Install {
    /// The folder for the link [default: that of this program, else ~/.local/bin, if it is in the PATH].
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Let `pulumi` use the server of the last login if it has selected no backend.
    #[arg(long)]
    default: bool,
}

#[derive(Debug, clap::Args)]
struct Uninstall {
    /// The folder with the link [default: as for install].
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Whether the CLI runs this program as its helper.
pub(crate) fn is_called(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(NAME))
}

pub(crate) async fn run(helper: CredentialHelper, out: Output) -> anyhow::Result<()> {
    match helper.command {
        Command::Install(options) => install(options, out),
        Command::Uninstall(options) => uninstall(options, out),
        Command::Get => get(out).await,
    }
}

/// What the CLI asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    version: u32,
    reason: Reason,
    /// Absent if the user has selected no backend.
    #[serde(default)]
    selected_backend_url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Reason {
    Initial,
    Expired,
    Rejected,
}

/// The answer, which has no `null` and no other member. Without any, the CLI continues as without a helper.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backend_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<&'static str, String>,
}

async fn get(out: Output) -> anyhow::Result<()> {
    let mut text = String::new();
    io::stdin()
        .lock()
        .take(REQUEST_BYTES_MAX)
        .read_to_string(&mut text)
        .context("cannot read the request")?;
    let request: Request = serde_json::from_str(&text)
        .context("the request of `pulumi` cannot be read: this command is for `pulumi` itself")?;
    ensure!(
        request.version == VERSION,
        "this `pulumi` speaks version {} of the protocol: upgrade statewright",
        request.version
    );
    let has_token = env::var_os(TOKEN).is_some_and(|token| !token.is_empty());
    let answer = answer(&Logins::read()?, &request, has_token).await?;
    out.text(&serde_json::to_string(&answer).context("cannot serialize the answer")?)
}

/// The login that a request is about: that of exactly the selected backend. If none is selected, the last
/// login, if that is the default.
fn login_for<'a>(logins: &'a Logins, request: &Request) -> Option<(ServerUrl, &'a Login)> {
    match request.selected_backend_url.as_str() {
        "" => logins.default_of_pulumi(),
        selected => logins.find(&ServerUrl::parse(selected).ok()?),
    }
}

async fn answer(logins: &Logins, request: &Request, has_token: bool) -> anyhow::Result<Answer> {
    let is_initial = request.reason == Reason::Initial;
    let Some((server, login)) = login_for(logins, request) else {
        ensure!(is_initial, "you have logged out: log in again with `statewright login`");
        return Ok(Answer::default());
    };
    let mut answer = Answer { version: Some(VERSION), ..Answer::default() };
    // The answer to a refresh has credentials alone.
    if is_initial {
        answer.env = console(&server);
        if request.selected_backend_url.is_empty() {
            answer.backend_url = Some(server.to_string());
        }
        // A token of the environment counts more than a stored login, as for our own commands.
        if has_token {
            return Ok(answer);
        }
    }
    let given = ShortLived::of(&server, login, request.reason == Reason::Rejected).await;
    let given = given.map_err(|error| match error.downcast_ref::<Failure>().and_then(Failure::status) {
        Some(status) if status.as_u16() == 401 => {
            error.context(format!("the login has ended: log in again with `statewright login {server}`"))
        }
        _ => error,
    })?;
    answer.expires_at = given.expires.map(|expires| Rfc3339(expires).to_string());
    answer.access_token = Some(given.token);
    Ok(answer)
}

/// Where the pages of the server are, unless the CLI knows that. They are at the root of a host.
fn console(server: &ServerUrl) -> BTreeMap<&'static str, String> {
    let host = server.host();
    if host.starts_with(API) || !server.is_at_root() {
        return BTreeMap::new();
    }
    BTreeMap::from([(CONSOLE, host)])
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Installed {
    helper: PathBuf,
    /// Whether `pulumi` uses the server of the last login if it has selected no backend.
    is_default: bool,
}

fn install(options: Install, out: Output) -> anyhow::Result<()> {
    let program = program()?;
    let folder = match options.folder {
        Some(folder) => std::path::absolute(folder).context("the current folder no longer exists")?,
        None => folders(&program).into_iter().find(|folder| is_in_path(folder)).context(
            "neither the folder of this program nor ~/.local/bin is in the PATH: name one that is, with --folder",
        )?,
    };
    let helper = folder.join(NAME);
    match found(&helper, &program)? {
        Found::Nothing => {}
        Found::Ours => {
            fs::remove_file(&helper).with_context(|| format!("cannot replace {}", helper.display()))?
        }
        Found::Theirs => bail!(
            "{} exists and is not a link to statewright: move it away, or name another folder with --folder",
            helper.display()
        ),
    }
    symlink(&program, &helper).with_context(|| format!("cannot create {}", helper.display()))?;
    let mut logins = Logins::read()?;
    logins.set_default_of_pulumi(options.default);
    logins.write()?;
    if let Some(other) = first_in_path().filter(|first| *first != helper) {
        out.note(format_args!("note: `pulumi` finds another helper first: {}", other.display()));
    } else if !is_in_path(&folder) {
        out.note(format_args!(
            "note: {} is not in the PATH: add it, or set PULUMI_CREDENTIAL_HELPER={}",
            folder.display(),
            helper.display()
        ));
    }
    out.answer(&Installed { helper, is_default: options.default }, |installed| {
        let when = match installed.is_default {
            true => "also when it has selected no backend",
            false => "when it has selected such a server, as with PULUMI_BACKEND_URL",
        };
        format!(
            "installed {}: `pulumi` uses the tokens of `statewright login` at their servers, {when}. With it, `pulumi \
             login --oidc-token` needs PULUMI_CREDENTIAL_HELPER=none",
            installed.helper.display()
        )
    })
}

#[derive(Serialize)]
struct Uninstalled {
    removed: Vec<PathBuf>,
}

fn uninstall(options: Uninstall, out: Output) -> anyhow::Result<()> {
    let program = program()?;
    let folders = match options.folder {
        Some(folder) => vec![folder],
        None => folders(&program),
    };
    let mut removed = Vec::new();
    for helper in folders.into_iter().map(|folder| folder.join(NAME)) {
        if found(&helper, &program)? == Found::Ours {
            fs::remove_file(&helper).with_context(|| format!("cannot remove {}", helper.display()))?;
            removed.push(helper);
        }
    }
    let mut logins = Logins::read()?;
    if logins.default_of_pulumi().is_some() {
        logins.set_default_of_pulumi(false);
        logins.write()?;
    }
    out.answer(&Uninstalled { removed }, |it| match &it.removed[..] {
        [] => "the helper was not installed".to_owned(),
        removed => {
            let removed: Vec<_> = removed.iter().map(|helper| helper.display().to_string()).collect();
            format!("removed {}", removed.join(" and "))
        }
    })
}

/// This program, as the PATH has it: that name stays when the program is upgraded.
fn program() -> anyhow::Result<PathBuf> {
    let program = env::current_exe().context("cannot find this program")?;
    let this = fs::canonicalize(&program).context("cannot find this program")?;
    let name = this.file_name().unwrap_or_default();
    let mut named = in_path().into_iter().map(|folder| folder.join(name));
    let found = named.find(|named| fs::canonicalize(named).is_ok_and(|found| found == this));
    Ok(found.unwrap_or(program))
}

/// The folders that programs of this user are in.
fn folders(program: &Path) -> Vec<PathBuf> {
    let of_user = BaseDirs::new().map(|folders| folders.home_dir().join(".local/bin"));
    program.parent().map(Path::to_owned).into_iter().chain(of_user).collect()
}

fn in_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

fn is_in_path(folder: &Path) -> bool {
    let wanted = fs::canonicalize(folder).ok();
    wanted.is_some() && in_path().iter().any(|folder| fs::canonicalize(folder).ok() == wanted)
}

/// The helper that the CLI finds in the PATH.
fn first_in_path() -> Option<PathBuf> {
    in_path().into_iter().map(|folder| folder.join(NAME)).find(|helper| helper.exists())
}

/// What is at the place of the link.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A link to this program, or to another version of it.
    Ours,
    Theirs,
}

fn found(helper: &Path, program: &Path) -> anyhow::Result<Found> {
    match fs::read_link(helper) {
        Ok(target) if target.file_name() == program.file_name() => Ok(Found::Ours),
        Ok(_) => Ok(Found::Theirs),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
        // It is not a link.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(Found::Theirs),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", helper.display())),
    }
}

#[cfg(test)]
mod tests {
    use statewright_shared::ports::Timestamp;

    use super::*;

    fn url(text: &str) -> ServerUrl {
        ServerUrl::parse(text).unwrap()
    }

    fn request(reason: Reason, selected: &str) -> Request {
        Request { version: VERSION, reason, selected_backend_url: selected.to_owned() }
    }

    fn logins() -> Logins {
        let mut logins = Logins::default();
        logins.add(&url("https://b.example"), Login::with("swt_b"));
        logins.add(&url("https://a.example"), Login::given("swt_a", Timestamp(7)));
        logins
    }

    #[test]
    fn only_the_server_of_a_login_gets_its_token() {
        let mut logins = logins();
        let token = |logins: &Logins, selected: &str| {
            let found = login_for(logins, &request(Reason::Initial, selected));
            found.map(|(_, login)| login.token().to_owned())
        };
        for same in ["https://a.example", "https://a.example/", "https://A.Example:443"] {
            assert_eq!(token(&logins, same).as_deref(), Some("swt_a"), "{same}");
        }
        assert_eq!(token(&logins, "https://b.example").as_deref(), Some("swt_b"));
        for other in [
            "http://a.example",
            "https://a.example:8443",
            "https://a.example.evil.example",
            "https://a.example@evil.example",
            "https://api.pulumi.com",
            "file:///home/alice",
            "s3://a.example",
        ] {
            assert_eq!(token(&logins, other), None, "{other}");
        }
        assert_eq!(token(&logins, ""), None, "nothing is selected");
        logins.set_default_of_pulumi(true);
        assert_eq!(token(&logins, "").as_deref(), Some("swt_a"), "the last login");
    }

    #[tokio::test]
    async fn a_request_about_another_server_is_declined() {
        let declined = answer(&logins(), &request(Reason::Initial, "https://api.pulumi.com"), false).await;
        assert_eq!(serde_json::to_string(&declined.unwrap()).unwrap(), "{}");
        let over = answer(&Logins::default(), &request(Reason::Expired, "https://a.example"), false).await;
        assert!(over.unwrap_err().to_string().contains("logged out"));
        // The user's own variable counts more, and the links stay right.
        let of_variable =
            answer(&logins(), &request(Reason::Initial, "https://a.example"), true).await.unwrap();
        let text = r#"{"version":1,"env":{"PULUMI_CONSOLE_DOMAIN":"a.example"}}"#;
        assert_eq!(serde_json::to_string(&of_variable).unwrap(), text);
    }

    #[test]
    fn the_pages_are_where_the_cli_cannot_know() {
        let console = |server: &str| console(&url(server)).get(CONSOLE).cloned();
        assert_eq!(console("https://state.example.com").as_deref(), Some("state.example.com"));
        assert_eq!(console("http://127.0.0.1:8080").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(console("https://api.example.com"), None);
        assert_eq!(console("https://example.com/base"), None);
    }

    #[test]
    fn a_program_is_the_helper_by_its_name() {
        for name in ["pulumi-credential-helper", "/usr/bin/pulumi-credential-helper"] {
            assert!(is_called(OsStr::new(name)), "{name}");
        }
        for name in ["statewright", "/pulumi-credential-helper/statewright", ""] {
            assert!(!is_called(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_link_of_others_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let (helper, program) = (folder.path().join(NAME), Path::new("/opt/2/statewright"));
        assert_eq!(found(&helper, program).unwrap(), Found::Nothing);
        symlink("/opt/1/statewright", &helper).unwrap();
        assert_eq!(found(&helper, program).unwrap(), Found::Ours);
        fs::remove_file(&helper).unwrap();
        symlink("/usr/bin/other", &helper).unwrap();
        assert_eq!(found(&helper, program).unwrap(), Found::Theirs);
        fs::remove_file(&helper).unwrap();
        fs::write(&helper, "#!/bin/sh\n").unwrap();
        assert_eq!(found(&helper, program).unwrap(), Found::Theirs);
    }

    #[test]
    fn requests_are_read_as_the_cli_sends_them() {
        let read = |text: &str| serde_json::from_str::<Request>(text);
        let initial = read(r#"{"version":1,"reason":"initial"}"#).unwrap();
        assert_eq!((initial.reason, initial.selected_backend_url.as_str()), (Reason::Initial, ""));
        let rejected = read(r#"{"version":1,"reason":"rejected","selectedBackendUrl":"https://a"}"#).unwrap();
        assert_eq!(
            (rejected.reason, rejected.selected_backend_url.as_str()),
            (Reason::Rejected, "https://a")
        );
        assert!(read("{}").is_err() && read(r#"{"version":1,"reason":"other"}"#).is_err());
    }
}
