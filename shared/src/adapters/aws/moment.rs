//! A table as it was at one moment, beside the one that goes on.

use std::error::Error;
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::TableStatus;

use super::Clients;
use super::failure::Described;
use super::setup::code;
use crate::ports::{BoxError, Clock, Timestamp};

/// How long is waited between two looks at a table that is being brought back: at first, and in the end.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(15);

/// Looks at it before something is wrong: with [`WAIT_MAX`] those of a day.
const LOOKS_MAX: u32 = 24 * 3600 / 15;

/// Why there is no table of the moment, or it is still there.
#[derive(Debug, thiserror::Error)]
pub enum MomentError {
    /// The table cannot be brought back.
    #[error(
        "the table {0} cannot be brought back as it was: its point-in-time recovery is off. `statewright aws setup` turns \
         it on"
    )]
    NoRecovery(String),
    /// A service refused or failed.
    #[error("{what} {table} failed")]
    Call {
        /// What was asked for.
        what: &'static str,
        /// The table.
        table: String,
        /// The service's own error.
        #[source]
        source: BoxError,
    },
    /// It did not become ready.
    #[error("the table {0} is still not ready after a day")]
    NotReady(String),
}

/// Makes a table of this name that holds what `table` held at the latest moment to which it can be brought back, which is
/// some minutes ago, and says when that was. It takes DynamoDB ten minutes and more, whatever the size. What is in it costs
/// until it is removed.
///
/// # Errors
/// See [`MomentError`].
pub async fn bring_back(
    clients: &Clients,
    table: &str,
    name: &str,
    clock: &dyn Clock,
) -> Result<Timestamp, MomentError> {
    let client = clients.dynamodb();
    let asked = client.describe_continuous_backups().table_name(table).send().await;
    let latest = asked
        .map_err(|error| failed("asking about the recovery of the table", table, error))?
        .continuous_backups_description
        .and_then(|backups| backups.point_in_time_recovery_description)
        .and_then(|recovery| recovery.latest_restorable_date_time)
        .ok_or_else(|| MomentError::NoRecovery(table.to_owned()))?;
    let at = DateTime::from_secs(latest.secs());
    let sent = client
        .restore_table_to_point_in_time()
        .source_table_name(table)
        .target_table_name(name)
        .restore_date_time(at)
        .send()
        .await;
    sent.map_err(|error| failed("bringing back the table as", name, error))?;
    let mut wait = FIRST_WAIT;
    for _ in 0..LOOKS_MAX {
        match client.describe_table().table_name(name).send().await {
            Ok(found) => {
                let status = found.table.and_then(|table| table.table_status);
                if status == Some(TableStatus::Active) {
                    return Ok(Timestamp::from_seconds(at.secs()));
                }
            }
            // What was just asked for may not be known everywhere yet.
            Err(error) if code(&error) == Some("ResourceNotFoundException") => {}
            Err(error) => return Err(failed("asking about the table", name, error)),
        }
        clock.sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
    Err(MomentError::NotReady(name.to_owned()))
}

/// Removes a table that [`bring_back`] has made, if it is there.
///
/// # Errors
/// See [`MomentError`].
pub async fn remove(clients: &Clients, name: &str, clock: &dyn Clock) -> Result<(), MomentError> {
    let client = clients.dynamodb();
    for _ in 0..LOOKS_MAX {
        match client.delete_table().table_name(name).send().await {
            Ok(_) => return Ok(()),
            Err(error) => match code(&error) {
                Some("ResourceNotFoundException") => return Ok(()),
                // It is still being made.
                Some("ResourceInUseException") => clock.sleep(WAIT_MAX).await,
                _ => return Err(failed("removing the table", name, error)),
            },
        }
    }
    Err(MomentError::NotReady(name.to_owned()))
}

fn failed<E>(what: &'static str, table: &str, error: SdkError<E, HttpResponse>) -> MomentError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    MomentError::Call { what, table: table.to_owned(), source: Described(error).into() }
}
