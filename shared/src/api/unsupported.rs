//! Names the features that this server does not have, as the CLI's user knows them.

use axum::http::Method;

use super::error::Failure;
use super::route::STATES_ROOT;
use crate::services::error::StateError;

/// The refusal of a request that no route has.
pub(super) fn unsupported(method: &Method, path: &str) -> Failure {
    // Clients of states take 404 for an empty state, so no path below this root may get one.
    if path.starts_with(STATES_ROOT.trim_end_matches('/')) {
        return StateError::NoSuchAddress(path.to_owned()).into();
    }
    feature(path).map_or_else(|| Failure::NoRoute(format!("{method} {path}")), Failure::NotSupported)
}

/// The feature of a path below `/api/esc/`: `environments/{org}/{project}/{environment}/…`.
fn feature_of_environments<'a>(mut parts: impl Iterator<Item = &'a str>) -> &'static str {
    match parts.nth(4).unwrap_or_default() {
        "rotate" => "rotating secrets of environments",
        "schedules" => "scheduling",
        "hooks" => "sending webhooks",
        "drafts" => "drafts of environments",
        "open" => "asking for access to an environment",
        _ => "this part of Pulumi ESC",
    }
}

/// The feature that a path of Pulumi Cloud belongs to.
fn feature(path: &str) -> Option<&'static str> {
    let mut parts = path.strip_prefix("/api/")?.split('/');
    // Skip the names, which users choose.
    let names = match parts.next()? {
        "esc" => return Some(feature_of_environments(parts)),
        "change-requests" => return Some("change requests"),
        "ai" | "agents" => return Some("Pulumi AI"),
        "registry" => return Some("publishing to a registry"),
        "log-encryption-session" => return Some("sharing logs"),
        "preview" if parts.next()? == "insights" => return Some("Pulumi Insights"),
        "preview" => return Some("Pulumi AI"),
        "console" => return Some("an integration"),
        "orgs" => 1,
        "stacks" => 3,
        _ => return None,
    };
    let rest: Vec<&str> = parts.skip(names).take(2).collect();
    // `deployments/drift` is about drift.
    rest.iter().rev().find_map(|part| match *part {
        "deployments" => Some("Pulumi Deployments"),
        "schedules" | "ttl" => Some("scheduling"),
        "drift" => Some("drift detection"),
        "hooks" => Some("sending webhooks"),
        "policypacks" | "policygroups" | "policyresults" | "policy" => Some("managing policies"),
        "members" => Some("managing members"),
        "roles" => Some("managing roles"),
        "teams" => Some("managing teams"),
        "auditlogs" => Some("sending the audit trail elsewhere"),
        "search" => Some("searching resources"),
        "templates" | "template" => Some("publishing templates"),
        "config" => Some("remote configuration"),
        "logs" => Some("collecting logs"),
        _ => None,
    })
}
