//! What was written once stays readable: the examples in `testdata/formats`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use uuid::Uuid;

use super::record::Record;
use super::records::{
    Alias, ConfigValue, Detail, DirectoryEntry, Due, EnvironmentHead, EnvironmentRevision,
    EnvironmentSession, EnvironmentTag, EventBatch, FormerName, FormerStateName, Head, KeptState, LockOf,
    Member, Name, OpenedRevision, Org, OutputSchema, Outputs, Password, Payload, Preview, RejectedState,
    Removed, RemovedEnvironment, RemovedState, Retracted, RevisionTag, Signer, Snapshot, StackConfig,
    StateEdge, StateEntry, StateFormerEntry, StateGraph, StateHead, StateHolder, StateLock, StateSchemas,
    StateSource, StateVersion, StoredLabelPolicy, Summary, Token, TokenEntry, Unfinished, UpdateEntry, User,
    VerifyingKeyRecord, Version, WrappedDataKey, WrittenUnder,
};
use super::slot::{Content, Numbered, Slot};
use crate::domain::ids::{EnvironmentId, StackId, StateId, UpdateId};
use crate::domain::names::{
    EnvironmentAddress, EnvironmentTagName, InputName, Login, OrgName, OutputName, StackAddress,
    StateAddress, TokenName,
};
use crate::domain::role::Role;
use crate::domain::tfstate::{
    Changes, Ends, LabelKey, LabelNumber, LabelPolicy, LabelValue, Labels, LockInfo, Mark, Output, Policy,
    Refused, Standing, Validity,
};
use crate::domain::update::{Outcome, Requester, Seal, SealedBy, Status, Update, UpdateKind};
use crate::ports::Timestamp;

const CREATED: Timestamp = Timestamp(1_767_225_600_000_000_000);
const LATER: Timestamp = Timestamp(1_767_225_601_500_000_000);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/formats")
}

/// The files that were read, and the types that they were read as.
#[derive(Default)]
struct Read {
    files: BTreeSet<String>,
    types: BTreeSet<&'static str>,
}

impl Read {
    /// Reads an example and compares it. Where it is of the format in which that is written now, it is written again too.
    fn is<T: Record + PartialEq + Debug>(&mut self, file: &str, expected: &T, tail: &[u8]) {
        let bytes =
            Bytes::from(fs::read(folder().join(file)).unwrap_or_else(|error| panic!("{file}: {error}")));
        let (value, found) = T::decode_with(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!((&value, found.as_ref()), (expected, tail), "{file}");
        if bytes.first() == Some(&expected.format()) {
            let again = String::from_utf8_lossy(&expected.encode_with(tail)).into_owned();
            assert_eq!(
                again,
                String::from_utf8_lossy(&bytes),
                "{file}: what is written changed, so its format must"
            );
        }
        assert!(self.files.insert(file.to_owned()), "{file} twice");
        let name = std::any::type_name::<T>();
        self.types.insert(name.rsplit("::").next().unwrap_or(name));
    }
}

fn stack() -> StackId {
    StackId::new(Uuid::parse_str("00000000-0000-4000-8000-000000000001").unwrap())
}

fn update_id(last: u128) -> UpdateId {
    UpdateId::new(Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0000 + last))
}

fn login(login: &str) -> Login {
    Login::parse(login).unwrap()
}

fn token(expires: Option<Timestamp>) -> Token {
    Token {
        name: TokenName::parse("laptop").unwrap(),
        login: login("alice"),
        created: CREATED,
        expires,
        may: None,
    }
}

fn requester() -> Requester {
    Requester { login: login("alice"), token: TokenName::parse("laptop").unwrap() }
}

fn snapshot() -> Snapshot {
    Snapshot {
        blob: format!("snap/{}/{}", stack(), update_id(2)),
        sha256: "ab".repeat(32),
        bytes_gzip: 321,
        bytes_text: 1234,
        resource_count: 5,
        pending_count: 1,
        secrets_url: None,
    }
}

fn changes() -> BTreeMap<String, u64> {
    BTreeMap::from([("create".to_owned(), 2), ("same".to_owned(), 3)])
}

fn detail() -> Detail {
    let value = |string: &str, secret| ConfigValue { string: string.to_owned(), secret, object: false };
    Detail {
        message: "Ship it".to_owned(),
        environment: BTreeMap::from([("git.head".to_owned(), "0123abc".to_owned())]),
        config: BTreeMap::from([
            ("web:key".to_owned(), value("AQ==", true)),
            ("web:size".to_owned(), value("3", false)),
        ]),
    }
}

fn seal(outcome: Outcome, by: SealedBy) -> Seal {
    Seal { slot: 3, outcome, by, at: LATER, publisher: "server".to_owned() }
}

fn update(status: Status) -> Update {
    Update {
        stack: stack(),
        kind: UpdateKind::ResourceImport,
        dry_run: false,
        requester: requester(),
        user_made: None,
        created: CREATED,
        base_version: 7,
        journal_version: 2,
        renewed_by: Vec::new(),
        status,
    }
}

fn head() -> Head {
    Head {
        address: StackAddress::parse("acme", "web", "dev").unwrap(),
        created: CREATED,
        created_by: None,
        version: 7,
        snapshot: Some(snapshot()),
        running: Some(update_id(3)),
        last: Some(update_id(2)),
        deleted: None,
        config: None,
    }
}

fn state_id() -> StateId {
    StateId::parse("019b7c3a-0000-7000-8000-000000000001").unwrap()
}

fn kept() -> KeptState {
    KeptState {
        blob: format!("tf/{}/{}", state_id(), update_id(5)),
        blob_sha256: "ab".repeat(32),
        blob_bytes: 400,
        sha256: "cd".repeat(32),
        bytes: 1374,
        serial: Some(u64::MAX),
        lineage: Some("aaaaaaaa-0000-4000-8000-000000000001".to_owned()),
        terraform_version: Some("1.12.6".to_owned()),
        is_encrypted: false,
        resource_count: Some(2),
        output_count: Some(1),
    }
}

fn encrypted() -> KeptState {
    KeptState {
        serial: None,
        lineage: None,
        terraform_version: None,
        is_encrypted: true,
        resource_count: None,
        output_count: None,
        ..kept()
    }
}

fn state_holder(by_hand: bool) -> StateHolder {
    let text = str::to_owned;
    let info = LockInfo {
        id: text("1873bea7-f204-3479-5274-067339737120"),
        operation: text("OperationTypeApply"),
        info: text("maintenance"),
        who: text("alice@ci"),
        version: text("1.12.6"),
        created: text("2026-01-01T00:00:00.5Z"),
        path: String::new(),
    };
    StateHolder { info, by: requester(), user_made: None, since: CREATED, by_hand }
}

fn labels() -> Labels {
    let value = |text: &str| LabelValue::Text(text.to_owned());
    let labels = [
        ("critical", LabelValue::Bool(true)),
        ("env", value("prod")),
        ("ratio", LabelValue::Number(LabelNumber::new(-0.5).unwrap())),
        ("team/size", LabelValue::Number(LabelNumber::new(3.0).unwrap())),
    ];
    labels.map(|(key, value)| (label_key(key), value)).into()
}

fn label_key(key: &str) -> LabelKey {
    LabelKey::parse(key).unwrap()
}

fn label_policy() -> LabelPolicy {
    let keys = |keys: &[&str]| keys.iter().map(|key| label_key(key)).collect();
    let values = labels().into_values().collect();
    LabelPolicy {
        allowed_keys: Some(keys(&["env", "team"])),
        allowed_values: [(label_key("env"), values)].into(),
        reserved_prefixes: ["sys/".to_owned()].into(),
        required_keys: keys(&["env"]),
        immutable_keys: keys(&["team"]),
        max_keys: 8,
        max_value_length: 64,
    }
}

fn schemas() -> StateSchemas {
    let schema = |text: &str, inferred_from| OutputSchema {
        schema: serde_json::from_str(text).unwrap(),
        inferred_from,
        at: LATER,
        by: login("alice"),
    };
    let set = schema(r#"{"type":"string","pattern":"^https:"}"#, None);
    let inferred = schema(r#"{"type":"number"}"#, Some(3));
    StateSchemas { infer: true, outputs: [("count".to_owned(), inferred), ("url".to_owned(), set)].into() }
}

fn judged_outputs() -> Vec<Output> {
    let told = |status, message: Option<&str>, path: Option<&str>| {
        let validity =
            Validity { status, message: message.map(str::to_owned), path: path.map(str::to_owned) };
        Output { name: format!("{status:?}"), sensitive: false, mark: None, validity: Some(validity) }
    };
    vec![
        told(Standing::Valid, None, None),
        told(Standing::Invalid, Some("it is not of type string"), Some("$.a[0]")),
        told(Standing::Error, Some("it takes too many steps to check"), None),
        told(Standing::NotValidated, None, None),
    ]
}

fn read_states(read: &mut Read) {
    let address = StateAddress::parse("acme", "net", Some("prod")).unwrap();
    let id = state_id();
    let full = StateEntry {
        id,
        version: 3,
        last_write: Some(LATER),
        serial: Some(7),
        resource_count: Some(2),
        bytes: 1374,
        labels: Labels::new(),
    };
    read.is("state-entry.v1", &full, b"");
    let labelled = StateEntry { labels: labels(), ..full };
    read.is("state-entry-labelled.v1", &labelled, b"");
    let removed = RemovedState { at: LATER, by: requester(), entry: labelled };
    read.is("removed-state.v1", &removed, b"");
    read.is("former-state-name.v1", &FormerStateName { id }, b"");
    read.is("state-former-entry.v1", &StateFormerEntry { address: address.clone() }, b"");
    let policy = StoredLabelPolicy { version: 2, at: LATER, by: requester(), policy: label_policy() };
    read.is("label-policy.v1", &policy, b"");
    let new = StateHead {
        address,
        created: CREATED,
        created_by: login("alice"),
        version: 0,
        current: None,
        last_write: None,
        under: None,
        policy: Policy::default(),
        labels: Labels::new(),
        has_schemas: false,
        deleted: None,
        erasing: false,
    };
    read.is("state-head-new.v1", &new, b"");
    read.is("state-head-labelled.v1", &StateHead { labels: labels(), ..new.clone() }, b"");
    read.is("state-head-with-schemas.v1", &StateHead { has_schemas: true, ..new.clone() }, b"");
    let policy = Policy { delete_allowed: true, ..Policy::default() };
    read.is("state-head-deletable.v1", &StateHead { policy, ..new.clone() }, b"");
    let policy = Policy { plan_lock_expires_after_seconds: Some(0), ..Policy::default() };
    read.is("state-head-plan-lock.v1", &StateHead { policy, ..new.clone() }, b"");
    read.is("state-schemas.v1", &schemas(), b"");
    let lock = || "1873bea7-f204-3479-5274-067339737120".to_owned();
    let written = StateHead {
        version: 3,
        current: Some(kept()),
        last_write: Some(LATER),
        under: Some(WrittenUnder { lock: lock(), texts: vec!["cd".repeat(32)] }),
        policy: Policy {
            locks_required: true,
            strict: true,
            lock_expires_after_seconds: Some(3_600),
            ..Policy::default()
        },
        ..new.clone()
    };
    read.is("state-head.v1", &written, b"");
    read.is("state-head-erasing.v1", &StateHead { deleted: Some(LATER), erasing: true, ..new }, b"");
    let held = StateLock { holder: Some(state_holder(false)), ended: vec!["before".to_owned()] };
    read.is("state-lock.v1", &held, b"");
    let of_user = StateHolder { user_made: Some(CREATED), ..state_holder(false) };
    read.is("state-lock-of-user.v1", &StateLock { holder: Some(of_user), ended: Vec::new() }, b"");
    read.is("state-lock-by-hand.v1", &StateLock { holder: Some(state_holder(true)), ..held }, b"");
    read.is("state-lock-free.v1", &StateLock { holder: None, ended: vec![lock()] }, b"");
    let changes = Changes {
        added_count: 1,
        changed_count: 0,
        removed_count: 60,
        added: vec!["terraform_data.a".to_owned()],
        changed: Vec::new(),
        removed: vec!["terraform_data.b[0]".to_owned()],
    };
    let outputs = [("url", false), ("password", true)];
    let version = StateVersion {
        version: 3,
        at: LATER,
        began: None,
        by: requester(),
        source: StateSource::Written,
        lock: Some(LockOf {
            id: lock(),
            operation: "OperationTypeApply".to_owned(),
            who: "alice@ci".to_owned(),
            version: "1.12.6".to_owned(),
        }),
        kept: kept(),
        outputs: outputs
            .map(|(name, sensitive)| Output { name: name.to_owned(), sensitive, mark: None, validity: None })
            .to_vec(),
        index: Some(Payload::Inline),
        changes: Some(changes),
        serial_fell: true,
        lineage_changed: true,
    };
    read.is("state-version.v1", &version, b"\x01sealed");
    let mark = Mark { digest: "k7Qk0o0yJ1m5l7T3vZk2XQ".to_owned(), since: CREATED, version: 2 };
    let marked = StateVersion {
        began: Some(CREATED),
        outputs: vec![Output { name: "url".to_owned(), sensitive: false, mark: Some(mark), validity: None }],
        ..version.clone()
    };
    read.is("state-version-marked.v1", &marked, b"\x01sealed");
    let judged = StateVersion { outputs: judged_outputs(), ..version.clone() };
    read.is("state-version-judged.v1", &judged, b"\x01sealed");
    let index = Payload::Blob { key: format!("{}-index", kept().blob), sha256: "ef".repeat(32) };
    let restored = StateVersion {
        source: StateSource::Restored(1),
        lock: None,
        index: Some(index),
        serial_fell: false,
        lineage_changed: false,
        ..version
    };
    read.is("state-version-restored.v1", &restored, b"");
    let promoted = StateVersion {
        source: StateSource::Promoted("cd".repeat(16)),
        kept: encrypted(),
        outputs: Vec::new(),
        index: None,
        changes: None,
        ..restored
    };
    read.is("state-version-promoted.v1", &promoted, b"");
    let rejected = RejectedState {
        at: LATER,
        by: requester(),
        lock: Some(lock()),
        why: Refused::Displaced,
        version: 3,
        kept: kept(),
    };
    read.is("rejected-state.v1", &rejected, b"");
    let removed = RejectedState { lock: None, why: Refused::Removed, ..rejected };
    read.is("rejected-state-removed.v1", &removed, b"");
    let ends = Ends {
        producer: id,
        output: OutputName::parse("url").unwrap(),
        consumer: StateId::parse("019b7c3a-0000-7000-8000-000000000002").unwrap(),
        input: InputName::parse("net_url").unwrap(),
    };
    let edge = StateEdge { ends, created: CREATED, created_by: login("alice") };
    read.is("state-edge.v1", &edge, b"");
    read.is("state-edge-mock.v1", &edge, br#"{"a":1}"#);
    read.is("state-graph.v1", &StateGraph { edge_count: 1 }, b"");
    read.is("due-update.v3", &Due::Update(update_id(3)), b"");
    read.is("due-versions.v3", &Due::Versions(stack()), b"");
    read.is("due-stack.v3", &Due::Stack(stack()), b"");
    let outputs = format!("snap/{}/{}-outputs", stack(), update_id(2));
    read.is("due-outputs.v3", &Due::Outputs { stack: stack(), key: outputs }, b"");
    read.is("due-blob.v3", &Due::Blob { key: kept().blob, stack: None }, b"");
    read.is("due-state-versions.v3", &Due::StateVersions(id), b"");
    read.is("due-state.v3", &Due::State(id), b"");
    read.is("due-rejected-state.v3", &Due::RejectedState { state: id, id: "cd".repeat(16) }, b"");
}

fn read_environments(read: &mut Read) {
    let id = EnvironmentId::parse("00000000-0000-4000-8000-000000000005").unwrap();
    let address = EnvironmentAddress::parse("acme", "web", "prod").unwrap();
    let tag = |name: &str| EnvironmentTagName::parse(name).unwrap();
    let new = EnvironmentHead {
        id,
        created: CREATED,
        created_by: login("alice"),
        revision: 1,
        modified: CREATED,
        tags: BTreeMap::new(),
        revision_tags: BTreeMap::new(),
        is_protected: false,
    };
    read.is("environment-new.v1", &new, b"");
    let team =
        EnvironmentTag { value: "infra".to_owned(), created: CREATED, modified: LATER, by: login("bob") };
    let stable = RevisionTag { revision: 2, created: CREATED, modified: LATER, by: login("bob") };
    let head = EnvironmentHead {
        revision: 3,
        modified: LATER,
        tags: BTreeMap::from([(tag("team"), team)]),
        revision_tags: BTreeMap::from([(tag("stable"), stable)]),
        is_protected: true,
        ..new
    };
    read.is("environment.v1", &head, b"");
    let revision = EnvironmentRevision { created: CREATED, by: requester(), retracted: None };
    read.is("environment-revision.v1", &revision, b"values: {}\n");
    let retracted =
        Retracted { replacement: 3, at: LATER, by: login("bob"), reason: "a wrong region".to_owned() };
    let revision = EnvironmentRevision { retracted: Some(retracted), ..revision };
    read.is("environment-revision-retracted.v1", &revision, b"values: {}\n");
    read.is("removed-environment.v1", &RemovedEnvironment { at: LATER, by: login("alice"), head }, b"");
    let opened = |name: &str| OpenedRevision { name: name.to_owned(), id, revision: 3 };
    let session = EnvironmentSession {
        org: OrgName::parse("acme").unwrap(),
        opened: Some("web/prod".to_owned()),
        revisions: BTreeMap::from([(String::new(), opened("web/prod"))]),
        by: login("alice"),
        user_made: None,
        until: LATER,
    };
    read.is("opened-environment.v1", &session, b"");
    let of_user = EnvironmentSession { user_made: Some(CREATED), ..session.clone() };
    read.is("opened-environment-of-user.v1", &of_user, b"");
    let text = EnvironmentSession {
        opened: None,
        revisions: BTreeMap::from([("web/prod@stable".to_owned(), opened("web/prod@stable"))]),
        ..session
    };
    read.is("opened-text.v1", &text, b"\x01sealed");
    read.is("due-environment.v4", &Due::Environment { id, address }, b"");
    let config = StackConfig {
        environment: "web/prod".to_owned(),
        secrets_provider: "awskms://alias/key".to_owned(),
        encrypted_key: "AQID".to_owned(),
        encryption_salt: String::new(),
    };
    read.is("head-configured.v2", &Head { config: Some(config), ..self::head() }, b"");
}

fn read_all() -> Read {
    let mut read = Read::default();
    read_states(&mut read);
    read_environments(&mut read);
    let orgs = ["acme", "beta"].map(|org| OrgName::parse(org).unwrap()).to_vec();
    read.is("org.v1", &Org { created: CREATED }, b"");
    read.is("member.v1", &Member { role: Role::Admin }, b"");
    read.is("member-plain.v1", &Member { role: Role::Member }, b"");
    for (role, file) in [
        (Role::Outputs, "member-outputs.v2"),
        (Role::Plan, "member-plan.v2"),
        (Role::Apply, "member-apply.v2"),
    ] {
        read.is(file, &Member { role }, b"");
    }
    let user = User { login: login("alice"), created: CREATED, orgs, roles: BTreeMap::new() };
    read.is("user.v1", &user, b"");
    let [acme, beta] = [&user.orgs[0], &user.orgs[1]];
    read.is("user-admin.v1", &user.clone().as_member(acme, Role::Admin), b"");
    let with_roles = user.clone().as_member(acme, Role::Admin).as_member(beta, Role::Plan);
    read.is("user-with-roles.v2", &with_roles, b"");
    read.is("directory-entry.v1", &DirectoryEntry { created: CREATED }, b"");
    read.is("token.v1", &token(Some(LATER)), b"");
    let scoped = Token { may: Some(Role::Plan), ..token(None) };
    read.is("token-scoped.v2", &scoped, b"");
    let entry = TokenEntry { hash: "cd".repeat(32), certificate: None, token: scoped.clone() };
    read.is("token-entry-scoped.v1", &entry, b"");
    let entry = TokenEntry { hash: "cd".repeat(32), certificate: None, token: token(None) };
    read.is("token-entry.v1", &entry, b"");
    let entry = TokenEntry { certificate: Some("ef".repeat(32)), ..entry };
    read.is("token-entry-certificate.v1", &entry, b"");
    let hash =
        "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    read.is("password.v1", &Password { hash: hash.to_owned(), set: CREATED }, b"");
    let tags = BTreeMap::from([("owner".to_owned(), "web team".to_owned())]);
    let name =
        Name { id: stack(), tags, last_update: Some(LATER), resource_count: Some(5), is_updating: false };
    read.is("name.v1", &name, b"");
    read.is("name-updating.v1", &Name { is_updating: true, ..name.clone() }, b"");
    read.is("alias.v1", &Alias { id: stack() }, b"");
    read.is("head.v1", &head(), b"");
    let new = Head { version: 0, snapshot: None, running: None, last: None, deleted: Some(LATER), ..head() };
    read.is("head-new.v1", &new, b"");
    let addressed = Snapshot { secrets_url: Some("https://state.example.com".to_owned()), ..snapshot() };
    read.is("head-of-somebody.v1", &Head { created_by: Some(login("alice")), ..head() }, b"");
    read.is("head-addressed.v1", &Head { snapshot: Some(addressed.clone()), ..head() }, b"");
    let version = Version {
        version: 7,
        update: update_id(2),
        kind: UpdateKind::Update,
        outcome: Outcome::Failed,
        requester: requester(),
        started: CREATED,
        ended: LATER,
        snapshot: snapshot(),
        resource_changes: Some(changes()),
        skipped_count: 1,
        skipped: vec![(4, "no such operation".to_owned())],
        integrity_error: Some("a parent is missing".to_owned()),
        detail: detail(),
    };
    read.is("version.v1", &version, b"");
    read.is("version-renamed.v1", &Version { kind: UpdateKind::Rename, ..version.clone() }, b"");
    read.is("version-addressed.v1", &Version { snapshot: addressed, ..version }, b"");
    read.is("detail.v1", &detail(), b"");
    read.is("summary.v1", &Summary { resource_changes: changes() }, b"");

    read.is("update-not-started.v1", &update(Status::NotStarted), b"");
    let running = update(Status::Running { since: CREATED, until: LATER });
    read.is("update-running.v1", &running, b"");
    let renewed_by = vec!["ab".repeat(32), "cd".repeat(32)];
    let bound = Update { user_made: Some(CREATED), renewed_by, ..running };
    read.is("update-bound.v1", &bound, b"");
    let cancelled = seal(Outcome::Cancelled, SealedBy::Cancel(login("bob")));
    read.is("update-sealed.v1", &update(Status::Sealed { since: CREATED, seal: cancelled }), b"");
    let by = SealedBy::Expiry;
    let ended = Status::Ended { since: CREATED, at: LATER, outcome: Outcome::Succeeded, by };
    read.is("update-ended.v1", &update(ended), b"");

    let blob = |key: String| Payload::Blob { key, sha256: "ef".repeat(32) };
    read.is("outputs.v1", &Outputs { version: 7, payload: Payload::Inline }, br#"{"outputs":{"url":"x"}}"#);
    let events = EventBatch { count: 9, payload: blob(format!("events/{}/1-9", update_id(2))) };
    read.is("event-batch.v1", &events, b"");
    let slot = |content| Slot { at: LATER, content, made: None };
    read.is("slot-entries.v1", &slot(Content::Entries(Payload::Inline)), b"\x1f\x8b\x00gzip");
    let checkpoint = Content::Checkpoint(blob(format!("log/{}/00000000000000ff", update_id(2))));
    read.is("slot-checkpoint.v1", &slot(checkpoint.clone()), b"");
    read.is("slot-checkpoint-made.v1", &Slot { made: Some(CREATED), ..slot(checkpoint) }, b"");
    let numbered = |sequence, payload| Numbered { sequence, payload };
    let verbatim = Content::Verbatim(numbered(1, blob(format!("log/{}/00000000000000fe", update_id(2)))));
    read.is("slot-verbatim.v1", &slot(verbatim), b"");
    let delta = Content::Delta(numbered(2, Payload::Inline));
    read.is("slot-delta.v1", &slot(delta), b"\x1f\x8b\x00gzip");
    read.is("slot-seal.v1", &slot(Content::Seal(seal(Outcome::Succeeded, SealedBy::Client))), b"");

    let bytes: Vec<u8> = (0..33).collect();
    read.is("preview.v1", &Preview { update: update_id(4) }, b"");
    read.is("due.v1", &Due::Update(update_id(3)), b"");
    read.is("due-update.v2", &Due::Update(update_id(3)), b"");
    read.is("due-versions.v2", &Due::Versions(stack()), b"");
    read.is("due-stack.v2", &Due::Stack(stack()), b"");
    let outputs = format!("snap/{}/{}-outputs", stack(), update_id(2));
    read.is("due-outputs.v2", &Due::Outputs { stack: stack(), key: outputs }, b"");
    read.is("due-blob.v2", &Due::Blob { key: snapshot().blob, stack: Some(stack()) }, b"");
    let once = Due::Blob { key: format!("log/{}/00000000000000ff", update_id(2)), stack: None };
    read.is("due-blob-once.v2", &once, b"");
    read.is("update-entry.v1", &UpdateEntry { created: CREATED }, b"");
    read.is("former-name.v1", &FormerName { address: head().address }, b"");
    read.is("removed.v1", &Removed { at: LATER, by: login("alice"), name: name.clone() }, b"");
    read.is("data-key.v1", &WrappedDataKey { created: CREATED }, &bytes[1..17]);
    read.is("signer.v1", &Signer { key: "0123456789abcdef".to_owned(), created: CREATED }, &bytes[17..33]);
    let unfinished = Unfinished { source: "0123456789abcdef".to_owned(), begun: CREATED };
    read.is("unfinished.v1", &unfinished, b"");
    let verifying = VerifyingKeyRecord { created: CREATED, replaced: None };
    read.is("verifying-key.v1", &verifying, &bytes[..32]);
    let replaced = VerifyingKeyRecord { replaced: Some(LATER), ..verifying };
    read.is("verifying-key-replaced.v1", &replaced, &bytes[..32]);
    read
}

#[test]
fn every_format_that_was_ever_written_reads_as_what_it_meant() {
    let read = read_all();
    let files: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md" && !name.starts_with('.'))
        .collect();
    assert_eq!(files, read.files, "each example is read");
}

#[test]
fn every_record_has_an_example() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/layout");
    let mut records = BTreeSet::new();
    for file in ["records.rs", "slot.rs"] {
        let text = fs::read_to_string(source.join(file)).unwrap();
        records.extend(text.lines().filter_map(|line| {
            line.strip_prefix("impl Record for ")
                .and_then(|rest| rest.split_whitespace().next())
                .map(str::to_owned)
        }));
    }
    assert!(records.len() > 10, "the records are not found any more: {records:?}");
    let read: BTreeSet<String> = read_all().types.into_iter().map(str::to_owned).collect();
    assert_eq!(records, read);
}

/// So that a record is not forgotten because it lies elsewhere.
#[test]
fn records_are_declared_in_two_files_only() {
    fn search(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                search(&path, found);
            } else if fs::read_to_string(&path)
                .unwrap()
                .lines()
                .any(|line| line.starts_with("impl Record for "))
            {
                found.push(path.file_name().unwrap().to_string_lossy().into_owned());
            }
        }
    }
    let mut found = Vec::new();
    search(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found.sort();
    assert_eq!(found, ["records.rs", "slot.rs"]);
}
