//! Runs the scripts that are published with the `esc` CLI against our server.
//!
//! The scripts and their expected output are read from the published module. There they run against a stand-in
//! for the service, which keeps the initial environments without checking them: so does [`keep`]. `steady` in
//! `tests/tools/esc-scripts/served.go` removes what only the stand-in says, and lists it; everything else has
//! to be the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::put;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use statewright_shared::context::Context;
use statewright_shared::domain::environment::sealed::{self, Replacement, Secret};
use statewright_shared::domain::ids::EnvironmentId;
use statewright_shared::domain::names::{EnvironmentAddress, EnvironmentTagName, Login, OrgName, TokenName};
use statewright_shared::domain::principal::Principal;
use statewright_shared::domain::update::Requester;
use statewright_shared::layout::{
    self, EnvironmentHead, EnvironmentRevision, EnvironmentTag, Retracted, RevisionTag, delete, put_with,
};
use statewright_shared::ports::{Expect, Order};
use statewright_shared::services::keys::data_keys;
use tokio::net::TcpListener;
use tokio::process::Command;

use crate::app::TestApp;
use crate::{esc_oracle, tools};

/// The user of the scripts, which is also an organization.
const USER: &str = "test-user";

/// The organizations that scripts name.
const ORGS: [&str; 3] = [USER, "test-org", "test-org-2"];

/// The results of the scripts, by name.
#[derive(Debug, Default)]
pub struct Report {
    /// Those that print what is published.
    pub same: Vec<String>,
    /// Those that print something else.
    pub different: Vec<String>,
    /// The output of the package's test.
    pub text: String,
}

/// Runs all scripts, or the one of this name.
///
/// # Errors
/// A text, if they cannot be run.
pub async fn run(only: Option<&str>) -> Result<Report, Box<dyn std::error::Error>> {
    let (program, folder) = tools::esc_scripts();
    let app = TestApp::memory().await;
    let token = app.member_of(&ORGS, USER, "scripts").await;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let fixtures = format!("http://{}/", listener.local_addr()?);
    let router = axum::Router::new().route("/", put(keep_all)).with_state(Arc::clone(&app.context));
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let which = only.map_or("^TestCLI$".to_owned(), |name| format!("^TestCLI$/^{name}.yaml$"));
    let run = Command::new(program)
        .args(["-test.v", "-test.run", &which])
        .current_dir(folder)
        .env("STATEWRIGHT_URL", &app.url)
        .env("STATEWRIGHT_TOKEN", token)
        .env("STATEWRIGHT_FIXTURES", fixtures)
        .output()
        .await?;
    server.abort();
    let text = String::from_utf8_lossy(&run.stdout);
    let ended = |mark: &str| -> Vec<String> {
        let name = |line: &str| line.trim().strip_prefix(mark)?.split(".yaml").next().map(str::to_owned);
        text.lines().filter_map(name).collect()
    };
    Ok(Report {
        same: ended("--- PASS: TestCLI/"),
        different: ended("--- FAIL: TestCLI/"),
        text: format!("{text}{}", String::from_utf8_lossy(&run.stderr)),
    })
}

/// An initial environment of a script.
#[derive(Debug, Deserialize)]
struct Fixture {
    /// Its revisions, the oldest first.
    revisions: Vec<Written>,
    tags: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct Written {
    /// Its text, with secrets sealed as in the published scripts.
    text: String,
    tags: Vec<String>,
    /// Its replacement and the reason, if it was retracted.
    retracted: Option<(u64, String)>,
}

/// Stores these environments, by their full names, and no others.
async fn keep_all(
    State(ctx): State<Arc<Context>>,
    Json(fixtures): Json<BTreeMap<String, Fixture>>,
) -> Result<(), (StatusCode, String)> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    };
    for org in ORGS {
        forget(&ctx, org).await.map_err(failed)?;
    }
    for (name, fixture) in fixtures {
        keep(&ctx, &name, fixture).await.map_err(failed)?;
    }
    Ok(())
}

type Done = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Deletes all environments of an organization.
async fn forget(ctx: &Context, org: &str) -> Done {
    let query = EnvironmentHead::of_org(&OrgName::parse(org)?).query(None, Order::Ascending, 100);
    for item in ctx.ledger.query(&query).await?.items {
        ctx.ledger.commit(vec![delete(item.key, Expect::Any)]).await?;
    }
    Ok(())
}

async fn keep(ctx: &Context, name: &str, fixture: Fixture) -> Done {
    let parts: Vec<&str> = name.split('/').collect();
    let [org, project, environment] = parts.as_slice() else {
        return Err(format!("{name} is not the full name of an environment").into());
    };
    let address = EnvironmentAddress::parse(org, project, environment)?;
    let (id, now, by) = (EnvironmentId::new(ctx.ids.uuid()), ctx.clock.now(), Login::parse(USER)?);
    let mut head = EnvironmentHead {
        id,
        created: now,
        created_by: by.clone(),
        revision: 0,
        modified: now,
        tags: BTreeMap::new(),
        revision_tags: BTreeMap::new(),
        is_protected: false,
        imports: None,
    };
    for (name, value) in fixture.tags {
        let tag = EnvironmentTag { value, created: now, modified: now, by: by.clone() };
        head.tags.insert(EnvironmentTagName::parse(&name)?, tag);
    }
    let mut writes = Vec::new();
    for Written { text, tags, retracted } in fixture.revisions {
        head.revision += 1;
        let revision = head.revision;
        for name in tags {
            let tag = RevisionTag { revision, created: now, modified: now, by: by.clone() };
            head.revision_tags.insert(EnvironmentTagName::parse(&name)?, tag);
        }
        let retracted =
            retracted.map(|(replacement, reason)| Retracted { replacement, at: now, by: by.clone(), reason });
        let by = Requester { login: by.clone(), token: TokenName::parse("scripts")?, of: Principal::User };
        let record = EnvironmentRevision { created: now, by, retracted };
        let text = resealed(ctx, id, &text).await?;
        let key = EnvironmentRevision::key(id, revision);
        writes.push(put_with(key, Expect::Absent, ctx.ids.revision(), &record, text.as_bytes()));
    }
    writes.push(layout::put(EnvironmentHead::key(&address), Expect::Any, ctx.ids.revision(), &head));
    ctx.ledger.commit(writes).await?;
    Ok(())
}

/// The text with its secrets under the key of this environment.
async fn resealed(
    ctx: &Context,
    id: EnvironmentId,
    text: &str,
) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let mut resealed: Vec<(Secret, Replacement)> = Vec::new();
    for secret in sealed::secrets(text) {
        let plain = match secret.is_sealed {
            true => esc_oracle::unseal(&secret.text)?,
            false => secret.text.clone(),
        };
        let ciphertexts = data_keys::encrypt(ctx, id, vec![plain.into_bytes()]).await?;
        let ciphertext = ciphertexts.first().map(|it| STANDARD.encode(it)).unwrap_or_default();
        resealed.push((secret, Replacement::Ciphertext(ciphertext)));
    }
    Ok(sealed::replace(text, &resealed))
}
