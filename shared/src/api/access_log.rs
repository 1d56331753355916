//! The access log: when a request ends, it gets one log line, its metrics, and an audit record if it is an
//! action.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::app::App;
use super::audit::{self, Record, Result as Outcome};
use super::error::{CountedAs, Failure, OperatorNote};
use super::extensions::{Peer, RequestId};
use super::metrics::Seen;
use super::request_context::{RequestContext, RequestFacts};
use super::tfstate_methods;
use crate::domain::names::OrgName;
use crate::layout::{AuditEntry, AuditRecord, AuditResult};
use crate::ports::Timestamp;
use crate::services::audit::{Act, keep_in_each, keep_summed};
use crate::services::states::StateRef;

/// Gives a request its ID and its context, rewrites it to the method and path of the route table, and reports
/// its result.
pub(super) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let watched = Watched::begin(app, &mut request);
    let act = Arc::clone(watched.context.act());
    let answering = async {
        match tfstate_methods::normalize(request) {
            Ok(request) => next.run(request).await,
            Err(refused) => *refused,
        }
    };
    let mut response = act.during(answering).await;
    watched.keep(&mut response).await;
    if response.status() == StatusCode::REQUEST_TIMEOUT && watched.version <= Version::HTTP_11 {
        // The rest of the body may still arrive and must not be read as another request.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    watched.end(&mut response);
    response
}

/// A request that has not ended. If it is dropped, the client disconnected before the answer was ready, and
/// that is recorded too.
struct Watched {
    app: App,
    context: RequestContext,
    method: Method,
    version: Version,
    since: Timestamp,
    request_id: String,
    request_bytes: u64,
    peer: Option<Peer>,
    is_over: bool,
}

/// The organizations whose trails get a record of a person's sign-in or token, at most: each costs a write.
const TRAILS_MAX: usize = 8;

/// A record to store.
struct ToKeep {
    entry: AuditEntry,
    /// Other trails that get it.
    also: Vec<OrgName>,
    /// Whether such requests are frequent, so that they are summed up.
    is_frequent: bool,
}

/// The result of a request.
#[derive(Default)]
struct Answered {
    status: Option<StatusCode>,
    bytes: u64,
    note: Option<OperatorNote>,
    counted_as: Option<CountedAs>,
}

impl Answered {
    /// Whether the credentials, or what they allow, were the reason to refuse. To a caller who is not a
    /// member, everything in an organization looks as if it did not exist.
    fn was_access_refused(&self, facts: &RequestFacts) -> bool {
        match self.status {
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => true,
            Some(status) => facts.is_foreign() && status.is_client_error(),
            None => false,
        }
    }
}

impl Watched {
    fn begin(app: App, request: &mut Request) -> Self {
        app.metrics().begin();
        let request_id = match request.extensions().get() {
            Some(RequestId(id)) => id.clone(),
            None => trace(request.headers()).unwrap_or_else(|| app.ids.uuid().simple().to_string()),
        };
        let peer: Option<Peer> = request.extensions().get().copied();
        let from = peer.map(|Peer(address)| address.to_string());
        let context = RequestContext::new(Act::new(Some(request_id.clone()), from));
        request.extensions_mut().insert(context.clone());
        Self {
            context,
            method: request.method().clone(),
            version: request.version(),
            since: app.now(),
            request_id,
            request_bytes: request.body().size_hint().lower(),
            peer,
            is_over: false,
            app,
        }
    }

    /// Stores the audit record of a request, unless a commit stored it. An answer without its record is not sent: it
    /// may show a secret.
    async fn keep(&self, response: &mut Response) {
        let Some(ToKeep { entry, also, is_frequent }) = self.entry(response.status()) else { return };
        let is_done = entry.record.result == AuditResult::Done;
        let kept = match is_frequent {
            true => keep_summed(&self.app, entry, &also).await,
            false => keep_in_each(&self.app, entry, &also).await,
        };
        match kept {
            Ok(()) => {}
            Err(error) if is_done => *response = Failure::from(error).into_response(),
            Err(error) => {
                let (error, request_id) = (&error as &dyn std::error::Error, self.request_id.as_str());
                tracing::error!(error, request_id, "cannot store the audit record of a request");
            }
        }
    }

    /// The entry of this request for the audit trail. Requests without valid credentials have none, and neither have
    /// those of functions that only read or append, nor refusals about an organization that the caller is not a member
    /// of: it must look like a missing one, also by the calls of the store. What a person did with their own sign-ins
    /// and tokens is for their organizations too.
    fn entry(&self, status: StatusCode) -> Option<ToKeep> {
        let facts = self.context.facts();
        let (route, by) = (facts.route?, self.context.act().caller()?);
        if !route.group.keeps_trail() {
            return None;
        }
        let answered = Answered { status: Some(status), ..Answered::default() };
        let refused = answered.was_access_refused(&facts).then_some(audit::REFUSED);
        let action = route.action.or(refused)?;
        let result = match status {
            status if status.is_success() || status.is_redirection() => AuditResult::Done,
            status if status.is_client_error() => AuditResult::Refused,
            _ => AuditResult::Unknown,
        };
        if result == AuditResult::Done && self.context.act().is_stored() {
            return None;
        }
        let trail = facts.organization_of_member().cloned();
        let is_about_an_organization = route.needs.is_some() || facts.is_foreign();
        if trail.is_none() && is_about_an_organization && result != AuditResult::Done {
            return None;
        }
        let is_own = by.of.is_user() && facts.organization().is_none() && result == AuditResult::Done;
        let also = match is_own {
            true => facts.orgs_of_person.iter().take(TRAILS_MAX).cloned().collect(),
            false => Vec::new(),
        };
        let mut record = AuditRecord::new(self.app.now(), action);
        record.result = result;
        record.set_caller(by);
        record.org = facts.organization().filter(|_| trail.is_none()).cloned();
        record.project = facts.project.clone().map(Into::into);
        record.stack = facts.stack.clone().map(Into::into);
        record.state = facts.state.as_ref().map(|state| match state {
            StateRef::Name(address) => address.state.to_string(),
            StateRef::Id(id) => id.to_string(),
        });
        record.environment = facts.environment.clone().map(Into::into);
        record.update = facts.update.map(|update| update.to_string());
        record.detail = facts.detail.clone();
        record.from = self.peer.map(|Peer(address)| address.to_string());
        record.request = Some(self.request_id.clone());
        let is_frequent = result != AuditResult::Done || route.is_frequent();
        Some(ToKeep { entry: AuditEntry { trail, record }, also, is_frequent })
    }

    fn end(mut self, response: &mut Response) {
        if let Ok(value) = HeaderValue::from_str(&self.request_id) {
            response.headers_mut().insert("X-Pulumi-Request-ID", value);
        }
        let extensions = response.extensions_mut();
        let (note, counted_as) = (extensions.remove(), extensions.remove());
        let (status, bytes) = (Some(response.status()), response.body().size_hint().lower());
        self.report(&Answered { status, bytes, note, counted_as });
    }

    fn report(&mut self, answered: &Answered) {
        self.is_over = true;
        let now = self.app.now();
        let duration = now.since(self.since);
        let facts = std::mem::take(&mut *self.context.facts());
        self.app.metrics().end(&Seen {
            route: facts.route,
            status: answered.status.map(|status| status.as_u16()),
            duration,
            request_bytes: self.request_bytes,
            answer_bytes: answered.bytes,
            refused_for: answered.counted_as.map(|CountedAs(reason)| reason),
        });
        self.log(&facts, duration, answered);
        if let Some((audit, route)) = self.app.audit().zip(facts.route)
            && let Some(action) =
                route.action.or_else(|| answered.was_access_refused(&facts).then_some(audit::REFUSED))
        {
            audit.keep(&self.record(facts, action, now, answered.status));
        }
    }

    /// Logs a failure of the server as an error with its chain of causes, and any other request as an access
    /// log line.
    fn log(&self, facts: &RequestFacts, duration: Duration, answered: &Answered) {
        let request_id = self.request_id.as_str();
        let method = self.method.as_str();
        let http = tracing::field::debug(self.version);
        let route = facts.route.map_or("-", |route| route.path);
        let status = answered.status.map(|status| status.as_u16());
        let duration_ms = duration.as_secs_f64() * 1000.0;
        let (request_bytes, answer_bytes) = (self.request_bytes, answered.bytes);
        let user = facts.user.as_ref().map(tracing::field::display);
        let stack = match (&facts.org, &facts.project, &facts.stack) {
            (Some(org), Some(project), Some(stack)) => Some(format!("{org}/{project}/{stack}")),
            _ => None,
        };
        let update = facts.update.as_ref().map(tracing::field::display);
        let state = facts.state.as_ref().map(tracing::field::display);
        let environment = match (&facts.org, &facts.project, &facts.environment) {
            (Some(org), Some(project), Some(name)) => Some(format!("{org}/{project}/{name}")),
            _ => None,
        };
        let from = self.peer.map(|Peer(address)| tracing::field::display(address));
        if answered.status.is_some_and(|status| status.is_server_error()) {
            let note = answered.note.as_ref().map(|OperatorNote(note)| note.as_str());
            tracing::error!(
                target: "access", method, route, status, duration_ms, user, stack, state, environment, update, request_bytes, answer_bytes,
                http, from, request_id, note, "request failed"
            );
        } else {
            tracing::info!(
                target: "access", method, route, status, duration_ms, user, stack, state, environment, update, request_bytes, answer_bytes,
                http, from, request_id, "request"
            );
        }
    }

    fn record(
        &self,
        facts: RequestFacts,
        action: &'static str,
        time: Timestamp,
        status: Option<StatusCode>,
    ) -> Record {
        let result = match status {
            Some(status) if status.is_success() || status == StatusCode::SEE_OTHER => Outcome::Done,
            Some(status) if status.is_client_error() => Outcome::Refused,
            Some(_) | None => Outcome::Unknown,
        };
        let organization = facts.organization().cloned().map(Into::into);
        Record {
            time,
            action,
            result,
            status: status.map(|status| status.as_u16()),
            user: facts.user.map(Into::into),
            tried: facts.tried.map(Into::into),
            token: facts.token.map(Into::into),
            organization,
            project: facts.project.map(Into::into),
            stack: facts.stack.map(Into::into),
            state: facts.state.map(|state| state.to_string()),
            environment: facts.environment.map(Into::into),
            update: facts.update.map(|update| update.to_string()),
            detail: facts.detail,
            from: self.peer.map(|Peer(address)| address.to_string()),
            request_id: Some(self.request_id.clone()),
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.is_over {
            self.report(&Answered::default());
        }
    }
}

/// The trace and the span that a client sends with its request, `<32 hex digits>-<16 hex digits>`. As the
/// request's ID, they link the client's traces and our log. Source: W3C Trace Context, `traceparent`, version
/// 00.
fn trace(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let (ids, _flags) = text.strip_prefix("00-")?.rsplit_once('-')?;
    let (trace, span) = ids.split_once('-')?;
    let is_id = |id: &str, length: usize| {
        id.len() == length
            && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            && id.bytes().any(|byte| byte != b'0')
    };
    (is_id(trace, 32) && is_id(span, 16)).then(|| ids.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_trace_of_the_client_becomes_the_request_id() {
        let found = |text: &str| {
            trace(&HeaderMap::from_iter([("traceparent".parse().unwrap(), text.parse().unwrap())]))
        };
        let ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
        assert_eq!(found(&format!("00-{ids}-01")).as_deref(), Some(ids));
        for bad in [
            "",
            "00",
            "00--",
            ids,
            &format!("01-{ids}-01"),
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-\"-01",
        ] {
            assert_eq!(found(bad), None, "{bad}");
        }
    }
}
