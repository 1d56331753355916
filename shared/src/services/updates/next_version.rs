//! The next version of a stack: its blob, its history entry and its outputs, ready to commit.

use std::collections::BTreeMap;

use super::fold::Folded;
use crate::context::Context;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::plural;
use crate::domain::update::{Outcome, Requester, UpdateKind};
use crate::layout::{
    Due, NewestVersion, Payload, Snapshot, StackEntry, StackHead, StackOutputs, StackVersion, UpdateDetail,
};
use crate::limits::SKIPPED_NAMED_MAX;
use crate::ports::{Expect, Timestamp, Write};
use crate::services::store::due::{BLOB_OUTLIVES, due_write};
use crate::services::store::resource_index::{self, Deployment};
use crate::services::{Error, store};

/// The description of a new version, without its deployment.
pub(crate) struct NewVersion {
    pub(crate) update: UpdateId,
    pub(crate) kind: UpdateKind,
    pub(crate) outcome: Outcome,
    pub(crate) requester: Requester,
    pub(crate) started: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) resource_changes: Option<BTreeMap<String, u64>>,
    pub(crate) detail: UpdateDetail,
    /// The part of the log that the version lacks.
    pub(super) left_out: Option<LeftOut>,
}

/// The end of a log that an operator leaves out of a version because it is unreadable.
pub(crate) struct LeftOut {
    /// The first slot left out.
    pub(crate) from: u64,
    /// The number of slots left out.
    pub(crate) count: u64,
    /// Why the log cannot be read.
    pub(crate) why: String,
}

/// A version whose blobs are stored, with the writes that publish it.
pub(crate) struct StoredVersion {
    pub(crate) writes: Vec<Write>,
    pub(crate) update: UpdateId,
    pub(crate) version: u64,
    pub(crate) snapshot: Snapshot,
    pub(crate) outcome: Outcome,
    pub(crate) started: Timestamp,
    pub(crate) ended: Timestamp,
    /// The names of the stacks whose outputs it reads; `None` if they stay as they were.
    pub(crate) references: Option<Vec<String>>,
}

/// Stores the blobs of a version, and prepares the writes of its history entry and outputs.
pub(super) async fn store_version(
    ctx: &Context,
    stack: StackId,
    head: &StackHead,
    new: NewVersion,
    folded: Folded,
) -> Result<StoredVersion, Error> {
    let version = head.version + 1;
    let update = new.update;
    let mut writes = Vec::new();
    let mut references = None;
    let (snapshot, mut skipped_count, mut skipped, integrity_error) = match (folded, &head.snapshot) {
        (Folded::Unchanged, Some(base)) => (base.clone(), 0, Vec::new(), None),
        (Folded::Unchanged, None) => {
            return Err(Error::Broken(format!("stack {stack} has no deployment to stay unchanged")));
        }
        (Folded::New(folded), _) => {
            let folded = *folded;
            references = Some(folded.references);
            let key = Snapshot::new_blob(stack, update);
            let mut snapshot = Snapshot {
                blob: key.to_string(),
                sha256: store::sha256_hex(&folded.gzip),
                bytes_gzip: folded.gzip.len() as u64,
                bytes_text: folded.bytes_text,
                resource_count: folded.resource_count,
                pending_count: folded.pending_count,
                secrets_url: folded.secrets_url,
                index: None,
            };
            let (described, before) = (snapshot.clone(), head.snapshot.as_ref());
            let deployment = match folded.text {
                Some(text) => Deployment::Text(text),
                None => Deployment::Gzip(folded.gzip.clone()),
            };
            let index = async {
                let of = (version, &described);
                match Box::pin(resource_index::make(ctx, stack, of, before, deployment)).await {
                    // The version is kept anyway: its client cannot run the update again.
                    Err(Error::NoRoom(_)) => {
                        tracing::warn!(
                            %stack,
                            version,
                            "a version has no index, for lack of memory: run `statewright stack index`"
                        );
                        Ok(None)
                    }
                    made => made,
                }
            };
            let ((), (payload, tail), index) = futures::try_join!(
                store::put_blob(ctx, &key, folded.gzip),
                store::keep(ctx, || StackOutputs::new_blob(stack, update), folded.outputs),
                index,
            )?;
            snapshot.index = index;
            if let Payload::Blob { key, .. } = &payload {
                let due = Due::Outputs { stack, key: key.clone() };
                writes.push(due_write(ctx, &due, new.ended.plus(BLOB_OUTLIVES)));
            }
            let outputs = StackOutputs { version, payload };
            writes.push(store::put_with(ctx, StackOutputs::key(stack), Expect::Any, &outputs, &tail));
            (snapshot, folded.skipped_count, folded.skipped, folded.integrity_error)
        }
    };
    if let Some(LeftOut { from, count, why }) = new.left_out.filter(|left_out| left_out.count > 0) {
        skipped_count += count;
        skipped.truncate(SKIPPED_NAMED_MAX - 1);
        let reason = format!(
            "an operator left out {} of the log, from slot {from} on: {why}",
            plural::count(count, "slot")
        );
        skipped.insert(0, (0, reason));
    }
    let record = StackVersion {
        version,
        update,
        kind: new.kind,
        outcome: new.outcome,
        requester: new.requester,
        started: new.started,
        ended: new.ended,
        snapshot: snapshot.clone(),
        resource_changes: new.resource_changes,
        skipped_count,
        skipped,
        integrity_error,
        detail: new.detail,
    };
    writes.push(store::put(ctx, StackVersion::key(stack, version), Expect::Absent, &record));
    if ctx.settings.retention.versions.is_some_and(|kept| version > kept.get()) {
        writes.push(due_write(ctx, &Due::Versions(stack), new.ended));
    }
    let (outcome, started, ended) = (new.outcome, new.started, new.ended);
    Ok(StoredVersion { writes, update, version, snapshot, outcome, started, ended, references })
}

/// Moves a stack's head and list entry to a version.
pub(crate) fn advance(head: &mut StackHead, name: &mut StackEntry, next: &StoredVersion) {
    head.version = next.version;
    head.running = None;
    head.last = Some(next.update);
    name.is_updating = false;
    name.last_update = Some(next.ended);
    name.resource_count = Some(next.snapshot.resource_count);
    if let Some(references) = &next.references {
        name.references.clone_from(references);
    }
    let &StoredVersion { version, outcome, started, .. } = next;
    name.newest = Some(NewestVersion { version, outcome, started, bytes: next.snapshot.bytes_gzip });
    head.snapshot = Some(next.snapshot.clone());
}
