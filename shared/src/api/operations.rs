//! What each route is called in the OpenAPI document.
//!
//! `pulumi api` finds a route by this name. Where Pulumi Cloud has the same route, its name is theirs, with all its turns: from
//! pulumi/pulumi-pulumiservice dc76a018, `provider/pkg/cloud/spec.json`. So are the names of parameters, since the CLI fills those that it
//! knows from the project and the stack that are selected.

use super::routes::Route;

/// A route as the document tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    /// Its name, unlike all others.
    pub(super) id: &'static str,
    /// What it is for, in a few words.
    pub(super) summary: &'static str,
}

/// How the document tells of a route. Each has a row in the table below.
pub(super) fn of(route: &Route) -> Operation {
    let is_it = |row: &&(&str, &str, &str, &str)| (route.method.as_str(), route.path) == (row.0, row.1);
    let (_, _, id, summary) = OPERATIONS.iter().find(is_it).copied().unwrap_or_default();
    Operation { id, summary }
}

impl Route {
    /// Its path as the OpenAPI document has it.
    pub fn path_in_document(&self) -> String {
        let part = |part: &str| match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            // The client writes this for every kind.
            Some("kind") => "update".to_owned(),
            Some(name) => format!("{{{}}}", parameter(name)),
            None => part.to_owned(),
        };
        self.path.split('/').map(part).collect::<Vec<_>>().join("/")
    }
}

/// The parameters of a route's path as the document has them.
pub(super) fn parameters(route: &Route) -> impl Iterator<Item = &'static str> + use<> {
    route.parameters().filter(|name| *name != "kind").map(parameter)
}

fn parameter(name: &str) -> &str {
    match name {
        "org" => "orgName",
        "project" => "projectName",
        "stack" => "stackName",
        "environment" => "envName",
        "update" => "updateID",
        "tag" => "tagName",
        "session" => "openSessionID",
        other => other,
    }
}

/// Method, path, name, what it is for; in the order of the route table.
const OPERATIONS: &[(&str, &str, &str, &str)] = &[
    ("GET", "/api/capabilities", "Capabilities", "What the server offers beyond the oldest protocol"),
    ("GET", "/api/cli/version", "Version", "The versions of the CLI that the server knows"),
    ("GET", "/api/user", "GetCurrentUser", "Who is logged in, with their organizations"),
    (
        "GET",
        "/api/user/organizations/default",
        "GetDefaultOrganization",
        "The owner of stacks that are named without one",
    ),
    ("GET", "/api/user/stacks", "ListUserStacks", "The stacks that the user may see, a page at a time"),
    (
        "GET",
        "/api/orgs/{org}/members",
        "ListOrganizationMembers",
        "The members of an organization, with their roles",
    ),
    ("GET", "/api/orgs/{org}/templates", "GetOrgTemplates", "The templates of an organization: none"),
    (
        "GET",
        "/api/orgs/{org}/policypacks",
        "ListPolicyPacks_orgs",
        "The policy packs of an organization: none",
    ),
    ("GET", "/api/orgs/{org}/policygroups", "ListPolicyGroups", "The policy groups of an organization: none"),
    ("GET", "/api/registry/packages", "ListPackages", "The packages of the registry: none"),
    ("GET", "/api/registry/templates", "ListTemplates", "The templates of the registry: none"),
    ("HEAD", "/api/stacks/{org}/{project}", "ProjectExists", "Whether a project exists"),
    ("POST", "/api/stacks/{org}/{project}", "CreateStack", "Make a stack"),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}",
        "GetStack",
        "A stack, with its tags and the update that runs",
    ),
    ("DELETE", "/api/stacks/{org}/{project}/{stack}", "DeleteStack", "Remove a stack"),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/config",
        "GetStackConfig",
        "The environment that holds the configuration of a stack",
    ),
    (
        "PUT",
        "/api/stacks/{org}/{project}/{stack}/config",
        "UpdateStackConfig",
        "Say which environment holds the configuration of a stack",
    ),
    (
        "DELETE",
        "/api/stacks/{org}/{project}/{stack}/config",
        "DeleteStackConfig",
        "Leave the configuration of a stack to its project",
    ),
    ("GET", "/api/stacks/{org}/{project}/{stack}/metadata", "GetStackMetadata", "Who a stack belongs to"),
    ("PATCH", "/api/stacks/{org}/{project}/{stack}/tags", "UpdateStackTags", "Replace the tags of a stack"),
    ("POST", "/api/stacks/{org}/{project}/{stack}/tags", "AddStackTag", "Add a tag to a stack"),
    ("PATCH", "/api/stacks/{org}/{project}/{stack}/tags/{tag}", "UpdateStackTag", "Change a tag of a stack"),
    ("DELETE", "/api/stacks/{org}/{project}/{stack}/tags/{tag}", "DeleteStackTag", "Remove a tag of a stack"),
    ("POST", "/api/stacks/{org}/{project}/{stack}/rename", "RenameStack", "Rename a stack"),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/transfer",
        "TransferStack",
        "Give a stack to another organization",
    ),
    ("POST", "/api/stacks/{org}/{project}/{stack}/encrypt", "EncryptValue", "Encrypt a secret of a stack"),
    ("POST", "/api/stacks/{org}/{project}/{stack}/decrypt", "DecryptValue", "Decrypt a secret of a stack"),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/batch-encrypt",
        "BatchEncryptValue",
        "Encrypt secrets of a stack",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/batch-decrypt",
        "BatchDecryptValue",
        "Decrypt secrets of a stack",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/decrypt/log-decryption",
        "LogOnlyDecryptValue",
        "Note that a secret was shown",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/decrypt/log-batch-decryption",
        "LogOnlyBatchDecryptValue",
        "Note that secrets were shown",
    ),
    ("GET", "/api/stacks/{org}/{project}/{stack}/export", "ExportStack", "The state of a stack"),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/export/{version}",
        "ExportStackAtVersion",
        "The state of a stack at a version",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/import",
        "ImportStack",
        "Make a state the next version of a stack",
    ),
    ("GET", "/api/stacks/{org}/{project}/{stack}/outputs", "GetStackOutputs", "The outputs of a stack"),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/policypacks",
        "GetStackPolicyPacks",
        "The policy packs that a stack must pass: none",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/policygroups",
        "GetStackPolicyGroups",
        "The policy groups of a stack: none",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/updates",
        "GetStackUpdates",
        "The history of a stack, newest first",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/updates/latest",
        "GetLatestStackUpdate",
        "The newest entry of the history",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/updates/latest/previews",
        "GetLatestStackPreviews",
        "The previews of the newest version",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/updates/latest/timeline",
        "GetLatestUpdateTimeline",
        "The newest version, and the previews before it",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/updates/{version}",
        "GetStackUpdate",
        "An entry of the history",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/updates/{version}/summary",
        "GetStackUpdateSummary",
        "An entry of the history in short",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/updates/{version}/previews",
        "GetStackPreviews",
        "The previews of a version",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/updates/{version}/timeline",
        "GetUpdateTimeline",
        "A version, and the previews before it",
    ),
    ("POST", "/api/stacks/{org}/{project}/{stack}/update", "CreateUpdateForUpdate", "Create an update"),
    ("POST", "/api/stacks/{org}/{project}/{stack}/preview", "CreateUpdateForPreview", "Create a preview"),
    ("POST", "/api/stacks/{org}/{project}/{stack}/refresh", "CreateUpdateForRefresh", "Create a refresh"),
    ("POST", "/api/stacks/{org}/{project}/{stack}/destroy", "CreateUpdateForDestroy", "Create a destroy"),
    ("POST", "/api/stacks/{org}/{project}/{stack}/begin-update", "BeginUpdate", "Create and start an update"),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}",
        "StartUpdateForUpdate",
        "Start an update",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}",
        "GetUpdateStatusForUpdate",
        "Where an update stands",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/cancel",
        "CancelUpdate_update",
        "Cancel an update and keep what it saved",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/renew_lease",
        "RenewUpdateLease_update",
        "Renew the lease of an update",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/complete",
        "CompleteUpdate_update",
        "End an update",
    ),
    (
        "PATCH",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/journalentries",
        "CreateJournalEntries_update",
        "Add entries to the journal of an update",
    ),
    (
        "PATCH",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpoint",
        "PatchUpdateCheckpoint_update",
        "Save the state of an update",
    ),
    (
        "PATCH",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointverbatim",
        "PatchUpdateVerbatimCheckpoint_update",
        "Save the state of an update as a text",
    ),
    (
        "PATCH",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointdelta",
        "PatchUpdateCheckpointDelta_update",
        "Save what changed in the state of an update",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events",
        "RecordEngineEvent_update",
        "Record an event of an update",
    ),
    (
        "POST",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events/batch",
        "RecordEngineEventBatch_update",
        "Record events of an update",
    ),
    (
        "GET",
        "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events",
        "GetEngineEvents_update",
        "The events of an update",
    ),
    (
        "GET",
        "/api/esc/environments",
        "ListEnvironments_esc",
        "The environments that the user may see, a page at a time",
    ),
    (
        "GET",
        "/api/esc/environments/{org}",
        "ListOrgEnvironments_esc",
        "The environments of an organization, a page at a time",
    ),
    ("POST", "/api/esc/environments/{org}", "CreateEnvironment_esc_environments", "Make an environment"),
    (
        "GET",
        "/api/esc/environments/{org}/restore",
        "ListDeletedEnvironments",
        "The environments that were removed",
    ),
    ("PUT", "/api/esc/environments/{org}/restore", "RestoreEnvironment", "Bring back an environment"),
    ("POST", "/api/esc/environments/{org}/yaml/check", "CheckYAML_esc", "Check a definition"),
    ("POST", "/api/esc/environments/{org}/yaml/open", "OpenYAML_esc", "Open a definition that is not stored"),
    (
        "GET",
        "/api/esc/environments/{org}/yaml/open/{session}",
        "ReadAnonymousOpenEnvironment_esc",
        "The values of a definition that was opened",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}",
        "ReadEnvironment_esc_environments",
        "The definition of an environment",
    ),
    (
        "PATCH",
        "/api/esc/environments/{org}/{project}/{environment}",
        "UpdateEnvironment_esc_environments",
        "Change the definition of an environment",
    ),
    (
        "DELETE",
        "/api/esc/environments/{org}/{project}/{environment}",
        "DeleteEnvironment_esc_environments",
        "Remove an environment",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/decrypt",
        "DecryptEnvironment_esc_environments",
        "The definition of an environment with its secrets",
    ),
    (
        "POST",
        "/api/esc/environments/{org}/{project}/{environment}/open",
        "OpenEnvironment_esc_environments",
        "Open an environment",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/open/{session}",
        "ReadOpenEnvironment_esc_environments",
        "The values of an environment that was opened",
    ),
    (
        "POST",
        "/api/esc/environments/{org}/{project}/{environment}/clone",
        "CloneEnvironment",
        "Clone an environment",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/settings",
        "GetEnvironmentSettings",
        "The settings of an environment",
    ),
    (
        "PATCH",
        "/api/esc/environments/{org}/{project}/{environment}/settings",
        "PatchEnvironmentSettings",
        "Change the settings of an environment",
    ),
    (
        "POST",
        "/api/esc/environments/{org}/{project}/{environment}/encrypt-secrets",
        "EncryptEnvironmentSecrets",
        "Encrypt secrets of an environment",
    ),
    (
        "POST",
        "/api/esc/environments/{org}/{project}/{environment}/decrypt-secrets",
        "DecryptEnvironmentSecrets",
        "Decrypt secrets of an environment",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/versions",
        "ListEnvironmentRevisions_esc_environments",
        "The revisions of an environment",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/versions/tags",
        "ListRevisionTags_esc_environments_versions",
        "The names of revisions of an environment",
    ),
    (
        "POST",
        "/api/esc/environments/{org}/{project}/{environment}/versions/tags",
        "CreateRevisionTag_esc_environments_versions_tags",
        "Name a revision of an environment",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}",
        "ReadRevisionTag_esc_environments",
        "A name of a revision",
    ),
    (
        "PATCH",
        "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}",
        "UpdateRevisionTag_esc_environments",
        "Move the name of a revision to another one",
    ),
    (
        "DELETE",
        "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}",
        "DeleteRevisionTag_esc_environments",
        "Remove the name of a revision",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/versions/{version}",
        "ReadEnvironment_esc_environments_versions",
        "The definition of a revision",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/decrypt",
        "DecryptEnvironment_esc_environments_versions",
        "The definition of a revision with its secrets",
    ),
    (
        "POST",
        "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/open",
        "OpenEnvironment_esc_environments_versions",
        "Open a revision of an environment",
    ),
    (
        "POST",
        "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/retract",
        "RetractEnvironmentRevision_esc_environments",
        "Retract a revision of an environment",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/tags",
        "ListEnvironmentTags_esc_environments",
        "The tags of an environment",
    ),
    (
        "POST",
        "/api/esc/environments/{org}/{project}/{environment}/tags",
        "CreateEnvironmentTag_esc_environments",
        "Add a tag to an environment",
    ),
    (
        "GET",
        "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}",
        "GetEnvironmentTag_esc_environments",
        "A tag of an environment",
    ),
    (
        "PATCH",
        "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}",
        "UpdateEnvironmentTag_esc_environments",
        "Change a tag of an environment",
    ),
    (
        "DELETE",
        "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}",
        "DeleteEnvironmentTag_esc_environments",
        "Remove a tag of an environment",
    ),
    ("GET", "/api/openapi", "GetDocument", "This document"),
    (
        "GET",
        "/api/openapi/pulumi-spec.json",
        "FetchRestSpecification",
        "This document, where Pulumi Cloud has its own",
    ),
    ("GET", "/tfstate/{guid}", "ReadStateById", "Read a Terraform state, by its id"),
    ("POST", "/tfstate/{guid}", "WriteStateById", "Write a Terraform state, by its id"),
    ("DELETE", "/tfstate/{guid}", "RemoveStateById", "Remove a Terraform state, by its id"),
    ("POST", "/tfstate/{guid}/lock", "LockStateById", "Lock a Terraform state, by its id"),
    ("DELETE", "/tfstate/{guid}/lock", "UnlockStateById", "Unlock a Terraform state, by its id"),
    ("GET", "/tfstate/{guid}/outputs", "ReadStateOutputsById", "The outputs of a Terraform state, by its id"),
    ("GET", "/tfstate/{org}/{project}", "ReadStateOfProject", "Read a Terraform state, by its project"),
    ("POST", "/tfstate/{org}/{project}", "WriteStateOfProject", "Write a Terraform state, by its project"),
    (
        "DELETE",
        "/tfstate/{org}/{project}",
        "RemoveStateOfProject",
        "Remove a Terraform state, by its project",
    ),
    ("POST", "/tfstate/{org}/{project}/lock", "LockStateOfProject", "Lock a Terraform state, by its project"),
    (
        "DELETE",
        "/tfstate/{org}/{project}/lock",
        "UnlockStateOfProject",
        "Unlock a Terraform state, by its project",
    ),
    (
        "GET",
        "/tfstate/{org}/{project}/outputs",
        "ReadStateOutputsOfProject",
        "The outputs of a Terraform state, by its project",
    ),
    ("GET", "/tfstate/{org}/{project}/{state}", "ReadStateByName", "Read a Terraform state, by its name"),
    ("POST", "/tfstate/{org}/{project}/{state}", "WriteStateByName", "Write a Terraform state, by its name"),
    (
        "DELETE",
        "/tfstate/{org}/{project}/{state}",
        "RemoveStateByName",
        "Remove a Terraform state, by its name",
    ),
    (
        "POST",
        "/tfstate/{org}/{project}/{state}/lock",
        "LockStateByName",
        "Lock a Terraform state, by its name",
    ),
    (
        "DELETE",
        "/tfstate/{org}/{project}/{state}/lock",
        "UnlockStateByName",
        "Unlock a Terraform state, by its name",
    ),
    (
        "GET",
        "/tfstate/{org}/{project}/{state}/outputs",
        "ReadStateOutputsByName",
        "The outputs of a Terraform state, by its name",
    ),
    (
        "GET",
        "/api/orgs/{org}/tfstates",
        "ListStates",
        "The Terraform states of an organization, a page at a time",
    ),
    ("POST", "/api/orgs/{org}/tfstates", "CreateState", "Make a Terraform state"),
    ("GET", "/api/orgs/{org}/tfstates/{project}/{state}", "GetStateByName", "A Terraform state, by its name"),
    ("GET", "/api/orgs/{org}/tfstate-locks", "ListStateLocks", "The locks of Terraform states"),
    (
        "GET",
        "/api/orgs/{org}/tfstate-removed",
        "ListRemovedStates",
        "The Terraform states that can be brought back",
    ),
    ("GET", "/api/orgs/{org}/tfstate-policy", "GetLabelPolicy", "The label policy of an organization"),
    (
        "PUT",
        "/api/orgs/{org}/tfstate-policy",
        "SetLabelPolicy",
        "Replace the label policy of an organization",
    ),
    (
        "GET",
        "/api/orgs/{org}/tfstate-policy/compliance",
        "GetLabelCompliance",
        "The Terraform states that break the label policy",
    ),
    (
        "GET",
        "/api/orgs/{org}/outputs",
        "ListOutputs",
        "The outputs of the states of an organization, without values",
    ),
    (
        "GET",
        "/api/orgs/{org}/outputs/stack/{project}/{stack}",
        "GetOutputsOfStack",
        "The outputs of a stack, with their values",
    ),
    (
        "GET",
        "/api/orgs/{org}/outputs/tfstate/{project}/{state}",
        "GetOutputsOfState",
        "The outputs of a Terraform state, with their values",
    ),
    ("GET", "/api/tfstates/{guid}", "GetState", "A Terraform state"),
    (
        "PATCH",
        "/api/tfstates/{guid}",
        "EditState",
        "Change the name, the policy or the labels of a Terraform state",
    ),
    ("DELETE", "/api/tfstates/{guid}", "DeleteState", "Remove a Terraform state"),
    ("POST", "/api/tfstates/{guid}/undelete", "RestoreRemovedState", "Bring back a Terraform state"),
    (
        "GET",
        "/api/tfstates/{guid}/outputs",
        "GetStateOutputs",
        "The outputs of a Terraform state, without values",
    ),
    (
        "GET",
        "/api/tfstates/{guid}/schemas",
        "GetOutputSchemas",
        "The schemas of the outputs of a Terraform state",
    ),
    (
        "PATCH",
        "/api/tfstates/{guid}/schemas",
        "EditOutputSchemas",
        "Change the schemas of the outputs of a Terraform state",
    ),
    ("GET", "/api/tfstates/{guid}/lock", "GetStateLock", "Who holds the lock of a Terraform state"),
    ("POST", "/api/tfstates/{guid}/lock", "HoldStateLock", "Lock a Terraform state by hand"),
    ("DELETE", "/api/tfstates/{guid}/lock", "BreakStateLock", "Unlock a Terraform state by hand"),
    (
        "GET",
        "/api/tfstates/{guid}/rejected",
        "ListRejectedWrites",
        "The writes of a Terraform state that were refused",
    ),
    ("GET", "/api/tfstates/{guid}/versions", "ListStateVersions", "The versions of a Terraform state"),
    ("GET", "/api/tfstates/{guid}/versions/{version}", "GetStateVersion", "A version of a Terraform state"),
    (
        "GET",
        "/api/tfstates/{guid}/versions/{version}/text",
        "GetStateText",
        "The text of a version of a Terraform state",
    ),
    (
        "GET",
        "/api/tfstates/{guid}/versions/{version}/diff/{other}",
        "CompareStateVersions",
        "What differs between two versions of a Terraform state",
    ),
    (
        "POST",
        "/api/tfstates/{guid}/versions/{version}/restore",
        "RestoreStateVersion",
        "Make an old version of a Terraform state the next one",
    ),
    ("GET", "/api/tfstates/{guid}/dependencies", "GetDependencies", "What a Terraform state reads of others"),
    ("GET", "/api/orgs/{org}/tfstate-edges", "ListEdges", "The edges between Terraform states"),
    ("POST", "/api/orgs/{org}/tfstate-edges", "AddEdge", "Add an edge between Terraform states"),
    ("GET", "/api/orgs/{org}/tfstate-edges/{edge}", "GetEdge", "An edge between Terraform states"),
    ("PATCH", "/api/orgs/{org}/tfstate-edges/{edge}", "EditEdge", "Change an edge between Terraform states"),
    (
        "DELETE",
        "/api/orgs/{org}/tfstate-edges/{edge}",
        "RemoveEdge",
        "Remove an edge between Terraform states",
    ),
    (
        "GET",
        "/api/orgs/{org}/tfstate-statuses",
        "ListStatuses",
        "The Terraform states with edges, and which are stale",
    ),
    (
        "GET",
        "/api/orgs/{org}/tfstate-topology",
        "GetTopology",
        "An order in which Terraform states can be run",
    ),
    ("GET", "/healthz", "GetHealth", "Whether the process serves"),
    ("GET", "/readyz", "GetReadiness", "Whether the server can do its work"),
    ("GET", "/", "GetHome", "What this server is, and how to log in"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::routes::ROUTES;
    use super::*;

    #[test]
    fn each_route_has_a_name_of_its_own_and_nothing_else_has_one() {
        let mut names = BTreeSet::new();
        for route in ROUTES {
            let Operation { id, summary } = of(route);
            assert!(!id.is_empty() && !summary.is_empty(), "{route:?} has no row in `operations.rs`");
            assert!(names.insert(id), "{id} twice");
        }
        assert_eq!(names.len(), OPERATIONS.len());
        let mut paths = BTreeSet::new();
        assert!(ROUTES.iter().all(|route| paths.insert((route.method.as_str(), route.path_in_document()))));
    }
}
