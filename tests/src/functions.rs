//! This tree's functions behind a local gateway, on the stand-in for AWS.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use serde_json::{Value, json};
use statewright_gateway::{Between, Function, GatewayKind, InvokeError, Options};
use statewright_shared::adapters::aws::Names;
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::domain::names::{Login, OrgName, TokenName};
use statewright_shared::services::identity::{bootstrap, tokens};
use statewright_shared::settings::{Retention, Settings};

use crate::aws::{self, Gateway, StandIn};
use crate::names::{ORG, USER};
use crate::policies::policies;
use crate::tools;

/// Functions, their gateway and a store of their own. Dropping it ends the processes, and then compares their
/// calls to AWS with their policies.
pub struct Functions {
    /// The gateway's URL, such as `http://127.0.0.1:41234`.
    pub url: String,
    /// An access token of [`USER`], a member of [`ORG`].
    pub token: String,
    /// The functions' context: for use cases without a route, and to inspect the store.
    pub context: Arc<Context>,
    behind: Behind,
}

/// Functions without a user, for tests that create their own.
pub struct Behind {
    /// The names of the store's parts.
    pub names: Names,
    gateway: statewright_gateway::Gateway,
    aws: HashMap<&'static str, Gateway>,
    lines: Arc<Mutex<Vec<(String, String)>>>,
}

/// How functions of a test are run.
pub struct Setting {
    pub kind: GatewayKind,
    /// The gateway's stage, if it has a name.
    pub stage: Option<String>,
    /// What happens to a process between two events.
    pub between: Between,
    /// The store; a fresh one if none is named.
    pub names: Option<Names>,
    /// The operator's settings.
    pub settings: Settings,
    /// More variables of the functions' environment.
    pub environment: Vec<(&'static str, String)>,
    /// Each function's environment in a deployment, by the function's name: replaces the settings.
    pub deployed: BTreeMap<String, BTreeMap<String, String>>,
    /// The folder of the programs; debug builds of this tree if none is named.
    pub programs: Option<PathBuf>,
}

impl Default for Setting {
    /// Behind an HTTP API, on a store of their own; processes wait between events.
    fn default() -> Self {
        Self {
            kind: GatewayKind::HttpApi,
            stage: None,
            between: Between::Waits,
            names: None,
            settings: Settings::DEFAULT,
            environment: Vec::new(),
            deployed: BTreeMap::new(),
            programs: None,
        }
    }
}

/// The most bytes that a request adds to the log, as they are billed: its line and further lines, except audit
/// records. A test checks it, and the bench's bill uses it.
pub const LOG_BYTES_OF_A_REQUEST: usize = 260;

/// The same for an audit record, which each request of an audited route adds.
pub const LOG_BYTES_OF_A_RECORD: usize = 400;

/// The bytes that CloudWatch adds to a line. Source: CloudWatch Logs API reference, `PutLogEvents`.
const LINE_OVERHEAD_BYTES: usize = 26;

/// The billed bytes of these log lines.
pub fn log_bytes<L: AsRef<str>>(lines: impl IntoIterator<Item = L>) -> usize {
    lines.into_iter().map(|line| line.as_ref().len() + LINE_OVERHEAD_BYTES).sum()
}

/// Whether a function wrote this line about a request.
pub fn is_of_request(line: &str) -> bool {
    line.contains(r#""route":"#)
}

/// Whether a function wrote this line as an audit record.
pub fn is_of_audit(line: &str) -> bool {
    line.starts_with(r#"{"audit":"#)
}

/// Concurrent processes of a function in a test, whose clients wait for each other.
const PROCESSES_MAX: usize = 6;

impl Functions {
    /// Functions as most tests need them.
    pub async fn start() -> Self {
        Self::start_as(Setting::default()).await
    }

    /// Functions in another setting. Their store gets its first user, as with an operator's command.
    pub async fn start_as(setting: Setting) -> Self {
        let behind = Box::pin(Behind::start(setting)).await;
        let url = &StandIn::of_this_process().url;
        let store = aws::store(url, &behind.names, Arc::new(SystemClock), Arc::new(SystemIds)).await;
        let (ledger, blobs, keys) = (Arc::new(store.ledger), Arc::new(store.blobs), Arc::new(store.keys));
        let (clock, ids) = (Arc::new(SystemClock), Arc::new(SystemIds));
        let context = Context::new(ledger, blobs, keys, clock, ids, "operator".to_owned());
        let (login, org) = (Login::parse(USER).expect("valid"), OrgName::parse(ORG).expect("valid"));
        let first = Box::pin(bootstrap::bootstrap(&context, &login, &org)).await;
        let token = match first.expect("the store takes a user") {
            Some(first) => first.token,
            None => {
                let name = TokenName::parse("functions").expect("valid");
                let made = Box::pin(tokens::create_token(&context, &login, &name, None)).await;
                made.expect("the token is new")
            }
        };
        Self { url: behind.gateway.url.clone(), token, context: Arc::new(context), behind }
    }

    /// The lines that functions wrote so far, each with the name of its function.
    pub fn lines(&self) -> Vec<(String, String)> {
        self.behind.lines()
    }

    /// The names of the store's parts.
    pub fn names(&self) -> &Names {
        &self.behind.names
    }

    /// Sends the schedule's event.
    ///
    /// # Errors
    /// When the function fails.
    pub async fn sweep(&self) -> Result<Value, InvokeError> {
        self.behind.gateway.invoke("sweep", &json!({})).await
    }

    /// The gateway of the functions, to kill processes and to count them.
    pub fn gateway(&self) -> &statewright_gateway::Gateway {
        &self.behind.gateway
    }

    /// The proxy between a function and AWS.
    pub fn aws(&self, function: &str) -> &Gateway {
        &self.behind.aws[function]
    }
}

impl Behind {
    /// Starts the gateway; the first events start processes.
    pub async fn start(setting: Setting) -> Self {
        let stand_in = StandIn::of_this_process();
        let names = match setting.names {
            Some(names) => names,
            None => stand_in.fresh_store().await.1,
        };
        let mut aws = HashMap::new();
        for name in tools::function_names() {
            aws.insert(name, Gateway::before(stand_in).await);
        }
        let folder = setting.programs.unwrap_or_else(|| tools::functions().to_owned());
        let function = |name: &'static str| {
            let mut environment: Vec<(String, String)> = stand_in
                .environment(&names)
                .into_iter()
                .filter(|(name, _)| *name != "AWS_ENDPOINT_URL")
                .chain(of_settings(&setting.settings))
                .chain(setting.environment.clone())
                // Long enough for a busy machine.
                .chain([("STATEWRIGHT_ATTEMPT_MS", "60000".to_owned())])
                // Providers of tests are on this machine.
                .chain([("STATEWRIGHT_ISSUER_NETWORKS", "127.0.0.1,::1".to_owned())])
                .chain([("STATEWRIGHT_SERVER_ADMINS", USER.to_owned())])
                .map(|(name, value)| (name.to_owned(), value))
                .chain(setting.deployed.get(name).cloned().unwrap_or_default())
                .collect();
            environment.push(("AWS_ENDPOINT_URL".to_owned(), aws[name].url.clone()));
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
            kind: setting.kind,
            stage: setting.stage,
            between: setting.between,
            processes_max: PROCESSES_MAX,
            log: Arc::new(move |function: &str, line: &str| {
                let line = (function.to_owned(), line.to_owned());
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }),
        };
        let address = "127.0.0.1:0".parse().expect("an address");
        let gateway = statewright_gateway::Gateway::start(address, options).await;
        Self { names, gateway: gateway.expect("a loopback port is free"), aws, lines }
    }

    /// The gateway's URL.
    pub fn url(&self) -> &str {
        &self.gateway.url
    }

    /// The gateway, without the socket.
    pub fn router(&self) -> Router {
        self.gateway.router()
    }

    fn lines(&self) -> Vec<(String, String)> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The operator's settings as environment variables.
fn of_settings(settings: &Settings) -> Vec<(&'static str, String)> {
    // The limits of states are those of the gateway.
    let Settings { delta_cutoff_bytes, retention, states: _ } = settings;
    let Retention { versions, logs, events, deleted, state_versions, rejected_states, audit } = retention;
    let minutes = |duration: &Duration| format!("{}m", duration.as_secs() / 60);
    vec![
        ("STATEWRIGHT_OFFER_DELTA_CHECKPOINTS", delta_cutoff_bytes.map_or(String::new(), |n| n.to_string())),
        ("STATEWRIGHT_KEEP_VERSIONS", versions.map_or(String::new(), |number| number.to_string())),
        ("STATEWRIGHT_KEEP_LOGS", minutes(logs)),
        ("STATEWRIGHT_KEEP_EVENTS", minutes(events)),
        ("STATEWRIGHT_KEEP_REMOVED_STACKS", minutes(deleted)),
        (
            "STATEWRIGHT_KEEP_STATE_VERSIONS",
            state_versions.map_or(String::new(), |number| number.to_string()),
        ),
        ("STATEWRIGHT_KEEP_REJECTED_STATES", minutes(rejected_states)),
        ("STATEWRIGHT_KEEP_AUDIT", minutes(audit)),
    ]
}

impl Drop for Behind {
    /// A failed test shows the last lines of the functions. In any other, no function may have made a call that
    /// its policy forbids.
    #[expect(clippy::print_stderr, reason = "it is shown with the failure")]
    fn drop(&mut self) {
        const LINES_SHOWN: usize = 40;
        if std::thread::panicking() {
            let lines = self.lines();
            for (function, line) in lines.iter().skip(lines.len().saturating_sub(LINES_SHOWN)) {
                eprintln!("{function}: {line}");
            }
            return;
        }
        for (name, allowed) in policies() {
            for needed in self.aws[name].rights() {
                assert!(
                    allowed.iter().any(|right| right.covers(&needed)),
                    "{name} has no permission for {} on {}",
                    needed.action,
                    needed.on
                );
            }
        }
    }
}
