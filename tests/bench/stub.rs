//! A backend that answers every call at once and stores nothing: a command's time against it is the client's
//! own, and no backend can be faster.
//!
//! It reads every body to its end but parses one only if the answer depends on it. It offers what Statewright
//! offers (begin-update, batches of secrets, journaling version 2), so that the client sends the same requests.

use std::io::{self, Read};
use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::StatusCode;
use axum::response::Json;
use axum::routing::{get, patch, post};
use axum::serve::ListenerExt;
use flate2::read::MultiGzDecoder;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;

const ORGANIZATION: &str = "bench";

/// Every update has the same name: the stub does not distinguish them.
const UPDATE: &str = "00000000-0000-4000-8000-000000000000";

/// Serves until the process ends, and prints its address on stdout.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn serve(listen: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    println!("{}{}", crate::process::LISTENING, listener.local_addr()?);
    // Without this, an answer that waits for more data would count as the client's time.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    axum::serve(listener, router()).await
}

fn router() -> Router {
    let stack = Router::new()
        .route("/", get(get_stack).delete(done).post(done))
        .route("/export", get(async || Json(json!({"version": 3, "deployment": {}}))))
        .route("/outputs", get(async || Json(json!({}))))
        .route("/updates", get(async || Json(json!({"updates": []}))))
        .route("/tags", patch(done))
        .route("/encrypt", post(encrypt))
        .route("/batch-encrypt", post(batch_encrypt))
        .route("/batch-decrypt", post(batch_decrypt))
        .route("/begin-update", post(begin_update))
        // Creating an update of any kind.
        .route("/{kind}", post(async |_: Bytes| Json(json!({"updateID": UPDATE}))))
        .route("/update/{id}", post(start_update))
        .route("/update/{id}/renew_lease", post(async |_: Bytes| Json(json!({"token": "stub"}))))
        .route("/update/{id}/{call}", patch(done).post(done))
        .route("/update/{id}/events/batch", post(done));
    Router::new()
        .route("/api/user", get(user))
        .route("/api/user/organizations/default", get(async || Json(json!({"gitHubLogin": ORGANIZATION}))))
        .route("/api/user/stacks", get(async || Json(json!({"stacks": []}))))
        .route("/api/capabilities", get(capabilities))
        .route("/api/stacks/{org}/{project}", post(async |_: Bytes| Json(json!({}))))
        .nest("/api/stacks/{org}/{project}/{stack}", stack)
        .fallback(unknown)
        .layer(DefaultBodyLimit::disable())
}

/// Everything else succeeds.
async fn done(_: Bytes) -> StatusCode {
    StatusCode::NO_CONTENT
}

async fn unknown() -> (StatusCode, Json<Value>) {
    (
        StatusCode::NOT_FOUND,
        Json(json!({"code": 404, "message": "Not Found: the stub does not know this call"})),
    )
}

async fn user() -> Json<Value> {
    let organization = json!({"githubLogin": ORGANIZATION, "name": ORGANIZATION});
    Json(
        json!({"id": "bench", "githubLogin": ORGANIZATION, "name": "bench", "organizations": [organization]}),
    )
}

async fn capabilities() -> Json<Value> {
    Json(json!({"capabilities": [
        {"capability": "batch-encrypt"},
        {"capability": "begin-update", "version": 1},
        {"capability": "stack-outputs", "version": 1},
        {"capability": "deployment-schema-version", "version": 1, "configuration": {"version": 4}},
    ]}))
}

fn stack_of(org: &str, project: &str, stack: &str) -> Value {
    json!({
        "id": UPDATE, "orgName": org, "projectName": project, "stackName": stack,
        "activeUpdate": "", "tags": {}, "version": 0,
    })
}

async fn get_stack(Path((org, project, stack)): Path<(String, String, String)>) -> Json<Value> {
    Json(stack_of(&org, &project, &stack))
}

async fn start_update(_: Bytes) -> Json<Value> {
    Json(json!({"version": 1, "token": "stub", "journalVersion": 2}))
}

async fn begin_update(Path((org, project, stack)): Path<(String, String, String)>, _: Bytes) -> Json<Value> {
    Json(json!({
        "updateID": UPDATE, "version": 1, "token": "stub", "journalVersion": 2,
        "deployment": {"version": 3, "deployment": {}},
        "stack": stack_of(&org, &project, &stack),
    }))
}

/// The plaintext is its own ciphertext.
async fn encrypt(body: Bytes) -> Result<Json<Value>, StatusCode> {
    Ok(Json(json!({"ciphertext": field(&body, "plaintext")?})))
}

async fn batch_encrypt(body: Bytes) -> Result<Json<Value>, StatusCode> {
    Ok(Json(json!({"ciphertexts": field(&body, "plaintexts")?})))
}

async fn batch_decrypt(body: Bytes) -> Result<Json<Value>, StatusCode> {
    let Value::Array(ciphertexts) = field(&body, "ciphertexts")? else { return Err(StatusCode::BAD_REQUEST) };
    let plaintexts: Map<String, Value> =
        ciphertexts.into_iter().filter_map(|text| Some((text.as_str()?.to_owned(), text))).collect();
    Ok(Json(json!({"plaintexts": plaintexts})))
}

/// One member of a JSON body, gzipped or not.
fn field(body: &[u8], name: &str) -> Result<Value, StatusCode> {
    let refused = StatusCode::BAD_REQUEST;
    let mut body: Value = if body.starts_with(&[0x1f, 0x8b]) {
        let mut text = Vec::new();
        MultiGzDecoder::new(body).read_to_end(&mut text).map_err(|_| refused)?;
        serde_json::from_slice(&text).map_err(|_| refused)?
    } else {
        serde_json::from_slice(body).map_err(|_| refused)?
    };
    body.get_mut(name).map(Value::take).ok_or(refused)
}

#[cfg(test)]
mod tests {
    use statewright_tests::cli::PulumiCli;

    use super::*;

    #[tokio::test]
    async fn the_real_client_goes_up_against_the_stub_with_journaling() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // Answers checkpoints, which a client that does not journal sends, with a failure.
        let no_checkpoints = post(unknown).patch(unknown);
        let server =
            router().route("/api/stacks/{org}/{project}/{stack}/update/{id}/checkpoint", no_checkpoints);
        tokio::spawn(async { axum::serve(listener, server).await });

        let cli = PulumiCli::new().backend(url).token("stub");
        cli.bench_project("bench", &[("count", "4"), ("secretEvery", "2")]);
        cli.run(["stack", "init", "dev"]).await.assert_success();
        let up = cli.run(["up", "--yes"]).await.assert_success();
        assert!(up.stdout.contains("+ 5 created"), "{up}");
    }
}
