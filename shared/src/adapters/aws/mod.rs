//! The store on AWS: items in one DynamoDB table, blobs in one S3 bucket, data keys under one KMS key.
//!
//! [`Clients`] are built once a process and shared by all three. Their own retries are off: a client that
//! repeats a conditional write whose answer was lost is refused because of its own write, and no caller could
//! tell. Calls that were certainly rejected (throttling, a conflict with another transaction) are repeated here
//! with growing, random waits. Everything else is returned as "not done" or "unknown", and the services decide.

mod credentials;
mod doctor;
mod dynamo;
mod failure;
mod identity;
mod item;
mod kms;
mod moment;
mod s3;
mod setup;
mod wanted;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_smithy_http_client::tls;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;

pub use credentials::NoCredentials;
pub use doctor::examine;
pub use dynamo::DynamoLedger;
pub use kms::KmsKeys;
pub use moment::{MomentError, remove, restore_table};
pub use s3::S3Blobs;
pub use setup::{Done, Outcome, SetupError, set_up};
pub use wanted::{FEATURES, LIFECYCLE, Rule, Then, tls_only};

use crate::ports::{BlobKey, Clock, Cursor, Ids, Inventory, Item, Part, PortError};

/// The timeout of one attempt at a call. Whether a call that timed out was done is unknown.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);

/// The timeout for [`set_up`]: creating a bucket or a table takes longer than the calls of use cases, and an
/// operator waits for it.
pub const SET_UP_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Where the services are, and how they are called. Everything left out comes from where AWS's own tools find
/// it: environment, profile, role of the machine.
#[derive(Debug, Clone)]
pub struct Options {
    /// The region, such as `eu-central-1`.
    pub region: Option<String>,
    /// The profile of AWS's own tools that gives credentials and region.
    pub profile: Option<String>,
    /// One URL for all services, as stand-ins have.
    pub endpoint: Option<String>,
    /// DynamoDB's URL; overrides [`Options::endpoint`].
    pub dynamodb_endpoint: Option<String>,
    /// S3's URL; overrides [`Options::endpoint`].
    pub s3_endpoint: Option<String>,
    /// KMS's URL; overrides [`Options::endpoint`].
    pub kms_endpoint: Option<String>,
    /// Whether the bucket's name goes into the path instead of the host name, as stand-ins need it.
    pub s3_path_style: bool,
    /// The timeout of one attempt; [`ATTEMPT_TIMEOUT`] by default. Storing a blob gets more by its size.
    pub attempt_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            region: None,
            profile: None,
            endpoint: None,
            dynamodb_endpoint: None,
            s3_endpoint: None,
            kms_endpoint: None,
            s3_path_style: false,
            attempt_timeout: ATTEMPT_TIMEOUT,
        }
    }
}

/// The names of the parts of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    pub table: String,
    pub bucket: String,
    /// The master key: an alias (`alias/…`), an identifier or an ARN. Data keys open under the key that made
    /// them, so an alias must stay with its key. (KMS rotates a key's material once a year, which is harmless.)
    pub key: String,
}

/// No source gives a region.
#[derive(Debug, thiserror::Error)]
#[error("no AWS region is set: name one with AWS_REGION or in the profile")]
pub struct NoRegion;

/// Makes clients of the three services. Clones, and all clients made of one, share connections and credentials.
/// A program links only the clients that it makes.
#[derive(Debug, Clone)]
pub struct Clients {
    config: SdkConfig,
    options: Options,
    calls: Arc<AtomicU64>,
}

impl Clients {
    /// Clients with the credentials of the environment. Calls no service yet, but may ask the machine's
    /// metadata service.
    ///
    /// # Errors
    /// When there is no region.
    pub async fn connect(options: &Options) -> Result<Self, NoRegion> {
        Self::load(aws_config::defaults(BehaviorVersion::latest()), options).await
    }

    /// Clients of a stand-in, which accepts any credentials.
    ///
    /// # Errors
    /// None: a missing region is made up.
    #[cfg(feature = "testing")]
    pub async fn of_stand_in(options: &Options) -> Result<Self, NoRegion> {
        use aws_sdk_dynamodb::config::Credentials;
        let region = options.region.clone().unwrap_or_else(|| "us-east-1".to_owned());
        let loader = aws_config::defaults(BehaviorVersion::latest())
            .credentials_provider(Credentials::new("stand-in", "stand-in", None, None, "stand-in"));
        Self::load(loader, &Options { region: Some(region), s3_path_style: true, ..options.clone() }).await
    }

    /// The same clients with credentials obtained now, so that a problem with them is known before a service is
    /// called. They are used until they expire, because a process that gives credentials may ask a person for
    /// something.
    ///
    /// # Errors
    /// When no source gives credentials.
    pub async fn with_credentials(self) -> Result<Self, NoCredentials> {
        let config = credentials::had(self.config, self.options.profile.as_deref()).await?;
        Ok(Self { config, ..self })
    }

    async fn load(mut loader: ConfigLoader, options: &Options) -> Result<Self, NoRegion> {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(tls::Provider::Rustls(CryptoMode::Ring))
            .build_https();
        loader = loader.http_client(http);
        if let Ok(name) = AppName::new("statewright") {
            loader = loader.app_name(name);
        }
        if let Some(profile) = &options.profile {
            loader = loader.profile_name(profile.clone());
        }
        if let Some(region) = &options.region {
            loader = loader.region(Region::new(region.clone()));
        }
        let config = loader.load().await;
        if config.region().is_none() {
            return Err(NoRegion);
        }

        let timeouts = timeouts(options.attempt_timeout);
        let config =
            config.into_builder().retry_config(RetryConfig::disabled()).timeout_config(timeouts).build();
        Ok(Self { config, options: options.clone(), calls: Arc::default() })
    }

    /// The calls of services so far by all clients made of these; a retry counts again.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    // Without a URL here, the environment's setting for a service applies.

    fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let mut dynamodb = aws_sdk_dynamodb::config::Builder::from(&self.config);
        if let Some(url) = self.endpoint(&self.options.dynamodb_endpoint) {
            dynamodb = dynamodb.endpoint_url(url);
        }
        aws_sdk_dynamodb::Client::from_conf(dynamodb.build())
    }

    fn s3(&self) -> aws_sdk_s3::Client {
        let mut s3 =
            aws_sdk_s3::config::Builder::from(&self.config).force_path_style(self.options.s3_path_style);
        if let Some(url) = self.endpoint(&self.options.s3_endpoint) {
            s3 = s3.endpoint_url(url);
        }
        aws_sdk_s3::Client::from_conf(s3.build())
    }

    fn kms(&self) -> aws_sdk_kms::Client {
        let mut kms = aws_sdk_kms::config::Builder::from(&self.config);
        if let Some(url) = self.endpoint(&self.options.kms_endpoint) {
            kms = kms.endpoint_url(url);
        }
        aws_sdk_kms::Client::from_conf(kms.build())
    }

    fn endpoint<'a>(&'a self, own: &'a Option<String>) -> Option<&'a String> {
        own.as_ref().or(self.options.endpoint.as_ref())
    }
}

/// The three ports over one set of clients.
#[derive(Clone)]
pub struct AwsStore {
    pub ledger: DynamoLedger,
    pub blobs: S3Blobs,
    pub keys: KmsKeys,
}

impl AwsStore {
    /// The store with these names. Calls no service: a missing part shows at the first call.
    pub fn new(clients: &Clients, names: &Names, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self {
            ledger: DynamoLedger::new(clients, names.table.clone(), Arc::clone(&clock), Arc::clone(&ids)),
            blobs: S3Blobs::new(clients, names.bucket.clone(), Arc::clone(&clock), Arc::clone(&ids)),
            keys: KmsKeys::new(clients, names.key.clone(), clock, ids),
        }
    }
}

#[async_trait]
impl Inventory for AwsStore {
    async fn items(&self, prefix: &str, from: Option<&Cursor>) -> Result<Part<Item>, PortError> {
        self.ledger.scan(prefix, from).await
    }

    async fn blobs(&self, from: Option<&Cursor>) -> Result<Part<BlobKey>, PortError> {
        self.blobs.keys(from).await
    }
}

fn timeouts(attempt: Duration) -> TimeoutConfig {
    TimeoutConfig::builder().connect_timeout(attempt).operation_attempt_timeout(attempt).build()
}
