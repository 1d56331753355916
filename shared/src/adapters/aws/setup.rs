//! Creates the parts of the store: a table, a bucket and a key.

use std::error::Error;
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, ContinuousBackupsStatus, KeySchemaElement, KeyType,
    PointInTimeRecoverySpecification, PointInTimeRecoveryStatus, ScalarAttributeType, TableDescription,
    TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
};
use aws_sdk_s3::types::{
    BucketLifecycleConfiguration, BucketLocationConstraint, BucketVersioningStatus,
    CreateBucketConfiguration, PublicAccessBlockConfiguration, ServerSideEncryption,
    ServerSideEncryptionByDefault, ServerSideEncryptionConfiguration, ServerSideEncryptionRule,
};
use serde_json::{Value, json};

use super::failure::Described;
use super::item::{PARTITION, SORT, TTL};
use super::wanted::{self, CLOSED, ENCRYPTION, EXPIRY, PROTECTION, RECOVERY, ROTATION, RULES, TLS};
use super::{Clients, Names};
use crate::ports::{BoxError, Clock};

/// Checks of a new table, which takes some seconds, before giving up.
const POLLS_MAX: u32 = 60;
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A part or setting of the store, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The part, for a person to read.
    pub what: &'static str,
    pub name: String,
    pub outcome: Outcome,
}

/// The outcome for one part or setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was so already.
    Found,
    /// It was changed.
    Made,
    /// The service does not support it, as a stand-in may not.
    NotImplemented,
}

/// Why the store could not be set up. A second try finds and keeps what the first has done.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A service refused or failed.
    #[error("{what} {name} failed")]
    Call {
        what: &'static str,
        /// The name of the table, bucket or key.
        name: String,
        #[source]
        source: BoxError,
    },
    /// There is a table of that name, but it belongs to another program.
    #[error("the table {0} has other keys than Statewright's: choose another name")]
    OtherTable(String),
    /// The bucket keeps old versions of objects.
    #[error(
        "the bucket {0} keeps versions of objects, so deleted objects would be kept: choose another bucket, or suspend its versioning"
    )]
    Versioned(String),
    /// The table did not become ready.
    #[error("the table {0} is not ready after a minute: try again")]
    NotReady(String),
    /// AWS chooses the identifier of a new key.
    #[error("there is no key {0}, and only an alias (alias/NAME) can be given to a new one")]
    NoKey(String),
}

/// Creates the table (on demand), the bucket (without versions) and the key (under its alias), or finds them,
/// and sets for each what [`wanted::FEATURES`] lists. Each step may be repeated: the second time it finds what
/// the first has made. It removes nothing, neither statements of a policy nor rules of a bucket, and touches no
/// content.
///
/// `clients` should have the timeout [`super::SET_UP_ATTEMPT_TIMEOUT`].
///
/// # Errors
/// See [`SetupError`].
pub async fn set_up(clients: &Clients, names: &Names, clock: &dyn Clock) -> Result<Vec<Done>, SetupError> {
    let mut done = Vec::new();
    table(clients, &names.table, clock, &mut done).await?;
    bucket(clients, &names.bucket, &mut done).await?;
    key(clients, &names.key, &mut done).await?;
    Ok(done)
}

async fn table(
    clients: &Clients,
    name: &str,
    clock: &dyn Clock,
    done: &mut Vec<Done>,
) -> Result<(), SetupError> {
    let client = &clients.dynamodb();
    let made = create_table(client, name).await?;
    let table = ready(clients, name, clock).await?;
    if !has_our_keys(&table) {
        return Err(SetupError::OtherTable(name.to_owned()));
    }
    note(done, "table", name, made);
    note(done, EXPIRY, name, set_expiry(client, name).await?);
    note(done, RECOVERY, name, set_recovery(client, name).await?);

    let outcome = if table.deletion_protection_enabled == Some(true) {
        Outcome::Found
    } else {
        let sent = client.update_table().table_name(name).deletion_protection_enabled(true).send();
        set("protecting the table", name, sent.await)?
    };
    // A table that this command has just created is protected already.
    note(done, PROTECTION, name, if made == Outcome::Made { made } else { outcome });
    Ok(())
}

async fn create_table(client: &aws_sdk_dynamodb::Client, name: &str) -> Result<Outcome, SetupError> {
    let request = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .deletion_protection_enabled(true);
    let request = [(PARTITION, KeyType::Hash), (SORT, KeyType::Range)]
        .into_iter()
        .try_fold(request, |request, (attribute, kind)| {
            let text = AttributeDefinition::builder()
                .attribute_name(attribute)
                .attribute_type(ScalarAttributeType::S)
                .build()?;
            let key = KeySchemaElement::builder().attribute_name(attribute).key_type(kind).build()?;
            Ok(request.attribute_definitions(text).key_schema(key))
        })
        .map_err(|error: BuildError| malformed("creating the table", name, error))?;
    match request.send().await {
        Ok(_) => Ok(Outcome::Made),
        Err(error) if code(&error) == Some("ResourceInUseException") => Ok(Outcome::Found),
        Err(error) => Err(failed("creating the table", name, error)),
    }
}

async fn set_expiry(client: &aws_sdk_dynamodb::Client, name: &str) -> Result<Outcome, SetupError> {
    match client.describe_time_to_live().table_name(name).send().await {
        Ok(found) => {
            let status = found
                .time_to_live_description
                .filter(|ttl| ttl.attribute_name() == Some(TTL))
                .and_then(|ttl| ttl.time_to_live_status);
            if matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)) {
                Ok(Outcome::Found)
            } else {
                let wanted =
                    TimeToLiveSpecification::builder().enabled(true).attribute_name(TTL).build().map_err(
                        |error| malformed("setting the expiry of items of the table", name, error),
                    )?;
                let sent =
                    client.update_time_to_live().table_name(name).time_to_live_specification(wanted).send();
                set("setting the expiry of items of the table", name, sent.await)
            }
        }
        Err(error) => not_implemented("asking about the expiry of items of the table", name, error),
    }
}

async fn set_recovery(client: &aws_sdk_dynamodb::Client, name: &str) -> Result<Outcome, SetupError> {
    match client.describe_continuous_backups().table_name(name).send().await {
        Ok(found) => {
            let backups = found.continuous_backups_description;
            let is_on = backups.is_some_and(|backups| {
                backups.continuous_backups_status == ContinuousBackupsStatus::Enabled
                    && backups
                        .point_in_time_recovery_description
                        .and_then(|recovery| recovery.point_in_time_recovery_status)
                        == Some(PointInTimeRecoveryStatus::Enabled)
            });
            if is_on {
                Ok(Outcome::Found)
            } else {
                let wanted = PointInTimeRecoverySpecification::builder()
                    .point_in_time_recovery_enabled(true)
                    .build()
                    .map_err(|error| malformed("setting the backups of the table", name, error))?;
                let sent = client
                    .update_continuous_backups()
                    .table_name(name)
                    .point_in_time_recovery_specification(wanted)
                    .send();
                set("setting the backups of the table", name, sent.await)
            }
        }
        Err(error) => not_implemented("asking about the backups of the table", name, error),
    }
}

/// The table, once it can be used.
async fn ready(clients: &Clients, name: &str, clock: &dyn Clock) -> Result<TableDescription, SetupError> {
    let client = clients.dynamodb();
    for _ in 0..POLLS_MAX {
        match client.describe_table().table_name(name).send().await {
            Ok(found) => {
                if let Some(table) =
                    found.table.filter(|table| table.table_status == Some(TableStatus::Active))
                {
                    return Ok(table);
                }
            }
            // A table that was just created may not be visible everywhere yet.
            Err(error) if code(&error) == Some("ResourceNotFoundException") => {}
            Err(error) => return Err(failed("asking about the table", name, error)),
        }
        clock.sleep(LOOK_EVERY).await;
    }
    Err(SetupError::NotReady(name.to_owned()))
}

pub(super) fn has_our_keys(table: &TableDescription) -> bool {
    let keys = table.key_schema().iter().map(|key| (key.attribute_name(), key.key_type().clone()));
    let are_texts = [PARTITION, SORT].into_iter().all(|attribute| {
        table.attribute_definitions().iter().any(|definition| {
            definition.attribute_name() == attribute && *definition.attribute_type() == ScalarAttributeType::S
        })
    });
    keys.eq([(PARTITION, KeyType::Hash), (SORT, KeyType::Range)]) && are_texts
}

async fn bucket(clients: &Clients, name: &str, done: &mut Vec<Done>) -> Result<(), SetupError> {
    let client = &clients.s3();
    let outcome = match client.head_bucket().bucket(name).send().await {
        Ok(_) => Outcome::Found,
        Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => {
            let region = client.config().region().map(|region| region.as_ref().to_owned());
            // The oldest region must not be named.
            let place = region.filter(|region| region != "us-east-1").map(|region| {
                let place = BucketLocationConstraint::from(region.as_str());
                CreateBucketConfiguration::builder().location_constraint(place).build()
            });
            let sent = client.create_bucket().bucket(name).set_create_bucket_configuration(place).send();
            match sent.await {
                Ok(_) => Outcome::Made,
                Err(error) if code(&error) == Some("BucketAlreadyOwnedByYou") => Outcome::Found,
                Err(error) => return Err(failed("creating the bucket", name, error)),
            }
        }
        Err(error) => return Err(failed("asking about the bucket", name, error)),
    };
    match client.get_bucket_versioning().bucket(name).send().await {
        Ok(found) if found.status == Some(BucketVersioningStatus::Enabled) => {
            return Err(SetupError::Versioned(name.to_owned()));
        }
        Ok(_) => {}
        Err(error) => {
            not_implemented("asking about the versions of the bucket", name, error)?;
        }
    }
    note(done, "bucket", name, outcome);

    let closed = PublicAccessBlockConfiguration::builder()
        .block_public_acls(true)
        .ignore_public_acls(true)
        .block_public_policy(true)
        .restrict_public_buckets(true)
        .build();
    let found = client.get_public_access_block().bucket(name).send().await;
    let is_closed =
        found.is_ok_and(|found| found.public_access_block_configuration.is_some_and(|found| found == closed));
    let outcome = if is_closed {
        Outcome::Found
    } else {
        let sent =
            client.put_public_access_block().bucket(name).public_access_block_configuration(closed).send();
        set("blocking public access to the bucket", name, sent.await)?
    };
    note(done, CLOSED, name, outcome);

    let found = client.get_bucket_encryption().bucket(name).send().await;
    // Somebody chose a KMS key on purpose, which stays.
    let is_encrypted = found.is_ok_and(|found| {
        found.server_side_encryption_configuration.is_some_and(|found| {
            found.rules().iter().any(|rule| rule.apply_server_side_encryption_by_default().is_some())
        })
    });
    let outcome = if is_encrypted {
        Outcome::Found
    } else {
        let doing = "setting the encryption of the bucket";
        let by_default = ServerSideEncryptionByDefault::builder()
            .sse_algorithm(ServerSideEncryption::Aes256)
            .build()
            .map_err(|error| malformed(doing, name, error))?;
        let rule =
            ServerSideEncryptionRule::builder().apply_server_side_encryption_by_default(by_default).build();
        let wanted = ServerSideEncryptionConfiguration::builder()
            .rules(rule)
            .build()
            .map_err(|error| malformed(doing, name, error))?;
        let sent =
            client.put_bucket_encryption().bucket(name).server_side_encryption_configuration(wanted).send();
        set(doing, name, sent.await)?
    };
    note(done, ENCRYPTION, name, outcome);
    note(done, TLS, name, only_by_tls(client, name).await?);
    note(done, RULES, name, rules(client, name).await?);
    Ok(())
}

/// Adds a statement to the bucket's policy that refuses requests without TLS.
async fn only_by_tls(client: &aws_sdk_s3::Client, name: &str) -> Result<Outcome, SetupError> {
    let doing = "setting the policy of the bucket";
    let mut policy = match client.get_bucket_policy().bucket(name).send().await {
        Ok(found) => {
            let text = found.policy.unwrap_or_default();
            serde_json::from_str(&text).map_err(|error| malformed(doing, name, error))?
        }
        Err(error) if code(&error) == Some("NoSuchBucketPolicy") => {
            json!({ "Version": "2012-10-17", "Statement": [] })
        }
        Err(error) => return not_implemented("asking about the policy of the bucket", name, error),
    };
    if wanted::refuses_without_tls(&policy) {
        return Ok(Outcome::Found);
    }
    let partition = wanted::partition(client.config().region().map(AsRef::as_ref));
    let ours = wanted::tls_only(&format!("arn:{partition}:s3:::{name}"));
    policy["Statement"] = match policy["Statement"].take() {
        Value::Array(mut statements) => {
            statements.push(ours);
            statements.into()
        }
        Value::Null => json!([ours]),
        statement => json!([statement, ours]),
    };
    let sent = client.put_bucket_policy().bucket(name).policy(policy.to_string()).send();
    set(doing, name, sent.await)
}

/// Adds those of our rules that the bucket's rules lack.
async fn rules(client: &aws_sdk_s3::Client, name: &str) -> Result<Outcome, SetupError> {
    let doing = "setting the rules of the bucket";
    let (mut rules, size_min) = match client.get_bucket_lifecycle_configuration().bucket(name).send().await {
        Ok(found) => (found.rules.unwrap_or_default(), found.transition_default_minimum_object_size),
        Err(error) if code(&error) == Some("NoSuchLifecycleConfiguration") => (Vec::new(), None),
        Err(error) => return not_implemented("asking about the rules of the bucket", name, error),
    };
    let missing = wanted::missing(&rules);
    if missing.is_empty() {
        return Ok(Outcome::Found);
    }
    rules.iter_mut().for_each(wanted::spell_anew);
    for rule in missing {
        rules.push(rule.to_sdk().map_err(|error| malformed(doing, name, error))?);
    }
    let wanted = BucketLifecycleConfiguration::builder()
        .set_rules(Some(rules))
        .build()
        .map_err(|error| malformed(doing, name, error))?;
    let sent = client
        .put_bucket_lifecycle_configuration()
        .bucket(name)
        .lifecycle_configuration(wanted)
        .set_transition_default_minimum_object_size(size_min)
        .send();
    set(doing, name, sent.await)
}

async fn key(clients: &Clients, name: &str, done: &mut Vec<Done>) -> Result<(), SetupError> {
    let client = &clients.kms();
    let (id, outcome) = match client.describe_key().key_id(name).send().await {
        Ok(found) => (found.key_metadata.map(|key| key.key_id), Outcome::Found),
        Err(error) if code(&error) != Some("NotFoundException") => {
            return Err(failed("asking about the key", name, error));
        }
        Err(_) if !name.starts_with("alias/") => return Err(SetupError::NoKey(name.to_owned())),
        Err(_) => {
            let made = client.create_key().description("Statewright: wraps data keys").send().await;
            let made = made.map_err(|error| failed("creating the key", name, error))?;
            let id = made.key_metadata.map(|key| key.key_id);
            // A crash between these two calls leaves a key without a name: it wraps nothing, and costs money
            // until it is deleted.
            let named = client.create_alias().alias_name(name).set_target_key_id(id.clone()).send().await;
            named.map_err(|error| failed("naming the key", name, error))?;
            (id, Outcome::Made)
        }
    };
    note(done, "key", name, outcome);

    let answer = client.get_key_rotation_status().set_key_id(id.clone()).send().await;
    let outcome = match answer {
        Ok(found) if found.key_rotation_enabled => Outcome::Found,
        Ok(_) => set(
            "setting the rotation of the key",
            name,
            client.enable_key_rotation().set_key_id(id).send().await,
        )?,
        Err(error) => not_implemented("asking about the rotation of the key", name, error)?,
    };
    note(done, ROTATION, name, outcome);
    Ok(())
}

fn note(done: &mut Vec<Done>, what: &'static str, name: &str, outcome: Outcome) {
    done.push(Done { what, name: name.to_owned(), outcome });
}

pub(super) fn code<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Option<&str> {
    error.as_service_error().and_then(ProvideErrorMetadata::code)
}

/// The outcome of a call that sets something.
fn set<T, E>(
    what: &'static str,
    name: &str,
    sent: Result<T, SdkError<E, HttpResponse>>,
) -> Result<Outcome, SetupError>
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match sent {
        Ok(_) => Ok(Outcome::Made),
        Err(error) => not_implemented(what, name, error),
    }
}

/// A failure, unless the service does not support the call.
fn not_implemented<E>(
    what: &'static str,
    name: &str,
    error: SdkError<E, HttpResponse>,
) -> Result<Outcome, SetupError>
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    if is_not_implemented(&error) { Ok(Outcome::NotImplemented) } else { Err(failed(what, name, error)) }
}

/// Whether the service reports that it does not support the call.
pub(super) fn is_not_implemented<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    error.raw_response().is_some_and(|response| response.status().as_u16() == 501)
        || matches!(code(error), Some("NotImplemented" | "UnknownOperationException"))
}

fn failed<E>(what: &'static str, name: &str, error: SdkError<E, HttpResponse>) -> SetupError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    SetupError::Call { what, name: name.to_owned(), source: Described(error).into() }
}

/// A request that lacks a field. Only a name can be missing, and the builder's error says which.
fn malformed(what: &'static str, name: &str, error: impl Error + Send + Sync + 'static) -> SetupError {
    SetupError::Call { what, name: name.to_owned(), source: error.into() }
}
