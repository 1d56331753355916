//! Routes requests to functions by the route table.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use serde_json::Value;
use statewright_shared::api::routes::{Group, ROUTES, Route};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Options;
use crate::events::GatewayKind;
use crate::runtime::{InvokeError, Runtime};

/// The timeout of a function for a request. Source: Amazon API Gateway quotas, HTTP API, integration timeout.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// The timeout for an event of another kind. Source: AWS Lambda quotas, function timeout.
const EVENT_WITHIN: Duration = Duration::from_secs(900);

/// A listening gateway and its functions. Dropping it ends all of them.
pub struct Gateway {
    /// Its URL, such as `http://127.0.0.1:41234`, with the stage if that has a name.
    pub url: String,
    router: Router,
    runtime: Arc<Runtime>,
    server: JoinHandle<()>,
}

impl Gateway {
    /// Listens on this address. The first events start processes.
    ///
    /// # Errors
    /// When the address is not available.
    pub async fn start(address: SocketAddr, options: Options) -> io::Result<Self> {
        let Options { functions, kind, stage, between, processes_max, log } = options;
        let runtime = Arc::new(Runtime::start(functions, between, processes_max, log).await?);
        let listener = TcpListener::bind(address).await?;
        let mut url = format!("http://{}", listener.local_addr()?);
        let router = router(&runtime, kind, stage.as_deref());
        let router = match &stage {
            Some(stage) => {
                url = format!("{url}/{stage}");
                Router::new().nest_service(&format!("/{stage}"), router)
            }
            None => router,
        };
        let served = router.clone();
        let server = tokio::spawn(async move {
            // An error of a connection is the client's problem; no error ends the listener.
            let _ = axum::serve(listener, served).await;
        });
        Ok(Self { url, router, runtime, server })
    }

    /// What the gateway does with requests, without the socket.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Sends an event to a function, as a schedule does, and waits for its answer.
    ///
    /// # Errors
    /// When the function fails, or there is none of that name.
    pub async fn invoke(&self, function: &str, event: &Value) -> Result<Value, InvokeError> {
        let answer = Arc::clone(&self.runtime)
            .invoke(function.to_owned(), event.to_string().into(), EVENT_WITHIN)
            .await?;
        Ok(serde_json::from_slice(&answer).unwrap_or(Value::Null))
    }

    /// Kills the processes of a function, whatever they do, as a failing machine does.
    pub fn kill(&self, function: &str) {
        self.runtime.kill(function);
    }

    /// The number of processes that a function has had so far.
    pub fn processes_started(&self, function: &str) -> usize {
        self.runtime.started(function)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn router(runtime: &Arc<Runtime>, kind: GatewayKind, stage: Option<&str>) -> Router {
    let handler = |row: Option<&Route>| {
        let (runtime, stage) = (Arc::clone(runtime), stage.map(str::to_owned));
        let row = row.map(|row| (row.group, format!("{} {}", row.method, row.path)));
        move |request: Request| {
            let (group, route) = row.unwrap_or_else(|| otherwise(request.uri().path()));
            pass(runtime, kind, stage, group, route, request)
        }
    };
    let mut router = Router::new();
    for row in ROUTES {
        // The table has only methods that a router can distinguish.
        let Ok(method) = MethodFilter::try_from(row.method.clone()) else { continue };
        router = router.route(row.path, on(method, handler(Some(row))));
    }
    router.method_not_allowed_fallback(handler(None)).fallback(handler(None))
}

/// The function for requests without a row, with the key of that route.
fn otherwise(path: &str) -> (Group, String) {
    let group = Group::otherwise(path);
    let route = group.root().filter(|root| path.starts_with(root));
    (group, route.map_or_else(|| "$default".to_owned(), |root| format!("ANY {root}{{proxy+}}")))
}

async fn pass(
    runtime: Arc<Runtime>,
    kind: GatewayKind,
    stage: Option<String>,
    group: Group,
    route: String,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, kind.bytes_max()).await else { return kind.too_long() };
    // The event's path begins with the stage, if that has a name.
    if let Some(uri) = stage.as_deref().and_then(|stage| with_stage(&parts.uri, stage)) {
        parts.uri = uri;
    }
    let event = Bytes::from(kind.event(&parts, stage.as_deref(), &route, &body).to_string());
    if event.len() > kind.bytes_max() {
        return kind.too_long();
    }
    match runtime.invoke(group.name().to_owned(), event, ANSWER_WITHIN).await {
        Ok(answer) => kind.answer(&answer),
        Err(InvokeError::TimedOut) => kind.timed_out(),
        Err(_) => kind.failed(),
    }
}

fn with_stage(uri: &Uri, stage: &str) -> Option<Uri> {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    format!("/{stage}{path}").parse().ok()
}
