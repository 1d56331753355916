//! `statewright audit`.

use std::fmt::Write as _;

use anyhow::anyhow;
use clap::{Subcommand, ValueEnum};
use serde::Serialize;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::layout::AuditRecord;
use statewright_shared::ports::{Order, Timestamp};
use statewright_shared::services::audit::reading::{self, Filter, Page};
use statewright_shared::wire::audit::{AuditLogEvent, Form, parse_time};

use crate::args::{self, Data, misused};
use crate::data;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
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
    let (_folder, ctx) = data::open_beside(&audit.data).await?;
    match audit.command {
        Command::Tail { which, count } => {
            let (filter, mut after) = (which.filter(), None);
            let mut records: Vec<Line> = Vec::new();
            loop {
                let trail = which.org.as_ref();
                let page = reading::page(&ctx, trail, &filter, Order::Descending, after).await?;
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
            let (filter, trail, mut after) = (which.filter(), which.org.as_ref(), None);
            let mut text = form.header().to_owned();
            loop {
                let Page { records, next } =
                    reading::page(&ctx, trail, &filter, Order::Ascending, after).await?;
                for record in &records {
                    let _ = write!(text, "{}", form.line(record, "statewright", trail));
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
