//! Goal: whatever two processes do to one stack at once, one of them wins, everything acknowledged is
//! published, and nothing is written after a seal.
//!
//! Method: tasks over two contexts. In memory all of them share a thread, and seeded pauses around every call
//! of a port decide the order. On SQLite each process has its own handle to one file, on AWS its own clients,
//! and threads decide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use statewright_shared::adapters::embedded::SqliteLedger;
use statewright_shared::context::Context;
use statewright_shared::domain::names::{Login, OrgName, ProviderName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::sign_in::{GROUPS_CLAIM, LOGIN_CLAIM, SignInRule};
use statewright_shared::domain::update::{LEASE, NotNow};
use statewright_shared::layout::SignInProvider;
use statewright_shared::ports::Timestamp;
use statewright_shared::services::caller::Caller;
use statewright_shared::services::error::{IdentityError, StackError, UpdateError};
use statewright_shared::services::identity::code_flow::Person;
use statewright_shared::services::identity::{bootstrap, members, orgs, sign_in, tokens, users};
use statewright_shared::services::keys::data_keys;
use statewright_shared::services::stacks::NewStack;
use statewright_shared::services::{Error, stacks, updates};
use statewright_tests::aws::StandIn;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::scene::{Scene, Step, new_update};
use super::world::{Dice, World};

const SEEDS: u64 = 60;

/// Fewer seeds: a race on AWS takes a second.
const SEEDS_ON_AWS: u64 = 2;

/// Makes a stack with a version.
async fn make_version(scene: &Scene, process: &Context) {
    for step in [Step::CreateStack, Step::Begin, Step::Append(1), Step::Complete] {
        scene.act(process, step).await.unwrap();
    }
}

/// A scene with two processes.
struct Ring {
    scene: Scene,
    processes: [Context; 2],
    dice: Arc<Dice>,
}

impl Ring {
    fn in_memory(seed: u64) -> Self {
        let (scene, dice) = (Scene::new(World::memory()), Arc::new(Dice::new(seed)));
        let processes = ["first", "second"].map(|name| scene.world.jittery(name, None, &dice));
        Self { scene, processes, dice }
    }

    fn on_disk(seed: u64, folder: &TempDir) -> Self {
        let path = folder.path().join("ledger.sqlite");
        let one = Arc::new(SqliteLedger::open_or_create(&path).unwrap());
        let other = Arc::new(SqliteLedger::open_existing(&path).unwrap());
        let (scene, dice) = (Scene::new(World::over(one.clone())), Arc::new(Dice::new(seed)));
        let processes = [
            scene.world.jittery("first", Some(one), &dice),
            scene.world.jittery("second", Some(other), &dice),
        ];
        Self { scene, processes, dice }
    }

    /// Each process has its own clients.
    async fn on_aws(seed: u64) -> Self {
        let (scene, dice) = (Scene::new(World::aws().await), Arc::new(Dice::new(seed)));
        let url = &StandIn::of_this_process().url;
        let one = scene.world.process_behind("first", url).await;
        let other = scene.world.process_behind("second", url).await;
        Self { scene, processes: [one, other], dice }
    }
}

async fn append_until_fenced(ring: Arc<Ring>, process: usize, from: u64) {
    for number in from..from + 6 {
        ring.dice.pause(12).await;
        match ring.scene.act(&ring.processes[process], Step::Append(number)).await {
            Ok(()) | Err(Error::Contended(_)) => {}
            Err(Error::Update(UpdateError::Fenced(_))) => return,
            Err(other) => panic!("{other:?}"),
        }
    }
}

async fn renew_until_fenced(ring: Arc<Ring>, process: usize) {
    for _ in 0..4 {
        ring.dice.pause(20).await;
        match ring.scene.act(&ring.processes[process], Step::Renew).await {
            Ok(()) => {}
            Err(Error::Update(UpdateError::Fenced(_))) => return,
            Err(other) => panic!("{other:?}"),
        }
    }
}

async fn end(ring: Arc<Ring>, process: usize, step: Step) {
    ring.dice.pause(300).await;
    if step == Step::Meet && ring.dice.roll(2) == 0 {
        ring.scene.world.clock.advance(LEASE + Duration::from_nanos(1));
    }
    match ring.scene.act(&ring.processes[process], step).await {
        Ok(())
        | Err(Error::Update(
            UpdateError::Fenced(_)
            | UpdateError::NotNow(NotNow::Over { .. })
            | UpdateError::NothingToCancel { .. },
        )) => {}
        Err(other) => panic!("{step:?}: {other:?}"),
    }
}

/// Appends, renewals, a complete, a cancel and takeovers of one update, concurrently.
async fn race_for_one_update(ring: Ring) {
    let ring = Arc::new(ring);
    let scene = &ring.scene;
    for step in [Step::CreateStack, Step::Begin, Step::Append(1), Step::Complete, Step::Begin] {
        scene.act(&ring.processes[0], step).await.unwrap();
    }
    let update = scene.claims().unwrap();
    let mut tasks = JoinSet::new();
    for (process, from) in [(0, 100), (1, 200), (0, 300), (1, 400)] {
        tasks.spawn(append_until_fenced(Arc::clone(&ring), process, from));
    }
    for process in [0, 1] {
        tasks.spawn(renew_until_fenced(Arc::clone(&ring), process));
    }
    for (process, step) in
        [(0, Step::Complete), (1, Step::Complete), (1, Step::Cancel), (0, Step::Meet), (1, Step::Meet)]
    {
        tasks.spawn(end(Arc::clone(&ring), process, step));
    }
    tasks.join_all().await;

    assert_eq!(scene.claims().unwrap().update, update.update);
    scene.check().await;
    scene.finish().await;
    let view = stacks::get(&ring.processes[1], &scene.caller, &scene.address).await.unwrap();
    assert_eq!(view.head.version, 3, "one version for each update");
}

async fn begin_at_once(ring: Ring) {
    let scene = &ring.scene;
    for step in [Step::CreateStack, Step::Begin, Step::Append(1)] {
        scene.act(&ring.processes[0], step).await.unwrap();
    }
    // In half of the runs the beginners have to end an abandoned update first.
    if ring.dice.roll(2) == 0 {
        scene.act(&ring.processes[0], Step::Lapse).await.unwrap();
    } else {
        scene.act(&ring.processes[0], Step::Complete).await.unwrap();
    }
    let begin = |process: usize| {
        updates::begin(&ring.processes[process], &scene.caller, &scene.address, new_update(), None, 2)
    };
    let begun = join_all([begin(0), begin(1), begin(0), begin(1)]).await;
    let winners: Vec<_> = begun.iter().filter_map(|begun| begun.as_ref().ok()).collect();
    assert_eq!(winners.len(), 1, "I1: one wins");
    for loser in begun.iter().filter_map(|begun| begun.as_ref().err()) {
        match loser {
            Error::Update(UpdateError::Held(holder)) => {
                assert_eq!(holder.update, winners[0].started.update, "I1: the loser gets the holder")
            }
            other => panic!("{other:?}"),
        }
    }
    scene.check().await;
    scene.finish().await;
}

async fn make_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], .. } = &ring;
    let Scene { caller, address, .. } = scene;

    // The signing key: both sign, and each opens what the other signed.
    let (a, b) = futures::join!(updates::tokens::prepare(one), updates::tokens::prepare(other));
    a.unwrap();
    b.unwrap();

    // The first user.
    let (login, org) = (&caller.user.login, caller.user.orgs.first().unwrap());
    let firsts =
        futures::join!(bootstrap::bootstrap(one, login, org), bootstrap::bootstrap(other, login, org));
    let shown: Vec<_> = [firsts.0.unwrap(), firsts.1.unwrap()].into_iter().flatten().collect();
    assert_eq!(shown.len(), 1, "one start shows its token");
    let by_token: Caller = tokens::authenticate(other, &shown[0].token).await.unwrap();
    assert_eq!(by_token.user.login, caller.user.login);

    // A token of one name.
    let name = TokenName::parse("ci").unwrap();
    let tokens = futures::join!(
        tokens::create_token(one, login, &name, None),
        tokens::create_token(other, login, &name, None)
    );
    assert!(tokens.0.is_ok() != tokens.1.is_ok(), "{tokens:?}");

    // A stack of one name.
    let new = NewStack::default;
    let created = futures::join!(
        stacks::create(one, caller, address, new()),
        stacks::create(other, caller, address, new())
    );
    let id = match created {
        (Ok(id), Err(Error::Stack(StackError::Exists(_))))
        | (Err(Error::Stack(StackError::Exists(_))), Ok(id)) => id,
        both => panic!("{both:?}"),
    };

    // The first secrets.
    let plain = |text: &str| [text.as_bytes().to_vec()];
    let (ours, theirs) = (plain("ours"), plain("theirs"));
    let sealed = futures::join!(
        data_keys::encrypt(one, id, ours.to_vec()),
        data_keys::encrypt(other, id, theirs.to_vec())
    );
    assert_eq!(data_keys::decrypt(other, id, sealed.0.unwrap()).await.unwrap(), ours);
    assert_eq!(data_keys::decrypt(one, id, sealed.1.unwrap()).await.unwrap(), theirs);
    assert_eq!(scene.world.data_keys(id).await, 1);

    // A token that one signed is valid for the other.
    let begun = updates::begin(one, caller, address, new_update(), None, 2).await.unwrap().started;
    let id = begun.update.to_string();
    let claims = updates::tokens::verify(other, &begun.token, &id).await.unwrap();
    updates::tokens::check(&claims, address, &id).unwrap();
    updates::cancel(other, caller, address, &id, None).await.unwrap();
    scene.check().await;
    scene.finish().await;
}

async fn start_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], .. } = &ring;
    let Scene { caller, address, .. } = scene;
    scene.act(one, Step::CreateStack).await.unwrap();
    let id = updates::create(one, caller, address, new_update()).await.unwrap().to_string();
    scene.put_caller().await;
    // The same update started twice is one start; each gets a token for it, which is renewed.
    let started = futures::join!(
        updates::start(one, caller, address, &id, None, 2),
        updates::start(other, caller, address, &id, None, 2)
    );
    for (started, verifier) in [(started.0.unwrap(), other), (started.1.unwrap(), one)] {
        assert_eq!(started.version, 1);
        let claims = updates::tokens::verify(verifier, &started.token, &id).await.unwrap();
        updates::tokens::check(&claims, address, &id).unwrap();
        updates::renew(verifier, address, &claims, 300).await.unwrap();
    }
    scene.check().await;
    scene.finish().await;
}

async fn remove_and_begin_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], dice } = &ring;
    make_version(scene, one).await;
    let begin = async {
        dice.pause(8).await;
        scene.act(one, Step::Begin).await
    };
    let (removed, begun) = futures::join!(scene.act(other, Step::Remove), begin);
    match (&removed, &begun) {
        (Ok(()), Err(Error::Stack(StackError::NotFound(_))))
        | (Err(Error::Update(UpdateError::Held(_))), Ok(())) => {}
        both => panic!("a stack is either removed or updated: {both:?}"),
    }
    scene.check().await;
    scene.finish().await;
}

async fn rename_and_begin_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], dice } = &ring;
    make_version(scene, one).await;
    let begin = async {
        dice.pause(8).await;
        scene.act(one, Step::Begin).await
    };
    match futures::join!(scene.leave(other), begin) {
        (Ok(()), Err(Error::Stack(StackError::NotFound(_))))
        | (Err(Error::Update(UpdateError::Held(_))), Ok(())) => {}
        both => panic!("a stack is either renamed or updated: {both:?}"),
    }
    scene.check().await;
    scene.finish().await;
}

async fn rename_and_tag_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], dice } = &ring;
    make_version(scene, one).await;
    let tags = BTreeMap::from([("team".to_owned(), "storage".to_owned())]);
    let tag = async {
        dice.pause(30).await;
        stacks::set_tags(one, &scene.caller, &scene.address, tags.clone()).await
    };
    let (renamed, tagged) = futures::join!(scene.leave(other), tag);
    renamed.unwrap();
    let view = stacks::get(one, &scene.caller, &scene.away).await.unwrap();
    match tagged {
        Ok(()) => assert_eq!(view.tags, tags, "tags move along"),
        Err(Error::Stack(StackError::NotFound(_))) => assert_eq!(view.tags, BTreeMap::new()),
        Err(other) => panic!("{other:?}"),
    }
    scene.check().await;
    scene.finish().await;
}

async fn rename_twice_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], dice } = &ring;
    make_version(scene, one).await;
    let second = async {
        dice.pause(20).await;
        scene.leave(one).await
    };
    let (first, second) = futures::join!(scene.leave(other), second);
    first.unwrap();
    second.unwrap();
    let view = stacks::get(one, &scene.caller, &scene.away).await.unwrap();
    assert_eq!(view.head.version, 2, "I5: it is renamed once");
    scene.check().await;
    scene.finish().await;
}

async fn rename_and_remove_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], dice } = &ring;
    make_version(scene, one).await;
    let remove = async {
        dice.pause(8).await;
        scene.act(one, Step::Remove).await
    };
    match futures::join!(scene.leave(other), remove) {
        (Ok(()), Err(Error::Stack(StackError::NotFound(_))))
        | (Err(Error::Stack(StackError::NotFound(_))), Ok(())) => {}
        both => panic!("a stack is either renamed or removed: {both:?}"),
    }
    scene.check().await;
    scene.finish().await;
}

async fn protect_and_remove_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], dice } = &ring;
    make_version(scene, one).await;
    let remove = async {
        dice.pause(8).await;
        scene.act(one, Step::Remove).await
    };
    let protect = stacks::protection::protect(other, &scene.caller, &scene.address, "it is production");
    match futures::join!(protect, remove) {
        (Ok(_), Err(Error::Stack(StackError::Protected(_))))
        | (Err(Error::Stack(StackError::NotFound(_))), Ok(())) => {}
        both => panic!("a stack is either protected or removed: {both:?}"),
    }
    scene.check().await;
    scene.finish().await;
}

/// Two admins take the role of each other.
async fn remove_admins_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], .. } = &ring;
    let (login, org) = (&scene.caller.user.login, scene.caller.user.orgs.first().unwrap());
    bootstrap::bootstrap(one, login, org).await.unwrap().unwrap();
    let (ann, name) = (Login::parse("ann").unwrap(), TokenName::parse("laptop").unwrap());
    users::create(one, &ann, std::slice::from_ref(org), Role::Admin).await.unwrap();
    let mut callers = Vec::new();
    for admin in [login, &ann] {
        let token = tokens::create_token(one, admin, &name, None).await.unwrap();
        callers.push(tokens::authenticate(one, &token).await.unwrap());
    }
    let (removed, demoted) = futures::join!(
        members::remove(one, &callers[0], org, &ann),
        members::set_role(other, &callers[1], org, login, Role::View)
    );
    assert!(removed.is_ok() != demoted.is_ok(), "{removed:?} {demoted:?}");
    for refused in [removed, demoted].into_iter().filter_map(Result::err) {
        assert!(matches!(refused, Error::Identity(IdentityError::LastAdmin { .. })), "{refused:?}");
    }
    let left = orgs::members(one, org).await.unwrap();
    assert_eq!(left.iter().filter(|(_, role)| *role == Role::Admin).count(), 1, "{left:?}");
}

/// A person at a provider whose people have this role in the organization.
fn person(name: &str, org: &OrgName, role: Role) -> Person {
    let rule = SignInRule { group: "*".to_owned(), org: org.clone(), role, team: None };
    let provider = SignInProvider {
        name: ProviderName::parse("corp").unwrap(),
        title: "The corp".to_owned(),
        issuer: "https://id.example.com".to_owned(),
        client_id: "statewright".to_owned(),
        server: "https://state.example.com".to_owned(),
        scopes: Vec::new(),
        login_claim: LOGIN_CLAIM.to_owned(),
        groups_claim: GROUPS_CLAIM.to_owned(),
        days: 30,
        rules: vec![rule],
        created: Timestamp(0),
    };
    let claims = json!({ LOGIN_CLAIM: name, GROUPS_CLAIM: ["staff"] });
    Person { provider, subject: name.to_owned(), claims: claims.as_object().unwrap().clone() }
}

/// The only two admins sign in, and no rule of their provider makes them admins any more.
async fn demote_admins_at_once(ring: Ring) {
    let Ring { scene, processes: [one, other], .. } = &ring;
    let (login, org) = (&scene.caller.user.login, scene.caller.user.orgs.first().unwrap());
    bootstrap::bootstrap(one, login, org).await.unwrap().unwrap();
    for name in ["ann", "bea"] {
        sign_in::admit(one, &person(name, org, Role::Admin), None).await.unwrap();
    }
    orgs::set_role(one, org, login, Role::View).await.unwrap();
    let (ann, bea) = (person("ann", org, Role::Plan), person("bea", org, Role::Plan));
    let (ann, bea) = futures::join!(sign_in::admit(one, &ann, None), sign_in::admit(other, &bea, None));
    assert_eq!((ann.unwrap().as_str(), bea.unwrap().as_str()), ("ann", "bea"));
    let left = orgs::members(one, org).await.unwrap();
    assert_eq!(left.iter().filter(|(_, role)| *role == Role::Admin).count(), 1, "{left:?}");
    assert_eq!(left.iter().filter(|(_, role)| *role == Role::Plan).count(), 1, "{left:?}");
}

macro_rules! races {
    ($($name:ident, $name_on_disk:ident, $name_on_aws:ident: $race:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            for seed in 0..SEEDS {
                println!("seed {seed}");
                Box::pin($race(Ring::in_memory(seed))).await;
            }
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name_on_disk() {
            for seed in 0..3 {
                let folder = TempDir::new().unwrap();
                Box::pin($race(Ring::on_disk(seed, &folder))).await;
            }
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name_on_aws() {
            for seed in 0..SEEDS_ON_AWS {
                println!("seed {seed}");
                Box::pin($race(Ring::on_aws(seed).await)).await;
            }
        }
    )*};
}

races! {
    an_update_keeps_what_it_acknowledged, an_update_on_disk_keeps_what_it_acknowledged,
        an_update_on_aws_keeps_what_it_acknowledged: race_for_one_update;
    of_several_begins_one_wins, of_several_begins_on_disk_one_wins,
        of_several_begins_on_aws_one_wins: begin_at_once;
    two_starts_of_one_update_are_one, two_starts_of_one_update_on_disk_are_one,
        two_starts_of_one_update_on_aws_are_one: start_at_once;
    two_first_callers_agree, two_first_callers_on_disk_agree,
        two_first_callers_on_aws_agree: make_at_once;
    a_stack_is_renamed_or_updated, a_stack_on_disk_is_renamed_or_updated,
        a_stack_on_aws_is_renamed_or_updated: rename_and_begin_at_once;
    two_renames_are_one, two_renames_on_disk_are_one,
        two_renames_on_aws_are_one: rename_twice_at_once;
    tags_move_along, tags_on_disk_move_along,
        tags_on_aws_move_along: rename_and_tag_at_once;
    a_stack_is_renamed_or_removed, a_stack_on_disk_is_renamed_or_removed,
        a_stack_on_aws_is_renamed_or_removed: rename_and_remove_at_once;
    a_stack_is_protected_or_removed, a_stack_on_disk_is_protected_or_removed,
        a_stack_on_aws_is_protected_or_removed: protect_and_remove_at_once;
    one_admin_is_left, one_admin_on_disk_is_left,
        one_admin_on_aws_is_left: remove_admins_at_once;
    one_admin_is_left_by_sign_ins, one_admin_on_disk_is_left_by_sign_ins,
        one_admin_on_aws_is_left_by_sign_ins: demote_admins_at_once;
    a_stack_is_removed_or_updated, a_stack_on_disk_is_removed_or_updated,
        a_stack_on_aws_is_removed_or_updated: remove_and_begin_at_once;
}
