//! What each route answers with, as the OpenAPI document tells it.

use serde_json::{Value, json};

use super::operations;
use super::routes::Route;
use crate::wire::environments::{
    Config, DecryptedSecrets, Diagnostics, EncryptedSecrets, EnvironmentSettings, Environments, Evaluated,
    FoundValue, Opened, Revision, RevisionTag, RevisionTags, Tag, Tags,
};
use crate::wire::pulumi::{
    BatchDecrypted, BatchEncrypted, Capabilities, Checkpoint, Ciphertext, CreatedUpdate, DefaultOrganization,
    Events, History, Imported, Members, OfStack, Plaintext, Renamed, RenewedLease, ServiceHistory,
    ServiceUpdate, Stack, StackMetadata, StackOutputs, Stacks, StartedUpdate, Templates, Timeline,
    UpdateStatus, UpdateSummary, User, Versions,
};
use crate::wire::tfstate::{
    AllOutputs, Compliance, Difference, Lock, LockInfo, Locks, Outputs, OutputsOf, Rejected, RemovedStates,
    Restored, Schemas, ShownLabelPolicy, State, StateStanding, StateSummary, Text, ValuedOutput, Version,
};
use crate::wire::{Both, edges, schema};

/// An answer.
pub(super) struct Answered {
    /// Its status.
    pub(super) status: &'static str,
    /// Its kind of text, and the schema of that: `{}` for what is kept as it came. `None` for an answer without a body.
    pub(super) body: Option<(&'static str, Value)>,
}

/// What a route answers with where it does what is asked.
pub(super) fn answer(route: &Route) -> Answered {
    let is_yaml = ["ReadEnvironment_esc_environments", "DecryptEnvironment_esc_environments"];
    let id = operations::of(route).id;
    let body = match id {
        "GetHome" => Some(("text/html", json!({ "type": "string" }))),
        _ if is_yaml.iter().any(|one| id.starts_with(one)) => {
            Some(("application/x-yaml", json!({ "type": "string" })))
        }
        // Some clients of states take 204 for a state that is not there, and a HEAD has no body.
        "ProjectExists" => return Answered { status: "200", body: None },
        _ if ["WriteState", "UnlockState", "RemoveState"].iter().any(|one| id.starts_with(one)) => {
            return Answered { status: "200", body: None };
        }
        _ => json_of(id).map(|schema| ("application/json", schema)),
    };
    Answered { status: if body.is_some() { "200" } else { "204" }, body }
}

/// The schema of a JSON answer.
fn json_of(id: &str) -> Option<Value> {
    let list_of_anything =
        |name: &str| json!({ "type": "object", "properties": { name: { "type": "array", "items": {} } } });
    Some(match id {
        "Capabilities" => schema::of::<Capabilities>(),
        "Version" => schema::of::<Versions>(),
        "GetCurrentUser" => schema::of::<User>(),
        "GetDefaultOrganization" => schema::of::<DefaultOrganization>(),
        "ListUserStacks" => schema::of::<Stacks>(),
        "ListOrganizationMembers" => schema::of::<Members>(),
        "ListPolicyPacks_orgs" => list_of_anything("policyPacks"),
        "ListPolicyGroups" | "GetStackPolicyGroups" => list_of_anything("policyGroups"),
        "GetStackPolicyPacks" => list_of_anything("requiredPolicies"),
        "ListPackages" => list_of_anything("packages"),
        "ListTemplates" => list_of_anything("templates"),
        "GetOrgTemplates" => schema::of::<Templates>(),
        "GetStack" => schema::of::<Stack>(),
        "GetStackConfig" | "UpdateStackConfig" => schema::of::<Config>(),
        "GetStackMetadata" => schema::of::<StackMetadata>(),
        "RenameStack" | "TransferStack" => schema::of::<Renamed>(),
        "EncryptValue" => schema::of::<Ciphertext>(),
        "DecryptValue" => schema::of::<Plaintext>(),
        "BatchEncryptValue" => schema::of::<BatchEncrypted>(),
        "BatchDecryptValue" => schema::of::<BatchDecrypted>(),
        "ExportStack" | "ExportStackAtVersion" => schema::of::<Checkpoint<'_>>(),
        "ImportStack" => schema::of::<Imported>(),
        // Asked for a page, it answers as the service's console has it.
        "GetStackUpdates" => {
            json!({ "anyOf": [schema::of::<History>(), schema::of::<ServiceHistory>()] })
        }
        "GetLatestStackUpdate" | "GetStackUpdate" => schema::of::<ServiceUpdate>(),
        "GetLatestStackPreviews" | "GetStackPreviews" => schema::of::<ServiceHistory>(),
        "GetLatestUpdateTimeline" | "GetUpdateTimeline" => schema::of::<Timeline>(),
        "GetStackUpdateSummary" => schema::of::<UpdateSummary>(),
        "CreateUpdateForUpdate"
        | "CreateUpdateForPreview"
        | "CreateUpdateForRefresh"
        | "CreateUpdateForDestroy" => schema::of::<CreatedUpdate>(),
        "BeginUpdate" => begun(),
        "StartUpdateForUpdate" => schema::of::<StartedUpdate>(),
        "GetUpdateStatusForUpdate" => schema::of::<UpdateStatus>(),
        "RenewUpdateLease_update" => schema::of::<RenewedLease>(),
        "GetEngineEvents_update" => schema::of::<Events<'_>>(),
        "ListEnvironments_esc" | "ListOrgEnvironments_esc" | "ListDeletedEnvironments" => {
            schema::of::<Environments>()
        }
        "UpdateEnvironment_esc_environments" => schema::of::<Diagnostics>(),
        "CheckYAML_esc" => schema::both(schema::of::<Evaluated>(), schema::of::<Diagnostics>()),
        "ReadAnonymousOpenEnvironment_esc" | "ReadOpenEnvironment_esc_environments" => {
            json!({ "anyOf": [schema::of::<Evaluated>(), schema::of::<FoundValue>()] })
        }
        "GetStackOutputs" => schema::of::<StackOutputs>(),
        "GetHealth" | "GetReadiness" => {
            json!({ "type": "object", "properties": { "status": { "type": "string" } } })
        }
        "GetEnvironmentSettings" => schema::of::<EnvironmentSettings>(),
        "EncryptEnvironmentSecrets" => schema::of::<EncryptedSecrets>(),
        "DecryptEnvironmentSecrets" => schema::of::<DecryptedSecrets>(),
        "ListEnvironmentRevisions_esc_environments" => schema::of::<Vec<Revision>>(),
        "ListRevisionTags_esc_environments_versions" => schema::of::<RevisionTags>(),
        "ReadRevisionTag_esc_environments" => schema::of::<RevisionTag>(),
        "ListEnvironmentTags_esc_environments" => schema::of::<Tags>(),
        "CreateEnvironmentTag_esc_environments"
        | "GetEnvironmentTag_esc_environments"
        | "UpdateEnvironmentTag_esc_environments" => schema::of::<Tag>(),
        "OpenYAML_esc" | "OpenEnvironment_esc_environments" | "OpenEnvironment_esc_environments_versions" => {
            schema::of::<Opened>()
        }
        "ListStates" => schema::page("states", Both::<StateSummary, Option<StateStanding>>::schema()),
        "GetState" | "GetStateByName" => Both::<State, Option<StateStanding>>::schema(),
        "CreateState" | "EditState" | "RestoreRemovedState" => schema::of::<State>(),
        "ListStateVersions" => schema::page("versions", Both::<Version, Text>::schema()),
        // A refused write stands for a version where its id is asked for.
        "GetStateVersion" => {
            json!({ "anyOf": [Both::<Version, Text>::schema(), Both::<Rejected, Text>::schema()] })
        }
        "ListRejectedWrites" => {
            let rejected = Both::<Rejected, Text>::schema();
            json!({ "type": "object", "properties": { "rejected": { "type": "array", "items": rejected } } })
        }
        "GetDependencies" => Both::<edges::End, edges::Dependencies>::schema(),
        "ListStatuses" => schema::page("states", Both::<edges::End, edges::Dependencies>::schema()),
        "ListStateLocks" => schema::of::<Locks>(),
        "ListRemovedStates" => schema::of::<RemovedStates>(),
        "GetLabelPolicy" | "SetLabelPolicy" => schema::of::<ShownLabelPolicy>(),
        "GetLabelCompliance" => schema::of::<Compliance>(),
        "ListOutputs" => schema::of::<AllOutputs>(),
        "GetOutputsOfStack" | "GetOutputsOfState" => schema::of::<OutputsOf<ValuedOutput>>(),
        "GetStateOutputs" => schema::of::<Outputs>(),
        "GetOutputSchemas" | "EditOutputSchemas" => schema::of::<Schemas>(),
        "GetStateLock" => schema::of::<Option<Lock>>(),
        "HoldStateLock" => schema::of::<Lock>(),
        "CompareStateVersions" => schema::of::<Difference>(),
        "RestoreStateVersion" => schema::of::<Restored>(),
        "ListEdges" => schema::of::<edges::Edges>(),
        "AddEdge" | "GetEdge" | "EditEdge" => schema::of::<edges::Edge>(),
        "GetTopology" => schema::of::<edges::Topology>(),
        _ if id.starts_with("LockState") => schema::of::<LockInfo>(),
        _ if has_no_body(id) => return None,
        // What is kept as it came, or made of it; and the answer that is empty and still an object.
        _ => json!({}),
    })
}

/// Whether an answer has no body.
fn has_no_body(id: &str) -> bool {
    let ends = [
        "Delete",
        "Remove",
        "AddStackTag",
        "Break",
        "Cancel",
        "Complete",
        "CreateJournal",
        "PatchUpdate",
        "RecordEngine",
        "LogOnly",
        "Retract",
    ];
    let others = [
        "UpdateStackTag",
        "UpdateStackTags",
        "CreateEnvironment_esc_environments",
        "RestoreEnvironment",
        "CloneEnvironment",
        "PatchEnvironmentSettings",
        "CreateRevisionTag_esc_environments_versions_tags",
        "UpdateRevisionTag_esc_environments",
    ];
    others.contains(&id) || ends.iter().any(|begin| id.starts_with(begin))
}

fn begun() -> Value {
    let mut whole = schema::both(Both::<CreatedUpdate, StartedUpdate>::schema(), schema::of::<OfStack>());
    whole["properties"]["deployment"] = schema::of::<Checkpoint<'_>>();
    whole
}
