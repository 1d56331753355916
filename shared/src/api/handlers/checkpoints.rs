//! Saves of clients that do not keep a journal: the whole state, or what changed in it.

use axum::extract::State;

use crate::api::app::App;
use crate::api::body::Body;
use crate::api::response::{Answer, no_content};
use crate::domain::claims::Claims;
use crate::services::updates::log;
use crate::services::{updates, work};
use crate::wire::pulumi::Checkpoint;

/// Saves a whole deployment, for clients that do not keep a journal. A repeat counts once.
pub(crate) async fn checkpoint(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let text = work::on(body.text.len(), move || Ok(untyped(&body.parse()?))).await?;
    log::append_checkpoint(&app, &claims, text).await?;
    no_content()
}

/// Saves a whole deployment as text, which later deltas apply to.
pub(crate) async fn checkpoint_verbatim(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    save(&app, &claims, updates::checkpoints::Kind::Whole, body).await
}

/// Saves the changes since the previous text. If the delta does not apply, the client sends the whole text
/// under the same number.
pub(crate) async fn checkpoint_delta(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    save(&app, &claims, updates::checkpoints::Kind::Delta, body).await
}

async fn save(app: &App, claims: &Claims, kind: updates::checkpoints::Kind, body: Body) -> Answer {
    let text = body.text.clone();
    let gzip = work::on(text.len(), move || Ok(body.into_gzip())).await?;
    updates::checkpoints::save(app, claims, kind, text, gzip).await?;
    no_content()
}

/// The deployment with its version and features, in the form of an export.
fn untyped(checkpoint: &Checkpoint<'_>) -> String {
    let features = match checkpoint.features.map(|features| features.get()) {
        None | Some("null") => String::new(),
        Some(features) => format!("\"features\":{features},"),
    };
    format!("{{\"version\":{},{features}\"deployment\":{}}}", checkpoint.version, checkpoint.deployment.get())
}
