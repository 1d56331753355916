use std::sync::Arc;

use axum::extract::Request;
use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, service_fn};
use lambda_runtime::{Context as LambdaContext, LambdaEvent, Service as _};
use serde_json::Value;
use statewright_shared::adapters::{ManualClock, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::api::routes::Group;
use statewright_shared::api::{self, Peer, RequestId};
use statewright_shared::context::Context;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::limits::{BALANCER_BYTES_MAX, FUNCTION_BYTES_MAX};
use statewright_shared::ports::{Ids, Timestamp};
use statewright_shared::services::accounts;

use super::*;
use crate::log::Log;

/// Handlers over memory, and a token for them.
struct World {
    context: Arc<Context>,
    token: String,
}

impl World {
    async fn new() -> Self {
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
        let (ledger, blobs) = (Arc::new(MemoryLedger::new()), Arc::new(MemoryBlobs::new()));
        let clock = Arc::new(ManualClock::new(Timestamp::from_seconds(1_767_225_600)));
        let context = Arc::new(Context::new(ledger, blobs, keys, clock, ids, "test".to_owned()));
        let (login, org) = (Login::parse("alice").unwrap(), OrgName::parse("acme").unwrap());
        let first = accounts::bootstrap(&context, &login, &org).await.unwrap();
        Self { context, token: first.unwrap().token }
    }

    /// What a function that has all groups makes of an event.
    async fn answer(&self, event: &Value) -> Value {
        let event = event.to_string().replace("@TOKEN@", &self.token);
        let event: LambdaRequest = serde_json::from_str(&event).unwrap();
        let router = api::router(Arc::clone(&self.context), &Group::ALL);
        let answer = move |event| crate::answer(router.clone(), Log::default(), event);
        let mut function = Adapter::from(service_fn(answer));
        let mut context = LambdaContext::default();
        context.request_id = "id-of-the-event".to_owned();
        serde_json::to_value(function.call(LambdaEvent::new(event, context)).await.unwrap()).unwrap()
    }
}

macro_rules! fixtures {
    ($($name:literal),*) => { [$(($name, include_str!(concat!("../../testdata/", $name, ".json")))),*] };
}

fn event(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn entered(text: &str) -> Request {
    enter(lambda_http::request::from_str(text).unwrap())
}

#[tokio::test]
async fn every_gateway_hands_over_a_body_that_the_handlers_read() {
    let world = World::new().await;
    let fixtures = fixtures![
        "http-api-gzip",
        "http-api-text",
        "http-api-gzip-said-to-be-plain",
        "http-api-stage",
        "http-api-inflated-on-the-way",
        "function-url-gzip",
        "balancer-gzip",
        "balancer-text",
        "balancer-multi-value"
    ];
    for (name, text) in &fixtures {
        let answer = world.answer(&event(text)).await;
        assert_eq!(answer["statusCode"], 200, "{name}: {answer}");
        assert_eq!(answer["isBase64Encoded"], false, "{name}: {answer}");
        assert_eq!(answer["headers"]["x-pulumi-request-id"], "id-of-the-event", "{name}");
    }
    for (name, text) in fixtures!["http-api-query", "balancer-query"] {
        let answer = world.answer(&event(text)).await;
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["stacks"].as_array().map(Vec::len), Some(fixtures.len()), "{name}: {answer}");
    }
}

#[test]
fn a_request_knows_its_door_and_the_address_that_the_gateway_saw() {
    for (_, text) in fixtures!["http-api-gzip", "function-url-gzip"] {
        let request = entered(text);
        assert_eq!(request.extensions().get(), Some(&Door::FUNCTION));
        assert_eq!(request.extensions().get::<Peer>().unwrap().0.ip().to_string(), "203.0.113.7");
    }
    let request = entered(fixtures!["balancer-gzip"][0].1);
    assert_eq!(request.extensions().get(), Some(&Door::BALANCER));
    assert_eq!(request.extensions().get::<Peer>().unwrap().0.ip().to_string(), "203.0.113.7");
    assert!(request.extensions().get::<RequestId>().is_none(), "there was no context");
}

#[test]
fn a_stage_is_taken_off_the_path_only_where_it_is_one() {
    let uri = |text: &str| text.parse::<Uri>().unwrap();
    let path = |text: &str, stage| without_stage(&uri(text), stage).map(|uri| uri.to_string());
    assert_eq!(path("/live/api/user?a=b", "live").as_deref(), Some("/api/user?a=b"));
    assert_eq!(path("https://h/live/api/user", "live").as_deref(), Some("https://h/api/user"));
    assert_eq!(path("/live", "live").as_deref(), Some("/"));
    assert_eq!(path("/liver/api", "live"), None);
    assert_eq!(path("/api/user", "$default"), None);
}

#[tokio::test]
async fn what_is_longer_than_its_door_is_refused_in_the_words_of_the_client() {
    let world = World::new().await;
    for (name, text, bytes_max) in [
        ("http api", fixtures!["http-api-text"][0].1, FUNCTION_BYTES_MAX),
        ("balancer", fixtures!["balancer-text"][0].1, BALANCER_BYTES_MAX),
    ] {
        let mut event = event(text);
        let body = |bytes: usize| {
            let rest = bytes - r#"{"stackName":""}"#.len();
            format!(r#"{{"stackName":"{}"}}"#, "a".repeat(rest))
        };
        event["body"] = body(bytes_max + 1).into();
        let answer = world.answer(&event).await;
        let body_of =
            |answer: &Value| serde_json::from_str::<Value>(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(answer["statusCode"], 413, "{name}");
        assert_eq!(body_of(&answer)["code"], 413, "the integer is what the client reads");
        let words = body_of(&answer)["message"].as_str().unwrap().to_owned();
        assert!(words.contains("journal") && words.contains("container"), "{words}");

        event["body"] = body(bytes_max).into();
        assert_eq!(
            world.answer(&event).await["statusCode"],
            400,
            "{name}: as long as may be, and no stack's name"
        );
    }
}

#[tokio::test]
async fn long_answers_are_compressed_and_flagged_as_no_text() {
    use base64::Engine as _;
    let world = World::new().await;
    let mut create = event(fixtures!["http-api-text"][0].1);
    // Enough stacks that their list is longer than what is sent as it is.
    for number in 0..1_000 {
        create["body"] =
            format!(r#"{{"stackName":"stack-with-a-rather-long-name-for-a-stack-{number}"}}"#).into();
        assert_eq!(world.answer(&create).await["statusCode"], 200);
    }
    let mut list = event(fixtures!["http-api-query"][0].1);
    let answer = world.answer(&list).await;
    assert_eq!(answer["isBase64Encoded"], true);
    assert_eq!(answer["headers"]["content-encoding"], "gzip");
    let bytes = base64::engine::general_purpose::STANDARD.decode(answer["body"].as_str().unwrap()).unwrap();
    assert!(bytes.starts_with(&[0x1f, 0x8b]));

    list["headers"].as_object_mut().unwrap().remove("accept-encoding");
    let answer = world.answer(&list).await;
    assert_eq!((&answer["statusCode"], &answer["isBase64Encoded"]), (&200.into(), &false.into()));
}
