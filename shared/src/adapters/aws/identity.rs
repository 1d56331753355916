//! Proofs of the principal whose credentials this machine has: a presigned request that only AWS can verify.

use std::time::{Duration, SystemTime};

use aws_config::Region;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningParams, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use hyper::Request;

use super::Clients;
use crate::domain::oidc::aws::{LIFETIME, Proof, SERVER_HEADER};
use crate::domain::server_url::ServerUrl;
use crate::ports::{BoxError, Timestamp};

impl Clients {
    /// A proof for this server. Calls no service, but may ask the machine for credentials.
    ///
    /// # Errors
    /// When there are no credentials, or they cannot sign.
    pub async fn prove(&self, server: &ServerUrl, now: Timestamp) -> Result<Proof, BoxError> {
        let provider = self.config.credentials_provider().ok_or("there are no credentials")?;
        let credentials = provider.provide_credentials().await?;
        let region = self.config.region().map_or("us-east-1", Region::as_ref);
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let url = format!("https://sts.{region}.{domain}/?Action=GetCallerIdentity&Version=2011-06-15");
        let mut settings = SigningSettings::default();
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(LIFETIME);
        let seconds = u64::try_from(now.seconds()).unwrap_or_default();
        let identity = credentials.into();
        let params: SigningParams<'_> = v4::SigningParams::builder()
            .identity(&identity)
            .region(region)
            .name("sts")
            .time(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
            .settings(settings)
            .build()?
            .into();
        let headers = [(SERVER_HEADER, server.as_str())];
        let signable = SignableRequest::new("GET", &url, headers.into_iter(), SignableBody::Bytes(&[]))?;
        let (instructions, _) = sign(signable, &params)?.into_parts();
        let mut request = Request::get(&url).body(())?;
        instructions.apply_to_request_http1x(&mut request);
        Ok(Proof { url: request.uri().to_string(), server: server.to_string() })
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::super::Options;
    use super::*;

    /// The server accepts what its client makes, in each partition.
    #[tokio::test]
    async fn a_proof_has_the_form_that_the_server_checks() {
        let server = ServerUrl::parse("https://state.example.com/base").unwrap();
        let now = Timestamp::from_seconds(1_767_225_600);
        for region in ["eu-central-1", "us-gov-west-1", "cn-north-1"] {
            let options = Options { region: Some(region.to_owned()), ..Options::default() };
            let clients = Clients::of_stand_in(&options).await.unwrap();
            let proof = clients.prove(&server, now).await.unwrap();
            let presigned =
                proof.check(server.as_str(), now).unwrap_or_else(|error| panic!("{error}: {proof:?}"));
            assert_eq!(presigned.made, now);
            // The signature depends on the server.
            let other = ServerUrl::parse("https://other.example.com").unwrap();
            assert_ne!(clients.prove(&other, now).await.unwrap().url, proof.url);
        }
    }
}
