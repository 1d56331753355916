//! The rows of Terraform states, with their resources.

use crate::api::handlers::{state_resources, states};
use crate::api::parameters as query;
use crate::api::route::Answered::{Json, NoContent};
use crate::api::shapes::{
    anything, of, rejected_writes, state, state_resource, state_resource_neighbours, state_resource_values,
    state_resources_page, state_version, state_versions, states_page,
};
use crate::limits::{LOCK_BYTES_MAX, SMALL_BYTES_MAX};
use crate::wire::protection::{NewProtection, Protection};
use crate::wire::state_resources::{AskValues, StateResourceHistory};
use crate::wire::tfstate::{
    AllOutputs, Compliance, DeletedStates, Difference, Lock, Locks, NewLabelPolicy, NewState, Outputs,
    OutputsOf, Restored, Schemas, SchemasEdit, ShownLabelPolicy, State as OneState, StateEdit, ValuedOutput,
    WithReason,
};

rows! {
    Rows

    /// List the Terraform states of an organization
    GET "/api/orgs/{org}/tfstates" => states::list {
        auth: Token, needs: See, group: Tfstate,
        query: [query::CONTINUATION, query::PROJECT, query::LABEL_FILTER, query::LABELS, query::STATUS],
        answer: Json(states_page), id: ListStates,
    }
    /// Create a Terraform state
    POST "/api/orgs/{org}/tfstates" => states::create {
        auth: Token, needs: Apply, group: Tfstate, audit: "state.create",
        body: of::<NewState>,
        answer: Json(of::<OneState>), id: CreateState,
    }
    /// Get a Terraform state, by its name
    GET "/api/orgs/{org}/tfstates/{project}/{state}" => states::get {
        auth: Token, needs: View, group: Tfstate,
        query: [query::STATUS],
        answer: Json(state), id: GetStateByName,
    }
    /// List the locks of Terraform states
    GET "/api/orgs/{org}/tfstate-locks" => states::locks {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION],
        answer: Json(of::<Locks>), id: ListStateLocks,
    }
    /// List the deleted Terraform states
    GET "/api/orgs/{org}/tfstate-removed" => states::list_deleted {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION, query::PROJECT, query::STATE],
        answer: Json(of::<DeletedStates>), id: ListRemovedStates,
    }
    /// Get the label policy of an organization
    GET "/api/orgs/{org}/tfstate-policy" => states::label_policy {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(of::<ShownLabelPolicy>), id: GetLabelPolicy,
    }
    /// Replace the label policy of an organization
    PUT "/api/orgs/{org}/tfstate-policy" => states::set_label_policy {
        auth: Token, needs: Member, group: Tfstate, audit: "policy.set",
        body: of::<NewLabelPolicy>,
        answer: Json(of::<ShownLabelPolicy>), id: SetLabelPolicy,
    }
    /// List the Terraform states that break the label policy
    GET "/api/orgs/{org}/tfstate-policy/compliance" => states::compliance {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION, query::PROJECT, query::LABEL_FILTER, query::LABELS],
        answer: Json(of::<Compliance>), id: GetLabelCompliance,
    }
    /// List the outputs of an organization, without values
    GET "/api/orgs/{org}/outputs" => states::all_outputs {
        auth: Token, needs: Outputs, group: Tfstate,
        query: [query::CONTINUATION, query::PROJECT],
        answer: Json(of::<AllOutputs>), id: ListOutputs,
    }
    /// Get the outputs of a stack, with their values
    GET "/api/orgs/{org}/outputs/stack/{project}/{stack}" => states::stack_outputs {
        auth: Token, needs: Outputs, group: Tfstate, audit: "stack.outputs",
        answer: Json(of::<OutputsOf<ValuedOutput>>), id: GetOutputsOfStack,
    }
    /// Get the outputs of a Terraform state, with their values
    GET "/api/orgs/{org}/outputs/tfstate/{project}/{state}" => states::state_outputs {
        auth: Token, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: Json(of::<OutputsOf<ValuedOutput>>), id: GetOutputsOfState,
    }
    /// Get a Terraform state
    GET "/api/tfstates/{guid}" => states::get {
        auth: Token, needs: View, group: Tfstate,
        query: [query::STATUS],
        answer: Json(state), id: GetState,
    }
    /// Change the name, the policy or the labels of a Terraform state
    PATCH "/api/tfstates/{guid}" => states::edit {
        auth: Token, needs: Apply, group: Tfstate, audit: "state.edit",
        body: of::<StateEdit>,
        answer: Json(of::<OneState>), id: EditState,
    }
    /// Delete a Terraform state
    DELETE "/api/tfstates/{guid}" => states::delete {
        auth: Token, needs: Member, group: Tfstate, audit: "state.delete",
        query: [query::FORCE],
        answer: NoContent, id: DeleteState,
    }
    /// Protect a Terraform state: it cannot be deleted or emptied until an admin lifts the protection
    PUT "/api/tfstates/{guid}/protection" => states::protect {
        auth: Token, needs: Admin, group: Tfstate, audit: "state.protect",
        body: of::<NewProtection>, max: SMALL_BYTES_MAX,
        answer: Json(of::<Protection>), id: ProtectState,
    }
    /// Lift the protection of a Terraform state
    DELETE "/api/tfstates/{guid}/protection" => states::lift_protection {
        auth: Token, needs: Admin, group: Tfstate, audit: "state.unprotect",
        answer: NoContent, id: LiftStateProtection,
    }
    /// Undelete a Terraform state
    POST "/api/tfstates/{guid}/undelete" => states::undelete {
        auth: Token, needs: Member, group: Tfstate, audit: "state.undelete",
        answer: Json(of::<OneState>), id: RestoreRemovedState,
    }
    /// Get the outputs of a Terraform state, with their values
    GET "/api/tfstates/{guid}/outputs" => states::outputs {
        auth: Token, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: Json(of::<Outputs>), id: GetStateOutputs,
    }
    /// Get the outputs of a Terraform state, with their values, as a browser asks for them
    POST "/api/tfstates/{guid}/outputs" => states::outputs {
        auth: Token, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: Json(of::<Outputs>), id: GetStateOutputsByPost,
    }
    /// Get the schemas of the outputs of a Terraform state
    GET "/api/tfstates/{guid}/schemas" => states::schemas {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(of::<Schemas>), id: GetOutputSchemas,
    }
    /// Change the schemas of the outputs of a Terraform state
    PATCH "/api/tfstates/{guid}/schemas" => states::set_schemas {
        auth: Token, needs: Member, group: Tfstate, audit: "state.schema",
        body: of::<SchemasEdit>,
        answer: Json(of::<Schemas>), id: EditOutputSchemas,
    }
    /// Get the holder of the lock of a Terraform state
    GET "/api/tfstates/{guid}/lock" => states::lock {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(of::<Option<Lock>>), id: GetStateLock,
    }
    /// Lock a Terraform state by hand
    POST "/api/tfstates/{guid}/lock" => states::lock_by_hand {
        auth: Token, needs: Member, group: Tfstate, audit: "state.lock",
        body: of::<WithReason>, max: LOCK_BYTES_MAX,
        answer: Json(of::<Lock>), id: HoldStateLock,
    }
    /// Unlock a Terraform state by hand
    DELETE "/api/tfstates/{guid}/lock" => states::unlock {
        auth: Token, needs: Plan, group: Tfstate, audit: "state.unlock",
        body: of::<WithReason>, max: LOCK_BYTES_MAX,
        answer: NoContent, id: BreakStateLock,
    }
    /// List the refused writes of a Terraform state
    GET "/api/tfstates/{guid}/rejected" => states::rejected {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(rejected_writes), id: ListRejectedWrites,
    }
    /// List the versions of a Terraform state
    GET "/api/tfstates/{guid}/versions" => states::versions {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION],
        answer: Json(state_versions), id: ListStateVersions,
    }
    /// Get a version of a Terraform state
    GET "/api/tfstates/{guid}/versions/{version}" => states::version {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(state_version), id: GetStateVersion,
    }
    /// Get the text of a version of a Terraform state
    GET "/api/tfstates/{guid}/versions/{version}/text" => states::text {
        auth: Token, needs: Plan, group: Tfstate, audit: "state.download",
        answer: Json(anything), id: GetStateText,
    }
    /// Download the text of a version of a Terraform state, as a browser asks for it
    POST "/api/tfstates/{guid}/versions/{version}/text" => states::text {
        auth: Token, needs: Plan, group: Tfstate, audit: "state.download",
        answer: Json(anything), id: GetStateTextByPost,
    }
    /// Compare two versions of a Terraform state
    GET "/api/tfstates/{guid}/versions/{version}/diff/{other}" => states::diff {
        auth: Token, needs: View, group: Tfstate,
        query: [query::ONE_ADDRESS],
        answer: Json(of::<Difference>), id: CompareStateVersions,
    }
    /// Make an old version of a Terraform state the next one
    POST "/api/tfstates/{guid}/versions/{version}/restore" => states::restore {
        auth: Token, needs: Member, group: Tfstate, audit: "state.restore",
        answer: Json(of::<Restored>), id: RestoreStateVersion,
    }
    /// List the resources of a Terraform state, without values
    GET "/api/tfstates/{guid}/resources" => state_resources::list {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION, query::SIZE, query::VERSION, query::ADDRESS_FILTER],
        answer: Json(state_resources_page), id: ListStateResources,
    }
    /// Get a resource of a Terraform state, without its values
    GET "/api/tfstates/{guid}/resource" => state_resources::get {
        auth: Token, needs: View, group: Tfstate,
        query: [query::ADDRESS, query::VERSION],
        answer: Json(state_resource), id: GetStateResource,
    }
    /// Get the resources around one of a Terraform state
    GET "/api/tfstates/{guid}/resource/neighbours" => state_resources::neighbours {
        auth: Token, needs: View, group: Tfstate,
        query: [query::ADDRESS, query::VERSION, query::HOPS],
        answer: Json(state_resource_neighbours), id: GetStateResourceNeighbours,
    }
    /// Get the attributes of a resource of a Terraform state
    POST "/api/tfstates/{guid}/resource/values" => state_resources::values {
        auth: Token, needs: Plan, group: Tfstate, audit: "state.values",
        body: of::<AskValues>,
        answer: Json(state_resource_values), id: GetStateResourceValues,
    }
    /// List the versions of a Terraform state that changed a resource
    GET "/api/tfstates/{guid}/resource/history" => state_resources::history {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION, query::ADDRESS],
        answer: Json(of::<StateResourceHistory>), id: GetStateResourceHistory,
    }
}
