//! The console through its function: the same answers as on a server, and requests of a signed-in browser to all
//! functions.

use std::collections::BTreeMap;

use reqwest::{Client, Method};
use statewright_gateway::{Between, GatewayKind};
use statewright_shared::api::routes::{Auth, Group, ROUTES};
use statewright_shared::domain::names::Login;
use statewright_shared::services::identity::passwords;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::functions::{Functions, Setting};
use statewright_tests::visitor::Visitor;

/// A header of a request.
type Sent<'a> = (&'a str, &'a str);

/// What browsers send when they open a page.
const BROWSER: Sent = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

/// What a client sees of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Headers of a connection or of one request.
const OF_ONE_REQUEST: [&str; 5] =
    ["connection", "content-length", "date", "transfer-encoding", "x-pulumi-request-id"];

async fn ask(http: &Client, url: &str, method: &Method, path: &str, headers: &[Sent<'_>]) -> Seen {
    let mut request = http.request(method.clone(), format!("{url}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    let header = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    let mut headers: BTreeMap<String, String> = answer.headers().iter().map(header).collect();
    headers.retain(|name, _| !OF_ONE_REQUEST.contains(&name.as_str()));
    let body = answer.bytes().await.unwrap().to_vec();
    // The first page names the server.
    let body = match String::from_utf8(body) {
        Ok(text) => text.replace(url, "http://server").into_bytes(),
        Err(error) => error.into_bytes(),
    };
    Seen { status, headers, body }
}

fn client() -> Client {
    Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

#[tokio::test]
async fn an_http_api_answers_browsers_as_a_server_does() {
    Box::pin(is_as_on_a_server(GatewayKind::HttpApi)).await;
}

#[tokio::test]
async fn a_load_balancer_answers_browsers_as_a_server_does() {
    Box::pin(is_as_on_a_server(GatewayKind::Balancer)).await;
}

async fn is_as_on_a_server(kind: GatewayKind) {
    let functions = Functions::start_as(Setting { kind, ..Setting::default() }).await;
    let server = TestApp::memory().await;
    let (console, http) = (server.console().await, client());
    let page = ask(&http, &console, &Method::GET, "/", &[BROWSER]).await;
    let text = String::from_utf8(page.body).unwrap();
    let files: Vec<&str> = text.split('"').filter(|text| text.starts_with("/assets/")).collect();
    assert!(files.len() > 4, "{text}");
    let (known, gzip) = (("if-none-match", page.headers["etag"].as_str()), ("accept-encoding", "gzip, br"));

    let mut asked = 0;
    let mut same = async |method: &Method, path: &str, headers: &[Sent<'_>], status: u16| {
        let there = ask(&http, &console, method, path, headers).await;
        let here = ask(&http, &functions.url, method, path, headers).await;
        assert_eq!(there.status, status, "{method} {path} {headers:?}");
        assert_eq!(here.status, there.status, "{method} {path} {headers:?}");
        assert_eq!(here.headers, there.headers, "{method} {path} {headers:?}");
        assert!(here.body == there.body, "{method} {path} {headers:?}");
        asked += 1;
        here
    };
    for path in ["/", "/acme", "/acme/web/dev/updates/3?explainFailure", "/acme/-/locks", "/a%20b/%C3%A4"] {
        let (other, posted) = (if path == "/" { 200 } else { 404 }, 404);
        for headers in [&[BROWSER][..], &[BROWSER, gzip], &[BROWSER, known]] {
            let expected = if headers.contains(&known) { 304 } else { 200 };
            let shown = same(&Method::GET, path, headers, expected).await;
            assert_eq!(shown.headers["cache-control"], "no-cache");
            assert_eq!(shown.headers["etag"], known.1);
            assert_eq!(shown.headers.contains_key("content-encoding"), headers.contains(&gzip));
            same(&Method::HEAD, path, headers, expected).await;
        }
        for headers in [&[][..], &[("accept", "application/json")]] {
            let refused = same(&Method::GET, path, headers, other).await;
            let is_json = serde_json::from_slice::<serde_json::Value>(&refused.body)
                .is_ok_and(|body| body["code"] == other);
            assert_eq!(is_json, path != "/", "the CLI checks the body's code");
        }
        same(&Method::POST, path, &[BROWSER], posted).await;
    }
    for file in files {
        for headers in [&[][..], &[gzip]] {
            let sent = same(&Method::GET, file, headers, 200).await;
            assert_eq!(sent.headers["cache-control"], "public, max-age=31536000, immutable");
            let is_gzip = sent.body.starts_with(&[0x1f, 0x8b]);
            assert_eq!(is_gzip, headers.contains(&gzip), "{file}");
        }
    }
    for path in [
        "/assets/0123456789abcdef/main.js",
        "/api",
        "/api/none",
        "/api/stacks/acme/web/dev/deployments",
        "/api/esc/none",
        "/user/none",
        "/signin/none/none/none",
        "/healthz/none",
    ] {
        for headers in [&[][..], &[BROWSER]] {
            let is_page = path.starts_with("/assets/") && headers.contains(&BROWSER);
            same(&Method::GET, path, headers, if is_page { 200 } else { 404 }).await;
        }
        same(&Method::DELETE, path, &[], 404).await;
    }
    for (path, status) in [("/tfstate", 403), ("/tfstate/", 403), ("/tfstate/acme", 401)] {
        let refused = same(&Method::GET, path, &[BROWSER], status).await;
        assert!(refused.headers["content-type"].starts_with("application/json"), "{refused:?}");
    }
    assert!(asked > 70, "{asked}");
    assert!(functions.aws("console").rights().is_empty(), "the console asks AWS");
}

#[tokio::test]
async fn warm_functions_accept_the_session_of_a_browser() {
    Box::pin(is_signed_in(Between::Waits)).await;
}

#[tokio::test]
async fn cold_functions_accept_the_session_of_a_browser() {
    Box::pin(is_signed_in(Between::Killed)).await;
}

/// One request to each function that accepts access tokens, with the cookie of a session instead. That the functions'
/// policies allow it is checked in the end.
async fn is_signed_in(between: Between) {
    const PASSWORD: &str = "correct horse battery";
    let functions = Functions::start_as(Setting { between, ..Setting::default() }).await;
    let login = Login::parse(USER).unwrap();
    passwords::set(&functions.context, &login, PASSWORD).await.unwrap();
    let mut alice = Visitor::new(&functions.url);
    alice.submit("/signin", &[("login", USER), ("password", PASSWORD)]).await;
    let cookie = alice.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    let (cookie, http) = (cookie.join("; "), client());
    let console = [("x-statewright-console", "1"), ("cookie", cookie.as_str())];
    let from = |site: &'static str| [&console[..], &[("sec-fetch-site", site)]].concat();
    let mut groups: Vec<Group> = Vec::new();
    for route in ROUTES.iter().filter(|route| route.auth == Auth::Token) {
        if groups.contains(&route.group) {
            continue;
        }
        groups.push(route.group);
        let parts = route.path.split('/').map(|part| match part {
            "{org}" => ORG,
            part if part.starts_with('{') => "none",
            part => part,
        });
        let path = parts.collect::<Vec<_>>().join("/");
        // What the path names need not exist.
        let let_in = ask(&http, &functions.url, &route.method, &path, &from("same-origin")).await;
        assert!(![401, 403].contains(&let_in.status) && let_in.status < 500, "{route:?}: {let_in:?}");
        for site in ["same-site", "cross-site", "none"] {
            let foreign = ask(&http, &functions.url, &route.method, &path, &from(site)).await;
            assert_eq!(foreign.status, 403, "{route:?} from {site}: {foreign:?}");
        }
    }
    assert!(groups.len() > 5, "{groups:?}");
    alice.submit("/signout", &[]).await;
    // A process remembers a session for up to a minute, so only a new one notices at once.
    if between == Between::Killed {
        let user = ask(&http, &functions.url, &Method::GET, "/api/user", &from("same-origin")).await;
        assert_eq!(user.status, 401, "{user:?}");
    }
}
