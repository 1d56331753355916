use serde_json::Value as Json;

use super::super::functions::{STACKS_PROVIDER, no_provider};
use super::super::{Severity, access, definition, has_errors, yaml};
use super::*;
use crate::wire::esc;

const TOP: &str = "acme/top";

/// An evaluation in the form that clients read.
struct Evaluated {
    diagnostics: Vec<Diagnostic>,
    calls: Vec<ProviderCall>,
    environment: String,
    found: Option<String>,
}

struct Case {
    others: BTreeMap<String, Result<Source, String>>,
    outputs: BTreeMap<ProviderCall, Result<ProviderOutputs, String>>,
    is_opened: bool,
}

impl Case {
    fn new(others: &[(&str, &str)]) -> Self {
        let source = |(name, text): &(&str, &str)| (name.to_string(), Ok(source(name, text)));
        Self { others: others.iter().map(source).collect(), outputs: BTreeMap::new(), is_opened: true }
    }

    fn evaluated(&self, text: &str, path: Option<&str>) -> Evaluated {
        let root = source(TOP, text);
        let request = Request {
            root: &root,
            others: &self.others,
            is_opened: self.is_opened,
            context: r#"{"pulumi":{"user":{"login":"alice"}}}"#,
            outputs: &self.outputs,
        };
        let path = path.map(|path| access::path(path).unwrap());
        let evaluation = evaluate(&request, path.as_deref());
        let environment = esc::environment(&evaluation).unwrap();
        let found = evaluation.found.as_deref().map(|found| esc::value(found).unwrap());
        Evaluated { diagnostics: evaluation.diagnostics, calls: evaluation.calls, environment, found }
    }

    /// The plain values, as JSON.
    fn values(&self, text: &str) -> Json {
        let evaluated = self.evaluated(text, None);
        assert!(!has_errors(&evaluated.diagnostics), "{text}: {:?}", evaluated.diagnostics);
        let environment: Json = serde_json::from_str(&evaluated.environment).unwrap();
        plain(&serde_json::json!({ "value": environment["properties"] }))
    }

    fn errors(&self, text: &str) -> Vec<String> {
        let evaluated = self.evaluated(text, None);
        serde_json::from_str::<Json>(&evaluated.environment).unwrap();
        let at =
            |it: &Diagnostic| format!("{}:{} {}", it.range.begin.line, it.range.begin.column, it.summary);
        evaluated.diagnostics.iter().filter(|it| it.severity == Severity::Error).map(at).collect()
    }
}

fn source(name: &str, text: &str) -> Source {
    let mut diagnostics = Vec::new();
    let definition = definition::read(name, text, &mut diagnostics);
    let open = |sealed: String| {
        let opened = sealed.strip_prefix("sealed-").map(str::to_owned);
        (sealed, opened.ok_or_else(|| "the ciphertext is of another environment".to_owned()))
    };
    let secrets = definition.ciphertexts().into_iter().map(open).collect();
    Source { name: name.to_owned(), definition, diagnostics, secrets }
}

/// A client's value without its metadata; secrets are in brackets.
fn plain(value: &Json) -> Json {
    let bare = match &value["value"] {
        Json::Array(items) => items.iter().map(plain).collect(),
        Json::Object(members) => members.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        other => other.clone(),
    };
    if value["unknown"] == true {
        return "unknown".into();
    }
    match (value["secret"] == true, bare) {
        (true, Json::String(text)) => format!("<{text}>").into(),
        (true, other) => serde_json::json!({ "secret": other }),
        (false, bare) => bare,
    }
}

fn alone(text: &str) -> Json {
    Case::new(&[]).values(text)
}

#[test]
fn values_refer_to_each_other_in_any_order() {
    let text = "values:\n  url: https://${server.host}:${server.port}/${list[1].x}\n  server:\n    host: ${names.first}\n    \
                port: 8080\n    same: ${server.host}\n  names: {first: a.example}\n  list: [1, {x: y}]\n  all: ${list}\n  \
                \"odd name\": 1\n  odd: ${[\"odd name\"]}\n  dollar: $${x}\n  texts: \"${list} ${server.port}\"\n";
    assert_eq!(
        alone(text),
        serde_json::json!({
            "url": "https://a.example:8080/y",
            "server": {"host": "a.example", "port": 8080, "same": "a.example"},
            "names": {"first": "a.example"},
            "list": [1, {"x": "y"}],
            "all": [1, {"x": "y"}],
            "odd name": 1,
            "odd": 1,
            "dollar": "${x}",
            "texts": r#""1","\"x\"=\"y\"" 8080"#,
        })
    );
}

#[test]
fn functions_return_the_documented_values() {
    let text = "values:\n  json: {fn::toJSON: {a: [1, 1.50, true, null], b: x}}\n  back: {fn::fromJSON: \"${json}\"}\n  \
                exact: {fn::fromJSON: \"[1.50,12345678901234567890]\"}\n  yaml: {fn::toYAML: {a: [1, {x: 'true', y: [[1], []]}], b: 'x: y', c: {}, d: null, e: {f: g}}}\n  \
                base: {fn::toBase64: hé}\n  text: {fn::fromBase64: \"${base}\"}\n  joined: {fn::join: ['-', [a, b, \"${base}\"]]}\n  \
                split: {fn::split: [',', 'a,b,']}\n  string: {fn::toString: {a: 1}}\n  concat: {fn::concat: [[1], [2, 3], []]}\n  \
                checked: {fn::validate: {schema: {type: string, minLength: 1}, value: x}}\n";
    let values = alone(text);
    assert_eq!(values["json"], r#"{"a":[1,1.5,true,null],"b":"x"}"#);
    assert_eq!(values["back"], serde_json::json!({"a": [1, 1.5, true, null], "b": "x"}));
    assert_eq!(values["exact"].to_string(), "[1.5,12345678901234567890]");
    let yaml = "a:\n    - \"1\"\n    - x: \"true\"\n      \"y\":\n        - - \"1\"\n        - []\nb: 'x: y'\nc: {}\nd: null\ne:\n    f: g\n";
    assert_eq!(values["yaml"], yaml);
    yaml::parse(yaml).unwrap();
    assert_eq!((&values["base"], &values["text"]), (&"aMOp".into(), &"hé".into()));
    assert_eq!(values["joined"], "a-b-aMOp");
    assert_eq!(values["split"], serde_json::json!(["a", "b", ""]));
    assert_eq!(values["string"], r#""a"="1""#);
    assert_eq!(values["concat"], serde_json::json!([1, 2, 3]));
    assert_eq!(values["checked"], "x");
}

#[test]
fn what_is_computed_from_a_secret_is_secret() {
    let text = "values:\n  a: {fn::secret: {ciphertext: sealed-x}}\n  b: \"-${a}-\"\n  c: {fn::toJSON: [\"${a}\"]}\n  \
                d: {fn::fromJSON: \"${c}\"}\n  e: [1, \"${a}\"]\n  f: {fn::secret: plain}\n  g: {fn::join: [\",\", \"${d}\"]}\n";
    assert_eq!(
        alone(text),
        serde_json::json!({
            "a": "<x>", "b": "<-x->", "c": "<[\"x\"]>", "d": {"secret": ["<x>"]}, "e": [1, "<x>"], "f": "<plain>", "g": "<x>",
        })
    );
    let refused = Case::new(&[]).errors("values:\n  a:\n    fn::secret: {ciphertext: other}\n");
    assert_eq!(refused, ["3:5 the ciphertext is of another environment"]);
}

#[test]
fn imports_are_merged_in_their_order_below_the_own_values() {
    let case = Case::new(&[
        (
            "acme/a",
            "values:\n  x: {a: 1, b: 1, list: [1, 2]}\n  only: a\n  where: ${context.currentEnvironment.name}\n",
        ),
        (
            "acme/b",
            "imports: [acme/a]\nvalues:\n  x: {b: 2, c: 2}\n  up: ${x.a}\n  root: ${context.rootEnvironment.name}\n",
        ),
        ("acme/c", "values: {x: {c: 3}, hidden: {y: 1}}\n"),
    ]);
    let text = "imports: [acme/a, acme/b, {acme/c: {merge: false}}]\nvalues:\n  x: {d: \"${x.a}\", list: [3]}\n  \
                by: ${imports[\"acme/c\"].hidden.y}\n  inline: ${environments.acme.c.x.c}\n  me: ${context.pulumi.user.login}\n";
    assert_eq!(
        case.values(text),
        serde_json::json!({
            "x": {"a": 1, "b": 2, "c": 2, "d": 1, "list": [3]},
            "only": "a", "up": 1, "where": "acme/a", "root": TOP,
            "by": 1, "inline": 3, "me": "alice",
        })
    );
    // A value that refers to an object is merged over the imported one, property by property.
    let text = "imports: [acme/a]\nvalues:\n  y: {b: 9}\n  x: ${y}\n";
    assert_eq!(case.values(text)["x"], serde_json::json!({"a": 1, "b": 9, "list": [1, 2]}));
    let text = "imports: [acme/a]\nvalues: {x: 1}\n";
    assert_eq!(case.values(text)["x"], 1);
    // The trace has the origin of a value and of those that it overrides.
    let evaluated = case.evaluated("imports: [acme/b]\nvalues:\n  x:\n    b: 5\n", Some("x.b"));
    let found: Json = serde_json::from_str(&evaluated.found.unwrap()).unwrap();
    assert_eq!(found["value"], 5);
    let trace = &found["trace"];
    let names =
        [&trace["def"], &trace["base"]["trace"]["def"], &trace["base"]["trace"]["base"]["trace"]["def"]];
    assert_eq!(names.map(|range| range["environment"].as_str().unwrap()), [TOP, "acme/b", "acme/a"]);
    let bases = [&trace["base"]["value"], &trace["base"]["trace"]["base"]["value"]];
    assert_eq!(bases, [2, 1], "the overridden values are in the trace");
    assert_eq!(names[0]["begin"], serde_json::json!({"line": 4, "column": 8, "byte": 38}));
}

#[test]
fn a_final_value_stays_with_a_warning() {
    let case = Case::new(&[("acme/a", "values: {x: {fn::final: {a: 1}}, y: {fn::final: 1}}\n")]);
    let text = "imports: [acme/a]\nvalues: {x: {a: 2, b: 3}, y: 2}\n";
    assert_eq!(case.values(text), serde_json::json!({"x": {"a": 1}, "y": 1}));
    let warned = case.evaluated(text, None).diagnostics;
    assert!(
        warned.iter().all(|it| it.severity == Severity::Warning && it.summary.contains("final")),
        "{warned:?}"
    );
    assert_eq!(warned.len(), 2);
}

#[test]
fn errors_are_reported_at_their_places() {
    let case = Case::new(&[
        ("acme/loop", "imports: [acme/loop2]\nvalues: {}\n"),
        ("acme/loop2", "imports: [acme/loop]\nvalues: {}\n"),
        ("acme/back", "imports: [acme/top]\nvalues: {}\n"),
        (TOP, "values: {}\n"),
    ]);
    for (text, error) in [
        ("values:\n  a: ${b}\n", "2:8 unknown property \"b\""),
        ("values:\n  a: x ${b.c} ${context}\n", "2:10 unknown property \"b\""),
        ("values: {a: {b: 1}, c: '${a.x}'}\n", "1:24 unknown property \"x\""),
        ("values: {a: [1], c: '${a[1]}'}\n", "1:21 there is no element 1 here"),
        ("values: {a: [1], c: '${a.x}'}\n", "1:21 unknown property \"x\""),
        ("values:\n  a: ${b}\n  b: ${a}\n", "2:6 a depends on itself"),
        ("values:\n  a: {b: '${a}'}\n", "2:6 a depends on itself"),
        ("values: {a: 1, a: 2}\n", "1:16 duplicate key \"a\""),
        ("values: {imports: 1}\n", "1:10 \"imports\" is reserved, and cannot be the name of a value"),
        ("imports: [acme/none]\n", "1:11 acme/none cannot be imported"),
        ("imports: [acme/loop]\n", "1:11 the imports of acme/loop lead back to it"),
        ("imports: [acme/back]\n", "1:11 the imports of acme/top lead back to it"),
        ("values: {a: {fn::join: [',', x]}}\n", "1:30 expected array, got string"),
        ("values: {a: {fn::join: [',', '${b}']}, b: x}\n", "1:30 expected array, got string"),
        ("values: {a: {fn::toBase64: 1}}\n", "1:28 expected string, got number"),
        ("values: {a: {fn::fromBase64: '!'}}\n", "1:13 this is not base64"),
        ("values: {a: {fn::concat: '${b}'}, b: []}\n", "1:26 fn::concat takes a list of lists"),
        ("values: {a: {fn::secret: 'x ${b}'}, b: 1}\n", "1:26 fn::secret takes a string without references."),
        ("values: {a: {fn::secret: {ciphertext: '${b}'}}, b: 1}\n", "1:26 fn::secret takes a string"),
        ("values: {a: {'${b}': 1}, b: 1}\n", "1:14 the keys of an object cannot have references"),
        (
            "values: {a: {fn::validate: {schema: {type: integer}, value: 1}}}\n",
            "1:37 the type of a schema must be one of",
        ),
        (
            "values: {a: '${s.x}', s: {fn::secret: {ciphertext: sealed-x}}}\n",
            "1:13 the value is a secret text",
        ),
        ("values:\n", "1:8 values must be an object"),
        ("imports:\nvalues: {}\n", "1:9 imports must be a list"),
        ("# nothing\n", "0:0 environment must be an object"),
        ("values: {a: {fn::rotate::x: {inputs: {}}}}\n", "1:13 this server has no rotator \"x\""),
        ("values: {a: {fn::validate: {schema: {type: string}, value: 1}}}\n", "1:60 $: "),
    ] {
        let errors = case.errors(text);
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].starts_with(error), "{text}: {errors:?}");
    }
}

#[test]
fn all_errors_are_reported_together() {
    let errors = Case::new(&[]).errors("values:\n  a: ${b..c}\n  d: ${e}\n  f: {fn::toBase64: [1]}\n");
    let places: Vec<&str> = errors.iter().filter_map(|error| error.split(' ').next()).collect();
    assert_eq!(places, ["2:9", "2:8", "3:8", "4:21"], "{errors:?}");
}

#[test]
fn numbers_in_texts_are_written_as_go_writes_them() {
    let values = alone(
        "values:\n  v: 1.0\n  w: 1e3\n  x: 1_000.5\n  y: 1e6\n  t: \"v${v} ${w} ${x} ${y}\"\n  s: {fn::toString: \"${w}\"}\n  \
         j: {fn::toJSON: [1.0, 2.50, 1e-7]}\n",
    );
    assert_eq!(values["t"], "v1 1000 1000.5 1e+06");
    assert_eq!((&values["s"], &values["j"]), (&"1000".into(), &"[1,2.5,1e-07]".into()));
}

#[test]
fn base64_may_be_wrapped_and_stand_for_any_bytes() {
    let values = alone(
        "values:\n  a:\n    fn::fromBase64: |\n      aGVs\n      bG8=\n  b: {fn::fromBase64: /////w==}\n  c: {fn::toBase64: \"${b}\"}\n  \
         d: {fn::toYAML: [\"${b}\"]}\n  e: {fn::toString: [\"${b}\"]}\n  f: {fn::split: ['', \"${b}\"]}\n",
    );
    assert_eq!((&values["a"], &values["c"]), (&"hello".into(), &"/////w==".into()));
    assert_eq!(values["b"], "\u{fffd}".repeat(4), "each byte has its own character");
    assert_eq!(
        (&values["d"], &values["e"]),
        (&"- !!binary /////w==\n".into(), &r#""\xff\xff\xff\xff""#.into())
    );
    assert_eq!(values["f"].as_array().map(Vec::len), Some(4));
}

#[test]
fn texts_are_escaped_as_go_escapes_them() {
    let values = alone(
        "values:\n  t: \"<&>\\u2028\\x01\\x7f\"\n  j: {fn::toJSON: \"${t}\"}\n  s: {fn::toString: [\"${t}\"]}\n",
    );
    assert_eq!(values["j"], r#""\u003c\u0026\u003e\u2028\u0001\u007f""#.replace(r"\u007f", "\u{7f}"));
    assert_eq!(values["s"], r#""<&>\u2028\x01\x7f""#);
}

#[test]
fn the_text_of_an_object_has_only_its_own_properties() {
    let case = Case::new(&[("acme/a", "values: {o: {a: 1, s: {fn::secret: x}}}\n")]);
    let text = "imports: [acme/a]\nvalues:\n  o: {b: 2}\n  t: o is ${o}\n  u: {fn::toString: \"${o}\"}\n  j: {fn::toJSON: \"${o}\"}\n";
    let values = case.values(text);
    assert_eq!((&values["t"], &values["u"]), (&r#"o is "b"="2""#.into(), &r#""b"="2""#.into()));
    assert_eq!(values["j"], r#"<{"a":1,"b":2,"s":"x"}>"#);
}

#[test]
fn a_list_with_a_secret_in_it_is_one_once_it_is_joined() {
    let values = alone(
        "values:\n  l: {fn::concat: [[1], [{fn::secret: x}]]}\n  o: {fn::final: {a: 1, b: {fn::secret: x}}}\n",
    );
    assert_eq!(values["l"], serde_json::json!({"secret": [1, "<x>"]}));
    assert_eq!(values["o"], serde_json::json!({"secret": {"a": 1, "b": "<x>"}}));
}

#[test]
fn a_missing_provider_is_named_when_it_is_needed() {
    let mut case = Case::new(&[]);
    let text = "values:\n  a: {fn::open::aws-login: {oidc: {}}}\n  b: {fn::rotate::x: {inputs: {}, state: {y: 1}}}\n";
    case.is_opened = false;
    let checked = case.evaluated(text, None);
    assert_eq!(case.values(text), serde_json::json!({"a": "unknown", "b": "unknown"}));
    assert_eq!(checked.diagnostics, [], "it can be kept");
    case.is_opened = true;
    let calls = case.evaluated(text, None).calls;
    assert_eq!(calls[0].provider, "aws-login");
    case.outputs = BTreeMap::from([(calls[0].clone(), Err(no_provider("aws-login")))]);
    assert_eq!(case.errors(text).len(), 2);
}

#[test]
fn a_provider_is_asked_once_the_environment_is_opened() {
    let mut case = Case::new(&[]);
    let text = "values:\n  s:\n    fn::open::pulumi-stacks:\n      stacks: {net: {stack: \"${name}\"}}\n  name: net/dev\n  id: v-${s.net.id}\n";
    case.is_opened = false;
    assert_eq!(case.values(text), serde_json::json!({"s": "unknown", "name": "net/dev", "id": "unknown"}));
    case.is_opened = true;
    let calls = case.evaluated(text, None).calls;
    let inputs = r#"{"stacks":{"net":{"stack":"net/dev"}}}"#.to_owned();
    assert_eq!(calls, [ProviderCall { provider: STACKS_PROVIDER.to_owned(), inputs }]);
    let value = |json: &str, is_secret| ProviderOutputs::Value { json: json.to_owned(), is_secret };
    let outputs = BTreeMap::from([
        ("id".to_owned(), value("\"vpc-1\"", false)),
        ("key".to_owned(), value("{\"a\":1}", true)),
    ]);
    let answer =
        ProviderOutputs::Object(BTreeMap::from([("net".to_owned(), ProviderOutputs::Object(outputs))]));
    case.outputs = BTreeMap::from([(calls[0].clone(), Ok(answer))]);
    let values = case.values(text);
    assert_eq!(values["id"], "v-vpc-1");
    assert_eq!(values["s"]["net"]["key"], serde_json::json!({"secret": {"a": {"secret": 1}}}));
}

#[test]
fn what_esc_accepts_causes_at_most_a_warning() {
    let case = Case::new(&[("acme/a", "values: {x: 1}\n")]);
    for (text, value, warnings) in [
        ("values: {x: 1}\nvalues: {x: 2}\n", serde_json::json!(2), 1),
        ("values: {x: 1}\nvaues: {x: 2}\n", serde_json::json!(1), 1),
        ("imports: [{acme/a: {merge: true, other: 1}}]\n", serde_json::json!(1), 1),
        ("values: {x: 1, o: {Fn::x: 1, y: 2}}\n", serde_json::json!(1), 0),
        ("values: {x: '${}', '': 1}\n", serde_json::json!(1), 0),
        ("values: {x: {fn::fromJSON: '1 and more'}}\n", serde_json::json!(1), 0),
        ("values: {x: {fn::fromJSON: '1&a '}}\n", serde_json::json!(1), 0),
        ("values: {x: {fn::fromJSON: '1.5.2'}}\n", serde_json::json!(1.5), 0),
        ("values: {x: {fn::fromJSON: ' 012'}}\n", serde_json::json!(0), 0),
        ("values: {x: {fn::fromJSON: 'truest'}}\n", serde_json::json!(true), 0),
        ("values: {x: {fn::fromJSON: '\"a\"b'}}\n", serde_json::json!("a"), 0),
    ] {
        assert_eq!(case.values(text)["x"], value, "{text}");
        let diagnostics = case.evaluated(text, None).diagnostics;
        assert_eq!(diagnostics.len(), warnings, "{text}: {diagnostics:?}");
    }
}

#[test]
fn a_secret_is_traced_to_its_text_and_known_without_opening() {
    let mut case = Case::new(&[]);
    case.is_opened = false;
    let text = "values:\n  s: {fn::secret: '{\"a\": 1}'}\n  k: ${j.a}\n  j: {fn::fromJSON: \"${s}\"}\n";
    assert_eq!(case.values(text)["k"], serde_json::json!({"secret": 1}));
    let found: Json = serde_json::from_str(&case.evaluated(text, Some("s")).found.unwrap()).unwrap();
    assert_eq!(found["trace"]["def"]["begin"], serde_json::json!({"line": 2, "column": 19, "byte": 26}));
}

#[test]
fn a_chain_of_too_many_references_is_refused() {
    let chain = |links: usize| {
        let link = |n: usize| format!("  a{n:03}: ${{a{:03}}}\n", n + 1);
        format!("values:\n{}  a{links:03}: 1\n", (0..links).map(link).collect::<String>())
    };
    assert_eq!(alone(&chain(DEPTH_MAX - 1))["a000"], 1);
    let errors = Case::new(&[]).errors(&chain(DEPTH_MAX));
    let place = format!("{}:9 ", DEPTH_MAX + 2);
    let words = "this is nested too deep: the limit is 150 values, references and imports";
    assert_eq!(errors, [format!("{place}{words}")]);
}

#[test]
fn values_that_become_too_large_are_refused() {
    let doubling = |line: &dyn Fn(usize) -> String| {
        let lines: String = (1..60).map(line).collect();
        format!("values:\n  a00: [xxxxxxxxxx]\n{lines}")
    };
    let many = |line: &str| {
        let members: String = (0..2_000).map(|n| format!("k{n}: 1, ")).collect();
        let lines = format!("  {line}\n").repeat(5_000);
        format!(
            "values:\n  o: {{{members}}}\n  l: [{}]\n  t: {}\n  j: {{fn::toJSON: \"${{o}}\"}}\n  x:\n{lines}",
            "1, ".repeat(2_000),
            "x".repeat(20_000)
        )
    };
    for text in [
        doubling(&|n| format!("  a{n:02}: [\"${{a{:02}}}\", \"${{a{:02}}}\"]\n", n - 1, n - 1)),
        doubling(&|n| format!("  a{n:02}: \"${{a{:02}}} ${{a{:02}}}\"\n", n - 1, n - 1)),
        doubling(&|n| {
            format!("  a{n:02}: {{fn::toJSON: [\"${{a{:02}}}\", \"${{a{:02}}}\"]}}\n", n - 1, n - 1)
        }),
        (1..400).fold("values:\n  a000: 1\n".to_owned(), |text, n| {
            text + &format!("  a{n:03}: [\"${{a{:03}}}\"]\n", n - 1)
        }),
        // Many references to a long value, and functions of it.
        many("- ${o}"),
        many("- \"${o}\""),
        many("- {fn::toJSON: \"${o}\"}"),
        many("- {fn::concat: [\"${l}\", \"${l}\"]}"),
        many("- {fn::split: ['', \"${t}\"]}"),
        many("- {fn::fromJSON: \"${j}\"}"),
        (1..2000).fold("values:\n".to_owned(), |text, n| text + &format!("  a{n:04}: ${{a{:04}}}\n", n + 1))
            + "  a2000: 1\n",
    ] {
        let errors = Case::new(&[]).errors(&text);
        assert!(errors.iter().any(|error| error.contains("too ")), "{errors:?}");
    }
}

#[test]
fn a_value_may_override_one_of_each_import() {
    let name = |n: usize| format!("acme/a{n}");
    let texts: Vec<(String, String)> = (0..99)
        .map(|n| match n {
            0 => (name(0), "values: {p: 0}\n".to_owned()),
            n => (name(n), format!("imports: [{}]\nvalues: {{p: {n}}}\n", name(n - 1))),
        })
        .collect();
    let case =
        Case::new(&texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
    // Each is nested in the trace of the value that overrides it, deeper than the reader of this test reads.
    let evaluated = case.evaluated("imports: [acme/a98]\nvalues: {p: 99}\n", None);
    assert_eq!(evaluated.diagnostics, []);
    assert!(evaluated.environment.contains(r#"{"p":{"value":99,"#), "{}", evaluated.environment);
}

#[test]
fn imports_that_double_what_is_overridden_are_refused() {
    let mut texts = vec![("acme/x0".to_owned(), "values: {p: 0}\n".to_owned())];
    texts.push(("acme/y0".to_owned(), "values: {p: 0}\n".to_owned()));
    for n in 1..20 {
        let text = format!("imports: [acme/x{0}, acme/y{0}]\nvalues: {{p: {n}}}\n", n - 1);
        texts.extend([(format!("acme/x{n}"), text.clone()), (format!("acme/y{n}"), text)]);
    }
    let case =
        Case::new(&texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect::<Vec<_>>());
    let errors = case.errors("imports: [acme/x19]\nvalues: {}\n");
    assert!(errors.iter().any(|error| error.contains("too many steps")), "{errors:?}");
}
