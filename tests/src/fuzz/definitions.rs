//! Definitions of environments: evaluating never panics, is repeatable, and gives the same once secrets are
//! sealed.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::Value;
use statewright_shared::domain::environment::evaluate::{Request, Source, evaluate};
use statewright_shared::domain::environment::sealed::{self, Replacement};
use statewright_shared::domain::environment::{Diagnostic, definition, has_errors};
use statewright_shared::wire::esc;

use super::pure::{Checked, holds, without_panic};
use super::{Blob, Case, mutate};

/// Definitions that use every feature.
const DEFINITIONS: &[&str] = &[
    "# of the team\nimports:\n- net/base\n- {net/other: {merge: false}}\nvalues:\n  db:\n    host: ${servers[0].name}.example\n    \
     port: 0x1F\n    password:\n      fn::secret: hunter2 # why\n  servers: [{name: a}, {name: \"b\\tc\"}]\n  url: \
     'https://${db.host}:${db.port}/${imports[\"net/other\"].x}'\n  $x: $${y}\n",
    "values:\n  a: {fn::toJSON: {b: [1, 1.5, true, null], c: '${d}'}}\n  d: {fn::join: ['-', [x, '${e}']]}\n  e: \
     {fn::toBase64: {fn::toString: [1, '2']}}\n  f: {fn::fromJSON: '${a}'}\n  g: {fn::split: [',', 'a,b']}\n  h: {fn::concat: \
     [['${g[0]}'], '${g}']}\n  i: {fn::final: {j: '${f.b[1]}'}}\n  k: {fn::validate: {schema: {type: string}, value: '${d}'}}\n  \
     l: {fn::toYAML: '${f}'}\n",
    "values:\n  s: {fn::secret: 'it''s'}\n  t:\n    fn::secret: |\n      two\n      lines\n  u: \"${s}${t}\"\n  v: ${environments.net.base.x}\n  \
     w: {\"fn::secret\": \"\\u00e9\"}\n  é:\n  - fn::secret: >-\n      folded\n      text\n  z: ${é[0]}\n",
    "values:\n  s: {fn::open::pulumi-stacks: {stacks: {n: {stack: net/dev}}}}\n  o: ${s.n.url}\n  c: ${context.rootEnvironment.name}\n",
];

/// Fragments of definitions.
const PARTS: &[&str] = &[
    "${",
    "}",
    "[",
    "]",
    "{",
    ":",
    ": ",
    "\n",
    "  ",
    "- ",
    "'",
    "\"",
    "|",
    ">",
    "#",
    "&a ",
    "*a",
    "!!str ",
    "? ",
    "fn::secret: ",
    "fn::secret: {ciphertext: AQ==}",
    "fn::final: ",
    "imports: ",
    "values: ",
    "a",
    "${a}",
    "${a.b[0]}",
    "\t",
    "é",
    "\u{feff}",
    "---\n",
    "...\n",
    "~",
    "0o7",
    ".inf",
    "%YAML 1.2\n",
    ",",
    "merge: false",
    "fn::toJSON: ",
    "$$",
    "\\",
    "\u{2028}",
    "\r\n",
    "<<: ",
    "@",
    "`",
];

pub(super) fn definition(dice: &mut Rng) -> Case {
    let mut text = dice.choice(DEFINITIONS).copied().unwrap_or_default().to_owned();
    for _ in 0..dice.u8(..6) {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let from = dice.usize(..places.len());
        let until = dice.usize(from..(from + 8).min(places.len()));
        let part =
            dice.choice(PARTS).copied().unwrap_or_default().repeat(dice.choice([1, 1, 1, 30]).unwrap_or(1));
        text.replace_range(places[from]..places[until], &part);
    }
    let mut text = text.into_bytes();
    if dice.u8(..4) == 0 {
        mutate::text(&mut text, dice);
    }
    Case::Definition(Blob(text))
}

fn source(name: &str, text: &str, secrets: &BTreeMap<String, String>) -> Source {
    let mut diagnostics = Vec::new();
    let definition = definition::read(name, text, &mut diagnostics);
    let open = |sealed: String| {
        let plain = secrets.get(&sealed).cloned();
        (sealed, plain.ok_or_else(|| "it is sealed elsewhere".to_owned()))
    };
    let secrets = definition.ciphertexts().into_iter().map(open).collect();
    Source { name: name.to_owned(), definition, diagnostics, secrets }
}

/// An evaluation as clients read it.
struct Evaluated {
    diagnostics: Vec<Diagnostic>,
    environment: String,
}

fn evaluated(text: &str, secrets: &BTreeMap<String, String>) -> Evaluated {
    let root = source("net/top", text, secrets);
    let other = |name: &str, text: &str| (name.to_owned(), Ok(source(name, text, &BTreeMap::new())));
    let others = BTreeMap::from([
        other("net/base", "values: {db: {host: b, extra: [1]}, x: {y: z}, e: {fn::final: 1}}\n"),
        other("net/other", "imports: [net/base]\nvalues: {x: 2}\n"),
    ]);
    let outputs = BTreeMap::new();
    let request = Request { root: &root, others: &others, is_opened: true, context: "{}", outputs: &outputs };
    let evaluation = evaluate(&request, None);
    let environment = esc::environment(&evaluation).expect("numbers are JSON");
    Evaluated { diagnostics: evaluation.diagnostics, environment }
}

/// The values of an environment without their origins.
fn plain(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("trace");
            members.values_mut().for_each(plain);
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}

fn values(evaluated: &Evaluated) -> Result<Value, String> {
    let environment: Value = serde_json::from_str(&evaluated.environment)
        .map_err(|error| format!("its result is not JSON: {error}"))?;
    let mut properties = environment["properties"].clone();
    plain(&mut properties);
    Ok(properties)
}

pub(super) fn try_definition(bytes: &[u8]) -> Checked {
    without_panic(|| {
        let text = String::from_utf8_lossy(bytes);
        let once = evaluated(&text, &BTreeMap::new());
        let twice = evaluated(&text, &BTreeMap::new());
        holds("it evaluates to the same twice", once.environment == twice.environment)?;
        holds("its diagnostics are the same twice", once.diagnostics == twice.diagnostics)?;
        for wrong in once.diagnostics.iter().filter(|wrong| wrong.range.environment == "net/top") {
            holds(
                "diagnostics are within the text",
                wrong.range.end.byte <= text.len() && wrong.range.begin.byte <= wrong.range.end.byte,
            )?;
        }
        let before = values(&once)?;
        let mut secrets = BTreeMap::new();
        let mut replaced = Vec::new();
        for (number, secret) in
            sealed::secrets(&text).into_iter().filter(|secret| !secret.is_sealed).enumerate()
        {
            let ciphertext = format!("c{number}/+=");
            secrets.insert(ciphertext.clone(), secret.text.clone());
            replaced.push((secret, Replacement::Ciphertext(ciphertext)));
        }
        let sealed = sealed::replace(&text, &replaced);
        // The caller refuses a definition that cannot be sealed in place.
        if sealed::holds_plaintext(&sealed)
            || !sealed::is_same(&text, &sealed)
            || replaced.is_empty()
            || has_errors(&once.diagnostics)
        {
            return Ok(());
        }
        // `$$` is `$` in an evaluated text, and itself in a sealed one.
        if secrets.values().any(|secret| secret.contains("$$")) {
            return Ok(());
        }
        let after = evaluated(&sealed, &secrets);
        holds("it evaluates to the same once it is sealed", values(&after)? == before)?;
        let shut = sealed::secrets(&sealed).into_iter().filter(|secret| secret.is_sealed);
        let opened: Vec<_> = shut
            .filter_map(|secret| {
                let plain = secrets.get(&secret.text)?.clone();
                Some((secret, Replacement::Plaintext(plain)))
            })
            .collect();
        let again = sealed::replace(&sealed, &opened);
        holds("and once it is opened again", values(&evaluated(&again, &BTreeMap::new()))? == before)
    })
}
