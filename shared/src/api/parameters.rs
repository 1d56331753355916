//! The query parameters that routes read. A handler gets those of its row and no others: see
//! [`Parameters`](super::query::Parameters).

/// A query parameter of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The name in the query.
    pub name: &'static str,
    /// The form of the value.
    pub form: ParameterForm,
    /// Whether a request without it is refused.
    pub is_required: bool,
    /// What it asks for, in a few words.
    pub about: &'static str,
}

/// The form of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterForm {
    /// Any text.
    Text,
    /// Any text, and the parameter may be repeated.
    Texts,
    /// A whole number from 0.
    Number,
    /// `true` or `false`.
    Flag,
}

impl ParameterForm {
    /// The name in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Texts => "texts",
            Self::Number => "number",
            Self::Flag => "true or false",
        }
    }
}

const fn of(name: &'static str, form: ParameterForm, about: &'static str) -> Parameter {
    Parameter { name, form, is_required: false, about }
}

const fn text(name: &'static str, about: &'static str) -> Parameter {
    of(name, ParameterForm::Text, about)
}

const fn number(name: &'static str, about: &'static str) -> Parameter {
    of(name, ParameterForm::Number, about)
}

const fn flag(name: &'static str, about: &'static str) -> Parameter {
    of(name, ParameterForm::Flag, about)
}

const fn needed(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, form: ParameterForm::Text, is_required: true, about }
}

macro_rules! parameters {
    ($($name:ident: $parameter:expr;)*) => {
        $(pub(super) const $name: Parameter = $parameter;)*
    };
}

parameters! {
    // Lists.
    CONTINUATION: text("continuationToken", "The position of the page, from the answer with the page before");
    PAGE: number("page", "The number of the page, from 1");
    PAGE_SIZE: number("pageSize", "The entries of a page");
    SIZE: number("size", "The resources of a page, at most 1,000");
    COUNT: number("count", "The entries of a page");
    AFTER: text("after", "The name that ended the page before");
    MAX_RESULTS: number("maxResults", "The tokens of a page, at most 1,000");
    PROJECT: text("project", "Only those of this project");

    // Stacks.
    ORGANIZATION: text("organization", "Only those of this organization");
    TAG_NAME: text("tagName", "Only those with this tag");
    TAG_VALUE: text("tagValue", "Only those with this value of the tag");
    LAST_RESULT: text("lastUpdateResult", "How the last update ended: `succeeded`, `failed` or `cancelled`");
    FORCE: flag("force", "Whether to delete it with its resources");
    FORCE_DESTROY: flag("forceDestroy", "The same, as other clients write it");
    OUTPUT_TYPE: text("output-type", "`service` for the shape of Pulumi Cloud's console");
    OLDEST_FIRST: flag("asc", "Whether the oldest comes first");
    EVENT_TYPE: text("type", "`9` for violations of policies only");
    EVENT_URNS: of("urn", ParameterForm::Texts, "Only events of these resources");
    ACCESS_OF: text("user", "The member whose rights are explained to an admin; the caller without it");
    ACCESS_KIND: text("kind", "With `user`, what the name is of: stack, tfstate or environment");

    // Resources.
    VERSION: text("version", "The version; the current one without it");
    FILTER: text("filter", "Only those with these words in the type, the name or the ID");
    PARENT: text("parent", "Only those below the resource with this URN");
    URN: needed("urn", "The URN of the resource");
    DELETE: flag("delete", "Whether it is the resource that waits for its deletion");
    SHORT: flag("short", "Whether inputs and outputs of more than 4 MiB are left out");
    HOPS: number("hops", "The steps to the neighbors, from 1 to 3");
    ADDRESS_FILTER: text("filter", "Only those with these words in the address or the provider");
    ADDRESS: needed("address", "The address of the resource");
    ONE_ADDRESS: text("address", "Only the resource with this address; no others and no outputs");

    // States.
    LABEL_FILTER: text("filter", "Only states for which this expression over labels holds");
    LABELS: of("label", ParameterForm::Texts, "Only states with these labels, as `key=value`");
    STATUS: flag("status", "Whether the answer tells if a state is stale");
    STATE: text("state", "Only those of this name");
    LOCK_ID: text("ID", "The ID of the lock that the client holds");
    PRODUCER: text("producer", "Only dependencies on this state: its ID, `PROJECT/STATE` or `PROJECT`");
    CONSUMER: text("consumer", "Only dependencies of this state: its ID, `PROJECT/STATE` or `PROJECT`");
    OUTPUT: text("output", "Only dependencies on an output of this name");
    FROM_STATE: text("state", "Where the order begins: an ID, `PROJECT/STATE` or `PROJECT`; all without it");
    DIRECTION: text("direction", "`down` to what depends on the state, or `up` to what it depends on");

    // Environments.
    DURATION: text("duration", "The time for which the values can be read, such as `2h30m`");
    OVERRIDES: text("environmentOverrides", "Texts instead of environments, as JSON in URL-safe Base64");
    PROPERTY: text("property", "The path of one value; all values without it");
    SHOW_SECRETS: flag("showSecrets", "Whether the secrets in the text are shown");
    BEFORE: number("before", "Only revisions before this one");
    ALL_REVISIONS: flag("allRevisions", "Whether those that use older revisions are shown too");

    // The organization.
    REASON: text("reason", "Why, for the audit trail");
    TOKENS_SHOWN: text("filter", "`active`, `expired` or `all`");
    GRANT_TO: needed("to", "The grantee: `everybody`, `user:LOGIN`, `team:NAME` or `token:NAME`");
    GRANT_ON: needed("on", "The part: `*`, `PROJECT/NAME` or `tag:NAME=VALUE`");
    GRANT_ROLE: needed("role", "The role");
    DRY_RUN: flag("dryRun", "Whether to show the changes without making them");
    PURPOSE: text("uxPurpose", "`role`: other purposes have no roles");

    // The audit trail.
    START: text("startTime", "The earliest time, in seconds since 1970 or in RFC 3339");
    LATEST: text("startTime", "The latest time, in seconds since 1970 or in RFC 3339");
    END: text("endTime", "The latest time, in seconds since 1970 or in RFC 3339");
    OF_USER: text("userFilter", "Only records of this user");
    OF_USER_SHORT: text("user", "The same, as other clients write it");
    OF_EVENT: text("eventFilter", "Only records of this action");
    OF_EVENT_TYPE: text("eventType", "The same, as other clients write it");
    OF_STACK: text("stack", "Only records of this stack: `PROJECT/STACK`");
    OF_STATE: text("state", "Only records of this state: `PROJECT/STATE`");
    TEXT_FORM: text("format", "`csv` or `cef`");
    ORDER: text("order", "`oldest` or `newest` first; `newest` without it");
    WHOLE: flag("whole", "Whether each event has the stored record, too");

    // Pages for a browser.
    NEXT: text("next", "The page of this server that opens after the sign-in");
    LED: text("led", "Whether this server led the browser to this address");
    CODE: text("code", "The code of the provider's answer");
    ANSWER_STATE: text("state", "The state of the attempt");
    ISSUER: text("iss", "The issuer of the answer");
    ANSWER_ERROR: text("error", "Why the provider refuses");
    INVITATION: needed("code", "The code of the invitation");
    PORT: needed("cliSessionPort", "The port at which the program listens");
    NONCE: needed("cliSessionNonce", "The number that the program expects back");
    DESCRIPTION: text("cliSessionDescription", "How the program describes itself");
    COMMAND: text("cliCommand", "The command that asks");
    CHALLENGE: needed("code_challenge", "The challenge of the program (PKCE)");
    CHALLENGE_METHOD: needed("code_challenge_method", "`S256`");
    OWN_DESCRIPTION: text("description", "How the program describes itself");
    OWN_PORT: text("port", "The port at which the program listens; without it, the page shows the code");
    OWN_STATE: text("state", "The text that the program expects back");
}
