//! Counters of events. Each worker has its own counters and writes them without contention. A reader adds
//! them up.

mod class;
mod histogram;
mod origin;
mod site;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::class::class;
use self::histogram::Histogram;
use crate::Outcome;

pub use self::class::CLASSES;
pub use self::histogram::{BUCKETS, Latency};
pub(crate) use self::origin::OriginCounters;
pub use self::origin::{OriginTotals, Trouble};
pub(crate) use self::site::SiteCounters;
pub use self::site::{CACHED, SiteTotals};

macro_rules! events {
    ($(#[doc = $doc:literal] $name:ident = $word:literal),* $(,)?) => {
        /// An event that is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Event { $(#[doc = $doc] $name),* }

        impl Event {
            /// Every event, in the order of the counters.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];
            /// Returns the stable name of the event.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }
            /// Returns a sentence about the counted event.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$name => $doc.trim_ascii()),* }
            }
        }
    };
}

events! {
    /// Client connections accepted.
    ConnectionsAccepted = "connections_accepted",
    /// Client connections refused because the limit of all connections or of one client was reached.
    ConnectionsRefused = "connections_refused",
    /// Connections of trusted proxies that began without a valid PROXY header.
    ProxyHeadersRefused = "proxy_headers_refused",
    /// Client connections that Foxy closed because the limit of connections or of memory was reached.
    ConnectionsShed = "connections_shed",
    /// Requests refused with 503 because memory was spent.
    MemoryRefused = "memory_refused",
    /// Client connections closed.
    ConnectionsClosed = "connections_closed",
    /// Bytes received from clients.
    BytesIn = "bytes_in",
    /// Bytes sent to clients.
    BytesOut = "bytes_out",
    /// Connections opened to origins.
    UpstreamNew = "upstream_new",
    /// Requests sent on a pooled connection to an origin.
    UpstreamReused = "upstream_reused",
    /// Requests sent again because the origin had closed a pooled connection.
    UpstreamRetried = "upstream_retried",
    /// Requests sent to another origin of the site because an origin failed.
    UpstreamElsewhere = "upstream_elsewhere",
    /// Failed attempts to connect to origins.
    UpstreamFailed = "upstream_failed",
    /// Bytes received from origins.
    OriginBytesIn = "origin_bytes_in",
    /// Bytes sent to origins.
    OriginBytesOut = "origin_bytes_out",
    /// Fills started.
    FillsStarted = "fills_started",
    /// Fills whose object was stored.
    FillsStored = "fills_stored",
    /// Redirects of a mirror's upstream to hosts that the mirror does not list.
    MirrorLeft = "mirror_redirects_refused",
    /// Artefacts of mirrors whose digest differed from the digest in the index.
    MirrorMismatch = "mirror_digest_mismatches",
    /// Requests for stored artefacts of mirrors for which the index now names another digest.
    MirrorReplaced = "mirror_artefacts_replaced",
    /// Artefacts of mirrors hashed after they were stored, because the index named their digest only then.
    MirrorCompared = "mirror_artefacts_compared",
    /// Versions, or files of versions, that mirrors hid in the documents that they fetched.
    MirrorHidden = "mirror_versions_hidden",
    /// Requests for package versions that a mirror refused because of its rules.
    MirrorBlocked = "mirror_versions_refused",
    /// Compressed forms of stored answers that Foxy began to make.
    Compressed = "compressed",
    /// Fills that failed or ended early.
    FillsFailed = "fills_failed",
    /// Requests that joined a running fill.
    Followers = "followers",
    /// Followers that fetched the object themselves (answer not for them, too slow, or failed fill).
    FollowersReleased = "followers_released",
    /// Disk reads started.
    DiskReads = "disk_reads",
    /// Requests that joined a disk read under way.
    DiskReadsShared = "disk_reads_shared",
    /// Disk reads that failed or did not return the expected data.
    DiskReadMisses = "disk_read_misses",
    /// Hits that were fetched from the origin instead, because too many reads waited for their disk.
    DiskReadsDeclined = "disk_reads_declined",
    /// TLS handshakes with clients that succeeded.
    TlsHandshakes = "tls_handshakes",
    /// TLS handshakes with clients that continued an earlier session.
    TlsResumed = "tls_resumed",
    /// Clients that requested a name for which there is no certificate.
    TlsFailedName = "tls_failed_name",
    /// Clients that speak neither TLS 1.2 nor TLS 1.3.
    TlsFailedVersion = "tls_failed_version",
    /// Clients without a required certificate, or with an invalid certificate.
    TlsFailedCertificate = "tls_failed_certificate",
    /// Clients that did not finish their handshake in time.
    TlsFailedTimeout = "tls_failed_timeout",
    /// Clients whose handshake failed for another reason.
    TlsFailedHandshake = "tls_failed_handshake",
    /// TLS handshakes with origins that succeeded.
    UpstreamHandshakes = "upstream_tls_handshakes",
    /// TLS handshakes with origins that continued an earlier session.
    UpstreamResumed = "upstream_tls_resumed",
    /// Names looked up at name servers (not found in the DNS cache).
    DnsLookups = "dns_lookups",
    /// Client connections closed because a request head or a PROXY header did not arrive in time.
    Timeouts = "timeouts",
    /// Answers aborted because the rest of the body was not available.
    Aborted = "aborted",
}

/// One worker's counters.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters {
    outcomes: [AtomicU64; Outcome::ALL.len()],
    classes: [AtomicU64; CLASSES.len()],
    bodies: [AtomicU64; Outcome::ALL.len()],
    events: [AtomicU64; Event::ALL.len()],
    hits: Histogram,
    misses: Histogram,
    /// Figures about origins.
    pub(crate) origin: OriginCounters,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            outcomes: Default::default(),
            classes: Default::default(),
            bodies: Default::default(),
            events: [const { AtomicU64::new(0) }; Event::ALL.len()],
            hits: Histogram::default(),
            misses: Histogram::default(),
            origin: OriginCounters::default(),
        }
    }
}

/// Adds `by` to a counter without a locked instruction. This is possible because only the owning worker
/// writes the counter.
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(by),
        Ordering::Relaxed,
    );
}

impl Counters {
    /// Adds `by` to the count of an event. Only the owning worker's thread may call this function.
    pub fn add(&self, event: Event, by: u64) {
        bump(&self.events[event as usize], by);
    }

    /// Counts a finished request. `status` is 0 if nothing was sent. `body` is the number of body bytes sent.
    /// Only the owning worker's thread may call it.
    pub fn finished(&self, outcome: Outcome, status: u16, body: u64, duration: Duration) {
        bump(&self.outcomes[outcome as usize], 1);
        bump(&self.classes[class(status)], 1);
        bump(&self.bodies[outcome as usize], body);
        match outcome {
            // The duration of a tunnel is not a latency of Foxy, because it depends only on the two ends of
            // the tunnel.
            Outcome::Tunnel => {}
            outcome if outcome.is_hit() => self.hits.note(duration),
            _ => self.misses.note(duration),
        }
    }
}

/// The sum over all workers at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Requests, by [`Outcome`] in the order of [`Outcome::ALL`].
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Requests by class of the status sent, in the order of [`CLASSES`].
    pub classes: [u64; CLASSES.len()],
    /// Body bytes sent, by [`Outcome`] in the order of [`Outcome::ALL`].
    pub bodies: [u64; Outcome::ALL.len()],
    /// Events in the order of [`Event::ALL`].
    pub events: [u64; Event::ALL.len()],
    /// Latency of hits.
    pub hits: Latency,
    /// Latency of all other requests, except tunnels.
    pub misses: Latency,
    /// Figures about origins.
    pub origin: OriginTotals,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            outcomes: Default::default(),
            classes: Default::default(),
            bodies: Default::default(),
            events: [0; Event::ALL.len()],
            hits: Latency::default(),
            misses: Latency::default(),
            origin: OriginTotals::default(),
        }
    }
}

impl Totals {
    /// Returns the number of requests with this outcome.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome as usize]
    }
    /// Returns the number of body bytes sent in answers with this outcome.
    #[must_use]
    pub fn body(&self, outcome: Outcome) -> u64 {
        self.bodies[outcome as usize]
    }
    /// Returns the count of an event.
    #[must_use]
    pub fn event(&self, event: Event) -> u64 {
        self.events[event as usize]
    }
    /// Returns the number of all requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Adds one worker's counters.
    pub fn add(&mut self, counters: &Counters) {
        add_all(&mut self.outcomes, &counters.outcomes);
        add_all(&mut self.classes, &counters.classes);
        add_all(&mut self.bodies, &counters.bodies);
        add_all(&mut self.events, &counters.events);
        self.hits.add(&counters.hits);
        self.misses.add(&counters.misses);
        self.origin.add(&counters.origin);
    }
}

fn add_all(to: &mut [u64], from: &[AtomicU64]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.wrapping_add(from.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_sum_over_workers() {
        let workers = [Counters::default(), Counters::default()];
        for (n, worker) in workers.iter().enumerate() {
            worker.add(Event::BytesIn, 10 + n as u64);
            worker.finished(Outcome::MemoryHit, 200, 7, Duration::from_micros(2));
            worker.finished(Outcome::Miss, 502, 3, Duration::from_micros(900));
            worker.origin.failed(Trouble::Closed);
            worker.origin.answered(404, Duration::from_micros(5));
        }
        let mut totals = Totals::default();
        for worker in &workers {
            totals.add(worker);
        }
        assert_eq!(totals.event(Event::BytesIn), 21);
        assert_eq!(totals.outcome(Outcome::MemoryHit), 2);
        assert_eq!((totals.hits.buckets[2], totals.hits.sum_us), (2, 4));
        assert_eq!(totals.misses.buckets[10], 2);
        assert_eq!(totals.requests(), 4);
        assert_eq!(totals.classes, [0, 0, 2, 0, 0, 2]);
        assert_eq!(totals.body(Outcome::MemoryHit), 14);
        assert_eq!(totals.origin.trouble(Trouble::Closed), 2);
        assert_eq!(totals.origin.classes, [0, 0, 0, 0, 2, 0]);
    }
}
