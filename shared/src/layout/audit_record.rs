use std::fmt;

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::principal::Principal;
use crate::ports::{ItemKey, Timestamp};

const PARTITION: &str = "AUDIT#";
const DAY_SECONDS: i64 = 24 * 3600;
const DAY_NANOS: i64 = DAY_SECONDS * 1_000_000_000;

/// One record of the audit trail of an organization, or of the server: who did what to what. Written once, in
/// the commit that it describes or on its own, and erased with all others of its day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub at: Timestamp,
    /// As in the route table, or another word of the same form.
    pub action: String,
    #[serde(default, skip_serializing_if = "AuditResult::is_done")]
    pub result: AuditResult,
    /// `None` for the operator, and for what the server does by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<Login>,
    /// The kind of principal that `user` names.
    #[serde(default, skip_serializing_if = "Principal::is_user")]
    pub of: Principal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenName>,
    /// The organization that a record of the server's trail is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<OrgName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// The name of a Terraform state, or its ID if the name is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The address of the connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// How many alike requests within a minute the record stands for.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
    pub link: AuditLink,
}

/// The place of a record in its chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLink {
    /// The random ID of the chain: of a stack, a state or a writer.
    pub chain: String,
    /// The number within the chain, from 1.
    pub number: u64,
    /// The hash and the time of the record before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<(String, Timestamp)>,
}

/// The end of a chain: in the head of a stack or state, or in the memory of a writer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditMark {
    pub chain: String,
    /// The number of the last record.
    pub number: u64,
    /// The hash of the last record.
    pub hash: String,
    /// The time of the last record.
    pub at: Timestamp,
}

/// The result of an action in the audit trail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuditResult {
    #[default]
    Done,
    /// It was refused and changed nothing.
    Refused,
    /// It failed, and may have been done.
    Unknown,
}

impl AuditResult {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }

    fn is_done(&self) -> bool {
        *self == Self::Done
    }
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// A record with its trail. It is not yet part of a chain, and not stored in this form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// The organization whose trail gets the record; `None` for the trail of the server.
    pub trail: Option<OrgName>,
    pub record: AuditRecord,
}

/// A day in UTC, in days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AuditDay(i64);

impl AuditDay {
    pub fn of(at: Timestamp) -> Self {
        Self(at.seconds().max(0).div_euclid(DAY_SECONDS))
    }

    /// The day of a text such as `2026-01-31`.
    pub fn parse(text: &str) -> Option<Self> {
        let format = time::macros::format_description!("[year]-[month]-[day]");
        let day = time::Date::parse(text, format).ok()?.midnight().assume_utc();
        Some(Self(day.unix_timestamp().div_euclid(DAY_SECONDS)))
    }

    /// The first instant of the day.
    pub fn start(self) -> Timestamp {
        Timestamp::from_seconds(self.0.saturating_mul(DAY_SECONDS))
    }

    /// The first instant of the next day.
    pub fn end(self) -> Timestamp {
        Self(self.0.saturating_add(1)).start()
    }
}

impl fmt::Display for AuditDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.start().to_rfc3339().split('T').next().unwrap_or_default())
    }
}

impl Record for AuditRecord {
    const NAME: &'static str = "audit record";
}

impl AuditRecord {
    /// A record of this action, without a user and without a target.
    pub fn new(at: Timestamp, action: &str) -> Self {
        Self {
            at,
            action: action.to_owned(),
            result: AuditResult::Done,
            user: None,
            of: Principal::User,
            token: None,
            org: None,
            project: None,
            stack: None,
            state: None,
            environment: None,
            update: None,
            detail: None,
            from: None,
            request: None,
            count: 1,
            link: AuditLink::default(),
        }
    }

    /// `id` distinguishes records of the same instant.
    pub fn key(trail: Option<&OrgName>, at: Timestamp, id: &str) -> Key<Self> {
        Key::new(Self::of_trail(trail).partition, format!("{}#{id}", Self::position(at)))
    }

    /// The records of a trail, by time.
    pub fn of_trail(trail: Option<&OrgName>) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("{PARTITION}{}", trail.map_or("", OrgName::as_str)), "")
    }

    /// The records of one day.
    pub fn of_day(trail: Option<&OrgName>, day: AuditDay) -> KeyPrefix<Self> {
        KeyPrefix::new(Self::of_trail(trail).partition, format!("{day}#"))
    }

    /// The partitions of all trails start with this.
    pub fn all_trails() -> &'static str {
        PARTITION
    }

    /// A sort key before those of all records of this time or later, and after those of all earlier ones.
    pub fn position(at: Timestamp) -> String {
        let at = at.0.max(0);
        format!("{}#{:014}", AuditDay::of(Timestamp(at)), at % DAY_NANOS)
    }

    /// The trail in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn trail_in(key: &ItemKey) -> Result<Option<OrgName>, Broken> {
        parsed::<Self, _>(key, trail(&key.partition, PARTITION))
    }
}

/// The trail that a partition is of.
pub(super) fn trail(partition: &str, prefix: &str) -> Option<Option<OrgName>> {
    match partition.strip_prefix(prefix)? {
        "" => Some(None),
        org => OrgName::parse(org).ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_sort_by_their_time_within_and_across_days() {
        let org = OrgName::parse("acme").unwrap();
        let times = [0, 1, 999_999_999, DAY_NANOS - 1, DAY_NANOS, 20_000 * DAY_NANOS + 5];
        let sorts = times.map(|at| AuditRecord::key(Some(&org), Timestamp(at), "zz").sort.clone());
        assert!(sorts.is_sorted(), "{sorts:?}");
        assert_eq!(sorts[4], "1970-01-02#00000000000000#zz");
        for (at, sort) in times.iter().zip(&sorts) {
            assert!(AuditRecord::position(Timestamp(*at)) < *sort);
            assert!(AuditRecord::position(Timestamp(at + 1)) > *sort);
        }
    }

    #[test]
    fn a_day_reads_back_from_its_text() {
        let day = AuditDay::of(Timestamp(20_000 * DAY_NANOS + 5));
        assert_eq!(AuditDay::parse(&day.to_string()), Some(day));
        assert_eq!((day.start(), day.end()), (Timestamp(20_000 * DAY_NANOS), Timestamp(20_001 * DAY_NANOS)));
        assert_eq!(AuditDay::parse("2026-13-01"), None);
    }

    #[test]
    fn a_key_names_its_trail() {
        let org = OrgName::parse("acme").unwrap();
        let at = Timestamp(0);
        assert_eq!(AuditRecord::trail_in(&AuditRecord::key(None, at, "a")).unwrap(), None);
        assert_eq!(AuditRecord::trail_in(&AuditRecord::key(Some(&org), at, "a")).unwrap(), Some(org));
        AuditRecord::trail_in(&ItemKey::new("DUE#1", "a")).unwrap_err();
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn mark() -> AuditMark {
        AuditMark { chain: "00112233".repeat(2), number: 7, hash: "ab".repeat(32), at: LATER }
    }

    pub(crate) fn read(files: &mut Files) {
        let mark = mark();
        let by = requester();
        let done = AuditRecord {
            user: Some(by.login.clone()),
            token: Some(by.token),
            project: Some("web".to_owned()),
            stack: Some("dev".to_owned()),
            update: Some(update_id(3).to_string()),
            detail: Some("update".to_owned()),
            from: Some("192.0.2.1".to_owned()),
            request: Some("0123456789abcdef".repeat(2)),
            link: AuditLink { chain: mark.chain.clone(), number: 8, before: Some((mark.hash, mark.at)) },
            ..AuditRecord::new(LATER, "update.begin")
        };
        files.hold("audit-record.v1", &done, b"");
        let refused = AuditRecord {
            result: AuditResult::Refused,
            user: Some(by.login),
            of: Principal::Organization,
            org: Some(OrgName::parse("acme").unwrap()),
            state: Some("prod".to_owned()),
            environment: Some("base".to_owned()),
            count: 5,
            link: AuditLink { chain: mark.chain, number: 1, before: None },
            ..AuditRecord::new(LATER, "access")
        };
        files.hold("audit-record-refused.v1", &refused, b"");
    }
}
