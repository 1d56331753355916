//! The rows of stacks, with their secrets.

use crate::api::handlers::{empty, secrets, stacks};
use crate::api::parameters as query;
use crate::api::route::Answered::{Empty, Json, NoContent};
use crate::api::shapes::{anything, downloaded, of, policy_groups, required_policies};
use crate::limits::{DEPLOYMENT_BYTES_MAX, SECRETS_BYTES_MAX, SMALL_BYTES_MAX};
use crate::wire::Members;
use crate::wire::protection::{NewHold, NewProtection, Protection};
use crate::wire::pulumi::{
    BatchDecrypt, BatchDecrypted, BatchEncrypt, BatchEncrypted, Checkpoint, Ciphertext, Config, CreateStack,
    DeletedStacks, Imported, Plaintext, RenameStack, Renamed, RestoreDeletedStack, Stack, StackMetadata,
    StackOutputs, StackTag, TransferStack,
};

rows! {
    Rows

    /// Check whether a project exists
    HEAD "/api/stacks/{org}/{project}" => stacks::project_exists {
        auth: Token, needs: See, group: Read,
        answer: Empty, id: ProjectExists,
    }
    /// Create a stack
    POST "/api/stacks/{org}/{project}" => stacks::create_stack {
        auth: Token, needs: Apply, group: Head, audit: "stack.create",
        body: of::<CreateStack<'_>>, max: DEPLOYMENT_BYTES_MAX,
        answer: Json(anything), id: CreateStack,
    }
    /// Get a stack, with its tags and its running update
    GET "/api/stacks/{org}/{project}/{stack}" => stacks::get_stack {
        auth: Token, needs: See, group: Read,
        answer: Json(of::<Stack>), id: GetStack,
    }
    /// Delete a stack
    DELETE "/api/stacks/{org}/{project}/{stack}" => stacks::delete_stack {
        auth: Token, needs: Member, group: Head, audit: "stack.delete",
        query: [query::FORCE, query::FORCE_DESTROY],
        answer: NoContent, id: DeleteStack,
    }
    /// List the deleted stacks that can be undeleted
    GET "/api/orgs/{org}/restore-stack" => stacks::list_deleted {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION],
        answer: Json(of::<DeletedStacks>), id: ListDeletedStacks,
    }
    /// Undelete a stack
    POST "/api/orgs/{org}/restore-stack/{program}" => stacks::undelete {
        auth: Token, needs: Admin, group: Head, audit: "stack.undelete",
        body: of::<RestoreDeletedStack>,
        answer: NoContent, id: RestoreDeletedStack,
    }
    /// Get the environment that stores the configuration of a stack
    GET "/api/stacks/{org}/{project}/{stack}/config" => stacks::config {
        auth: Token, needs: Plan, group: Read, audit: "stack.show_config",
        answer: Json(of::<Config>), id: GetStackConfig,
    }
    /// Set the environment that stores the configuration of a stack
    PUT "/api/stacks/{org}/{project}/{stack}/config" => stacks::set_config {
        auth: Token, needs: Apply, group: Head, audit: "stack.config",
        body: of::<Config>,
        answer: Json(of::<Config>), id: UpdateStackConfig,
    }
    /// Return the configuration of a stack to its project
    DELETE "/api/stacks/{org}/{project}/{stack}/config" => stacks::remove_config {
        auth: Token, needs: Apply, group: Head, audit: "stack.config",
        answer: NoContent, id: DeleteStackConfig,
    }
    /// Get the owner of a stack
    GET "/api/stacks/{org}/{project}/{stack}/metadata" => stacks::metadata {
        auth: Token, needs: See, group: Read,
        answer: Json(of::<StackMetadata>), id: GetStackMetadata,
    }
    /// Replace the tags of a stack
    PATCH "/api/stacks/{org}/{project}/{stack}/tags" => stacks::set_tags {
        auth: Token, needs: Apply, group: Head, audit: "stack.tag",
        body: of::<Option<Members<String>>>,
        answer: NoContent, id: UpdateStackTags,
    }
    /// Add a tag to a stack
    POST "/api/stacks/{org}/{project}/{stack}/tags" => stacks::add_tag {
        auth: Token, needs: Apply, group: Head, audit: "stack.tag",
        body: of::<StackTag>,
        answer: NoContent, id: AddStackTag,
    }
    /// Change a tag of a stack
    PATCH "/api/stacks/{org}/{project}/{stack}/tags/{tag}" => stacks::edit_tag {
        auth: Token, needs: Apply, group: Head, audit: "stack.tag",
        body: of::<StackTag>,
        answer: NoContent, id: UpdateStackTag,
    }
    /// Delete a tag of a stack
    DELETE "/api/stacks/{org}/{project}/{stack}/tags/{tag}" => stacks::remove_tag {
        auth: Token, needs: Apply, group: Head, audit: "stack.tag",
        answer: NoContent, id: DeleteStackTag,
    }
    /// Protect a stack: it cannot be deleted or destroyed until an admin lifts the protection
    PUT "/api/stacks/{org}/{project}/{stack}/protection" => stacks::protect {
        auth: Token, needs: Admin, group: Head, audit: "stack.protect",
        body: of::<NewProtection>, max: SMALL_BYTES_MAX,
        answer: Json(of::<Protection>), id: ProtectStack,
    }
    /// Lift the protection of a stack
    DELETE "/api/stacks/{org}/{project}/{stack}/protection" => stacks::lift_protection {
        auth: Token, needs: Admin, group: Head, audit: "stack.unprotect",
        answer: NoContent, id: LiftStackProtection,
    }
    /// Hold a stack by hand: no update starts until somebody releases it
    PUT "/api/stacks/{org}/{project}/{stack}/hold" => stacks::hold {
        auth: Token, needs: Member, group: Head, audit: "stack.hold",
        body: of::<NewHold>, max: SMALL_BYTES_MAX,
        answer: Json(of::<Protection>), id: HoldStack,
    }
    /// Release a stack that is held by hand
    DELETE "/api/stacks/{org}/{project}/{stack}/hold" => stacks::release {
        auth: Token, needs: Member, group: Head, audit: "stack.release",
        answer: NoContent, id: ReleaseStack,
    }
    /// Rename a stack
    POST "/api/stacks/{org}/{project}/{stack}/rename" => stacks::rename {
        auth: Token, needs: Member, group: Head, audit: "stack.rename",
        body: of::<RenameStack>,
        answer: Json(of::<Renamed>), id: RenameStack,
    }
    /// Transfer a stack to another organization
    POST "/api/stacks/{org}/{project}/{stack}/transfer" => stacks::transfer {
        auth: Token, needs: Member, group: Head, audit: "stack.transfer",
        body: of::<TransferStack>,
        answer: Json(of::<Renamed>), id: TransferStack,
    }
    /// Encrypt a secret of a stack
    POST "/api/stacks/{org}/{project}/{stack}/encrypt" => secrets::encrypt {
        auth: Token, needs: Plan, group: Secrets,
        body: of::<Plaintext>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<Ciphertext>), id: EncryptValue,
    }
    /// Decrypt a secret of a stack
    POST "/api/stacks/{org}/{project}/{stack}/decrypt" => secrets::decrypt {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.open",
        body: of::<Ciphertext>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<Plaintext>), id: DecryptValue,
    }
    /// Encrypt secrets of a stack
    POST "/api/stacks/{org}/{project}/{stack}/batch-encrypt" => secrets::batch_encrypt {
        auth: Token, needs: Plan, group: Secrets,
        body: of::<BatchEncrypt>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<BatchEncrypted>), id: BatchEncryptValue,
    }
    /// Decrypt secrets of a stack
    POST "/api/stacks/{org}/{project}/{stack}/batch-decrypt" => secrets::batch_decrypt {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.open",
        body: of::<BatchDecrypt>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<BatchDecrypted>), id: BatchDecryptValue,
    }
    /// Record that a secret was shown
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-decryption" => secrets::log_decryption {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.show",
        body: anything,
        answer: NoContent, id: LogOnlyDecryptValue,
    }
    /// Record that secrets were shown
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-batch-decryption" => secrets::log_decryption {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.show",
        body: anything,
        answer: NoContent, id: LogOnlyBatchDecryptValue,
    }
    /// Export the state of a stack
    GET "/api/stacks/{org}/{project}/{stack}/export" => stacks::export {
        auth: Token, needs: Plan, group: Head, audit: "stack.export",
        answer: Json(of::<Checkpoint<'_>>), id: ExportStack,
    }
    /// Export the state of a stack at a version
    GET "/api/stacks/{org}/{project}/{stack}/export/{version}" => stacks::export {
        auth: Token, needs: Plan, group: Head, audit: "stack.export",
        answer: Json(of::<Checkpoint<'_>>), id: ExportStackAtVersion,
    }
    /// Download the state of a stack at a version, or get the URL of one that is longer than an answer
    POST "/api/stacks/{org}/{project}/{stack}/export/{version}" => stacks::download {
        auth: Token, needs: Plan, group: Head, audit: "stack.export",
        answer: Json(downloaded), id: ExportStackAtVersionByPost,
    }
    /// Import a state as the next version of a stack
    POST "/api/stacks/{org}/{project}/{stack}/import" => stacks::import {
        auth: Token, needs: Apply, group: Head, audit: "stack.import",
        body: of::<Checkpoint<'_>>, max: DEPLOYMENT_BYTES_MAX,
        answer: Json(of::<Imported>), id: ImportStack,
    }
    /// Get the outputs of a stack
    GET "/api/stacks/{org}/{project}/{stack}/outputs" => stacks::outputs {
        auth: Token, needs: Outputs, group: Head, audit: "stack.outputs",
        answer: Json(of::<StackOutputs>), id: GetStackOutputs,
    }
    /// List the policy packs that a stack must pass: none
    GET "/api/stacks/{org}/{project}/{stack}/policypacks" => empty::required_policies {
        auth: Token, needs: See, group: Read,
        answer: Json(required_policies), id: GetStackPolicyPacks,
    }
    /// List the policy groups of a stack: none
    GET "/api/stacks/{org}/{project}/{stack}/policygroups" => empty::stack_policy_groups {
        auth: Token, needs: See, group: Read,
        answer: Json(policy_groups), id: GetStackPolicyGroups,
    }
}
