//! The audit log: who did what to which stack, state or environment. It gets one record for each request that
//! the route table marks as an action, and for each other request that is refused for its credentials or its
//! rights.

use std::sync::Arc;

use serde::Serialize;

use crate::context::Context;
use crate::ports::Timestamp;

/// The action of a refused request whose route has none.
pub const REFUSED: &str = "access";

/// The result of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Result {
    /// The action was done.
    Done,
    /// The request was refused and changed nothing.
    Refused,
    /// The request failed, or its client disconnected before the answer was ready. The action may have been
    /// done.
    Unknown,
}

/// One record, which serializes to the JSON object of one line. Unknown members are absent.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// When the answer was ready, as RFC 3339 in UTC.
    #[serde(serialize_with = "rfc3339")]
    pub time: Timestamp,
    /// The action, such as `stack.rename`.
    pub action: &'static str,
    /// The result of the action.
    pub result: Result,
    /// The status of the answer; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The user who sent the request. For an update's token: the user who started the update. Absent if the
    /// credentials were not valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The login that came with a wrong password, whether there is such a user or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<String>,
    /// The name of the access token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The organization that the request is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// The project that the request is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The stack that the request is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The Terraform state, by its ID or its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The environment that the request is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The update that the request is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<String>,
    /// More about the action, in short: the new name, the outcome, the number of secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The address that the connection came from; behind a proxy, the proxy's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The request's ID, which the log and the answer have too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

fn rfc3339<S: serde::Serializer>(time: &Timestamp, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_rfc3339())
}

/// Where audit records are written.
pub trait AuditLog: Send + Sync + 'static {
    /// Writes a record. Called once for each record, before the answer is sent. A failure to write goes to
    /// the log only.
    fn keep(&self, record: &Record);
}

/// Makes this log record each update that this process ends because the lease expired, which no request asks
/// for.
pub fn keep_lapses(ctx: &Context, audit: Arc<dyn AuditLog>) {
    let clock = Arc::clone(&ctx.clock);
    // A context that is served twice already has a log.
    let _ = ctx.on_lapse.set(Box::new(move |id, update| {
        let by = &update.requester;
        let detail = format!("failed, because its lease ran out; begun by {} ({})", by.login, by.token);
        audit.keep(&Record {
            time: clock.now(),
            action: "update.end",
            result: Result::Done,
            status: None,
            user: None,
            tried: None,
            token: None,
            organization: None,
            project: None,
            stack: None,
            state: None,
            environment: None,
            update: Some(id.to_string()),
            detail: Some(detail),
            from: None,
            request_id: None,
        });
    }));
}
