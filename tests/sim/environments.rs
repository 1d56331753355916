//! Goal: whichever call of a use case of environments fails, in whichever way, for however long: a repeated
//! request has the effect of one, and nothing acknowledged is lost.
//!
//! Method: as in [`super::states`].

use std::time::Duration;

use statewright_shared::context::Context;
use statewright_shared::domain::names::{
    EnvironmentAddress, EnvironmentTagName, Login, OrgName, StackAddress, TokenName,
};
use statewright_shared::domain::role::Right;
use statewright_shared::layout::{EnvironmentHead, StackConfig, StackEntry, StackHead, Token, User};
use statewright_shared::ports::Timestamp;
use statewright_shared::services::Error;
use statewright_shared::services::caller::Caller;
use statewright_shared::services::environments::lookup::RevisionRef;
use statewright_shared::services::environments::{self, Preserve};
use statewright_shared::services::environments::{revisions, session as opening, tags};
use statewright_shared::services::error::{EnvironmentError, StackError};
use statewright_shared::services::stacks::{self, NewStack};

use super::repeats;
use super::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Create,
    Write(u32),
    Tag,
    Name,
    Retract,
    Clone,
    CloneAll,
    Remove,
    Restore,
    Open,
    NewStack,
    Configure,
}

struct Scene {
    world: World,
    caller: Caller,
    address: EnvironmentAddress,
    copy: EnvironmentAddress,
    stack: StackAddress,
}

fn tag(name: &str) -> EnvironmentTagName {
    EnvironmentTagName::parse(name).unwrap()
}

fn text(number: u32) -> String {
    format!("values: {{n: {number}, s: {{fn::secret: hunter{number}}}}}\n")
}

impl Scene {
    fn new() -> Self {
        let org = OrgName::parse("acme").unwrap();
        let (login, created) = (Login::parse("alice").unwrap(), Timestamp(0));
        let name = TokenName::parse("laptop").unwrap();
        let user = User { orgs: vec![org], ..User::new(login.clone(), created) };
        let token = Token::personal(login, name, created);
        let caller = Caller::new(user, token).asking_for(Right::Member);
        let environment = |name: &str| EnvironmentAddress::parse("acme", "web", name).unwrap();
        let stack = StackAddress::parse("acme", "web", "dev").unwrap();
        Self {
            world: World::memory(),
            caller,
            address: environment("base"),
            copy: environment("copy"),
            stack,
        }
    }

    async fn act(&self, ctx: &Context, step: Step) -> Result<(), Error> {
        let (caller, address, copy) = (&self.caller, &self.address, &self.copy);
        match step {
            Step::Create => environments::create(ctx, caller, address, "").await,
            Step::Write(number) => {
                environments::update(ctx, caller, address, &text(number), None).await.map(drop)
            }
            Step::Tag => tags::add(ctx, caller, address, &tag("team"), "infra").await.map(drop),
            Step::Name => tags::add_to_revision(ctx, caller, address, &tag("stable"), Some(2)).await,
            Step::Retract => {
                revisions::retract(ctx, caller, address, &RevisionRef::Number(2), None, String::new()).await
            }
            Step::Clone => {
                environments::clone(ctx, caller, address, &RevisionRef::Latest, copy, Preserve::default())
                    .await
            }
            Step::CloneAll => {
                let all = Preserve { history: true, tags: true, revision_tags: true };
                environments::clone(ctx, caller, address, &RevisionRef::Latest, copy, all).await
            }
            Step::Remove => environments::delete(ctx, caller, address).await,
            Step::Restore => environments::undelete(ctx, caller, address, None).await,
            Step::Open => {
                let hour = Duration::from_secs(3600);
                opening::open(ctx, caller, address, &RevisionRef::Latest, hour).await.map(drop)
            }
            Step::NewStack => {
                let config = StackConfig { environment: "web/dev".to_owned(), ..StackConfig::default() };
                let new = NewStack { config: Some(config), ..NewStack::default() };
                stacks::create(ctx, caller, &self.stack, new).await.map(drop)
            }
            Step::Configure => {
                let config = StackConfig { environment: "web/base".to_owned(), ..StackConfig::default() };
                stacks::config::set(ctx, caller, &self.stack, Some(config)).await
            }
        }
    }

    async fn head(&self, address: &EnvironmentAddress) -> Option<EnvironmentHead> {
        self.world.read(&EnvironmentHead::key(address)).await
    }

    /// What must be true whatever failed: each environment has all its revisions, and each of them opens.
    async fn check(&self) {
        let ctx = self.world.process("reader");
        let configured = EnvironmentAddress::parse("acme", "web", "dev").unwrap();
        for address in [&self.address, &self.copy, &configured] {
            let Some(head) = self.head(address).await else { continue };
            for number in 1..=head.revision {
                let read =
                    environments::text(&ctx, &self.caller, address, &RevisionRef::Number(number), true).await;
                read.unwrap_or_else(|error| panic!("I3: revision {number} of {address}: {error}"));
            }
        }
        if let Some(name) = self.world.read::<StackEntry>(&StackEntry::key(&self.stack)).await {
            let head: StackHead = self.world.read(&StackHead::key(name.id)).await.unwrap();
            let Some(config) = head.config else { return };
            let (address, _) = environments::lookup::parse(&self.stack.org, &config.environment).unwrap();
            assert!(self.head(&address).await.is_some(), "a stack's configuration is missing");
        }
    }

    /// What must be true once a step was acknowledged, however often it was sent.
    async fn check_done(&self, prior: &[Step], step: Step) {
        let written = prior.iter().filter(|step| matches!(step, Step::Write(_))).count() as u64;
        let head = self.head(&self.address).await;
        let text_of = async |address: &EnvironmentAddress| {
            let ctx = self.world.process("reader");
            let read =
                environments::text(&ctx, &self.caller, address, &RevisionRef::Latest, true).await.unwrap();
            String::from_utf8(read.text.to_vec()).unwrap()
        };
        match step {
            Step::Create => assert_eq!(head.unwrap().revision, 1),
            Step::Write(number) => {
                assert_eq!(text_of(&self.address).await, text(number));
                assert_eq!(head.unwrap().revision, written + 2, "I5: a repeat changes nothing");
            }
            Step::Tag => assert_eq!(head.unwrap().tags[&tag("team")].value, "infra"),
            Step::Name => assert_eq!(head.unwrap().revision_tags[&tag("stable")].revision, 2),
            Step::Retract => {
                let ctx = self.world.process("reader");
                let read =
                    environments::text(&ctx, &self.caller, &self.address, &RevisionRef::Number(2), false);
                assert_eq!(read.await.unwrap().revision, head.unwrap().revision);
            }
            Step::Clone => assert_eq!(text_of(&self.copy).await, text_of(&self.address).await),
            Step::CloneAll => {
                let (of, copy) = (head.unwrap(), self.head(&self.copy).await.unwrap());
                assert_eq!(
                    (of.revision, of.tags, of.revision_tags),
                    (copy.revision, copy.tags, copy.revision_tags)
                );
                assert_eq!(text_of(&self.copy).await, text_of(&self.address).await);
            }
            Step::Remove => assert_eq!(head, None),
            Step::Restore => assert_eq!(text_of(&self.address).await, text(1)),
            Step::Open => {}
            Step::NewStack | Step::Configure => {
                let name: StackEntry = self.world.read(&StackEntry::key(&self.stack)).await.unwrap();
                let head: StackHead = self.world.read(&StackHead::key(name.id)).await.unwrap();
                let expected = if step == Step::NewStack { "web/dev" } else { "web/base" };
                assert_eq!(head.config.unwrap().environment, expected);
            }
        }
    }
}

impl repeats::Scene for Scene {
    type Step = Step;

    fn new() -> Self {
        Self::new()
    }

    fn world(&self) -> &World {
        &self.world
    }

    async fn act(&self, process: &Context, step: Step) -> Result<(), Error> {
        Self::act(self, process, step).await
    }

    async fn check(&self) {
        Self::check(self).await;
    }

    async fn check_done(&self, prior: &[Step], step: Step) {
        Self::check_done(self, prior, step).await;
    }

    fn is_answer_to_repeat(step: Step, error: &Error) -> bool {
        match step {
            Step::Create | Step::Clone | Step::CloneAll => {
                matches!(error, Error::Environment(EnvironmentError::Exists(_)))
            }
            Step::Tag | Step::Name => matches!(error, Error::Environment(EnvironmentError::TagExists(_))),
            Step::Remove => matches!(error, Error::Environment(EnvironmentError::NotFound(_))),
            Step::Restore => matches!(
                error,
                Error::Environment(EnvironmentError::NoneDeleted(_) | EnvironmentError::Exists(_))
            ),
            Step::NewStack => matches!(error, Error::Stack(StackError::Exists(_))),
            Step::Write(_) | Step::Retract | Step::Open | Step::Configure => false,
        }
    }
}

const WRITTEN: [Step; 2] = [Step::Create, Step::Write(1)];

const TWICE: [Step; 5] = [Step::Create, Step::Write(1), Step::Write(2), Step::Tag, Step::Name];

const CASES: [(&[Step], Step); 13] = [
    (&[], Step::Create),
    (&[Step::Create], Step::Write(1)),
    (&WRITTEN, Step::Write(2)),
    (&WRITTEN, Step::Tag),
    (&WRITTEN, Step::Name),
    (&TWICE, Step::Retract),
    (&WRITTEN, Step::Clone),
    (&TWICE, Step::CloneAll),
    (&WRITTEN, Step::Remove),
    (&[Step::Create, Step::Write(1), Step::Remove], Step::Restore),
    (&WRITTEN, Step::Open),
    (&[], Step::NewStack),
    (&[Step::Create, Step::Write(1), Step::NewStack], Step::Configure),
];

#[tokio::test]
async fn i3_acked_kept_i5_repeatable_environments_survive_every_fault() {
    repeats::survive_every_fault::<Scene>(&CASES).await;
}
