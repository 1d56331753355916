//! Computes the cost of calls of AWS from the calls themselves, in the units of the price lists.

use std::collections::HashMap;
use std::ops::{Add, Sub};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Counted calls of AWS. Everything counts as it is billed, including refused calls and each attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests to DynamoDB. They are not billed, but each takes time.
    pub dynamodb_requests: u64,
    /// Write request units: one for each 1 KB of a written item, twice as many in a transaction.
    pub write_units: u64,
    /// Halves of read request units: two for each 4 KB read with strong consistency, one otherwise.
    pub read_half_units: u64,
    /// Requests to S3 of the more expensive kind: PUT, COPY, POST, LIST.
    pub s3_puts: u64,
    /// Requests to S3 of the cheaper kind: GET and all others.
    pub s3_gets: u64,
    /// DELETE, which is free.
    pub s3_deletes: u64,
    pub kms_requests: u64,
}

impl Usage {
    /// The billed quantities, by their names in a price list.
    pub fn billed(&self) -> [(&'static str, f64); 5] {
        #[expect(clippy::cast_precision_loss, reason = "counts of a bench are far below 2^52")]
        let count = |number: u64| number as f64;
        [
            ("dynamodb_write_unit", count(self.write_units)),
            ("dynamodb_read_unit", count(self.read_half_units) / 2.0),
            ("s3_put", count(self.s3_puts)),
            ("s3_get", count(self.s3_gets)),
            ("kms_request", count(self.kms_requests)),
        ]
    }

    pub fn requests(&self) -> u64 {
        self.dynamodb_requests + self.s3_puts + self.s3_gets + self.s3_deletes + self.kms_requests
    }

    fn with(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            dynamodb_requests: with(self.dynamodb_requests, other.dynamodb_requests),
            write_units: with(self.write_units, other.write_units),
            read_half_units: with(self.read_half_units, other.read_half_units),
            s3_puts: with(self.s3_puts, other.s3_puts),
            s3_gets: with(self.s3_gets, other.s3_gets),
            s3_deletes: with(self.s3_deletes, other.s3_deletes),
            kms_requests: with(self.kms_requests, other.kms_requests),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, |one, other| one + other)
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

/// The stored bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of items, with what DynamoDB adds to each.
    pub table: u64,
    /// Bytes of objects.
    pub bucket: u64,
}

impl Sub for Stored {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            table: self.table.saturating_sub(other.table),
            bucket: self.bucket.saturating_sub(other.bucket),
        }
    }
}

/// The bytes that DynamoDB adds to each stored item. Source: its price list.
const BYTES_BESIDE_AN_ITEM: u64 = 100;

/// Counts calls that pass by. A write costs as much as the larger of the old and the new item, and the answer
/// does not contain the old one, so this remembers the sizes of all items.
///
/// Sources: "DynamoDB read and write operations", "Item sizes and formats" and "DynamoDB transactions" in the DynamoDB
/// developer guide; the price lists of S3 and KMS.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    usage: Usage,
    by_operation: HashMap<String, Usage>,
    audit: Usage,
    sizes: HashMap<String, u64>,
    objects: HashMap<String, u64>,
}

impl Meter {
    /// The calls so far.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// The part of the calls for the audit trail: its records, the signed roots of its days with their copies, and when
    /// a day is due. A transaction with other items counts by its items alone.
    pub(crate) fn audit(&self) -> Usage {
        self.audit
    }

    /// The stored bytes of audit records now.
    pub(crate) fn stored_of_audit(&self) -> u64 {
        let records = self.sizes.iter().filter(|(place, bytes)| place.contains(" \"AUDIT#") && **bytes > 0);
        records.map(|(_, bytes)| bytes + BYTES_BESIDE_AN_ITEM).sum()
    }

    /// The same by operation, and by kind of partition (`UPDATE`, `DUE`).
    pub(crate) fn by_operation(&self) -> HashMap<String, Usage> {
        self.by_operation.clone()
    }

    /// The stored bytes now.
    pub(crate) fn stored(&self) -> Stored {
        let items = self.sizes.values().filter(|bytes| **bytes > 0);
        Stored {
            table: items.map(|bytes| bytes + BYTES_BESIDE_AN_ITEM).sum(),
            bucket: self.objects.values().sum(),
        }
    }

    /// A call with its answer. `operation` is the name in the API for DynamoDB and KMS, the method for S3;
    /// `path` has its query.
    pub(crate) fn saw(
        &mut self,
        operation: &str,
        path: &str,
        request: &[u8],
        answered: &[u8],
        is_done: bool,
    ) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        match operation {
            "PUT" if is_done => drop(self.objects.insert(path.to_owned(), request.len() as u64)),
            "DELETE" if is_done => drop(self.objects.remove(path)),
            _ => {}
        }
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        let (mut usage, mut audit) = (Usage::default(), Usage::default());
        let mut kind = String::new();
        match operation {
            "PUT" | "POST" | "GET" | "HEAD" | "DELETE" => {
                match operation {
                    "PUT" | "POST" => usage.s3_puts = 1,
                    "GET" if query.contains("list-type") => usage.s3_puts = 1,
                    "DELETE" => usage.s3_deletes = 1,
                    _ => usage.s3_gets = 1,
                }
                if path.contains("/audit/") {
                    audit = usage;
                }
            }
            "GetItem" | "Query" | "Scan" => {
                let (request, answered) = (json(request), json(answered));
                kind = kind_of(&request["Key"]);
                let mut is_of_trail = is_of_trail(&kind);
                if operation == "Query" {
                    let values = request["ExpressionAttributeValues"].as_object().into_iter().flatten();
                    let texts: Vec<&str> = values.filter_map(|(_, value)| value["S"].as_str()).collect();
                    let mut kinds = texts.iter().filter_map(|text| Some(text.split_once('#')?.0));
                    is_of_trail = kinds.clone().any(self::is_of_trail);
                    kind = kinds.next().unwrap_or_default().to_owned();
                }
                let items = answered["Items"].as_array().into_iter().flatten();
                let bytes: u64 = items.map(size).sum::<u64>() + size(&answered["Item"]);
                usage.dynamodb_requests = 1;
                let each = if request["ConsistentRead"] == Value::Bool(true) { 2 } else { 1 };
                usage.read_half_units = bytes.div_ceil(4096).max(1) * each;
                if is_of_trail {
                    audit = usage;
                }
            }
            "PutItem" | "DeleteItem" | "UpdateItem" => {
                let request = json(request);
                kind = kind_of(key_of(&request));
                usage.dynamodb_requests = 1;
                usage.write_units = self.write(operation, &request, is_done);
                if is_of_audit(key_of(&request)) {
                    audit = usage;
                }
            }
            "TransactWriteItems" => {
                usage.dynamodb_requests = 1;
                let request = json(request);
                for write in request["TransactItems"].as_array().into_iter().flatten() {
                    for (kind, part) in write.as_object().into_iter().flatten() {
                        // A check costs as much as a write.
                        let units = 2 * self.write(kind, part, is_done);
                        usage.write_units += units;
                        if is_of_audit(key_of(part)) {
                            audit.write_units += units;
                        }
                    }
                }
            }
            "GenerateDataKey" | "Decrypt" | "Encrypt" | "ReEncrypt" => usage.kms_requests = 1,
            // Creating and describing are free.
            _ => {}
        }
        self.usage = self.usage + usage;
        let name = if kind.is_empty() { operation.to_owned() } else { format!("{operation} {kind}") };
        let before = self.by_operation.entry(name).or_default();
        *before = *before + usage;
        self.audit = self.audit + audit;
    }

    /// The units of one write, whether it succeeds or not.
    fn write(&mut self, kind: &str, write: &Value, is_done: bool) -> u64 {
        let (item, key) = (&write["Item"], key_of(write));
        let place = format!("{} {} {}", write["TableName"], key["partition"]["S"], key["sort"]["S"]);
        let old = self.sizes.get(&place).copied().unwrap_or(0);
        let new = size(item);
        if is_done && kind != "ConditionCheck" {
            self.sizes.insert(place, new);
        }
        old.max(new).div_ceil(1024).max(1)
    }
}

/// The key of a write: the item of a put has it.
fn key_of(write: &Value) -> &Value {
    if write["Item"].is_null() { &write["Key"] } else { &write["Item"] }
}

/// Whether partitions of this kind have records of the audit trail, or the roots of its days.
fn is_of_trail(kind: &str) -> bool {
    matches!(kind, "AUDIT" | "AUDITED")
}

/// Whether an item is of the audit trail. The item that says when a day is due has its name in the sort key.
fn is_of_audit(key: &Value) -> bool {
    let sort = key["sort"]["S"].as_str().unwrap_or_default();
    let kind = kind_of(key);
    is_of_trail(&kind) || (kind == "DUE" && sort.contains("#audit-"))
}

fn kind_of(key: &Value) -> String {
    let partition = key["partition"]["S"].as_str().unwrap_or_default();
    partition.split('#').next().unwrap_or_default().to_owned()
}

/// The bytes of an item: its names and its values.
fn size(item: &Value) -> u64 {
    let attributes = item.as_object().into_iter().flatten();
    attributes.map(|(name, value)| name.len() as u64 + value.as_object().map_or(0, size_of_value)).sum()
}

fn size_of_value(value: &Map<String, Value>) -> u64 {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    value
        .iter()
        .map(|(kind, value)| match kind.as_str() {
            "S" => text(value).len() as u64,
            "B" => STANDARD.decode(text(value)).map_or(0, |bytes| bytes.len() as u64),
            // A byte for two digits, and one more.
            "N" => text(value).trim_start_matches('-').len() as u64 / 2 + 2,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn saw(meter: &mut Meter, operation: &str, request: &Value, answered: &Value, is_done: bool) -> Usage {
        let before = meter.usage();
        meter.saw(operation, "/", request.to_string().as_bytes(), answered.to_string().as_bytes(), is_done);
        meter.usage() - before
    }

    /// An item of this many bytes, including names.
    fn item(sort: &str, bytes: usize) -> Value {
        let value =
            STANDARD
                .encode(vec![0; bytes - "partition".len() - 1 - "sort".len() - sort.len() - "value".len()]);
        json!({ "partition": { "S": "P" }, "sort": { "S": sort }, "value": { "B": value } })
    }

    #[test]
    fn a_write_costs_its_larger_item_and_double_in_a_transaction() {
        let mut meter = Meter::default();
        let put = |bytes| json!({ "TableName": "t", "Item": item("s", bytes) });
        let units = |usage: Usage| (usage.write_units, usage.dynamodb_requests);
        assert_eq!(units(saw(&mut meter, "PutItem", &put(1024), &json!({}), true)), (1, 1));
        assert_eq!(units(saw(&mut meter, "PutItem", &put(1025), &json!({}), false)), (2, 1), "a refused one");
        assert_eq!(units(saw(&mut meter, "PutItem", &put(3000), &json!({}), true)), (3, 1));
        assert_eq!(
            units(saw(&mut meter, "PutItem", &put(100), &json!({}), true)),
            (3, 1),
            "the old one counts"
        );
        assert_eq!(units(saw(&mut meter, "PutItem", &put(100), &json!({}), true)), (1, 1));
        let check = json!({ "TableName": "t", "Key": { "partition": { "S": "P" }, "sort": { "S": "s" } },
            "ConditionExpression": "attribute_exists(#a)" });
        let both = json!({ "TransactItems": [{ "Put": { "TableName": "t", "Item": item("other", 2000) } },
            { "ConditionCheck": check }] });
        assert_eq!(units(saw(&mut meter, "TransactWriteItems", &both, &json!({}), true)), (6, 1));
    }

    #[test]
    fn audit_records_are_counted_apart_too() {
        let mut meter = Meter::default();
        let audit =
            json!({ "TableName": "t", "Item": { "partition": { "S": "AUDIT#acme" }, "sort": { "S": "s" } } });
        saw(&mut meter, "PutItem", &audit, &json!({}), true);
        let other = json!({ "Put": { "TableName": "t", "Item": item("other", 2000) } });
        let both = json!({ "TransactItems": [{ "Put": audit }, other] });
        saw(&mut meter, "TransactWriteItems", &both, &json!({}), true);
        assert_eq!((meter.audit().write_units, meter.usage().write_units), (3, 7));
        assert_eq!(meter.stored_of_audit(), "partition".len() as u64 + 10 + 5 + BYTES_BESIDE_AN_ITEM);
        let day = "00000000000000000001#audit-2026-01-01-acme";
        let due = json!({ "partition": { "S": "DUE#3" }, "sort": { "S": day } });
        saw(&mut meter, "PutItem", &json!({ "TableName": "t", "Item": due }), &json!({}), true);
        let records = json!({
            "ExpressionAttributeValues": { ":from": { "S": "2026-01-01#" }, ":p": { "S": "AUDIT#acme" } },
        });
        saw(&mut meter, "Query", &records, &json!({}), true);
        let root = json!({ "Key": { "partition": { "S": "AUDITED#acme" } }, "ConsistentRead": true });
        saw(&mut meter, "GetItem", &root, &json!({}), true);
        meter.saw("PUT", "/bucket/audit/org/acme/2026-01-01-00?x-id=PutObject", b"", b"", true);
        meter.saw("PUT", "/bucket/snap/one", b"", b"", true);
        let audit = meter.audit();
        assert_eq!((audit.write_units, audit.read_half_units, audit.s3_puts), (4, 3, 1));
    }

    #[test]
    fn a_read_costs_by_four_kilobytes_of_all_that_it_finds() {
        let mut meter = Meter::default();
        let get = json!({ "Key": {}, "ConsistentRead": true });
        let half = |usage: Usage| usage.read_half_units;
        assert_eq!(half(saw(&mut meter, "GetItem", &get, &json!({}), true)), 2);
        assert_eq!(half(saw(&mut meter, "GetItem", &get, &json!({ "Item": item("s", 4097) }), true)), 4);
        let found = json!({ "Items": [item("a", 2000), item("b", 2000), item("c", 2000)] });
        assert_eq!(half(saw(&mut meter, "Query", &get, &found, true)), 4);
        assert_eq!(half(saw(&mut meter, "Query", &json!({}), &found, true)), 2, "without consistency");
    }

    #[test]
    fn the_store_has_what_was_put_and_not_deleted() {
        let mut meter = Meter::default();
        let mut put = |sort, bytes| {
            let put = json!({ "TableName": "t", "Item": item(sort, bytes) });
            saw(&mut meter, "PutItem", &put, &json!({}), true);
        };
        put("a", 1_000);
        put("b", 2_000);
        put("b", 500);
        let gone = json!({ "TableName": "t", "Key": { "partition": { "S": "P" }, "sort": { "S": "a" } } });
        saw(&mut meter, "DeleteItem", &gone, &json!({}), true);
        meter.saw("PUT", "/bucket/one?x-id=PutObject", &[0; 300], b"", true);
        meter.saw("PUT", "/bucket/one?x-id=PutObject", &[0; 200], b"", true);
        meter.saw("PUT", "/bucket/two", &[0; 100], b"", true);
        meter.saw("PUT", "/bucket/three", &[0; 100], b"", false);
        meter.saw("DELETE", "/bucket/two?x-id=DeleteObject", b"", b"", true);
        assert_eq!(meter.stored(), Stored { table: 600, bucket: 200 });
    }

    #[test]
    fn other_services_count_requests() {
        let mut meter = Meter::default();
        for (operation, path) in [
            ("PUT", "/bucket/key"),
            ("GET", "/bucket/key"),
            ("GET", "/bucket?list-type=2"),
            ("DELETE", "/bucket/key"),
            ("Decrypt", "/"),
            ("ListTables", "/"),
        ] {
            meter.saw(operation, path, b"", b"", true);
        }
        let expected = Usage { s3_puts: 2, s3_gets: 1, s3_deletes: 1, kms_requests: 1, ..Usage::default() };
        assert_eq!(meter.usage(), expected);
    }
}
