//! Keys of items and blobs. No name or identifier holds `#` or `/`, so the parts cannot run into each other.

use uuid::Uuid;

use crate::domain::ids::{EdgeId, EnvironmentId, KeyOwner, SessionId, StackId, StateId, UpdateId};
use crate::domain::names::{
    EnvironmentAddress, EnvironmentName, Login, OrgName, ProjectName, StackAddress, StackName, StateAddress,
    StateName, TokenName,
};
use crate::layout::records::Due;
use crate::ports::{BlobKey, ItemKey, Timestamp};

/// Partitions that due items are spread over.
pub const DUE_SHARDS: u8 = 4;

/// Makes the item keys.
pub struct ItemKeys;

/// The sort key of records that stand alone in their partition.
const META: &str = "META";

/// The partition that says which users and organizations there are. Operators ask it; no request does.
const DIRECTORY: &str = "DIRECTORY";

impl ItemKeys {
    /// An organization.
    pub fn org(org: &OrgName) -> ItemKey {
        ItemKey::new(format!("ORG#{org}"), META)
    }

    /// A membership.
    pub fn member(org: &OrgName, login: &Login) -> ItemKey {
        ItemKey::new(format!("ORG#{org}"), format!("MEMBER#{login}"))
    }

    /// The partition and the sort prefix of an organization's memberships.
    pub fn members(org: &OrgName) -> (String, String) {
        (format!("ORG#{org}"), "MEMBER#".to_owned())
    }

    /// The login in a membership's sort key.
    pub fn parse_member_sort(sort: &str) -> Option<Login> {
        Login::parse(sort.strip_prefix("MEMBER#")?).ok()
    }

    /// A stack's name, which leads to its id, with what lists show of it.
    pub fn name(address: &StackAddress) -> ItemKey {
        ItemKey::new(format!("ORG#{}", address.org), format!("STACK#{}/{}", address.project, address.stack))
    }

    /// A name that a stack had before: the ciphertexts of its old versions are to be opened under it.
    pub fn alias(address: &StackAddress) -> ItemKey {
        ItemKey::new(format!("ORG#{}", address.org), format!("ALIAS#{}/{}", address.project, address.stack))
    }

    /// The partition and the sort prefix of an organization's stack names, of one project or of all.
    pub fn names(org: &OrgName, project: Option<&ProjectName>) -> (String, String) {
        let prefix = project.map_or_else(|| "STACK#".to_owned(), |project| format!("STACK#{project}/"));
        (format!("ORG#{org}"), prefix)
    }

    /// The project and the stack in a name's sort key.
    pub fn parse_name_sort(sort: &str) -> Option<(ProjectName, StackName)> {
        let (project, stack) = sort.strip_prefix("STACK#")?.split_once('/')?;
        Some((ProjectName::parse(project).ok()?, StackName::parse(stack).ok()?))
    }

    /// A stack that was removed under this name.
    pub fn removed(address: &StackAddress, stack: StackId) -> ItemKey {
        ItemKey::new(
            format!("ORG#{}", address.org),
            format!("REMOVED#{}/{}#{stack}", address.project, address.stack),
        )
    }

    /// The partition and the sort prefix of an organization's removed stacks, of one name or of all.
    pub fn all_removed(org: &OrgName, name: Option<(&ProjectName, &StackName)>) -> (String, String) {
        let prefix = name
            .map_or_else(|| "REMOVED#".to_owned(), |(project, stack)| format!("REMOVED#{project}/{stack}#"));
        (format!("ORG#{org}"), prefix)
    }

    /// The project and the stack in a removed stack's sort key.
    pub fn parse_removed_sort(sort: &str) -> Option<(ProjectName, StackName)> {
        let (name, _) = sort.strip_prefix("REMOVED#")?.split_once('#')?;
        let (project, stack) = name.split_once('/')?;
        Some((ProjectName::parse(project).ok()?, StackName::parse(stack).ok()?))
    }

    /// A stack's head.
    pub fn head(stack: StackId) -> ItemKey {
        ItemKey::new(format!("STACK#{stack}"), "HEAD")
    }

    /// The outputs of a stack's current version.
    pub fn outputs(stack: StackId) -> ItemKey {
        ItemKey::new(format!("STACK#{stack}"), "OUTPUTS")
    }

    /// One published version, which is one history entry.
    pub fn version(stack: StackId, version: u64) -> ItemKey {
        ItemKey::new(format!("STACK#{stack}"), format!("V#{version:020}"))
    }

    /// The partition and the sort prefix of a stack's versions.
    pub fn versions(stack: StackId) -> (String, String) {
        (format!("STACK#{stack}"), "V#".to_owned())
    }

    /// A preview, in the list of those that started from a version of a stack, by when it was created.
    pub fn preview(stack: StackId, version: u64, created: Timestamp, update: UpdateId) -> ItemKey {
        let sort = format!("P#{version:020}#{:020}#{update}", created.0.max(0));
        ItemKey::new(format!("STACK#{stack}"), sort)
    }

    /// The partition and the sort prefix of the previews that started from a version of a stack.
    pub fn previews(stack: StackId, version: u64) -> (String, String) {
        (format!("STACK#{stack}"), format!("P#{version:020}#"))
    }

    /// The number in a version's sort key.
    pub fn parse_version_sort(sort: &str) -> Option<u64> {
        sort.strip_prefix("V#")?.parse().ok()
    }

    /// The stack in the partition of a head, a version, and what else lies with them.
    pub fn parse_stack_partition(partition: &str) -> Option<StackId> {
        StackId::parse(partition.strip_prefix("STACK#")?)
    }

    /// The entry of an update in its stack's list.
    pub fn update_entry(stack: StackId, update: UpdateId) -> ItemKey {
        ItemKey::new(format!("STACK#{stack}"), format!("U#{update}"))
    }

    /// The partition and the sort prefix of a stack's list of updates.
    pub fn update_entries(stack: StackId) -> (String, String) {
        (format!("STACK#{stack}"), "U#".to_owned())
    }

    /// The update in the sort key of its entry.
    pub fn parse_update_entry_sort(sort: &str) -> Option<UpdateId> {
        UpdateId::parse(sort.strip_prefix("U#")?)
    }

    /// The entry of a former name in its stack's list.
    pub fn former_name(stack: StackId, address: &StackAddress) -> ItemKey {
        ItemKey::new(format!("STACK#{stack}"), format!("FORMER#{address}"))
    }

    /// The partition and the sort prefix of a stack's list of former names.
    pub fn former_names(stack: StackId) -> (String, String) {
        (format!("STACK#{stack}"), "FORMER#".to_owned())
    }

    /// The partition and the sort prefix of an owner's wrapped data keys.
    pub fn data_keys(owner: impl Into<KeyOwner>) -> (String, String) {
        (data_key_partition(owner.into()), String::new())
    }

    /// Whose data keys lie in this partition.
    pub fn parse_data_key_partition(partition: &str) -> Option<KeyOwner> {
        let id = partition.strip_prefix("KEY#")?;
        if let Some(id) = id.strip_prefix(STATE_KEY) {
            return StateId::parse(id).map(KeyOwner::State);
        }
        match id.strip_prefix(ENVIRONMENT_KEY) {
            Some(id) => EnvironmentId::parse(id).map(KeyOwner::Environment),
            None => StackId::parse(id).map(KeyOwner::Stack),
        }
    }

    /// An owner's wrapped data key.
    pub fn data_key(owner: impl Into<KeyOwner>, key: u32) -> ItemKey {
        ItemKey::new(data_key_partition(owner.into()), format!("{key:010}"))
    }

    /// A Terraform state's name, which leads to its id, with what lists show of it.
    pub fn state_name(address: &StateAddress) -> ItemKey {
        ItemKey::new(format!("ORG#{}", address.org), format!("TFSTATE#{}/{}", address.project, address.state))
    }

    /// The partition and the sort prefix of an organization's state names, of one project or of all.
    pub fn state_names(org: &OrgName, project: Option<&ProjectName>) -> (String, String) {
        let prefix = project.map_or_else(|| "TFSTATE#".to_owned(), |project| format!("TFSTATE#{project}/"));
        (format!("ORG#{org}"), prefix)
    }

    /// The project and the state in a name's sort key.
    pub fn parse_state_name_sort(sort: &str) -> Option<(ProjectName, StateName)> {
        let (project, state) = sort.strip_prefix("TFSTATE#")?.split_once('/')?;
        Some((ProjectName::parse(project).ok()?, StateName::parse(state).ok()?))
    }

    /// An edge between two states of an organization.
    pub fn state_edge(org: &OrgName, edge: EdgeId) -> ItemKey {
        ItemKey::new(format!("ORG#{org}"), format!("TFEDGE#{edge}"))
    }

    /// The partition and the sort prefix of the edges between an organization's states.
    pub fn state_edges(org: &OrgName) -> (String, String) {
        (format!("ORG#{org}"), "TFEDGE#".to_owned())
    }

    /// The edge in its sort key.
    pub fn parse_state_edge_sort(sort: &str) -> Option<EdgeId> {
        EdgeId::parse(sort.strip_prefix("TFEDGE#")?)
    }

    /// What moves with every change of an organization's edges.
    pub fn state_graph(org: &OrgName) -> ItemKey {
        ItemKey::new(format!("ORG#{org}"), "TFGRAPH")
    }

    /// A state that was removed under this name.
    pub fn removed_state(address: &StateAddress, state: StateId) -> ItemKey {
        ItemKey::new(
            format!("ORG#{}", address.org),
            format!("TFREMOVED#{}/{}#{state}", address.project, address.state),
        )
    }

    /// The partition and the sort prefix of an organization's removed states: of all, of one project, or of one name.
    pub fn removed_states(
        org: &OrgName,
        project: Option<&ProjectName>,
        state: Option<&StateName>,
    ) -> (String, String) {
        let prefix = match (project, state) {
            (None, _) => "TFREMOVED#".to_owned(),
            (Some(project), None) => format!("TFREMOVED#{project}/"),
            (Some(project), Some(state)) => format!("TFREMOVED#{project}/{state}#"),
        };
        (format!("ORG#{org}"), prefix)
    }

    /// The project and the state in a removed state's sort key.
    pub fn parse_removed_state_sort(sort: &str) -> Option<(ProjectName, StateName)> {
        let (name, _) = sort.strip_prefix("TFREMOVED#")?.split_once('#')?;
        let (project, state) = name.split_once('/')?;
        Some((ProjectName::parse(project).ok()?, StateName::parse(state).ok()?))
    }

    /// A name that a state had before it was renamed, or had when it was removed with resources.
    pub fn former_state_name(address: &StateAddress) -> ItemKey {
        ItemKey::new(
            format!("ORG#{}", address.org),
            format!("TFFORMER#{}/{}", address.project, address.state),
        )
    }

    /// The project and the state in a former name's sort key.
    pub fn parse_former_state_name_sort(sort: &str) -> Option<(ProjectName, StateName)> {
        let (project, state) = sort.strip_prefix("TFFORMER#")?.split_once('/')?;
        Some((ProjectName::parse(project).ok()?, StateName::parse(state).ok()?))
    }

    /// The entry of a former name in its state's list.
    pub fn state_former_entry(state: StateId, address: &StateAddress) -> ItemKey {
        ItemKey::new(format!("TFSTATE#{state}"), format!("FORMER#{}/{}", address.project, address.state))
    }

    /// The partition and the sort prefix of a state's list of former names.
    pub fn state_former_entries(state: StateId) -> (String, String) {
        (format!("TFSTATE#{state}"), "FORMER#".to_owned())
    }

    /// An environment's head.
    pub fn environment(address: &EnvironmentAddress) -> ItemKey {
        ItemKey::new(format!("ORG#{}", address.org), format!("ENV#{}/{}", address.project, address.name))
    }

    /// The partition and the sort prefix of the heads of an organization's environments.
    pub fn environments(org: &OrgName) -> (String, String) {
        (format!("ORG#{org}"), "ENV#".to_owned())
    }

    /// The project and the environment in a head's sort key.
    pub fn parse_environment_sort(sort: &str) -> Option<(ProjectName, EnvironmentName)> {
        let (project, name) = sort.strip_prefix("ENV#")?.split_once('/')?;
        Some((ProjectName::parse(project).ok()?, EnvironmentName::parse(name).ok()?))
    }

    /// An environment that was removed under this name.
    pub fn removed_environment(address: &EnvironmentAddress, environment: EnvironmentId) -> ItemKey {
        let (partition, prefix) = Self::removed_environments(address);
        ItemKey::new(partition, format!("{prefix}{environment}"))
    }

    /// The partition and the sort prefix of the removed environments of one name.
    pub fn removed_environments(address: &EnvironmentAddress) -> (String, String) {
        (format!("ORG#{}", address.org), format!("ENVREMOVED#{}/{}#", address.project, address.name))
    }

    /// The partition and the sort prefix of an organization's removed environments.
    pub fn all_removed_environments(org: &OrgName) -> (String, String) {
        (format!("ORG#{org}"), "ENVREMOVED#".to_owned())
    }

    /// The project and the environment in a removed environment's sort key.
    pub fn parse_removed_environment_sort(sort: &str) -> Option<(ProjectName, EnvironmentName)> {
        let (name, _) = sort.strip_prefix("ENVREMOVED#")?.split_once('#')?;
        let (project, name) = name.split_once('/')?;
        Some((ProjectName::parse(project).ok()?, EnvironmentName::parse(name).ok()?))
    }

    /// A revision of an environment.
    pub fn environment_revision(environment: EnvironmentId, revision: u64) -> ItemKey {
        ItemKey::new(format!("ENV#{environment}"), format!("V#{revision:020}"))
    }

    /// The partition and the sort prefix of an environment's revisions; their numbers are read as those of stacks' versions are.
    pub fn environment_revisions(environment: EnvironmentId) -> (String, String) {
        (format!("ENV#{environment}"), "V#".to_owned())
    }

    /// An environment that was opened.
    pub fn environment_session(session: SessionId) -> ItemKey {
        ItemKey::new(format!("OPENED#{session}"), META)
    }

    /// What an organization demands of the labels of its states.
    pub fn label_policy(org: &OrgName) -> ItemKey {
        ItemKey::new(format!("ORG#{org}"), "TFLABELS")
    }

    /// A Terraform state's head.
    pub fn state_head(state: StateId) -> ItemKey {
        ItemKey::new(format!("TFSTATE#{state}"), "HEAD")
    }

    /// The lock of a state.
    pub fn state_lock(state: StateId) -> ItemKey {
        ItemKey::new(format!("TFSTATE#{state}"), "LOCK")
    }

    /// The schemas of a state's outputs.
    pub fn state_schemas(state: StateId) -> ItemKey {
        ItemKey::new(format!("TFSTATE#{state}"), "SCHEMAS")
    }

    /// One version of a state.
    pub fn state_version(state: StateId, version: u64) -> ItemKey {
        ItemKey::new(format!("TFSTATE#{state}"), format!("V#{version:020}"))
    }

    /// The partition and the sort prefix of a state's versions; their numbers are read as those of stacks are.
    pub fn state_versions(state: StateId) -> (String, String) {
        (format!("TFSTATE#{state}"), "V#".to_owned())
    }

    /// A write of a state that was refused, by the start of the SHA-256 of its bytes: sent again, it is the same.
    pub fn rejected_state(state: StateId, id: &str) -> ItemKey {
        ItemKey::new(format!("TFSTATE#{state}"), format!("R#{id}"))
    }

    /// The partition and the sort prefix of the writes of a state that were refused.
    pub fn rejected_states(state: StateId) -> (String, String) {
        (format!("TFSTATE#{state}"), "R#".to_owned())
    }

    /// An update's record.
    pub fn update(update: UpdateId) -> ItemKey {
        ItemKey::new(format!("UPDATE#{update}"), META)
    }

    /// What an update was started with; written once.
    pub fn update_detail(update: UpdateId) -> ItemKey {
        ItemKey::new(format!("UPDATE#{update}"), "DETAIL")
    }

    /// The totals of an update, as its engine summed them up.
    pub fn update_summary(update: UpdateId) -> ItemKey {
        ItemKey::new(format!("UPDATE#{update}"), "SUMMARY")
    }

    /// A slot of an update's log, from 1.
    pub fn slot(update: UpdateId, slot: u64) -> ItemKey {
        ItemKey::new(format!("UPDATE#{update}"), format!("L#{slot:020}"))
    }

    /// The partition and the sort prefix of an update's log.
    pub fn slots(update: UpdateId) -> (String, String) {
        (format!("UPDATE#{update}"), "L#".to_owned())
    }

    /// The number in a slot's sort key.
    pub fn parse_slot_sort(sort: &str) -> Option<u64> {
        sort.strip_prefix("L#")?.parse().ok()
    }

    /// A batch of an update's events, by the sequence number of its first.
    pub fn events(update: UpdateId, first: u64, last: u64) -> ItemKey {
        ItemKey::new(format!("EVENTS#{update}"), format!("{first:020}-{last:020}"))
    }

    /// The partition and the sort prefix of an update's events.
    pub fn all_events(update: UpdateId) -> (String, String) {
        (format!("EVENTS#{update}"), String::new())
    }

    /// When the sweeper looks at something. Due items are spread over a few partitions by what they are about.
    pub fn due(due: &Due, at: Timestamp) -> ItemKey {
        let what = match due {
            Due::Update(update) => update.to_string(),
            Due::Versions(stack) => format!("versions-{stack}"),
            Due::Stack(stack) => format!("stack-{stack}"),
            Due::Outputs { key, .. } => format!("outputs-{key}"),
            Due::Blob { key, .. } => format!("blob-{key}"),
            Due::StateVersions(state) => format!("tf-versions-{state}"),
            Due::State(state) => format!("tf-{state}"),
            Due::RejectedState { state, id } => format!("tf-rejected-{state}-{id}"),
            Due::Environment { id, .. } => format!("env-{id}"),
        };
        let shard = what.bytes().last().unwrap_or(0) % DUE_SHARDS;
        ItemKey::new(Self::due_partition(shard), format!("{:020}#{what}", at.0.max(0)))
    }

    /// The partition of a shard of due items.
    pub fn due_partition(shard: u8) -> String {
        format!("DUE#{shard}")
    }

    /// The time in a due item's sort key.
    pub fn parse_due_sort(sort: &str) -> Option<Timestamp> {
        sort.split_once('#')?.0.parse().ok().map(Timestamp)
    }

    /// An access token or a client certificate, by a hex SHA-256 of it.
    pub fn token(hash: &str) -> ItemKey {
        ItemKey::new(format!("TOKEN#{hash}"), META)
    }

    /// A user.
    pub fn user(login: &Login) -> ItemKey {
        ItemKey::new(format!("USER#{login}"), META)
    }

    /// A user's access token, by its name.
    pub fn user_token(login: &Login, name: &TokenName) -> ItemKey {
        ItemKey::new(format!("USER#{login}"), format!("TOKEN#{name}"))
    }

    /// The partition and the sort prefix of a user's access tokens.
    pub fn user_tokens(login: &Login) -> (String, String) {
        (format!("USER#{login}"), "TOKEN#".to_owned())
    }

    /// A user's password: in a partition of its own, since much may read users.
    pub fn user_password(login: &Login) -> ItemKey {
        ItemKey::new(format!("PASSWORD#{login}"), META)
    }

    /// Where an earlier version stored a user's password.
    pub fn old_user_password(login: &Login) -> ItemKey {
        ItemKey::new(format!("USER#{login}"), "PASSWORD")
    }

    /// A user in the directory.
    pub fn listed_user(login: &Login) -> ItemKey {
        ItemKey::new(DIRECTORY, format!("USER#{login}"))
    }

    /// The partition and the sort prefix of the users in the directory.
    pub fn listed_users() -> (String, String) {
        (DIRECTORY.to_owned(), "USER#".to_owned())
    }

    /// The login in the sort key of a user in the directory.
    pub fn parse_listed_user_sort(sort: &str) -> Option<Login> {
        Login::parse(sort.strip_prefix("USER#")?).ok()
    }

    /// An organization in the directory.
    pub fn listed_org(org: &OrgName) -> ItemKey {
        ItemKey::new(DIRECTORY, format!("ORG#{org}"))
    }

    /// The partition and the sort prefix of the organizations in the directory.
    pub fn listed_orgs() -> (String, String) {
        (DIRECTORY.to_owned(), "ORG#".to_owned())
    }

    /// The name in the sort key of an organization in the directory.
    pub fn parse_listed_org_sort(sort: &str) -> Option<OrgName> {
        OrgName::parse(sort.strip_prefix("ORG#")?).ok()
    }

    /// Says that a copy into this store was begun and not finished.
    pub fn unfinished() -> ItemKey {
        ItemKey::new("STORE", "UNFINISHED")
    }

    /// Whether an item is about the place where a store lies, and not a part of what is stored: it is not copied.
    pub fn is_of_the_place(key: &ItemKey) -> bool {
        // The first is what the embedded store tells its master key by.
        key.partition == "FOLDER" || *key == Self::unfinished()
    }

    /// The public half of a key that signs update tokens.
    pub fn verifying_key(key: &str) -> ItemKey {
        ItemKey::new(KEYRING, key)
    }

    /// The partition and the sort prefix of the public halves of all keys that sign update tokens, or have.
    pub fn verifying_keys() -> (String, String) {
        (KEYRING.to_owned(), String::new())
    }

    /// Which key signs update tokens now, with its wrapped seed.
    pub fn signer() -> ItemKey {
        ItemKey::new("SIGNER", "CURRENT")
    }
}

const KEYRING: &str = "KEYRING";

/// Stands before the ids of states among the partitions of data keys.
const STATE_KEY: &str = "tf.";

/// Stands before the ids of environments there.
const ENVIRONMENT_KEY: &str = "env.";

fn data_key_partition(owner: KeyOwner) -> String {
    match owner {
        KeyOwner::Stack(id) => format!("KEY#{id}"),
        KeyOwner::State(id) => format!("KEY#{STATE_KEY}{id}"),
        KeyOwner::Environment(id) => format!("KEY#{ENVIRONMENT_KEY}{id}"),
    }
}

/// What was written of a state: its sealed text. `write` is random.
pub fn state_blob(state: StateId, write: Uuid) -> BlobKey {
    blob(format!("tf/{state}/{write}"))
}

/// The sealed index of what was written, where it is too long for an item.
pub fn state_index_blob(state: StateId, write: Uuid) -> BlobKey {
    blob(format!("tf/{state}/{write}-index"))
}

/// The snapshot that an update published.
pub fn snapshot_blob(stack: StackId, update: UpdateId) -> BlobKey {
    blob(format!("snap/{stack}/{update}"))
}

/// The outputs that an update published, where they are too long for an item.
pub fn outputs_blob(stack: StackId, update: UpdateId) -> BlobKey {
    blob(format!("snap/{stack}/{update}-outputs"))
}

/// The bytes of a log slot that is too long for an item. `part` is random, since two appends may try one slot.
pub fn log_blob(update: UpdateId, part: u64) -> BlobKey {
    blob(format!("log/{update}/{part:016x}"))
}

/// A batch of events that is too long for an item.
pub fn events_blob(update: UpdateId, first: u64, last: u64) -> BlobKey {
    blob(format!("events/{update}/{first}-{last}"))
}

/// What is written and removed to see whether blobs can be. Always the same bytes.
pub fn probe_blob() -> BlobKey {
    blob("probe/ready".to_owned())
}

fn blob(text: String) -> BlobKey {
    BlobKey::parse(&text).expect("fixed words, UUIDs and numbers are valid segments")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_a_stack_and_an_environment_of_one_id_have_keys_of_their_own() {
        let id = Uuid::from_u128(1);
        let owners = [
            KeyOwner::Stack(StackId::new(id)),
            KeyOwner::State(StateId::new(id)),
            KeyOwner::Environment(EnvironmentId::new(id)),
        ];
        let [stack, state, environment] = owners.map(|owner| ItemKeys::data_keys(owner).0);
        assert!(stack != state && state != environment && environment != stack);
        for (owner, partition) in owners.into_iter().zip([stack, state, environment]) {
            assert_eq!(ItemKeys::parse_data_key_partition(&partition), Some(owner));
        }
    }

    #[test]
    fn numbered_keys_sort_as_their_numbers() {
        let update = UpdateId::new(Uuid::from_u128(1));
        assert!(ItemKeys::slot(update, 9).sort < ItemKeys::slot(update, 10).sort);
        let longest = ItemKeys::slot(update, u64::MAX);
        assert_eq!(ItemKeys::parse_slot_sort(&longest.sort), Some(u64::MAX));
        let stack = StackId::new(Uuid::from_u128(1));
        assert!(ItemKeys::version(stack, 99).sort < ItemKeys::version(stack, 100).sort);
    }

    #[test]
    fn due_items_sort_by_their_time_and_tell_it() {
        let update = Due::Update(UpdateId::new(Uuid::from_u128(1)));
        let (early, late) = (Timestamp(9), Timestamp(10));
        assert!(ItemKeys::due(&update, early).sort < ItemKeys::due(&update, late).sort);
        assert_eq!(ItemKeys::parse_due_sort(&ItemKeys::due(&update, late).sort), Some(late));
    }

    #[test]
    fn a_removed_stack_is_found_by_its_name_and_not_by_a_longer_one() {
        let address = StackAddress::parse("acme", "web.site", "dev").unwrap();
        let key = ItemKeys::removed(&address, StackId::new(Uuid::from_u128(1)));
        let names = ItemKeys::parse_removed_sort(&key.sort).unwrap();
        assert_eq!(names, (address.project.clone(), address.stack.clone()));
        let (_, prefix) = ItemKeys::all_removed(&address.org, Some((&names.0, &names.1)));
        assert!(key.sort.starts_with(&prefix));
        let longer = StackAddress::parse("acme", "web.site", "dev-1").unwrap();
        assert!(!ItemKeys::removed(&longer, StackId::new(Uuid::from_u128(1))).sort.starts_with(&prefix));
    }

    #[test]
    fn a_stack_name_comes_back_from_its_sort_key() {
        let address = StackAddress::parse("acme", "web.site", "dev-1").unwrap();
        let key = ItemKeys::name(&address);
        assert_eq!(ItemKeys::parse_name_sort(&key.sort), Some((address.project, address.stack)));
    }
}
