//! The days of audit trails: signed after their end, and erased when they are no longer kept.
//!
//! The signed text of a day has the hash of the text of the day before. So a valid signature of the newest day covers
//! all days before it, also after the key that signed them is gone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::domain::names::OrgName;
use crate::layout::{AuditDay, AuditErased, AuditRecord, AuditRoot, Due, Stored, delete};
use crate::ports::{Expect, Order, Timestamp};
use crate::services::audit::{closes, hash};
use crate::services::store::due::{BLOB_OUTLIVES, Next, Pages, due_write};
use crate::services::updates::tokens;
use crate::services::{Error, store};

/// Records that one commit erases.
const ERASED_AT_ONCE: usize = 90;

/// Records that are read at a time.
const READ_AT_ONCE: usize = 500;

/// The text of a root, as its blob has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SignedRoot {
    /// A [`Statement`] as JSON text. The signature covers exactly this text, after [`tokens::AUDIT_PREFIX`].
    pub(super) statement: String,
    /// The ID of the key that signed it.
    pub(super) key: String,
    /// The public half of the key, in base64.
    pub(super) public: String,
    /// The signature, in base64.
    pub(super) signature: String,
}

/// What a root states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Statement {
    /// The organization; absent for the trail of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) organization: Option<OrgName>,
    pub(super) day: String,
    #[serde(flatten)]
    pub(super) content: Content,
    /// The SHA-256 of the text of the root before; absent in the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<String>,
}

/// The records of a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    /// Their number.
    pub(super) records: u64,
    /// The SHA-256 of their hashes, in the order of their keys.
    pub(super) hash: String,
}

/// Reads the records of a day.
pub(super) async fn content(ctx: &Context, trail: Option<&OrgName>, day: AuditDay) -> Result<Content, Error> {
    let mut query = AuditRecord::of_day(trail, day).query(None, Order::Ascending, READ_AT_ONCE);
    let (mut records, mut all) = (0, Sha256::new());
    loop {
        let page = store::query(ctx, &query).await?;
        for item in &page.items {
            records += 1;
            all.update(hash(&item.key, &item.value));
            all.update(b"\n");
        }
        query.after = page.items.last().map(|item| item.key.sort.clone());
        if !page.more {
            return Ok(Content { records, hash: hex::encode(all.finalize()) });
        }
    }
}

/// Signs a day when it is over, or erases it when it is no longer kept.
pub(super) async fn sweep(ctx: &Context, trail: Option<&OrgName>, day: AuditDay) -> Result<Next, Error> {
    if ctx.now() < closes(day) {
        return Ok(Next::At(closes(day)));
    }
    let root = match store::read(ctx, &AuditRoot::key(trail, day)).await? {
        Some(root) => root,
        None => match sign(ctx, trail, day).await? {
            Some(root) => root,
            // Another sweep signed it at this moment.
            None => return Ok(Next::AsItIs),
        },
    };
    let until = day.end().plus(ctx.settings.retention.audit).max(closes(day));
    if ctx.now() <= until { Ok(Next::At(until)) } else { erase(ctx, trail, day, &root).await }
}

/// Signs a day and stores its root: first the blob, outside the table, and a log line, then the item. `None` if
/// another process stored one meanwhile.
async fn sign(
    ctx: &Context,
    trail: Option<&OrgName>,
    day: AuditDay,
) -> Result<Option<Stored<AuditRoot>>, Error> {
    let newest = AuditRoot::of_trail(trail).query(None, Order::Descending, 1);
    let newest = store::query(ctx, &newest).await?.items;
    let before = newest.first().map(Stored::<AuditRoot>::read).transpose()?;
    let statement = Statement {
        organization: trail.cloned(),
        day: day.to_string(),
        content: content(ctx, trail, day).await?,
        before: before.map(|before| before.value.sha256),
    };
    let records = statement.content.records;
    let statement = json(&statement)?;
    let tokens::Signed { key, public, signature } = tokens::sign_audit(ctx, &statement).await?;
    let (public, signature) = (encode(&public), encode(&signature));
    let text = Bytes::from(json(&SignedRoot { statement, key, public, signature })?);
    let sha256 = store::sha256_hex(&text);
    let blob = AuditRoot::new_blob(trail, day, &sha256);
    let (org, root) = (trail.map(tracing::field::display), String::from_utf8_lossy(&text).into_owned());
    tracing::info!(target: "audit", org, %day, records, root, "signed a day of the audit trail");
    store::put_blob(ctx, &blob, text).await?;
    let root = AuditRoot { blob: blob.to_string(), sha256 };
    let revision = ctx.ids.revision();
    let write = crate::layout::put(AuditRoot::key(trail, day), Expect::Absent, revision, &root);
    let done = store::commit(ctx, vec![write]).await?;
    Ok(done.is_ok().then_some(Stored { value: root, revision }))
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Broken(format!("a root does not serialize: {error}")))
}

/// Erases the records of a day, and last its root, with a mark that the sweep did it.
async fn erase(
    ctx: &Context,
    trail: Option<&OrgName>,
    day: AuditDay,
    root: &Stored<AuditRoot>,
) -> Result<Next, Error> {
    let mut pages = Pages::default();
    loop {
        let query = AuditRecord::of_day(trail, day).query(None, Order::Ascending, ERASED_AT_ONCE);
        let items = store::query(ctx, &query).await?.items;
        if items.is_empty() {
            break;
        }
        if !pages.take() {
            return Ok(Next::MoreOfIt);
        }
        let writes = items.into_iter().map(|item| delete(item.key, Expect::Any)).collect();
        // The writes have no condition, so they cannot be refused.
        let _ = store::commit(ctx, writes).await?;
    }
    let blob_at: Timestamp = ctx.now().plus(BLOB_OUTLIVES);
    let blob = Due::Blob { key: root.value.blob.clone(), stack: None };
    let mut writes =
        vec![delete(AuditRoot::key(trail, day), root.unchanged()), due_write(ctx, &blob, blob_at)];
    let key = AuditErased::key(trail);
    let before = store::read(ctx, &key).await?;
    if before.as_ref().is_none_or(|before| before.value.until < day) {
        let signed = tokens::sign_audit(ctx, &AuditErased::statement(trail, day)).await?;
        let (public, signature) = (encode(&signed.public), encode(&signed.signature));
        let mark = AuditErased { until: day, public, signature };
        let expect = before.as_ref().map_or(Expect::Absent, Stored::unchanged);
        writes.push(store::put(ctx, key, expect, &mark));
    }
    match store::commit(ctx, writes).await? {
        Ok(()) => Ok(Next::Done),
        Err(_) => Ok(Next::AsItIs),
    }
}
