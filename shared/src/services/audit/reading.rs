//! Reads audit trails.

use crate::context::Context;
use crate::domain::names::OrgName;
use crate::layout::{AuditRecord, Record};
use crate::ports::{Order, Timestamp};
use crate::services::caller::Caller;
use crate::services::{Error, store};

/// Records on a page, at most.
pub const PAGE: usize = 100;

/// Records that are read for one page, at most. A page of a filter that matches few of them may be short, or empty,
/// and still not be the last.
const READ_MAX: usize = 2_000;

/// Records that are read at a time.
const READ_AT_ONCE: usize = 500;

/// Which records to show. Each text is compared as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The earliest time.
    pub from: Option<Timestamp>,
    /// The end: only records before this time.
    pub until: Option<Timestamp>,
    /// The login.
    pub user: Option<String>,
    pub action: Option<String>,
    /// The project and the name of a stack.
    pub stack: Option<(String, String)>,
    /// The project and the name of a Terraform state.
    pub state: Option<(String, String)>,
}

impl Filter {
    fn matches(&self, record: &AuditRecord) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let is_of = |wanted: &Option<(String, String)>, name: &Option<String>| {
            wanted.as_ref().is_none_or(|(project, wanted)| {
                record.project.as_ref() == Some(project) && name.as_ref() == Some(wanted)
            })
        };
        self.from.is_none_or(|from| record.at >= from)
            && self.until.is_none_or(|until| record.at < until)
            && is(&self.user, record.user.as_ref().map(crate::domain::names::Login::as_str))
            && is(&self.action, Some(&record.action))
            && is_of(&self.stack, &record.stack)
            && is_of(&self.state, &record.state)
    }

    /// Whether no record after this one, in this order, can match.
    fn is_past(&self, record: &AuditRecord, order: Order) -> bool {
        match order {
            Order::Ascending => self.until.is_some_and(|until| record.at >= until),
            Order::Descending => self.from.is_some_and(|from| record.at < from),
        }
    }

    /// The position from which to read, in this order.
    fn start(&self, order: Order) -> Option<String> {
        match order {
            Order::Ascending => self.from.map(AuditRecord::position),
            Order::Descending => self.until.map(AuditRecord::position),
        }
    }
}

/// A page of a trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The records, in the order that was asked for.
    pub records: Vec<AuditRecord>,
    /// The position of the next page; `None` after the last one.
    pub next: Option<String>,
}

/// A page of the trail of an organization, for one of its admins or auditors. A handful of queries.
///
/// # Errors
/// `AccessError::NoOrg`, `AccessError::NotAllowed`.
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    filter: &Filter,
    order: Order,
    after: Option<String>,
) -> Result<Page, Error> {
    caller.check_org(ctx, org).await?;
    page(ctx, Some(org), filter, order, after).await
}

/// A page of a trail, for the operator. `None` is the trail of the server.
///
/// # Errors
/// Those of the ports.
pub async fn page(
    ctx: &Context,
    trail: Option<&OrgName>,
    filter: &Filter,
    order: Order,
    after: Option<String>,
) -> Result<Page, Error> {
    let after = after.or_else(|| filter.start(order));
    let mut query = AuditRecord::of_trail(trail).query(after, order, READ_AT_ONCE);
    let (mut records, mut read) = (Vec::new(), 0);
    loop {
        let page = store::query(ctx, &query).await?;
        for item in &page.items {
            let record = AuditRecord::decode(&item.value)?;
            if filter.is_past(&record, order) {
                return Ok(Page { records, next: None });
            }
            if filter.matches(&record) {
                records.push(record);
            }
            if records.len() == PAGE {
                return Ok(Page { records, next: Some(item.key.sort.clone()) });
            }
        }
        read += page.items.len();
        let last = page.items.last().map(|item| item.key.sort.clone());
        if !page.more || read >= READ_MAX {
            return Ok(Page { records, next: last.filter(|_| page.more) });
        }
        query.after = last;
    }
}
