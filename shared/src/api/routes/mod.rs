//! The table of routes, and the routers made of it. Each part of the table has a file.

use std::sync::OnceLock;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use bytes::Bytes;

use super::app::App;
use super::error::Failure;
use super::handlers;
use super::path::OrgPath;
use super::response::{self, json_text};
use super::route::Answered::Json;
use super::route::Shapes;
use super::shapes::{anything, of};
use super::unsupported::unsupported;
use super::{access_log, auth};
use crate::services::caller::Caller;
use crate::wire::audit::EventTypes as EventTypeList;

#[macro_use]
mod row;

mod access;
mod audit;
mod dependencies;
mod empty;
mod environments;
mod history;
mod identity;
mod pages;
mod resources;
mod server;
mod stacks;
mod states;
mod tfstate;
mod updates;

use self::row::{Erased, Part};

pub use super::parameters::{Parameter, ParameterForm};
pub use super::route::{
    Account, Admin, Auth, Console, Environments, Everything, Group, Head, Log, Read, Route, Routes, Secrets,
    Serves, Tfstate,
};

/// The table of these parts. Generated pages list the routes in its order, and tests walk it in its order.
macro_rules! table {
    ($($part:ty),* $(,)?) => {
        /// All routes.
        ///
        /// Some requests need more than their row demands, because of the body or of what is stored: an
        /// update that is not a preview, or the lock of another user. The code that learns the fact checks
        /// it.
        ///
        /// Paths follow pulumi v3.274.1, `pkg/backend/httpstate/client/api_endpoints.go`.
        pub static ROUTES: Routes = Routes(&[$(<$part as Part>::ROUTES),*]);

        /// The shapes of each row, by part.
        static SHAPES: &[&[Shapes]] = &[$(<$part as Part>::SHAPES),*];

        /// The handler of each row that the program serves.
        fn handlers_of<S: Serves>() -> Vec<Option<Erased>> {
            [$(<$part as Part>::handlers::<S>()),*].concat()
        }
    };
}

table![
    identity::Rows,
    audit::Rows,
    AuditActions,
    access::Rows,
    empty::Rows,
    stacks::Rows,
    history::Rows,
    resources::Rows,
    updates::Rows,
    environments::Rows,
    Document,
    tfstate::Rows,
    states::Rows,
    dependencies::Rows,
    pages::Rows,
    server::Rows,
];

// The handlers of these rows read the whole table, so they are in its file.

rows! {
    AuditActions

    /// List the actions of audit records
    GET "/api/orgs/{org}/auditlogs/event-types" => event_types {
        auth: Token, needs: Audit, group: Account,
        answer: Json(of::<EventTypeList>), id: ListAuditLogEventTypes,
    }
}

rows! {
    Document

    /// Get this API as an OpenAPI document
    GET "/api/openapi" => document {
        auth: Public, needs: Nothing, group: Read,
        answer: Json(anything), id: GetDocument,
    }
    /// Get the same document, at the path of Pulumi Cloud
    GET "/api/openapi/pulumi-spec.json" => document {
        auth: Public, needs: Nothing, group: Read,
        answer: Json(anything), id: FetchRestSpecification,
    }
}

/// The OpenAPI document, as JSON text.
pub fn openapi() -> Bytes {
    // Anyone may request it, so it is made once.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    DOCUMENT
        .get_or_init(|| {
            let rows = ROUTES.iter().zip(SHAPES.iter().copied().flatten());
            handlers::openapi::document(rows).to_string().into()
        })
        .clone()
}

/// Answers with the document, also at the path of Pulumi Cloud's own.
async fn document() -> response::Answer {
    Ok(json_text(openapi()))
}

/// Answers with the actions of the audit trail, described by the rows that have them.
async fn event_types(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> response::Answer {
    handlers::audit::event_types(&app, &caller, &org, ROUTES).await
}

/// A router of all routes that a program serves.
pub fn router<S: Serves>(app: impl Into<App>) -> Router {
    let app = app.into();
    let mut router = Router::new();
    for (route, handler) in ROUTES.iter().zip(handlers_of::<S>()) {
        let Some(handler) = handler else { continue };
        let filter = MethodFilter::try_from(route.method.clone())
            .expect("the table holds only methods that a router can tell apart");
        let guard = middleware::from_fn_with_state((app.clone(), route), auth::guard);
        router = router.route(route.path, on(filter, handler).layer(guard));
    }
    let table =
        router.fallback(not_supported).method_not_allowed_fallback(not_supported).with_state(app.clone());
    // Around the table: this layer rewrites the method and path before the table sees them.
    Router::new().fallback_service(table).layer(middleware::from_fn_with_state(app, access_log::observe))
}

/// Whether the first part of a path is that of a route. Names of organizations, which other paths begin with, are
/// of the console.
pub fn has_path_like(path: &str) -> bool {
    let Some(asked) = first_part(path) else { return false };
    ROUTES.iter().any(|route| first_part(route.path) == Some(asked))
}

fn first_part(path: &str) -> Option<&str> {
    path.split('/').find(|part| !part.is_empty())
}

/// Answers a request that the table does not have. Without the integer code in the body, the CLI does not
/// recognize a 404.
async fn not_supported(request: Request) -> Failure {
    unsupported(request.method(), request.uri().path())
}

/// A router with the metrics only. Serve it on a separate address, since metrics reveal what the server is
/// used for.
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::names::check_new_owner;
    use crate::services::audit::actions::ACTIONS;

    fn held<S: Serves>() -> Vec<String> {
        let rows = ROUTES.iter().zip(handlers_of::<S>());
        rows.filter_map(|(route, handler)| handler.map(|_| route.id())).collect()
    }

    #[test]
    fn each_route_has_a_unique_name_and_path_in_the_document() {
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for route in ROUTES {
            assert!(!route.summary.is_empty(), "{route:?} has no summary");
            assert!(names.insert(route.operation), "{} twice", route.operation);
            assert!(paths.insert((route.method.as_str(), route.path_in_document())), "{route:?} twice");
        }
    }

    #[test]
    fn no_new_organization_has_the_name_of_a_path() {
        for first in ROUTES.iter().filter_map(|route| first_part(route.path)) {
            assert!(check_new_owner(first).is_err(), "{first}");
        }
    }

    #[test]
    fn the_first_part_of_a_path_tells_routes_from_pages() {
        for path in
            ["/api/user", "/api", "/tfstate/x", "/signin", "/user/settings/none", "/healthz", "//api/user"]
        {
            assert!(has_path_like(path), "{path}");
        }
        for path in ["/", "", "/main", "/main/api/dev", "/apis", "/main/-/locks"] {
            assert!(!has_path_like(path), "{path}");
        }
    }

    #[test]
    fn each_action_is_on_the_list_of_actions() {
        for route in ROUTES.iter().filter(|route| route.group.keeps_trail()) {
            if let Some(action) = route.action {
                assert!(ACTIONS.contains(&action), "{route:?}: {action}");
            }
        }
    }

    #[test]
    fn a_program_contains_only_the_handlers_of_its_groups() {
        let of = |group| ROUTES.iter().filter(|row| row.group == group).map(Route::id).collect::<Vec<_>>();
        assert_eq!(held::<Read>(), of(Group::Read));
        assert_eq!(held::<Secrets>(), of(Group::Secrets));
        assert_eq!(held::<Head>(), of(Group::Head));
        assert_eq!(held::<Log>(), of(Group::Log));
        assert_eq!(held::<Admin>(), of(Group::Admin));
        assert_eq!(held::<Account>(), of(Group::Account));
        assert_eq!(held::<Tfstate>(), of(Group::Tfstate));
        assert_eq!(held::<Environments>(), of(Group::Environments));
        assert_eq!(held::<Console>(), of(Group::Console));
        assert_eq!(held::<Everything>(), ROUTES.iter().map(Route::id).collect::<Vec<_>>());
    }
}
