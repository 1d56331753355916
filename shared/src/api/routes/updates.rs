//! The rows of updates, with what they save and their events.

use crate::api::handlers::{checkpoints, events, updates};
use crate::api::parameters as query;
use crate::api::route::Answered::{Json, NoContent};
use crate::api::shapes::{begun, journal_entries, of};
use crate::domain::saves;
use crate::limits::{
    BATCH_BYTES_MAX, COMPLETION_BYTES_MAX, CREATION_BYTES_MAX, DEPLOYMENT_BYTES_MAX, LOCK_BYTES_MAX,
};
use crate::wire::pulumi::{
    BeginUpdate, CancelUpdate, Checkpoint, CompleteUpdate, CreateUpdate, CreatedUpdate, EngineEvent,
    EventBatch, Events, RenewLease, RenewedLease, StartUpdate, StartedUpdate, UpdateStatus,
};

rows! {
    Rows

    /// Create an update
    POST "/api/stacks/{org}/{project}/{stack}/update" => updates::create_update {
        auth: Token, needs: Plan, group: Head, audit: "update.create",
        body: of::<CreateUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(of::<CreatedUpdate>), id: CreateUpdateForUpdate,
    }
    /// Create a preview
    POST "/api/stacks/{org}/{project}/{stack}/preview" => updates::create_preview {
        auth: Token, needs: Plan, group: Head, audit: "update.create",
        body: of::<CreateUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(of::<CreatedUpdate>), id: CreateUpdateForPreview,
    }
    /// Create a refresh
    POST "/api/stacks/{org}/{project}/{stack}/refresh" => updates::create_refresh {
        auth: Token, needs: Plan, group: Head, audit: "update.create",
        body: of::<CreateUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(of::<CreatedUpdate>), id: CreateUpdateForRefresh,
    }
    /// Create a destroy
    POST "/api/stacks/{org}/{project}/{stack}/destroy" => updates::create_destroy {
        auth: Token, needs: Plan, group: Head, audit: "update.create",
        body: of::<CreateUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(of::<CreatedUpdate>), id: CreateUpdateForDestroy,
    }
    /// Create and start an update
    POST "/api/stacks/{org}/{project}/{stack}/begin-update" => updates::begin_update {
        auth: Token, needs: Plan, group: Head, audit: "update.begin",
        body: of::<BeginUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(begun), id: BeginUpdate,
    }
    /// Start an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" => updates::start_update {
        auth: Token, needs: Plan, group: Head, audit: "update.start",
        body: of::<StartUpdate>,
        answer: Json(of::<StartedUpdate>), id: StartUpdateForUpdate,
    }
    /// Get the status of an update
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" => updates::update_status {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<UpdateStatus>), id: GetUpdateStatusForUpdate,
    }
    /// Cancel an update and keep what it saved
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/cancel" => updates::cancel {
        auth: Token, needs: Plan, group: Head, audit: "update.cancel",
        body: of::<CancelUpdate>, max: LOCK_BYTES_MAX,
        answer: NoContent, id: CancelUpdate_update,
    }
    /// Renew the lease of an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/renew_lease" => updates::renew_lease {
        auth: UpdateToken, needs: Nothing, group: Head,
        body: of::<RenewLease>,
        answer: Json(of::<RenewedLease>), id: RenewUpdateLease_update,
    }
    /// End an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/complete" => updates::complete {
        auth: UpdateToken, needs: Nothing, group: Head, audit: "update.end",
        body: of::<CompleteUpdate>, max: COMPLETION_BYTES_MAX,
        answer: NoContent, id: CompleteUpdate_update,
    }
    /// Append entries to the journal of an update
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/journalentries" => updates::journal_entries {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: journal_entries, max: BATCH_BYTES_MAX,
        answer: NoContent, id: CreateJournalEntries_update,
    }
    /// Save the state of an update
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpoint" => checkpoints::checkpoint {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<Checkpoint<'_>>, max: DEPLOYMENT_BYTES_MAX, copies: 4,
        answer: NoContent, id: PatchUpdateCheckpoint_update,
    }
    /// Save the state of an update as text
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointverbatim" =>
    checkpoints::checkpoint_verbatim {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<saves::Whole<'_>>, max: DEPLOYMENT_BYTES_MAX, copies: 4,
        answer: NoContent, id: PatchUpdateVerbatimCheckpoint_update,
    }
    /// Save the changes in the state of an update
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointdelta" =>
    checkpoints::checkpoint_delta {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<saves::Delta<'_>>, max: BATCH_BYTES_MAX, copies: 4,
        answer: NoContent, id: PatchUpdateCheckpointDelta_update,
    }
    /// Record an event of an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" => events::append {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<EngineEvent>, max: BATCH_BYTES_MAX,
        answer: NoContent, id: RecordEngineEvent_update,
    }
    /// Record events of an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events/batch" => events::append_batch {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<EventBatch>, max: BATCH_BYTES_MAX,
        answer: NoContent, id: RecordEngineEventBatch_update,
    }
    /// List the events of an update
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" => events::list {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION, query::EVENT_TYPE, query::EVENT_URNS],
        answer: Json(of::<Events<'_>>), id: GetEngineEvents_update,
    }
}
