//! The credentials of who runs the program, had before a service is asked.

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider, future};

use crate::adapters::{Finding, State};

/// Nothing gives credentials for AWS.
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
            // Some errors only repeat what the one above said.
            if !why.ends_with(&error.to_string()) {
                why.push_str(&format!(": {error}"));
            }
            source = error.source();
        }
        let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = why.trim_end_matches('.');
        let (found, name) = match profile {
            Some(name) => (format!("the AWS profile {name} gives no credentials: {why}"), name),
            None => {
                (format!("there are no credentials for AWS, and AWS_PROFILE names no profile: {why}"), "NAME")
            }
        };
        let remedy = format!(
            "Log in with `aws sso login --profile {name}` or `aws login --profile {name}`, name another profile with \
             AWS_PROFILE, or see what `aws sts get-caller-identity --profile {name}` says"
        );
        Self { found, remedy }
    }

    /// The same as what `doctor` has found.
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

/// The same configuration with credentials that were had once.
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
#[error("nothing is set up that could give them")]
struct NoProvider;

/// Gives the credentials that were had already, and asks for others when these are over.
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
