//! Counters of the origin. Each thread has its own counters, so threads do not contend. The answer to a
//! request for the counters contains the sums over all threads (for `peak`, the maximum).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// Totals of all threads of an origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginCounters {
    /// Number of accepted connections.
    pub connections: u64,
    /// Number of answered requests, without requests for the counters.
    pub requests: u64,
    /// Number of body bytes sent.
    pub bytes: u64,
    /// Number of body bytes received.
    pub received: u64,
    /// Number of answers with status 200.
    pub ok: u64,
    /// Number of answers with status 206.
    pub partial: u64,
    /// Number of answers with status 304.
    pub not_modified: u64,
    /// Number of answers with status 4xx.
    pub client_errors: u64,
    /// Number of answers with status 5xx.
    pub server_errors: u64,
    /// Number of answers that were cut on purpose.
    pub broken: u64,
    /// Number of requests that could not be parsed.
    pub bad: u64,
    /// Greatest number of objects that any one thread was sending at the same time, since the origin
    /// started.
    #[serde(default)]
    pub peak: u64,
    /// CPU time of the threads in ns, without polls that found nothing. The value is exact only for the
    /// thread that answers the request for the counters.
    #[serde(default)]
    pub busy_ns: u64,
}

impl OriginCounters {
    /// The counts since an earlier snapshot.
    #[must_use]
    pub const fn minus(&self, earlier: &Self) -> Self {
        Self {
            connections: self.connections.saturating_sub(earlier.connections),
            requests: self.requests.saturating_sub(earlier.requests),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            received: self.received.saturating_sub(earlier.received),
            ok: self.ok.saturating_sub(earlier.ok),
            partial: self.partial.saturating_sub(earlier.partial),
            not_modified: self.not_modified.saturating_sub(earlier.not_modified),
            client_errors: self.client_errors.saturating_sub(earlier.client_errors),
            server_errors: self.server_errors.saturating_sub(earlier.server_errors),
            broken: self.broken.saturating_sub(earlier.broken),
            bad: self.bad.saturating_sub(earlier.bad),
            peak: self.peak,
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
        }
    }
}

/// Counters of one thread, on their own cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct PerThread {
    pub(super) connections: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) ok: AtomicU64,
    pub(super) partial: AtomicU64,
    pub(super) not_modified: AtomicU64,
    pub(super) client_errors: AtomicU64,
    pub(super) server_errors: AtomicU64,
    pub(super) broken: AtomicU64,
    pub(super) bad: AtomicU64,
    pub(super) answering: AtomicU64,
    pub(super) peak: AtomicU64,
    pub(super) busy_ns: AtomicU64,
}

impl PerThread {
    /// Counts one more object that is being sent.
    pub(super) fn begins(&self) {
        let now = self.answering.fetch_add(1, Relaxed) + 1;
        self.peak.fetch_max(now, Relaxed);
    }

    pub(super) fn answered(&self, status: u16) {
        self.requests.fetch_add(1, Relaxed);
        let counter = match status {
            206 => &self.partial,
            304 => &self.not_modified,
            400..=499 => &self.client_errors,
            500..=599 => &self.server_errors,
            _ => &self.ok,
        };
        counter.fetch_add(1, Relaxed);
    }
}

/// Counters of all threads.
#[derive(Debug)]
pub(super) struct Shared(Vec<PerThread>);

impl Shared {
    pub(super) fn new(threads: usize) -> Self {
        Self((0..threads).map(|_| PerThread::default()).collect())
    }

    pub(super) fn of(&self, thread: usize) -> &PerThread {
        &self.0[thread]
    }

    pub(super) fn sum(&self) -> OriginCounters {
        let sum = |field: fn(&PerThread) -> &AtomicU64| -> u64 {
            self.0.iter().map(|t| field(t).load(Relaxed)).sum()
        };
        OriginCounters {
            connections: sum(|t| &t.connections),
            requests: sum(|t| &t.requests),
            bytes: sum(|t| &t.bytes),
            received: sum(|t| &t.received),
            ok: sum(|t| &t.ok),
            partial: sum(|t| &t.partial),
            not_modified: sum(|t| &t.not_modified),
            client_errors: sum(|t| &t.client_errors),
            server_errors: sum(|t| &t.server_errors),
            broken: sum(|t| &t.broken),
            bad: sum(|t| &t.bad),
            peak: self
                .0
                .iter()
                .map(|t| t.peak.load(Relaxed))
                .max()
                .unwrap_or(0),
            busy_ns: sum(|t| &t.busy_ns),
        }
    }
}

/// Parses the answer to `/__counters`.
///
/// # Errors
/// Returned if the text is not the expected JSON.
pub fn parse_counters(json: &[u8]) -> Result<OriginCounters, serde_json::Error> {
    serde_json::from_slice(json)
}
