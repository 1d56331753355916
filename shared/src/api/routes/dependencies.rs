//! The rows of dependencies between states, and of their map.

use crate::api::handlers::{dependencies, map};
use crate::api::parameters as query;
use crate::api::route::Answered::{Json, NoContent};
use crate::api::shapes::{dependencies_of_state, of, statuses};
use crate::wire::edges;
use crate::wire::map::DependencyMap;

rows! {
    Rows

    /// Get the dependencies of a Terraform state
    GET "/api/tfstates/{guid}/dependencies" => dependencies::dependencies {
        auth: Token, needs: Plan, group: Tfstate,
        answer: Json(dependencies_of_state), id: GetDependencies,
    }
    /// List the dependencies between Terraform states
    GET "/api/orgs/{org}/tfstate-edges" => dependencies::list {
        auth: Token, needs: Plan, group: Tfstate,
        query: [query::CONTINUATION, query::PRODUCER, query::CONSUMER, query::OUTPUT],
        answer: Json(of::<edges::Edges>), id: ListEdges,
    }
    /// Add a dependency between Terraform states
    POST "/api/orgs/{org}/tfstate-edges" => dependencies::add {
        auth: Token, needs: Member, group: Tfstate, audit: "edge.add",
        body: of::<edges::NewEdge>,
        answer: Json(of::<edges::Edge>), id: AddEdge,
    }
    /// Get a dependency between Terraform states
    GET "/api/orgs/{org}/tfstate-edges/{edge}" => dependencies::get {
        auth: Token, needs: Plan, group: Tfstate,
        answer: Json(of::<edges::Edge>), id: GetEdge,
    }
    /// Change a dependency between Terraform states
    PATCH "/api/orgs/{org}/tfstate-edges/{edge}" => dependencies::edit {
        auth: Token, needs: Member, group: Tfstate, audit: "edge.edit",
        body: of::<edges::EdgeEdit>,
        answer: Json(of::<edges::Edge>), id: EditEdge,
    }
    /// Delete a dependency between Terraform states
    DELETE "/api/orgs/{org}/tfstate-edges/{edge}" => dependencies::delete {
        auth: Token, needs: Member, group: Tfstate, audit: "edge.remove",
        answer: NoContent, id: RemoveEdge,
    }
    /// List the Terraform states with dependencies, and which are stale
    GET "/api/orgs/{org}/tfstate-statuses" => dependencies::statuses {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION],
        answer: Json(statuses), id: ListStatuses,
    }
    /// Get an order in which Terraform states can be run
    GET "/api/orgs/{org}/tfstate-topology" => dependencies::topology {
        auth: Token, needs: View, group: Tfstate,
        query: [query::FROM_STATE, query::DIRECTION],
        answer: Json(of::<edges::Topology>), id: GetTopology,
    }
    /// Get the map of the stacks and states that read outputs of others
    GET "/api/orgs/{org}/dependency-map" => map::of_org {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(of::<DependencyMap>), id: GetDependencyMap,
    }
}
