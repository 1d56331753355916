//! The route table: every route once, with its credentials, its body limit, its group and its handler.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, get, on};

use super::error::Failure;
use super::handlers::{admin, edges, head, history, log, nothing, openapi, read, secrets, states, tfstate};
use super::unsupported::unsupported;
use super::{App, auth, spelling, watch};
use crate::limits::{
    BATCH_BYTES_MAX, COMPLETION_BYTES_MAX, CREATION_BYTES_MAX, DEPLOYMENT_BYTES_MAX, LOCK_BYTES_MAX,
    SECRETS_BYTES_MAX, SMALL_BYTES_MAX, STATE_BYTES_MAX,
};

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
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Read, Self::Secrets, Self::Head, Self::Log, Self::Admin, Self::Tfstate];

    /// The group that answers what is in no row of the table and below no [`root`](Self::root).
    pub const DEFAULT: Self = Self::Read;

    /// Below this path everything is this group's, whatever its method: clients say what they do there in more ways than the
    /// table has rows. Gateways have one route for all of it.
    pub fn root(self) -> Option<&'static str> {
        match self {
            Self::Tfstate => Some(spelling::ROOT),
            Self::Read | Self::Secrets | Self::Head | Self::Log | Self::Admin => None,
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
}

/// One route.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path, with `{names}` for its parameters.
    pub path: &'static str,
    /// The credentials.
    pub auth: Auth,
    /// The longest body, in bytes, as sent and inflated.
    pub body_bytes_max: usize,
    /// The function.
    pub group: Group,
    /// What it is called in the audit log; `None` for what is not kept there: what only reads, and what an update saves,
    /// since its start and its end are kept.
    pub action: Option<&'static str>,
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

type Handler = fn(MethodFilter) -> MethodRouter<App>;

macro_rules! routes {
    ($(#[$about:meta])* $($method:ident $path:literal $auth:ident $body:expr, $group:ident $handler:path $(, $action:literal)?;)*) => {
        $(#[$about])*
        pub static ROUTES: &[Route] = &[$(Route {
            method: Method::$method,
            path: $path,
            auth: Auth::$auth,
            body_bytes_max: $body,
            group: Group::$group,
            action: first(&[$($action)?]),
        }),*];

        /// The handler of each row that is served. The rows name none, so that a program holds only those.
        const fn handlers<S: Serves>() -> [Option<Handler>; ROUTES.len()] {
            [$(if has(S::GROUPS, Group::$group) { Some(|method| on(method, $handler)) } else { None }),*]
        }
    };
}

const fn has(groups: &[Group], group: Group) -> bool {
    match groups {
        [first, rest @ ..] => *first as u8 == group as u8 || has(rest, group),
        [] => false,
    }
}

const fn first(actions: &[&'static str]) -> Option<&'static str> {
    match actions {
        [action, ..] => Some(action),
        [] => None,
    }
}

routes![
    /// All routes. Those below `/tfstate` are told in one way each; [`spelling`] knows how else clients say the same. Paths follow pulumi v3.274.1, `pkg/backend/httpstate/client/api_endpoints.go`.
    GET "/api/capabilities" Nobody 0, Read read::capabilities;
    GET "/api/cli/version" Nobody 0, Read read::cli_version;
    GET "/api/user" Token 0, Read read::user;
    GET "/api/user/organizations/default" Token 0, Read read::default_organization;
    GET "/api/user/stacks" Token 0, Read read::list_stacks;
    GET "/api/orgs/{org}/members" Token 0, Read read::members;
    GET "/api/orgs/{org}/templates" Token 0, Read nothing::templates;
    GET "/api/orgs/{org}/policypacks" Token 0, Read nothing::policy_packs;
    GET "/api/orgs/{org}/policygroups" Token 0, Read nothing::policy_groups;
    GET "/api/registry/packages" Token 0, Read nothing::packages;
    GET "/api/registry/templates" Token 0, Read nothing::registry_templates;
    HEAD "/api/stacks/{org}/{project}" Token 0, Read read::project_exists;
    POST "/api/stacks/{org}/{project}" Token DEPLOYMENT_BYTES_MAX, Head head::create_stack, "stack.create";
    GET "/api/stacks/{org}/{project}/{stack}" Token 0, Read read::get_stack;
    DELETE "/api/stacks/{org}/{project}/{stack}" Token 0, Head head::delete_stack, "stack.delete";
    GET "/api/stacks/{org}/{project}/{stack}/metadata" Token 0, Read read::metadata;
    PATCH "/api/stacks/{org}/{project}/{stack}/tags" Token SMALL_BYTES_MAX, Head head::set_tags, "stack.tag";
    POST "/api/stacks/{org}/{project}/{stack}/rename" Token SMALL_BYTES_MAX, Head head::rename, "stack.rename";
    POST "/api/stacks/{org}/{project}/{stack}/transfer" Token SMALL_BYTES_MAX, Head head::transfer, "stack.transfer";
    POST "/api/stacks/{org}/{project}/{stack}/encrypt" Token SECRETS_BYTES_MAX, Secrets secrets::encrypt;
    POST "/api/stacks/{org}/{project}/{stack}/decrypt" Token SECRETS_BYTES_MAX, Secrets secrets::decrypt, "secrets.open";
    POST "/api/stacks/{org}/{project}/{stack}/batch-encrypt" Token SECRETS_BYTES_MAX, Secrets secrets::batch_encrypt;
    POST "/api/stacks/{org}/{project}/{stack}/batch-decrypt" Token SECRETS_BYTES_MAX, Secrets secrets::batch_decrypt, "secrets.open";
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-decryption" Token SMALL_BYTES_MAX, Secrets secrets::log_decryption, "secrets.show";
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-batch-decryption" Token SMALL_BYTES_MAX, Secrets secrets::log_decryption, "secrets.show";
    GET "/api/stacks/{org}/{project}/{stack}/export" Token 0, Read read::export;
    GET "/api/stacks/{org}/{project}/{stack}/export/{version}" Token 0, Read read::export;
    POST "/api/stacks/{org}/{project}/{stack}/import" Token DEPLOYMENT_BYTES_MAX, Head head::import, "stack.import";
    GET "/api/stacks/{org}/{project}/{stack}/outputs" Token 0, Read read::outputs;
    GET "/api/stacks/{org}/{project}/{stack}/policypacks" Token 0, Read nothing::required_policies;
    GET "/api/stacks/{org}/{project}/{stack}/policygroups" Token 0, Read nothing::stack_policy_groups;
    GET "/api/stacks/{org}/{project}/{stack}/updates" Token 0, Read history::history;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest" Token 0, Read history::update;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/previews" Token 0, Read history::previews;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/timeline" Token 0, Read history::timeline;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}" Token 0, Read history::update;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/summary" Token 0, Read history::summary;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/previews" Token 0, Read history::previews;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/timeline" Token 0, Read history::timeline;
    POST "/api/stacks/{org}/{project}/{stack}/update" Token CREATION_BYTES_MAX, Head head::create_update, "update.create";
    POST "/api/stacks/{org}/{project}/{stack}/preview" Token CREATION_BYTES_MAX, Head head::create_preview, "update.create";
    POST "/api/stacks/{org}/{project}/{stack}/refresh" Token CREATION_BYTES_MAX, Head head::create_refresh, "update.create";
    POST "/api/stacks/{org}/{project}/{stack}/destroy" Token CREATION_BYTES_MAX, Head head::create_destroy, "update.create";
    POST "/api/stacks/{org}/{project}/{stack}/begin-update" Token CREATION_BYTES_MAX, Head head::begin_update, "update.begin";
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" Token SMALL_BYTES_MAX, Head head::start_update, "update.start";
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" Token 0, Read read::update_status;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/cancel" Token SMALL_BYTES_MAX, Head head::cancel, "update.cancel";
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/renew_lease" UpdateToken SMALL_BYTES_MAX, Head head::renew_lease;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/complete" UpdateToken COMPLETION_BYTES_MAX, Head head::complete, "update.end";
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/journalentries" UpdateToken BATCH_BYTES_MAX, Log log::journal_entries;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpoint" UpdateToken DEPLOYMENT_BYTES_MAX, Log log::checkpoint;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointverbatim" UpdateToken DEPLOYMENT_BYTES_MAX, Log log::checkpoint_verbatim;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointdelta" UpdateToken BATCH_BYTES_MAX, Log log::checkpoint_delta;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" UpdateToken BATCH_BYTES_MAX, Log log::event;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events/batch" UpdateToken BATCH_BYTES_MAX, Log log::events;
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" Token 0, Read read::events;
    GET "/api/openapi" Nobody 0, Read openapi::document;
    GET "/api/openapi/pulumi-spec.json" Nobody 0, Read openapi::document;
    GET "/tfstate/{guid}" Run 0, Tfstate tfstate::get;
    POST "/tfstate/{guid}" Run STATE_BYTES_MAX, Tfstate tfstate::write, "state.write";
    DELETE "/tfstate/{guid}" State 0, Tfstate tfstate::remove, "state.delete";
    POST "/tfstate/{guid}/lock" State LOCK_BYTES_MAX, Tfstate tfstate::lock, "state.lock";
    DELETE "/tfstate/{guid}/lock" Run LOCK_BYTES_MAX, Tfstate tfstate::unlock, "state.unlock";
    GET "/tfstate/{guid}/outputs" State 0, Tfstate tfstate::outputs;
    GET "/tfstate/{org}/{project}" Run 0, Tfstate tfstate::get;
    POST "/tfstate/{org}/{project}" Run STATE_BYTES_MAX, Tfstate tfstate::write, "state.write";
    DELETE "/tfstate/{org}/{project}" State 0, Tfstate tfstate::remove, "state.delete";
    POST "/tfstate/{org}/{project}/lock" State LOCK_BYTES_MAX, Tfstate tfstate::lock, "state.lock";
    DELETE "/tfstate/{org}/{project}/lock" Run LOCK_BYTES_MAX, Tfstate tfstate::unlock, "state.unlock";
    GET "/tfstate/{org}/{project}/outputs" State 0, Tfstate tfstate::outputs;
    GET "/tfstate/{org}/{project}/{state}" Run 0, Tfstate tfstate::get;
    POST "/tfstate/{org}/{project}/{state}" Run STATE_BYTES_MAX, Tfstate tfstate::write, "state.write";
    DELETE "/tfstate/{org}/{project}/{state}" State 0, Tfstate tfstate::remove, "state.delete";
    POST "/tfstate/{org}/{project}/{state}/lock" State LOCK_BYTES_MAX, Tfstate tfstate::lock, "state.lock";
    DELETE "/tfstate/{org}/{project}/{state}/lock" Run LOCK_BYTES_MAX, Tfstate tfstate::unlock, "state.unlock";
    GET "/tfstate/{org}/{project}/{state}/outputs" State 0, Tfstate tfstate::outputs;
    GET "/api/orgs/{org}/tfstates" Token 0, Tfstate states::list;
    POST "/api/orgs/{org}/tfstates" Token SMALL_BYTES_MAX, Tfstate states::create, "state.create";
    GET "/api/orgs/{org}/tfstates/{project}/{state}" Token 0, Tfstate states::get;
    GET "/api/orgs/{org}/tfstate-locks" Token 0, Tfstate states::locks;
    GET "/api/orgs/{org}/tfstate-removed" Token 0, Tfstate states::removed;
    GET "/api/orgs/{org}/tfstate-policy" Token 0, Tfstate states::label_policy;
    PUT "/api/orgs/{org}/tfstate-policy" Token SMALL_BYTES_MAX, Tfstate states::set_label_policy, "policy.set";
    GET "/api/orgs/{org}/tfstate-policy/compliance" Token 0, Tfstate states::compliance;
    GET "/api/orgs/{org}/outputs" Token 0, Tfstate states::all_outputs;
    GET "/api/orgs/{org}/outputs/stack/{project}/{stack}" Token 0, Tfstate states::stack_outputs;
    GET "/api/orgs/{org}/outputs/tfstate/{project}/{state}" Token 0, Tfstate states::state_outputs;
    GET "/api/tfstates/{guid}" Token 0, Tfstate states::get;
    PATCH "/api/tfstates/{guid}" Token SMALL_BYTES_MAX, Tfstate states::edit, "state.edit";
    DELETE "/api/tfstates/{guid}" Token 0, Tfstate states::remove, "state.delete";
    POST "/api/tfstates/{guid}/undelete" Token 0, Tfstate states::bring_back, "state.undelete";
    GET "/api/tfstates/{guid}/outputs" Token 0, Tfstate states::outputs;
    GET "/api/tfstates/{guid}/schemas" Token 0, Tfstate states::schemas;
    PATCH "/api/tfstates/{guid}/schemas" Token SMALL_BYTES_MAX, Tfstate states::set_schemas, "state.schema";
    GET "/api/tfstates/{guid}/lock" Token 0, Tfstate states::lock;
    POST "/api/tfstates/{guid}/lock" Token LOCK_BYTES_MAX, Tfstate states::lock_by_hand, "state.lock";
    DELETE "/api/tfstates/{guid}/lock" Token LOCK_BYTES_MAX, Tfstate states::unlock, "state.unlock";
    GET "/api/tfstates/{guid}/rejected" Token 0, Tfstate states::rejected;
    GET "/api/tfstates/{guid}/versions" Token 0, Tfstate states::versions;
    GET "/api/tfstates/{guid}/versions/{version}" Token 0, Tfstate states::version;
    GET "/api/tfstates/{guid}/versions/{version}/text" Token 0, Tfstate states::text, "state.download";
    GET "/api/tfstates/{guid}/versions/{version}/diff/{other}" Token 0, Tfstate states::diff;
    POST "/api/tfstates/{guid}/versions/{version}/restore" Token 0, Tfstate states::restore, "state.restore";
    GET "/api/tfstates/{guid}/dependencies" Token 0, Tfstate edges::dependencies;
    GET "/api/orgs/{org}/tfstate-edges" Token 0, Tfstate edges::list;
    POST "/api/orgs/{org}/tfstate-edges" Token SMALL_BYTES_MAX, Tfstate edges::add, "edge.add";
    GET "/api/orgs/{org}/tfstate-edges/{edge}" Token 0, Tfstate edges::get;
    PATCH "/api/orgs/{org}/tfstate-edges/{edge}" Token SMALL_BYTES_MAX, Tfstate edges::edit, "edge.edit";
    DELETE "/api/orgs/{org}/tfstate-edges/{edge}" Token 0, Tfstate edges::remove, "edge.remove";
    GET "/api/orgs/{org}/tfstate-statuses" Token 0, Tfstate edges::statuses;
    GET "/api/orgs/{org}/tfstate-topology" Token 0, Tfstate edges::topology;
    GET "/healthz" Nobody 0, Admin admin::health;
    GET "/readyz" Nobody 0, Admin admin::ready;
];

/// A router of all routes that a program serves.
pub fn router<S: Serves>(app: impl Into<App>) -> Router {
    let app = app.into();
    let mut router = Router::new();
    for (route, handler) in ROUTES.iter().zip(const { handlers::<S>() }) {
        let Some(handler) = handler else { continue };
        let filter = MethodFilter::try_from(route.method.clone())
            .expect("the table holds only methods that a router can tell apart");
        let guard = middleware::from_fn_with_state((app.clone(), route), auth::guard);
        router = router.route(route.path, handler(filter).layer(guard));
    }
    let table =
        router.fallback(not_supported).method_not_allowed_fallback(not_supported).with_state(app.clone());
    // Around the table: what it changes is what the table is asked.
    Router::new().fallback_service(table).layer(middleware::from_fn_with_state(app, watch::observe))
}

/// Whatever is not in the table. The body has the integer code without which the CLI does not see a 404.
async fn not_supported(request: Request) -> Failure {
    unsupported(request.method(), request.uri().path())
}

/// A router with the metrics alone: for an address of its own, since they tell what the server is used for.
pub fn metrics_router(app: App) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(app)
}

async fn metrics(State(app): State<App>) -> Result<Response, Failure> {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let running = crate::services::health::updates_running(&app).await?;
    Ok(([(CONTENT_TYPE, TEXT)], app.metrics().text(running)).into_response())
}
