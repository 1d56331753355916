//! AWS STS, as a server asks it about the principals of AWS.

use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::json;
use statewright_shared::ports::{Web, WebAnswer, WebError, WebRequest};
use tokio::sync::Semaphore;

/// The address under which an organization registers AWS as an issuer.
pub const AWS: &str = "https://sts.amazonaws.com";

/// The principal at first: a session of the role `deploy`.
pub const DEPLOY: &str = "arn:aws:sts::123456789012:assumed-role/deploy/run";

/// Answers about one principal, to one server.
pub struct Sts {
    server: String,
    status: AtomicU16,
    principal: Mutex<String>,
    request_count: AtomicUsize,
    /// Has a permit for each answer that the test lets it give.
    open: Semaphore,
}

impl Sts {
    /// Answers with this status to the server at this address.
    pub fn answering(server: &str, status: u16) -> Arc<Self> {
        Self::with_permits(server, status, Semaphore::MAX_PERMITS)
    }

    /// The same, without an answer until the test lets it give some.
    pub fn holding(server: &str, status: u16) -> Arc<Self> {
        Self::with_permits(server, status, 0)
    }

    fn with_permits(server: &str, status: u16, permits: usize) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            status: status.into(),
            principal: Mutex::new(DEPLOY.to_owned()),
            request_count: 0.into(),
            open: Semaphore::new(permits),
        })
    }

    /// Answers with this status from now on.
    pub fn set(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Answers that the principal is this one from now on: an ARN, which has the account.
    pub fn knows(&self, principal: &str) {
        principal.clone_into(&mut self.principal.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Lets it give this many more answers.
    pub fn let_answer(&self, count: usize) {
        self.open.add_permits(count);
    }

    pub fn request_count(&self) -> usize {
        self.request_count.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Web for Sts {
    async fn send(&self, request: WebRequest) -> Result<WebAnswer, WebError> {
        assert!(request.url.starts_with("https://sts.eu-central-1.amazonaws.com/?"), "{}", request.url);
        assert_eq!(request.headers, [("x-statewright-server".to_owned(), self.server.clone())]);
        self.request_count.fetch_add(1, Ordering::Relaxed);
        self.open.acquire().await.expect("it stays open").forget();
        let arn = self.principal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let account = arn.split(':').nth(4).expect("an ARN has an account");
        let result = json!({ "Arn": arn, "Account": account, "UserId": "AROA:run" });
        let answer = json!({ "GetCallerIdentityResponse": { "GetCallerIdentityResult": result } });
        let status = self.status.load(Ordering::Relaxed);
        Ok(WebAnswer { status, body: answer.to_string().into(), certificate: [0; 32] })
    }
}
