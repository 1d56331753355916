//! One user with one stack, their requests, and the answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use statewright_shared::context::Context;
use statewright_shared::domain::claims::Claims;
use statewright_shared::domain::names::{Login, OrgName, StackAddress, TokenName};
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::domain::update::{LEASE, Outcome, Status, Update, UpdateKind};
use statewright_shared::layout::{Record as _, StackEntry, StackHead, Token, TokenEntry, UpdateDetail, User};
use statewright_shared::services::caller::Caller;
use statewright_shared::services::error::{StackError, UpdateError};
use statewright_shared::services::identity::{bootstrap, orgs, tokens, users};
use statewright_shared::services::keys::data_keys;
use statewright_shared::services::stacks::NewStack;
use statewright_shared::services::stacks::rehome;
use statewright_shared::services::stacks::rehome::Plan;
use statewright_shared::services::stacks::rename;
use statewright_shared::services::stacks::rename::NewAddress;
use statewright_shared::services::stacks::versions;
use statewright_shared::services::store::compression::{gunzip, gzip};
use statewright_shared::services::store::stack_lookup;
use statewright_shared::services::updates::checkpoints::Kind;
use statewright_shared::services::updates::log;
use statewright_shared::services::updates::{self, NewUpdate};
use statewright_shared::services::{Error, stacks};

use super::world::World;

/// One request of a client, or one command of an operator. The number in a step that saves is that of the
/// resource that it adds to the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    CreateStack,
    CreateAndStart,
    /// An update that saves entries.
    Begin,
    /// One that saves whole deployments.
    BeginWhole,
    Append(u64),
    Checkpoint(u64),
    /// A whole text under this number.
    Save(u64),
    /// The delta from the text saved last, under this number.
    Delta(u64),
    Renew,
    Complete,
    Cancel,
    Import(u64),
    Remove,
    /// Undeletes the stack.
    Undelete,
    /// To another name and back.
    Rename,
    Encrypt,
    /// Reads the stack, which ends an update whose lease is over.
    Meet,
    /// The lease ends, and so does the time that other processes leave its publisher.
    Lapse,
    CreateToken,
    RevokeToken,
    Bootstrap,
    /// Restores the first version.
    Restore,
    /// The states name another address of the server.
    Rehome,
    /// Another user, of the same organization.
    CreateUser,
    /// That user's token.
    CreateUserToken,
    /// Another role for that user.
    SetRole,
    RemoveUser,
}

/// The address that whole deployments name.
const OLD_URL: &str = "http://old.example";
const NEW_URL: &str = "http://new.example";

fn colleague() -> Login {
    Login::parse("bob").unwrap()
}

pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) caller: Caller,
    pub(crate) address: StackAddress,
    /// The stack's name while it is renamed.
    pub(crate) away: StackAddress,
    facts: Mutex<Facts>,
}

/// The client's requests and answers.
#[derive(Debug, Default)]
struct Facts {
    claims: Option<Claims>,
    sent: BTreeSet<u64>,
    acked: BTreeSet<u64>,
    /// The requests that saved a text, by their number, each with the text: a repeat has the same bytes.
    saves: BTreeMap<u64, (String, String)>,
    /// The text that was saved last.
    saved: String,
    secrets: Vec<Vec<u8>>,
    tokens: Vec<String>,
    /// The token whose revocation was requested.
    revoked: Option<String>,
    revocation_acked: bool,
    /// Its deletion was requested.
    may_be_gone: bool,
    /// Its rename was requested.
    may_be_away: bool,
}

const PLAINTEXT: &[u8] = b"hunter2";

impl Scene {
    pub(crate) fn new(world: World) -> Self {
        let (login, org) = (Login::parse("alice").unwrap(), OrgName::parse("acme").unwrap());
        let created = world.now();
        let token = Token::personal(login.clone(), TokenName::parse("laptop").unwrap(), created);
        let user = User { orgs: vec![org], ..User::new(login, created) };
        let caller = Caller::new(user, token).asking_for(Right::Member);
        let address = StackAddress::parse("acme", "web", "dev").unwrap();
        let away = StackAddress::parse("acme", "shop", "away").unwrap();
        Self { world, caller, address, away, facts: Mutex::default() }
    }

    pub(crate) fn claims(&self) -> Option<Claims> {
        self.facts.lock().unwrap().claims.clone()
    }

    fn held_claims(&self) -> Claims {
        self.claims().expect("an update was begun")
    }

    /// Adds the caller to the store, which a renewal reads.
    pub(crate) async fn put_caller(&self) {
        let Caller { user, token, .. } = &self.caller;
        let entry = TokenEntry {
            hash: "00".repeat(32),
            certificate: None,
            token: token.clone(),
            revoked: None,
            former: None,
        };
        let (user_key, token_key) = (User::key(&user.login), TokenEntry::key(&user.login, &token.name));
        self.world.put(&user_key, user.encode()).await;
        self.world.put(&token_key, entry.encode()).await;
    }

    /// Does a step through a process, and records the answer.
    pub(crate) async fn act(&self, ctx: &Context, step: Step) -> Result<(), Error> {
        let Self { caller, address, .. } = self;
        match step {
            Step::CreateStack => {
                Box::pin(stacks::create(ctx, caller, address, NewStack::default())).await?;
            }
            Step::CreateAndStart => {
                let id = updates::create(ctx, caller, address, new_update()).await?.to_string();
                let started = updates::start(ctx, caller, address, &id, None, 2).await?;
                self.hold(ctx, &started.token, &id).await?;
            }
            Step::Begin | Step::BeginWhole => {
                let version = if step == Step::Begin { 2 } else { 0 };
                let started =
                    updates::begin(ctx, caller, address, new_update(), None, version).await?.started;
                self.hold(ctx, &started.token, &started.update.to_string()).await?;
            }
            Step::Append(number) => {
                self.facts.lock().unwrap().sent.insert(number);
                let body = gzip(batch(number).to_string().as_bytes());
                log::append_entries(ctx, &self.held_claims(), body).await?;
                self.facts.lock().unwrap().acked.insert(number);
            }
            Step::Checkpoint(number) => {
                let text = self.whole_with(number).to_string();
                log::append_checkpoint(ctx, &self.held_claims(), text).await?;
                self.facts.lock().unwrap().acked.insert(number);
            }
            Step::Save(number) | Step::Delta(number) => {
                let kind = if matches!(step, Step::Save(_)) { Kind::Whole } else { Kind::Delta };
                let (body, text) = self.save(kind, number);
                let gzip = gzip(body.as_bytes());
                updates::checkpoints::save(ctx, &self.held_claims(), kind, body.into(), gzip).await?;
                let mut facts = self.facts.lock().unwrap();
                facts.acked.insert(number);
                facts.saved = text;
            }
            Step::Renew => {
                let claims = self.held_claims();
                self.put_caller().await;
                let (token, _) = updates::renew(ctx, address, &claims, 300).await?;
                self.hold(ctx, &token, &claims.update.to_string()).await?;
            }
            Step::Complete => updates::complete(ctx, &self.held_claims(), Outcome::Succeeded).await?,
            Step::Cancel => {
                let update = self.held_claims().update.to_string();
                updates::cancel(ctx, caller, address, &update, None).await?;
            }
            Step::Import(number) => {
                let text = Bytes::from(self.whole_with(number).to_string());
                updates::direct::import(ctx, caller, address, text).await?;
                self.facts.lock().unwrap().acked.insert(number);
            }
            Step::Remove => {
                self.facts.lock().unwrap().may_be_gone = true;
                stacks::delete(ctx, caller, address, true).await?;
            }
            Step::Undelete => {
                stacks::deleted::undelete(ctx, address, None).await?;
            }
            Step::Rename => {
                self.leave(ctx).await?;
                self.come_back(ctx).await?;
            }
            Step::Encrypt => {
                let stack = stack_lookup::locate(ctx, caller, address).await?.id;
                let sealed = data_keys::encrypt(ctx, stack, vec![PLAINTEXT.to_vec()]).await?;
                self.facts.lock().unwrap().secrets.extend(sealed);
            }
            Step::Meet => {
                stacks::get(ctx, caller, address).await?;
            }
            Step::Lapse => self.world.clock.advance(LEASE + Duration::from_nanos(1)),
            Step::CreateToken => {
                let name = TokenName::parse("ci").unwrap();
                let token = tokens::create_token(ctx, &caller.user.login, &name, None).await?;
                self.facts.lock().unwrap().tokens.push(token);
            }
            Step::RevokeToken => {
                let name = TokenName::parse("ci").unwrap();
                {
                    let mut facts = self.facts.lock().unwrap();
                    facts.revoked = facts.revoked.take().or_else(|| facts.tokens.pop());
                }
                tokens::revoke_token(ctx, &caller.user.login, &name).await?;
                self.facts.lock().unwrap().revocation_acked = true;
            }
            Step::Bootstrap => {
                let org = caller.user.orgs.first().unwrap();
                let first = bootstrap::bootstrap(ctx, &caller.user.login, org).await?;
                self.facts.lock().unwrap().tokens.extend(first.map(|first| first.token));
            }
            Step::Restore => {
                versions::restore(ctx, caller, address, 1).await?;
            }
            Step::Rehome => {
                let url = |text| ServerUrl::parse(text).unwrap();
                let plan = Plan { from: url(OLD_URL), to: url(NEW_URL), dry_run: false };
                for (_, rehomed) in rehome::page(ctx, caller, &plan, None).await?.0 {
                    rehomed?;
                }
                let head = stack_lookup::locate(ctx, caller, address).await?.head.value;
                let url = head.snapshot.and_then(|snapshot| snapshot.secrets_url);
                assert_eq!(url.as_deref(), Some(NEW_URL));
            }
            Step::CreateUser => {
                users::create(ctx, &colleague(), &caller.user.orgs, Role::Plan).await?;
                let members = orgs::members(ctx, caller.user.orgs.first().unwrap()).await?;
                assert!(members.iter().any(|(login, _)| *login == colleague()));
            }
            Step::CreateUserToken => {
                let name = TokenName::parse("laptop").unwrap();
                let token = tokens::create_token(ctx, &colleague(), &name, None).await?;
                self.facts.lock().unwrap().tokens.push(token);
            }
            Step::SetRole => {
                let org = caller.user.orgs.first().unwrap();
                let role = orgs::set_role(ctx, org, &colleague(), Role::Apply).await?.role;
                let members = orgs::members(ctx, org).await?;
                let users = users::list(ctx).await?;
                let user = users.iter().find(|user| user.login == colleague());
                assert!(members.contains(&(colleague(), role)), "{members:?}");
                assert_eq!(user.and_then(|user| user.role_in(org)), Some(role));
            }
            Step::RemoveUser => {
                {
                    let mut facts = self.facts.lock().unwrap();
                    facts.revoked = facts.revoked.take().or_else(|| facts.tokens.pop());
                }
                users::remove(ctx, &colleague()).await?;
                self.facts.lock().unwrap().revocation_acked = true;
                assert!(users::list(ctx).await?.iter().all(|user| user.login != colleague()));
            }
        }
        Ok(())
    }

    /// Renames the stack.
    pub(crate) async fn leave(&self, ctx: &Context) -> Result<(), Error> {
        self.facts.lock().unwrap().may_be_away = true;
        self.rename(ctx, &self.address, &self.away).await
    }

    async fn come_back(&self, ctx: &Context) -> Result<(), Error> {
        self.rename(ctx, &self.away, &self.address).await
    }

    async fn rename(&self, ctx: &Context, from: &StackAddress, to: &StackAddress) -> Result<(), Error> {
        let StackAddress { project, stack, .. } = to.clone();
        let new = NewAddress { org: None, project: Some(project), stack: Some(stack) };
        rename::rename(ctx, &self.caller, from, new).await.map(drop)
    }

    async fn hold(&self, ctx: &Context, token: &str, update: &str) -> Result<(), Error> {
        let claims = updates::tokens::verify(ctx, token, update).await?;
        updates::tokens::check(&claims, &self.address, update)?;
        self.facts.lock().unwrap().claims = Some(claims);
        Ok(())
    }

    /// A whole deployment: everything acknowledged so far, with one more resource.
    fn whole_with(&self, number: u64) -> Value {
        let mut facts = self.facts.lock().unwrap();
        facts.sent.insert(number);
        let resources: Vec<Value> =
            facts.acked.iter().chain([&number]).map(|number| resource(*number)).collect();
        let time = self.world.now().to_rfc3339();
        let provider = json!({"type": "service", "state": {"url": OLD_URL, "owner": "acme", "project": "web", "stack": "dev"}});
        json!({"version": 3, "deployment": {
            "manifest": {"time": time}, "resources": resources, "secrets_providers": provider,
        }})
    }

    /// The body of a request that saves, and the text that it makes.
    fn save(&self, kind: Kind, number: u64) -> (String, String) {
        let text = self.whole_with(number).to_string();
        let mut facts = self.facts.lock().unwrap();
        let body = match kind {
            Kind::Whole => {
                format!(r#"{{"version":3,"untypedDeployment":{text},"sequenceNumber":{number}}}"#)
            }
            Kind::Delta => {
                let point = |offset: usize| json!({"line": 1, "column": 1, "offset": offset});
                let span = json!({"uri": "", "start": point(1), "end": point(facts.saved.len())});
                json!({"version": 3, "checkpointHash": super::world::sha256(text.as_bytes()),
                       "sequenceNumber": number,
                       "deploymentDelta": [{"Span": span, "NewText": text.get(1..).unwrap()}]})
                .to_string()
            }
        };
        facts.saves.entry(number).or_insert((body, text)).clone()
    }

    /// The numbers of the resources in the current deployment.
    pub(crate) async fn published(&self, ctx: &Context) -> BTreeSet<u64> {
        let Some(bytes) = stacks::export(ctx, &self.caller, &self.address, None).await.unwrap() else {
            return BTreeSet::new();
        };
        numbers(&gunzip(&bytes).unwrap())
    }

    /// Asserts what is true of the stack at any moment, if there is one.
    pub(crate) async fn check(&self) {
        let mut found = 0;
        for address in [&self.address, &self.away] {
            if let Some(name) = self.world.read::<StackEntry>(&StackEntry::key(address)).await {
                self.world.check_stack(name.id).await;
                let head = self.world.read::<StackHead>(&StackHead::key(name.id)).await.unwrap();
                assert_eq!(head.address, *address, "a name leads to a stack of that name");
                found += 1;
            }
        }
        assert!(found <= 1, "a stack has one name");
    }

    /// Asserts I3: the state has everything that was acknowledged, and nothing that was never sent.
    pub(crate) async fn check_acked(&self, ctx: &Context) {
        let published = self.published(ctx).await;
        let facts = self.facts.lock().unwrap();
        assert!(
            published.is_superset(&facts.acked),
            "I3: {:?} were acknowledged, {published:?} published",
            facts.acked
        );
        assert!(published.is_subset(&facts.sent), "{:?} were sent, {published:?} published", facts.sent);
    }

    /// Asserts that issued secrets and tokens are valid for a process that never saw them.
    pub(crate) async fn check_handed_out(&self, ctx: &Context) {
        let (sealed, tokens, revoked) = {
            let facts = self.facts.lock().unwrap();
            let revoked = facts.revoked.clone().filter(|_| facts.revocation_acked);
            (facts.secrets.clone(), facts.tokens.clone(), revoked)
        };
        if !sealed.is_empty() {
            let stack = stack_lookup::locate(ctx, &self.caller, &self.address).await.unwrap().id;
            for plaintext in data_keys::decrypt(ctx, stack, sealed).await.unwrap() {
                assert_eq!(plaintext, PLAINTEXT);
            }
            assert_eq!(self.world.data_keys(stack).await, 1, "a stack has one data key");
        }
        for token in tokens {
            tokens::authenticate(ctx, &token).await.expect("a token that was shown is valid");
        }
        if let Some(token) = revoked {
            let shown = tokens::authenticate(ctx, &token).await;
            assert!(matches!(shown, Err(Error::Access(_))), "{shown:?}");
        }
    }

    /// The stack is gone, and a new one of the same name has nothing of it.
    fn forget_state(&self) {
        let mut facts = self.facts.lock().unwrap();
        assert!(facts.may_be_gone || facts.acked.is_empty(), "I3: the stack is gone");
        (facts.acked, facts.sent, facts.secrets) = Default::default();
    }

    /// Whether the client's update accepts writes, as far as its record says.
    async fn is_open(&self) -> bool {
        let Some(claims) = self.claims() else { return false };
        let update = self.world.read::<Update>(&Update::key(claims.update)).await.unwrap();
        matches!(update.status, Status::Running { .. })
    }

    /// Asserts I4: requests of an ended update are refused, by processes with and without it in their caches.
    pub(crate) async fn check_fenced(&self, ctx: &Context) {
        let Some(claims) = self.claims() else { return };
        // The agreed kind of data must not be the reason for a refusal here.
        let (claims, whole) =
            (Claims { journals: true, ..claims.clone() }, Claims { journals: false, ..claims });
        for process in [ctx, &self.world.process("newer")] {
            for body in [batch(900), batch(901)] {
                let refused = log::append_entries(process, &claims, gzip(body.to_string().as_bytes())).await;
                assert!(matches!(refused, Err(Error::Update(UpdateError::Fenced(_)))), "I4: {refused:?}");
            }
            let body = json!({"untypedDeployment": self.whole_with(900), "sequenceNumber": 900}).to_string();
            let refused = updates::checkpoints::save(
                process,
                &whole,
                Kind::Whole,
                body.clone().into(),
                gzip(body.as_bytes()),
            )
            .await;
            assert!(matches!(refused, Err(Error::Update(UpdateError::Fenced(_)))), "I4: {refused:?}");
            let refused = updates::renew(process, &self.address, &claims, 300).await;
            assert!(matches!(refused, Err(Error::Update(UpdateError::Fenced(_)))), "I4: {refused:?}");
        }
    }

    /// Brings the scene to an end through a new process, and asserts on the way that no update holds the stack
    /// longer than a lease (I1), that everything acknowledged is stored (I3), that ended updates refuse
    /// everything (I4), and that the stack continues.
    pub(crate) async fn finish(&self) {
        let ctx = &self.world.process("last");
        let may_be_away = self.facts.lock().unwrap().may_be_away;
        if may_be_away {
            match Box::pin(self.come_back(ctx)).await {
                // The stack never existed, or is gone.
                Ok(()) | Err(Error::Stack(StackError::NotFound(_))) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        if matches!(
            stack_lookup::locate(ctx, &self.caller, &self.address).await,
            Err(Error::Stack(StackError::NotFound(_)))
        ) {
            self.forget_state();
            Box::pin(self.act(ctx, Step::CreateStack)).await.expect("a name that is free can be taken");
        }
        // Before its token expires, only the log can refuse a client whose update is over.
        if !self.is_open().await {
            self.check_fenced(ctx).await;
        }
        Box::pin(self.act(ctx, Step::Lapse)).await.unwrap();
        let view = stacks::get(ctx, &self.caller, &self.address).await.unwrap();
        assert_eq!(view.head.running, None, "I1: nothing is held for longer than a lease");
        self.check().await;
        self.check_acked(ctx).await;
        self.check_handed_out(ctx).await;
        self.check_fenced(ctx).await;
        Box::pin(self.act(ctx, Step::Begin)).await.unwrap();
        Box::pin(self.act(ctx, Step::Append(901))).await.unwrap();
        Box::pin(self.act(ctx, Step::Complete)).await.unwrap();
        let after = stacks::get(ctx, &self.caller, &self.address).await.unwrap();
        assert_eq!(after.head.version, view.head.version + 1, "I2: versions rise by one");
        self.check().await;
        self.check_acked(ctx).await;
    }
}

pub(crate) fn new_update() -> NewUpdate {
    NewUpdate { kind: UpdateKind::Update, dry_run: false, detail: UpdateDetail::default() }
}

/// A resource whose text compresses badly.
pub(crate) fn resource(number: u64) -> Value {
    let noise = super::world::sha256(&number.to_be_bytes());
    json!({"urn": format!("urn:pulumi:dev::web::t:m:T::r{number}"), "custom": false, "type": "t:m:T",
           "outputs": {"noise": noise}})
}

/// The journal of one created resource.
pub(crate) fn batch(number: u64) -> Value {
    json!({"entries": [
        {"version": 1, "kind": 0, "sequenceID": 2 * number + 1, "operationID": number + 1, "removeOld": null,
         "removeNew": null, "operation": {"resource": resource(number), "type": "creating"}},
        {"version": 1, "kind": 1, "sequenceID": 2 * number + 2, "operationID": number + 1, "removeOld": null,
         "removeNew": null, "state": resource(number)},
    ]})
}

/// The numbers of the resources in an untyped deployment.
pub(crate) fn numbers(text: &[u8]) -> BTreeSet<u64> {
    let deployment: Value = serde_json::from_slice(text).unwrap();
    let resources = deployment["deployment"]["resources"].as_array().cloned().unwrap_or_default();
    resources
        .iter()
        .map(|r| r["urn"].as_str().unwrap().rsplit_once("::r").unwrap().1.parse().unwrap())
        .collect()
}
