use super::key::{Key, META};
use super::record::Record;
use crate::domain::ids::UpdateId;
use crate::domain::update::Update;

/// The current status of an update. Written by every step: begin, renew, seal, publish.
impl Record for Update {
    const NAME: &'static str = "update";
}

impl Update {
    pub fn key(update: UpdateId) -> Key<Self> {
        Key::new(format!("UPDATE#{update}"), META)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::domain::update::{Outcome, Seal, SealedBy, Status, UpdateKind};
    use crate::layout::formats::*;

    pub(crate) fn seal(outcome: Outcome, by: SealedBy) -> Seal {
        let publisher = "server".to_owned();
        Seal { slot: 3, outcome, by, at: LATER, publisher, reason: None, requester: None }
    }

    pub(crate) fn because(seal: Seal) -> Seal {
        Seal { reason: Some("the runner is gone".to_owned()), ..seal }
    }

    pub(crate) fn with_token(seal: Seal) -> Seal {
        Seal { requester: Some(Box::new(requester())), ..seal }
    }

    fn update(status: Status) -> Update {
        Update {
            stack: stack(),
            kind: UpdateKind::ResourceImport,
            dry_run: false,
            requester: requester(),
            user_made: None,
            created: CREATED,
            base_version: 7,
            journal_version: 2,
            renewed_by: Vec::new(),
            status,
        }
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("update-not-started.v1", &update(Status::NotStarted), b"");
        let running = update(Status::Running { since: CREATED, until: LATER });
        files.hold("update-running.v1", &running, b"");
        let renewed_by = vec!["ab".repeat(32), "cd".repeat(32)];
        let bound = Update { user_made: Some(CREATED), renewed_by, ..running };
        files.hold("update-bound.v1", &bound, b"");
        let cancelled = seal(Outcome::Cancelled, SealedBy::Cancel(login("bob")));
        let sealed = |seal| update(Status::Sealed { since: CREATED, seal });
        files.hold("update-sealed.v1", &sealed(cancelled.clone()), b"");
        files.hold("update-sealed-because.v1", &sealed(because(cancelled.clone())), b"");
        files.hold("update-sealed-with-token.v1", &sealed(with_token(because(cancelled))), b"");
        let by = SealedBy::Expiry;
        let ended = Status::Ended { since: CREATED, at: LATER, outcome: Outcome::Succeeded, by };
        files.hold("update-ended.v1", &update(ended), b"");
    }
}
