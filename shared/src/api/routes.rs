//! The route table: every route once, with its credentials, the role that it needs, its body limit, its group and its
//! handler.

use std::pin::Pin;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};

use super::error::Failure;
use super::handlers::{
    checkpoints, dependencies, empty, environments, events, health, history, home, openapi, secrets, service,
    stacks, states, tfstate, updates, user,
};
use super::unsupported::unsupported;
use super::{App, access_log, auth, tfstate_methods};
use crate::domain::role::Role;
use crate::limits::{
    BATCH_BYTES_MAX, COMPLETION_BYTES_MAX, CREATION_BYTES_MAX, DEPLOYMENT_BYTES_MAX, ENVIRONMENT_BYTES_MAX,
    LOCK_BYTES_MAX, SECRETS_BYTES_MAX, SMALL_BYTES_MAX, STATE_BYTES_MAX,
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
    /// Environments.
    Environments,
}

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
            Self::Tfstate => Some(tfstate_methods::ROOT),
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
    /// The longest body, in bytes, as sent and inflated.
    pub body_bytes_max: usize,
    /// The function.
    pub group: Group,
    /// What it is called in the audit log; `None` for what is not kept there unless it is refused: what reads no secret, and what an
    /// update saves, since its start and its end are kept.
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

/// A handler whose own type is forgotten: what makes a service of a handler is long, and so it is there once.
#[derive(Clone, Copy)]
struct Erased(fn(Request, App) -> Answering);

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

impl Handler<(), App> for Erased {
    type Future = Answering;
    fn call(self, request: Request, app: App) -> Answering {
        (self.0)(request, app)
    }
}

macro_rules! needs {
    (Nothing) => {
        None
    };
    ($role:ident) => {
        Some(Role::$role)
    };
}

macro_rules! routes {
    ($(#[$about:meta])* $($method:ident $path:literal $auth:ident $needs:ident $body:expr, $group:ident $handler:path $(, $action:literal)?;)*) => {
        $(#[$about])*
        pub static ROUTES: &[Route] = &[$(Route {
            method: Method::$method,
            path: $path,
            auth: Auth::$auth,
            needs: needs!($needs),
            body_bytes_max: $body,
            group: Group::$group,
            action: first(&[$($action)?]),
        }),*];

        /// The handler of each row that is served. The rows name none, so that a program holds only those.
        const fn handlers<S: Serves>() -> [Option<Erased>; ROUTES.len()] {
            [$(if has(S::GROUPS, Group::$group) {
                Some(Erased(|request, app| Handler::call($handler, request, app)))
            } else {
                None
            }),*]
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
    /// All routes: method, path, credentials, role, body limit, group, handler, action. What needs more than its row says, by what
    /// is in the body or in the store, is judged where that is known: an update that is no preview, the lock of somebody else.
    ///
    /// Those below `/tfstate` have one method each; [`tfstate_methods`] has the others that clients use. Paths follow pulumi v3.274.1, `pkg/backend/httpstate/client/api_endpoints.go`.
    GET "/api/capabilities" Nobody Nothing 0, Read service::capabilities;
    GET "/api/cli/version" Nobody Nothing 0, Read service::cli_version;
    GET "/api/user" Token Nothing 0, Read user::user, "user.sign_in";
    GET "/api/user/organizations/default" Token Nothing 0, Read user::default_organization;
    GET "/api/user/stacks" Token Outputs 0, Read stacks::list_stacks;
    GET "/api/orgs/{org}/members" Token Plan 0, Read user::members;
    GET "/api/orgs/{org}/templates" Token Outputs 0, Read empty::templates;
    GET "/api/orgs/{org}/policypacks" Token Outputs 0, Read empty::policy_packs;
    GET "/api/orgs/{org}/policygroups" Token Outputs 0, Read empty::policy_groups;
    GET "/api/registry/packages" Token Nothing 0, Read empty::packages;
    GET "/api/registry/templates" Token Nothing 0, Read empty::registry_templates;
    HEAD "/api/stacks/{org}/{project}" Token Outputs 0, Read stacks::project_exists;
    POST "/api/stacks/{org}/{project}" Token Apply DEPLOYMENT_BYTES_MAX, Head stacks::create_stack, "stack.create";
    GET "/api/stacks/{org}/{project}/{stack}" Token Outputs 0, Read stacks::get_stack;
    DELETE "/api/stacks/{org}/{project}/{stack}" Token Member 0, Head stacks::delete_stack, "stack.delete";
    GET "/api/stacks/{org}/{project}/{stack}/config" Token Plan 0, Read stacks::config, "stack.show_config";
    PUT "/api/stacks/{org}/{project}/{stack}/config" Token Apply SMALL_BYTES_MAX, Head stacks::set_config, "stack.config";
    DELETE "/api/stacks/{org}/{project}/{stack}/config" Token Apply 0, Head stacks::remove_config, "stack.config";
    GET "/api/stacks/{org}/{project}/{stack}/metadata" Token Outputs 0, Read stacks::metadata;
    PATCH "/api/stacks/{org}/{project}/{stack}/tags" Token Apply SMALL_BYTES_MAX, Head stacks::set_tags, "stack.tag";
    POST "/api/stacks/{org}/{project}/{stack}/tags" Token Apply SMALL_BYTES_MAX, Head stacks::add_tag, "stack.tag";
    PATCH "/api/stacks/{org}/{project}/{stack}/tags/{tag}" Token Apply SMALL_BYTES_MAX, Head stacks::edit_tag, "stack.tag";
    DELETE "/api/stacks/{org}/{project}/{stack}/tags/{tag}" Token Apply 0, Head stacks::remove_tag, "stack.tag";
    POST "/api/stacks/{org}/{project}/{stack}/rename" Token Member SMALL_BYTES_MAX, Head stacks::rename, "stack.rename";
    POST "/api/stacks/{org}/{project}/{stack}/transfer" Token Member SMALL_BYTES_MAX, Head stacks::transfer, "stack.transfer";
    POST "/api/stacks/{org}/{project}/{stack}/encrypt" Token Plan SECRETS_BYTES_MAX, Secrets secrets::encrypt;
    POST "/api/stacks/{org}/{project}/{stack}/decrypt" Token Plan SECRETS_BYTES_MAX, Secrets secrets::decrypt, "secrets.open";
    POST "/api/stacks/{org}/{project}/{stack}/batch-encrypt" Token Plan SECRETS_BYTES_MAX, Secrets secrets::batch_encrypt;
    POST "/api/stacks/{org}/{project}/{stack}/batch-decrypt" Token Plan SECRETS_BYTES_MAX, Secrets secrets::batch_decrypt, "secrets.open";
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-decryption" Token Plan SMALL_BYTES_MAX, Secrets secrets::log_decryption, "secrets.show";
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-batch-decryption" Token Plan SMALL_BYTES_MAX, Secrets secrets::log_decryption, "secrets.show";
    GET "/api/stacks/{org}/{project}/{stack}/export" Token Plan 0, Read stacks::export, "stack.export";
    GET "/api/stacks/{org}/{project}/{stack}/export/{version}" Token Plan 0, Read stacks::export, "stack.export";
    POST "/api/stacks/{org}/{project}/{stack}/import" Token Apply DEPLOYMENT_BYTES_MAX, Head stacks::import, "stack.import";
    GET "/api/stacks/{org}/{project}/{stack}/outputs" Token Outputs 0, Read stacks::outputs, "stack.outputs";
    GET "/api/stacks/{org}/{project}/{stack}/policypacks" Token Outputs 0, Read empty::required_policies;
    GET "/api/stacks/{org}/{project}/{stack}/policygroups" Token Outputs 0, Read empty::stack_policy_groups;
    GET "/api/stacks/{org}/{project}/{stack}/updates" Token Plan 0, Read history::history;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest" Token Plan 0, Read history::update;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/previews" Token Plan 0, Read history::previews;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/timeline" Token Plan 0, Read history::timeline;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}" Token Plan 0, Read history::update;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/summary" Token Plan 0, Read history::summary;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/previews" Token Plan 0, Read history::previews;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/timeline" Token Plan 0, Read history::timeline;
    POST "/api/stacks/{org}/{project}/{stack}/update" Token Plan CREATION_BYTES_MAX, Head updates::create_update, "update.create";
    POST "/api/stacks/{org}/{project}/{stack}/preview" Token Plan CREATION_BYTES_MAX, Head updates::create_preview, "update.create";
    POST "/api/stacks/{org}/{project}/{stack}/refresh" Token Plan CREATION_BYTES_MAX, Head updates::create_refresh, "update.create";
    POST "/api/stacks/{org}/{project}/{stack}/destroy" Token Plan CREATION_BYTES_MAX, Head updates::create_destroy, "update.create";
    POST "/api/stacks/{org}/{project}/{stack}/begin-update" Token Plan CREATION_BYTES_MAX, Head updates::begin_update, "update.begin";
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" Token Plan SMALL_BYTES_MAX, Head updates::start_update, "update.start";
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" Token Plan 0, Read updates::update_status;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/cancel" Token Plan SMALL_BYTES_MAX, Head updates::cancel, "update.cancel";
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/renew_lease" UpdateToken Nothing SMALL_BYTES_MAX, Head updates::renew_lease;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/complete" UpdateToken Nothing COMPLETION_BYTES_MAX, Head updates::complete, "update.end";
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/journalentries" UpdateToken Nothing BATCH_BYTES_MAX, Log updates::journal_entries;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpoint" UpdateToken Nothing DEPLOYMENT_BYTES_MAX, Log checkpoints::checkpoint;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointverbatim" UpdateToken Nothing DEPLOYMENT_BYTES_MAX, Log checkpoints::checkpoint_verbatim;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointdelta" UpdateToken Nothing BATCH_BYTES_MAX, Log checkpoints::checkpoint_delta;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" UpdateToken Nothing BATCH_BYTES_MAX, Log events::append;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events/batch" UpdateToken Nothing BATCH_BYTES_MAX, Log events::append_batch;
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" Token Plan 0, Read events::list;
    GET "/api/esc/environments" Token Outputs 0, Environments environments::list_all;
    GET "/api/esc/environments/{org}" Token Outputs 0, Environments environments::list;
    POST "/api/esc/environments/{org}" Token Apply SMALL_BYTES_MAX, Environments environments::create, "environment.create";
    GET "/api/esc/environments/{org}/restore" Token Plan 0, Environments environments::removed;
    PUT "/api/esc/environments/{org}/restore" Token Member SMALL_BYTES_MAX, Environments environments::restore, "environment.restore";
    POST "/api/esc/environments/{org}/yaml/check" Token Plan ENVIRONMENT_BYTES_MAX, Environments environments::check, "environment.check";
    POST "/api/esc/environments/{org}/yaml/open" Token Plan ENVIRONMENT_BYTES_MAX, Environments environments::open_text, "environment.open";
    GET "/api/esc/environments/{org}/yaml/open/{session}" Token Plan 0, Environments environments::look, "environment.look";
    GET "/api/esc/environments/{org}/{project}/{environment}" Token Plan 0, Environments environments::get;
    PATCH "/api/esc/environments/{org}/{project}/{environment}" Token Apply ENVIRONMENT_BYTES_MAX, Environments environments::update, "environment.edit";
    DELETE "/api/esc/environments/{org}/{project}/{environment}" Token Member 0, Environments environments::remove, "environment.delete";
    GET "/api/esc/environments/{org}/{project}/{environment}/decrypt" Token Plan 0, Environments environments::decrypt, "environment.decrypt";
    POST "/api/esc/environments/{org}/{project}/{environment}/open" Token Plan 0, Environments environments::open, "environment.open";
    GET "/api/esc/environments/{org}/{project}/{environment}/open/{session}" Token Plan 0, Environments environments::look, "environment.look";
    POST "/api/esc/environments/{org}/{project}/{environment}/clone" Token Apply SMALL_BYTES_MAX, Environments environments::clone, "environment.clone";
    GET "/api/esc/environments/{org}/{project}/{environment}/settings" Token Plan 0, Environments environments::settings;
    PATCH "/api/esc/environments/{org}/{project}/{environment}/settings" Token Member SMALL_BYTES_MAX, Environments environments::set_settings, "environment.protect";
    POST "/api/esc/environments/{org}/{project}/{environment}/encrypt-secrets" Token Plan SECRETS_BYTES_MAX, Environments environments::encrypt_secrets;
    POST "/api/esc/environments/{org}/{project}/{environment}/decrypt-secrets" Token Plan SECRETS_BYTES_MAX, Environments environments::decrypt_secrets, "environment.decrypt";
    GET "/api/esc/environments/{org}/{project}/{environment}/versions" Token Plan 0, Environments environments::revisions;
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/tags" Token Plan 0, Environments environments::revision_tags;
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/tags" Token Apply SMALL_BYTES_MAX, Environments environments::add_revision_tag, "environment.tag";
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" Token Plan 0, Environments environments::get_revision_tag;
    PATCH "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" Token Apply SMALL_BYTES_MAX, Environments environments::move_revision_tag, "environment.tag";
    DELETE "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" Token Apply 0, Environments environments::remove_revision_tag, "environment.tag";
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/{version}" Token Plan 0, Environments environments::get;
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/decrypt" Token Plan 0, Environments environments::decrypt, "environment.decrypt";
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/open" Token Plan 0, Environments environments::open, "environment.open";
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/retract" Token Member SMALL_BYTES_MAX, Environments environments::retract, "environment.retract";
    GET "/api/esc/environments/{org}/{project}/{environment}/tags" Token Plan 0, Environments environments::list_tags;
    POST "/api/esc/environments/{org}/{project}/{environment}/tags" Token Apply SMALL_BYTES_MAX, Environments environments::add_tag, "environment.tag";
    GET "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" Token Plan 0, Environments environments::get_tag;
    PATCH "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" Token Apply SMALL_BYTES_MAX, Environments environments::edit_tag, "environment.tag";
    DELETE "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" Token Apply 0, Environments environments::remove_tag, "environment.tag";
    GET "/api/openapi" Nobody Nothing 0, Read openapi::document;
    GET "/api/openapi/pulumi-spec.json" Nobody Nothing 0, Read openapi::document;
    GET "/tfstate/{guid}" Run Plan 0, Tfstate tfstate::get, "state.read";
    POST "/tfstate/{guid}" Run Apply STATE_BYTES_MAX, Tfstate tfstate::write, "state.write";
    DELETE "/tfstate/{guid}" State Member 0, Tfstate tfstate::remove, "state.delete";
    POST "/tfstate/{guid}/lock" State Plan LOCK_BYTES_MAX, Tfstate tfstate::lock, "state.lock";
    DELETE "/tfstate/{guid}/lock" Run Plan LOCK_BYTES_MAX, Tfstate tfstate::unlock, "state.unlock";
    GET "/tfstate/{guid}/outputs" State Outputs 0, Tfstate tfstate::outputs, "state.outputs";
    GET "/tfstate/{org}/{project}" Run Plan 0, Tfstate tfstate::get, "state.read";
    POST "/tfstate/{org}/{project}" Run Apply STATE_BYTES_MAX, Tfstate tfstate::write, "state.write";
    DELETE "/tfstate/{org}/{project}" State Member 0, Tfstate tfstate::remove, "state.delete";
    POST "/tfstate/{org}/{project}/lock" State Plan LOCK_BYTES_MAX, Tfstate tfstate::lock, "state.lock";
    DELETE "/tfstate/{org}/{project}/lock" Run Plan LOCK_BYTES_MAX, Tfstate tfstate::unlock, "state.unlock";
    GET "/tfstate/{org}/{project}/outputs" State Outputs 0, Tfstate tfstate::outputs, "state.outputs";
    GET "/tfstate/{org}/{project}/{state}" Run Plan 0, Tfstate tfstate::get, "state.read";
    POST "/tfstate/{org}/{project}/{state}" Run Apply STATE_BYTES_MAX, Tfstate tfstate::write, "state.write";
    DELETE "/tfstate/{org}/{project}/{state}" State Member 0, Tfstate tfstate::remove, "state.delete";
    POST "/tfstate/{org}/{project}/{state}/lock" State Plan LOCK_BYTES_MAX, Tfstate tfstate::lock, "state.lock";
    DELETE "/tfstate/{org}/{project}/{state}/lock" Run Plan LOCK_BYTES_MAX, Tfstate tfstate::unlock, "state.unlock";
    GET "/tfstate/{org}/{project}/{state}/outputs" State Outputs 0, Tfstate tfstate::outputs, "state.outputs";
    GET "/api/orgs/{org}/tfstates" Token Outputs 0, Tfstate states::list;
    POST "/api/orgs/{org}/tfstates" Token Apply SMALL_BYTES_MAX, Tfstate states::create, "state.create";
    GET "/api/orgs/{org}/tfstates/{project}/{state}" Token Plan 0, Tfstate states::get;
    GET "/api/orgs/{org}/tfstate-locks" Token Plan 0, Tfstate states::locks;
    GET "/api/orgs/{org}/tfstate-removed" Token Plan 0, Tfstate states::removed;
    GET "/api/orgs/{org}/tfstate-policy" Token Plan 0, Tfstate states::label_policy;
    PUT "/api/orgs/{org}/tfstate-policy" Token Member SMALL_BYTES_MAX, Tfstate states::set_label_policy, "policy.set";
    GET "/api/orgs/{org}/tfstate-policy/compliance" Token Plan 0, Tfstate states::compliance;
    GET "/api/orgs/{org}/outputs" Token Outputs 0, Tfstate states::all_outputs;
    GET "/api/orgs/{org}/outputs/stack/{project}/{stack}" Token Outputs 0, Tfstate states::stack_outputs, "stack.outputs";
    GET "/api/orgs/{org}/outputs/tfstate/{project}/{state}" Token Outputs 0, Tfstate states::state_outputs, "state.outputs";
    GET "/api/tfstates/{guid}" Token Plan 0, Tfstate states::get;
    PATCH "/api/tfstates/{guid}" Token Apply SMALL_BYTES_MAX, Tfstate states::edit, "state.edit";
    DELETE "/api/tfstates/{guid}" Token Member 0, Tfstate states::remove, "state.delete";
    POST "/api/tfstates/{guid}/undelete" Token Member 0, Tfstate states::bring_back, "state.undelete";
    GET "/api/tfstates/{guid}/outputs" Token Outputs 0, Tfstate states::outputs, "state.outputs";
    GET "/api/tfstates/{guid}/schemas" Token Plan 0, Tfstate states::schemas;
    PATCH "/api/tfstates/{guid}/schemas" Token Member SMALL_BYTES_MAX, Tfstate states::set_schemas, "state.schema";
    GET "/api/tfstates/{guid}/lock" Token Plan 0, Tfstate states::lock;
    POST "/api/tfstates/{guid}/lock" Token Member LOCK_BYTES_MAX, Tfstate states::lock_by_hand, "state.lock";
    DELETE "/api/tfstates/{guid}/lock" Token Plan LOCK_BYTES_MAX, Tfstate states::unlock, "state.unlock";
    GET "/api/tfstates/{guid}/rejected" Token Plan 0, Tfstate states::rejected;
    GET "/api/tfstates/{guid}/versions" Token Plan 0, Tfstate states::versions;
    GET "/api/tfstates/{guid}/versions/{version}" Token Plan 0, Tfstate states::version;
    GET "/api/tfstates/{guid}/versions/{version}/text" Token Plan 0, Tfstate states::text, "state.download";
    GET "/api/tfstates/{guid}/versions/{version}/diff/{other}" Token Plan 0, Tfstate states::diff;
    POST "/api/tfstates/{guid}/versions/{version}/restore" Token Member 0, Tfstate states::restore, "state.restore";
    GET "/api/tfstates/{guid}/dependencies" Token Plan 0, Tfstate dependencies::dependencies;
    GET "/api/orgs/{org}/tfstate-edges" Token Plan 0, Tfstate dependencies::list;
    POST "/api/orgs/{org}/tfstate-edges" Token Member SMALL_BYTES_MAX, Tfstate dependencies::add, "edge.add";
    GET "/api/orgs/{org}/tfstate-edges/{edge}" Token Plan 0, Tfstate dependencies::get;
    PATCH "/api/orgs/{org}/tfstate-edges/{edge}" Token Member SMALL_BYTES_MAX, Tfstate dependencies::edit, "edge.edit";
    DELETE "/api/orgs/{org}/tfstate-edges/{edge}" Token Member 0, Tfstate dependencies::remove, "edge.remove";
    GET "/api/orgs/{org}/tfstate-statuses" Token Plan 0, Tfstate dependencies::statuses;
    GET "/api/orgs/{org}/tfstate-topology" Token Plan 0, Tfstate dependencies::topology;
    GET "/" Nobody Nothing 0, Read home::home;
    GET "/healthz" Nobody Nothing 0, Admin health::health;
    GET "/readyz" Nobody Nothing 0, Admin health::ready;
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
        router = router.route(route.path, on(filter, handler).layer(guard));
    }
    let table =
        router.fallback(not_supported).method_not_allowed_fallback(not_supported).with_state(app.clone());
    // Around the table: what it changes is what the table is asked.
    Router::new().fallback_service(table).layer(middleware::from_fn_with_state(app, access_log::observe))
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
    let running = crate::services::maintenance::health::updates_running(&app).await?;
    Ok(([(CONTENT_TYPE, TEXT)], app.metrics().text(running)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held<S: Serves>() -> Vec<String> {
        let rows = ROUTES.iter().zip(const { handlers::<S>() });
        rows.filter_map(|(route, handler)| handler.map(|_| route.id())).collect()
    }

    #[test]
    fn a_program_holds_the_handlers_of_its_groups_and_no_others() {
        let of = |group| ROUTES.iter().filter(|row| row.group == group).map(Route::id).collect::<Vec<_>>();
        assert_eq!(held::<Read>(), of(Group::Read));
        assert_eq!(held::<Secrets>(), of(Group::Secrets));
        assert_eq!(held::<Head>(), of(Group::Head));
        assert_eq!(held::<Log>(), of(Group::Log));
        assert_eq!(held::<Admin>(), of(Group::Admin));
        assert_eq!(held::<Tfstate>(), of(Group::Tfstate));
        assert_eq!(held::<Environments>(), of(Group::Environments));
        assert_eq!(held::<Everything>(), ROUTES.iter().map(Route::id).collect::<Vec<_>>());
    }
}
