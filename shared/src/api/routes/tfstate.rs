//! The rows of the protocol of Terraform: a state by its ID, its project or its name. Each has one method;
//! `tfstate_methods` has the others that clients use.

use crate::api::handlers::tfstate;
use crate::api::parameters as query;
use crate::api::route::Answered::{Empty, Json, StateIfAny};
use crate::api::shapes::{anything, of};
use crate::limits::{LOCK_BYTES_MAX, STATE_BYTES_MAX};
use crate::wire::tfstate::LockInfo;

rows! {
    Rows

    /// Read a Terraform state, by its ID
    GET "/tfstate/{guid}" => tfstate::get {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.read",
        answer: StateIfAny, id: ReadStateById,
    }
    /// Write a Terraform state, by its ID
    POST "/tfstate/{guid}" => tfstate::write {
        auth: Run, needs: Apply, group: Tfstate, audit: "state.write",
        query: [query::LOCK_ID],
        body: anything, max: STATE_BYTES_MAX, copies: 2,
        answer: Empty, id: WriteStateById,
    }
    /// Delete a Terraform state, by its ID
    DELETE "/tfstate/{guid}" => tfstate::delete {
        auth: State, needs: Member, group: Tfstate, audit: "state.delete",
        answer: Empty, id: RemoveStateById,
    }
    /// Lock a Terraform state, by its ID
    POST "/tfstate/{guid}/lock" => tfstate::lock {
        auth: State, needs: Plan, group: Tfstate, audit: "state.lock",
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Json(of::<LockInfo>), id: LockStateById,
    }
    /// Unlock a Terraform state, by its ID
    DELETE "/tfstate/{guid}/lock" => tfstate::unlock {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.unlock",
        query: [query::LOCK_ID],
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Empty, id: UnlockStateById,
    }
    /// Read the outputs of a Terraform state, by its ID
    GET "/tfstate/{guid}/outputs" => tfstate::outputs {
        auth: State, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: StateIfAny, id: ReadStateOutputsById,
    }
    /// Read a Terraform state, by its project
    GET "/tfstate/{org}/{project}" => tfstate::get {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.read",
        answer: StateIfAny, id: ReadStateOfProject,
    }
    /// Write a Terraform state, by its project
    POST "/tfstate/{org}/{project}" => tfstate::write {
        auth: Run, needs: Apply, group: Tfstate, audit: "state.write",
        query: [query::LOCK_ID],
        body: anything, max: STATE_BYTES_MAX, copies: 2,
        answer: Empty, id: WriteStateOfProject,
    }
    /// Delete a Terraform state, by its project
    DELETE "/tfstate/{org}/{project}" => tfstate::delete {
        auth: State, needs: Member, group: Tfstate, audit: "state.delete",
        answer: Empty, id: RemoveStateOfProject,
    }
    /// Lock a Terraform state, by its project
    POST "/tfstate/{org}/{project}/lock" => tfstate::lock {
        auth: State, needs: Plan, group: Tfstate, audit: "state.lock",
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Json(of::<LockInfo>), id: LockStateOfProject,
    }
    /// Unlock a Terraform state, by its project
    DELETE "/tfstate/{org}/{project}/lock" => tfstate::unlock {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.unlock",
        query: [query::LOCK_ID],
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Empty, id: UnlockStateOfProject,
    }
    /// Read the outputs of a Terraform state, by its project
    GET "/tfstate/{org}/{project}/outputs" => tfstate::outputs {
        auth: State, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: StateIfAny, id: ReadStateOutputsOfProject,
    }
    /// Read a Terraform state, by its name
    GET "/tfstate/{org}/{project}/{state}" => tfstate::get {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.read",
        answer: StateIfAny, id: ReadStateByName,
    }
    /// Write a Terraform state, by its name
    POST "/tfstate/{org}/{project}/{state}" => tfstate::write {
        auth: Run, needs: Apply, group: Tfstate, audit: "state.write",
        query: [query::LOCK_ID],
        body: anything, max: STATE_BYTES_MAX, copies: 2,
        answer: Empty, id: WriteStateByName,
    }
    /// Delete a Terraform state, by its name
    DELETE "/tfstate/{org}/{project}/{state}" => tfstate::delete {
        auth: State, needs: Member, group: Tfstate, audit: "state.delete",
        answer: Empty, id: RemoveStateByName,
    }
    /// Lock a Terraform state, by its name
    POST "/tfstate/{org}/{project}/{state}/lock" => tfstate::lock {
        auth: State, needs: Plan, group: Tfstate, audit: "state.lock",
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Json(of::<LockInfo>), id: LockStateByName,
    }
    /// Unlock a Terraform state, by its name
    DELETE "/tfstate/{org}/{project}/{state}/lock" => tfstate::unlock {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.unlock",
        query: [query::LOCK_ID],
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Empty, id: UnlockStateByName,
    }
    /// Read the outputs of a Terraform state, by its name
    GET "/tfstate/{org}/{project}/{state}/outputs" => tfstate::outputs {
        auth: State, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: StateIfAny, id: ReadStateOutputsByName,
    }
}
