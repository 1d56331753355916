//! What every [`Keys`] promises.

use std::sync::Arc;

use crate::ports::{DataKey, KeyContext, Keys, KeysError, Wrap, WrappedKey};

/// One test for each contract of [`Keys`]; see [`crate::ports::contract`]. The adapter is a [`Pair`].
#[macro_export]
macro_rules! keys_contract {
    ($make:expr) => {
        $crate::contract_tests!(
            keys,
            $make,
            [
                a_wrapped_key_opens_to_the_key_that_was_made,
                two_keys_differ,
                another_context_does_not_open_it,
                contexts_of_the_same_letters_differ,
                every_altered_byte_is_noticed,
                every_shortened_or_lengthened_key_is_noticed,
                another_master_key_does_not_open_it,
                the_wrapped_key_does_not_show_the_key,
                a_key_is_never_shown,
                a_key_under_the_newest_master_key_is_not_rewrapped,
                a_key_that_does_not_open_is_not_rewrapped,
                many_callers_get_keys_of_their_own,
                a_key_from_elsewhere_opens_under_its_context_only,
            ]
        );
    };
}

/// Two adapters of the same kind under different master keys.
pub struct Pair {
    /// The adapter under test.
    pub keys: Arc<dyn Keys>,
    /// The same adapter, for keys that come from another store.
    pub wrap: Arc<dyn Wrap>,
    /// An adapter that cannot open what `keys` has wrapped.
    pub strangers: Arc<dyn Keys>,
}

fn context(name: &'static str, value: &str) -> KeyContext {
    KeyContext { name, value: value.to_owned() }
}

async fn generate(keys: &Arc<dyn Keys>, context: &KeyContext) -> (DataKey, WrappedKey) {
    keys.generate(context).await.expect("a key is made")
}

async fn assert_mismatch(keys: &Arc<dyn Keys>, wrapped: &WrappedKey, context: &KeyContext) {
    let outcome = keys.unwrap(wrapped, context).await;
    assert!(matches!(outcome, Err(KeysError::Mismatch)), "{wrapped:?} under {context:?} gave {outcome:?}");
}

/// A wrapped key opens, more than once.
pub async fn a_wrapped_key_opens_to_the_key_that_was_made(pair: Pair) {
    let context = context("stack", "one");
    let (plain, wrapped) = generate(&pair.keys, &context).await;
    for _ in 0..2 {
        let opened = pair.keys.unwrap(&wrapped, &context).await.expect("the key opens");
        assert_eq!(opened.0, plain.0);
    }
}

/// No key is made twice, and equal contexts do not make equal keys.
pub async fn two_keys_differ(pair: Pair) {
    let context = context("stack", "one");
    let (first, first_wrapped) = generate(&pair.keys, &context).await;
    let (second, second_wrapped) = generate(&pair.keys, &context).await;
    assert_ne!(first.0, second.0);
    assert_ne!(first_wrapped, second_wrapped);
}

/// A key of one stack does not open as that of another stack, or of another kind of owner.
pub async fn another_context_does_not_open_it(pair: Pair) {
    let (_, wrapped) = generate(&pair.keys, &context("stack", "one")).await;
    for other in
        [context("stack", "two"), context("stack", ""), context("stack", "one "), context("signing", "one")]
    {
        assert_mismatch(&pair.keys, &wrapped, &other).await;
    }
}

/// The border between name and value is part of the context.
pub async fn contexts_of_the_same_letters_differ(pair: Pair) {
    let (_, wrapped) = generate(&pair.keys, &context("stack", "one")).await;
    for other in [context("stac", "kone"), context("stackone", ""), context("stacko", "ne")] {
        assert_mismatch(&pair.keys, &wrapped, &other).await;
    }
}

/// One flipped bit anywhere: in the header, the nonce, the sealed key or the tag.
pub async fn every_altered_byte_is_noticed(pair: Pair) {
    let context = context("stack", "one");
    let (_, wrapped) = generate(&pair.keys, &context).await;
    for at in 0..wrapped.0.len() {
        let mut altered = wrapped.clone();
        altered.0.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1);
        assert_ne!(altered, wrapped);
        assert_mismatch(&pair.keys, &altered, &context).await;
    }
}

/// Every wrong length, down to zero.
pub async fn every_shortened_or_lengthened_key_is_noticed(pair: Pair) {
    let context = context("stack", "one");
    let (_, wrapped) = generate(&pair.keys, &context).await;
    for length in 0..wrapped.0.len() {
        assert_mismatch(&pair.keys, &WrappedKey(wrapped.0.iter().copied().take(length).collect()), &context)
            .await;
    }
    let longer = WrappedKey(wrapped.0.iter().copied().chain([0]).collect());
    assert_mismatch(&pair.keys, &longer, &context).await;
}

/// Neither adapter opens what the other has wrapped.
pub async fn another_master_key_does_not_open_it(pair: Pair) {
    let context = context("stack", "one");
    let (_, ours) = generate(&pair.keys, &context).await;
    let (_, theirs) = generate(&pair.strangers, &context).await;
    assert_mismatch(&pair.strangers, &ours, &context).await;
    assert_mismatch(&pair.keys, &theirs, &context).await;
}

/// The wrapped key does not contain the plain key.
pub async fn the_wrapped_key_does_not_show_the_key(pair: Pair) {
    let (plain, wrapped) = generate(&pair.keys, &context("stack", "one")).await;
    for part in plain.0.chunks(8) {
        assert!(!wrapped.0.windows(8).any(|window| window == part));
    }
}

/// The debug output of a key reveals nothing of it.
pub async fn a_key_is_never_shown(pair: Pair) {
    let (plain, _) = generate(&pair.keys, &context("stack", "one")).await;
    assert_eq!(format!("{plain:?}"), "DataKey(..)");
}

/// There is only one master key, so no data key is under an older one.
pub async fn a_key_under_the_newest_master_key_is_not_rewrapped(pair: Pair) {
    let context = context("stack", "one");
    let (_, wrapped) = generate(&pair.keys, &context).await;
    assert_eq!(pair.keys.rewrap(&wrapped, &context).await.expect("the key opens"), None);
}

/// Another context, another master key, altered bytes.
pub async fn a_key_that_does_not_open_is_not_rewrapped(pair: Pair) {
    let context = context("stack", "one");
    let (_, wrapped) = generate(&pair.keys, &context).await;
    let mut altered = wrapped.clone();
    altered.0.iter_mut().rev().take(1).for_each(|byte| *byte ^= 1);
    let other = KeyContext { name: "stack", value: "two".to_owned() };
    for outcome in [
        pair.keys.rewrap(&wrapped, &other).await,
        pair.keys.rewrap(&altered, &context).await,
        pair.strangers.rewrap(&wrapped, &context).await,
    ] {
        assert!(matches!(outcome, Err(KeysError::Mismatch)), "{outcome:?}");
    }
}

/// 16 concurrent callers: each gets its own key, and all keys open.
pub async fn many_callers_get_keys_of_their_own(pair: Pair) {
    let callers = (0..16).map(|caller| {
        let keys = Arc::clone(&pair.keys);
        tokio::spawn(async move {
            let context = context("stack", &caller.to_string());
            let (plain, wrapped) = generate(&keys, &context).await;
            let opened = keys.unwrap(&wrapped, &context).await.expect("the key opens");
            assert_eq!(opened.0, plain.0);
            plain.0
        })
    });
    let mut plain = std::collections::HashSet::new();
    for caller in futures::future::join_all(callers).await {
        assert!(plain.insert(caller.expect("a caller ends well")), "a key was made twice");
    }
    assert_eq!(plain.len(), 16);
}

/// What a move to another store does to each data key.
pub async fn a_key_from_elsewhere_opens_under_its_context_only(pair: Pair) {
    let (one, two) = (context("stack", "one"), context("stack", "two"));
    let (plain, theirs) = generate(&pair.strangers, &one).await;
    assert_mismatch(&pair.keys, &theirs, &one).await;
    let ours = pair.wrap.wrap(&plain, &one).await.expect("the key is wrapped");
    assert_eq!(pair.keys.unwrap(&ours, &one).await.expect("the key opens").0, plain.0);
    assert!(matches!(pair.keys.rewrap(&ours, &one).await, Ok(None)), "the newest master key wraps it");
    assert!(!ours.0.windows(32).any(|window| window == plain.0), "it contains the plain key");
    assert_mismatch(&pair.keys, &ours, &two).await;
    assert_mismatch(&pair.strangers, &ours, &one).await;
}
