//! The rows of the resources of a stack.

use crate::api::handlers::resources;
use crate::api::parameters as query;
use crate::api::route::Answered::Json;
use crate::api::shapes::{of, resource};
use crate::wire::resources::{AskSecret, OpenedSecret, ResourceHistory, ResourceNeighbours, Resources};

rows! {
    Rows

    /// List the resources of a stack
    GET "/api/stacks/{org}/{project}/{stack}/resources" => resources::resources {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION, query::SIZE, query::VERSION, query::FILTER, query::PARENT],
        answer: Json(of::<Resources>), id: ListStackResourceRows,
    }
    /// Get one resource of a stack, without its secrets
    GET "/api/stacks/{org}/{project}/{stack}/resource" => resources::resource {
        auth: Token, needs: View, group: Read,
        query: [query::URN, query::VERSION, query::DELETE, query::SHORT],
        answer: Json(resource), id: GetStackResourceRow,
    }
    /// List the versions that changed a resource of a stack
    GET "/api/stacks/{org}/{project}/{stack}/resource/history" => resources::history {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION, query::URN, query::VERSION],
        answer: Json(of::<ResourceHistory>), id: GetStackResourceHistory,
    }
    /// Get the resources around one of a stack
    GET "/api/stacks/{org}/{project}/{stack}/resource/neighbours" => resources::neighbours {
        auth: Token, needs: View, group: Read,
        query: [query::URN, query::VERSION, query::DELETE, query::HOPS],
        answer: Json(of::<ResourceNeighbours>), id: GetStackResourceNeighbours,
    }
    /// Open one secret of a resource of a stack
    POST "/api/stacks/{org}/{project}/{stack}/resource/secret" => resources::secret {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.reveal",
        body: of::<AskSecret>,
        answer: Json(of::<OpenedSecret>), id: OpenStackResourceSecret,
    }
}
