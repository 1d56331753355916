use proptest::prelude::*;

use super::*;

fn sha256(text: &[u8]) -> String {
    hex::encode(Sha256::digest(text))
}

fn edit(start: usize, end: usize, new_text: &str) -> Edit<'static> {
    let point = |offset: usize| Point { offset: offset as u64 };
    let span = Span { start: point(start), end: point(end) };
    Edit { span, new_text: Cow::Owned(new_text.to_owned()) }
}

fn delta(sequence_number: u64, edits: Vec<Edit<'static>>, result: &[u8]) -> Delta<'static> {
    Delta { checkpoint_hash: sha256(result).into(), sequence_number, deployment_delta: Some(edits) }
}

fn saved(sequence: u64, text: &str) -> Saved {
    Saved { sequence, text: Bytes::copy_from_slice(text.as_bytes()) }
}

const MAX: usize = 1 << 20;

#[test]
fn offsets_count_bytes_and_several_edits_apply_at_once() {
    let base = "a日本b🦀c";
    let edits = [edit(1, 4, "é"), edit(7, 7, "+"), edit(8, 12, "")];
    assert_eq!(String::from_utf8(apply(base.as_bytes(), &edits, MAX).unwrap()).unwrap(), "aé本+bc");
}

#[test]
fn edits_that_touch_are_in_order_and_edits_that_overlap_are_not() {
    assert_eq!(
        apply(b"abcdef", &[edit(1, 3, "X"), edit(3, 3, "Y"), edit(3, 4, "Z")], MAX).unwrap(),
        b"aXYZef"
    );
    assert_eq!(apply(b"abcdef", &[edit(1, 3, ""), edit(2, 4, "")], MAX), Err(DeltaError::Order(1)));
    assert_eq!(apply(b"abcdef", &[edit(3, 2, "")], MAX), Err(DeltaError::Order(0)));
    assert_eq!(apply(b"abcdef", &[edit(0, 6, "g")], MAX).unwrap(), b"g");
    let beyond = DeltaError::Beyond { index: 0, end: 7, bytes: 6 };
    assert_eq!(apply(b"abcdef", &[edit(6, 7, "")], MAX), Err(beyond));
    let huge = Edit {
        span: Span { start: Point { offset: 0 }, end: Point { offset: u64::MAX } },
        new_text: "".into(),
    };
    assert_eq!(apply(b"", &[huge], MAX), Err(DeltaError::Beyond { index: 0, end: u64::MAX, bytes: 0 }));
}

#[test]
fn a_text_is_limited_to_the_byte() {
    let edits = [edit(3, 3, "def")];
    assert_eq!(apply(b"abc", &edits, 6).unwrap(), b"abcdef");
    assert_eq!(apply(b"abc", &edits, 5), Err(DeltaError::TooLong { bytes_max: 5 }));
    assert_eq!(apply(b"abc", &[], 2), Err(DeltaError::TooLong { bytes_max: 2 }));
}

#[test]
fn a_delta_applies_once_and_only_with_the_right_hash() {
    let base = saved(3, "abc");
    let to = |sequence, result: &[u8]| delta(sequence, vec![edit(1, 2, "BB")], result);
    assert_eq!(to(4, b"aBBc").onto(None, MAX), Err(DeltaError::NoBase));
    assert_eq!(to(4, b"aBBc").onto(Some(&base), MAX), Ok(Outcome::Next(saved(4, "aBBc"))));
    assert_eq!(to(4, b"else").onto(Some(&base), MAX), Err(DeltaError::Hash));
    // The same save again, an older one, and a different one with the same number.
    assert_eq!(to(4, b"aBBc").onto(Some(&saved(4, "aBBc")), MAX), Ok(Outcome::Old));
    assert_eq!(to(3, b"aBBc").onto(Some(&saved(4, "aBBc")), MAX), Ok(Outcome::Old));
    assert_eq!(to(4, b"aBBc").onto(Some(&saved(4, "abc")), MAX), Err(DeltaError::Hash));
}

#[test]
fn a_whole_text_replaces_its_own_number_but_no_later_one() {
    let body = br#"{"version":3,"untypedDeployment":{"a" : "\u003c" },"sequenceNumber":4}"#;
    let whole: Whole<'_> = serde_json::from_slice(body).unwrap();
    let next = Outcome::Next(saved(4, r#"{"a" : "\u003c" }"#));
    assert_eq!(whole.onto(None), next, "every byte is kept");
    assert_eq!(whole.onto(Some(&saved(3, "{}"))), next);
    assert_eq!(whole.onto(Some(&saved(4, "{}"))), next);
    assert_eq!(whole.onto(Some(&whole.saved())), Outcome::Old);
    assert_eq!(whole.onto(Some(&saved(5, "{}"))), Outcome::Old);
}

#[test]
fn the_last_chain_is_the_newest_whole_text_with_its_deltas() {
    use Save::{Delta, Whole};
    assert_eq!(last_chain([]), [0; 0]);
    let chain = |saves: &[Save]| last_chain(saves.iter().copied().map(Some));
    assert_eq!(chain(&[Whole(1), Delta(2), Delta(3)]), [0, 1, 2]);
    assert_eq!(chain(&[Whole(1), Delta(2), Whole(2), Delta(3), Delta(3), Whole(1), Delta(2)]), [2, 3]);
    assert_eq!(chain(&[Delta(1), Delta(2)]), [0; 0]);
    assert_eq!(last_chain([None, Some(Whole(1)), None, Some(Delta(2)), None]), [1, 3]);
}

/// A text, and for each edit how much is kept before it, how much is replaced and by what, in characters.
fn edited() -> impl Strategy<Value = (String, Vec<(usize, usize, String)>)> {
    (any::<String>(), prop::collection::vec((0..9usize, 0..9usize, any::<String>()), 0..6))
}

proptest! {
    #[test]
    fn a_text_is_rebuilt_from_the_parts_that_changed((base, plan) in edited()) {
        let chars: Vec<char> = base.chars().collect();
        let (mut at, mut bytes, mut edits, mut expected) = (0, 0, Vec::new(), String::new());
        for (kept, replaced, new_text) in &plan {
            let kept: String = chars.iter().skip(at).take(*kept).collect();
            at += kept.chars().count();
            let gone: String = chars.iter().skip(at).take(*replaced).collect();
            at += gone.chars().count();
            edits.push(edit(bytes + kept.len(), bytes + kept.len() + gone.len(), new_text));
            bytes += kept.len() + gone.len();
            expected.push_str(&kept);
            expected.push_str(new_text);
        }
        expected.extend(chars.iter().skip(at));
        let outcome = delta(2, edits, expected.as_bytes()).onto(Some(&saved(1, &base)), MAX);
        prop_assert_eq!(outcome, Ok(Outcome::Next(saved(2, &expected))));
    }

    #[test]
    fn arbitrary_edits_never_panic_or_exceed_the_limit(
        base in any::<Vec<u8>>(),
        edits in prop::collection::vec((prop_oneof![0..40u64, any::<u64>()], prop_oneof![0..40u64, any::<u64>()], ".{0,9}"), 0..6),
        bytes_max in 0..60usize,
    ) {
        let edits: Vec<Edit<'_>> = edits
            .into_iter()
            .map(|(start, end, text)| {
                let span = Span { start: Point { offset: start }, end: Point { offset: end } };
                Edit { span, new_text: text.into() }
            })
            .collect();
        if let Ok(text) = apply(&base, &edits, bytes_max) {
            let added: usize = edits.iter().map(|edit| edit.new_text.len()).sum();
            prop_assert!(text.len() <= bytes_max && text.len() <= base.len() + added);
        }
    }

    #[test]
    fn a_chain_begins_with_a_whole_text_and_its_numbers_rise(
        saves in prop::collection::vec((any::<bool>(), 0..6u64), 0..12),
    ) {
        let saves: Vec<Save> = saves
            .into_iter()
            .map(|(whole, sequence)| if whole { Save::Whole(sequence) } else { Save::Delta(sequence) })
            .collect();
        let chain: Vec<Save> = last_chain(saves.iter().copied().map(Some)).into_iter().map(|index| saves[index]).collect();
        let sequence = |save: &Save| match *save { Save::Whole(sequence) | Save::Delta(sequence) => sequence };
        prop_assert!(chain.first().is_none_or(|first| matches!(first, Save::Whole(_))));
        prop_assert!(chain.iter().skip(1).all(|save| matches!(save, Save::Delta(_))));
        prop_assert!(chain.windows(2).all(|pair| sequence(&pair[0]) < sequence(&pair[1])));
        let first_whole = saves.iter().position(|save| matches!(save, Save::Whole(_)));
        prop_assert_eq!(chain.is_empty(), first_whole.is_none());
        // No later save that counts was left out.
        let highest = saves.iter().skip(first_whole.unwrap_or(saves.len())).map(sequence).max();
        prop_assert_eq!(chain.last().map(sequence), highest);
    }
}
