//! Proofs of principals of AWS: AWS itself verifies the signature, when this server sends the presigned request.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use crate::context::Context;
use crate::domain::oidc::aws::{self, Presigned, Proof, SERVER_HEADER};
use crate::layout::{ShownProof, expiring};
use crate::ports::{Expect, WebRequest};
use crate::services::error::ExchangeError;
use crate::services::identity::guesses;
use crate::services::{Error, store};

/// The time that a proof waits until this server may ask AWS about it.
const TURN_MAX: Duration = Duration::from_secs(3);

/// The time for which a shown proof is remembered after it was made: longer than it is valid, by any clock.
const REMEMBERED_FOR: Duration = Duration::from_secs(1800);

/// Why a proof is not accepted, for the audit log.
pub(super) enum Refused {
    /// The proof is wrong.
    Wrong(String),
    /// AWS did not answer.
    Unavailable(String),
}

/// Reads a proof; `None` if it is not one.
pub(super) fn read(text: &str) -> Option<Proof> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Where a proof comes from: the address that sent it, and the access key that it names.
pub(super) struct Sources(Vec<String>);

impl Sources {
    /// The sources of a proof.
    pub(super) fn of(proof: &Proof, from: Option<IpAddr>) -> Self {
        let key = proof.access_key().map(|key| format!("key {key}"));
        Self(guesses::source(from).into_iter().chain(key).collect())
    }

    /// Refuses a proof after too many refused ones.
    ///
    /// # Errors
    /// [`ExchangeError::TooManyProofs`].
    pub(super) fn check(&self, ctx: &Context) -> Result<(), Error> {
        let wait = |source: &String| guesses::wait(&ctx.memory.proofs.sources.failures(source), ctx.now());
        match self.0.iter().filter_map(wait).max() {
            Some(wait) => Err(ExchangeError::TooManyProofs(wait).into()),
            None => Ok(()),
        }
    }

    /// Counts a refused proof, and forgets such after an accepted one.
    pub(super) fn note(&self, ctx: &Context, is_accepted: bool) {
        for source in &self.0 {
            match is_accepted {
                true => ctx.memory.proofs.sources.forget(source),
                false => {
                    ctx.memory.proofs.sources.count(source, |failures| guesses::count(failures, ctx.now()))
                }
            }
        }
    }
}

/// Waits until this server may ask AWS about a proof.
async fn turn(ctx: &Context) -> Result<SemaphorePermit<'_>, Error> {
    tokio::select! {
        biased;
        // No code closes the semaphore.
        Ok(permit) = ctx.memory.proofs.slots.acquire() => Ok(permit),
        () = ctx.clock.sleep(TURN_MAX) => Err(ExchangeError::TooManyQuestions.into()),
    }
}

/// Verifies a proof with AWS, and returns the claims of its principal. A proof is accepted once.
///
/// # Errors
/// [`ExchangeError::TooManyQuestions`]; errors of the ports.
pub(super) async fn verify(ctx: &Context, proof: &Proof) -> Result<Result<Value, Refused>, Error> {
    let Some(server) = &ctx.address else {
        return Ok(Err(Refused::Wrong("this server does not know its own address".to_owned())));
    };
    let presigned = match proof.check(server.as_str(), ctx.now()) {
        Ok(presigned) => presigned,
        Err(error) => return Ok(Err(Refused::Wrong(error.to_string()))),
    };
    let permit = turn(ctx).await?;
    let asked = ask(ctx, &presigned, server.as_str()).await;
    drop(permit);
    let claims = match asked {
        Ok(claims) => claims,
        Err(refused) => return Ok(Err(refused)),
    };
    let shown = ShownProof { at: ctx.now() };
    let write = store::put(ctx, ShownProof::key(&presigned.signature), Expect::Absent, &shown);
    let write = expiring(write, presigned.made.plus(REMEMBERED_FOR));
    Ok(match store::commit(ctx, vec![write]).await? {
        Ok(()) => Ok(claims),
        Err(_) => Err(Refused::Wrong("it was shown before".to_owned())),
    })
}

async fn ask(ctx: &Context, presigned: &Presigned, server: &str) -> Result<Value, Refused> {
    let Some(web) = &ctx.web else {
        return Err(Refused::Unavailable("this process sends no requests to other servers".to_owned()));
    };
    let headers = vec![(SERVER_HEADER.to_owned(), server.to_owned())];
    let request = WebRequest { headers, ..WebRequest::get(presigned.url.clone()) };
    let answer =
        web.send(request).await.map_err(|error| Refused::Unavailable(format!("AWS STS: {error}")))?;
    match answer.status {
        200 => {
            let answer: Option<Value> = serde_json::from_slice(&answer.body).ok();
            let claims = answer.as_ref().and_then(aws::claims);
            claims.ok_or_else(|| {
                Refused::Unavailable("AWS STS gave another answer than the caller's identity".to_owned())
            })
        }
        status @ 400..500 => Err(Refused::Wrong(format!("AWS STS refused it with the status {status}"))),
        status => Err(Refused::Unavailable(format!("AWS STS answered with the status {status}"))),
    }
}
