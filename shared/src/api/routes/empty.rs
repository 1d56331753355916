//! The rows of lists that are always empty: this server has no templates, policies or registry.

use crate::api::handlers::empty;
use crate::api::route::Answered::Json;
use crate::api::shapes::{of, packages, policy_groups, policy_packs, templates};
use crate::wire::pulumi::Templates;

rows! {
    Rows

    /// List the templates of an organization: none
    GET "/api/orgs/{org}/templates" => empty::templates {
        auth: Token, needs: See, group: Read,
        answer: Json(of::<Templates>), id: GetOrgTemplates,
    }
    /// List the policy packs of an organization: none
    GET "/api/orgs/{org}/policypacks" => empty::policy_packs {
        auth: Token, needs: See, group: Read,
        answer: Json(policy_packs), id: ListPolicyPacks_orgs,
    }
    /// List the policy groups of an organization: none
    GET "/api/orgs/{org}/policygroups" => empty::policy_groups {
        auth: Token, needs: See, group: Read,
        answer: Json(policy_groups), id: ListPolicyGroups,
    }
    /// List the packages of the registry: none
    GET "/api/registry/packages" => empty::packages {
        auth: Token, needs: Nothing, group: Read,
        answer: Json(packages), id: ListPackages,
    }
    /// List the templates of the registry: none
    GET "/api/registry/templates" => empty::registry_templates {
        auth: Token, needs: Nothing, group: Read,
        answer: Json(templates), id: ListTemplates,
    }
}
