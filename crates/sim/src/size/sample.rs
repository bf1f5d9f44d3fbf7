//! The sample of a log: all requests for the objects whose hash is below a threshold.

use foxy_base::hash64;
use foxy_trace::{Flags, Request};
use hashbrown::HashMap;

use super::left_out::{LeftOut, is_bodiless};

/// A sampled request. Sizes above 4 GiB count as 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampled {
    pub(crate) object: u64,
    pub(crate) size: u32,
    pub(crate) version: u32,
    hash: u32,
    /// Bytes that were sent to the client.
    sent: u32,
    /// True if the bytes sent are not the whole object: no bytes (HEAD, or status 304), or a part.
    partly: bool,
}

impl Sampled {
    /// Number of the group that the object belongs to, if objects are divided into `of` groups. The number
    /// does not depend on the other objects of the sample.
    pub(crate) const fn group(&self, of: usize) -> usize {
        (self.hash.wrapping_mul(0x9e37_79b1) >> 16) as usize % of
    }

    #[cfg(test)]
    pub(crate) const fn of(object: u64, size: u32, version: u32) -> Self {
        Self {
            object,
            size,
            version,
            hash: 0,
            sent: size,
            partly: false,
        }
    }

    /// Bytes that were sent to the client.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent as u64
    }
}

/// Sums over the whole log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) left_out: LeftOut,
}

/// Reads a log request by request and keeps a sample of it in bounded memory.
#[derive(Debug)]
pub struct Sampler {
    most: usize,
    /// Seed of the hashes that select objects.
    seed: u64,
    /// Objects with a hash below this threshold are sampled; 2^32: all objects.
    threshold: u64,
    sample: Vec<Sampled>,
    totals: Totals,
    minutes: Minutes,
}

/// Requested bytes by minute. Requests may be up to [`DISORDER`] minutes out of order.
#[derive(Debug, Default)]
struct Minutes {
    first: Option<i64>,
    last: i64,
    /// Requested bytes in each minute from `from` on.
    open: std::collections::VecDeque<u64>,
    from: i64,
    busiest: u64,
}

/// Maximum number of minutes by which requests of a log may be out of order.
const DISORDER: usize = 64;

impl Minutes {
    fn add(&mut self, time_ms: i64, bytes: u64) {
        let minute = time_ms.div_euclid(60_000);
        if self.first.is_none() {
            (self.first, self.from, self.last) = (Some(minute), minute, minute);
        }
        self.last = self.last.max(minute);
        let at = usize::try_from(minute - self.from).unwrap_or(0);
        if at > 2 * DISORDER {
            // There is a gap in the log: the minutes before it no longer change.
            self.open.clear();
            self.from = minute;
            return self.add_at(0, bytes);
        }
        self.add_at(at, bytes);
        while self.open.len() > DISORDER {
            self.open.pop_front();
            self.from += 1;
        }
    }

    fn add_at(&mut self, at: usize, bytes: u64) {
        if self.open.len() <= at {
            self.open.resize(at + 1, 0);
        }
        self.open[at] += bytes;
        self.busiest = self.busiest.max(self.open[at]);
    }
}

/// Seed of the sampling hashes. It differs from the seeds of the ids in traces.
const SEED: u64 = 0x51ed_5a3e;
/// 2^32: with this threshold all objects are sampled.
const ALL: u64 = 1 << 32;

impl Sampler {
    /// Creates an empty sample of at most `most` requests (at least 1,000).
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self::seeded(most, SEED)
    }

    /// Creates an empty sample as [`Self::new`] does, but with the seed `seed`. Another seed selects other
    /// objects.
    pub(crate) fn seeded(most: usize, seed: u64) -> Self {
        Self {
            most: most.max(1_000),
            seed,
            threshold: ALL,
            sample: Vec::new(),
            totals: Totals::default(),
            minutes: Minutes::default(),
        }
    }

    /// Adds one request of the log.
    pub fn add(&mut self, request: &Request) {
        if self.totals.left_out.count(request) {
            return;
        }
        let none = is_bodiless(request);
        let part = request.status == 206 || request.flags.has(Flags::ABORTED);
        let sent = if none { 0 } else { request.size };
        self.totals.requests += 1;
        self.totals.bytes += sent;
        self.minutes.add(request.time_ms, sent);
        let hash = (hash64(self.seed, &request.object.to_le_bytes()) >> 32) as u32;
        if u64::from(hash) >= self.threshold {
            return;
        }
        let size = u32::try_from(request.size).unwrap_or(u32::MAX);
        let (object, version) = (request.object, request.version);
        self.sample.push(Sampled {
            object,
            size,
            version,
            hash,
            sent: u32::try_from(sent).unwrap_or(u32::MAX),
            partly: none || part,
        });
        while self.sample.len() > self.most && self.threshold > 1 {
            self.threshold = self.threshold * 3 / 4;
            let threshold = self.threshold;
            self.sample.retain(|s| u64::from(s.hash) < threshold);
        }
    }

    /// Call this function at the end of the log. It converts every answer that is not the complete object
    /// into a request for the complete object, with the size of the object's last complete answer. If there
    /// was no complete answer before, the sent part counts as the complete object, and an answer without any
    /// byte is left out.
    pub(super) fn settle(&mut self) {
        let before = self.sample.len();
        let mut known: HashMap<u64, (u32, u32)> = HashMap::new();
        self.sample.retain_mut(|s| {
            if !s.partly {
                known.insert(s.object, (s.size, s.version));
                return true;
            }
            let last = known.get(&s.object).copied();
            (s.size, s.version) = last.unwrap_or((s.sent, s.version));
            last.is_some() || s.sent > 0
        });
        let left = ((before - self.sample.len()) as f64 / self.rate()) as u64;
        let left = left.min(self.totals.requests);
        self.totals.requests -= left;
        self.totals.left_out.size += left;
    }

    /// Share of the objects that are sampled.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / ALL as f64
    }

    /// Returns those of the size limits 1, 4 and 16 MiB that are worth trying. A limit is worth trying if
    /// larger objects make up more than a tenth of the requested bytes.
    pub(crate) fn limits(&self) -> Vec<u64> {
        const TRIED: [u64; 3] = [1 << 20, 4 << 20, 16 << 20];
        let all: u64 = self.sample.iter().map(Sampled::sent).sum();
        let above = |limit: &u64| {
            let large = self.sample.iter().filter(|s| u64::from(s.size) > *limit);
            large.map(Sampled::sent).sum::<u64>()
        };
        TRIED
            .into_iter()
            .filter(|limit| above(limit) > all / 10)
            .collect()
    }

    pub(crate) fn sample(&self) -> &[Sampled] {
        &self.sample
    }

    /// Requested bytes per second; 0 if the log has no times.
    pub(crate) fn load(&self) -> super::Load {
        let minutes = &self.minutes;
        let span = minutes.first.map_or(0, |first| minutes.last - first + 1);
        if span <= 1 && minutes.last == 0 {
            return super::Load::default();
        }
        super::Load {
            mean: self.totals.bytes as f64 / (60 * span) as f64,
            busiest: minutes.busiest as f64 / 60.0,
        }
    }

    pub(crate) const fn totals(&self) -> Totals {
        self.totals
    }

    /// Expected number of requests in the sample: the number of all requests, times the share of sampled
    /// objects.
    pub(crate) fn expected(&self) -> f64 {
        self.totals.requests as f64 * self.rate()
    }

    /// The hit ratio of all requests, estimated from the number of hits in the sample. If the sample has
    /// fewer or more requests than expected, the most popular objects are the cause. So missing requests are
    /// added to the hits, and surplus requests are subtracted from the hits.
    pub(crate) fn corrected(&self, hits: u64) -> f64 {
        let expected = self.expected();
        if expected <= 0.0 {
            return 0.0;
        }
        let missing = expected - self.sample.len() as f64;
        ((hits as f64 + missing) / expected).clamp(0.0, 1.0)
    }
}

/// Results of a cache of unlimited size for the sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Endless {
    pub(crate) objects: u64,
    pub(crate) object_bytes: u64,
    pub(crate) hits: u64,
    pub(crate) hit_bytes: u64,
    pub(crate) bytes: u64,
}

pub(crate) fn endless(sample: &[Sampled]) -> Endless {
    let mut last = HashMap::new();
    let mut sums = Endless::default();
    for s in sample {
        let size = u64::from(s.size);
        sums.bytes += s.sent();
        match last.insert(s.object, (s.size, s.version)) {
            Some(before) if before == (s.size, s.version) => {
                sums.hits += 1;
                sums.hit_bytes += s.sent();
            }
            Some((before, _)) => sums.object_bytes += size.saturating_sub(u64::from(before)),
            None => {
                sums.objects += 1;
                sums.object_bytes += size;
            }
        }
    }
    sums
}
