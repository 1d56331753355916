//! What a failed answer of a service means for the caller.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use super::Clients;
use crate::ports::{Clock, Ids, PortError};

/// Attempts at a call that the service rejects for now.
const ATTEMPTS_MAX: u32 = 6;

/// The longest wait after the first attempt; it doubles with each attempt. With [`ATTEMPTS_MAX`] that is at
/// most 1.6 seconds in all, and half of it on average.
const FIRST_WAIT_MAX: Duration = Duration::from_millis(50);

/// Repeats calls that a service rejected without doing anything.
#[derive(Clone)]
pub(super) struct Retries {
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    calls: Arc<AtomicU64>,
}

impl Retries {
    pub(super) fn new(clients: &Clients, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self { clock, ids, calls: Arc::clone(&clients.calls) }
    }

    /// The answer of the first call that is not rejected, or of the last.
    pub(super) async fn call<T, E, F>(
        &self,
        mut call: impl FnMut() -> F,
        is_turned_away: impl Fn(&SdkError<E, HttpResponse>) -> bool,
    ) -> Result<T, SdkError<E, HttpResponse>>
    where
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    {
        let mut call = || {
            self.calls.fetch_add(1, Ordering::Relaxed);
            call()
        };
        let mut wait_max = FIRST_WAIT_MAX;
        for _ in 1..ATTEMPTS_MAX {
            match call().await {
                Err(error) if is_turned_away(&error) => {
                    // Callers that collided would collide again if their waits were not random from zero on.
                    self.clock.sleep(self.random_below(wait_max)).await;
                    wait_max *= 2;
                }
                answer => return answer,
            }
        }
        call().await
    }

    fn random_below(&self, wait_max: Duration) -> Duration {
        let mut bytes = [0; 2];
        self.ids.fill(&mut bytes);
        wait_max * u32::from(u16::from_be_bytes(bytes)) / (u32::from(u16::MAX) + 1)
    }
}

/// Codes of calls that were not done but may succeed in a moment: load, or another call on the same item.
///
/// Sources: the error lists of `PutItem` and `TransactWriteItems` in the DynamoDB API reference, of S3 and of KMS.
const TURNED_AWAY: &[&str] = &[
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "Throttling",
    "TransactionConflictException",
    "ReplicatedWriteConflictException",
    "SlowDown",
    "OperationAborted",
    "ConditionalRequestConflict",
];

/// Whether the service rejected the call without doing anything and accepts it again later.
pub(super) fn is_turned_away<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    error
        .as_service_error()
        .and_then(ProvideErrorMetadata::code)
        .is_some_and(|code| TURNED_AWAY.contains(&code))
}

/// The failure of a call that changes something. Only an answer that refuses the call as it was sent proves
/// that nothing has happened. A failure inside the service, a broken connection or a timeout proves nothing.
pub(super) fn of_write<E>(what: &'static str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let never_sent = matches!(error, SdkError::ConstructionFailure(_));
    let refused = error.as_service_error().is_some()
        && error.raw_response().is_some_and(|response| {
            let status = response.status().as_u16();
            (400..500).contains(&status) && status != 408
        });
    if never_sent || refused || is_turned_away(&error) {
        PortError::not_done(what, Described(error))
    } else {
        PortError::unknown(what, Described(error))
    }
}

/// The failure of a call that changes nothing.
pub(super) fn of_read<E>(what: &'static str, error: SdkError<E, HttpResponse>) -> PortError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    PortError::not_done(what, Described(error))
}

/// An SDK's error says no more than "service error"; operators need the code and the message.
#[derive(Debug)]
pub(super) struct Described<E>(pub(super) SdkError<E, HttpResponse>);

impl<E: ProvideErrorMetadata> std::fmt::Display for Described<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&describe(&self.0))
    }
}

/// The text of [`Described`].
pub(super) fn describe<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> String {
    let Some(service) = error.as_service_error() else { return error.to_string() };
    let code = service.code().unwrap_or("an error without a code");
    service.message().map_or_else(|| code.to_owned(), |message| format!("{code}: {message}"))
}

impl<E: ProvideErrorMetadata + Error + Send + Sync + 'static> Error for Described<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.0.as_service_error() {
            Some(_) => None,
            None => self.0.source(),
        }
    }
}
