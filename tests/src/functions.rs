//! The functions of this tree behind a local gateway, over the stand-in for AWS.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use statewright_gateway::{Between, Doorway, Function, Gateway, InvokeError, Options};
use statewright_shared::adapters::aws::{AwsStore, Names};
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::domain::names::{Login, OrgName, TokenName};
use statewright_shared::services::{accounts, tokens};

use crate::app::{ORG, USER};
use crate::aws::StandIn;
use crate::tools;

/// Functions, their gateway and a store of their own. Processes end when it is dropped.
pub struct Functions {
    /// Where the gateway listens, such as `http://127.0.0.1:41234`.
    pub url: String,
    /// An access token of [`USER`], a member of [`ORG`].
    pub token: String,
    /// What the functions work with: for use cases that have no route, and for looking behind it.
    pub context: Arc<Context>,
    gateway: Gateway,
    lines: Arc<Mutex<Vec<(String, String)>>>,
}

/// How functions of a test are run, where it is not as most are.
pub struct Setting {
    /// The kind of gateway.
    pub doorway: Doorway,
    /// The gateway's stage, where it has a name.
    pub stage: Option<String>,
    /// What becomes of a process between two events.
    pub between: Between,
    /// The store; a fresh one if none is named.
    pub names: Option<Names>,
    /// Where a function finds AWS: the stand-in, or what stands before it.
    pub endpoint: Box<dyn Fn(&str) -> String>,
    /// What else the environment of every function says.
    pub environment: Vec<(&'static str, &'static str)>,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            doorway: Doorway::HttpApi,
            stage: None,
            between: Between::Waits,
            names: None,
            endpoint: Box::new(|_| StandIn::of_this_process().url.clone()),
            environment: Vec::new(),
        }
    }
}

/// Processes of a function at once: of a gateway in a test, whose clients wait for each other.
const PROCESSES_MAX: usize = 6;

impl Functions {
    /// Functions that wait between events, behind an HTTP API, over a store of their own.
    pub async fn start() -> Self {
        Self::start_as(Setting::default()).await
    }

    /// Functions in another setting. Their store gets its first user, as by an operator's command.
    ///
    /// # Panics
    /// If they do not compile, or the stand-in fails.
    pub async fn start_as(setting: Setting) -> Self {
        let stand_in = StandIn::of_this_process();
        let names = match setting.names {
            Some(names) => names,
            None => stand_in.fresh_store().await.1,
        };
        let store = AwsStore::new(
            &crate::aws::clients(&stand_in.url).await,
            &names,
            Arc::new(SystemClock),
            Arc::new(SystemIds),
        );
        let context = Context::new(
            Arc::new(store.ledger),
            Arc::new(store.blobs),
            Arc::new(store.keys),
            Arc::new(SystemClock),
            Arc::new(SystemIds),
            "operator".to_owned(),
        );
        let (login, org) = (Login::parse(USER).expect("valid"), OrgName::parse(ORG).expect("valid"));
        let token = match accounts::bootstrap(&context, &login, &org).await.expect("the store takes a user") {
            Some(first) => first.token,
            None => {
                let name = TokenName::parse("functions").expect("valid");
                tokens::create_token(&context, &login, &name, None).await.expect("the token is new")
            }
        };

        let folder = tools::functions();
        let function = |name: &'static str| {
            let mut environment: Vec<(String, String)> = stand_in
                .environment(&names)
                .into_iter()
                .chain(setting.environment.iter().map(|(name, value)| (*name, (*value).to_owned())))
                .map(|(name, value)| (name.to_owned(), value))
                // A busy machine fails no attempt.
                .chain([("STATEWRIGHT_ATTEMPT_MS".to_owned(), "60000".to_owned())])
                .collect();
            environment.retain(|(name, _)| name != "AWS_ENDPOINT_URL");
            environment.push(("AWS_ENDPOINT_URL".to_owned(), (setting.endpoint)(name)));
            Function {
                name: name.to_owned(),
                program: folder.join(format!("statewright-{name}")),
                environment,
            }
        };
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&lines);
        let options = Options {
            functions: tools::function_names().map(function).collect(),
            doorway: setting.doorway,
            stage: setting.stage,
            between: setting.between,
            processes_max: PROCESSES_MAX,
            log: Arc::new(move |function: &str, line: &str| {
                let line = (function.to_owned(), line.to_owned());
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }),
        };
        let address = "127.0.0.1:0".parse().expect("an address");
        let gateway = Gateway::start(address, options).await.expect("a loopback port is free");
        Self { url: gateway.url.clone(), token, context: Arc::new(context), gateway, lines }
    }

    /// The lines that functions wrote so far, each with the name of its function.
    pub fn lines(&self) -> Vec<(String, String)> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets the schedule's event come.
    ///
    /// # Errors
    /// When the function fails.
    pub async fn sweep(&self) -> Result<Value, InvokeError> {
        self.gateway.invoke("sweep", &json!({})).await
    }

    /// The gateway, to kill processes and to count them.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }
}

impl Drop for Functions {
    /// A test that failed shows what the functions said last.
    #[expect(clippy::print_stderr, reason = "it is shown beside the failure")]
    fn drop(&mut self) {
        const LINES_SHOWN: usize = 40;
        if std::thread::panicking() {
            let lines = self.lines();
            for (function, line) in lines.iter().skip(lines.len().saturating_sub(LINES_SHOWN)) {
                eprintln!("{function}: {line}");
            }
        }
    }
}
