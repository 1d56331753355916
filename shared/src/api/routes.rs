//! The route table: every route once, with its credentials, its body limit, its group and its handler.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::error::{Failure, OperatorNote};
use super::handlers::{admin, head, history, log, nothing, read, secrets};
use super::unsupported::unsupported;
use super::{App, auth};
use crate::limits::{BATCH_BYTES_MAX, DEPLOYMENT_BYTES_MAX, REQUEST_BYTES_MAX, SECRETS_BYTES_MAX};

/// The credentials that a route demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// None.
    Nobody,
    /// A person's access token: `Authorization: token …`.
    Token,
    /// The token of the update in the path: `Authorization: update-token …`.
    UpdateToken,
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
    handler: fn(MethodFilter) -> MethodRouter<App>,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ({:?}, {:?})", self.method, self.path, self.auth, self.group)
    }
}

macro_rules! routes {
    ($($method:ident $path:literal $auth:ident $body:expr, $group:ident $handler:path;)*) => {
        &[$(Route {
            method: Method::$method,
            path: $path,
            auth: Auth::$auth,
            body_bytes_max: $body,
            group: Group::$group,
            handler: |method| on(method, $handler),
        }),*]
    };
}

/// All routes. Paths follow pulumi v3.274.1, `pkg/backend/httpstate/client/api_endpoints.go`.
pub static ROUTES: &[Route] = routes![
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
    POST "/api/stacks/{org}/{project}" Token DEPLOYMENT_BYTES_MAX, Head head::create_stack;
    GET "/api/stacks/{org}/{project}/{stack}" Token 0, Read read::get_stack;
    DELETE "/api/stacks/{org}/{project}/{stack}" Token 0, Head head::delete_stack;
    PATCH "/api/stacks/{org}/{project}/{stack}/tags" Token REQUEST_BYTES_MAX, Head head::set_tags;
    POST "/api/stacks/{org}/{project}/{stack}/rename" Token REQUEST_BYTES_MAX, Head head::rename;
    POST "/api/stacks/{org}/{project}/{stack}/transfer" Token REQUEST_BYTES_MAX, Head head::transfer;
    POST "/api/stacks/{org}/{project}/{stack}/encrypt" Token SECRETS_BYTES_MAX, Secrets secrets::encrypt;
    POST "/api/stacks/{org}/{project}/{stack}/decrypt" Token SECRETS_BYTES_MAX, Secrets secrets::decrypt;
    POST "/api/stacks/{org}/{project}/{stack}/batch-encrypt" Token SECRETS_BYTES_MAX, Secrets secrets::batch_encrypt;
    POST "/api/stacks/{org}/{project}/{stack}/batch-decrypt" Token SECRETS_BYTES_MAX, Secrets secrets::batch_decrypt;
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-decryption" Token REQUEST_BYTES_MAX, Secrets secrets::log_decryption;
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-batch-decryption" Token REQUEST_BYTES_MAX, Secrets secrets::log_decryption;
    GET "/api/stacks/{org}/{project}/{stack}/export" Token 0, Read read::export;
    GET "/api/stacks/{org}/{project}/{stack}/export/{version}" Token 0, Read read::export_version;
    POST "/api/stacks/{org}/{project}/{stack}/import" Token DEPLOYMENT_BYTES_MAX, Head head::import;
    GET "/api/stacks/{org}/{project}/{stack}/outputs" Token 0, Read read::outputs;
    GET "/api/stacks/{org}/{project}/{stack}/policypacks" Token 0, Read nothing::required_policies;
    GET "/api/stacks/{org}/{project}/{stack}/policygroups" Token 0, Read nothing::stack_policy_groups;
    GET "/api/stacks/{org}/{project}/{stack}/updates" Token 0, Read history::history;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest" Token 0, Read history::latest_update;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/previews" Token 0, Read history::latest_previews;
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/timeline" Token 0, Read history::latest_timeline;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}" Token 0, Read history::update_of_version;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/summary" Token 0, Read history::summary_of_version;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/previews" Token 0, Read history::previews_of_version;
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/timeline" Token 0, Read history::timeline_of_version;
    POST "/api/stacks/{org}/{project}/{stack}/update" Token REQUEST_BYTES_MAX, Head head::create_update;
    POST "/api/stacks/{org}/{project}/{stack}/preview" Token REQUEST_BYTES_MAX, Head head::create_preview;
    POST "/api/stacks/{org}/{project}/{stack}/refresh" Token REQUEST_BYTES_MAX, Head head::create_refresh;
    POST "/api/stacks/{org}/{project}/{stack}/destroy" Token REQUEST_BYTES_MAX, Head head::create_destroy;
    POST "/api/stacks/{org}/{project}/{stack}/begin-update" Token REQUEST_BYTES_MAX, Head head::begin_update;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" Token REQUEST_BYTES_MAX, Head head::start_update;
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" Token 0, Read read::update_status;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/cancel" Token REQUEST_BYTES_MAX, Head head::cancel;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/renew_lease" UpdateToken REQUEST_BYTES_MAX, Head head::renew_lease;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/complete" UpdateToken REQUEST_BYTES_MAX, Head head::complete;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/journalentries" UpdateToken BATCH_BYTES_MAX, Log log::journal_entries;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpoint" UpdateToken DEPLOYMENT_BYTES_MAX, Log log::checkpoint;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointverbatim" UpdateToken DEPLOYMENT_BYTES_MAX, Log log::checkpoint_verbatim;
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointdelta" UpdateToken BATCH_BYTES_MAX, Log log::checkpoint_delta;
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events/batch" UpdateToken BATCH_BYTES_MAX, Log log::events;
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" Token 0, Read read::events;
    GET "/healthz" Nobody 0, Admin admin::health;
];

/// A router of all routes that belong to one of these groups.
pub fn router(app: App, groups: &[Group]) -> Router {
    let mut router = Router::new();
    for route in ROUTES.iter().filter(|route| groups.contains(&route.group)) {
        let filter = MethodFilter::try_from(route.method.clone())
            .expect("the table holds only methods that a router can tell apart");
        let guard = middleware::from_fn_with_state((Arc::clone(&app), route), auth::guard);
        router = router.route(route.path, (route.handler)(filter).layer(guard));
    }
    router
        .fallback(not_supported)
        .method_not_allowed_fallback(not_supported)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), observe))
        .with_state(app)
}

/// Whatever is not in the table. The body has the integer code without which the CLI does not see a 404.
async fn not_supported(request: Request) -> Failure {
    unsupported(request.method(), request.uri().path())
}

/// One log line a request; failures of ours also get their story, and an ID that the CLI shows.
async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let since = app.now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    let status = response.status();
    let route = route.as_ref().map_or("-", MatchedPath::as_str);
    let duration: Duration = app.now().since(since);
    let duration_ms = duration.as_secs_f64() * 1000.0;
    let note = response.extensions_mut().remove::<OperatorNote>();
    if status.is_server_error() {
        let request_id = app.ids.uuid().to_string();
        let note = note.map_or_else(String::new, |OperatorNote(note)| note);
        tracing::error!(%method, route, status = status.as_u16(), duration_ms, request_id, note, "request failed");
        if let Ok(value) = HeaderValue::from_str(&request_id) {
            response.headers_mut().insert("X-Pulumi-Request-ID", value);
        }
    } else {
        tracing::info!(%method, route, status = status.as_u16(), duration_ms, "request");
    }
    response
}
