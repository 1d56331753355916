//! A route: its credentials, the right that it needs, its body limit, its group.

use std::iter::{Copied, Flatten};
use std::slice;

use axum::http::Method;
use serde_json::Value;

use super::parameters::Parameter;
use crate::domain::role::Right;

/// The credentials that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// None: the route is public.
    Public,
    /// A user's access token: `Authorization: token …`. The console in a browser shows a session instead.
    Token,
    /// The token of another issuer, in the body.
    Exchange,
    /// The token of the update in the path: `Authorization: update-token …`.
    UpdateToken,
    /// The credentials of clients of Terraform states: a user's access token as the password of Basic
    /// credentials or as a bearer, the user's login and password, or, without any of these, a client
    /// certificate.
    State,
    /// None, for a page: it answers a browser with HTML, and accepts forms of this server's own pages only.
    Page,
    /// A page of a signed-in person: the cookie of a session.
    Session,
    /// Those of [`Auth::State`]. A token or certificate is accepted for a while after it expires, from a caller who has held
    /// the state's lock since before.
    Run,
}

impl Auth {
    /// Whether the route is a page, or takes the form of one.
    pub fn is_page(self) -> bool {
        matches!(self, Self::Page | Self::Session)
    }
}

/// The function that a route belongs to. Routes are grouped by what they may change and how often they are
/// called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Reads the ledger and published deployments. Writes only when tokens were last used.
    Read,
    /// Encrypts and decrypts secrets.
    Secrets,
    /// Changes a stack's head or an update's state.
    Head,
    /// Appends to the logs of updates.
    Log,
    /// Probes: whether a process serves, and whether the server can do its work; and what admins of the server see.
    Admin,
    /// Users, organizations, tokens, and who may do what.
    Account,
    /// Terraform states.
    Tfstate,
    /// Environments.
    Environments,
    /// The page that names the server, and every path outside the table. It needs no store. Its program also has the
    /// pages for browsers.
    Console,
}

/// The root path of Terraform states.
pub(super) const STATES_ROOT: &str = "/tfstate/";

/// The root path of environments.
const ENVIRONMENTS_ROOT: &str = "/api/esc/";

impl Group {
    /// All groups.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Secrets,
        Self::Head,
        Self::Log,
        Self::Admin,
        Self::Account,
        Self::Tfstate,
        Self::Environments,
        Self::Console,
    ];

    /// The group that answers paths outside the table and outside any [`root`](Self::root).
    pub const DEFAULT: Self = Self::Console;

    /// The path below which everything belongs to this group, with any method. Gateways have one route for all of it:
    /// clients of states use more methods than the table has rows, and the number of a gateway's routes is limited.
    pub fn root(self) -> Option<&'static str> {
        match self {
            Self::Tfstate => Some(STATES_ROOT),
            Self::Environments => Some(ENVIRONMENTS_ROOT),
            Self::Read
            | Self::Secrets
            | Self::Head
            | Self::Log
            | Self::Admin
            | Self::Account
            | Self::Console => None,
        }
    }

    /// The group that answers a path outside the table.
    pub fn otherwise(path: &str) -> Self {
        let is_below = |group: &Self| group.root().is_some_and(|root| path.starts_with(root));
        Self::ALL.into_iter().find(is_below).unwrap_or(Self::DEFAULT)
    }

    /// Whether requests of the group are recorded in the audit trail of the store. Functions that only read, or append
    /// to the logs of updates, have no right to write there: their requests are in the audit log only.
    pub fn keeps_trail(self) -> bool {
        !matches!(self, Self::Read | Self::Log | Self::Admin | Self::Console)
    }

    /// The function's name, as its folder and the templates have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Secrets => "secrets",
            Self::Head => "head",
            Self::Log => "log",
            Self::Admin => "admin",
            Self::Account => "account",
            Self::Tfstate => "tfstate",
            Self::Environments => "environments",
            Self::Console => "console",
        }
    }
}

/// What a program serves. This is a type, so that a program contains only the handlers of its own groups.
pub trait Serves {
    /// The groups whose routes the program answers.
    const GROUPS: &'static [Group];
}

macro_rules! serves {
    ($($(#[$about:meta])* $name:ident: $groups:expr;)*) => {
        $($(#[$about])* #[derive(Debug)] pub enum $name {}
        impl Serves for $name {
            const GROUPS: &'static [Group] = $groups;
        })*
    };
}

serves! {
    /// Every route.
    Everything: &Group::ALL;
    /// [`Group::Read`].
    Read: &[Group::Read];
    /// [`Group::Secrets`].
    Secrets: &[Group::Secrets];
    /// [`Group::Head`].
    Head: &[Group::Head];
    /// [`Group::Log`].
    Log: &[Group::Log];
    /// [`Group::Admin`].
    Admin: &[Group::Admin];
    /// [`Group::Account`].
    Account: &[Group::Account];
    /// [`Group::Tfstate`].
    Tfstate: &[Group::Tfstate];
    /// [`Group::Environments`].
    Environments: &[Group::Environments];
    /// [`Group::Console`].
    Console: &[Group::Console];
}

/// One route.
pub struct Route {
    /// The method of requests.
    pub method: Method,
    /// The path, with `{names}` for its parameters.
    pub path: &'static str,
    /// The credentials that it requires.
    pub auth: Auth,
    /// The right that the caller needs on the stack, state or environment, or in the organization; `None` if
    /// the request is about no organization, or if the credentials are for one thing only.
    pub needs: Option<Right>,
    /// The length of the body in bytes, as sent and inflated, at most; 0 if no body is read.
    pub body_bytes_max: usize,
    /// Copies of the body's text that a request holds at most: the text, what is parsed of it, what is
    /// stored, and the answer. `tests/memory` measures it.
    pub body_copies: usize,
    /// The function that serves it.
    pub group: Group,
    /// The action in the audit log. `None` if only refusals are recorded: for requests that read no secrets,
    /// and for what a running update saves, since its start and its end are recorded.
    pub action: Option<&'static str>,
    /// The query parameters that the handler reads.
    pub query: &'static [Parameter],
    /// The operation's name in the OpenAPI document, which `pulumi api` uses. A route that Pulumi Cloud has
    /// too has the same name there. Source: pulumi/pulumi-pulumiservice dc76a018,
    /// `provider/pkg/cloud/spec.json`.
    pub operation: &'static str,
    /// The purpose, in a few words.
    pub summary: &'static str,
}

/// A table of routes, in parts.
#[derive(Debug, Clone, Copy)]
pub struct Routes(pub(super) &'static [&'static [Route]]);

impl Routes {
    /// The routes of all parts, in the table's order.
    pub fn iter(self) -> <Self as IntoIterator>::IntoIter {
        self.into_iter()
    }
}

impl IntoIterator for Routes {
    type Item = &'static Route;
    type IntoIter = Flatten<Copied<slice::Iter<'static, &'static [Route]>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().copied().flatten()
    }
}

/// The shapes of a route's body and answer, for the OpenAPI document. They are separate from [`Route`], so
/// that a program without the document does not contain all shapes.
pub(super) struct Shapes {
    /// The schema of the body; `None` if no body is read.
    pub(super) body: Option<fn() -> Value>,
    /// The answer to a successful request.
    pub(super) answer: Answered,
}

/// The answer of a route to a successful request.
pub(super) enum Answered {
    /// 200 with JSON of this schema; `{}` for JSON that is stored and returned as sent.
    Json(fn() -> Value),
    /// 201 with JSON of this schema.
    Created(fn() -> Value),
    /// 200 with a page of HTML.
    Html,
    /// 303 to another page.
    SeeOther,
    /// 200 with YAML.
    Yaml,
    /// 200 with lines of text.
    Text,
    /// 200 with a Terraform state as its client sent it; 204 if the state has no version yet.
    StateIfAny,
    /// 200 without a body: for HEAD, and for clients of states, some of which take 204 for a missing state.
    Empty,
    /// 204.
    NoContent,
}

/// The actions whose answers show secrets, among those that have a row with GET.
const REVEALING: [&str; 5] =
    ["environment.decrypt", "environment.look", "stack.export", "state.download", "state.outputs"];

impl Route {
    /// A name of letters and digits, made of the method and the path: `GetApiUser`.
    pub fn id(&self) -> String {
        let method = self.method.as_str().to_ascii_lowercase();
        let words = self.path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        std::iter::once(method.as_str())
            .chain(words)
            .flat_map(|word| {
                let (first, rest) = word.split_at(1);
                [first.to_ascii_uppercase(), rest.to_owned()]
            })
            .collect()
    }

    /// Whether the answer shows secrets, or all of what contains them. With the session of a browser, only POST gets it.
    pub fn reveals(&self) -> bool {
        self.action.is_some_and(|action| REVEALING.contains(&action))
    }

    /// Whether it tells no more than who asks. Then it also answers a token that stopped because the provider has to
    /// confirm its user again: `pulumi login` needs only this row, and shows no reason if it is refused. The next request
    /// of the client shows it.
    pub fn tells_who_asks(&self) -> bool {
        self.action == Some("user.sign_in")
    }

    /// Whether it shows something, so that many such requests may come. They are summed up in the audit trail.
    pub fn is_frequent(&self) -> bool {
        let is_look =
            |action: &str| [".open", ".show", ".decrypt", ".check"].iter().any(|end| action.ends_with(end));
        self.method == Method::GET || self.reveals() || self.action.is_some_and(is_look)
    }

    /// The path as the OpenAPI document has it.
    pub fn path_in_document(&self) -> String {
        let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            // Clients write this for every kind.
            Some("kind") => "update".to_owned(),
            Some(name) => format!("{{{}}}", in_document(name)),
            None => part.to_owned(),
        };
        self.path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// The parameters of the path as the OpenAPI document has them.
    pub(super) fn parameters_in_document(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.parameters().filter(|name| *name != "kind").map(in_document)
    }

    /// The parameters in the path.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({:?}, {:?})", self.method, self.path, self.auth, self.group)
    }
}

/// A parameter's name in the OpenAPI document. These are Pulumi Cloud's names, since the CLI fills in those
/// that it knows from the selected project and stack.
fn in_document(name: &str) -> &str {
    match name {
        "org" => "orgName",
        "project" => "projectName",
        "stack" => "stackName",
        "environment" => "envName",
        "update" => "updateID",
        "tag" => "tagName",
        "session" => "openSessionID",
        "browser" => "sessionId",
        "issuer" => "issuerId",
        "policy" => "policyId",
        "team" => "teamName",
        "token" => "tokenId",
        "user" => "userLogin",
        "role" => "roleID",
        "program" => "programID",
        other => other,
    }
}
