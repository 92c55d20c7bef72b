//! Counters and gauges of a running coordinator, in Prometheus' text format.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::Router;
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio_util::sync::CancellationToken;

use super::listen::Listener;

/// A number that others read while it changes.
#[derive(Debug, Default)]
pub(super) struct Number(AtomicU64);

impl Number {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

macro_rules! metrics {
    ($($field:ident: $kind:literal, $name:literal, $help:literal;)*) => {
        /// All numbers, by name.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $(pub(super) $field: Number,)*
        }

        impl Metrics {
            /// The page that Prometheus reads.
            pub fn page(&self) -> String {
                let mut page = String::new();
                $(
                    let value = self.$field.0.load(Relaxed);
                    // Writing to a string cannot fail.
                    _ = writeln!(
                        page,
                        "# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}",
                        $name, $help, $kind, value
                    );
                )*
                page
            }
        }
    };
}

metrics! {
    trials: "counter", "regretta_trials_total", "Trials made durable.";
    records: "counter", "regretta_records_total", "Records made durable.";
    bytes: "counter", "regretta_record_bytes_total", "Bytes of records received and accepted.";
    shards: "counter", "regretta_shards_total", "Shards made durable.";
    leases: "counter", "regretta_leases_total", "Leases granted.";
    retries: "counter", "regretta_retries_total", "Leases that ended without their shard: lost, given back, refused or too late.";
    deaths: "counter", "regretta_worker_deaths_total", "Workers lost while they held a lease.";
    checks: "counter", "regretta_checks_total", "Shards recomputed and compared.";
    alarms: "counter", "regretta_alarms_total", "Shards on which two workers disagreed.";
    commit_failures: "counter", "regretta_commit_failures_total", "Shards that could not be made durable.";
    leases_held: "gauge", "regretta_leases_held", "Leases held at the moment.";
    workers: "gauge", "regretta_workers", "Workers registered at the moment.";
    studies: "gauge", "regretta_studies_active", "Studies with work left.";
    calls: "gauge", "regretta_queue_calls", "Calls that wait for the scheduler.";
    commits: "gauge", "regretta_queue_commits", "Shards that wait for the disk.";
}

/// Serves `/metrics` until stopped. Nobody authenticates here, so that every connection ends at the deadline: one
/// page each, so that none is cut off while it waits for the next scrape.
pub(super) async fn serve(
    metrics: Arc<Metrics>,
    listener: Listener,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let page = move || async move {
        let headers = [(CONTENT_TYPE, "text/plain; version=0.0.4"), (CONNECTION, "close")];
        (headers, metrics.page()).into_response()
    };
    let router = Router::new().route("/metrics", get(page));
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_in_prometheus_format() {
        let metrics = Metrics::default();
        metrics.trials.add(3);
        metrics.trials.add(4);
        metrics.workers.set(2);
        let page = metrics.page();
        assert!(page.contains("# TYPE regretta_trials_total counter\nregretta_trials_total 7\n"));
        assert!(page.contains("# TYPE regretta_workers gauge\nregretta_workers 2\n"));
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.split_once(' ').unwrap();
            assert!(name.starts_with("regretta_") && value.parse::<u64>().is_ok(), "{line}");
        }
    }
}
