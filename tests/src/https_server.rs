//! HTTPS on this machine, with the certificate of an authority of the test.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring as provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Who vouches for the certificates of servers.
pub struct Authority {
    /// The file with its certificate, for `SSL_CERT_FILE`.
    pub file: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
    _folder: TempDir,
}

impl Authority {
    /// A new authority, which only those trust who have its file.
    pub fn new() -> Arc<Self> {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are valid names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key can be made"));
        let issuer = issuer.expect("a certificate can be made");
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("authority.pem");
        std::fs::write(&file, issuer.pem()).expect("the folder is writable");
        Arc::new(Self { file, issuer, _folder: folder })
    }

    /// A server's TLS for these names.
    fn tls(&self, names: &[&str]) -> TlsAcceptor {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().expect("a key can be made");
        let params = CertificateParams::new(names).expect("the names are valid");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate can be made");
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the library has protocol versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .expect("the key is that of the certificate");
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server. Dropping it ends it.
pub struct HttpsServer(JoinHandle<()>);

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl HttpsServer {
    /// Serves these names. `answer` makes the status, the headers and the body of an answer from the head of a request;
    /// with `None` it never answers.
    pub fn start<F>(listener: TcpListener, authority: &Authority, names: &[&str], answer: F) -> Self
    where
        F: Fn(&str) -> Option<Answer> + Send + Sync + 'static,
    {
        let (acceptor, answer) = (authority.tls(names), Arc::new(answer));
        Self(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer) = (acceptor.clone(), Arc::clone(&answer));
                tokio::spawn(async move {
                    // A client may leave at any moment.
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = serve(stream, &*answer).await;
                    }
                });
            }
        }))
    }
}

/// What a server answers.
pub struct Answer {
    pub status: u16,
    /// The value of the header `Location`.
    pub location: Option<String>,
    pub body: String,
}

async fn serve(
    mut stream: TlsStream<TcpStream>,
    answer: &(dyn Fn(&str) -> Option<Answer> + Send + Sync),
) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let Some(Answer { status, location, body }) = answer(&String::from_utf8_lossy(&request)) else {
        return std::future::pending().await;
    };
    let location = location.map(|to| format!("Location: {to}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{location}Content-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
