//! The audit trail: as JSON in the shapes of Pulumi Cloud, as lines of CSV and CEF, and as one JSON object a line.
//!
//! Source of the shapes: pulumi v3.274.1, `pkg/backend/httpstate/client` and `sdk/go/common/apitype`; of CEF: "Micro
//! Focus Security ArcSight Common Event Format", version 25.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::pulumi::RequestedBy;
use crate::domain::names::{Login, OrgName};
use crate::layout::{AuditDay, AuditRecord, AuditResult};
use crate::ports::Timestamp;

/// `GET /api/orgs/{org}/auditlogs/v2`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogEvents {
    pub audit_log_events: Vec<AuditLogEvent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// One event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditLogEvent {
    /// In seconds since 1970.
    pub timestamp: i64,
    pub event: String,
    pub description: String,
    pub user: RequestedBy,
    #[serde(rename = "sourceIP")]
    pub source_ip: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_name: Option<String>,
    /// Whether it was refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub auth_failure: bool,
    /// The record as the store has it, if the request asks for whole records. It is of this server alone, and the commands of
    /// the same version read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Value>,
}

impl AuditLogEvent {
    /// An event with its whole record.
    pub fn whole(record: &AuditRecord) -> Self {
        Self { record: serde_json::to_value(record).ok(), ..Self::from(record) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// `GET /api/orgs/{org}/auditlogs/event-types`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventTypes {
    pub event_types: Vec<EventType>,
}

/// An action that a filter may name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventType {
    pub event: String,
    /// The action for people.
    pub display_name: String,
    /// What requests of this action do.
    pub description: String,
    /// Whether all of them need the role `admin`.
    pub requires_org_admin: bool,
    /// Whether all of them need the role `member`, which Pulumi Cloud calls the admin of a stack.
    pub requires_stack_admin: bool,
    /// Whether records of it are of refusals alone.
    pub authentication_failure: bool,
    /// Always false.
    pub deprecated: bool,
}

/// The name that stands for the server where a record has no user.
const SERVER: &str = "the server";

impl From<&AuditRecord> for AuditLogEvent {
    fn from(record: &AuditRecord) -> Self {
        let login = record.user.as_ref().map(Login::to_string);
        Self {
            timestamp: record.at.seconds(),
            event: record.action.clone(),
            description: describe(record),
            user: RequestedBy {
                name: login.clone().unwrap_or_else(|| SERVER.to_owned()),
                github_login: login.unwrap_or_default(),
                avatar_url: String::new(),
            },
            source_ip: record.from.clone().unwrap_or_default(),
            token_name: record.token.as_ref().map(ToString::to_string),
            auth_failure: record.result == AuditResult::Refused,
            record: None,
        }
    }
}

/// What a record is about, as text: `web/dev`.
fn target(record: &AuditRecord) -> String {
    let org = record.org.as_ref().map(OrgName::as_str);
    let thing = record.stack.as_deref().or(record.state.as_deref()).or(record.environment.as_deref());
    let parts = [org, record.project.as_deref(), thing];
    parts.into_iter().flatten().collect::<Vec<_>>().join("/")
}

fn describe(record: &AuditRecord) -> String {
    let mut text = target(record);
    if let Some(detail) = &record.detail {
        text.push_str(if text.is_empty() { "" } else { ": " });
        text.push_str(detail);
    }
    if record.result != AuditResult::Done {
        let _ = write!(text, " ({})", record.result.as_str());
    }
    if record.count > 1 {
        let _ = write!(text, " ({} times within a minute)", record.count);
    }
    text.trim_start().to_owned()
}

/// A form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One JSON object a line, with every member of the record.
    JsonLines,
    /// CSV (RFC 4180), with a header.
    Csv,
    /// Common Event Format.
    Cef,
}

/// The columns of Pulumi Cloud's CSV, in its order.
const CSV_HEADER: &str = "Timestamp,Name,Login,Event,Description,SourceIP,RequireOrgAdmin,RequireStackAdmin,AuthenticationFailure\r\n";

impl Form {
    pub fn media_type(self) -> &'static str {
        match self {
            Self::JsonLines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Cef => "text/plain; charset=utf-8",
        }
    }

    /// The text before the first record.
    pub fn header(self) -> &'static str {
        match self {
            Self::Csv => CSV_HEADER,
            Self::JsonLines | Self::Cef => "",
        }
    }

    /// The line of a record, with its end. `host` names this server; `org` the trail, if it is of an organization.
    pub fn line(self, record: &AuditRecord, host: &str, org: Option<&OrgName>) -> String {
        match self {
            Self::JsonLines => {
                let line = serde_json::to_string(&JsonLine::of(record, org));
                line.expect("records hold only what JSON can express") + "\n"
            }
            Self::Csv => csv(record),
            Self::Cef => cef(record, host, org),
        }
    }
}

/// A record as a JSON line, as the audit log of the server writes it, and its place in its chain.
#[derive(Debug, Serialize)]
struct JsonLine<'a> {
    time: String,
    action: &'a str,
    result: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a Login>,
    /// The kind of principal that `user` names, if it is not a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    organization: Option<&'a OrgName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    count: u32,
    chain: &'a str,
    number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a str>,
}

impl<'a> JsonLine<'a> {
    fn of(record: &'a AuditRecord, org: Option<&'a OrgName>) -> Self {
        Self {
            time: record.at.to_rfc3339(),
            action: &record.action,
            result: record.result.as_str(),
            user: record.user.as_ref(),
            of: Some(record.of.as_str()).filter(|_| !record.of.is_user()),
            token: record.token.as_ref().map(crate::domain::names::TokenName::as_str),
            organization: org.or(record.org.as_ref()),
            project: record.project.as_deref(),
            stack: record.stack.as_deref(),
            state: record.state.as_deref(),
            environment: record.environment.as_deref(),
            update: record.update.as_deref(),
            detail: record.detail.as_deref(),
            from: record.from.as_deref(),
            request_id: record.request.as_deref(),
            count: record.count,
            chain: &record.link.chain,
            number: record.link.number,
            before: record.link.before.as_ref().map(|(hash, _)| hash.as_str()),
        }
    }
}

/// A cell of CSV. A spreadsheet would run a text that begins like a formula, so such a text gets an apostrophe.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) || text != text.trim() {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

fn csv(record: &AuditRecord) -> String {
    let login = record.user.as_ref().map_or("", Login::as_str);
    let name = if login.is_empty() { SERVER } else { login };
    let cells = [
        record.at.to_rfc3339(),
        cell(name),
        cell(login),
        cell(&record.action),
        cell(&describe(record)),
        cell(record.from.as_deref().unwrap_or_default()),
        "false".to_owned(),
        "false".to_owned(),
        (record.result == AuditResult::Refused).to_string(),
    ];
    cells.join(",") + "\r\n"
}

/// A field of the header of a CEF line.
fn cef_field(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('|', "\\|")
}

/// A value of the extension of a CEF line.
fn cef_value(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('=', "\\=");
    text.replace("\r\n", "\\n").replace(['\n', '\r'], "\\n")
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// The severity of a record, from 0 to 10.
fn severity(record: &AuditRecord) -> u8 {
    match record.result {
        AuditResult::Done => 3,
        AuditResult::Unknown => 5,
        AuditResult::Refused => 6,
    }
}

fn cef(record: &AuditRecord, host: &str, org: Option<&OrgName>) -> String {
    let seconds =
        OffsetDateTime::from_unix_timestamp(record.at.seconds()).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let month: String = seconds.month().to_string().chars().take(3).collect();
    let (day, time) = (seconds.day(), seconds.time());
    let host = one_line(host).replace(' ', "_");
    let mut line = format!(
        "{month} {day:02} {:02}:{:02}:{:02} {host} CEF:0|Statewright|Statewright|1.0|{}|{}|{}|dvchost={} rt={}",
        time.hour(),
        time.minute(),
        time.second(),
        cef_field(&record.action),
        cef_field(&record.action),
        severity(record),
        cef_value(&host),
        record.at.0.div_euclid(1_000_000),
    );
    let login = record.user.as_ref().map(Login::as_str);
    let outcome = match record.result {
        AuditResult::Done => "success",
        AuditResult::Refused => "failure",
        AuditResult::Unknown => "unknown",
    };
    let count = record.count.to_string();
    let description = describe(record);
    let values = [
        ("src", record.from.as_deref()),
        ("suser", login),
        ("orgID", org.or(record.org.as_ref()).map(OrgName::as_str)),
        ("userID", login),
        ("outcome", Some(outcome)),
        ("cnt", Some(count.as_str())),
        ("externalId", record.request.as_deref()),
        ("requireOrgAdmin", Some("false")),
        ("requireStackAdmin", Some("false")),
        ("authenticationFailure", Some(if record.result == AuditResult::Refused { "true" } else { "false" })),
        ("msg", Some(description.as_str()).filter(|text| !text.is_empty())),
    ];
    for (name, value) in values {
        if let Some(value) = value {
            let _ = write!(line, " {name}={}", cef_value(value));
        }
    }
    line + "\n"
}

/// A time as a client sends it: seconds since 1970, RFC 3339, or a day, which stands for its start.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    if let Ok(seconds) = text.parse::<i64>() {
        return Some(Timestamp::from_seconds(seconds)).filter(|at| at.0 >= 0);
    }
    if let Some(day) = AuditDay::parse(text) {
        return Some(day.start());
    }
    let parsed = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(parsed.unix_timestamp_nanos()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(detail: &str) -> AuditRecord {
        AuditRecord {
            user: Some(Login::parse("alice").unwrap()),
            project: Some("web".to_owned()),
            stack: Some("dev".to_owned()),
            detail: Some(detail.to_owned()),
            from: Some("192.0.2.1".to_owned()),
            ..AuditRecord::new(Timestamp::from_seconds(86_400 * 31 + 3_661), "stack.rename")
        }
    }

    #[test]
    fn a_cell_cannot_become_a_formula_or_another_cell() {
        for (text, expected) in [
            ("plain", "plain"),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@a", "'@a"),
            ("\t=1", "'\t=1"),
            ("=a,b", "\"'=a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("a\r\nb", "\"a\r\nb\""),
            (" a", "\" a\""),
            ("", ""),
        ] {
            assert_eq!(cell(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_of_csv_has_the_columns_of_its_header() {
        let line = Form::Csv.line(&record("to web/prod, \"now\""), "host", None);
        assert_eq!(
            line,
            "1970-02-01T01:01:01Z,alice,alice,stack.rename,\"web/dev: to web/prod, \"\"now\"\"\",192.0.2.1,false,false,\
             false\r\n"
        );
        assert_eq!(Form::Csv.header().split(',').count(), 9);
    }

    #[test]
    fn a_line_of_cef_is_one_line_and_escapes_its_separators() {
        let line = Form::Cef.line(&record("a=b|c\\d\ne"), "my host", Some(&OrgName::parse("acme").unwrap()));
        assert_eq!(
            line,
            "Feb 01 01:01:01 my_host CEF:0|Statewright|Statewright|1.0|stack.rename|stack.rename|3|dvchost=my_host \
             rt=2682061000 src=192.0.2.1 suser=alice orgID=acme userID=alice outcome=success cnt=1 \
             requireOrgAdmin=false requireStackAdmin=false authenticationFailure=false msg=web/dev: a\\=b|c\\\\d\\ne\n"
        );
        assert_eq!(cef_field("a|b\\c\nd"), "a\\|b\\\\c d");
    }

    #[test]
    fn a_json_line_has_no_absent_members() {
        let line = Form::JsonLines.line(&AuditRecord::new(Timestamp(0), "command"), "host", None);
        assert_eq!(
            line,
            "{\"time\":\"1970-01-01T00:00:00Z\",\"action\":\"command\",\"result\":\"done\",\"count\":1,\"chain\":\"\",\
             \"number\":0}\n"
        );
    }

    #[test]
    fn a_refusal_says_so_and_how_often() {
        let refused = AuditRecord { result: AuditResult::Refused, count: 3, ..record("x") };
        let event = AuditLogEvent::from(&refused);
        assert_eq!(event.description, "web/dev: x (refused) (3 times within a minute)");
        assert!(event.auth_failure);
        let by_nobody = AuditLogEvent::from(&AuditRecord::new(Timestamp(0), "update.end"));
        assert_eq!((by_nobody.user.name.as_str(), by_nobody.user.github_login.as_str()), (SERVER, ""));
    }

    #[test]
    fn times_are_read_in_three_forms() {
        let day = Some(Timestamp::from_seconds(86_400));
        for text in ["86400", "1970-01-02", "1970-01-02T00:00:00Z", "1970-01-02T01:00:00+01:00"] {
            assert_eq!(parse_time(text), day, "{text}");
        }
        for text in ["", "yesterday", "-5", "1970-01-02T00:00:00", "99999999999999999999"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
