//! The rows of environments.

use crate::api::handlers::environments;
use crate::api::parameters as query;
use crate::api::route::Answered::{Json, NoContent, Yaml};
use crate::api::shapes::{anything, checked, of, opened};
use crate::limits::{ENVIRONMENT_BYTES_MAX, SECRETS_BYTES_MAX};
use crate::wire::environments::{
    CloneEnvironment, DecryptSecrets, DecryptedSecrets, Diagnostics, EncryptSecrets, EncryptedSecrets,
    EnvironmentSettings, Environments as EnvironmentList, NamedEnvironment, NewRevisionTag, Opened,
    Referrers, RestoreEnvironment, Retract, Revision, RevisionTag, RevisionTagEdit, RevisionTags, Tag,
    TagEdit, TagText, Tags,
};

rows! {
    Rows

    /// List the environments that the user may see
    GET "/api/esc/environments" => environments::list_all {
        auth: Token, needs: See, group: Environments,
        query: [query::CONTINUATION],
        answer: Json(of::<EnvironmentList>), id: ListEnvironments_esc,
    }
    /// List the environments of an organization
    GET "/api/esc/environments/{org}" => environments::list {
        auth: Token, needs: See, group: Environments,
        query: [query::CONTINUATION],
        answer: Json(of::<EnvironmentList>), id: ListOrgEnvironments_esc,
    }
    /// Create an environment
    POST "/api/esc/environments/{org}" => environments::create {
        auth: Token, needs: Apply, group: Environments, audit: "environment.create",
        body: of::<NamedEnvironment>,
        answer: NoContent, id: CreateEnvironment_esc_environments,
    }
    /// List the deleted environments
    GET "/api/esc/environments/{org}/restore" => environments::list_deleted {
        auth: Token, needs: View, group: Environments,
        query: [query::CONTINUATION],
        answer: Json(of::<EnvironmentList>), id: ListDeletedEnvironments,
    }
    /// Undelete an environment
    PUT "/api/esc/environments/{org}/restore" => environments::undelete {
        auth: Token, needs: Member, group: Environments, audit: "environment.restore",
        body: of::<RestoreEnvironment>,
        answer: NoContent, id: RestoreEnvironment,
    }
    /// Check a definition
    POST "/api/esc/environments/{org}/yaml/check" => environments::check {
        auth: Token, needs: Plan, group: Environments, audit: "environment.check",
        query: [query::SHOW_SECRETS],
        body: anything, max: ENVIRONMENT_BYTES_MAX,
        answer: Json(checked), id: CheckYAML_esc,
    }
    /// Open a definition that is not stored
    POST "/api/esc/environments/{org}/yaml/open" => environments::open_text {
        auth: Token, needs: Plan, group: Environments, audit: "environment.open",
        query: [query::DURATION, query::OVERRIDES],
        body: anything, max: ENVIRONMENT_BYTES_MAX,
        answer: Json(of::<Opened>), id: OpenYAML_esc,
    }
    /// Get the values of an opened definition
    GET "/api/esc/environments/{org}/yaml/open/{session}" => environments::opened_values {
        auth: Token, needs: Plan, group: Environments, audit: "environment.look",
        query: [query::PROPERTY],
        answer: Json(opened), id: ReadAnonymousOpenEnvironment_esc,
    }
    /// Get the definition of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}" => environments::get {
        auth: Token, needs: View, group: Environments,
        answer: Yaml, id: ReadEnvironment_esc_environments,
    }
    /// Change the definition of an environment
    PATCH "/api/esc/environments/{org}/{project}/{environment}" => environments::update {
        auth: Token, needs: Apply, group: Environments, audit: "environment.edit",
        body: anything, max: ENVIRONMENT_BYTES_MAX,
        answer: Json(of::<Diagnostics>), id: UpdateEnvironment_esc_environments,
    }
    /// Delete an environment
    DELETE "/api/esc/environments/{org}/{project}/{environment}" => environments::delete {
        auth: Token, needs: Member, group: Environments, audit: "environment.delete",
        answer: NoContent, id: DeleteEnvironment_esc_environments,
    }
    /// Get the definition of an environment, with its secrets
    GET "/api/esc/environments/{org}/{project}/{environment}/decrypt" => environments::decrypt {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        answer: Yaml, id: DecryptEnvironment_esc_environments,
    }
    /// Get the definition of an environment, with its secrets, as a browser asks for it
    POST "/api/esc/environments/{org}/{project}/{environment}/decrypt" => environments::decrypt {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        answer: Yaml, id: DecryptEnvironmentByPost,
    }
    /// Open an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/open" => environments::open {
        auth: Token, needs: Plan, group: Environments, audit: "environment.open",
        query: [query::DURATION],
        answer: Json(of::<Opened>), id: OpenEnvironment_esc_environments,
    }
    /// Get the values of an opened environment
    GET "/api/esc/environments/{org}/{project}/{environment}/open/{session}" => environments::opened_values {
        auth: Token, needs: Plan, group: Environments, audit: "environment.look",
        query: [query::PROPERTY],
        answer: Json(opened), id: ReadOpenEnvironment_esc_environments,
    }
    /// Get the values of an opened environment, as a browser asks for them
    POST "/api/esc/environments/{org}/{project}/{environment}/opened/{session}" => environments::opened_values {
        auth: Token, needs: Plan, group: Environments, audit: "environment.look",
        query: [query::PROPERTY],
        answer: Json(opened), id: ReadOpenEnvironmentByPost,
    }
    /// Clone an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/clone" => environments::clone {
        auth: Token, needs: Apply, group: Environments, audit: "environment.clone",
        body: of::<CloneEnvironment>,
        answer: NoContent, id: CloneEnvironment,
    }
    /// Get the settings of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/settings" => environments::settings {
        auth: Token, needs: View, group: Environments,
        answer: Json(of::<EnvironmentSettings>), id: GetEnvironmentSettings,
    }
    /// Change the settings of an environment
    PATCH "/api/esc/environments/{org}/{project}/{environment}/settings" => environments::set_settings {
        auth: Token, needs: Member, group: Environments, audit: "environment.protect",
        body: of::<EnvironmentSettings>,
        answer: NoContent, id: PatchEnvironmentSettings,
    }
    /// Encrypt secrets of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/encrypt-secrets" =>
    environments::encrypt_secrets {
        auth: Token, needs: Plan, group: Environments,
        body: of::<EncryptSecrets>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<EncryptedSecrets>), id: EncryptEnvironmentSecrets,
    }
    /// Decrypt secrets of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/decrypt-secrets" =>
    environments::decrypt_secrets {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        body: of::<DecryptSecrets>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<DecryptedSecrets>), id: DecryptEnvironmentSecrets,
    }
    /// List the revisions of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/versions" => environments::revisions {
        auth: Token, needs: View, group: Environments,
        query: [query::BEFORE, query::COUNT],
        answer: Json(of::<Vec<Revision>>), id: ListEnvironmentRevisions_esc_environments,
    }
    /// List the names of revisions of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/tags" => environments::revision_tags {
        auth: Token, needs: View, group: Environments,
        query: [query::AFTER, query::COUNT],
        answer: Json(of::<RevisionTags>), id: ListRevisionTags_esc_environments_versions,
    }
    /// Name a revision of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/tags" =>
    environments::add_revision_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        body: of::<NewRevisionTag>,
        answer: NoContent, id: CreateRevisionTag_esc_environments_versions_tags,
    }
    /// Get a name of a revision
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" =>
    environments::get_revision_tag {
        auth: Token, needs: Plan, group: Environments,
        answer: Json(of::<RevisionTag>), id: ReadRevisionTag_esc_environments,
    }
    /// Move the name of a revision to another one
    PATCH "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" =>
    environments::move_revision_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        body: of::<RevisionTagEdit>,
        answer: NoContent, id: UpdateRevisionTag_esc_environments,
    }
    /// Delete the name of a revision
    DELETE "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" =>
    environments::remove_revision_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        answer: NoContent, id: DeleteRevisionTag_esc_environments,
    }
    /// Get the definition of a revision
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/{version}" => environments::get {
        auth: Token, needs: View, group: Environments,
        answer: Yaml, id: ReadEnvironment_esc_environments_versions,
    }
    /// Get the definition of a revision, with its secrets
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/decrypt" =>
    environments::decrypt {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        answer: Yaml, id: DecryptEnvironment_esc_environments_versions,
    }
    /// Get the definition of a revision, with its secrets, as a browser asks for it
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/decrypt" =>
    environments::decrypt {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        answer: Yaml, id: DecryptEnvironmentRevisionByPost,
    }
    /// Open a revision of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/open" => environments::open {
        auth: Token, needs: Plan, group: Environments, audit: "environment.open",
        query: [query::DURATION],
        answer: Json(of::<Opened>), id: OpenEnvironment_esc_environments_versions,
    }
    /// Retract a revision of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/retract" =>
    environments::retract {
        auth: Token, needs: Member, group: Environments, audit: "environment.retract",
        body: of::<Retract>,
        answer: NoContent, id: RetractEnvironmentRevision_esc_environments,
    }
    /// List what imports an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/referrers" => environments::referrers {
        auth: Token, needs: View, group: Environments,
        query: [query::CONTINUATION, query::COUNT, query::ALL_REVISIONS],
        answer: Json(of::<Referrers>), id: ListEnvironmentReferrers_esc_environments,
    }
    /// List the tags of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/tags" => environments::list_tags {
        auth: Token, needs: View, group: Environments,
        query: [query::AFTER, query::COUNT],
        answer: Json(of::<Tags>), id: ListEnvironmentTags_esc_environments,
    }
    /// Add a tag to an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/tags" => environments::add_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        body: of::<TagText>,
        answer: Json(of::<Tag>), id: CreateEnvironmentTag_esc_environments,
    }
    /// Get a tag of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" => environments::get_tag {
        auth: Token, needs: View, group: Environments,
        answer: Json(of::<Tag>), id: GetEnvironmentTag_esc_environments,
    }
    /// Change a tag of an environment
    PATCH "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" => environments::edit_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        body: of::<TagEdit>,
        answer: Json(of::<Tag>), id: UpdateEnvironmentTag_esc_environments,
    }
    /// Delete a tag of an environment
    DELETE "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" => environments::remove_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        answer: NoContent, id: DeleteEnvironmentTag_esc_environments,
    }
}
