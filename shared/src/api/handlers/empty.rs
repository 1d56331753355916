//! Lists that every client requests and that are empty here: the registry, templates, policies. An error
//! instead would break commands that work without them, such as `pulumi new` and `pulumi package add`.

use std::collections::BTreeMap;

use axum::extract::State;
use serde_json::json;

use crate::api::app::App;
use crate::api::path::{OrgPath, StackPath};
use crate::api::response::{Answer, json as answer};
use crate::services::caller::Caller;
use crate::services::store::stack_lookup;
use crate::wire::pulumi::Templates;

/// No packages. The CLI continues with the public registry.
pub(crate) async fn packages(_: Caller) -> Answer {
    answer(&json!({ "packages": [] }))
}

/// No templates in the registry. `pulumi new` requests them twice.
pub(crate) async fn registry_templates(_: Caller) -> Answer {
    answer(&json!({ "templates": [] }))
}

/// No templates of the organization.
pub(crate) async fn templates(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    caller.lists(&app, &org).await?;
    answer(&Templates {
        templates: BTreeMap::new(),
        org_has_templates: false,
        has_access_error: false,
        has_upstream_error: false,
    })
}

/// No policy packs that a stack must pass.
pub(crate) async fn required_policies(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    stack_lookup::locate(&app, &caller, &address).await?;
    answer(&json!({ "requiredPolicies": [] }))
}

/// No policy groups of a stack.
pub(crate) async fn stack_policy_groups(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    stack_lookup::locate(&app, &caller, &address).await?;
    answer(&json!({ "policyGroups": [] }))
}

/// No policy packs of the organization.
pub(crate) async fn policy_packs(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    caller.lists(&app, &org).await?;
    answer(&json!({ "policyPacks": [] }))
}

/// No policy groups of the organization.
pub(crate) async fn policy_groups(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    caller.lists(&app, &org).await?;
    answer(&json!({ "policyGroups": [] }))
}
