//! The cost of a month without any request, and of the month of a team.

use std::io;

use statewright_tests::meter::Stored;

use crate::bill::Prices;

/// Our metrics, and the templates' alarms for what must not go unnoticed.
const METRICS: f64 = 4.0;
const ALARMS: f64 = 5.0;

/// Each of the first two rotations of a key adds the monthly price of the key; later ones are free.
const ROTATIONS_PAID: f64 = 2.0;

/// The work that is counted: 300 `up`s a day, and as many previews.
pub(crate) const UPS_A_DAY: f64 = 300.0;
const DAYS_A_MONTH: f64 = 30.0;

/// Retention in days: items of logs and of events; their blobs are deleted 36 days later. The store is a year old.
pub(crate) const LOG_DAYS: f64 = 90.0;
pub(crate) const EVENT_DAYS: f64 = 365.0;
pub(crate) const BLOB_DAYS: f64 = 36.0;
pub(crate) const AUDIT_DAYS: f64 = 400.0;
const AGE_DAYS: f64 = 365.0;

/// The monthly cost in dollars without any request, with these sweeps.
pub(crate) struct Idle {
    /// All of it, in the first year.
    pub(crate) first_year: f64,
    /// From the third year on, when the key was rotated twice.
    pub(crate) third_year: f64,
    /// In the first year, without metrics and alarms.
    pub(crate) bare: f64,
}

impl Idle {
    pub(crate) fn of(prices: &Prices, sweeps: f64) -> io::Result<Self> {
        let key = prices.of_month("kms_key", 1.0)?;
        let watch = prices.of_month("metric", METRICS)? + prices.of_month("alarm", ALARMS)?;
        Ok(Self {
            first_year: key + watch + sweeps,
            third_year: key * (1.0 + ROTATIONS_PAID) + watch + sweeps,
            bare: key + sweeps,
        })
    }
}

/// What the audit trail of one `up` and of its preview costs. Their own costs contain the writes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Trail {
    /// Dollars for storing the records.
    pub(crate) writing: f64,
    /// Dollars for erasing them later.
    pub(crate) erasing: f64,
    /// Dollars for signing a day, whatever was done in it.
    pub(crate) signing: f64,
    /// The stored bytes of the records.
    pub(crate) bytes: u64,
}

/// The cost of one `up`, from its preview until only its version is left; and of a preview alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Work {
    /// Dollars of the `up` itself.
    pub(crate) up: f64,
    /// Of a preview.
    pub(crate) preview: f64,
    /// Of both, the gateway's part.
    pub(crate) gateway: f64,
    /// Of the later deletions.
    pub(crate) going: f64,
    /// What its log stores for a while.
    pub(crate) log: Stored,
    /// What its events store for a while.
    pub(crate) events: Stored,
    /// What is stored permanently, or longer than the store is old, as audit records are.
    pub(crate) version: Stored,
    pub(crate) trail: Trail,
}

/// A month of a team, in dollars.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Month {
    pub(crate) ups: f64,
    pub(crate) previews: f64,
    pub(crate) going: f64,
    /// Gigabytes in the table and in the bucket.
    pub(crate) gigabytes: (f64, f64),
    /// The table with its point-in-time recovery.
    pub(crate) table: f64,
    pub(crate) bucket: f64,
    pub(crate) idle: f64,
    /// Of the `up`s and the previews, the gateway's part.
    pub(crate) gateway: f64,
    /// For the signatures of the days of the audit trail.
    pub(crate) signing: f64,
    /// Of all, the audit trail's part.
    pub(crate) audit: f64,
}

impl Month {
    pub(crate) fn of(prices: &Prices, work: &Work, idle: f64) -> io::Result<Self> {
        let times = UPS_A_DAY * DAYS_A_MONTH;
        let gigabytes = |bytes: u64, days: f64| bytes as f64 * UPS_A_DAY * days.min(AGE_DAYS) / 1e9;
        let table = gigabytes(work.log.table, LOG_DAYS)
            + gigabytes(work.events.table, EVENT_DAYS)
            + gigabytes(work.version.table, AGE_DAYS);
        let bucket = gigabytes(work.log.bucket, LOG_DAYS + BLOB_DAYS)
            + gigabytes(work.events.bucket, EVENT_DAYS + BLOB_DAYS)
            + gigabytes(work.version.bucket, AGE_DAYS);
        let of_table = |gigabytes| {
            let recovery = prices.of_month("dynamodb_recovery_gb", gigabytes)?;
            Ok::<_, io::Error>(prices.of_month("dynamodb_gb", gigabytes)? + recovery)
        };
        let Trail { writing, erasing, signing, bytes } = work.trail;
        // A signature covers all records of its day, which are read for it: a unit for each 4 KB.
        let read = prices.of(&[("dynamodb_read_unit", bytes as f64 * UPS_A_DAY / 4096.0)])?;
        let signing = (signing + read) * DAYS_A_MONTH;
        let stored = of_table(gigabytes(bytes, AUDIT_DAYS))?;
        Ok(Self {
            ups: work.up * times,
            previews: work.preview * times,
            going: (work.going + erasing) * times,
            signing,
            audit: (writing + erasing) * times + signing + stored,
            gigabytes: (table, bucket),
            table: of_table(table)?,
            bucket: prices.of_month("s3_gb", bucket)?,
            idle,
            gateway: work.gateway * times,
        })
    }

    pub(crate) fn in_all(&self) -> f64 {
        self.ups + self.previews + self.going + self.signing + self.table + self.bucket + self.idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found} instead of {expected}");
    }

    #[test]
    fn an_idle_month_costs_the_key_metrics_alarms_and_sweeps() {
        let idle = Idle::of(&Prices::load().unwrap(), 0.04).unwrap();
        near(idle.first_year, 2.74);
        near(idle.third_year, 4.74);
        near(idle.bare, 1.04);
    }

    #[test]
    fn metrics_and_alarms_are_those_of_the_template() {
        let template = include_str!("../../infra/sam/template.yaml");
        assert_eq!(template.matches("Type: AWS::CloudWatch::Alarm").count() as f64, ALARMS);
        let sweep = include_str!("../../functions/lambda/src/lib.rs");
        let named = sweep.matches("Metric::count(\"").count() + sweep.matches("Metric::seconds(\"").count();
        assert_eq!(named as f64, METRICS);
    }

    #[test]
    fn a_month_has_requests_deletions_and_storage() {
        let stored = |table, bucket| Stored { table, bucket };
        let work = Work {
            up: 0.0004,
            preview: 0.00005,
            gateway: 0.00015,
            going: 0.0001,
            log: stored(100_000, 10_000),
            events: stored(1_000, 20_000),
            version: stored(2_000, 30_000),
            trail: Trail { writing: 0.00001, erasing: 0.00002, signing: 0.0001, bytes: 1_000 },
        };
        let month = Month::of(&Prices::load().unwrap(), &work, 2.74).unwrap();
        near(month.ups, 3.6);
        near(month.previews, 0.45);
        near(month.gateway, 1.35);
        near(month.going, 0.9 + 0.18);
        let signing = (0.0001 + 300_000.0 / 4_096.0 * 0.125e-6) * 30.0;
        near(month.signing, signing);
        near(month.audit, 0.09 + 0.18 + signing + 0.1095 * 0.45);
        // 100,000 bytes for 27,000 ups, 3,000 bytes for 109,500.
        near(month.gigabytes.0, 2.7 + 0.3285);
        // 10,000 bytes for 37,800 ups; the store has nothing older than itself.
        near(month.gigabytes.1, 0.378 + 5.475);
        near(month.table, 3.0285 * 0.45);
        near(month.bucket, 5.853 * 0.023);
        near(month.in_all(), 3.6 + 0.45 + 1.08 + signing + 3.0285 * 0.45 + 5.853 * 0.023 + 2.74);
    }
}
