//! The page at the server's address for a newcomer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use statewright_tests::app::{Answer, TestApp};

async fn open(app: &TestApp, headers: &[(&str, &str)]) -> Answer {
    let call = app.get("/").anonymous();
    headers.iter().fold(call, |call, (name, value)| call.header(name, value)).send().await
}

fn header<'a>(answer: &'a Answer, name: &str) -> &'a str {
    answer.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().unwrap()
}

const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

#[tokio::test]
async fn the_first_page_names_the_server_and_the_login() {
    let app = TestApp::memory().await;
    let (page, text) = (open(&app, &[BROWSER]).await, open(&app, &[]).await);
    assert_eq!((page.status.as_u16(), text.status.as_u16()), (200, 200));
    assert_eq!(header(&page, "content-type"), "text/html; charset=utf-8");
    assert_eq!(header(&text, "content-type"), "text/plain; charset=utf-8");
    for expected in [
        "This is Statewright".to_owned(),
        format!("pulumi login {}", app.url),
        "statewright token create NAME --user LOGIN".to_owned(),
        format!("address        = \"{}/tfstate/ORGANIZATION/PROJECT\"", app.url),
        "TF_HTTP_PASSWORD=TOKEN".to_owned(),
        "api/openapi".to_owned(),
    ] {
        assert!(page.text().contains(&expected), "{expected}: {}", page.text());
        assert!(text.text().contains(&expected), "{expected}: {}", text.text());
    }
}

#[tokio::test]
async fn the_first_page_loads_nothing_and_has_inline_style() {
    let app = TestApp::memory().await;
    let page = open(&app, &[BROWSER]).await;
    let text = page.text();
    let style = text.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    let policy = header(&page, "content-security-policy");
    let allowed = format!("style-src 'sha256-{}'", STANDARD.encode(Sha256::digest(style)));
    assert!(policy.starts_with("default-src 'none';") && policy.contains(&allowed), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(style.contains("color-scheme:light dark"), "{style}");
    assert!(text.contains("width=device-width"), "{text}");
    for forbidden in ["<script", "<img", "src=", "style=", "url(", "@import"] {
        assert!(!text.contains(forbidden), "{forbidden}");
    }
}

/// A client can send any host name.
#[tokio::test]
async fn the_first_page_uses_a_proxys_address_without_markup() {
    let app = TestApp::memory().await;
    let behind = |host, proto| [BROWSER, ("X-Forwarded-Host", host), ("X-Forwarded-Proto", proto)];
    let page = open(&app, &behind("state.example.com", "https")).await.text();
    assert!(page.contains("pulumi login https://state.example.com<"), "{page}");
    let page = open(&app, &behind("<script>alert(1)</script>", "https")).await.text();
    assert!(page.contains("pulumi login https://THIS-SERVER<") && !page.contains("<script"), "{page}");
    let page = open(&app, &behind("a.example", "javascript")).await.text();
    assert!(page.contains("pulumi login http://a.example<"), "{page}");
}
