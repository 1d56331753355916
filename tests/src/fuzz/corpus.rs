//! Requests of real clients, from the recordings in `tests/data`.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use statewright_shared::api::routes::{ROUTES, Route};

const JOURNALS: &str = include_str!("../../data/recorded-journals.jsonl");
const RECORDINGS: [&[u8]; 3] = [
    include_bytes!("../../data/recordings/up-20-checkpoint-delta.jsonl.gz"),
    include_bytes!("../../data/recordings/up-200-journal-v1.jsonl.gz"),
    include_bytes!("../../data/recordings/up-noop-refresh-destroy-20-journal-v1.jsonl.gz"),
];

/// The longest body in the corpus. Longer ones make each case slow, and contain nothing that shorter ones do not.
const BYTES_MAX: usize = 20_000;

pub(super) struct Corpus {
    /// Bodies, each with its route's index in the table.
    pub(super) bodies: Vec<(usize, Value)>,
    /// Untyped deployments.
    pub(super) deployments: Vec<Value>,
    /// The entries of one journal each.
    pub(super) journals: Vec<Vec<Value>>,
}

impl Corpus {
    pub(super) fn load() -> Self {
        let mut corpus = Self { bodies: Vec::new(), deployments: Vec::new(), journals: Vec::new() };
        for line in JOURNALS.lines() {
            let recorded: Value = serde_json::from_str(line).expect("the recorded journals are JSON");
            corpus.deployments.push(json!({ "version": 3, "deployment": recorded["base"] }));
            corpus.deployments.push(recorded["expect"].clone());
            corpus.journals.push(recorded["entries"].as_array().cloned().unwrap_or_default());
        }
        for recording in RECORDINGS {
            let mut text = String::new();
            GzDecoder::new(recording).read_to_string(&mut text).expect("the recordings are gzip");
            for line in text.lines() {
                let call: Value = serde_json::from_str(line).expect("the recordings are JSON");
                corpus.add(&call);
            }
        }
        for (tail, body) in MORE {
            let body = serde_json::from_str(body).expect("they are JSON");
            let route = ROUTES.iter().position(|route| route.path.ends_with(tail));
            corpus.bodies.push((route.expect("they end as routes do"), body));
        }
        for (number, deployment) in corpus.deployments.iter().take(12).enumerate() {
            let (tail, body) = match number % 3 {
                0 => ("/import", deployment.clone()),
                1 => ("/checkpoint", deployment.clone()),
                _ => (
                    "/checkpointverbatim",
                    json!({ "version": 3, "untypedDeployment": deployment, "sequenceNumber": 1 }),
                ),
            };
            let route = ROUTES.iter().position(|route| route.path.ends_with(tail));
            corpus.bodies.push((route.expect("states are saved"), body));
        }
        corpus
    }

    fn add(&mut self, call: &Value) {
        let text = |name: &str| call[name].as_str().unwrap_or_default();
        let Some(route) = ROUTES.iter().position(|route| is_of(route, text("method"), text("path"))) else {
            return;
        };
        let mut body = STANDARD.decode(text("body_b64")).expect("bodies are base64");
        if body.starts_with(&[0x1f, 0x8b]) {
            let mut inflated = Vec::new();
            GzDecoder::new(&body[..]).read_to_end(&mut inflated).expect("compressed bodies are gzip");
            body = inflated;
        }
        if (1..BYTES_MAX).contains(&body.len()) {
            self.bodies.push((route, serde_json::from_slice(&body).expect("bodies are JSON")));
        }
    }

    /// A recorded body for the route, if there is one.
    pub(super) fn body(&self, route: usize, dice: &mut Rng) -> Option<Value> {
        let bodies = self.bodies.iter().filter(|(of, _)| *of == route);
        dice.choice(bodies.collect::<Vec<_>>()).map(|(_, body)| body.clone())
    }

    /// Any body.
    pub(super) fn any(&self, dice: &mut Rng) -> Value {
        let index = dice.usize(..self.bodies.len() + self.deployments.len());
        match self.bodies.get(index) {
            Some((_, body)) => body.clone(),
            None => self.deployments[index - self.bodies.len()].clone(),
        }
    }
}

/// Requests that the recordings lack.
const MORE: [(&str, &str); 8] = [
    (
        "/checkpointdelta",
        r#"{"version":3,"checkpointHash":"","sequenceNumber":2,"deploymentDelta":[{"Span":{"uri":"","start":{"line":1,"column":1,"offset":1},"end":{"line":1,"column":1,"offset":2}},"NewText":"x"}]}"#,
    ),
    ("/tags", r#"{"pulumi:project":"p","a":"b"}"#),
    ("/rename", r#"{"newName":"prod","newProject":"other"}"#),
    ("/transfer", r#"{"toOrg":"acme"}"#),
    ("/renew_lease", r#"{"token":"","duration":300}"#),
    ("/decrypt", r#"{"ciphertext":"AQAAAAE="}"#),
    (
        "/begin-update",
        r#"{"updateKind":"update","program":{"name":"p","runtime":"yaml","config":{"p:a":{"string":"v","secret":false,"object":false}},"options":{"dryRun":false},"metadata":{"message":"m","environment":{"git.head":"x"}}},"journalVersion":2,"tags":{"a":"b"}}"#,
    ),
    (
        "/events/batch",
        r#"{"events":[{"sequence":1,"timestamp":1,"preludeEvent":{"config":{"a":"b"}}},{"sequence":2,"timestamp":2,"resourcePreEvent":{"metadata":{"op":"create","urn":"urn:pulumi:dev::p::t::n","type":"t"}}},{"sequence":3,"timestamp":3,"summaryEvent":{"maybeCorrupt":false,"durationSeconds":1,"resourceChanges":{"create":2}}}]}"#,
    ),
];

fn is_of(route: &Route, method: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) = (route.path.split('/').collect(), path.split('/').collect());
    let fits = |(part, given): (&&str, &&str)| part.starts_with('{') || part == given;
    route.method == method && pattern.len() == path.len() && pattern.iter().zip(&path).all(fits)
}
