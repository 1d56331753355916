//! What each route answers with, as the OpenAPI document tells it.

use serde_json::{Value, json};

use super::operations;
use super::routes::Route;
use crate::wire::environments::{
    Config, DecryptedSecrets, EncryptedSecrets, EnvironmentSettings, Environments, Opened, Revision,
    RevisionTag, RevisionTags, Tag, Tags,
};
use crate::wire::pulumi::{
    BatchDecrypted, BatchEncrypted, Capabilities, Checkpoint, Ciphertext, CreatedUpdate, DefaultOrganization,
    Events, History, Imported, Members, Plaintext, Renamed, RenewedLease, ServiceHistory, ServiceUpdate,
    Stack, StackMetadata, Stacks, StartedUpdate, Timeline, UpdateStatus, UpdateSummary, User, Versions,
};
use crate::wire::tfstate::{
    AllOutputs, Compliance, Difference, Lock, LockInfo, Locks, Outputs, OutputsOf, RemovedStates, Restored,
    Schemas, ShownLabelPolicy, ValuedOutput,
};
use crate::wire::{edges, schema};

/// The body of an answer.
pub(super) struct Answered {
    /// The kind of text.
    pub(super) media: &'static str,
    /// What is in it: `{}` for what is kept as it came.
    pub(super) schema: Value,
}

/// What a route answers with where it does what is asked; `None` for nothing.
pub(super) fn answer(route: &Route) -> Option<Answered> {
    let is_yaml = ["ReadEnvironment_esc_environments", "DecryptEnvironment_esc_environments"];
    let id = operations::of(route).id;
    let (media, schema) = match id {
        "GetHome" => ("text/html", json!({ "type": "string" })),
        _ if is_yaml.iter().any(|one| id.starts_with(one)) => {
            ("application/x-yaml", json!({ "type": "string" }))
        }
        _ => ("application/json", json_of(id)?),
    };
    Some(Answered { media, schema })
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
        "GetStackUpdates" => schema::of::<History>(),
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
        "UpdateEnvironment_esc_environments" => list_of_anything("diagnostics"),
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
        // These are put together of several types, so the document does not tell their members.
        "ListStates" => list_of_anything("states"),
        "ListStatuses" => list_of_anything("states"),
        "ListRejectedWrites" => list_of_anything("rejected"),
        "ListStateVersions" => list_of_anything("versions"),
        "GetState"
        | "GetStateByName"
        | "CreateState"
        | "EditState"
        | "RestoreRemovedState"
        | "GetStateVersion"
        | "GetDependencies" => json!({ "type": "object" }),
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
        // What is kept as it came, or made of it.
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
        "ProjectExists",
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

/// The answer to a begin is put together of three.
fn begun() -> Value {
    let mut whole = schema::of::<CreatedUpdate>();
    for (name, member) in schema::of::<StartedUpdate>()["properties"].as_object().into_iter().flatten() {
        whole["properties"][name] = member.clone();
    }
    whole["properties"]["stack"] = schema::of::<Stack>();
    whole["properties"]["deployment"] = schema::of::<Checkpoint<'_>>();
    whole
}
