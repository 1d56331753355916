//! Items in a DynamoDB table.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, Delete, Put, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem,
};

use super::Clients;
use super::failure::{Described, Retries, is_turned_away, of_read, of_write};
use super::item::{
    Attributes, PARTITION, REVISION, SORT, from_attributes, key_from_attributes, key_to_attributes,
    revision_to_attribute, to_attributes,
};
use crate::adapters::cursor::{cursor_behind, item_behind};
use crate::ports::{
    Clock, CommitError, Cursor, Expect, Ids, Item, ItemKey, Ledger, Order, Page, Part, PortError, Query,
    Refusal, Write, WriteAction, verify_writes,
};

const GETTING: &str = "reading an item";
const QUERYING: &str = "querying items";
const SCANNING: &str = "reading all items";
const COMMITTING: &str = "committing";

/// The largest value kept in the table. A write of one kilobyte costs as much as an eighth of a put to S3, and
/// takes a few milliseconds instead of some twenty; a partition takes a thousand kilobytes a second. At ten
/// kilobytes an object, with its get and the item that points to it, becomes cheaper.
const INLINE_BYTES_MAX: usize = 10 * 1024;

/// A ledger in one DynamoDB table, whose items [`super::set_up`] describes. Clones share the client.
///
/// * Reads are strongly consistent. A `get` sees all of a transaction or nothing. A query sees each item as
///   some commit left it, but during a transaction on several items of its partition it may see some of them
///   before and some after: queries have no better isolation. No use case asks for more; see decision 11.
/// * A commit of one write is one conditional call; of several, one transaction, which costs twice as much for
///   each item. A check alone is a read.
/// * Calls that DynamoDB rejects without doing them (throttling, a conflict with another transaction) are
///   repeated with growing, random waits, for up to 1.6 seconds, and then reported as not done.
/// * A commit whose answer was lost is unknown. It is not repeated here: the answer to a second delivery would
///   report the outcome of the first.
/// * A page ends at 1 MB, whatever the limit asks for.
#[derive(Clone)]
pub struct DynamoLedger {
    client: Client,
    table: String,
    retries: Retries,
}

impl fmt::Debug for DynamoLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoLedger").field("table", &self.table).finish_non_exhaustive()
    }
}

impl DynamoLedger {
    /// The ledger in this table. `clock` waits before a retry, and `ids` gives the random length of the wait.
    pub fn new(clients: &Clients, table: String, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self { client: clients.dynamodb(), table, retries: Retries::new(clients, clock, ids) }
    }

    /// A part of all items whose partition starts with `prefix`: reads 1 MB of the table, whatever matches.
    pub(super) async fn scan(&self, prefix: &str, from: Option<&Cursor>) -> Result<Part<Item>, PortError> {
        let start = from.map(item_behind).transpose()?.map(|key| key_to_attributes(&key));
        let mut scan =
            self.client.scan().table_name(&self.table).consistent_read(true).set_exclusive_start_key(start);
        if !prefix.is_empty() {
            scan = scan
                .filter_expression("begins_with(#p, :p)")
                .expression_attribute_names("#p", PARTITION)
                .expression_attribute_values(":p", AttributeValue::S(prefix.to_owned()));
        }
        let answer = self.retries.call(|| scan.clone().send(), is_turned_away).await;
        let answer = answer.map_err(|error| of_read(SCANNING, error))?;
        let foreign = |foreign| PortError::not_done(SCANNING, foreign);
        let found = answer.items.unwrap_or_default().into_iter().map(from_attributes);
        let found = found.collect::<Result<_, _>>().map_err(foreign)?;
        let last = answer.last_evaluated_key.filter(|key| !key.is_empty());
        let next = last.map(key_from_attributes).transpose().map_err(foreign)?;
        Ok(Part { found, next: next.as_ref().map(cursor_behind) })
    }

    /// A commit of one write that is conditional or changes something.
    async fn commit_one(&self, index: usize, write: &Write) -> Result<(), CommitError> {
        let Condition { expression, names, values } = Condition::of(write.expect);
        let refuse = |current: Option<Attributes>| match current.map(from_attributes).transpose() {
            Ok(current) => CommitError::Refused(Refusal { index, current }),
            Err(foreign) => PortError::not_done(COMMITTING, foreign).into(),
        };
        match &write.action {
            WriteAction::Check => {
                let current = self.get(&write.key).await?;
                let holds = match write.expect {
                    Expect::Any => true,
                    Expect::Absent => current.is_none(),
                    Expect::Revision(revision) => {
                        current.as_ref().is_some_and(|item| item.revision == revision)
                    }
                };
                if holds { Ok(()) } else { Err(CommitError::Refused(Refusal { index, current })) }
            }
            WriteAction::Put { revision, value, expires } => {
                let item = to_attributes(&write.key, *revision, value, *expires);
                let put = self
                    .client
                    .put_item()
                    .table_name(&self.table)
                    .set_item(Some(item))
                    .set_condition_expression(expression)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
                let answer = self.retries.call(|| put.clone().send(), is_turned_away).await;
                answer.map(drop).map_err(|error| match error.as_service_error() {
                    Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                        refuse(failed.item().cloned())
                    }
                    _ => of_write(COMMITTING, error).into(),
                })
            }
            WriteAction::Delete => {
                let delete = self
                    .client
                    .delete_item()
                    .table_name(&self.table)
                    .set_key(Some(key_to_attributes(&write.key)))
                    .set_condition_expression(expression)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
                let answer = self.retries.call(|| delete.clone().send(), is_turned_away).await;
                answer.map(drop).map_err(|error| match error.as_service_error() {
                    Some(DeleteItemError::ConditionalCheckFailedException(failed)) => {
                        refuse(failed.item().cloned())
                    }
                    _ => of_write(COMMITTING, error).into(),
                })
            }
        }
    }

    /// A commit of several writes, each with its position among the writes of the caller.
    async fn commit_all(&self, writes: &[(usize, Write)]) -> Result<(), CommitError> {
        let items = writes
            .iter()
            .map(|(_, write)| self.transact_item(write))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| PortError::not_done(COMMITTING, error))?;
        // Each attempt is a new transaction with a token of its own. To a token that it has seen, DynamoDB
        // repeats the old outcome, and the attempt before is known to have ended without effect.
        let transaction = self.client.transact_write_items().set_transact_items(Some(items));
        let answer = self
            .retries
            .call(
                || transaction.clone().send(),
                |error| is_turned_away(error) || matches!(verdict(error), Some(Verdict::TurnedAway)),
            )
            .await;
        let Err(error) = answer else { return Ok(()) };
        match verdict(&error) {
            Some(Verdict::Refused { position, current }) => {
                let current = current
                    .map(from_attributes)
                    .transpose()
                    .map_err(|foreign| PortError::not_done(COMMITTING, foreign))?;
                let index = writes.get(position).map_or(position, |(index, _)| *index);
                Err(CommitError::Refused(Refusal { index, current }))
            }
            Some(Verdict::TurnedAway | Verdict::Impossible) => {
                Err(PortError::not_done(COMMITTING, Cancelled(Described(error))).into())
            }
            None => Err(of_write(COMMITTING, error).into()),
        }
    }

    fn transact_item(&self, write: &Write) -> Result<TransactWriteItem, BuildError> {
        let Condition { expression, names, values } = Condition::of(write.expect);
        let all_old = ReturnValuesOnConditionCheckFailure::AllOld;
        let item = TransactWriteItem::builder();
        Ok(match &write.action {
            WriteAction::Put { revision, value, expires } => item.put(
                Put::builder()
                    .table_name(&self.table)
                    .set_item(Some(to_attributes(&write.key, *revision, value, *expires)))
                    .set_condition_expression(expression)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(all_old)
                    .build()?,
            ),
            WriteAction::Delete => item.delete(
                Delete::builder()
                    .table_name(&self.table)
                    .set_key(Some(key_to_attributes(&write.key)))
                    .set_condition_expression(expression)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(all_old)
                    .build()?,
            ),
            WriteAction::Check => item.condition_check(
                ConditionCheck::builder()
                    .table_name(&self.table)
                    .set_key(Some(key_to_attributes(&write.key)))
                    .set_condition_expression(expression)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .return_values_on_condition_check_failure(all_old)
                    .build()?,
            ),
        }
        .build())
    }
}

#[async_trait]
impl Ledger for DynamoLedger {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        let get = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(key_to_attributes(key)))
            .consistent_read(true);
        let answer = self.retries.call(|| get.clone().send(), is_turned_away).await;
        let found = answer.map_err(|error| of_read(GETTING, error))?.item;
        found.map(from_attributes).transpose().map_err(|foreign| PortError::not_done(GETTING, foreign))
    }

    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let mut page = Page { items: Vec::new(), more: false };
        let mut start = match Start::of(query) {
            Start::Nowhere => return Ok(page),
            Start::AtTheEnd => None,
            Start::Behind(sort) => Some(key_to_attributes(&ItemKey::new(query.partition.clone(), sort))),
        };
        let mut names = HashMap::from([("#p".to_owned(), PARTITION.to_owned())]);
        let mut values = HashMap::from([(":p".to_owned(), AttributeValue::S(query.partition.clone()))]);
        let mut condition = "#p = :p";
        if !query.prefix.is_empty() {
            condition = "#p = :p AND begins_with(#s, :s)";
            names.insert("#s".to_owned(), SORT.to_owned());
            values.insert(":s".to_owned(), AttributeValue::S(query.prefix.clone()));
        }
        let request = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression(condition)
            .set_expression_attribute_names(Some(names))
            .set_expression_attribute_values(Some(values))
            .scan_index_forward(query.order == Order::Ascending)
            .limit(i32::try_from(query.limit.max(1)).unwrap_or(i32::MAX));
        loop {
            let request = request.clone().set_exclusive_start_key(start);
            let answer = self.retries.call(|| request.clone().send(), is_turned_away).await;
            let answer = answer.map_err(|error| of_read(QUERYING, error))?;
            for found in answer.items.unwrap_or_default() {
                page.items
                    .push(from_attributes(found).map_err(|foreign| PortError::not_done(QUERYING, foreign))?);
            }
            start = answer.last_evaluated_key.filter(|key| !key.is_empty());
            page.more = start.is_some();
            // An empty page that is not the last is useless to a caller, who continues after the last item.
            if !page.more || !page.items.is_empty() {
                return Ok(page);
            }
        }
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        verify_writes(&writes)?;
        // A check that expects nothing is a no-op, which DynamoDB cannot express.
        let writes: Vec<(usize, Write)> = writes
            .into_iter()
            .enumerate()
            .filter(|(_, write)| write.action != WriteAction::Check || write.expect != Expect::Any)
            .collect();
        match writes.as_slice() {
            [] => Ok(()),
            [(index, write)] => self.commit_one(*index, write).await,
            several => self.commit_all(several).await,
        }
    }

    fn inline_bytes_max(&self) -> usize {
        INLINE_BYTES_MAX
    }
}

/// An expectation as a DynamoDB condition. Attribute names are placeholders, because some of them are reserved
/// words.
struct Condition {
    expression: Option<String>,
    names: Option<HashMap<String, String>>,
    values: Option<HashMap<String, AttributeValue>>,
}

impl Condition {
    fn of(expect: Expect) -> Self {
        let (expression, name, values) = match expect {
            Expect::Any => return Self { expression: None, names: None, values: None },
            Expect::Absent => ("attribute_not_exists(#a)", PARTITION, None),
            Expect::Revision(revision) => {
                let values = HashMap::from([(":r".to_owned(), revision_to_attribute(revision))]);
                ("#a = :r", REVISION, Some(values))
            }
        };
        Self {
            expression: Some(expression.to_owned()),
            names: Some(HashMap::from([("#a".to_owned(), name.to_owned())])),
            values,
        }
    }
}

/// Where a query begins to read.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    /// At the end of the prefix's range that comes first in the query's order.
    AtTheEnd,
    /// After this sort key, which need not exist but has the prefix: DynamoDB refuses one outside the range.
    Behind(String),
    /// Nothing can match.
    Nowhere,
}

impl Start {
    fn of(query: &Query) -> Self {
        match (&query.after, query.order) {
            (None, _) => Self::AtTheEnd,
            (Some(after), _) if !after.is_empty() && after.starts_with(&query.prefix) => {
                Self::Behind(after.clone())
            }
            // A key outside the range comes before all of it or after all of it.
            (Some(after), Order::Ascending) if *after <= query.prefix => Self::AtTheEnd,
            (Some(after), Order::Descending) if *after > query.prefix => Self::AtTheEnd,
            (Some(_), _) => Self::Nowhere,
        }
    }
}

/// The outcome of a transaction that DynamoDB canceled. Nothing was written in any case.
enum Verdict {
    /// The condition of the first failed write did not hold.
    Refused { position: usize, current: Option<Attributes> },
    /// The first failed write met another transaction, or too much load, so its condition was not checked.
    TurnedAway,
    /// It can never be done, for example because of its size.
    Impossible,
}

/// Reads the reasons of a canceled transaction, one for each write in order. `None` if the failure is another.
///
/// Source: `TransactWriteItems` in the DynamoDB API reference.
fn verdict(error: &SdkError<TransactWriteItemsError, HttpResponse>) -> Option<Verdict> {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error()
    else {
        return None;
    };
    let code = |reason: &CancellationReason| reason.code().unwrap_or("None").to_owned();
    let first =
        cancelled.cancellation_reasons().iter().enumerate().find(|(_, reason)| code(reason) != "None");
    let Some((position, reason)) = first else { return Some(Verdict::TurnedAway) };
    Some(match code(reason).as_str() {
        "ConditionalCheckFailed" => {
            let current = reason.item().filter(|item| !item.is_empty()).cloned();
            Verdict::Refused { position, current }
        }
        "TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded" => Verdict::TurnedAway,
        _ => Verdict::Impossible,
    })
}

/// A canceled transaction with its reasons: its own message does not always name them.
#[derive(Debug)]
struct Cancelled(Described<TransactWriteItemsError>);

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        if let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
            self.0.0.as_service_error()
        {
            for (position, reason) in cancelled.cancellation_reasons().iter().enumerate() {
                if let Some(code) = reason.code().filter(|code| *code != "None") {
                    write!(f, "; write {position}: {code}")?;
                    reason.message().map_or(Ok(()), |message| write!(f, " ({message})"))?;
                }
            }
        }
        Ok(())
    }
}

impl std::error::Error for Cancelled {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::key_range::sort_range;

    const SORTS: [&str; 14] =
        ["", "\0", "a", "a\0", "a1", "b", "b\0", "b1", "b2", "ba", "c", "\u{e9}", "\u{ffff}", "\u{10ffff}"];

    /// The keys that a query returns that begins there, as DynamoDB reads.
    fn found(query: &Query) -> Vec<&'static str> {
        let mut range: Vec<&str> =
            SORTS.into_iter().filter(|sort| !sort.is_empty() && sort.starts_with(&query.prefix)).collect();
        if query.order == Order::Descending {
            range.reverse();
        }
        match Start::of(query) {
            Start::Nowhere => Vec::new(),
            Start::AtTheEnd => range,
            Start::Behind(sort) => {
                assert!(!sort.is_empty() && sort.starts_with(&query.prefix), "{sort:?} is outside the range");
                let behind = |key: &&str| match query.order {
                    Order::Ascending => **key > *sort,
                    Order::Descending => **key < *sort,
                };
                range.into_iter().filter(behind).collect()
            }
        }
    }

    #[test]
    fn a_query_begins_where_the_range_of_its_sort_keys_does() {
        for (prefix, after) in SORTS.into_iter().flat_map(|prefix| SORTS.map(|after| (prefix, after))) {
            for (after, order) in [None, Some(after.to_owned())]
                .into_iter()
                .flat_map(|after| [(after.clone(), Order::Ascending), (after, Order::Descending)])
            {
                let query =
                    Query { partition: "P".to_owned(), prefix: prefix.to_owned(), after, order, limit: 1 };
                let range = sort_range(&query);
                let mut expected: Vec<&str> = SORTS
                    .into_iter()
                    .filter(|sort| !sort.is_empty() && range.contains(&sort.as_bytes().to_vec()))
                    .collect();
                if order == Order::Descending {
                    expected.reverse();
                }
                assert_eq!(found(&query), expected, "{query:?}");
            }
        }
    }
}
