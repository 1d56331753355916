//! Asking a server for a page, as its clients would.

use std::time::Duration;

use aws_sdk_dynamodb::config::http::HttpRequest;
use aws_sdk_s3::primitives::SdkBody;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Connector, tls};
use aws_smithy_runtime_api::client::http::HttpConnector as _;

use crate::ports::{BoxError, Clock};

/// The status of the answer to a GET of this URL, over HTTPS with the certificates that this machine trusts. Nothing is sent
/// with it.
///
/// # Errors
/// When no answer came within `wait_max`, with why.
pub async fn reach(url: &str, wait_max: Duration, clock: &dyn Clock) -> Result<u16, BoxError> {
    let connector = Connector::builder().tls_provider(tls::Provider::Rustls(CryptoMode::Ring)).build();
    let mut request = HttpRequest::new(SdkBody::empty());
    request.set_uri(url.to_owned())?;
    tokio::select! {
        answer = connector.call(request) => Ok(answer?.status().as_u16()),
        () = clock.sleep(wait_max) => Err("no answer came in time".into()),
    }
}
