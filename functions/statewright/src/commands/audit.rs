//! `statewright audit`.

use std::fmt::Write as _;

use anyhow::{Context as _, anyhow};
use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::layout::AuditRecord;
use statewright_shared::ports::{Order, Timestamp};
use statewright_shared::services::audit::reading::{self, Filter, Page};
use statewright_shared::wire::audit::{AuditLogEvent, AuditLogEvents, Form, parse_time};

use super::place::{Ask, Place};
use crate::args::{self, Data, misused};
use crate::client::Call;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    ask: Ask,
    #[command(subcommand)]
    command: Command,
}

impl Audit {
    /// Whether the command opens the store itself.
    pub(crate) fn is_the_operators(&self) -> bool {
        !self.ask.is_given()
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the newest records of an audit trail, the newest last.
    Tail {
        #[command(flatten)]
        which: Selection,
        /// How many records to show.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        count: usize,
    },
    /// Write an audit trail to stdout, the oldest record first.
    Export {
        #[command(flatten)]
        which: Selection,
        /// The format of the lines.
        #[arg(long, value_enum, default_value = "jsonl")]
        format: Format,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values, with a header.
    Csv,
    /// Common Event Format.
    Cef,
}

/// The records to show.
#[derive(Debug, clap::Args)]
struct Selection {
    /// The organization. Without it, the trail of the server: commands of the operator, and requests about
    /// organizations that the caller is not a member of.
    #[arg(value_parser = args::organization)]
    org: Option<OrgName>,
    /// Only records of this time or later: 2026-01-31, 2026-01-31T12:00:00Z, or seconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
    /// Only records before this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,
    /// Only records of this user.
    #[arg(long, value_name = "LOGIN", value_parser = args::login)]
    user: Option<Login>,
    /// Only records of this action, such as stack.rename.
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only records of this stack.
    #[arg(long, value_name = "PROJECT/STACK", value_parser = pair)]
    stack: Option<(String, String)>,
    /// Only records of this Terraform state.
    #[arg(long, value_name = "PROJECT/STATE", value_parser = pair)]
    state: Option<(String, String)>,
}

fn time(text: &str) -> anyhow::Result<Timestamp> {
    parse_time(text)
        .ok_or_else(|| anyhow!("write a time as 2026-01-31, 2026-01-31T12:00:00Z or seconds since 1970"))
}

fn pair(text: &str) -> anyhow::Result<(String, String)> {
    let (project, name) = text.split_once('/').ok_or_else(|| anyhow!("write PROJECT/NAME"))?;
    Ok((project.to_owned(), name.to_owned()))
}

impl Selection {
    fn filter(&self) -> Filter {
        Filter {
            from: self.since,
            until: self.until,
            user: self.user.as_ref().map(ToString::to_string),
            action: self.action.clone(),
            stack: self.stack.clone(),
            state: self.state.clone(),
        }
    }

    /// The call for a page of the organization's trail, with whole records.
    fn call(&self, org: &OrgName, order: Order, after: Option<String>) -> Call {
        let pair = |pair: &Option<(String, String)>| {
            pair.as_ref().map(|(project, name)| format!("{project}/{name}"))
        };
        let order = match order {
            Order::Ascending => "oldest",
            Order::Descending => "newest",
        };
        // The server shows records until the end of the second that starts at its `endTime`.
        let end = |until: Timestamp| Timestamp(until.0.saturating_sub(SECOND).max(0)).to_rfc3339();
        let parameters = [
            ("whole", Some("true".to_owned())),
            ("order", Some(order.to_owned())),
            ("startTime", self.since.map(Timestamp::to_rfc3339)),
            ("endTime", self.until.map(end)),
            ("userFilter", self.user.as_ref().map(ToString::to_string)),
            ("eventFilter", self.action.clone()),
            ("stack", pair(&self.stack)),
            ("state", pair(&self.state)),
            ("continuationToken", after),
        ];
        let given = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.fold(Call::get(["api", "orgs", org.as_str(), "auditlogs", "v2"]), |call, (name, value)| {
            call.query(name, &value)
        })
    }

    /// A page of the trail.
    async fn page(&self, place: &Place, order: Order, after: Option<String>) -> anyhow::Result<Page> {
        match place {
            Place::Store(store) => {
                Ok(reading::page(&store.ctx, self.org.as_ref(), &self.filter(), order, after).await?)
            }
            Place::Server(client) => {
                let org = self.org.as_ref().ok_or_else(|| {
                    misused("name an organization: only the operator reads the trail of a server")
                })?;
                let page: AuditLogEvents = client.json(self.call(org, order, after)).await?;
                let records = page.audit_log_events.into_iter().map(record_of);
                Ok(Page { records: records.collect::<anyhow::Result<_>>()?, next: page.continuation_token })
            }
        }
    }
}

/// A second, in nanoseconds.
const SECOND: i64 = 1_000_000_000;

fn record_of(event: AuditLogEvent) -> anyhow::Result<AuditRecord> {
    let record = event.record.context("the server sends no whole records: upgrade it")?;
    serde_json::from_value(record).context("the server's response cannot be read")
}

#[derive(Serialize)]
struct Tail {
    records: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    time: Rfc3339,
    user: Option<String>,
    token: Option<String>,
    action: String,
    result: &'static str,
    description: String,
    from: Option<String>,
    request_id: Option<String>,
}

impl From<&AuditRecord> for Line {
    fn from(record: &AuditRecord) -> Self {
        Self {
            time: Rfc3339(record.at),
            user: record.user.as_ref().map(ToString::to_string),
            token: record.token.as_ref().map(ToString::to_string),
            action: record.action.clone(),
            result: record.result.as_str(),
            description: AuditLogEvent::from(record).description,
            from: record.from.clone(),
            request_id: record.request.clone(),
        }
    }
}

impl Tail {
    fn for_people(&self) -> String {
        let rows = self.records.iter().map(|line| {
            vec![
                line.time.0.to_rfc3339(),
                line.user.clone().unwrap_or_else(|| "-".to_owned()),
                line.action.clone(),
                line.description.clone(),
                line.from.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        });
        table(&["TIME", "USER", "ACTION", "DESCRIPTION", "FROM"], rows)
    }
}

pub(crate) async fn run(audit: Audit, out: Output) -> anyhow::Result<()> {
    if matches!(audit.command, Command::Export { .. }) && out.is_json() {
        return Err(misused("`audit export` does not support --json; use --format jsonl"));
    }
    let place = audit.ask.open(&audit.data).await?;
    match audit.command {
        Command::Tail { which, count } => {
            let mut after = None;
            let mut records: Vec<Line> = Vec::new();
            loop {
                let page = which.page(&place, Order::Descending, after).await?;
                records.extend(page.records.iter().map(Line::from));
                after = page.next;
                if after.is_none() || records.len() >= count {
                    break;
                }
            }
            records.truncate(count);
            records.reverse();
            out.answer(&Tail { records }, Tail::for_people)
        }
        Command::Export { which, format } => {
            let form = match format {
                Format::Jsonl => Form::JsonLines,
                Format::Csv => Form::Csv,
                Format::Cef => Form::Cef,
            };
            let mut after = None;
            let mut text = form.header().to_owned();
            loop {
                let Page { records, next } = which.page(&place, Order::Ascending, after).await?;
                for record in &records {
                    let _ = write!(text, "{}", form.line(record, "statewright", which.org.as_ref()));
                }
                out.text(&text)?;
                text.clear();
                after = next;
                if after.is_none() {
                    return Ok(());
                }
            }
        }
    }
}
