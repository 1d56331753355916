//! Gets the credentials of the caller before any service is called.

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};

use crate::adapters::{Finding, State};

/// No source gave credentials for AWS.
#[derive(Debug, thiserror::Error)]
#[error("{found}. {remedy}")]
pub struct NoCredentials {
    found: String,
    remedy: String,
}

impl NoCredentials {
    fn because(profile: Option<&str>, error: &dyn Error) -> Self {
        let mut why = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            // Some errors only repeat the text of the one above.
            if !why.ends_with(&error.to_string()) {
                why.push_str(&format!(": {error}"));
            }
            source = error.source();
        }
        let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = why.trim_end_matches('.');
        let (found, name) = match profile {
            Some(name) => (format!("the AWS profile {name} gives no credentials: {why}"), name),
            None => (format!("no credentials for AWS, and AWS_PROFILE is not set: {why}"), "NAME"),
        };
        let remedy = format!(
            "Log in with `aws sso login --profile {name}` or `aws login --profile {name}`, name another profile with \
             AWS_PROFILE, or run `aws sts get-caller-identity --profile {name}` to see the cause"
        );
        Self { found, remedy }
    }

    /// The same text as the finding of `doctor`.
    pub fn finding(&self) -> Finding {
        Finding {
            of: "this machine".to_owned(),
            what: "credentials",
            state: State::Wrong,
            found: self.found.clone(),
            remedy: Some(self.remedy.clone()),
        }
    }
}

/// The same configuration with credentials that were obtained before.
pub(super) async fn had(config: SdkConfig, profile: Option<&str>) -> Result<SdkConfig, NoCredentials> {
    let by_environment = || std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    let profile = profile.map(str::to_owned).or_else(by_environment);
    let Some(provider) = config.credentials_provider() else {
        return Err(NoCredentials::because(profile.as_deref(), &NoProvider));
    };
    let first = provider.provide_credentials().await;
    let first = first.map_err(|error| NoCredentials::because(profile.as_deref(), &error))?;
    let had = Had { first: Mutex::new(Some(first)), provider };
    Ok(config.into_builder().credentials_provider(SharedCredentialsProvider::new(had)).build())
}

#[derive(Debug, thiserror::Error)]
#[error("no source of credentials is configured")]
struct NoProvider;

/// Gives the credentials that were obtained before, and asks for new ones when they expire.
#[derive(Debug)]
struct Had {
    first: Mutex<Option<Credentials>>,
    provider: SharedCredentialsProvider,
}

impl ProvideCredentials for Had {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        match first {
            Some(first) => future::ProvideCredentials::ready(Ok(first)),
            None => self.provider.provide_credentials(),
        }
    }
}
