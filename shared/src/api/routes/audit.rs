//! The rows of the audit trail.

use crate::api::handlers::audit;
use crate::api::parameters as query;
use crate::api::route::Answered::{Json, Text};
use crate::api::shapes::of;
use crate::wire::audit::AuditLogEvents;

rows! {
    Rows

    /// List the audit records of an organization, newest first; `startTime` is the latest time
    GET "/api/orgs/{org}/auditlogs" => audit::list_v1 {
        auth: Token, needs: Audit, group: Account, audit: "audit.read",
        query: [
            query::CONTINUATION, query::LATEST, query::OF_USER, query::OF_USER_SHORT, query::OF_EVENT,
            query::OF_EVENT_TYPE, query::OF_STACK, query::OF_STATE,
        ],
        answer: Json(of::<AuditLogEvents>), id: ListAuditLogEventsHandlerV1,
    }
    /// List the audit records of an organization, newest first
    GET "/api/orgs/{org}/auditlogs/v2" => audit::list {
        auth: Token, needs: Audit, group: Account, audit: "audit.read",
        query: [
            query::CONTINUATION, query::START, query::END, query::OF_USER, query::OF_USER_SHORT,
            query::OF_EVENT, query::OF_EVENT_TYPE, query::OF_STACK, query::OF_STATE, query::ORDER,
            query::WHOLE,
        ],
        answer: Json(of::<AuditLogEvents>), id: ListAuditLogEventsHandlerV2,
    }
    /// Export audit records as compressed CSV or CEF; `startTime` is the latest time
    GET "/api/orgs/{org}/auditlogs/export" => audit::export_v1 {
        auth: Token, needs: Audit, group: Account, audit: "audit.export",
        query: [
            query::CONTINUATION, query::LATEST, query::OF_USER, query::OF_USER_SHORT, query::OF_EVENT,
            query::OF_EVENT_TYPE, query::OF_STACK, query::OF_STATE, query::TEXT_FORM,
        ],
        answer: Text, id: ExportAuditLogEventsHandlerV1,
    }
    /// Export audit records as CSV or CEF
    GET "/api/orgs/{org}/auditlogs/v2/export" => audit::export {
        auth: Token, needs: Audit, group: Account, audit: "audit.export",
        query: [
            query::CONTINUATION, query::START, query::END, query::OF_USER, query::OF_USER_SHORT,
            query::OF_EVENT, query::OF_EVENT_TYPE, query::OF_STACK, query::OF_STATE, query::TEXT_FORM,
        ],
        answer: Text, id: ExportAuditLogEventsHandlerV2,
    }
}
