//! Names that users choose: organizations, projects, stacks, logins, access tokens, tags.
//!
//! Each is a type that only parsing can make, so every name that reaches a service is valid. The character sets are those
//! that the CLI enforces (pulumi v3.274.1, `pkg/backend/httpstate/names.go`). They make names safe in URLs, in item keys
//! (no name contains `#` or `/`) and in URNs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A name that breaks its rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a valid {what}: {rule}")]
pub struct InvalidName {
    /// The kind of name.
    pub what: &'static str,
    /// The given text, shortened.
    pub found: String,
    pub rule: &'static str,
}

/// Whether a text has the form of an access token. A client sent it as a name by mistake, and no log may show it.
fn is_access_token(text: &str) -> bool {
    text.strip_prefix("swt_")
        .is_some_and(|rest| rest.len() >= 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The first parts of paths of the server, and of what clients of Pulumi Cloud open. The pages of an organization begin
/// with its name.
const RESERVED: [&str; 15] = [
    "api",
    "assets",
    "claim",
    "cli-login",
    "docs",
    "healthz",
    "invite",
    "login",
    "logout",
    "readyz",
    "signin",
    "signout",
    "tfstate",
    "user",
    "welcome",
];

/// Refuses a name for a new organization or user that paths of the server begin with.
///
/// # Errors
/// [`InvalidName`].
pub fn check_new_owner(name: &str) -> Result<(), InvalidName> {
    if RESERVED.contains(&name) {
        let rule = "paths of the server begin with it, so choose another";
        let what = "name of a new organization or user";
        return Err(InvalidName { what, found: name.to_owned(), rule });
    }
    Ok(())
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses the name.
            ///
            /// # Errors
            /// [`InvalidName`] with the rule that the text breaks.
            pub fn parse(text: &str) -> Result<Self, InvalidName> {
                let valid: fn(&str) -> bool = $valid;
                if is_access_token(text) {
                    let rule = "this is an access token, which is sent as one";
                    Err(InvalidName { what: $what, found: "swt_…".to_owned(), rule })
                } else if valid(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    let found = text.chars().take(60).collect();
                    Err(InvalidName { what: $what, found, rule: $rule })
                }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

fn is_path_name(text: &str) -> bool {
    (1..=100).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
        // Clients remove `.` and `..` from paths, so they could never reach such a stack.
        && text != "."
        && text != ".."
}

fn is_owner(text: &str) -> bool {
    let bytes = text.as_bytes();
    (3..=40).contains(&bytes.len())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

name!(
    /// An organization, which owns stacks and states.
    OrgName,
    "organization name",
    "use 3 to 40 letters, digits, hyphens and underscores, with a letter or digit at both ends",
    is_owner
);
name!(
    /// A user's login.
    Login,
    "user name",
    "use 3 to 40 letters, digits, hyphens and underscores, with a letter or digit at both ends",
    is_owner
);

impl Login {
    /// Parses logins with commas between them. An empty text has none.
    ///
    /// # Errors
    /// [`InvalidName`] for the first text that is not a login.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, InvalidName> {
        text.split(',').map(str::trim).filter(|login| !login.is_empty()).map(Self::parse).collect()
    }
}

impl From<&OrgName> for Login {
    /// The login of the machines of an organization. Both names have one rule.
    fn from(org: &OrgName) -> Self {
        Self(org.0.clone())
    }
}

impl From<&Login> for OrgName {
    /// The organization whose machines have this login.
    fn from(login: &Login) -> Self {
        Self(login.0.clone())
    }
}

name!(
    /// A project: the second part of a stack's address.
    ProjectName,
    "project name",
    "use 1 to 100 letters, digits, hyphens, underscores and periods",
    is_path_name
);
name!(
    /// A stack within its project: the third part of its address.
    StackName,
    "stack name",
    "use 1 to 100 letters, digits, hyphens, underscores and periods",
    is_path_name
);
name!(
    /// The name of an access token.
    TokenName,
    "token name",
    "use 1 to 100 letters, digits, hyphens, underscores and periods",
    is_path_name
);
name!(
    /// The name of a team of an organization.
    TeamName,
    "team name",
    "use 1 to 40 letters, digits, hyphens, underscores and periods",
    |text| text.len() <= 40 && is_path_name(text)
);
name!(
    /// The name of a provider of sign-ins, as the operator chose it. It is a part of paths.
    ProviderName,
    "provider name",
    "use 1 to 32 lowercase letters, digits and hyphens, with a letter at the start, but not `sso` alone",
    |text| (1..=32).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        // The CLI opens `/signin/sso/{organization}/reauth`.
        && text != "sso"
);
name!(
    /// The name of a stack tag.
    TagName,
    "tag name",
    "use 1 to 40 letters, digits, hyphens, underscores, periods and colons",
    |text| (1..=40).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b':'))
);

name!(
    /// A state within its project: the third part of its address. The words that follow a state in paths are reserved.
    StateName,
    "state name",
    "use 1 to 100 letters, digits, hyphens, underscores and periods, but not `lock`, `unlock` or `outputs` alone",
    |text| is_path_name(text) && !is_word_of_states(text)
);

name!(
    /// The name of an output of a state, as a configuration may name it.
    OutputName,
    "name of an output",
    "use a letter or underscore, and then letters, digits, underscores and hyphens, of 256 bytes at most",
    |text| (1..=256).contains(&text.len())
        && text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
);

name!(
    /// The consumer's name for an output of another state: a local value of its configuration.
    InputName,
    "name of an input",
    "use an ASCII letter or underscore, and then letters, digits, underscores and hyphens, 128 at most",
    |text| (1..=128).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
);

name!(
    /// An environment within its project: the third part of its address.
    EnvironmentName,
    "environment name",
    "use 1 to 100 letters, digits, hyphens, underscores and periods",
    is_path_name
);

name!(
    /// The name of a tag of an environment, or of one of its revisions. `latest` is reserved for the current revision, and
    /// a tag must not look like a number.
    EnvironmentTagName,
    "tag name",
    "use a letter, and then letters, digits, hyphens, underscores, periods and colons, 128 at most, but not `latest` alone",
    |text| (1..=128).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b':'))
        && text != LATEST
);

/// The tag of the current revision of an environment.
pub const LATEST: &str = "latest";

/// The full address of an environment: `organization/project/environment`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EnvironmentAddress {
    pub org: OrgName,
    pub project: ProjectName,
    pub name: EnvironmentName,
}

/// The project of environments that are named without one.
pub const DEFAULT_ENVIRONMENT_PROJECT: &str = "default";

impl EnvironmentAddress {
    /// Parses the parts.
    ///
    /// # Errors
    /// [`InvalidName`] for the first part that breaks its rule.
    pub fn parse(org: &str, project: &str, name: &str) -> Result<Self, InvalidName> {
        let address = Self {
            org: OrgName::parse(org)?,
            project: ProjectName::parse(project)?,
            name: EnvironmentName::parse(name)?,
        };
        // `/api/esc/environments/{org}/yaml/open` opens a definition from the request.
        if project == "yaml" {
            let rule = "choose another name: paths use `yaml` in the place of a project";
            return Err(InvalidName {
                what: "project name of an environment",
                found: project.to_owned(),
                rule,
            });
        }
        Ok(address)
    }

    /// The name in imports of the same organization: `project/environment`.
    pub fn within_org(&self) -> String {
        format!("{}/{}", self.project, self.name)
    }
}

impl fmt::Display for EnvironmentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.org, self.project, self.name)
    }
}

/// Words that follow a state in paths.
fn is_word_of_states(text: &str) -> bool {
    matches!(text, "lock" | "unlock" | "outputs")
}

/// The full address of a Terraform or OpenTofu state: `organization/project/state`.
///
/// A project is one configuration, and its states are the workspaces of that configuration. A state named by its project
/// alone is called `default`, like the first workspace of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StateAddress {
    pub org: OrgName,
    pub project: ProjectName,
    pub state: StateName,
}

/// The name of the state that is named by its project alone.
pub const DEFAULT_STATE: &str = "default";

impl StateAddress {
    /// Parses the parts. Without a state, it is [`DEFAULT_STATE`].
    ///
    /// # Errors
    /// [`InvalidName`] for the first part that breaks its rule.
    pub fn parse(org: &str, project: &str, state: Option<&str>) -> Result<Self, InvalidName> {
        let address = Self {
            org: OrgName::parse(org)?,
            project: ProjectName::parse(project)?,
            state: StateName::parse(state.unwrap_or(DEFAULT_STATE))?,
        };
        // `/tfstate/{org}/lock` would be the lock of a state whose id is the organization.
        if is_word_of_states(project) {
            let rule =
                "use another name than `lock`, `unlock` or `outputs`, which stand behind a state in paths";
            return Err(InvalidName { what: "project name of a state", found: project.to_owned(), rule });
        }
        Ok(address)
    }
}

impl fmt::Display for StateAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.org, self.project, self.state)
    }
}

/// The full address of a stack: `organization/project/stack`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StackAddress {
    pub org: OrgName,
    pub project: ProjectName,
    pub stack: StackName,
}

impl StackAddress {
    /// Parses the three parts.
    ///
    /// # Errors
    /// [`InvalidName`] for the first part that breaks its rule.
    pub fn parse(org: &str, project: &str, stack: &str) -> Result<Self, InvalidName> {
        Ok(Self {
            org: OrgName::parse(org)?,
            project: ProjectName::parse(project)?,
            stack: StackName::parse(stack)?,
        })
    }
}

impl fmt::Display for StackAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.org, self.project, self.stack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_token_is_not_a_name() {
        let token = format!("swt_{}", "0a".repeat(32));
        let error = ProjectName::parse(&token).unwrap_err();
        assert_eq!(error.found, "swt_…");
        assert!(ProjectName::parse("swt_project").is_ok());
    }

    #[test]
    fn names_that_would_leave_their_path_or_key_are_refused() {
        for bad in ["", ".", "..", "a/b", "a#b", "a b", "ü", &"x".repeat(101)] {
            assert!(StackName::parse(bad).is_err(), "{bad:?} was taken as a stack name");
            assert!(ProjectName::parse(bad).is_err(), "{bad:?} was taken as a project name");
        }
        for good in ["dev", "a.b-c_D", "...", &"x".repeat(100)] {
            assert_eq!(StackName::parse(good).unwrap().as_str(), good);
        }
    }

    #[test]
    fn an_owner_has_a_letter_or_digit_at_both_ends() {
        for bad in ["ab", "-abc", "abc_", "a.b.c", &"x".repeat(41)] {
            assert!(OrgName::parse(bad).is_err(), "{bad:?} was taken as an organization");
        }
        assert_eq!(OrgName::parse("acme-corp_1").unwrap().as_str(), "acme-corp_1");
    }

    #[test]
    fn a_new_owner_has_no_name_of_a_path() {
        assert!(RESERVED.iter().all(|name| check_new_owner(name).is_err()));
        check_new_owner("apis").unwrap();
        // An organization of before stays.
        OrgName::parse("assets").unwrap();
    }

    #[test]
    fn a_state_name_cannot_be_a_word_of_the_paths() {
        for word in ["lock", "unlock", "outputs"] {
            assert!(StateAddress::parse("acme", "net", Some(word)).is_err(), "{word}");
            assert!(StateAddress::parse("acme", word, None).is_err(), "{word}");
        }
        let address = StateAddress::parse("acme", "net", None).unwrap();
        assert_eq!(address.to_string(), "acme/net/default");
        assert_eq!(StateAddress::parse("acme", "net", Some("default")).unwrap(), address);
    }

    #[test]
    fn a_refusal_says_the_rule() {
        let refusal = StackName::parse("a b").unwrap_err().to_string();
        assert_eq!(
            refusal,
            "\"a b\" is not a valid stack name: use 1 to 100 letters, digits, hyphens, underscores and periods"
        );
    }
}
