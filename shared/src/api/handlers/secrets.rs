//! Encrypts and decrypts secrets.

use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::api::app::App;
use crate::api::body::JsonBody;
use crate::api::path::StackPath;
use crate::api::query::check_count;
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_of, no_content};
use crate::domain::plural::count;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::keys::data_keys;
use crate::services::store::stack_lookup;
use crate::services::work::{self, SMALL_BYTES_MAX};
use crate::wire::pulumi::{
    Base64, BatchDecrypt, BatchDecrypted, BatchEncrypt, BatchEncrypted, Ciphertext, Plaintext,
};

/// Encrypts one value. The CLI calls this at the start of almost every command, for the key of its own log. A
/// repeat returns another ciphertext of the same value, which is equally valid.
pub(crate) async fn encrypt(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    JsonBody(Plaintext { plaintext }): JsonBody<Plaintext>,
) -> Answer {
    let stack = stack_lookup::locate_keys(&app, &caller, &address).await?;
    let ciphertext = data_keys::encrypt(&app, stack, vec![plaintext.0]).await?.pop().unwrap_or_default();
    json_of(ciphertext.len(), Ciphertext { ciphertext: Base64(ciphertext) }).await
}

/// Decrypts one value.
pub(crate) async fn decrypt(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(Ciphertext { ciphertext }): JsonBody<Ciphertext>,
) -> Answer {
    context.detail(count(1_u64, "value"));
    let stack = stack_lookup::locate_keys(&app, &caller, &address).await?;
    let plaintext = data_keys::decrypt(&app, stack, vec![ciphertext.0]).await?.pop().unwrap_or_default();
    json_of(plaintext.len(), Plaintext { plaintext: Base64(plaintext) }).await
}

/// Encrypts the secrets of a state, up to 1,000 at once, in order.
pub(crate) async fn batch_encrypt(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    JsonBody(BatchEncrypt { plaintexts }): JsonBody<BatchEncrypt>,
) -> Answer {
    let plaintexts: Vec<Vec<u8>> =
        plaintexts.unwrap_or_default().into_iter().map(|plaintext| plaintext.0).collect();
    check_count(plaintexts.len())?;
    let stack = stack_lookup::locate_keys(&app, &caller, &address).await?;
    if plaintexts.is_empty() {
        return json(&BatchEncrypted { ciphertexts: Vec::new() });
    }
    let ciphertexts = data_keys::encrypt(&app, stack, plaintexts).await?;
    let bytes = ciphertexts.iter().map(Vec::len).sum();
    json_of(bytes, BatchEncrypted { ciphertexts: ciphertexts.into_iter().map(Base64).collect() }).await
}

/// Decrypts the secrets of a state. The answer's keys are the ciphertexts exactly as sent; the CLI panics if
/// one is missing.
pub(crate) async fn batch_decrypt(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    StackPath(address): StackPath,
    JsonBody(BatchDecrypt { ciphertexts }): JsonBody<BatchDecrypt>,
) -> Answer {
    let texts = ciphertexts.unwrap_or_default();
    context.detail(count(texts.len(), "value"));
    check_count(texts.len())?;
    let bytes = texts.iter().map(String::len).sum();
    let decode = move || {
        let ciphertexts: Vec<Vec<u8>> = texts
            .iter()
            .map(|text| STANDARD.decode(text))
            .collect::<Result<_, _>>()
            .map_err(InvalidInput::from)?;
        Ok((texts, ciphertexts))
    };
    let decoded: Result<_, Error> =
        if bytes <= SMALL_BYTES_MAX { decode() } else { work::on(bytes, decode).await };
    let (texts, ciphertexts) = decoded?;
    let stack = stack_lookup::locate_keys(&app, &caller, &address).await?;
    let plaintexts = data_keys::decrypt(&app, stack, ciphertexts).await?;
    let plaintexts = texts.into_iter().zip(plaintexts.into_iter().map(Base64)).collect();
    json_of(bytes, BatchDecrypted { plaintexts }).await
}

/// The CLI reports that it shows secrets to its user. The audit log records it, since the CLI may have
/// decrypted them earlier.
pub(crate) async fn log_decryption(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    stack_lookup::locate_keys(&app, &caller, &address).await?;
    no_content()
}
