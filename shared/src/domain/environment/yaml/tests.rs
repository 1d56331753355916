use super::*;

fn scalar(text: &str) -> Kind {
    let text = format!("k: {text}\n");
    match parse(&text).unwrap().unwrap().kind {
        Kind::Object(mut members) => members.pop().unwrap().1.kind,
        other => panic!("{other:?}"),
    }
}

#[test]
fn scalars_have_the_same_meaning_as_in_the_client() {
    for (text, number) in [
        ("12", "12"),
        ("-12", "-12"),
        ("+3", "3"),
        ("0777", "511"),
        ("0o17", "15"),
        ("0x1F", "31"),
        ("0b101", "5"),
        ("1_000", "1000"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("2.", "2"),
        ("1.0", "1"),
        ("2.50", "2.5"),
        ("1e3", "1000"),
        ("1e6", "1e+06"),
        ("1234567.5", "1.2345675e+06"),
        ("999999.5", "999999.5"),
        ("1e-7", "1e-07"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("1e-400", "0"),
        ("-0.0", "-0"),
        ("08", "8"),
        ("1_000.5", "1000.5"),
        ("1_", "1"),
        ("0b-1", "-1"),
        ("-0", "0"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ("!!float 1", "1"),
        ("!!int '12'", "12"),
        ("! 12", "12"),
    ] {
        assert_eq!(scalar(text), Kind::Number(number.to_owned()), "{text}");
    }
    for text in [
        "yes",
        "on",
        "1.2.3",
        "0o9",
        "1e",
        ".",
        "--1",
        "2026-11-28",
        "'12'",
        "\"true\"",
        "!!str 12",
        "12a",
        "1e400",
        ".5_0",
        "!mine 12",
        "!!binary aGk=",
        "!!timestamp 2026-11-28",
    ] {
        assert!(matches!(scalar(text), Kind::String(_)), "{text}");
    }
    assert_eq!(scalar("~"), Kind::Null);
    assert_eq!(scalar(""), Kind::Null);
    assert_eq!(scalar("True"), Kind::Bool(true));
    assert!(parse("k: .inf").unwrap_err().why.contains("not a number that JSON knows"));
    for text in
        ["!!int x", "!!float true", "!!bool yes", "!!null 1", "!!int 1.5", "!!binary '!'", "!!timestamp x"]
    {
        assert!(parse(&format!("k: {text}")).unwrap_err().why.contains("tagged"), "{text}");
    }
}

#[test]
fn each_part_has_its_place() {
    let text = "é: [a, {b: 1}] # comment\nc:\n  d: |\n    x\n  e: 'y'\n";
    let root = parse(text).unwrap().unwrap();
    let Kind::Object(members) = &root.kind else { panic!("{root:?}") };
    let at = |span: Span| &text[span.begin.byte..span.end.byte];
    assert_eq!(at(members[0].0.span), "é");
    assert_eq!(at(members[0].1.span), "[a, {b: 1}]");
    assert_eq!(members[0].1.span.begin, Position { line: 1, column: 4, byte: 4 });
    let Kind::Object(inner) = &members[1].1.kind else { panic!("{root:?}") };
    assert_eq!(inner[0].1.style, Style::Block);
    assert!(at(inner[0].1.span).starts_with("|\n    x"));
    let list = parse("a:\n- b\n- [c]\n").unwrap().unwrap();
    let Kind::Object(members) = &list.kind else { panic!("{list:?}") };
    assert_eq!(members[0].1.span.begin, Position { line: 2, column: 1, byte: 3 });
    assert_eq!(at(inner[1].1.span), "'y'");
    assert_eq!(root.span.end.line, 5);
}

#[test]
fn a_comment_may_begin_right_behind_a_quote_or_a_bracket() {
    for (text, value) in [
        ("k: {}#\n", "{}"),
        ("k: [a]# é\n", "[a]"),
        ("k: 'x'#y\n", "'x'"),
        ("k: \"x\"# y\nl: 1\n", "\"x\""),
        ("k: 'it''s \\' # 'y'\n", "'it''s \\'"),
        ("k: \"é\\\\\\\"\n  y\" # \"z\"\n", "\"é\\\\\\\"\n  y\""),
        ("k: ['', \"\"]\n", "['', \"\"]"),
        ("k: [#x\n  a,#y\n  b#z\n  ]#\n", "[#x\n  a,#y\n  b#z\n  ]"),
        ("k#k: |-#x\n  y\n", "|-#x\n  y\n"),
    ] {
        let root = parse(text).unwrap().unwrap();
        let Kind::Object(members) = &root.kind else { panic!("{root:?}") };
        let span = members[0].1.span;
        assert_eq!(&text[span.begin.byte..span.end.byte], value, "{text:?}");
    }
}

#[test]
fn a_colon_without_a_blank_is_a_part_of_a_text() {
    let root = parse("k: {a:,b:c: 1,d:}\n").unwrap().unwrap();
    let Kind::Object(members) = &root.kind else { panic!("{root:?}") };
    let Kind::Object(inner) = &members[0].1.kind else { panic!("{root:?}") };
    let keys: Vec<_> = inner.iter().map(|(key, value)| (key.text.as_str(), &value.kind)).collect();
    let one = Kind::Number("1".to_owned());
    assert_eq!(keys, [("a:", &Kind::Null), ("b:c", &one), ("d:", &Kind::Null)]);
    for text in ["k: {a:[b]}\n", "k: {a:{b: 1}}\n"] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_tab_is_not_indentation() {
    for (text, line, column) in [
        (" \tk: 1\n", 1, 2),
        ("k:\n \tl: 1\n", 2, 2),
        ("k: 'x'\n\t\nl: 1\n", 2, 1),
        ("k:\n-\tl\n", 2, 2),
        ("k: 1\n# é\n\t", 3, 1),
        ("k: é\n\t# x", 2, 1),
        ("k: a\n\t\n  b\n", 2, 1),
        ("k: |\n  a\n \t\n", 3, 2),
        ("k:\n\t\n", 2, 1),
        ("k:\n  l: 1\n  \t\n", 3, 3),
    ] {
        let refused = parse(text).unwrap_err();
        assert!(refused.why.contains("indent with spaces"), "{text:?}: {refused:?}");
        assert_eq!((refused.span.begin.line, refused.span.begin.column), (line, column), "{text:?}");
    }
    for text in ["k:\t1\t# x\n", "k: [\n \ta,\n \tb]\n", "k: 1\n \t\n", "k: |\n  \tx\n", "k: 'a\n \tb'\n"] {
        assert!(parse(text).is_ok(), "{text:?}: {:?}", parse(text));
    }
}

#[test]
fn invalid_text_is_refused_with_its_place() {
    for (text, words) in [
        ("a: &x 1\nb: *x\n", "aliases"),
        ("a: 1\n---\nb: 2\n", "one document"),
        ("1: a\n", "keys of an object"),
        ("a: [\n", ""),
        ("a: 'x\n", ""),
    ] {
        let refused = parse(text).unwrap_err();
        assert!(refused.why.contains(words), "{text:?}: {refused:?}");
    }
    for (text, column) in [("a: \u{7}", 4), ("# \u{2028}", 3), ("'\u{85}'", 2), ("x\u{feff}", 2)] {
        let refused = parse(text).unwrap_err();
        assert!(refused.why.contains("in double quotes"), "{text:?}: {refused:?}");
        assert_eq!(refused.span.begin.column, column);
    }
    let faults = read("1: a\nb: *x\nc: !!int x\n").unwrap_err();
    assert!(faults.len() >= 2, "all errors are reported: {faults:?}");
    let deep = format!("{}{}", "[".repeat(DEPTH_MAX + 2), "]".repeat(DEPTH_MAX + 2));
    assert!(parse(&deep).unwrap_err().why.contains("deeper"));
    assert!(parse(&"a".repeat(DEFINITION_BYTES_MAX + 1)).unwrap_err().why.contains("bytes"));
    assert_eq!(parse("# nothing\n").unwrap(), None);
}
