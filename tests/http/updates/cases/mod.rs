//! Checks made from public bug reports, as data: each file of `data/cases` is one, and its steps are performed
//! in order.

mod canonical;
mod faults;
mod interpreter;

use std::collections::BTreeSet;
use std::path::Path;

pub(crate) use canonical::canonical;
use interpreter::{run, run_on};
use statewright_tests::app::Backend;

macro_rules! cases {
    ($($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            run(&stringify!($name).replace('_', "-")).await;
        })*

        const PERFORMED: &[&str] = &[$(stringify!($name)),*];
    };
}

cases! {
    accept_header_versions
    batch_decrypt_one_bad
    checkpoint_not_wrapped_twice
    created_never_started
    delta_offsets_are_bytes
    delta_wrong_hash
    esc_block_without_last_newline
    esc_foreign_ciphertext
    esc_numbers_as_text
    esc_secret_outside_values
    gzip_broken_body
    history_pages
    import_is_an_update
    journal_batch_sent_twice
    journal_delete_before_replace_fails
    journal_pending_operations
    journal_refresh_prunes_references
    journal_refresh_shifts_indices
    journal_version_4_features
    journal_version_negotiated
    lease_expired
    lock_second_update_refused
    reads_while_an_update_runs
    rename_never_updated
    secret_bytes_not_utf8
    secret_of_another_stack
    short_update_never_renews
    stack_created_twice
    stack_rm_with_resources
    tf_encrypted_state
    tf_lock_names_the_holder
    tf_no_state_yet
    tf_odd_state_names
    tf_other_lock_methods
    tf_unlock_by_id_only
}

/// The cases about states, on each backend of users: a folder, AWS, and functions.
macro_rules! on_stores {
    ($($name:ident)*) => {
        mod embedded {
            $(#[tokio::test] async fn $name() { super::run_on(super::Backend::Embedded, stringify!($name)).await; })*
        }
        mod aws {
            $(#[tokio::test] async fn $name() { super::run_on(super::Backend::Aws, stringify!($name)).await; })*
        }
        mod functions {
            $(#[tokio::test] async fn $name() { super::run_on(super::Backend::Functions, stringify!($name)).await; })*
        }

        const ON_STORES: &[&str] = &[$(stringify!($name)),*];
    };
}

on_stores! {
    tf_encrypted_state
    tf_lock_names_the_holder
    tf_no_state_yet
    tf_odd_state_names
    tf_other_lock_methods
    tf_unlock_by_id_only
}

#[test]
fn every_case_of_states_is_performed_on_every_store() {
    let of_states: Vec<&str> = PERFORMED.iter().copied().filter(|name| name.starts_with("tf_")).collect();
    assert_eq!(of_states, ON_STORES);
}

#[test]
fn every_case_of_the_folder_is_performed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cases");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let performed = PERFORMED.iter().chain(faults::PERFORMED);
    let performed: BTreeSet<String> = performed.map(|name| name.replace('_', "-")).collect();
    assert_eq!(files, performed);
}
