//! What the functions cost in addition to their calls of the store: requests, time and lines, by a model that
//! is described here and in `README.md`.

use statewright_shared::api::routes::Group;
use statewright_tests::app::SeenRequest;
use statewright_tests::functions::{LOG_BYTES_OF_A_RECORD, LOG_BYTES_OF_A_REQUEST};
use statewright_tests::meter::Usage;
use statewright_tests::rows::route;

/// MB of the function that publishes, as in `infra/sam/template.yaml`.
const HEAD_MEMORY_MB: f64 = 2048.0;

/// MB of the sweep.
const SWEEP_MEMORY_MB: f64 = 3008.0;

/// MB of every other one.
const OTHER_MEMORY_MB: f64 = 512.0;

/// Milliseconds that a function computes for a request, including the millisecond to which its time is rounded
/// up. The server takes less than one (`bench up`) on a whole processor; with 512 MB a function has 0.29 of
/// one.
const WORK_MS: f64 = 5.0;

/// Milliseconds of a call of DynamoDB, of S3 and of KMS, as AWS gives them for calls in its own region.
const DYNAMODB_MS: f64 = 6.0;
const S3_MS: f64 = 50.0;
const KMS_MS: f64 = 15.0;

/// The most calls of DynamoDB for a request of the function that publishes, and of S3 that store something;
/// `tests/http/api/call_counts.rs` has all of them.
const HEAD_DYNAMODB_CALLS: u64 = 10;
const HEAD_S3_PUTS: u64 = 1;

/// Milliseconds of a process until it asks for an event, which are billed too.
const COLD_MS: f64 = 150.0;

/// The bytes up to which the HTTP API counts a request as one; a longer one counts as several. Its price list
/// does not say whether the answer counts too; here it does.
const GATEWAY_STEP_BYTES: u64 = 512 << 10;

/// Log bytes of a request, and of an audit record: our lines alone, since the templates keep only the
/// platform's lines about failures.
const LINE_BYTES: f64 = LOG_BYTES_OF_A_REQUEST as f64;
const RECORD_BYTES: f64 = LOG_BYTES_OF_A_RECORD as f64;

/// Log bytes of a sweep, most of which are its metrics.
const SWEEP_LOG_BYTES: f64 = 600.0;

/// Events of the schedule in a month of 30 days.
const SWEEPS_A_MONTH: f64 = 30.0 * 24.0 * 12.0;

/// Billed things, by their names in `prices.json`.
pub(crate) type Things = Vec<(&'static str, f64)>;

/// The additional cost if functions answer these requests (`GET /api/user`), each group's first one cold. It is
/// an upper limit: the calls of the store come one after another, and the largest function waits for as many of
/// them as it can have made.
pub(crate) fn of_requests(requests: &[SeenRequest], usage: &Usage) -> Things {
    let groups: Vec<Group> = requests.iter().map(|request| group(&request.line)).collect();
    let records = requests.iter().filter_map(|request| route(&request.line)?.action).count() as f64;
    let steps: u64 = requests.iter().map(|request| request.bytes.div_ceil(GATEWAY_STEP_BYTES).max(1)).sum();
    let work: f64 = groups.iter().map(|group| WORK_MS * memory_mb(*group)).sum();
    let cold = Group::ALL.into_iter().filter(|group| groups.contains(group));
    let cold: f64 = cold.map(|group| COLD_MS * memory_mb(group)).sum();
    let of_head = groups.iter().filter(|group| **group == Group::Head).count() as u64;
    let head = Usage {
        dynamodb_requests: usage.dynamodb_requests.min(of_head * HEAD_DYNAMODB_CALLS),
        s3_puts: usage.s3_puts.min(of_head * HEAD_S3_PUTS),
        ..*usage
    };
    let waits = waits_ms(&head) * HEAD_MEMORY_MB + waits_ms(&(*usage - head)) * OTHER_MEMORY_MB;
    let count = groups.len() as f64;
    let mut things = things(count, steps as f64, work + cold + waits);
    things.push(("log_byte_infrequent", count * LINE_BYTES + records * RECORD_BYTES));
    things
}

/// The number of these requests by function.
pub(crate) fn by_group(requests: &[SeenRequest]) -> impl Iterator<Item = (&'static str, usize)> {
    let groups: Vec<Group> = requests.iter().map(|request| group(&request.line)).collect();
    Group::ALL.into_iter().map(move |group| (group.name(), groups.iter().filter(|it| **it == group).count()))
}

/// A month of events for the sweep, each of which makes these calls of the store, half of them cold.
pub(crate) fn of_idle_month(sweep: &Usage) -> Things {
    let each = WORK_MS + COLD_MS / 2.0 + waits_ms(sweep);
    let mut things = things(SWEEPS_A_MONTH, 0.0, SWEEPS_A_MONTH * each * SWEEP_MEMORY_MB);
    things.push(("log_byte", SWEEPS_A_MONTH * SWEEP_LOG_BYTES));
    things
}

fn things(invocations: f64, requests: f64, mb_ms: f64) -> Things {
    vec![
        ("lambda_request", invocations),
        ("lambda_gb_second", mb_ms / 1024.0 / 1000.0),
        ("http_api_request", requests),
    ]
}

fn waits_ms(usage: &Usage) -> f64 {
    let s3 = usage.s3_puts + usage.s3_gets + usage.s3_deletes;
    usage.dynamodb_requests as f64 * DYNAMODB_MS + s3 as f64 * S3_MS + usage.kms_requests as f64 * KMS_MS
}

fn memory_mb(group: Group) -> f64 {
    match group {
        Group::Head => HEAD_MEMORY_MB,
        Group::Read
        | Group::Secrets
        | Group::Log
        | Group::Admin
        | Group::Account
        | Group::Tfstate
        | Group::Environments
        | Group::Console => OTHER_MEMORY_MB,
    }
}

/// The group of a request.
fn group(line: &str) -> Group {
    route(line).map_or(Group::DEFAULT, |route| route.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_belongs_to_the_group_of_its_route() {
        for (line, expected) in [
            ("GET /api/user", Group::Read),
            ("POST /api/stacks/o/p/s/batch-encrypt", Group::Secrets),
            ("POST /api/stacks/o/p/s/update/u1/complete", Group::Head),
            ("PATCH /api/stacks/o/p/s/update/u1/journalentries", Group::Log),
            ("GET /nowhere", Group::DEFAULT),
        ] {
            assert_eq!(group(line), expected, "{line}");
        }
    }

    #[test]
    fn memory_is_that_of_the_template() {
        let template = include_str!("../../infra/sam/template.yaml");
        for (parameter, memory) in [
            ("HeadMemory", HEAD_MEMORY_MB),
            ("SweepMemory", SWEEP_MEMORY_MB),
            ("OtherMemory", OTHER_MEMORY_MB),
        ] {
            let (_, rest) = template.split_once(&format!("  {parameter}:\n")).unwrap();
            let default = rest.lines().find_map(|line| line.trim().strip_prefix("Default: ")).unwrap();
            assert_eq!(default.parse::<f64>().unwrap(), memory, "{parameter}");
        }
    }

    #[test]
    fn the_platform_logs_failures_only_in_the_cheaper_class() {
        let template = include_str!("../../infra/sam/template.yaml");
        let logging = "LoggingConfig: { LogFormat: JSON, ApplicationLogLevel: INFO, SystemLogLevel: WARN }";
        assert!(template.contains(logging), "the platform's lines of each request are not counted here");
        let groups = template.matches("LogGroupClass: !Ref LogClass").count();
        assert_eq!(groups, Group::ALL.len(), "all but the sweep's are of the cheaper class");
        assert!(template.contains("  LogClass:\n    Type: String\n    Default: INFREQUENT_ACCESS\n"));
    }

    #[test]
    fn a_request_costs_invocation_gateway_log_line_and_call_time() {
        let usage = Usage { dynamodb_requests: 2, s3_puts: 1, kms_requests: 1, ..Usage::default() };
        for (line, mb, records) in [
            ("GET /api/user/organizations/default", 512.0, 0.0),
            ("GET /api/user", 512.0, 1.0),
            ("POST /api/stacks/o/p", 2048.0, 1.0),
        ] {
            let things = of_requests(&[SeenRequest { line: line.to_owned(), bytes: 2_000 }], &usage);
            let mb_ms = (WORK_MS + COLD_MS) * mb + (2.0 * DYNAMODB_MS + S3_MS) * mb + KMS_MS * 2048.0;
            let expected = [
                ("lambda_request", 1.0),
                ("lambda_gb_second", mb_ms / 1024.0 / 1000.0),
                ("http_api_request", 1.0),
                ("log_byte_infrequent", LINE_BYTES + records * RECORD_BYTES),
            ];
            assert_eq!(things, expected, "{line}");
        }
    }

    #[test]
    fn a_long_request_is_several_to_the_gateway() {
        for (bytes, steps) in [(0, 1.0), (512 << 10, 1.0), ((512 << 10) + 1, 2.0), (4 << 20, 8.0)] {
            let request = SeenRequest { line: "GET /api/user".to_owned(), bytes };
            let things = of_requests(&[request], &Usage::default());
            assert!(things.contains(&("http_api_request", steps)), "{bytes}: {things:?}");
            assert!(things.contains(&("lambda_request", 1.0)), "{bytes}: {things:?}");
        }
    }
}
