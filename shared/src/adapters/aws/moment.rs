//! A restored table, next to the one in use.

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

/// The waits between two checks of a table that is being restored: the first and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(15);

/// Checks before giving up: with [`WAIT_MAX`] those of a day.
const POLLS_MAX: u32 = 24 * 3600 / 15;

/// Why there is no restored table, or it still exists.
#[derive(Debug, thiserror::Error)]
pub enum MomentError {
    /// Point-in-time recovery is off.
    #[error(
        "the table {0} cannot be restored to a moment: its point-in-time recovery is off. `statewright aws setup` turns \
         it on"
    )]
    NoRecovery(String),
    /// A service refused or failed.
    #[error("{what} {table} failed")]
    Call {
        what: &'static str,
        table: String,
        #[source]
        source: BoxError,
    },
    /// It did not become ready.
    #[error("the table {0} is still not ready after a day")]
    NotReady(String),
}

/// Makes a table of this name that holds what `table` held at its latest restorable moment, some minutes ago,
/// and returns that moment. DynamoDB takes ten minutes and more, whatever the size. The table costs money until
/// it is deleted.
///
/// # Errors
/// See [`MomentError`].
pub async fn restore_table(
    clients: &Clients,
    table: &str,
    name: &str,
    clock: &dyn Clock,
) -> Result<Timestamp, MomentError> {
    let client = clients.dynamodb();
    let answer = client.describe_continuous_backups().table_name(table).send().await;
    let latest = answer
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
    sent.map_err(|error| failed("restoring the table as", name, error))?;
    let mut wait = FIRST_WAIT;
    for _ in 0..POLLS_MAX {
        match client.describe_table().table_name(name).send().await {
            Ok(found) => {
                let status = found.table.and_then(|table| table.table_status);
                if status == Some(TableStatus::Active) {
                    return Ok(Timestamp::from_seconds(at.secs()));
                }
            }
            // A call that was just acknowledged may not be visible everywhere yet.
            Err(error) if code(&error) == Some("ResourceNotFoundException") => {}
            Err(error) => return Err(failed("asking about the table", name, error)),
        }
        clock.sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
    Err(MomentError::NotReady(name.to_owned()))
}

/// Deletes a table that [`restore_table`] has made, if it exists.
///
/// # Errors
/// See [`MomentError`].
pub async fn remove(clients: &Clients, name: &str, clock: &dyn Clock) -> Result<(), MomentError> {
    let client = clients.dynamodb();
    for _ in 0..POLLS_MAX {
        match client.delete_table().table_name(name).send().await {
            Ok(_) => return Ok(()),
            Err(error) => match code(&error) {
                Some("ResourceNotFoundException") => return Ok(()),
                // It is still being created.
                Some("ResourceInUseException") => clock.sleep(WAIT_MAX).await,
                _ => return Err(failed("deleting the table", name, error)),
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
