//! A route: its credentials, the role that it needs, its body limit, its group.

use axum::http::Method;
use serde_json::Value;

use crate::domain::role::Role;

/// The credentials that a route demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// None.
    Nobody,
    /// A person's access token: `Authorization: token …`.
    Token,
    /// The token of the update in the path: `Authorization: update-token …`.
    UpdateToken,
    /// A person's access token, as clients of Terraform states send it: the password of Basic credentials, or a bearer. Or the
    /// person's own name and password; or, without any of these, a client certificate.
    State,
    /// The same, and for a while after its end too, for whoever has held the state's lock since before.
    Run,
}

/// The function that a route belongs to. Groups are cut by what they may move and by how often they are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Reads the ledger and published deployments.
    Read,
    /// Seals and opens secrets.
    Secrets,
    /// Moves a stack's head, or an update's life.
    Head,
    /// Appends to the logs of updates.
    Log,
    /// Users, organizations, tokens.
    Admin,
    /// Terraform states.
    Tfstate,
    /// Environments.
    Environments,
}

/// The path below which Terraform states are.
pub(super) const STATES_ROOT: &str = "/tfstate/";

impl Group {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Secrets, Self::Head, Self::Log, Self::Admin, Self::Tfstate, Self::Environments];

    /// The group that answers what is in no row of the table and below no [`root`](Self::root).
    pub const DEFAULT: Self = Self::Read;

    /// Below this path everything is this group's, whatever its method: clients say what they do there in more ways than the
    /// table has rows. Gateways have one route for all of it.
    pub fn root(self) -> Option<&'static str> {
        match self {
            Self::Tfstate => Some(STATES_ROOT),
            Self::Read | Self::Secrets | Self::Head | Self::Log | Self::Admin | Self::Environments => None,
        }
    }

    /// The group that answers what is at this path and in no row of the table.
    pub fn otherwise(path: &str) -> Self {
        let is_below = |group: &Self| group.root().is_some_and(|root| path.starts_with(root));
        Self::ALL.into_iter().find(is_below).unwrap_or(Self::DEFAULT)
    }

    /// The function's name: of its folder, and in templates.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Secrets => "secrets",
            Self::Head => "head",
            Self::Log => "log",
            Self::Admin => "admin",
            Self::Tfstate => "tfstate",
            Self::Environments => "environments",
        }
    }
}

/// What a program serves. It is a type, so that a program holds the handlers of its own groups alone.
pub trait Serves {
    /// Whose routes it answers.
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
    /// [`Group::Tfstate`].
    Tfstate: &[Group::Tfstate];
    /// [`Group::Environments`].
    Environments: &[Group::Environments];
}

/// One route.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{names}` for its parameters.
    pub path: &'static str,
    /// The credentials.
    pub auth: Auth,
    /// The role that whoever asks needs in the organization that it is about; `None` where it is about none, or where the
    /// credentials name the one thing that they are for.
    pub needs: Option<Role>,
    /// The longest body, in bytes, as sent and inflated; 0 where no body is read.
    pub body_bytes_max: usize,
    /// How many times the bytes of its text a request holds at most: the text, what is parsed of it, what is stored, and the
    /// answer. `tests/memory` measures it.
    pub body_copies: usize,
    /// The function.
    pub group: Group,
    /// What it is called in the audit log; `None` for what is not kept there unless it is refused: what reads no secret, and what an
    /// update saves, since its start and its end are kept.
    pub action: Option<&'static str>,
    /// Its name in the OpenAPI document, by which `pulumi api` finds it. Where Pulumi Cloud has the same route, it has the same
    /// name there. Source: pulumi/pulumi-pulumiservice dc76a018, `provider/pkg/cloud/spec.json`.
    pub operation: &'static str,
    /// Its purpose, in a few words.
    pub summary: &'static str,
}

/// The shapes of a route's body and answer, for the OpenAPI document. They are apart from [`Route`] so that a program without
/// the document does not hold all shapes.
pub(super) struct Shapes {
    /// The schema of the body; `None` where no body is read.
    pub(super) body: Option<fn() -> Value>,
    /// The answer to a request that succeeds.
    pub(super) answer: Answered,
}

/// The answer of a route to a request that succeeds.
pub(super) enum Answered {
    /// 200 with JSON of this schema: `{}` for what is kept as it came.
    Json(fn() -> Value),
    /// 200 with a page of HTML.
    Html,
    /// 200 with YAML.
    Yaml,
    /// 200 with a Terraform state as its client sent it; 204 for a state that has none yet.
    StateIfAny,
    /// 200 without a body: for HEAD, and for clients of states, some of which take 204 for a state that is not there.
    Empty,
    /// 204.
    NoContent,
}

impl Route {
    /// A name made of its method and its path, in letters and digits alone: `GetApiUser`.
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

    /// Its path as the OpenAPI document has it.
    pub fn path_in_document(&self) -> String {
        let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            // The client writes this for every kind.
            Some("kind") => "update".to_owned(),
            Some(name) => format!("{{{}}}", in_document(name)),
            None => part.to_owned(),
        };
        self.path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// The parameters of its path as the OpenAPI document has them.
    pub(super) fn parameters_in_document(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.parameters().filter(|name| *name != "kind").map(in_document)
    }

    /// The parameters in its path.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({:?}, {:?})", self.method, self.path, self.auth, self.group)
    }
}

/// A parameter's name in the OpenAPI document: Pulumi Cloud's, since the CLI fills those that it knows from the project and the
/// stack that are selected.
fn in_document(name: &str) -> &str {
    match name {
        "org" => "orgName",
        "project" => "projectName",
        "stack" => "stackName",
        "environment" => "envName",
        "update" => "updateID",
        "tag" => "tagName",
        "session" => "openSessionID",
        other => other,
    }
}
