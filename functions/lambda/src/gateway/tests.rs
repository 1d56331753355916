use std::sync::Arc;

use axum::extract::Request;
use lambda_runtime::{Context as LambdaContext, LambdaEvent};
use serde_json::Value;
use statewright_shared::adapters::{ManualClock, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::api::routes::Everything;
use statewright_shared::api::{self, ClientCertificate, Peer, RequestId};
use statewright_shared::context::Context;
use statewright_shared::domain::names::{Login, OrgName, TokenName};
use statewright_shared::limits::{BALANCER_BYTES_MAX, FUNCTION_BYTES_MAX};
use statewright_shared::ports::{Ids, Timestamp};
use statewright_shared::services::identity::tokens::Certificate;
use statewright_shared::services::identity::{bootstrap, tokens};

use super::*;
use crate::log::Log;

/// In-memory handlers and a token for them.
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
        let first = bootstrap::bootstrap(&context, &login, &org).await.unwrap();
        Self { context, token: first.unwrap().token }
    }

    /// The response of a function with all groups to an event.
    async fn answer(&self, event: &Value) -> Value {
        let event = event.to_string().replace("@TOKEN@", &self.token);
        let event: Event = serde_json::from_str(&event).unwrap();
        let router = api::router::<Everything>(Arc::clone(&self.context));
        let mut context = LambdaContext::default();
        context.request_id = "id-of-the-event".to_owned();
        let answer = crate::respond(router, Log::default(), LambdaEvent::new(event, context)).await;
        serde_json::to_value(answer.unwrap()).unwrap()
    }
}

macro_rules! fixtures {
    ($($name:literal),*) => { [$(($name, include_str!(concat!("../../testdata/", $name, ".json")))),*] };
}

fn event(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn entered(text: &str) -> Request {
    let Event::Request(request, mut apart) = serde_json::from_str(text).unwrap() else { panic!("{text}") };
    enter((*request).into(), &mut apart)
}

#[tokio::test]
async fn handlers_read_bodies_from_every_gateway() {
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
fn requests_have_their_gateway_and_client_address() {
    for (_, text) in fixtures!["http-api-gzip", "function-url-gzip"] {
        let request = entered(text);
        assert_eq!(request.extensions().get(), Some(&Gateway::FUNCTION));
        assert_eq!(request.extensions().get::<Peer>().unwrap().0.ip().to_string(), "203.0.113.7");
    }
    let request = entered(fixtures!["balancer-gzip"][0].1);
    assert_eq!(request.extensions().get(), Some(&Gateway::BALANCER));
    assert_eq!(request.extensions().get::<Peer>().unwrap().0.ip().to_string(), "203.0.113.7");
    assert!(request.extensions().get::<RequestId>().is_none(), "there was no context");
}

#[tokio::test]
async fn a_certificate_verified_by_the_gateway_authenticates() {
    let text = fixtures!["http-api-client-certificate"][0].1;
    let ClientCertificate(der) = entered(text).extensions().get().cloned().unwrap();
    let world = World::new().await;
    assert_eq!(world.answer(&event(text)).await["statusCode"], 401);
    let not_after = Timestamp::from_seconds(1_900_000_000);
    let certificate = Certificate { der: der.to_vec(), not_after };
    let (login, name) = (Login::parse("alice").unwrap(), TokenName::parse("laptop").unwrap());
    tokens::create_certificate(&world.context, &login, &name, &certificate, None, None).await.unwrap();
    // The state does not exist yet.
    assert_eq!(world.answer(&event(text)).await["statusCode"], 204);

    for other in ["", "no PEM", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"] {
        let mut event = event(text);
        event["requestContext"]["authentication"]["clientCert"]["clientCertPem"] = other.into();
        assert_eq!(world.answer(&event).await["statusCode"], 401, "{other}");
    }
    let mut without = event(text);
    without["requestContext"]["authentication"] = Value::Null;
    assert_eq!(world.answer(&without).await["statusCode"], 401);
    // Certificates in headers are ignored.
    let mut header = event(fixtures!["balancer-query"][0].1);
    header["path"] = "/tfstate/acme/net".into();
    header["headers"] = json!({ "host": "h", "x-amzn-mtls-clientcert": STANDARD.encode(&der) });
    assert_eq!(world.answer(&header).await["statusCode"], 401, "{header}");
}

#[test]
fn only_a_complete_stage_segment_is_removed() {
    let uri = |text: &str| text.parse::<Uri>().unwrap();
    let path = |text: &str, stage| without_stage(&uri(text), stage).map(|uri| uri.to_string());
    assert_eq!(path("/live/api/user?a=b", "live").as_deref(), Some("/api/user?a=b"));
    assert_eq!(path("https://h/live/api/user", "live").as_deref(), Some("https://h/api/user"));
    assert_eq!(path("/live", "live").as_deref(), Some("/"));
    assert_eq!(path("/liver/api", "live"), None);
    assert_eq!(path("/api/user", "$default"), None);
}

#[tokio::test]
async fn bodies_over_the_gateway_limit_are_refused() {
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
            "{name}: at the size limit, but not a valid stack name"
        );
    }
}

#[tokio::test]
async fn long_responses_are_compressed_and_flagged_as_binary() {
    use base64::Engine as _;
    let world = World::new().await;
    let mut create = event(fixtures!["http-api-text"][0].1);
    // Enough stacks that their list is compressed.
    for number in 0..1_000 {
        create["body"] =
            format!(r#"{{"stackName":"stack-with-a-rather-long-name-for-a-stack-{number}"}}"#).into();
        assert_eq!(world.answer(&create).await["statusCode"], 200);
    }
    let mut list = event(fixtures!["http-api-query"][0].1);
    let answer = world.answer(&list).await;
    assert_eq!(answer["isBase64Encoded"], true);
    assert_eq!(answer["headers"]["content-encoding"], "gzip");
    let bytes = STANDARD.decode(answer["body"].as_str().unwrap()).unwrap();
    assert!(bytes.starts_with(&[0x1f, 0x8b]));

    list["headers"].as_object_mut().unwrap().remove("accept-encoding");
    let answer = world.answer(&list).await;
    assert_eq!((&answer["statusCode"], &answer["isBase64Encoded"]), (&200.into(), &false.into()));
}

/// The members of an event that a client controls, for every kind of event, with odd values.
#[tokio::test]
async fn odd_values_in_events_are_never_server_errors() {
    const ODD: [&str; 14] = [
        "",
        " ",
        "a b",
        "[",
        "[::1",
        "a:b:c",
        "%",
        "@/?#",
        "/%ff%00",
        "\u{0}",
        "\u{e4}\u{1f980}",
        "//host/../..",
        "\r\nx: y",
        "\u{7f}\\{}|^`<>\"",
    ];
    let world = World::new().await;
    let long = "/x".repeat(40_000);
    for (name, text) in
        fixtures!["http-api-gzip", "function-url-gzip", "balancer-query", "balancer-multi-value"]
    {
        for pointer in [
            "/headers/host",
            "/headers/x-forwarded-proto",
            "/headers/x-forwarded-for",
            "/headers/user-agent",
            "/multiValueHeaders/host/0",
            "/multiValueHeaders/user-agent/0",
            "/requestContext/domainName",
            "/requestContext/stage",
            "/requestContext/http/sourceIp",
            "/rawPath",
            "/rawQueryString",
            "/path",
            "/queryStringParameters/project",
            "/body",
        ] {
            for odd in ODD.into_iter().chain([long.as_str()]) {
                let mut event = event(text);
                let Some(place) = event.pointer_mut(pointer) else { continue };
                *place = odd.into();
                let answer = world.answer(&event).await;
                let status = answer["statusCode"].as_u64().unwrap();
                assert!((200..500).contains(&status), "{name} {pointer} {odd:.40}: {answer}");
                let is_of_use =
                    ["host", "-proto", "-for", "user-agent", "agent/0", "host/0", "domainName", "sourceIp"]
                        .iter()
                        .all(|end| !pointer.ends_with(end));
                // One of the requests created the stack.
                assert!(is_of_use || [200, 409].contains(&status), "{name} {pointer} {odd:.40}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn invalid_events_are_refused_with_a_message() {
    let world = World::new().await;
    let mut events =
        vec![Value::Null, 1.into(), "".into(), json!([]), json!({}), json!({ "version": "2.0" })];
    let mut not_base64 = event(fixtures!["http-api-gzip"][0].1);
    not_base64["body"] = "*".into();
    let mut no_method = event(fixtures!["balancer-query"][0].1);
    no_method["httpMethod"] = "G T".into();
    events.extend([not_base64, no_method]);
    for event in events {
        let answer = world.answer(&event).await;
        assert_eq!(answer["statusCode"], 400, "{event}: {answer}");
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["code"], 400, "{event}: {answer}");
    }
}

#[tokio::test]
async fn a_warm_up_gets_an_empty_response() {
    let world = World::new().await;
    assert_eq!(world.answer(&json!({ "warmup": true })).await, Value::Null);
    assert_eq!(world.answer(&json!({ "warmup": false })).await["statusCode"], 400);
    let mut request = event(fixtures!["http-api-query"][0].1);
    request["warmup"] = true.into();
    assert_eq!(
        world.answer(&request).await["statusCode"],
        200,
        "a request with this member is still a request"
    );
}

#[test]
fn a_request_has_the_host_from_its_client() {
    for (_, text) in fixtures!["http-api-gzip", "balancer-gzip", "balancer-multi-value"] {
        let named = event(text)
            .pointer("/headers/host")
            .or(event(text).pointer("/multiValueHeaders/host/0"))
            .cloned();
        assert_eq!(entered(text).headers().get(HOST).unwrap().to_str().ok(), named.unwrap().as_str());
    }
}
