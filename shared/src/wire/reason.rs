//! The reasons of refusals: words that scripts may rely on.

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($status:literal $word:literal $name:ident: $meaning:literal;)*) => {
        /// The `reason` of an error: a word that stays the same when messages change. New reasons may be
        /// added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Reason {
            $(#[doc = $meaning] #[serde(rename = $word)] $name,)*
        }

        impl Reason {
            /// All reasons, by status.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// Parses a reason; `None` for one of a newer server.
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$name),)* _ => None }
            }

            /// The HTTP status of answers with this reason.
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status),* }
            }

            /// The meaning and the next step, as Markdown.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning),* }
            }
        }
    };
}

reasons! {
    400 "invalid_request" InvalidRequest: "The request cannot be read, or a part of it breaks a rule that the message names.";
    400 "invalid_name" InvalidName: "A name breaks its rule.";
    400 "invalid_deployment" InvalidDeployment: "The body is not a deployment or journal entry that this server can record. Upgrade the server if the client is newer.";
    400 "invalid_state" InvalidState: "The body is not a state of Terraform or OpenTofu.";
    400 "invalid_ciphertext" InvalidCiphertext: "This server did not encrypt the ciphertext for this stack or environment. Set the secret again.";
    400 "plaintext_secrets" PlaintextSecrets: "The deployment holds secrets in plain text. Encrypt them first.";
    400 "limit_exceeded" LimitExceeded: "A number or a length would exceed the limit in the message.";
    400 "stack_has_resources" StackHasResources: "The stack still has resources. Destroy them, or force the deletion.";
    400 "label_policy_violated" LabelPolicyViolated: "The labels break the organization's policy.";
    400 "environment_invalid" EnvironmentInvalid: "The definition of the environment has errors, which `diagnostics` lists.";
    401 "unauthenticated" Unauthenticated: "The request has no credentials that this server knows. Log in again.";
    401 "token_expired" TokenExpired: "The access token or the client certificate has expired. Make a new one.";
    401 "sign_in_needed" SignInNeeded: "No person is signed in with this browser, or the user's provider has to confirm the user. Sign in at `/signin`.";
    401 "sign_in_too_old" SignInTooOld: "The person signed in with this browser too long ago for this. Sign in again at `/signin`.";
    403 "role_too_low" RoleTooLow: "The user or the token may not do this. An admin of the organization or the operator can grant more.";
    403 "token_lives_too_long" TokenLivesTooLong: "The access token has more time left than the organization allows, or no end. Create one that expires earlier.";
    403 "state_forbidden" StateForbidden: "The state does not exist, or the caller may not use it. It is not 404, which clients take for an empty state.";
    403 "state_encrypted" StateEncrypted: "The client encrypted the state, so the server cannot read its outputs.";
    403 "token_not_accepted" TokenNotAccepted: "The organization does not accept this token of another issuer. The server's audit log has the reason.";
    403 "login_code_not_accepted" LoginCodeNotAccepted: "The code of a login at the command line is wrong, used, too old, or of another login. Log in again.";
    403 "consent_missing" ConsentMissing: "The user has not consented to personal tokens for the jobs of this issuer.";
    403 "update_token_invalid" UpdateTokenInvalid: "The update token is not valid for this update. Run the command again.";
    403 "update_over" UpdateOver: "The update has ended or cannot continue, and the server stores nothing more from its client.";
    403 "sign_in_refused" SignInRefused: "The provider, or a rule for its people, does not let the person in.";
    403 "other_site" OtherSite: "Another site, or a client that is not a browser, sent the form of a page.";
    403 "post_needed" PostNeeded: "The session of a browser gets secrets by POST alone. Send the request with POST, or with an access token.";
    404 "not_supported" NotSupported: "The server has no feature at this path.";
    404 "organization_not_found" OrganizationNotFound: "The organization does not exist, or the caller is not a member.";
    404 "team_not_found" TeamNotFound: "The organization has no such team.";
    404 "token_not_found" TokenNotFound: "The access token does not exist.";
    404 "role_not_found" RoleNotFound: "The server does not have this role.";
    404 "grant_not_found" GrantNotFound: "The organization does not have this grant.";
    404 "user_not_found" UserNotFound: "The user does not exist, or is not a member.";
    404 "issuer_not_found" IssuerNotFound: "The organization has no such issuer.";
    404 "consent_not_found" ConsentNotFound: "The user has no such consent.";
    404 "project_not_found" ProjectNotFound: "No stack of the project exists.";
    404 "stack_not_found" StackNotFound: "The stack does not exist, or the caller may not see it.";
    404 "stack_version_not_found" StackVersionNotFound: "The stack has no such version, or no version yet.";
    404 "stack_version_erased" StackVersionErased: "The version is older than the versions that the server keeps.";
    404 "resource_not_found" ResourceNotFound: "The version has no such resource.";
    404 "secret_not_found" SecretNotFound: "The resource has no secret at this place.";
    404 "stack_config_not_found" StackConfigNotFound: "The server does not store the configuration of this stack.";
    404 "update_not_found" UpdateNotFound: "The stack has no such update.";
    404 "tag_not_found" TagNotFound: "The stack or environment has no such tag.";
    404 "state_not_found" StateNotFound: "The state does not exist, or the caller may not see it.";
    404 "state_version_not_found" StateVersionNotFound: "The state has no such version.";
    404 "dependency_not_found" DependencyNotFound: "There is no such dependency between states.";
    404 "environment_not_found" EnvironmentNotFound: "The environment does not exist, or the caller may not see it.";
    404 "revision_not_found" RevisionNotFound: "The environment has no such revision.";
    404 "session_not_found" SessionNotFound: "The opened environment, or the session of a browser, is over or belongs to somebody else.";
    404 "provider_not_found" ProviderNotFound: "There is no sign-in provider with this name.";
    405 "method_not_allowed" MethodNotAllowed: "The path does not support this method. The `Allow` header lists the supported ones.";
    408 "request_timeout" RequestTimeout: "The request was not complete in time.";
    409 "issuer_exists" IssuerExists: "The organization has an issuer with this address.";
    409 "account_conflict" AccountConflict: "The login belongs to a user without this account or to an admin of the server, or the account to another user.";
    409 "name_taken" NameTaken: "A user, an organization, a team or a token of this name exists, or a token had this name.";
    409 "member_exists" MemberExists: "The user is a member already.";
    409 "last_admin" LastAdmin: "The organization would have no admin. Make another member an admin first.";
    409 "access_changed" AccessChanged: "The teams and grants have changed since you read them. Export them again.";
    409 "stack_exists" StackExists: "A stack of this name exists.";
    409 "stack_protected" StackProtected: "The stack is protected: it cannot be deleted, destroyed, emptied or transferred until an admin lifts the protection.";
    409 "stack_version_not_indexed" StackVersionNotIndexed: "The version has no index of its resources, and is too large to be read without one. The operator runs `statewright stack index`.";
    409 "secret_elsewhere" SecretElsewhere: "The server did not encrypt this secret, so it cannot open it. Use the passphrase or the key of its secrets provider.";
    409 "stack_locked" StackLocked: "Another update holds the stack. Wait for it, or cancel it.";
    409 "stack_on_hold" StackOnHold: "A person holds the stack, and no update starts. Wait, or ask a member to release it.";
    409 "update_of_other_user" UpdateOfOtherUser: "Another user created the update.";
    409 "update_not_ready" UpdateNotReady: "The update is in another step: for example, it was not started, or has ended.";
    409 "nothing_to_cancel" NothingToCancel: "The last update has already ended.";
    409 "delta_mismatch" DeltaMismatch: "The delta does not apply to the text that was saved before. Send the whole text.";
    409 "state_exists" StateExists: "A state of this name or id exists.";
    409 "state_has_resources" StateHasResources: "The state still has resources. Destroy them, or force the deletion.";
    409 "state_lock_lost" StateLockLost: "Another lock holds the state now.";
    409 "state_protected" StateProtected: "The state is protected: it cannot be deleted or emptied until an admin lifts the protection. A write that would empty it is stored under the ID in the message.";
    409 "state_write_refused" StateWriteRefused: "The server refused the write as a version, and stores it under the ID in the message.";
    409 "dependency_refused" DependencyRefused: "The dependency would make a cycle, or its name is taken.";
    409 "label_policy_changed" LabelPolicyChanged: "The label policy has changed since you read it. Read it again.";
    409 "environment_exists" EnvironmentExists: "An environment, or a tag of one, of this name exists.";
    409 "environment_changed" EnvironmentChanged: "The environment has changed since you read it. Read it again.";
    409 "environment_protected" EnvironmentProtected: "The environment is protected from deletion.";
    410 "state_deleted" StateDeleted: "The state was deleted, and its name is reserved. Undelete it, or create a new one.";
    413 "request_too_large" RequestTooLarge: "The body, or a part of it, exceeds the limit in the message.";
    413 "too_large_for_gateway" TooLargeForGateway: "The request or its answer exceeds the limit of the functions' gateway. Run `statewright serve`, for example in a container, on the same store.";
    413 "state_near_limit" StateNearLimit: "The state's next version would probably not fit through the gateway. Split the state, or run `statewright serve`, for example in a container, on the same store.";
    422 "resources_unknown" ResourcesUnknown: "The client encrypted the version, or wrote it in a format that the server does not know, so the server cannot list its resources.";
    423 "state_locked" StateLocked: "Somebody holds the lock of the state. Wait for it, or break it.";
    424 "master_key_unavailable" MasterKeyUnavailable: "The server cannot use its master key, so secrets cannot be encrypted or opened.";
    429 "too_many_requests" TooManyRequests: "The token has too many requests under way, or the address has too many connections. `Retry-After` says when to try again.";
    429 "too_many_wrong_passwords" TooManyWrongPasswords: "Somebody sent wrong passwords for this user, or from this address. `Retry-After` says when to try again.";
    429 "passwords_busy" PasswordsBusy: "The server is checking too many passwords. Try again.";
    429 "too_many_wrong_proofs" TooManyWrongProofs: "Refused proofs of AWS came from this address or with this access key. `Retry-After` says when to try again.";
    429 "proofs_busy" ProofsBusy: "The server is asking AWS about too many proofs. Try again.";
    500 "internal_error" InternalError: "The server has a bug. Its log describes it, under the request's ID. Report it.";
    500 "stored_data_damaged" StoredDataDamaged: "Stored data cannot be read. The server's log says why, under the request's ID.";
    500 "stored_data_too_new" StoredDataTooNew: "A newer version of the server stored this. Upgrade the server.";
    503 "contended" Contended: "Other requests changed the same item during every attempt. Try again.";
    503 "server_busy" ServerBusy: "Other requests hold the server's memory. Try again.";
    503 "server_stopping" ServerStopping: "The server is stopping. Send the request again.";
    503 "not_ready" NotReady: "A part of the server does not work yet.";
    503 "issuer_unavailable" IssuerUnavailable: "The keys of the token's issuer cannot be fetched now. Try again in a minute.";
    503 "provider_unavailable" ProviderUnavailable: "The sign-in provider did not answer. Try again.";
    503 "store_unavailable" StoreUnavailable: "The store did not answer. Nothing is lost. Try again.";
    507 "disk_full" DiskFull: "The disk of the server is full. Acknowledged writes are safe.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Regenerate the page with `UPDATE_PAGES=1 cargo test --workspace --lib the_page_lists_every_reason`.
    #[test]
    fn the_page_lists_every_reason() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/http-api.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (start, end) = ("<!-- reasons -->\n", "<!-- end of reasons -->");
        let (before, rest) = page.split_once(start).expect("the page has the marker");
        let (_, after) = rest.split_once(end).expect("the marker has an end");
        let mut table = "| status | reason | meaning |\n|---|---|---|\n".to_owned();
        for reason in Reason::ALL {
            table += &format!("| {} | `{}` | {} |\n", reason.status(), reason.as_str(), reason.meaning());
        }
        let wanted = format!("{before}{start}{table}{end}{after}");
        if std::env::var_os("UPDATE_PAGES").is_some() {
            std::fs::write(path, &wanted).unwrap();
        }
        assert_eq!(std::fs::read_to_string(path).unwrap(), wanted);
    }

    #[test]
    fn every_reason_has_its_own_word() {
        let words: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            let word = reason.as_str();
            assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{word}");
            assert_eq!(serde_json::to_string(reason).unwrap(), format!("{word:?}"));
            assert_eq!(Reason::parse(word), Some(*reason));
            assert!(reason.meaning().ends_with('.'), "{word}");
            assert!((400..600).contains(&reason.status()), "{word}");
        }
        assert!(Reason::ALL.is_sorted_by_key(|reason| reason.status()), "the table is by status");
    }
}
