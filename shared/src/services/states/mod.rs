//! Terraform states: creating, finding, listing, renaming, deleting and undeleting them.

pub(super) mod blobs;
pub mod dependencies;
pub(super) mod index;
pub mod label_compliance;
pub mod label_policy;
pub mod locks;
pub mod map;
pub mod outputs;
pub mod protection;
pub mod resources;
pub(super) mod retention;
pub(super) mod rows;
pub mod schemas;
pub mod staleness;
pub mod versions;
pub mod writes;

use super::audit::About;
use super::caller::Caller;
use super::store::deletion::{deletion, undeletable_until};
use super::store::page::{self, Named};
use super::{Error, audit, store};
use crate::cache::REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::ids::StateId;
use crate::domain::names::{OrgName, ProjectName, StateAddress, StateName};
use crate::domain::role::Right;
use crate::domain::tfstate::{Filter, LabelChanges, LabelKey, Labels, Policy, merged};
use crate::layout::{
    self, DeletedState, Due, FormerStateName, FormerStateNameEntry, Key, Record, StateEntry, StateHead,
    StateLock, Stored, check, put,
};
use crate::ports::{Expect, Item, Revision, Timestamp, Write};
use crate::services::error::{InvalidInput, ReservedName, StateError};
use crate::services::identity::grants::Kind;
use crate::services::identity::renames::{self, Following};
use crate::services::store::retry::Attempts;

/// States on one page of a list.
pub const LIST_PAGE: usize = 200;

/// A reference to a state: its id, which never changes, or the name that users gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateRef {
    /// By its id.
    Id(StateId),
    /// By its name.
    Name(StateAddress),
}

impl std::fmt::Display for StateRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Name(address) => address.fmt(f),
        }
    }
}

/// A state and its id.
#[derive(Debug, Clone)]
pub struct Located {
    /// Its id.
    pub id: StateId,
    /// The head as it was read.
    pub head: Stored<StateHead>,
}

/// A state with its lock, read at the same time.
#[derive(Debug, Clone)]
pub struct WithLock {
    /// Its id.
    pub id: StateId,
    /// The head as it was read.
    pub head: Stored<StateHead>,
    /// The lock as it was read; `None` if the state was never locked.
    pub lock: Option<Stored<StateLock>>,
}

/// The result of looking up a reference.
enum Found {
    State(Box<WithLock>),
    /// No state has this name. The condition is the one on the item of the name's former state, to use when the name
    /// is taken.
    Nothing(Expect),
}

impl Found {
    fn new(found: WithLock) -> Self {
        Self::State(Box::new(found))
    }

    fn state(self) -> Option<WithLock> {
        match self {
            Self::State(found) => Some(*found),
            Self::Nothing(_) => None,
        }
    }
}

/// Finds a state for a caller; `None` if the caller may see the organization and no state has the name. Costs one
/// read if the name is cached or the id is given, otherwise two in sequence. One or two more follow if the state had
/// that name before, or if no state has it.
///
/// # Errors
/// [`StateError::NotFound`] for an id that no state has, and the same for a state of an organization that the caller
/// may not see; [`StateError::Deleted`] for a reserved name; `AccessError::NotAllowed`.
pub async fn find(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<Option<Located>, Error> {
    let found = look_up(ctx, caller, state, false).await?.state();
    Ok(found.map(|WithLock { id, head, .. }| Located { id, head }))
}

/// As [`find`], for a state that must exist.
///
/// # Errors
/// [`StateError::NotFound`].
pub async fn locate(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<Located, Error> {
    find(ctx, caller, state).await?.ok_or_else(|| Error::State(StateError::NotFound(state.to_string())))
}

/// As [`find`], with the lock, which is read at the same time as the head.
///
/// # Errors
/// As [`find`].
pub async fn find_with_lock(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
) -> Result<Option<WithLock>, Error> {
    Ok(look_up(ctx, caller, state, true).await?.state())
}

/// As [`find_with_lock`], for a state that must exist.
///
/// # Errors
/// [`StateError::NotFound`].
pub async fn locate_with_lock(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<WithLock, Error> {
    find_with_lock(ctx, caller, state)
        .await?
        .ok_or_else(|| Error::State(StateError::NotFound(state.to_string())))
}

async fn look_up(ctx: &Context, caller: &Caller, state: &StateRef, with_lock: bool) -> Result<Found, Error> {
    let address = match state {
        StateRef::Id(id) => {
            let found = read_state(ctx, *id, with_lock).await?;
            let missing = || Error::State(StateError::NotFound(state.to_string()));
            let found = found.filter(|found| found.head.value.deleted.is_none()).ok_or_else(missing)?;
            return admitted(ctx, caller, found, missing).await;
        }
        StateRef::Name(address) => address,
    };
    // Checked before anything is read, so that the time of the answer does not reveal what exists. A label can give
    // the right that the name does not give.
    let missing = || Error::State(StateError::NotFound(state.to_string()));
    let standing = caller.on_state_name(ctx, address).await;
    let by_name = match standing {
        Ok((standing, true)) if !standing.has(caller.needs()) => false,
        standing => {
            caller.admit(standing.map(|(standing, _)| standing), missing)?;
            true
        }
    };
    let is_it = |found: &WithLock| {
        let head = &found.head.value;
        head.address == *address && head.deleted.is_none()
    };
    if let Some(id) = ctx.memory.state_names.get(address, ctx.now(), REMEMBERED_FOR) {
        if let Some(found) = read_state(ctx, id, with_lock).await?.filter(is_it) {
            return if by_name { Ok(Found::new(found)) } else { admitted(ctx, caller, found, missing).await };
        }
        ctx.memory.state_names.forget(address);
    }
    if let Some(entry) = store::read(ctx, &StateEntry::key(address)).await? {
        let id = entry.value.id;
        if let Some(found) = read_state(ctx, id, with_lock).await?.filter(is_it) {
            ctx.memory.state_names.put(address.clone(), ctx.now(), id);
            return if by_name { Ok(Found::new(found)) } else { admitted(ctx, caller, found, missing).await };
        }
    }
    // A state that was renamed or deleted after its name was read left this item too.
    match former(ctx, address, with_lock).await? {
        // It has another name now, which decides.
        Former { state: Some(found), .. } if found.head.value.deleted.is_none() => {
            admitted(ctx, caller, found, missing).await
        }
        Former { .. } if !by_name => Err(missing()),
        Former { state: Some(found), .. } => Err(reserved_name(ctx, address, found).await?),
        Former { state: None, expect } => Ok(Found::Nothing(expect)),
    }
}

/// The state that was found, for a caller with the right that the request needs.
async fn admitted(
    ctx: &Context,
    caller: &Caller,
    found: WithLock,
    missing: impl FnOnce() -> Error,
) -> Result<Found, Error> {
    let StateHead { address, labels, .. } = &found.head.value;
    caller.admit(caller.on_state(ctx, address, labels).await, missing)?;
    Ok(Found::new(found))
}

/// What the item of a former name says about that name.
struct Former {
    /// The state that the name leads to, or that reserves it.
    state: Option<WithLock>,
    /// The condition that the item is unchanged.
    expect: Expect,
}

impl Former {
    /// The write that takes the name, on the condition that no other request takes or leaves it at the same time.
    fn take(key: Key<FormerStateName>, expect: Expect) -> Write {
        if expect == Expect::Absent { check(key, expect) } else { layout::delete(key, expect) }
    }

    /// The writes that take the name on purpose. If the name leads to a locked state, they are refused: the run that
    /// holds the lock may know the state by this name only.
    fn take_unlocked(self, name: &StateAddress) -> Result<Vec<Write>, Error> {
        let mut writes = vec![Self::take(FormerStateName::key(name), self.expect)];
        if let Some(WithLock { id, lock, .. }) = self.state {
            if let Some(holder) = lock.as_ref().and_then(|lock| lock.value.holder.clone()) {
                return Err(StateError::Locked(Box::new(holder)).into());
            }
            let unlocked = lock.as_ref().map_or(Expect::Absent, Stored::unchanged);
            writes.push(check(StateLock::key(id), unlocked));
        }
        Ok(writes)
    }
}

/// Reads which state had a name before.
async fn former(ctx: &Context, address: &StateAddress, with_lock: bool) -> Result<Former, Error> {
    let item = store::read(ctx, &FormerStateName::key(address)).await?;
    let Some(item) = item else { return Ok(Former { state: None, expect: Expect::Absent }) };
    let keeps = |found: &WithLock| found.head.value.keeps_names();
    let state = read_state(ctx, item.value.id, with_lock).await?.filter(keeps);
    Ok(Former { state, expect: item.unchanged() })
}

/// The error for a reserved name, with the data to undelete its state.
async fn reserved_name(ctx: &Context, name: &StateAddress, found: WithLock) -> Result<Error, Error> {
    let WithLock { id, head, .. } = found;
    let address = head.value.address;
    let deleted = store::read(ctx, &DeletedState::key(&address, id)).await?;
    let by = deleted.map(|deleted| deleted.value.by.login);
    let at = head.value.deleted.unwrap_or(head.value.created);
    Ok(Error::State(StateError::Deleted(Box::new(ReservedName { id, name: name.clone(), address, by, at }))))
}

/// Reads the head of a state, and its lock at the same time if asked to.
async fn read_state(ctx: &Context, id: StateId, with_lock: bool) -> Result<Option<WithLock>, Error> {
    let (head_key, lock_key) = (StateHead::key(id), StateLock::key(id));
    let head = store::read(ctx, &head_key);
    let (head, lock) =
        if with_lock { futures::try_join!(head, store::read(ctx, &lock_key))? } else { (head.await?, None) };
    Ok(head.map(|head| WithLock { id, head, lock }))
}

/// A new id for a state whose client has none: a UUID of version 7, so that ids sort by creation time.
pub fn new_id(ctx: &Context) -> StateId {
    let mut random = [0; 10];
    ctx.ids.fill(&mut random);
    let millis = u64::try_from(ctx.now().0 / 1_000_000).unwrap_or(0);
    StateId::made_at(millis, &random)
}

/// The properties of a new state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beginning {
    /// The id, if the client created one.
    pub id: Option<StateId>,
    /// What its owner demands of writers.
    pub policy: Policy,
    /// Its labels.
    pub labels: LabelChanges,
}

/// Creates a state. A name that leads to another state, or is reserved, now belongs to this one. A repeated call by
/// the same user with the same id and name returns the same state.
///
/// # Errors
/// `AccessError::NoOrg`, [`StateError::Exists`], [`Error::Invalid`] for labels that the organization does not allow.
/// For a name that leads to another state: [`StateError::Locked`] while that is locked, and `AccessError::NotAllowed`
/// if the caller may not rename.
pub async fn create(
    ctx: &Context,
    caller: &Caller,
    address: &StateAddress,
    beginning: &Beginning,
) -> Result<Located, Error> {
    let standing = caller.on_state(ctx, address, &Labels::new()).await?;
    standing.check(caller.needs(), "this")?;
    if beginning.policy != Policy::default() {
        standing.check(Right::Member, "a policy for a new state")?;
    }
    let labels = merged(&Labels::new(), &beginning.labels).map_err(InvalidInput::from)?;
    standing.check_tags(ctx, labels.keys().map(LabelKey::as_str)).await?;
    label_policy::judge(ctx, &address.org, &Labels::new(), &labels).await?;
    let head = StateHead { labels, ..new_head(ctx, caller, address, beginning.policy) };
    let former = former(ctx, address, true).await?;
    if former.state.as_ref().is_some_and(|found| found.head.value.deleted.is_none()) {
        standing.check(Right::Member, "a name that leads to another state")?;
    }
    make(ctx, beginning.id, head, former.take_unlocked(address)?).await
}

async fn make(
    ctx: &Context,
    id: Option<StateId>,
    mut head: StateHead,
    former: Vec<Write>,
) -> Result<Located, Error> {
    let entry = audit::entry(ctx, "state.create", &About::State(&head.address));
    let rider = audit::ride(ctx, entry, None);
    head.trail = rider.mark();
    let brought = id.is_some();
    let id = id.unwrap_or_else(|| new_id(ctx));
    let (revision, writes) = create_writes(ctx, id, &head, former);
    if audit::commit(ctx, writes, rider).await?.is_ok() {
        return Ok(Located { id, head: Stored { value: head, revision } });
    }
    let there = store::read(ctx, &StateHead::key(id)).await?;
    match there {
        Some(there) if brought && there.value.is_new_as(&head) => Ok(Located { id, head: there }),
        // Not every caller may know whose state it is, so the error names the id only.
        Some(_) => Err(StateError::Exists(id.to_string()).into()),
        None => Err(StateError::Exists(head.address.to_string()).into()),
    }
}

impl StateHead {
    /// Whether this head is the result of an earlier, identical creation.
    fn is_new_as(&self, other: &Self) -> bool {
        self.deleted.is_none() && self.address == other.address && self.created_by == other.created_by
    }

    /// Whether it has resources. If they are not known, it may have some.
    fn may_have_resources(&self) -> bool {
        self.current.as_ref().is_some_and(|kept| kept.resource_count != Some(0))
    }

    /// Whether a write has to leave some resources.
    fn keeps_resources(&self) -> bool {
        self.protection.is_some() && self.may_have_resources()
    }

    /// Whether its former names lead to it or stay reserved. A state that was deleted without resources needs none.
    fn keeps_names(&self) -> bool {
        self.deleted.is_none() || (!self.erasing && self.may_have_resources())
    }
}

/// The head of a state without a version.
pub(super) fn new_head(ctx: &Context, caller: &Caller, address: &StateAddress, policy: Policy) -> StateHead {
    StateHead {
        address: address.clone(),
        created: ctx.now(),
        created_by: caller.user.login.clone(),
        version: 0,
        current: None,
        last_write: None,
        under: None,
        policy,
        labels: Labels::new(),
        has_schemas: false,
        deleted: None,
        erasing: false,
        protection: None,
        trail: None,
    }
}

fn create_writes(ctx: &Context, id: StateId, head: &StateHead, former: Vec<Write>) -> (Revision, Vec<Write>) {
    let revision = ctx.ids.revision();
    let entry = entry_of(id, head);
    let mut writes = vec![
        put(StateHead::key(id), Expect::Absent, revision, head),
        store::put(ctx, StateEntry::key(&head.address), Expect::Absent, &entry),
    ];
    writes.extend(former);
    (revision, writes)
}

/// Finds a state, or creates one for a client's first lock or first write. It gets no labels, even if the
/// organization demands some: a client cannot send any, and its write must not be lost for that.
///
/// # Errors
/// As [`find`], so a reserved name is not taken; `AccessError::NotAllowed` if the state does not exist and the caller
/// may not create one.
pub async fn find_or_create(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<WithLock, Error> {
    let mut attempts = Attempts::at("the state's name");
    loop {
        attempts.begin()?;
        let former = match look_up(ctx, caller, state, true).await? {
            Found::State(found) => return Ok(*found),
            Found::Nothing(former) => former,
        };
        let StateRef::Name(address) = state else {
            return Err(StateError::NotFound(state.to_string()).into());
        };
        let (standing, _) = caller.on_state_name(ctx, address).await?;
        standing.check(Right::Apply, "creating a state")?;
        let former = vec![Former::take(FormerStateName::key(address), former)];
        match make(ctx, None, new_head(ctx, caller, address, Policy::default()), former).await {
            Ok(Located { id, head }) => return Ok(WithLock { id, head, lock: None }),
            // Another request created it at the same time.
            Err(Error::State(StateError::Exists(_))) => {}
            Err(error) => return Err(error),
        }
    }
}

/// What lists show of a state.
pub(super) fn entry_of(id: StateId, head: &StateHead) -> StateEntry {
    let current = head.current.as_ref();
    StateEntry {
        id,
        version: head.version,
        last_write: head.last_write,
        serial: current.and_then(|kept| kept.serial),
        resource_count: current.and_then(|kept| kept.resource_count),
        bytes: current.map_or(0, |kept| kept.bytes),
        labels: head.labels.clone(),
    }
}

/// The write of the list's entry, which goes with a write of the head. Every write of an entry also moves the head,
/// so it needs no condition.
pub(super) fn entry_write(ctx: &Context, id: StateId, head: &StateHead) -> Write {
    let key = StateEntry::key(&head.address);
    store::put(ctx, key, Expect::Any, &entry_of(id, head))
}

/// A state in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The state's address.
    pub address: StateAddress,
    /// What lists show.
    pub entry: StateEntry,
}

/// Which states a list shows.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only the states of this project.
    pub project: Option<ProjectName>,
    /// Only the states whose labels match.
    pub filter: Option<Filter>,
    /// Only the states with these labels. The values are compared as text, whatever their type.
    pub labels: Vec<(LabelKey, String)>,
}

impl ListFilter {
    fn shows(&self, labels: &Labels) -> bool {
        let has = |(key, text): &(LabelKey, String)| {
            labels.get(key).is_some_and(|value| value.to_string() == *text)
        };
        self.filter.as_ref().is_none_or(|filter| filter.finds(labels)) && self.labels.iter().all(has)
    }
}

/// One page of an organization's states, by project and name, with the start of the next page. One query, or one for each
/// range of names if grants name a few. The filter may leave a page empty although others follow.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    filter: &ListFilter,
    after: Option<String>,
) -> Result<(Vec<Listed>, Option<String>), Error> {
    let sight = caller.lists(ctx, org).await?;
    let names = &sight.names();
    let (all, listed) = (StateEntry::of_org(org, None), StateEntry::of_org(org, filter.project.as_ref()));
    let (items, next) =
        page::read_named(ctx, &Named { all, listed, end: "", names }, after, LIST_PAGE).await?;
    let mut listed = Vec::new();
    for item in &items {
        let one = read_name(org, item)?;
        let unit = Unit::state(&one.address, Tags::Labels(&one.entry.labels));
        if filter.shows(&one.entry.labels) && sight.shows(&unit) {
            listed.push(one);
        }
    }
    Ok((listed, next))
}

/// A deleted state that can be undeleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDeleted {
    /// The address before the deletion.
    pub address: StateAddress,
    /// The record of the deletion.
    pub deleted: DeletedState,
    /// The earliest time at which a sweep may erase it.
    pub until: Timestamp,
}

/// Which deleted states a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedFilter {
    /// Only the states of this project.
    pub project: Option<ProjectName>,
    /// Within that project, only the states that had this name.
    pub state: Option<StateName>,
}

/// One page of an organization's deleted states that can be undeleted, by their former names, with the start of the
/// next page. Queries as [`list`].
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn list_deleted(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    filter: &DeletedFilter,
    after: Option<String>,
) -> Result<(Vec<ListedDeleted>, Option<String>), Error> {
    let sight = caller.lists(ctx, org).await?;
    let names = &sight.names();
    let all = DeletedState::of_org(org, None, None);
    let listed = DeletedState::of_org(org, filter.project.as_ref(), filter.state.as_ref());
    let (items, next) =
        page::read_named(ctx, &Named { all, listed, end: "#", names }, after, LIST_PAGE).await?;
    let listed = items
        .iter()
        .map(|item| {
            let (project, state) = DeletedState::name_in(&item.key)?;
            let address = StateAddress { org: org.clone(), project, state };
            let deleted = DeletedState::decode(&item.value)?;
            let until = undeletable_until(ctx, deleted.at);
            Ok(ListedDeleted { address, deleted, until })
        })
        .filter(|one: &Result<ListedDeleted, Error>| {
            one.as_ref().map_or(true, |one| {
                sight.shows(&Unit::state(&one.address, Tags::Labels(&one.deleted.entry.labels)))
            })
        })
        .collect::<Result<_, Error>>()?;
    Ok((listed, next))
}

fn read_name(org: &OrgName, item: &Item) -> Result<Listed, Error> {
    let (project, state) = StateEntry::name_in(&item.key)?;
    let address = StateAddress { org: org.clone(), project, state };
    Ok(Listed { address, entry: StateEntry::decode(&item.value)? })
}

/// All states of an organization.
pub(super) async fn all(ctx: &Context, org: &OrgName) -> Result<Vec<Listed>, Error> {
    let items = store::query_all(ctx, StateEntry::of_org(org, None), usize::MAX).await?;
    items.iter().map(|item| read_name(org, item)).collect()
}

/// Changes to a state other than to its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edit {
    /// A new name in the same organization.
    pub address: Option<StateAddress>,
    /// A new policy.
    pub policy: Option<Policy>,
    /// Labels to set and to remove.
    pub labels: LabelChanges,
}

/// Renames a state, or changes its labels or what its owner demands of writers. Its id stays. Its old name leads to
/// it until another state takes that name.
///
/// # Errors
/// [`StateError::Locked`] for a new name while the lock is held, because the holder may have read the old one;
/// [`StateError::Deleted`] for a reserved name; [`StateError::Exists`] for a taken one; [`StateError::OtherOrganization`];
/// [`StateError::NotFound`]; `AccessError::NotAllowed` for a new name or policy, which need a higher role than labels;
/// [`Error::Invalid`] for labels that the organization does not allow.
pub async fn edit(ctx: &Context, caller: &Caller, state: &StateRef, edit: &Edit) -> Result<Located, Error> {
    let mut attempts = Attempts::at("the state");
    loop {
        attempts.begin()?;
        let found = look_up(ctx, caller, state, edit.address.is_some()).await?.state();
        let WithLock { id, head, lock } = found.ok_or_else(|| StateError::NotFound(state.to_string()))?;
        let standing = caller.on_state(ctx, &head.value.address, &head.value.labels).await?;
        if edit.address.is_some() || edit.policy.is_some() {
            standing.check(Right::Member, "another name or policy of a state")?;
        }
        let mut next = head.value.clone();
        next.policy = edit.policy.unwrap_or(next.policy);
        if let Some(address) = &edit.address {
            if address.org != next.address.org {
                return Err(StateError::OtherOrganization.into());
            }
            next.address = address.clone();
        }
        if !edit.labels.is_empty() {
            next.labels = merged(&head.value.labels, &edit.labels).map_err(InvalidInput::from)?;
            let is_changed = |key: &&LabelKey| head.value.labels.get(*key) != next.labels.get(*key);
            let changed = edit.labels.keys().filter(is_changed).map(LabelKey::as_str);
            standing.check_tags(ctx, changed).await?;
            label_policy::judge(ctx, &head.value.address.org, &head.value.labels, &next.labels).await?;
        }
        let is_renamed = next.address != head.value.address;
        let mut following = Following::default();
        if is_renamed {
            let to = caller.on_state(ctx, &next.address, &next.labels).await?;
            to.check(Right::Member, "a new name")?;
            if to.has(Right::Admin) {
                // Admins give others rights on it, and lift its protection.
                standing.check(Right::Admin, "renaming a state to where you are an admin")?;
            }
            to.check_reached(ctx, &Unit::state(&next.address, Tags::Labels(&next.labels))).await?;
            let (from, to) = (&head.value.address, &next.address);
            let (from, to) = (Unit::state(from, Tags::None), Unit::state(to, Tags::None));
            let org = &next.address.org;
            // Boxed because its future is large, and few states have grants of their own.
            following = Box::pin(renames::follow(ctx, caller, org, Kind::State, &from, &to)).await?;
        }
        let entry = audit::entry(ctx, "state.edit", &About::State(&head.value.address));
        let entry = entry.adding(&following.detail());
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        next.trail = rider.mark();
        let revision = ctx.ids.revision();
        let mut writes = vec![put(StateHead::key(id), head.unchanged(), revision, &next)];
        if is_renamed {
            if let Some(holder) = lock.as_ref().and_then(|lock| lock.value.holder.clone()) {
                return Err(StateError::Locked(Box::new(holder)).into());
            }
            let entry = entry_of(id, &next);
            writes.push(store::put(ctx, StateEntry::key(&next.address), Expect::Absent, &entry));
            writes.push(layout::delete(StateEntry::key(&head.value.address), Expect::Any));
            writes.extend(leave(ctx, id, &head.value.address));
            let former = former(ctx, &next.address, true).await?;
            match former.state {
                // The state's own former name: the item continues to lead to it.
                Some(own) if own.id == id => {}
                Some(other) if other.head.value.deleted.is_some() => {
                    return Err(reserved_name(ctx, &next.address, other).await?);
                }
                _ => writes.extend(former.take_unlocked(&next.address)?),
            }
            writes.push(check(StateLock::key(id), lock.as_ref().map_or(Expect::Absent, Stored::unchanged)));
            writes.append(&mut following.writes);
        } else if next.labels != head.value.labels {
            writes.push(entry_write(ctx, id, &next));
        }
        match audit::commit(ctx, writes, rider).await? {
            Ok(()) => {
                ctx.memory.state_names.forget(&head.value.address);
                following.committed(ctx, &next.address.org);
                return Ok(Located { id, head: Stored { value: next, revision } });
            }
            Err(refusal) if is_renamed && refusal.index == 1 => {
                return Err(StateError::Exists(next.address.to_string()).into());
            }
            Err(_) => {}
        }
    }
}

/// The writes that make a former name lead to its state.
fn leave(ctx: &Context, id: StateId, address: &StateAddress) -> [Write; 2] {
    let entry = FormerStateNameEntry { address: address.clone() };
    [
        store::put(ctx, FormerStateName::key(address), Expect::Any, &FormerStateName { id }),
        store::put(ctx, FormerStateNameEntry::key(id, address), Expect::Any, &entry),
    ]
}

/// The head of a state that is deleted now.
fn hidden(ctx: &Context, head: &StateHead) -> StateHead {
    StateHead { deleted: Some(ctx.now()), ..head.clone() }
}

/// The writes that hide a state, except that of its name.
fn hide(
    ctx: &Context,
    caller: &Caller,
    id: StateId,
    head: &Stored<StateHead>,
    lock: Option<&Stored<StateLock>>,
    hidden: &StateHead,
) -> Vec<Write> {
    let at = hidden.deleted.unwrap_or_else(|| ctx.now());
    let deleted = DeletedState { at, by: caller.requester(), entry: entry_of(id, &head.value) };
    let unlocked = lock.map_or(Expect::Absent, Stored::unchanged);
    let mut writes = vec![
        store::put(ctx, StateHead::key(id), head.unchanged(), hidden),
        check(StateLock::key(id), unlocked),
    ];
    let key = DeletedState::key(&head.value.address, id);
    writes.extend(deletion(ctx, key, &deleted, &Due::State(id)));
    writes
}

/// Deletes a state: hides it, and keeps its versions as long as those of a deleted stack. Until then it can be
/// undeleted by its id, and its name is reserved unless it has no resources.
///
/// # Errors
/// [`StateError::Protected`] also if forced, [`StateError::Locked`] while its lock is held,
/// [`StateError::HasResources`] unless forced.
pub async fn delete(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    force: bool,
) -> Result<StateAddress, Error> {
    let mut attempts = Attempts::at("the state");
    loop {
        attempts.begin()?;
        let WithLock { id, head, lock } = locate_with_lock(ctx, caller, state).await?;
        store::protection::check_state(&head.value)?;
        if let Some(holder) = lock.as_ref().and_then(|lock| lock.value.holder.clone()) {
            return Err(StateError::Locked(Box::new(holder)).into());
        }
        let current = head.value.current.as_ref();
        match current.and_then(|kept| kept.resource_count) {
            Some(count @ 1..) if !force => return Err(StateError::HasResources(count).into()),
            _ => {}
        }
        let entry = audit::entry(ctx, "state.delete", &About::State(&head.value.address));
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let deleted = StateHead { trail: rider.mark(), ..hidden(ctx, &head.value) };
        let mut writes = hide(ctx, caller, id, &head, lock.as_ref(), &deleted);
        writes.push(layout::delete(StateEntry::key(&head.value.address), Expect::Any));
        if deleted.keeps_names() {
            writes.extend(leave(ctx, id, &head.value.address));
        }
        if audit::commit(ctx, writes, rider).await?.is_ok() {
            ctx.memory.state_names.forget(&head.value.address);
            return Ok(head.value.address);
        }
    }
}

/// Undeletes a state under its former name, with its versions and its policy. If an empty state without a lock has
/// the name now, that state is deleted instead.
///
/// # Errors
/// [`StateError::NotFound`] if there is no such state, [`StateError::Exists`] and [`StateError::NameLeadsTo`] if the
/// name is taken or leads to another state.
pub async fn undelete(ctx: &Context, caller: &Caller, id: StateId) -> Result<Located, Error> {
    let missing = || Error::State(StateError::NotFound(id.to_string()));
    let mut attempts = Attempts::at("the state");
    loop {
        attempts.begin()?;
        let head = store::read(ctx, &StateHead::key(id)).await?.ok_or_else(missing)?;
        let StateHead { address, labels, .. } = &head.value;
        caller.admit(caller.on_state(ctx, address, labels).await, missing)?;
        if head.value.erasing {
            return Err(missing());
        }
        if head.value.deleted.is_none() {
            return Ok(Located { id, head });
        }
        let entry = audit::entry(ctx, "state.undelete", &About::State(&head.value.address));
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let back = StateHead { deleted: None, trail: rider.mark(), ..head.value.clone() };
        let name_key = StateEntry::key(&back.address);
        let taken = || Error::State(StateError::Exists(back.address.to_string()));
        let (in_its_place, displaced) = match store::read(ctx, &name_key).await? {
            None => (Expect::Absent, Vec::new()),
            Some(name) => {
                let other = read_state(ctx, name.value.id, true).await?.ok_or_else(taken)?;
                (name.unchanged(), displace(ctx, caller, other).ok_or_else(taken)?)
            }
        };
        let Former { state, expect } = former(ctx, &back.address, false).await?;
        let revision = ctx.ids.revision();
        let entry = entry_of(id, &back);
        let mut writes = vec![
            put(StateHead::key(id), head.unchanged(), revision, &back),
            store::put(ctx, name_key, in_its_place, &entry),
            // Does not exist if an older program deleted the state.
            layout::delete(DeletedState::key(&back.address, id), Expect::Any),
        ];
        match state {
            Some(own) if own.id == id => {}
            Some(other) => {
                let other = other.head.value.address;
                return Err(
                    StateError::NameLeadsTo { name: Box::new(back.address), other: Box::new(other) }.into()
                );
            }
            None => writes.push(Former::take(FormerStateName::key(&back.address), expect)),
        }
        writes.extend(displaced);
        if audit::commit(ctx, writes, rider).await?.is_ok() {
            ctx.memory.state_names.forget(&back.address);
            return Ok(Located { id, head: Stored { value: back, revision } });
        }
    }
}

/// The writes that delete a state whose name another one takes, except that of the name. `None` for a state that was
/// ever written, is locked or is protected.
fn displace(ctx: &Context, caller: &Caller, state: WithLock) -> Option<Vec<Write>> {
    let WithLock { id, head, lock } = state;
    let is_held = lock.as_ref().is_some_and(|lock| lock.value.holder.is_some());
    let is_protected = head.value.protection.is_some();
    if head.value.version > 0 || head.value.deleted.is_some() || is_held || is_protected {
        return None;
    }
    let deleted = hidden(ctx, &head.value);
    Some(hide(ctx, caller, id, &head, lock.as_ref(), &deleted))
}
