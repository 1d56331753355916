//! Facts about a connection, which the server's front end puts into the extensions of each request. Headers are not
//! trusted for them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::Extensions;
use bytes::Bytes;

/// The address that a connection comes from.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

impl Peer {
    /// The address in a request's extensions.
    pub(super) fn address(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Self>().map(|Self(address)| address.ip())
    }
}

/// A callback of the front end, called when a request shows valid credentials.
#[derive(Clone)]
pub struct ShowedToken(pub Arc<dyn Fn() + Send + Sync>);

/// The certificate of a connection's client, as DER, once the client has shown that it has the private key.
#[derive(Clone)]
pub struct ClientCertificate(pub Bytes);

/// The front end's ID of the request, for the log and the client. A request without one gets an ID here.
#[derive(Debug, Clone)]
pub struct RequestId(pub String);
