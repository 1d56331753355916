//! Providers of sign-ins that the environment of a process describes. Functions get theirs by a template.

use serde::Deserialize;

use super::providers::{self, DAYS, DAYS_MAX, PROVIDERS_MAX};
use crate::context::GivenProvider;
use crate::domain::names::ProviderName;
use crate::domain::server_url::ServerUrl;
use crate::domain::sign_in::{GROUPS_CLAIM, LOGIN_CLAIM, SignInRule};
use crate::layout::SignInProvider;
use crate::ports::Timestamp;

/// The variable with the description: a JSON list.
pub const VARIABLE: &str = "STATEWRIGHT_SIGN_IN_PROVIDERS";

/// Scopes that a provider is asked for, unless its description names others.
pub const SCOPES: [&str; 2] = ["profile", "email"];

/// The length of a provider's name in an error, in characters, at most.
const NAME_CHARACTERS_MAX: usize = 40;

/// Why a description cannot be used. The texts follow the name of the variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProviders {
    /// It is not the JSON of a list of providers.
    #[error("is not a JSON list of providers: {0}")]
    Json(String),
    /// There are too many.
    #[error("describes more than {PROVIDERS_MAX} providers: leave some out")]
    TooMany,
    /// Two have the same name.
    #[error("describes the provider {0} twice: choose another name for one of them")]
    Twice(ProviderName),
    /// One of them cannot be used.
    #[error("describes the provider {name:?} wrongly: {why}")]
    Provider {
        /// Its name, shortened.
        name: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A provider, as the JSON has it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Described {
    name: String,
    title: Option<String>,
    issuer: String,
    client_id: String,
    client_secret_variable: Option<String>,
    #[serde(default)]
    public: bool,
    server: Option<String>,
    scopes: Option<Vec<String>>,
    login_claim: Option<String>,
    groups_claim: Option<String>,
    days: Option<u32>,
    #[serde(default)]
    rules: Vec<String>,
}

/// Reads a description. `server` is the address of this server, for a provider that names none; `variable` finds the
/// variables that have the client secrets.
///
/// # Errors
/// [`InvalidProviders`]. The text never has a secret.
pub fn parse(
    text: &str,
    server: Option<&ServerUrl>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Vec<GivenProvider>, InvalidProviders> {
    let described: Vec<Described> =
        serde_json::from_str(text).map_err(|error| InvalidProviders::Json(error.to_string()))?;
    if described.len() > PROVIDERS_MAX {
        return Err(InvalidProviders::TooMany);
    }
    let mut all: Vec<GivenProvider> = Vec::with_capacity(described.len());
    for one in described {
        let name = one.name.chars().take(NAME_CHARACTERS_MAX).collect();
        let given = read(one, server, &variable).map_err(|why| InvalidProviders::Provider { name, why })?;
        if all.iter().any(|other| other.provider.name == given.provider.name) {
            return Err(InvalidProviders::Twice(given.provider.name));
        }
        all.push(given);
    }
    Ok(all)
}

fn read(
    described: Described,
    server: Option<&ServerUrl>,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<GivenProvider, String> {
    let name = ProviderName::parse(&described.name).map_err(|error| error.to_string())?;
    let secret = match (described.public, described.client_secret_variable) {
        (true, None) => None,
        (false, Some(from)) => {
            let secret = variable(&from).map(|secret| secret.trim().to_owned());
            let missing = || format!("the variable {from:?} with its client secret is empty: set it");
            Some(secret.filter(|secret| !secret.is_empty()).ok_or_else(missing)?)
        }
        (true, Some(_)) | (false, None) => {
            return Err("name the variable with its client secret as `clientSecretVariable`, or write \
                        `\"public\": true` for a client without one"
                .to_owned());
        }
    };
    let server = match &described.server {
        Some(server) => ServerUrl::parse(server).map_err(|error| error.to_string())?,
        None => server.cloned().ok_or("name the address of this server as `server`")?,
    };
    let days = described.days.unwrap_or(DAYS);
    if !(1..=DAYS_MAX).contains(&days) {
        return Err(format!("`days` is {days}: use 1 to {DAYS_MAX}"));
    }
    let mut rules = Vec::with_capacity(described.rules.len());
    for rule in &described.rules {
        rules.push(rule.parse::<SignInRule>().map_err(|error| format!("the rule {rule:?}: {error}"))?);
    }
    let scopes = described.scopes.unwrap_or_else(|| SCOPES.map(str::to_owned).into());
    let provider = SignInProvider {
        title: described.title.unwrap_or_else(|| name.to_string()),
        name,
        issuer: described.issuer,
        client_id: described.client_id,
        server: server.to_string(),
        scopes,
        login_claim: described.login_claim.unwrap_or_else(|| LOGIN_CLAIM.to_owned()),
        groups_claim: described.groups_claim.unwrap_or_else(|| GROUPS_CLAIM.to_owned()),
        days,
        rules,
        created: Timestamp(0),
    };
    providers::check(&provider, secret.as_deref().unwrap_or_default()).map_err(|error| error.to_string())?;
    Ok(GivenProvider { provider, secret })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::role::Role;

    fn corp() -> Value {
        json!({
            "name": "corp", "issuer": "https://id.example.com/", "clientId": "statewright",
            "clientSecretVariable": "SECRET", "rules": ["platform=acme:admin", "*=acme:none:web"],
        })
    }

    fn with(name: &str, value: Value) -> Value {
        let mut corp = corp();
        corp[name] = value;
        corp
    }

    fn parse(providers: &Value) -> Result<Vec<GivenProvider>, InvalidProviders> {
        let server = ServerUrl::parse("https://state.example.com").unwrap();
        let variable = |name: &str| (name == "SECRET").then(|| "hunter2\n".to_owned());
        super::parse(&providers.to_string(), Some(&server), variable)
    }

    #[test]
    fn a_description_has_the_defaults_of_the_command() {
        let all = parse(&json!([corp()])).unwrap();
        let [GivenProvider { provider, secret }] = &all[..] else { panic!("{all:?}") };
        assert_eq!(secret.as_deref(), Some("hunter2"));
        assert_eq!(
            (provider.title.as_str(), provider.server.as_str()),
            ("corp", "https://state.example.com")
        );
        assert_eq!(provider.issuer, "https://id.example.com/", "exactly as it was written");
        assert_eq!((provider.scopes.as_slice(), provider.days), (SCOPES.map(str::to_owned).as_slice(), DAYS));
        assert_eq!(
            (provider.login_claim.as_str(), provider.groups_claim.as_str()),
            (LOGIN_CLAIM, GROUPS_CLAIM)
        );
        let roles: Vec<Role> = provider.rules.iter().map(|rule| rule.role).collect();
        assert_eq!(roles, [Role::Admin, Role::None]);
        assert!(!format!("{all:?}").contains("hunter2"));
        assert_eq!(parse(&json!([])), Ok(Vec::new()));
    }

    #[test]
    fn a_client_may_have_no_secret() {
        let public = with("clientSecretVariable", Value::Null);
        assert!(parse(&json!([public])).is_err());
        let mut public = public;
        public["public"] = true.into();
        assert_eq!(parse(&json!([public])).unwrap()[0].secret, None);
    }

    #[test]
    fn what_is_wrong_is_said_without_a_secret() {
        for (wrong, why) in [
            (json!({}), "is not a JSON list"),
            (json!([{ "name": "corp" }]), "missing field `issuer`"),
            (json!([with("clientSecret", json!("hunter2"))]), "unknown field `clientSecret`"),
            (json!([with("name", json!("Corp"))]), "\"Corp\" wrongly: "),
            (json!([with("issuer", json!("id.example.com"))]), "\"id.example.com\" is not an address"),
            (json!([with("server", json!("state"))]), "\"state\" is not a valid server address"),
            (json!([with("public", json!(true))]), "clientSecretVariable"),
            (
                json!([with("clientSecretVariable", json!("OTHER"))]),
                "\"OTHER\" with its client secret is empty",
            ),
            (json!([with("days", json!(0))]), "use 1 to 365"),
            (json!([with("clientId", json!(""))]), "client ID"),
            (json!([with("rules", json!(["platform"]))]), "the rule \"platform\": write a rule as"),
            (json!([with("rules", json!(["platform=acme:owner"]))]), "use one of the roles"),
            (json!([with("rules", json!(["=acme:plan"]))]), "group in a rule"),
            (json!([corp(), corp()]), "corp twice"),
        ] {
            let message = parse(&wrong).unwrap_err().to_string();
            assert!(message.contains(why) && !message.contains("hunter2"), "{wrong}: {message}");
        }
        let many: Vec<Value> = (0..51).map(|number| with("name", json!(format!("corp-{number}")))).collect();
        assert_eq!(parse(&json!(many)), Err(InvalidProviders::TooMany));
        let nowhere = super::parse(&json!([corp()]).to_string(), None, |_| Some("x".to_owned()));
        assert!(nowhere.unwrap_err().to_string().contains("address of this server"));
    }
}
