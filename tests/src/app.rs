//! Statewright in this process, with a clock that the test controls, and an HTTP client for it.

mod call;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use statewright_gateway::Between;
use statewright_shared::adapters::aws::Names;
use statewright_shared::adapters::embedded::DataFolder;
use statewright_shared::adapters::{
    Faults, Faulty, Https, ManualClock, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds, SteppingClock,
    SystemClock, SystemIds,
};
use statewright_shared::api::audit::{self, AuditLog};
use statewright_shared::api::{self, App, Limits, routes::Everything};
use statewright_shared::context::Context;
use statewright_shared::domain::names::{Login, OrgName, TokenName};
use statewright_shared::domain::oidc::addresses::Allowed;
use statewright_shared::domain::role::Role;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::{Blobs, Clock, Ids, Keys, Ledger, Timestamp, Web};
use statewright_shared::services::identity::{bootstrap, orgs, tokens, users};
use statewright_shared::services::updates;
use statewright_shared::settings::Settings;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use crate::aws::{self, StandIn};
use crate::functions::{Behind, Setting};

pub use self::call::{Answer, Call};
pub use crate::names::{ORG, USER};

/// When the clock of a test starts: 2026-01-01T00:00:00Z.
pub const START: Timestamp = Timestamp(1_767_225_600_000_000_000);

/// The backends for tests of real clients. The clients see an address and a token, and nothing behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// One process on a folder.
    Embedded,
    /// Two processes that share only a table, a bucket and a key on AWS. Requests go to each in turn, so that
    /// two consecutive requests never reach the same process.
    Aws,
    /// The same with LocalStack for S3 and KMS.
    #[cfg(feature = "extended")]
    LocalStack,
    /// Functions behind an HTTP API, on such a store. They have the machine's clock; a test that needs another
    /// one runs as on `Aws`.
    Functions,
    /// The same, with a cold function for each request.
    ColdFunctions,
}

/// The store of a server.
enum Data {
    /// Another owner has it.
    Elsewhere,
    Folder(TempDir),
    Aws(&'static StandIn, Names),
    Functions(Box<Behind>),
}

/// A request that was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequest {
    pub line: String,
    /// The bytes of the request's body and of the answer's, as they were sent.
    pub bytes: u64,
}

/// The requests that a server has seen.
type Requests = Arc<Mutex<Vec<SeenRequest>>>;

/// A server of a test. Dropping it deletes its data and closes its socket.
pub struct TestApp {
    /// Its URL, such as `http://127.0.0.1:41234`.
    pub url: String,
    /// An access token of [`USER`], a member of [`ORG`].
    pub token: String,
    /// The clock of a server on a manual clock.
    pub clock: Option<ManualClock>,
    /// The context of the server, or of its first process: for use cases without a route, and to inspect the
    /// store.
    pub context: Arc<Context>,
    http: Client,
    server: JoinHandle<()>,
    requests: Requests,
    api: App,
    audit: Arc<Kept>,
    data: Data,
}

/// An audit log in memory.
#[derive(Default)]
struct Kept(Mutex<Vec<Value>>);

impl AuditLog for Kept {
    fn keep(&self, record: &audit::Record) {
        let record = serde_json::to_value(record).expect("a record is JSON");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl TestApp {
    /// A server on this backend with the system's clock, as users have: for tests of real clients.
    pub async fn on(backend: Backend) -> Self {
        Self::on_with(backend, Settings::default()).await
    }

    /// As [`TestApp::on`], with an operator's settings.
    pub async fn on_with(backend: Backend, settings: Settings) -> Self {
        Self::on_clock(backend, settings, Arc::new(SystemClock), None).await
    }

    /// A server on this backend with a clock that the test controls. Beware: the CLI has its own clock.
    pub async fn on_manual_clock(backend: Backend) -> Self {
        let clock = ManualClock::new(START);
        Self::on_clock(backend, Settings::default(), Arc::new(clock.clone()), Some(clock)).await
    }

    async fn on_clock(
        backend: Backend,
        settings: Settings,
        port: Arc<dyn Clock>,
        clock: Option<ManualClock>,
    ) -> Self {
        match backend {
            Backend::Embedded => {
                let folder = tempfile::tempdir().expect("a temporary folder can be made");
                let opened = DataFolder::open_server(folder.path(), Arc::new(SystemIds)).await;
                let data = opened.expect("a fresh folder opens");
                let ledger = Arc::new(data.ledger.clone());
                let (blobs, keys) = (Arc::new(data.blobs.clone()), Arc::new(data.keys.clone()));
                let ids = Arc::new(SystemIds);
                let mut context = Context::new(ledger, blobs, keys, port, ids, "server".to_owned());
                context.settings = settings;
                Self::start(vec![context], clock, Data::Folder(folder)).await
            }
            Backend::Functions | Backend::ColdFunctions if clock.is_none() => {
                let cold = backend == Backend::ColdFunctions;
                let between = if cold { Between::Killed } else { Between::Waits };
                Self::on_functions(Setting { between, settings, ..Setting::default() }).await
            }
            Backend::Aws | Backend::Functions | Backend::ColdFunctions => {
                Self::fleet_of_two(StandIn::of_this_process(), settings, port, clock).await
            }
            #[cfg(feature = "extended")]
            Backend::LocalStack => Self::fleet_of_two(StandIn::localstack(), settings, port, clock).await,
        }
    }

    async fn fleet_of_two(
        stand_in: &'static StandIn,
        settings: Settings,
        port: Arc<dyn Clock>,
        clock: Option<ManualClock>,
    ) -> Self {
        let (_, names) = stand_in.fresh_store().await;
        let contexts = fleet(&stand_in.url, &names, 2, settings, port).await;
        Self::start(contexts, clock, Data::Aws(stand_in, names)).await
    }

    /// Functions in a setting of the test.
    pub async fn on_functions(setting: Setting) -> Self {
        let settings = setting.settings;
        let functions = Behind::start(setting).await;
        let url = &StandIn::of_this_process().url;
        let contexts = fleet(url, &functions.names, 1, settings, Arc::new(SystemClock)).await;
        Self::start(contexts, None, Data::Functions(Box::new(functions))).await
    }

    /// This number of processes on the store on AWS behind this address, with the system's clock.
    pub async fn aws_fleet(url: &str, names: &Names, processes: usize) -> Self {
        let contexts = fleet(url, names, processes, Settings::default(), Arc::new(SystemClock)).await;
        Self::start(contexts, None, Data::Elsewhere).await
    }

    /// One process on the store on AWS behind this address, with a manual clock that starts in the past.
    pub async fn aws_long_ago(url: &str, names: &Names) -> Self {
        Self::aws_at(url, names, START).await
    }

    /// The same with a clock that starts at this instant.
    pub async fn aws_at(url: &str, names: &Names, at: Timestamp) -> Self {
        let clock = ManualClock::new(at);
        let contexts = fleet(url, names, 1, Settings::default(), Arc::new(clock.clone())).await;
        Self::start(contexts, Some(clock), Data::Elsewhere).await
    }

    /// Another process on a store on AWS, with a token that the store knows and a clock that the test controls.
    pub async fn of_store(url: &str, names: &Names, token: &str) -> Self {
        let clock = ManualClock::new(SystemClock.now());
        let contexts = fleet(url, names, 1, Settings::default(), Arc::new(clock.clone())).await;
        let contexts = contexts.into_iter().map(Arc::new).collect();
        Self::serve(contexts, Limits::default(), token.to_owned(), Some(clock), Data::Elsewhere).await
    }

    /// A server on the data of another server in this folder, with that server's token.
    pub async fn of_folder(folder: TempDir, token: &str) -> Self {
        let opened = DataFolder::open_server(folder.path(), Arc::new(SystemIds)).await;
        let data = opened.expect("the folder opens");
        let (ledger, blobs) = (Arc::new(data.ledger.clone()), Arc::new(data.blobs.clone()));
        let (keys, ids) = (Arc::new(data.keys.clone()), Arc::new(SystemIds));
        let context = Context::new(ledger, blobs, keys, Arc::new(SystemClock), ids, "server".to_owned());
        let (contexts, limits) = (vec![Arc::new(context)], Limits::default());
        Self::serve(contexts, limits, token.to_owned(), None, Data::Folder(folder)).await
    }

    /// [`TestApp::on`] the embedded store.
    pub async fn embedded() -> Self {
        Self::on(Backend::Embedded).await
    }

    /// [`TestApp::embedded`] with answers of other servers.
    pub async fn embedded_asking(web: Arc<dyn Web>) -> Self {
        Self::embedded_that_asks(web, None, None).await
    }

    /// [`TestApp::embedded_on_manual_clock`] with answers of other servers.
    pub async fn embedded_on_manual_clock_asking(web: Arc<dyn Web>) -> Self {
        Self::embedded_that_asks(web, None, Some(ManualClock::new(START))).await
    }

    /// [`TestApp::embedded_asking`] for a server that knows its own address.
    pub async fn embedded_of_address(web: Arc<dyn Web>, address: &str) -> Self {
        let address = ServerUrl::parse(address).expect("valid");
        Self::embedded_that_asks(web, Some(address), None).await
    }

    /// The same with a clock that the test controls.
    pub async fn embedded_of_address_on_manual_clock(web: Arc<dyn Web>, address: &str) -> Self {
        let address = ServerUrl::parse(address).expect("valid");
        Self::embedded_that_asks(web, Some(address), Some(ManualClock::new(START))).await
    }

    async fn embedded_that_asks(
        web: Arc<dyn Web>,
        address: Option<ServerUrl>,
        clock: Option<ManualClock>,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let opened = DataFolder::open_server(folder.path(), Arc::new(SystemIds)).await;
        let data = opened.expect("a fresh folder opens");
        let (ledger, blobs) = (Arc::new(data.ledger.clone()), Arc::new(data.blobs.clone()));
        let (keys, ids) = (Arc::new(data.keys.clone()), Arc::new(SystemIds));
        let port: Arc<dyn Clock> = match &clock {
            Some(clock) => Arc::new(clock.clone()),
            None => Arc::new(SystemClock),
        };
        let mut context = Context::new(ledger, blobs, keys, port, ids, "server".to_owned());
        (context.web, context.address) = (Some(web), address);
        Self::start(vec![context], clock, Data::Folder(folder)).await
    }

    /// Two processes on AWS, as [`Backend::Aws`], with answers of other servers. They know their address, and have a
    /// clock that the test controls.
    pub async fn aws_of_address(web: Arc<dyn Web>, address: &str) -> Self {
        let address = ServerUrl::parse(address).expect("valid");
        let stand_in = StandIn::of_this_process();
        let (_, names) = stand_in.fresh_store().await;
        let clock = ManualClock::new(START);
        let port = Arc::new(clock.clone());
        let mut contexts = fleet(&stand_in.url, &names, 2, Settings::default(), port).await;
        for context in &mut contexts {
            (context.web, context.address) = (Some(Arc::clone(&web)), Some(address.clone()));
        }
        Self::start(contexts, Some(clock), Data::Aws(stand_in, names)).await
    }

    /// [`TestApp::on_manual_clock`] and the embedded store.
    pub async fn embedded_on_manual_clock() -> Self {
        Self::on_manual_clock(Backend::Embedded).await
    }

    /// A server in memory, with a clock that the test controls and seeded randomness.
    pub async fn memory() -> Self {
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        Self::memory_with(
            Arc::new(MemoryLedger::new()),
            Arc::new(MemoryBlobs::new()),
            Arc::new(MemoryKeys::new(Arc::clone(&ids))),
            ids,
        )
        .await
    }

    /// As [`TestApp::memory`], with faults of the ledger.
    pub async fn memory_with_faults(faults: &Faults) -> Self {
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        Self::memory_with(
            Arc::new(Faulty::new(MemoryLedger::new(), faults.clone())),
            Arc::new(MemoryBlobs::new()),
            Arc::new(MemoryKeys::new(Arc::clone(&ids))),
            ids,
        )
        .await
    }

    /// As [`TestApp::memory`], with answers of other servers.
    pub async fn memory_asking(web: Arc<dyn Web>) -> Self {
        Self::memory_that_asks(web, None).await
    }

    /// The same for a server that knows its own address.
    pub async fn memory_of_address(web: Arc<dyn Web>, address: &str) -> Self {
        Self::memory_that_asks(web, Some(ServerUrl::parse(address).expect("valid"))).await
    }

    async fn memory_that_asks(web: Arc<dyn Web>, address: Option<ServerUrl>) -> Self {
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
        let clock = ManualClock::new(START);
        let port: Arc<dyn Clock> = Arc::new(clock.clone());
        let (ledger, blobs) = (Arc::new(MemoryLedger::new()), Arc::new(MemoryBlobs::new()));
        let mut context = Context::new(ledger, blobs, keys, port, ids, "server".to_owned());
        (context.web, context.address) = (Some(web), address);
        Self::start(vec![context], Some(clock), Data::Elsewhere).await
    }

    /// A server on these ports, with a clock that the test controls.
    pub async fn memory_with(
        ledger: Arc<dyn Ledger>,
        blobs: Arc<dyn Blobs>,
        keys: Arc<dyn Keys>,
        ids: Arc<dyn Ids>,
    ) -> Self {
        Self::memory_with_settings(ledger, blobs, keys, ids, Settings::default()).await
    }

    /// As [`TestApp::memory_with`], with an operator's settings.
    pub async fn memory_with_settings(
        ledger: Arc<dyn Ledger>,
        blobs: Arc<dyn Blobs>,
        keys: Arc<dyn Keys>,
        ids: Arc<dyn Ids>,
        settings: Settings,
    ) -> Self {
        let clock = ManualClock::new(START);
        let port: Arc<dyn Clock> = Arc::new(clock.clone());
        let mut context = Context::new(ledger, blobs, keys, port, ids, "server".to_owned());
        context.settings = settings;
        Self::start(vec![context], Some(clock), Data::Elsewhere).await
    }

    /// A server on the store on AWS behind this address, with a clock on which sleeping takes no time.
    pub async fn aws(url: &str, names: &Names) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SteppingClock::new(START));
        let ids: Arc<dyn Ids> = Arc::new(SystemIds);
        let store = aws::store(url, names, Arc::clone(&clock), Arc::clone(&ids)).await;
        let (ledger, blobs, keys) = (Arc::new(store.ledger), Arc::new(store.blobs), Arc::new(store.keys));
        let context = Context::new(ledger, blobs, keys, clock, ids, "server".to_owned());
        Self::start(vec![context], None, Data::Elsewhere).await
    }

    /// As [`TestApp::memory`], with other limits on concurrent requests.
    pub async fn memory_limited(limits: Limits) -> Self {
        let app = Self::memory().await;
        let (context, token, clock) = (Arc::clone(&app.context), app.token.clone(), app.clock.clone());
        Self::serve(vec![context], limits, token, clock, Data::Elsewhere).await
    }

    async fn start(contexts: Vec<Context>, clock: Option<ManualClock>, data: Data) -> Self {
        // Providers of tests are on this machine.
        let here = Allowed::parse("127.0.0.1").expect("valid");
        let with_web = |mut context: Context| {
            context.web.get_or_insert_with(|| Arc::new(Https::new(here.clone())));
            context.server_admins = [Login::parse(USER).expect("valid")].into();
            Arc::new(context)
        };
        let contexts: Vec<_> = contexts.into_iter().map(with_web).collect();
        let context = Arc::clone(contexts.first().expect("there is a process"));
        updates::tokens::prepare(&context).await.expect("a fresh store takes a signing key");
        let (login, org) = (Login::parse(USER).expect("valid"), OrgName::parse(ORG).expect("valid"));
        let first = bootstrap::bootstrap(&context, &login, &org).await.expect("a fresh store takes a user");
        let token = first.expect("there was no user").token;
        Self::serve(contexts, Limits::default(), token, clock, data).await
    }

    async fn serve(
        contexts: Vec<Arc<Context>>,
        limits: Limits,
        token: String,
        clock: Option<ManualClock>,
        data: Data,
    ) -> Self {
        let requests = Requests::default();
        let audit = Arc::new(Kept::default());
        let log: Arc<dyn AuditLog> = Arc::<Kept>::clone(&audit);
        let processes: Vec<App> = contexts
            .iter()
            .map(|context| App::new(Arc::clone(context), limits, Some(Arc::clone(&log))))
            .collect();
        let routers = match &data {
            Data::Functions(functions) => vec![functions.router()],
            _ => processes.iter().map(|api| api::router::<Everything>(api.clone())).collect(),
        };
        let noted = middleware::from_fn_with_state(Arc::clone(&requests), note);
        let (address, server) = serve(in_turn(routers).layer(noted)).await;
        let first = processes.into_iter().zip(contexts).next();
        let (api, context) = first.expect("there is a process");
        Self {
            url: format!("http://{address}"),
            token,
            clock,
            context,
            http: Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .expect("a plain client can be made"),
            server,
            requests,
            api,
            audit,
            data,
        }
    }

    /// The folder of a server on the embedded store.
    pub fn folder(&self) -> &Path {
        match &self.data {
            Data::Folder(folder) => folder.path(),
            Data::Aws(..) | Data::Functions(_) | Data::Elsewhere => panic!("the server has no folder"),
        }
    }

    /// Everything in the server's store, in its stored form: each file, item and blob, by its name.
    pub async fn at_rest(&self) -> Vec<(String, Vec<u8>)> {
        match &self.data {
            Data::Folder(folder) => files(folder.path()),
            Data::Aws(stand_in, names) => stand_in.at_rest(names).await,
            Data::Functions(functions) => StandIn::of_this_process().at_rest(&functions.names).await,
            Data::Elsewhere => panic!("the server keeps nothing that could be looked at"),
        }
    }

    /// Bytes that are reserved for requests now.
    pub fn reserved(&self) -> usize {
        self.api.account().used()
    }

    /// The peak since the last call.
    pub fn most_reserved(&self) -> usize {
        self.api.account().take_most()
    }

    /// The requests since the last call, in order: `POST /api/stacks/acme/p/dev/update`.
    pub fn take_requests(&self) -> Vec<String> {
        self.take_seen().into_iter().map(|request| request.line).collect()
    }

    /// The same with their bytes.
    pub fn take_seen(&self) -> Vec<SeenRequest> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All routes, without a socket.
    pub fn router(&self) -> Router {
        api::router::<Everything>(self.api.clone())
    }

    /// The audit records since the last call, as they are written.
    pub fn take_audit(&self) -> Vec<Value> {
        std::mem::take(&mut *self.audit.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sweeps and counts it, as a server does.
    pub async fn sweep(&self) {
        let swept = statewright_shared::services::maintenance::sweep::sweep(&self.api)
            .await
            .expect("the store works");
        self.api.metrics().swept(&swept);
    }

    /// The metrics as Prometheus reads them.
    pub async fn metrics(&self) -> String {
        let (address, server) = serve(api::metrics_router(self.api.clone())).await;
        let answer =
            self.http.get(format!("http://{address}/metrics")).send().await.expect("metrics are served");
        assert_eq!(answer.status(), StatusCode::OK);
        let text = answer.text().await.expect("the answer is whole");
        server.abort();
        text
    }

    /// The address of the console with the API of this server. It is served until the runtime ends. One of the functions
    /// serves it at their own address.
    pub async fn console(&self) -> String {
        if matches!(self.data, Data::Functions(_)) {
            return self.url.clone();
        }
        let noted = middleware::from_fn_with_state(Arc::clone(&self.requests), note);
        let router = statewright_console::around(self.router(), api::has_path_like).layer(noted);
        let (address, _) = serve(router).await;
        format!("http://{address}")
    }

    /// Another process on the same store, with this name as a publisher and with empty caches.
    pub async fn another_process(&self, publisher: &str) -> Self {
        let Context { ledger, blobs, keys, clock, ids, .. } = &*self.context;
        let (ledger, blobs, keys) = (Arc::clone(ledger), Arc::clone(blobs), Arc::clone(keys));
        let mut context =
            Context::new(ledger, blobs, keys, Arc::clone(clock), Arc::clone(ids), publisher.to_owned());
        context.web.clone_from(&self.context.web);
        context.address.clone_from(&self.context.address);
        context.server_admins.clone_from(&self.context.server_admins);
        let (contexts, clock) = (vec![Arc::new(context)], self.clock.clone());
        Self::serve(contexts, Limits::default(), self.token.clone(), clock, Data::Elsewhere).await
    }

    /// Another server of the same blobs and keys on this ledger, such as a restored one, with an operator's
    /// settings.
    pub async fn over(&self, ledger: Arc<dyn Ledger>, settings: Settings) -> Self {
        let Context { blobs, keys, clock, ids, .. } = &*self.context;
        let (blobs, keys) = (Arc::clone(blobs), Arc::clone(keys));
        let (clock, ids) = (Arc::clone(clock), Arc::clone(ids));
        let mut context = Context::new(ledger, blobs, keys, clock, ids, "other".to_owned());
        context.settings = settings;
        let (contexts, clock) = (vec![Arc::new(context)], self.clock.clone());
        Self::serve(contexts, Limits::default(), self.token.clone(), clock, Data::Elsewhere).await
    }

    /// A process on the same store that serves no requests, with an operator's settings: for use cases without
    /// a route.
    pub fn process_with(&self, settings: Settings) -> Context {
        let Context { ledger, blobs, keys, clock, ids, .. } = &*self.context;
        let (ledger, blobs, keys) = (Arc::clone(ledger), Arc::clone(blobs), Arc::clone(keys));
        let (clock, ids) = (Arc::clone(clock), Arc::clone(ids));
        let mut context = Context::new(ledger, blobs, keys, clock, ids, "other".to_owned());
        context.settings = settings;
        context.web.clone_from(&self.context.web);
        context
    }

    /// Moves a manual clock.
    pub fn advance(&self, duration: Duration) {
        self.clock.as_ref().expect("the server runs on a manual clock").advance(duration);
    }

    /// Another user, the admin of a new organization, with a token.
    pub async fn other_user(&self, login: &str, org: &str) -> String {
        let ctx = &self.context;
        let (login, org) = (Login::parse(login).expect("valid"), OrgName::parse(org).expect("valid"));
        orgs::create(ctx, &org, &[]).await.expect("the organization is new");
        users::create(ctx, &login, &[org], Role::Admin).await.expect("the user is new");
        let name = TokenName::parse("first-start").expect("valid");
        tokens::create_token(ctx, &login, &name, None).await.expect("the token is new")
    }

    /// Another member of [`ORG`], with a token of this name.
    pub async fn member(&self, login: &str, token: &str) -> String {
        self.member_of(&[ORG], login, token).await
    }

    /// A member of these organizations, with a token of this name.
    pub async fn member_of(&self, names: &[&str], login: &str, token: &str) -> String {
        let ctx = &self.context;
        let login = Login::parse(login).expect("valid");
        let orgs: Vec<OrgName> = names.iter().map(|org| OrgName::parse(org).expect("valid")).collect();
        for org in &orgs {
            // It may exist already.
            let _ = orgs::create(ctx, org, &[]).await;
        }
        users::create(ctx, &login, &orgs, Role::Member).await.expect("the member is new");
        let name = TokenName::parse(token).expect("valid");
        tokens::create_token(ctx, &login, &name, None).await.expect("the token is new")
    }

    /// A member of [`ORG`] with this role, with a token of this name.
    pub async fn member_with_role(&self, role: Role, login: &str, token: &str) -> String {
        let (login, org) = (Login::parse(login).expect("valid"), OrgName::parse(ORG).expect("valid"));
        users::create(&self.context, &login, &[org], role).await.expect("the member is new");
        let name = TokenName::parse(token).expect("valid");
        tokens::create_token(&self.context, &login, &name, None).await.expect("the token is new")
    }

    /// A token of [`USER`] with this role, which is also its name.
    pub async fn scoped_token(&self, may: Role) -> String {
        let (login, name) =
            (Login::parse(USER).expect("valid"), TokenName::parse(may.as_str()).expect("valid"));
        let made = tokens::create_scoped_token(&self.context, &login, &name, Some(may), None).await;
        made.expect("the token is new")
    }

    /// A request to this server, with [`TestApp::token`].
    pub fn request(&self, method: Method, path: &str) -> Call<'_> {
        Call {
            url: &self.url,
            request: self.http.request(method, format!("{}{path}", self.url)),
            authorization: Some(format!("token {}", self.token)),
        }
    }

    pub fn get(&self, path: &str) -> Call<'_> {
        self.request(Method::GET, path)
    }

    pub fn post(&self, path: &str, body: &Value) -> Call<'_> {
        self.request(Method::POST, path).json(body)
    }

    pub fn patch(&self, path: &str, body: &Value) -> Call<'_> {
        self.request(Method::PATCH, path).json(body)
    }
}

/// Processes that share only a store.
async fn fleet(
    url: &str,
    names: &Names,
    processes: usize,
    settings: Settings,
    port: Arc<dyn Clock>,
) -> Vec<Context> {
    let mut contexts = Vec::new();
    for number in 1..=processes {
        // No test moves the clock for an adapter that waits a moment.
        let store = aws::store(url, names, Arc::new(SystemClock), Arc::new(SystemIds)).await;
        let (ledger, blobs, keys) = (Arc::new(store.ledger), Arc::new(store.blobs), Arc::new(store.keys));
        let (port, ids) = (Arc::clone(&port), Arc::new(SystemIds));
        let mut context = Context::new(ledger, blobs, keys, port, ids, format!("process {number}"));
        context.settings = settings;
        contexts.push(context);
    }
    contexts
}

/// Sends each request to the next of these, like a load balancer.
fn in_turn(processes: Vec<Router>) -> Router {
    let turn = Arc::new(AtomicUsize::new(0));
    Router::new().fallback(move |request: Request| {
        let turn = turn.fetch_add(1, Ordering::Relaxed) % processes.len();
        let process = processes.get(turn).cloned().unwrap_or_default();
        process.oneshot(request)
    })
}

/// The files of a folder and its subfolders.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = std::fs::read(&path).expect("the file can be read");
            found.push((path.display().to_string(), bytes));
        }
    }
    found
}

/// Notes a request, and the bytes of its answer.
async fn note(State(seen): State<Requests>, request: Request, next: Next) -> axum::response::Response {
    let line = format!("{} {}", request.method(), request.uri().path());
    let bytes = request.body().size_hint().lower();
    let place = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(SeenRequest { line, bytes });
        seen.len() - 1
    };
    let answer = next.run(request).await;
    let bytes = answer.body().size_hint().lower();
    // Unless they were removed meanwhile.
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sent) = seen.get_mut(place) {
        sent.bytes += bytes;
    }
    drop(seen);
    answer
}

/// Listens on a free loopback port.
async fn serve(router: Router) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
    let address = listener.local_addr().expect("a bound socket has an address");
    let server = tokio::spawn(async move {
        axum::serve(listener, router).await.expect("serving does not end by itself");
    });
    (address, server)
}
