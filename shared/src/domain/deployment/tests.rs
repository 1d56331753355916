use super::*;

const TEXT: &str = r#"{"version":3,"later":1e400,"deployment":{"manifest":{"time":"2026-01-02T03:04:05.000000006Z","magic":"","version":""},"secrets_providers":{"type":"service","state":{"a":1}},"resources":[{"urn":"urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev","custom":false,"type":"pulumi:pulumi:Stack","outputs":{"n":12345678901234567890}},{"urn":"urn:pulumi:dev::p::t:m:T::a","custom":true,"id":"i","type":"t:m:T","parent":"urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"}],"pending_operations":[{"resource":{"urn":"u","type":"t"},"type":"creating"}],"metadata":{"mine":1}}}"#;

#[test]
fn an_inspection_reports_the_facts_of_a_deployment() {
    let inspection = inspect(TEXT.as_bytes()).unwrap();
    assert_eq!(inspection.version, 3);
    assert_eq!((inspection.resource_count, inspection.pending_count), (2, 1));
    assert_eq!(inspection.outputs, Some(r#"{"n":12345678901234567890}"#));
    assert_eq!(inspection.secrets_providers, Some(r#"{"type":"service","state":{"a":1}}"#));
    assert_eq!(inspection.integrity_error, None);
    assert_eq!(inspection.manifest_time, Some(Timestamp(1_767_323_045_000_000_006)));
}

#[test]
fn a_deployment_of_null_is_one_without_resources() {
    for text in [r#"{"version":3,"deployment":null}"#, r#"{"version":3,"deployment":{}}"#] {
        let inspection = inspect(text.as_bytes()).unwrap();
        assert_eq!((inspection.resource_count, inspection.integrity_error), (0, None), "{text}");
    }
}

#[test]
fn a_text_that_is_not_a_deployment_is_refused_with_a_reason() {
    for (text, reason) in [
        ("", "an object"),
        ("[]", "an object"),
        (r#"{"version":3}"#, "no `deployment`"),
        (r#"{"deployment":{}}"#, "`version` is 1, 2, 3 or 4"),
        (r#"{"version":5,"deployment":{}}"#, "`version` is 1, 2, 3 or 4"),
        (r#"{"version":"3","deployment":{}}"#, "`version`: expected an integer"),
        (r#"{"version":3,"deployment":[]}"#, "`deployment`: expected an object"),
        (
            r#"{"version":3,"deployment":{"resources":[{"urn":[]}]}}"#,
            "`deployment.resources.urn`: expected a string",
        ),
        (r#"{"version":3,"deployment":{}} x"#, "the end of the text"),
    ] {
        let message = inspect(text.as_bytes()).unwrap_err().to_string();
        assert!(message.contains(reason), "{text}: {message}");
    }
    assert!(inspect(b"\xff").is_err());
}

#[test]
fn setting_an_integrity_error_changes_no_other_byte() {
    let error =
        IntegrityError { version: "3".into(), command: "import".into(), error: "it is \"bad\"".into() };
    let marked = with_integrity_error(TEXT.as_bytes(), Some(error)).unwrap();
    let expected = TEXT.replace(
        r#"{"mine":1}"#,
        r#"{"mine":1,"integrity_error":{"version":"3","command":"import","error":"it is \"bad\""}}"#,
    );
    assert_eq!(String::from_utf8_lossy(&marked), expected);
    assert_eq!(with_integrity_error(&marked, None).unwrap().as_ref(), TEXT.as_bytes());
    assert!(!same_state(TEXT.as_bytes(), &marked).unwrap());
}

#[test]
fn metadata_that_are_not_there_are_added_and_only_then() {
    let error = || IntegrityError { version: "3".into(), command: "c".into(), error: "e".into() };
    for (text, expected) in [
        (
            r#"{"version":3,"deployment":{}}"#,
            r#"{"version":3,"deployment":{"metadata":{"integrity_error":{"version":"3","command":"c","error":"e"}}}}"#,
        ),
        (
            r#"{"version":3,"deployment":{"x":1 }}"#,
            r#"{"version":3,"deployment":{"x":1 ,"metadata":{"integrity_error":{"version":"3","command":"c","error":"e"}}}}"#,
        ),
        (r#"{"version":3,"deployment":null}"#, r#"{"version":3,"deployment":null}"#),
    ] {
        let marked = with_integrity_error(text.as_bytes(), Some(error())).unwrap();
        assert_eq!(String::from_utf8_lossy(&marked), expected);
        assert_eq!(with_integrity_error(text.as_bytes(), None).unwrap(), text.as_bytes());
    }
}

#[test]
fn only_the_manifest_may_differ_in_the_same_state() {
    let later = TEXT.replace("2026-01-02", "2027-01-02");
    assert!(same_state(TEXT.as_bytes(), later.as_bytes()).unwrap());
    for (from, to) in [
        (r#""id":"i""#, r#""id":"j""#),
        (r#""creating""#, r#""updating""#),
        (r#""a":1"#, r#""a":2"#),
        (r#""mine":1"#, r#""mine":2"#),
        (r#""version":3"#, r#""version":4"#),
    ] {
        let changed = TEXT.replace(from, to);
        assert!(!same_state(TEXT.as_bytes(), changed.as_bytes()).unwrap(), "{to}");
    }
}
