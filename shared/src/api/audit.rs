//! Who did what to which stack: one record for each request that a row of the route table marks as an action, and for any other that
//! is refused for its credentials or its rights.

use std::sync::Arc;

use serde::Serialize;

use crate::context::Context;
use crate::ports::Timestamp;

/// The action of a request that was refused, where its row has none.
pub const REFUSED: &str = "access";

/// How an action ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Result {
    /// It was done.
    Done,
    /// It was refused: nothing happened.
    Refused,
    /// It failed, or its client went before the answer was there. It may have happened.
    Unknown,
}

/// One record. Serialized it is the JSON object of one line; what is not known is absent.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// When the answer was there, RFC 3339 in UTC.
    #[serde(serialize_with = "rfc3339")]
    pub time: Timestamp,
    /// What was asked for, such as `stack.rename`.
    pub action: &'static str,
    /// How it ended.
    pub result: Result,
    /// The status of the answer; absent where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Who asked; with the credentials of an update, who got them. Absent where the credentials were not good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The login that a wrong password was shown for, whether there is such a user or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried: Option<String>,
    /// The name of the access token that was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The organization.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// The project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The Terraform state, by its id or by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// The update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<String>,
    /// What else there is to say, in few words: the new name, the outcome, how many secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The address that the connection came from; behind a proxy, the proxy's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The request's ID, as in the log and in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

fn rfc3339<S: serde::Serializer>(time: &Timestamp, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_rfc3339())
}

/// Where records go.
pub trait AuditLog: Send + Sync + 'static {
    /// Keeps a record. Called once for each, before its answer is sent; it tells nobody when it fails but the log.
    fn keep(&self, record: &Record);
}

/// Has this log keep a record of each update that ends in this process because its lease is over, though no request asks for that.
pub fn keep_lapses(ctx: &Context, audit: Arc<dyn AuditLog>) {
    let clock = Arc::clone(&ctx.clock);
    // A context that is served twice has its log already.
    let _ = ctx.on_lapse.set(Box::new(move |id, update| {
        let by = &update.requester;
        let words = format!("failed, by its lease that was over; begun by {} ({})", by.login, by.token);
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
            detail: Some(words),
            from: None,
            request_id: None,
        });
    }));
}
