//! The console: one page for a browser, with its scripts and styles, embedded in the program. The page calls the
//! JSON API of the server that it came from. The server mounts it, and a function of its own serves it on AWS.
//!
//! The files are built from `web` into `dist`, which is in the repository. `build.rs` compresses them and puts
//! their hash into their path, so browsers keep them until there is another version.

use std::io::Read as _;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::read::GzDecoder;

/// A file that the page loads.
struct File {
    name: &'static str,
    media: &'static str,
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page loads and asks this server alone, runs and draws only what is in files, and cannot be framed.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; \
                      img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A worker takes its policy from its file, and asks nothing and loads nothing: it reads texts of other people.
const POLICY_OF_FILES: &str = "default-src 'none'";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Serves the console where this router has no page: to a browser that asks for a page at another path.
pub fn around(router: Router, is_of_router: fn(&str) -> bool) -> Router {
    let console = middleware::from_fn_with_state(is_of_router, console);
    Router::new().fallback_service(router).layer(console)
}

async fn console(State(is_of_router): State<fn(&str) -> bool>, request: Request, next: Next) -> Response {
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let (path, headers) = (request.uri().path(), request.headers());
    match is_read {
        true if path.starts_with(FOLDER) => match file(path) {
            Some(file) => of_file(file, headers),
            None => next.run(request).await,
        },
        true if accepts(headers, "text/html") && !is_of_router(path) => page(headers),
        _ => next.run(request).await,
    }
}

fn file(path: &str) -> Option<&'static File> {
    let name = path.strip_prefix(FOLDER)?;
    FILES.iter().find(|file| file.name == name)
}

fn accepts(headers: &HeaderMap, media: &str) -> bool {
    headers.get_all(ACCEPT).iter().any(|value| value.to_str().is_ok_and(|value| value.contains(media)))
}

/// The path of a file changes with the file, so a browser need not ask again.
fn of_file(file: &'static File, headers: &HeaderMap) -> Response {
    let mut response = compressed(file.gzip, headers);
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(file.media));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    fields.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY_OF_FILES));
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The page is the same at every address. What it shows, it asks for.
fn page(headers: &HeaderMap) -> Response {
    let tag = format!("\"{}\"", FOLDER.trim_matches('/').rsplit('/').next().unwrap_or_default());
    let is_known = headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .any(|value| value.to_str().is_ok_and(|value| value.contains(&tag)));
    let mut response = match is_known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => compressed(PAGE, headers),
    };
    let fields = response.headers_mut();
    let values = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (OPENER_POLICY, "same-origin"),
        (VARY, "Accept, Accept-Encoding"),
    ];
    for (name, value) in values {
        fields.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(tag) = HeaderValue::try_from(tag) {
        fields.insert(ETAG, tag);
    }
    response
}

/// The bytes as they are stored, or inflated for a client that does not take that.
fn compressed(gzip: &'static [u8], headers: &HeaderMap) -> Response {
    let takes = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("gzip"));
    let mut response = if headers.get_all(ACCEPT_ENCODING).iter().any(takes) {
        let mut response = Body::from(Bytes::from_static(gzip)).into_response();
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        let mut plain = Vec::new();
        match GzDecoder::new(gzip).read_to_end(&mut plain) {
            Ok(_) => Body::from(plain).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use tower::ServiceExt as _;

    use super::*;

    /// The bytes that a browser loads before the page shows something, compressed, at most.
    const FIRST_LOAD_BYTES_MAX: usize = 220_000;

    /// The bytes of what draws graphs, compressed, at most. It is loaded when a graph is opened.
    const GRAPH_BYTES_MAX: usize = 60_000;

    fn served() -> Router {
        let api = Router::new().fallback(|| async { (StatusCode::NOT_FOUND, "of the API") });
        around(api, |path| path.starts_with("/api/"))
    }

    async fn get(path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = served().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
    }

    const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");

    #[tokio::test]
    async fn a_browser_gets_the_page_at_each_path_outside_the_api() {
        for path in ["/", "/main", "/main/web/dev/updates/3", "/main/-/locks?x=1", "/a/b/c/d/e/f"] {
            let (status, headers, body) = get(path, &[BROWSER]).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            assert_eq!(headers["content-type"], "text/html; charset=utf-8");
            assert!(String::from_utf8(body).unwrap().contains("<div id=\"root\">"), "{path}");
        }
        for (path, headers) in
            [("/api/user", &[BROWSER][..]), ("/main", &[]), ("/main", &[("Accept", "application/json")][..])]
        {
            let (status, _, body) = get(path, headers).await;
            assert_eq!((status, body.as_slice()), (StatusCode::NOT_FOUND, &b"of the API"[..]), "{path}");
        }
        let posted = Request::post("/main").header("Accept", "text/html").body(Body::empty()).unwrap();
        assert_eq!(served().oneshot(posted).await.unwrap().status(), StatusCode::NOT_FOUND);
    }

    /// The addresses of files that the page names.
    fn named(page: &str) -> Vec<String> {
        let quoted = page.split('"').skip(1).step_by(2);
        quoted.filter(|text| text.starts_with('/')).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn the_page_names_files_that_never_change_within_the_budget() {
        let (_, _, body) = get("/", &[BROWSER]).await;
        let page = String::from_utf8(body).unwrap();
        let (mut names, mut bytes) = (named(&page), page.len());
        names.retain(|name| !name.ends_with(".svg"));
        assert!(names.len() >= 3, "{page}");
        for name in &names {
            let (status, headers, body) = get(name, &[("Accept-Encoding", "gzip, br")]).await;
            assert_eq!(status, StatusCode::OK, "{name}");
            assert_eq!(headers["content-encoding"], "gzip");
            assert_eq!(headers["cache-control"], "public, max-age=31536000, immutable");
            assert_eq!(headers["content-security-policy"], "default-src 'none'");
            bytes += body.len();
            let (_, headers, plain) = get(name, &[]).await;
            assert!(!headers.contains_key("content-encoding") && plain.len() >= body.len(), "{name}");
        }
        assert!(bytes <= FIRST_LOAD_BYTES_MAX, "the first load has {bytes} bytes");
        let (status, ..) = get(&format!("{FOLDER}no-such-file.js"), &[]).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        let (status, ..) = get("/assets/0123456789abcdef/main.js", &[]).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "a file of another version");
    }

    #[tokio::test]
    async fn a_graph_is_within_its_budget_and_not_in_the_first_load() {
        let mut bytes = 0;
        let (_, _, page) = get("/", &[BROWSER]).await;
        let page = String::from_utf8(page).unwrap();
        for name in ["graph.js", "layout.worker.js"] {
            assert!(!page.contains(name), "{name} is in the first load");
            let (status, _, body) = get(&format!("{FOLDER}{name}"), &[("Accept-Encoding", "gzip")]).await;
            assert_eq!(status, StatusCode::OK, "{name}");
            bytes += body.len();
        }
        assert!(bytes <= GRAPH_BYTES_MAX, "a graph has {bytes} bytes");
    }

    #[tokio::test]
    async fn the_page_may_load_only_from_its_server() {
        let (_, headers, body) = get("/", &[BROWSER]).await;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && policy.contains("frame-ancestors 'none'"));
        assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains("data:"));
        let page = String::from_utf8(body).unwrap();
        for forbidden in ["http://", "https://", "style=", "<style", "onload=", "javascript:"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        // Each script is a file.
        assert_eq!(
            page.matches("<script").count(),
            page.matches("<script src=").count()
                + page.matches("<script type=\"module\" crossorigin src=").count()
        );
        let tag = headers["etag"].to_str().unwrap().to_owned();
        let (status, _, body) = get("/main", &[BROWSER, ("If-None-Match", &tag)]).await;
        assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
    }

    /// The policy of the page would stop each of these in the browser, where only some tests look.
    #[test]
    fn files_load_nothing_from_elsewhere_and_evaluate_no_text() {
        for File { name, gzip, .. } in FILES {
            let mut text = String::new();
            GzDecoder::new(*gzip).read_to_string(&mut text).unwrap();
            let text: String = text.replace(['\'', '`'], "\"").split_whitespace().collect();
            for loads in [
                "import(\"http",
                "from\"http",
                "import\"http",
                "fetch(\"http",
                "Worker(\"http",
                "newURL(\"https",
                "importScripts(",
                "eval(",
                "newFunction(",
                "<style",
            ] {
                assert!(!text.contains(loads), "{name} has {loads}");
            }
            // In a script, these are names of functions.
            for loads in ["url(", "@import"].iter().filter(|_| name.ends_with(".css")) {
                assert!(!text.contains(loads), "{name} has {loads}");
            }
        }
        let of_graphs = FILES.iter().filter(|file| file.name.starts_with("graph"));
        let bytes: usize = of_graphs.map(|file| file.gzip.len()).sum();
        assert!(bytes <= GRAPH_BYTES_MAX, "graphs have {bytes} bytes");
    }
}
