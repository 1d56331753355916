//! The rows of the server itself: its home page, its probes, its status.

use crate::api::handlers::{health, home, server};
use crate::api::parameters as query;
use crate::api::route::Answered::{Html, Json};
use crate::api::shapes::{health_status, of};
use crate::wire::server::{ServerStatus, Storage};

rows! {
    Rows

    /// Get a page that names this server and explains how to log in
    GET "/" => home::home {
        auth: Public, needs: Nothing, group: Console,
        answer: Html, id: GetHome,
    }
    /// Check whether the process serves requests
    GET "/healthz" => health::health {
        auth: Public, needs: Nothing, group: Admin,
        answer: Json(health_status), id: GetHealth,
    }
    /// Check whether the server can do its work
    GET "/readyz" => health::ready {
        auth: Public, needs: Nothing, group: Admin,
        answer: Json(health_status), id: GetReadiness,
    }
    /// Get what works, what waits for a sweep, and how old the key is
    GET "/api/admin/status" => server::status {
        auth: Token, needs: Nothing, group: Admin,
        answer: Json(of::<ServerStatus>), id: GetServerStatus,
    }
    /// Count what each organization stores
    GET "/api/admin/storage" => server::storage {
        auth: Token, needs: Nothing, group: Admin,
        query: [query::CONTINUATION],
        answer: Json(of::<Storage>), id: GetServerStorage,
    }
}
