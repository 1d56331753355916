//! The sign-in of a job: exchanges the token that its CI gave it for an access token of a server.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::oidc::aws::PROOF_TYPE;
use statewright_shared::domain::server_url::ServerUrl;

use super::call::Call;
use super::code_login::GrantedToken;
use super::settings::{At, Token};
use super::{Client, settings};
use crate::args;
use crate::data::on_aws;

/// Precedes the organization in the audience of a token (pulumi v3.274.1, `pkg/auth/oidc.go`).
const AUDIENCE: &str = "urn:pulumi:org:";

/// The type of the token of a CI (RFC 8693, section 3).
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";

/// The length of a token in bytes, at most, as the server reads it.
const JWT_BYTES_MAX: u64 = 16 << 10;

const HEADING: &str = "Sign-in of a job";

/// The options of a job's sign-in, named as those of `pulumi login`.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct Oidc {
    /// Exchange this token, which a CI gave to its job, for an access token. `file://PATH` reads it from a file,
    /// which keeps it out of lists of processes.
    #[arg(long, value_name = "TOKEN", group = "shown", help_heading = HEADING)]
    oidc_token: Option<String>,
    /// Sign in as the principal of AWS whose credentials this machine has. The server gets no credentials: it gets a
    /// signed question to AWS, which is valid for five minutes and for this server alone.
    #[arg(long, group = "shown", help_heading = HEADING)]
    aws: bool,
    /// The organization that accepts the token [default: that of its audience].
    #[arg(long, value_name = "NAME", value_parser = args::organization, requires = "shown", help_heading = HEADING)]
    oidc_org: Option<OrgName>,
    /// Ask for a token of this team, instead of one of the organization.
    #[arg(long, value_name = "NAME", requires = "shown", conflicts_with = "oidc_user", help_heading = HEADING)]
    oidc_team: Option<String>,
    /// Ask for a personal token of this user, who has to consent first: `statewright consent add`.
    #[arg(long, value_name = "NAME", value_parser = args::login, requires = "shown", help_heading = HEADING)]
    oidc_user: Option<Login>,
    /// The lifetime of the token, such as 30m [default: 2h, or less if the organization allows only less].
    #[arg(long, value_name = "DURATION", value_parser = args::duration, requires = "shown", help_heading = HEADING)]
    oidc_expiration: Option<Duration>,
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Oidc")
    }
}

impl Oidc {
    /// Exchanges the token, if one is given, at the server that the user named. The commands that use the result send
    /// it to this server only.
    ///
    /// # Errors
    /// If the token cannot be read or names no organization; [`super::Failure`] if the server refuses it.
    pub(crate) async fn exchange(&self, at: &At) -> anyhow::Result<Option<(ServerUrl, GrantedToken)>> {
        if self.oidc_token.is_none() && !self.aws {
            return Ok(None);
        }
        let server = Client::server_of_user(at)?;
        let named = self.oidc_org.as_ref().or(at.org.as_ref()).cloned();
        let (kind, token, org) = match &self.oidc_token {
            Some(given) => {
                let token = read(given)?;
                let org = named.or_else(|| org_of(&token)).context(
                    "the audience of the token names no organization: name it with --oidc-org, and give the token the \
                     audience urn:pulumi:org:NAME",
                )?;
                (ID_TOKEN, token, org)
            }
            None => {
                let org =
                    named.context("name the organization that accepts the principal, with --oidc-org")?;
                (PROOF_TYPE, on_aws::prove(&server).await?, org)
            }
        };
        let body = self.body(kind, &token, &org);
        let call = Call::anonymous(Method::POST, ["api", "oauth", "token"]).json(&body);
        let client = Client::anonymous(&server)?;
        let given: GrantedToken = client.json(call).await?;
        Ok(Some((server, given)))
    }

    fn body(&self, subject_kind: &str, token: &str, org: &OrgName) -> Value {
        let (kind, scope) = match (&self.oidc_team, &self.oidc_user) {
            (Some(team), _) => ("team", format!("team:{team}")),
            (None, Some(user)) => ("personal", format!("user:{user}")),
            (None, None) => ("organization", String::new()),
        };
        let mut body = json!({
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "audience": format!("{AUDIENCE}{org}"),
            "subject_token_type": subject_kind,
            "subject_token": token,
            "requested_token_type": format!("urn:pulumi:token-type:access_token:{kind}"),
            "scope": scope,
        });
        if let Some(expiration) = self.oidc_expiration {
            body["expiration"] = expiration.as_secs().into();
        }
        body
    }
}

/// The token as given, or from its file. An error never shows it.
fn read(given: &str) -> anyhow::Result<String> {
    let token = match given.strip_prefix("file://") {
        Some(path) => {
            let path = Path::new(path);
            let read = || -> anyhow::Result<String> {
                ensure!(
                    std::fs::metadata(path)?.len() <= JWT_BYTES_MAX,
                    "it is longer than {JWT_BYTES_MAX} bytes"
                );
                Ok(std::fs::read_to_string(path)?)
            };
            read().with_context(|| format!("cannot read the token in {}", path.display()))?
        }
        None => given.to_owned(),
    };
    let token = token.trim();
    if token.split('.').count() != 3 {
        bail!(
            "--oidc-token is not a JWT: give the token itself, or file:// and the path of a file that contains it"
        );
    }
    Ok(token.to_owned())
}

/// The organization in the audience of a token, which the server verifies. `None` if there is none, or more than one.
fn org_of(token: &str) -> Option<OrgName> {
    use base64::Engine as _;
    let payload = token.split('.').nth(1)?;
    let payload = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    let audiences = match claims.get("aud")? {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => vec![one.as_str()?],
    };
    let mut orgs = audiences.iter().filter_map(|audience| audience.strip_prefix(AUDIENCE));
    let org = orgs.next().filter(|_| orgs.next().is_none())?;
    OrgName::parse(org).ok()
}

impl At {
    /// The same settings with a token that was exchanged for this run.
    ///
    /// # Errors
    /// As [`Oidc::exchange`].
    pub(crate) async fn with_exchanged(mut self, oidc: &Oidc) -> anyhow::Result<Self> {
        let exchanged = oidc.exchange(&self).await?;
        self.exchanged = exchanged.map(|(server, given)| (server, Token::new(given.access_token)));
        Ok(self)
    }
}

impl Client {
    /// A client without a token, for the sign-in itself.
    pub(super) fn anonymous(server: &ServerUrl) -> anyhow::Result<Self> {
        let (settings, http) = (settings::with_token(server, ""), super::Http::to(server)?);
        Ok(Self { settings, linked: None, linked_elsewhere: None, configured: None, http })
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    fn token(audience: &Value) -> String {
        let claims = json!({ "aud": audience }).to_string();
        format!("e30.{}.c2ln", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn the_organization_is_that_of_the_audience() {
        let org = |audience: Value| org_of(&token(&audience)).map(|org| org.to_string());
        assert_eq!(org(json!("urn:pulumi:org:acme")).as_deref(), Some("acme"));
        assert_eq!(org(json!(["sts.amazonaws.com", "urn:pulumi:org:acme"])).as_deref(), Some("acme"));
        for none in
            [json!("acme"), json!([]), json!(["urn:pulumi:org:acme", "urn:pulumi:org:beta"]), Value::Null]
        {
            assert_eq!(org(none.clone()), None, "{none}");
        }
    }

    #[test]
    fn a_token_is_read_from_its_file_and_never_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let good = token(&json!("urn:pulumi:org:acme"));
        std::fs::write(file.path(), format!("{good}\n")).unwrap();
        assert_eq!(read(&format!("file://{}", file.path().display())).unwrap(), good);
        assert_eq!(read(&good).unwrap(), good);
        let secret = format!("{}", read("a-secret-that-is-no-jwt").unwrap_err());
        assert!(!secret.contains("a-secret"), "{secret}");
        assert!(format!("{:#}", read("file:///nowhere/token").unwrap_err()).contains("/nowhere/token"));
        let oidc = Oidc { oidc_token: Some(good.clone()), ..Oidc::default() };
        assert!(!format!("{oidc:?}").contains(&good));
    }
}
