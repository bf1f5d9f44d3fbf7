//! Metrics in the text format of Prometheus. Times are in seconds and sizes are in bytes.

mod sites;
mod traffic;

use std::fmt::{Display, Write};

use foxy_proxy::Latency;
use foxy_store::{Duty, Health, OneStoreStats};
use foxy_tls::ServerTls;

use super::State;
use super::stats::{health_name, requests, resident_bytes};

/// Returns the page `/metrics`.
pub(super) fn text(state: &State) -> String {
    let mut page = Page::default();
    traffic::write(state, &mut page);
    engine(state, &mut page);
    process(state, &mut page);
    certificates(state, &mut page);
    sites::write(state, &mut page);
    page.0
}

/// Writes metrics; writing to a string cannot fail.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = if labels.is_empty() {
            writeln!(self.0, "{name} {value}")
        } else {
            writeln!(self.0, "{name}{{{labels}}} {value}")
        };
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, "", value);
    }

    fn histogram(&mut self, name: &str, label: &str, latency: &Latency) {
        let comma = if label.is_empty() { "" } else { "," };
        let mut below = 0;
        let last = latency.buckets.len() - 1;
        for (i, count) in latency.buckets.iter().enumerate().take(last) {
            below += count;
            let bound = (1u64 << i) as f64 / 1e6;
            let labels = format!("{label}{comma}le=\"{bound}\"");
            self.sample(&format!("{name}_bucket"), &labels, below);
        }
        let all = below + latency.buckets[last];
        let labels = format!("{label}{comma}le=\"+Inf\"");
        self.sample(&format!("{name}_bucket"), &labels, all);
        self.sample(&format!("{name}_sum"), label, latency.sum_us as f64 / 1e6);
        self.sample(&format!("{name}_count"), label, all);
    }
}

/// Name, help and value of a metric of one store.
type Gauge = (&'static str, &'static str, fn(&OneStoreStats) -> f64);

fn engine(state: &State, page: &mut Page) {
    let stats = state.engine.stats();
    for (name, help, value) in [
        ("ram_objects", "Objects in the RAM tier.", stats.ram_objects),
        (
            "ram_bytes",
            "Bytes of objects in the RAM tier.",
            stats.ram_bytes,
        ),
        (
            "ram_capacity_bytes",
            "Bytes that the RAM tier may hold now.",
            stats.ram_capacity,
        ),
        (
            "pending_bytes",
            "Bytes of objects that wait to be written.",
            stats.pending_bytes,
        ),
        (
            "index_bytes",
            "Bytes of the index of objects on disk.",
            stats.index_bytes,
        ),
        (
            "disk_objects",
            "Objects and fragments on disk.",
            stats.disk_objects,
        ),
    ] {
        page.single(&format!("foxy_{name}"), "gauge", help, value);
    }
    let name = "foxy_engine_events_total";
    page.family(
        name,
        "counter",
        "Events that the store engine counted, over all stores.",
    );
    let hits = [
        ("ram_hits", stats.ram_hits),
        ("pending_hits", stats.pending_hits),
    ];
    for (event, value) in stats.counts.named().into_iter().chain(hits) {
        page.sample(name, &format!("event=\"{event}\""), value);
    }
    page.single(
        "foxy_stores_absent",
        "gauge",
        "Stores of the configuration that Foxy runs without. /readyz states the reasons.",
        state.stores.absent().len(),
    );
    stores(&stats.stores, page);
}

fn stores(stores: &[OneStoreStats], page: &mut Page) {
    states(stores, page);
    let gauges: [Gauge; 9] = [
        (
            "foxy_store_up",
            "1 if the store reads and writes, 0.5 if it is slow or only reads, 0 if it is offline.",
            |s| match s.health {
                Health::Good => 1.0,
                Health::Slow | Health::ReadOnly => 0.5,
                Health::Offline => 0.0,
            },
        ),
        (
            "foxy_store_full",
            "1 if the last write failed because a quota or the file system behind the store has no room.",
            |s| f64::from(u8::from(s.full)),
        ),
        (
            "foxy_store_drain_left",
            "Fraction of the store (0 to 1) that a drain has not processed yet.",
            |s| s.left,
        ),
        (
            "foxy_store_takes_new",
            "1 if new objects may go to the store, 0 if the store drains, is drained or is being taken out.",
            |s| f64::from(u8::from(s.duty == Duty::Serving)),
        ),
        (
            "foxy_store_quarantined_segments",
            "Segments that are not used because reads of them failed.",
            |s| f64::from(s.quarantined),
        ),
        (
            "foxy_store_reads_sorted",
            "1 while reads are sorted, because the disk rotates or because the configuration requires it.",
            |s| f64::from(u8::from(s.reads_sorted)),
        ),
        (
            "foxy_store_loading",
            "1 while older contents are being loaded.",
            |s| f64::from(u8::from(s.loading)),
        ),
        ("foxy_store_used_bytes", "Bytes of the store in use.", |s| {
            s.used_bytes as f64
        }),
        (
            "foxy_store_capacity_bytes",
            "Bytes of all segments of the store, which hold its contents.",
            |s| f64::from(s.segments) * f64::from(s.segment_bytes),
        ),
    ];
    for (name, help, value) in gauges {
        page.family(name, "gauge", help);
        for store in stores {
            page.sample(name, &format!("store=\"{}\"", store.store.0), value(store));
        }
    }
    let name = "foxy_store_events_total";
    page.family(name, "counter", "Events that each store counted.");
    for store in stores {
        for (event, value) in store.counts.named() {
            page.sample(
                name,
                &format!("store=\"{}\",event=\"{event}\"", store.store.0),
                value,
            );
        }
    }
}

/// Writes one sample for each state of a store: 1 for the current state, 0 for the other states.
fn states(stores: &[OneStoreStats], page: &mut Page) {
    let name = "foxy_store_state";
    page.family(
        name,
        "gauge",
        "1 for the current state of the store, 0 for the other states.",
    );
    for store in stores {
        for state in [
            Health::Good,
            Health::Slow,
            Health::ReadOnly,
            Health::Offline,
        ] {
            let labels = format!(
                "store=\"{}\",state=\"{}\"",
                store.store.0,
                health_name(state)
            );
            page.sample(name, &labels, u8::from(state == store.health));
        }
    }
}

fn certificates(state: &State, page: &mut Page) {
    let name = "foxy_certificate_expiry_timestamp_seconds";
    let help = "Time at which a listener's certificate expires, in seconds since 1970.";
    page.family(name, "gauge", help);
    for served in state.certificates.iter().flat_map(ServerTls::served) {
        let file = served.path().display().to_string();
        let file = file.replace(['\\', '"', '\n'], "_");
        let label = format!("file=\"{file}\"");
        page.sample(name, &label, served.certificate().not_after);
    }
}

fn process(state: &State, page: &mut Page) {
    let uptime = state.clock.mono().since(state.started).as_secs_f64();
    page.single(
        "foxy_uptime_seconds",
        "gauge",
        "Seconds since the start.",
        uptime,
    );
    page.single(
        "foxy_memory_budget_bytes",
        "gauge",
        "The memory budget.",
        state.memory,
    );
    page.single(
        "foxy_memory_short",
        "gauge",
        "1 if the memory for requests is spent, or was spent in the last ten seconds.",
        u8::from(state.proxy.memory_is_short()),
    );
    page.family(
        "foxy_request_memory_bytes",
        "gauge",
        "Memory that requests use, by purpose.",
    );
    for (name, bytes) in requests(&state.proxy) {
        let label = format!("use=\"{name}\"");
        page.sample("foxy_request_memory_bytes", &label, bytes);
    }
    let help = "Resident memory of the process, as reported by the system.";
    page.single(
        "process_resident_memory_bytes",
        "gauge",
        help,
        resident_bytes(),
    );
    if let Some(log) = &state.log {
        page.single(
            "foxy_log_lines_total",
            "counter",
            "Access log lines written.",
            log.written(),
        );
        let help = "Access log lines dropped because they could not be written in time, or at all.";
        page.single(
            "foxy_log_lines_dropped_total",
            "counter",
            help,
            log.dropped(),
        );
    }
    page.family(
        "foxy_build_info",
        "gauge",
        "Always 1. The label is the version.",
    );
    page.sample(
        "foxy_build_info",
        &format!("version=\"{}\"", env!("CARGO_PKG_VERSION")),
        1,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_cumulative_and_end_with_everything() {
        let mut latency = Latency::default();
        latency.buckets[0] = 1;
        latency.buckets[2] = 2;
        let last = latency.buckets.len() - 1;
        latency.buckets[last] = 4;
        latency.sum_us = 1_500_000;
        let mut page = Page::default();
        page.histogram("t", "kind=\"hit\"", &latency);
        assert!(
            page.0
                .starts_with("t_bucket{kind=\"hit\",le=\"0.000001\"} 1\n"),
            "{}",
            page.0
        );
        assert!(page.0.contains("le=\"0.000004\"} 3\n") && page.0.contains("le=\"+Inf\"} 7\n"));
        assert!(
            page.0
                .ends_with("t_sum{kind=\"hit\"} 1.5\nt_count{kind=\"hit\"} 7\n")
        );
    }
}
