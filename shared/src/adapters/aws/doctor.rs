//! Checks that the table, the bucket and the key exist, are configured correctly and are accessible.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError as SdkBoxError, BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, BillingMode, ConditionCheck, ContinuousBackupsStatus, PointInTimeRecoveryStatus, Put,
    TableStatus, TimeToLiveStatus, TransactWriteItem,
};
use aws_sdk_kms::types::{DataKeySpec, KeySpec, KeyState, KeyUsageType};
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{BucketVersioningStatus, ExpirationStatus, LifecycleExpiration, LifecycleRule};
use time::PrimitiveDateTime;
use time::macros::format_description;

use super::failure::describe;
use super::item::{PARTITION, SORT, TTL, VALUE, key_to_attributes};
use super::setup::{code, has_our_keys, is_not_implemented};
use super::wanted::{self, CLOSED, ENCRYPTION, EXPIRY, PROTECTION, RECOVERY, ROTATION, RULES, TLS};
use super::{Clients, Names};
use crate::adapters::{Finding, State};
use crate::ports::{Clock, ItemKey, Timestamp};

/// The largest difference to AWS's clock that is not reported. The clocks of servers decide when leases end,
/// and AWS refuses requests signed five minutes off its own clock.
const SKEW_MAX: Duration = Duration::from_secs(30);

const SET_UP: &str = "Run `statewright aws setup`, which creates it, or correct the name";

/// Checks the table, the bucket, the key, and this machine's clock against AWS's. Creates and deletes some
/// items, objects and data keys under names of its own; changes nothing else.
///
/// For a part that cannot be used, reports only that, and not what follows from it.
pub async fn examine(clients: &Clients, names: &Names, clock: &dyn Clock) -> Vec<Finding> {
    let mut found = Vec::new();
    let dates = Dates::default();
    let (table, bucket, key) = (
        Thing::new("table", &names.table),
        Thing::new("bucket", &names.bucket),
        Thing::new("key", &names.key),
    );
    settle(&mut found, check_table(clients, &table, &dates).await);
    found.extend(check_clock(&dates, clock));
    settle(&mut found, check_bucket(clients, &bucket).await);
    settle(&mut found, check_key(clients, &key).await);
    found
}

/// What was found, or the one finding that ended the checks, after those before it.
type Findings = Result<Vec<Finding>, (Vec<Finding>, Finding)>;

fn settle(all: &mut Vec<Finding>, found: Findings) {
    match found {
        Ok(found) => all.extend(found),
        Err((found, last)) => {
            all.extend(found);
            all.push(last);
        }
    }
}

/// A part of the store, by its kind and name.
struct Thing<'a> {
    kind: &'static str,
    name: &'a str,
}

impl<'a> Thing<'a> {
    fn new(kind: &'static str, name: &'a str) -> Self {
        Self { kind, name }
    }

    fn says(
        &self,
        what: &'static str,
        state: State,
        found: impl Into<String>,
        remedy: Option<&str>,
    ) -> Finding {
        let of = format!("the {} {}", self.kind, self.name);
        Finding { of, what, state, found: found.into(), remedy: remedy.map(str::to_owned) }
    }

    fn good(&self, what: &'static str, found: impl Into<String>) -> Finding {
        self.says(what, State::Good, found, None)
    }

    /// The finding for a failed call that a server makes too.
    fn fails<E>(&self, what: &'static str, right: &'static str, error: SdkError<E, HttpResponse>) -> Finding
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let remedy = match Meaning::of(&error) {
            Meaning::Missing => SET_UP.to_owned(),
            Meaning::Denied => format!("Allow {right} to the caller of this command, in IAM (or in the policy of the {})", self.kind),
            Meaning::Stranger => {
                "Check the credentials (AWS_PROFILE, AWS_ACCESS_KEY_ID, the role of the machine) and the clock".to_owned()
            }
            Meaning::Unreachable => {
                "Check the network, AWS_REGION, AWS_ENDPOINT_URL and the credentials; allow an attempt \
                 more time with --aws-attempt-timeout"
                    .to_owned()
            }
            Meaning::Unusable => "Enable the key in KMS, or cancel its deletion".to_owned(),
            Meaning::NotImplemented | Meaning::Other => "Look up this error in the documentation of AWS".to_owned(),
        };
        let words = words(&error);
        self.says(what, State::Wrong, words, Some(&remedy))
    }

    /// The finding for a failed call that only `doctor` makes: the role of a server need not allow it.
    fn hides<E>(&self, what: &'static str, right: &'static str, error: SdkError<E, HttpResponse>) -> Finding
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let remedy = match Meaning::of(&error) {
            Meaning::Denied => {
                format!("Allow {right}, or run this with the credentials of an administrator")
            }
            Meaning::NotImplemented => {
                "This service does not support it: it is a stand-in for AWS".to_owned()
            }
            Meaning::Missing
            | Meaning::Stranger
            | Meaning::Unreachable
            | Meaning::Unusable
            | Meaning::Other => "Try again".to_owned(),
        };
        self.says(what, State::Unknown, words(&error), Some(&remedy))
    }
}

/// What an error says about its cause.
enum Meaning {
    Missing,
    Denied,
    Stranger,
    Unreachable,
    Unusable,
    NotImplemented,
    Other,
}

impl Meaning {
    fn of<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> Self {
        if error.as_service_error().is_none() {
            return Self::Unreachable;
        }
        if is_not_implemented(error) {
            return Self::NotImplemented;
        }
        // The answer to a HEAD has a status and no code.
        let status = error.raw_response().map(|response| response.status().as_u16());
        match (code(error).unwrap_or_default(), status) {
            ("ResourceNotFoundException" | "NoSuchBucket" | "NotFoundException" | "NotFound", _) => {
                Self::Missing
            }
            ("AccessDeniedException" | "AccessDenied" | "UnauthorizedOperation" | "AllAccessDisabled", _) => {
                Self::Denied
            }
            (
                "UnrecognizedClientException"
                | "InvalidSignatureException"
                | "SignatureDoesNotMatch"
                | "ExpiredToken"
                | "ExpiredTokenException"
                | "InvalidAccessKeyId"
                | "InvalidClientTokenId"
                | "InvalidToken"
                | "IncompleteSignature"
                | "MissingAuthenticationToken"
                | "RequestTimeTooSkewed",
                _,
            ) => Self::Stranger,
            ("DisabledException" | "KMSInvalidStateException" | "KeyUnavailableException", _) => {
                Self::Unusable
            }
            (_, Some(404)) => Self::Missing,
            (_, Some(403)) => Self::Denied,
            _ => Self::Other,
        }
    }
}

/// The whole chain of an error, on one line.
fn words<E>(error: &SdkError<E, HttpResponse>) -> String
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let mut words = match error.as_service_error() {
        Some(service) if service.code().is_none() => error
            .raw_response()
            .map_or_else(|| "an error without a code".to_owned(), |raw| format!("status {}", raw.status())),
        _ => describe(error),
    };
    let mut source = if error.as_service_error().is_some() { None } else { error.source() };
    while let Some(error) = source {
        words.push_str(&format!(": {error}"));
        source = error.source();
    }
    words.replace('\n', " ")
}

/// Remembers the service's `Date` of the last answer.
#[derive(Debug, Clone, Default)]
struct Dates(Arc<Mutex<Option<String>>>);

impl Intercept for Dates {
    fn name(&self) -> &'static str {
        "Dates"
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), SdkBoxError> {
        let date = context.response().headers().get("date").map(str::to_owned);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date;
        Ok(())
    }
}

fn check_clock(dates: &Dates, clock: &dyn Clock) -> Option<Finding> {
    let now = clock.now();
    let date = dates.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let says = |state, found: String, remedy: Option<&str>| Finding {
        of: "this machine".to_owned(),
        what: "clock",
        state,
        found,
        remedy: remedy.map(str::to_owned),
    };
    // Without an answer, another finding reports the failure.
    let date = date?;
    let Some(theirs) = parse_date(&date) else {
        return Some(says(State::Unknown, format!("DynamoDB gave the time as {date:?}"), Some("Try again")));
    };
    // The header has whole seconds, and an answer takes a moment.
    let skew = now.since(theirs).max(theirs.since(now)).saturating_sub(Duration::from_secs(1));
    Some(if skew <= SKEW_MAX {
        says(State::Good, format!("within {} s of AWS's", skew.as_secs().max(1)), None)
    } else {
        let remedy = "Set the clock of this machine and synchronize it (NTP): it decides when leases end, and AWS \
                      refuses requests signed five minutes off its own clock";
        says(State::Wrong, format!("{} s off AWS's", skew.as_secs()), Some(remedy))
    })
}

/// The instant of a `Date` header.
fn parse_date(text: &str) -> Option<Timestamp> {
    let form = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let instant = PrimitiveDateTime::parse(text, form).ok()?;
    Some(Timestamp::from_seconds(instant.assume_utc().unix_timestamp()))
}

async fn check_table(clients: &Clients, table: &Thing<'_>, dates: &Dates) -> Findings {
    let client = &clients.dynamodb();
    let mut found = Vec::new();
    match client.describe_table().table_name(table.name).send().await {
        Ok(described) => {
            let Some(described) = described.table else {
                let last =
                    table.says("there", State::Unknown, "DynamoDB did not describe it", Some("Try again"));
                return Err((found, last));
            };
            if !has_our_keys(&described) {
                let remedy = "Name another table with --table: this one belongs to another program";
                return Err((
                    found,
                    table.says("keys", State::Wrong, "not those of Statewright", Some(remedy)),
                ));
            }
            found.push(match &described.table_status {
                Some(TableStatus::Active | TableStatus::Updating) => table.good("there", "ready"),
                status => {
                    let status = status.as_ref().map_or("unknown", TableStatus::as_str);
                    let words = format!("its status is {status}");
                    table.says(
                        "there",
                        State::Wrong,
                        words,
                        Some("Wait until it is active, and run this again"),
                    )
                }
            });
            let mode = described.billing_mode_summary.and_then(|summary| summary.billing_mode);
            found.push(match mode {
                Some(BillingMode::PayPerRequest) => table.good("capacity", "on demand"),
                _ => {
                    let remedy = "Set it to on demand, or watch for throttling";
                    table.says(
                        "capacity",
                        State::Advice,
                        "provisioned, which limits throughput",
                        Some(remedy),
                    )
                }
            });
            found.push(match described.deletion_protection_enabled {
                Some(true) => table.good(PROTECTION, "on"),
                _ => table.says(
                    PROTECTION,
                    State::Advice,
                    "off: one call deletes the table",
                    Some("Run `statewright aws setup`, which turns it on"),
                ),
            });
        }
        Err(error) => match Meaning::of(&error) {
            Meaning::Denied | Meaning::NotImplemented => {
                found.push(table.hides("there", "dynamodb:DescribeTable", error));
            }
            _ => return Err((found, table.fails("there", "dynamodb:DescribeTable", error))),
        },
    }
    found.push(expiry(clients, table).await);
    found.push(recovery(clients, table).await);
    match use_table(clients, table, dates).await {
        Ok(finding) => found.push(finding),
        Err(finding) => return Err((found, finding)),
    }
    match client.describe_limits().send().await {
        Ok(limits) => found.push(table.good(
            "quotas",
            format!(
                "{} reads and {} writes a second for a table, {} and {} for the account",
                limits.table_max_read_capacity_units.unwrap_or_default(),
                limits.table_max_write_capacity_units.unwrap_or_default(),
                limits.account_max_read_capacity_units.unwrap_or_default(),
                limits.account_max_write_capacity_units.unwrap_or_default(),
            ),
        )),
        Err(error) => found.push(table.hides("quotas", "dynamodb:DescribeLimits", error)),
    }
    Ok(found)
}

async fn expiry(clients: &Clients, table: &Thing<'_>) -> Finding {
    let answer = clients.dynamodb().describe_time_to_live().table_name(table.name).send().await;
    let ttl = match answer {
        Ok(found) => found.time_to_live_description,
        Err(error) => return table.hides(EXPIRY, "dynamodb:DescribeTimeToLive", error),
    };
    let status = ttl.as_ref().and_then(|ttl| ttl.time_to_live_status.clone());
    let is_on = matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
    match (is_on, ttl.and_then(|ttl| ttl.attribute_name)) {
        (true, Some(attribute)) if attribute == TTL => table.good(EXPIRY, format!("by {TTL}")),
        (true, attribute) => {
            let words = format!("by {}, which is not Statewright's attribute", attribute.unwrap_or_default());
            let remedy = format!("Turn it off, then on again for the attribute {TTL}");
            table.says(EXPIRY, State::Wrong, words, Some(&remedy))
        }
        (false, _) => table.says(
            EXPIRY,
            State::Advice,
            "off: only sweeps delete expired items",
            Some("Run `statewright aws setup`, which turns it on"),
        ),
    }
}

async fn recovery(clients: &Clients, table: &Thing<'_>) -> Finding {
    let answer = clients.dynamodb().describe_continuous_backups().table_name(table.name).send().await;
    let backups = match answer {
        Ok(found) => found.continuous_backups_description,
        Err(error) => return table.hides(RECOVERY, "dynamodb:DescribeContinuousBackups", error),
    };
    let is_on = backups.is_some_and(|backups| {
        backups.continuous_backups_status == ContinuousBackupsStatus::Enabled
            && backups
                .point_in_time_recovery_description
                .and_then(|found| found.point_in_time_recovery_status)
                == Some(PointInTimeRecoveryStatus::Enabled)
    });
    match is_on {
        true => table.good(RECOVERY, "on"),
        false => table.says(
            RECOVERY,
            State::Wrong,
            "off: items deleted or overwritten by mistake cannot be recovered",
            Some("Run `statewright aws setup`, which turns it on"),
        ),
    }
}

/// Does what a server does with the table: conditional writes, reads, queries and deletes.
async fn use_table(clients: &Clients, table: &Thing<'_>, dates: &Dates) -> Result<Finding, Finding> {
    const WHAT: &str = "use";
    let client = &clients.dynamodb();
    let (probe, absent) = (ItemKey::new("STORE", "PROBE"), ItemKey::new("STORE", "PROBE#ABSENT"));
    let get = client
        .get_item()
        .table_name(table.name)
        .set_key(Some(key_to_attributes(&probe)))
        .consistent_read(true)
        .customize()
        .interceptor(dates.clone());
    get.send().await.map_err(|error| table.fails(WHAT, "dynamodb:GetItem", error))?;
    let mut item = key_to_attributes(&probe);
    // With an expiry, like other items, so that one left behind goes away.
    item.insert(super::item::REVISION.to_owned(), AttributeValue::N("0".to_owned()));
    item.insert(VALUE.to_owned(), AttributeValue::B(Blob::new(Vec::new())));
    let writes = || -> Result<[TransactWriteItem; 2], BuildError> {
        let put = Put::builder().table_name(table.name).set_item(Some(item)).build()?;
        let check = ConditionCheck::builder()
            .table_name(table.name)
            .set_key(Some(key_to_attributes(&absent)))
            .condition_expression("attribute_not_exists(#a)")
            .expression_attribute_names("#a", PARTITION)
            .build()?;
        Ok([
            TransactWriteItem::builder().put(put).build(),
            TransactWriteItem::builder().condition_check(check).build(),
        ])
    };
    let writes = writes().map_err(|error| table.says(WHAT, State::Unknown, error.to_string(), None))?;
    client
        .transact_write_items()
        .set_transact_items(Some(writes.to_vec()))
        .send()
        .await
        .map_err(|error| table.fails(WHAT, "dynamodb:PutItem and dynamodb:ConditionCheckItem", error))?;
    client
        .query()
        .table_name(table.name)
        .consistent_read(true)
        .key_condition_expression("#p = :p AND begins_with(#s, :s)")
        .expression_attribute_names("#p", PARTITION)
        .expression_attribute_names("#s", SORT)
        .expression_attribute_values(":p", AttributeValue::S(probe.partition.clone()))
        .expression_attribute_values(":s", AttributeValue::S(probe.sort.clone()))
        .send()
        .await
        .map_err(|error| table.fails(WHAT, "dynamodb:Query", error))?;
    client
        .delete_item()
        .table_name(table.name)
        .set_key(Some(key_to_attributes(&probe)))
        .send()
        .await
        .map_err(|error| table.fails(WHAT, "dynamodb:DeleteItem", error))?;
    Ok(table.good(WHAT, "an item was written, read, queried and deleted"))
}

async fn check_bucket(clients: &Clients, bucket: &Thing<'_>) -> Findings {
    let client = &clients.s3();
    let mut found = Vec::new();
    if let Err(error) = client.head_bucket().bucket(bucket.name).send().await {
        return Err((found, bucket.fails("there", "s3:ListBucket", error)));
    }
    found.push(bucket.good("there", "it answers"));
    found.push(match client.get_public_access_block().bucket(bucket.name).send().await {
        Ok(answer) => {
            let is_closed = answer.public_access_block_configuration.is_some_and(|block| {
                [
                    block.block_public_acls,
                    block.ignore_public_acls,
                    block.block_public_policy,
                    block.restrict_public_buckets,
                ]
                .iter()
                .all(|closed| *closed == Some(true))
            });
            public(bucket, is_closed)
        }
        Err(error) if code(&error) == Some("NoSuchPublicAccessBlockConfiguration") => public(bucket, false),
        Err(error) => bucket.hides(CLOSED, "s3:GetBucketPublicAccessBlock", error),
    });
    found.push(match client.get_bucket_encryption().bucket(bucket.name).send().await {
        Ok(answer) => encryption(
            bucket,
            answer.server_side_encryption_configuration.is_some_and(|found| {
                found.rules().iter().any(|rule| rule.apply_server_side_encryption_by_default().is_some())
            }),
        ),
        Err(error) if code(&error) == Some("ServerSideEncryptionConfigurationNotFoundError") => {
            encryption(bucket, false)
        }
        Err(error) => bucket.hides(ENCRYPTION, "s3:GetEncryptionConfiguration", error),
    });
    found.push(match client.get_bucket_policy().bucket(bucket.name).send().await {
        Ok(answer) => {
            let policy = answer.policy.and_then(|text| serde_json::from_str(&text).ok());
            tls(bucket, policy.is_some_and(|policy| wanted::refuses_without_tls(&policy)))
        }
        Err(error) if code(&error) == Some("NoSuchBucketPolicy") => tls(bucket, false),
        Err(error) => bucket.hides(TLS, "s3:GetBucketPolicy", error),
    });
    found.push(match client.get_bucket_versioning().bucket(bucket.name).send().await {
        Ok(answer) if answer.status == Some(BucketVersioningStatus::Enabled) => bucket.says(
            "versions",
            State::Wrong,
            "on: objects that Statewright deletes are kept and cost money",
            Some("Suspend the versioning of the bucket: Statewright never changes a blob"),
        ),
        Ok(_) => bucket.good("versions", "none are kept"),
        Err(error) => bucket.hides("versions", "s3:GetBucketVersioning", error),
    });
    found.push(match client.get_bucket_lifecycle_configuration().bucket(bucket.name).send().await {
        Ok(answer) => rules(bucket, answer.rules()),
        Err(error) if code(&error) == Some("NoSuchLifecycleConfiguration") => rules(bucket, &[]),
        Err(error) => bucket.hides(RULES, "s3:GetLifecycleConfiguration", error),
    });
    match use_bucket(clients, bucket).await {
        Ok(finding) => found.push(finding),
        Err(finding) => return Err((found, finding)),
    }
    Ok(found)
}

fn public(bucket: &Thing<'_>, is_closed: bool) -> Finding {
    match is_closed {
        true => bucket.good(CLOSED, "blocked"),
        false => bucket.says(
            CLOSED,
            State::Wrong,
            "not blocked: a policy could make it public",
            Some("Run `statewright aws setup`, which blocks it"),
        ),
    }
}

fn encryption(bucket: &Thing<'_>, is_encrypted: bool) -> Finding {
    match is_encrypted {
        true => bucket.good(ENCRYPTION, "on"),
        false => bucket.says(
            ENCRYPTION,
            State::Wrong,
            "off",
            Some("Run `statewright aws setup`, which turns it on"),
        ),
    }
}

fn tls(bucket: &Thing<'_>, is_only: bool) -> Finding {
    match is_only {
        true => bucket.good(TLS, "its policy refuses anything else"),
        false => bucket.says(
            TLS,
            State::Advice,
            "its policy does not refuse requests without TLS",
            Some("Run `statewright aws setup`, which adds that"),
        ),
    }
}

fn rules(bucket: &Thing<'_>, rules: &[LifecycleRule]) -> Finding {
    let removes = |rule: &LifecycleRule| {
        let expires =
            |expiration: &LifecycleExpiration| expiration.days().is_some() || expiration.date().is_some();
        *rule.status() == ExpirationStatus::Enabled
            && rule.expiration().is_some_and(expires)
            && !wanted::prefix(rule).starts_with(wanted::PROBES)
    };
    let missing: Vec<&str> = wanted::missing(rules).iter().map(|rule| rule.id).collect();
    if rules.iter().any(removes) {
        let remedy = "Remove the rule: a stack's version needs its blob until the version is deleted";
        bucket.says(RULES, State::Wrong, "a rule deletes objects by their age", Some(remedy))
    } else if missing.is_empty() {
        bucket.good(RULES, "correct")
    } else {
        let words = format!("missing: {}", missing.join(", "));
        bucket.says(RULES, State::Advice, words, Some("Run `statewright aws setup`, which adds them"))
    }
}

/// Does what a server does with the bucket.
async fn use_bucket(clients: &Clients, bucket: &Thing<'_>) -> Result<Finding, Finding> {
    const WHAT: &str = "use";
    const PROBE: &str = "probe/doctor";
    let client = &clients.s3();
    let body = ByteStream::from_static(b"ready");
    client
        .put_object()
        .bucket(bucket.name)
        .key(PROBE)
        .body(body)
        .send()
        .await
        .map_err(|error| bucket.fails(WHAT, "s3:PutObject", error))?;
    client
        .get_object()
        .bucket(bucket.name)
        .key(PROBE)
        .send()
        .await
        .map_err(|error| bucket.fails(WHAT, "s3:GetObject", error))?;
    client
        .delete_object()
        .bucket(bucket.name)
        .key(PROBE)
        .send()
        .await
        .map_err(|error| bucket.fails(WHAT, "s3:DeleteObject", error))?;
    Ok(bucket.good(WHAT, "an object was written, read and deleted"))
}

async fn check_key(clients: &Clients, key: &Thing<'_>) -> Findings {
    let client = &clients.kms();
    let mut found = Vec::new();
    match client.describe_key().key_id(key.name).send().await {
        Ok(described) => {
            let metadata = described.key_metadata;
            let state = metadata.as_ref().and_then(|key| key.key_state.clone());
            if !matches!(state, None | Some(KeyState::Enabled)) {
                let words =
                    state.map_or_else(String::new, |state| format!("its state is {}", state.as_str()));
                let remedy =
                    "Enable the key in KMS, or cancel its deletion: without it no secret can be decrypted";
                return Err((found, key.says("there", State::Wrong, words, Some(remedy))));
            }
            let fits = metadata.as_ref().is_none_or(|key| {
                matches!(key.key_usage, None | Some(KeyUsageType::EncryptDecrypt))
                    && matches!(key.key_spec, None | Some(KeySpec::SymmetricDefault))
            });
            if !fits {
                let remedy = "Name a symmetric key for encryption with --kms-key";
                return Err((
                    found,
                    key.says("there", State::Wrong, "not a key for encryption", Some(remedy)),
                ));
            }
            found.push(key.good("there", "enabled"));
            let id = metadata.map(|key| key.key_id);
            found.push(match client.get_key_rotation_status().set_key_id(id).send().await {
                Ok(answer) if answer.key_rotation_enabled => key.good(ROTATION, "on"),
                Ok(_) => key.says(
                    ROTATION,
                    State::Advice,
                    "off",
                    Some("Run `statewright aws setup`, which turns it on"),
                ),
                Err(error) => key.hides(ROTATION, "kms:GetKeyRotationStatus", error),
            });
        }
        Err(error) => match Meaning::of(&error) {
            Meaning::Denied | Meaning::NotImplemented => {
                found.push(key.hides("there", "kms:DescribeKey", error));
            }
            _ => return Err((found, key.fails("there", "kms:DescribeKey", error))),
        },
    }
    match use_key(clients, key).await {
        Ok(finding) => found.push(finding),
        Err(finding) => return Err((found, finding)),
    }
    Ok(found)
}

/// Does what a server does with the key.
async fn use_key(clients: &Clients, key: &Thing<'_>) -> Result<Finding, Finding> {
    const WHAT: &str = "use";
    let client = &clients.kms();
    let made = client
        .generate_data_key()
        .key_id(key.name)
        .key_spec(DataKeySpec::Aes256)
        .encryption_context("probe", "doctor")
        .send()
        .await
        .map_err(|error| key.fails(WHAT, "kms:GenerateDataKey", error))?;
    let decrypt = client.decrypt().key_id(key.name).set_ciphertext_blob(made.ciphertext_blob);
    let opened = decrypt
        .clone()
        .encryption_context("probe", "doctor")
        .send()
        .await
        .map_err(|error| key.fails(WHAT, "kms:Decrypt", error))?;
    let remedy = "Name another key: this service does not behave like KMS";
    if opened.plaintext != made.plaintext {
        return Err(key.says(WHAT, State::Wrong, "a data key decrypts to another one", Some(remedy)));
    }
    match decrypt.encryption_context("probe", "another").send().await {
        Err(error) if code(&error) == Some("InvalidCiphertextException") => {
            Ok(key.good(WHAT, "a data key was created, and decrypted only with its context"))
        }
        Err(error) => Err(key.fails(WHAT, "kms:Decrypt", error)),
        Ok(_) => Err(key.says(WHAT, State::Wrong, "a data key decrypts with another context", Some(remedy))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_an_instant() {
        assert_eq!(parse_date("Thu, 01 Jan 2026 00:00:01 GMT"), Some(Timestamp(1_767_225_601_000_000_000)));
        for bad in ["", "2026-01-01T00:00:00Z", "Thu, 1 Foo 2026 00:00:01 GMT"] {
            assert_eq!(parse_date(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_clock_may_be_half_a_minute_away() {
        let at = |seconds: i64| {
            let dates = Dates::default();
            *dates.0.lock().unwrap() = Some("Thu, 01 Jan 2026 00:00:00 GMT".to_owned());
            struct Still(Timestamp);
            #[async_trait::async_trait]
            impl Clock for Still {
                fn now(&self) -> Timestamp {
                    self.0
                }
                async fn sleep(&self, _duration: Duration) {}
            }
            let now = Timestamp::from_seconds(1_767_225_600 + seconds);
            check_clock(&dates, &Still(now)).unwrap().state
        };
        assert_eq!([0, 31, -31].map(at), [State::Good; 3]);
        assert_eq!([32, -32, 86_400].map(at), [State::Wrong; 3]);
    }
}
