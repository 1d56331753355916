//! What was once written stays readable: each record reads its examples in `testdata/formats`.
//!
//! This module has what the examples share.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use uuid::Uuid;

use super::record::Record;
use crate::domain::ids::{EnvironmentId, StackId, StateId, UpdateId};
use crate::domain::names::{Login, TokenName};
use crate::domain::principal::Principal;
use crate::domain::protection::Protection;
use crate::domain::tfstate::{LabelKey, LabelNumber, LabelValue, Labels};
use crate::domain::update::Requester;
use crate::ports::Timestamp;

pub(super) const CREATED: Timestamp = Timestamp(1_767_225_600_000_000_000);
pub(super) const LATER: Timestamp = Timestamp(1_767_225_601_500_000_000);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/formats")
}

/// The examples that were read, and their types.
#[derive(Default)]
pub(super) struct Files {
    names: BTreeSet<String>,
    types: BTreeSet<&'static str>,
}

impl Files {
    /// Checks that a file holds this record. If the file has the current format, checks too that the record
    /// is written as the same bytes.
    pub(super) fn hold<T: Record + PartialEq + Debug>(&mut self, file: &str, expected: &T, tail: &[u8]) {
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
        assert!(self.names.insert(file.to_owned()), "{file} twice");
        let name = std::any::type_name::<T>();
        self.types.insert(name.rsplit("::").next().unwrap_or(name));
    }
}

pub(super) fn stack() -> StackId {
    StackId::new(Uuid::parse_str("00000000-0000-4000-8000-000000000001").unwrap())
}

pub(super) fn update_id(last: u128) -> UpdateId {
    UpdateId::new(Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0000 + last))
}

pub(super) fn state_id() -> StateId {
    StateId::parse("019b7c3a-0000-7000-8000-000000000001").unwrap()
}

pub(super) fn environment_id() -> EnvironmentId {
    EnvironmentId::parse("00000000-0000-4000-8000-000000000005").unwrap()
}

pub(super) fn lock_id() -> String {
    "1873bea7-f204-3479-5274-067339737120".to_owned()
}

pub(super) fn login(login: &str) -> Login {
    Login::parse(login).unwrap()
}

pub(super) fn requester() -> Requester {
    Requester { login: login("alice"), token: TokenName::parse("laptop").unwrap(), of: Principal::User }
}

pub(super) fn protection() -> Protection {
    Protection { by: requester(), at: LATER, reason: "it is production".to_owned() }
}

pub(super) fn label_key(key: &str) -> LabelKey {
    LabelKey::parse(key).unwrap()
}

pub(super) fn labels() -> Labels {
    let value = |text: &str| LabelValue::Text(text.to_owned());
    let labels = [
        ("critical", LabelValue::Bool(true)),
        ("env", value("prod")),
        ("ratio", LabelValue::Number(LabelNumber::new(-0.5).unwrap())),
        ("team/size", LabelValue::Number(LabelNumber::new(3.0).unwrap())),
    ];
    labels.map(|(key, value)| (label_key(key), value)).into()
}

pub(super) fn bytes() -> Vec<u8> {
    (0..33).collect()
}

macro_rules! read_examples {
    ($files:expr, $($record:ident)*) => { $(super::$record::examples::read($files);)* };
}

fn read_all() -> Files {
    let mut files = Files::default();
    read_examples!(
        &mut files,
        audit_erased
        audit_record
        audit_root
        deleted_environment
        deleted_stack
        deleted_state
        directory_entry
        due
        environment_head
        environment_revision
        environment_session
        event_batch
        former_stack_name
        former_stack_name_entry
        former_state_name
        former_state_name_entry
        issuer
        issuer_consent
        identity
        identity_entry
        invitation
        label_policy
        login_code
        member
        org
        org_access
        password
        preview
        rejected_state
        shown_proof
        sign_in_key
        sign_in_provider
        signer
        slot
        stack_entry
        stack_head
        stack_outputs
        stack_version
        state_edge
        state_entry
        state_graph
        state_head
        state_lock
        state_lock_entry
        state_locks_listed
        state_schemas
        state_version
        token
        token_entry
        token_use
        unfinished_copy
        update
        update_detail
        update_entry
        update_summary
        user
        verifying_key
        web_session
        wrapped_data_key
    );
    files
}

#[test]
fn every_stored_format_reads_as_the_same_record() {
    let read = read_all();
    let files: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md" && !name.starts_with('.'))
        .collect();
    assert_eq!(files, read.names, "each example is read");
}

/// The records that are declared in a folder, with their files.
fn declared(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(declared(&path));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let records = text.lines().filter_map(|line| line.strip_prefix("impl Record for "));
        found.extend(records.map(|rest| {
            let name = rest.split_whitespace().next().unwrap_or_default();
            (name.to_owned(), path.clone())
        }));
    }
    found
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn every_record_has_an_example() {
    let records: BTreeSet<String> =
        declared(&source().join("layout")).into_iter().map(|(name, _)| name).collect();
    assert!(records.len() > 10, "the records are not found any more: {records:?}");
    let read: BTreeSet<String> = read_all().types.into_iter().map(str::to_owned).collect();
    assert_eq!(records, read);
}

/// Otherwise the test above would miss a record that is declared elsewhere.
#[test]
fn each_record_is_declared_in_its_own_file_of_the_layout() {
    let mut files = BTreeSet::new();
    for (record, file) in declared(&source()) {
        assert_eq!(file.parent(), Some(source().join("layout").as_path()), "{record}");
        assert!(files.insert(file), "{record} has no file of its own");
    }
}
