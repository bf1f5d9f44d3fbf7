//! Specifications of requests: one small value per request, made from any stream of trace records.

use std::sync::Arc;

use foxy_trace::{Flags, Request};
use parking_lot::Mutex;

/// The specification of a request: the object, its version, and its expected length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestSpec {
    /// Number of the origin server, from 1.
    pub server: u32,
    /// Number of the object at that server.
    pub id: u64,
    /// Length of the body in bytes.
    pub size: u64,
    /// Requested version.
    pub version: u32,
    /// True if the answer must not be stored.
    pub no_store: bool,
}

/// A stream of requests.
pub type Source = Box<dyn Iterator<Item = RequestSpec> + Send>;

/// A source from which several threads take requests, one batch at a time.
#[derive(Clone)]
pub(crate) struct SharedSource {
    source: Arc<Mutex<Source>>,
    batch: std::collections::VecDeque<RequestSpec>,
}

impl std::fmt::Debug for SharedSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedSource")
            .field("batch", &self.batch.len())
            .finish_non_exhaustive()
    }
}

/// Number of requests that a thread takes in one batch. A batch is small, so that requests are sent nearly in
/// the order of the source.
const BATCH: usize = 16;

impl SharedSource {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source: Arc::new(Mutex::new(source)),
            batch: std::collections::VecDeque::new(),
        }
    }

    pub(crate) fn next(&mut self) -> Option<RequestSpec> {
        if self.batch.is_empty() {
            let mut source = self.source.lock();
            self.batch.extend(source.by_ref().take(BATCH));
        }
        self.batch.pop_front()
    }
}

/// Turns trace records into specifications of requests. It maps the servers of the trace to `servers`
/// numbers, fills in missing sizes and reduces sizes that are too large. A changed size counts as a new
/// version.
#[derive(Debug)]
pub struct FromTrace<I> {
    requests: I,
    servers: u32,
    most: u64,
    known: std::collections::HashMap<u64, (u64, u32)>,
}

impl<I: Iterator<Item = Request>> FromTrace<I> {
    /// If `servers` is 0, there are 2^20 numbers for servers, so that nearly every server of the trace gets a
    /// separate number. Sizes above `most` are reduced to `most`.
    pub fn new(requests: I, servers: u32, most: u64) -> Self {
        let servers = if servers == 0 { 1 << 20 } else { servers };
        Self {
            requests,
            servers,
            most,
            known: std::collections::HashMap::new(),
        }
    }

    fn spec(&mut self, request: &Request) -> RequestSpec {
        let size = request.size.min(self.most);
        let known = self
            .known
            .entry(request.object)
            .or_insert((size, request.version));
        if size == 0 && request.size == 0 {
            // The log contains no size, for example because of a 304 answer. So the object keeps its earlier
            // size.
        } else if request.version > known.1 {
            *known = (size, request.version);
        } else if size != known.0 {
            *known = (size, known.1 + u32::from(known.0 != 0));
        }
        RequestSpec {
            server: request.server % self.servers + 1,
            id: request.object,
            size: known.0,
            version: known.1,
            no_store: request.flags.has(Flags::UNCACHEABLE),
        }
    }
}

impl<I: Iterator<Item = Request>> Iterator for FromTrace<I> {
    type Item = RequestSpec;

    fn next(&mut self) -> Option<RequestSpec> {
        let request = self.requests.next()?;
        Some(self.spec(&request))
    }
}

/// Endless random draws with a Zipf distribution from a fixed set of objects. A table is prepared, so that
/// each draw is fast.
#[derive(Debug)]
pub struct Popular {
    objects: Vec<RequestSpec>,
    /// Walker's alias table. Each entry contains the probability with which the entry itself is used, and the
    /// number of the entry that is used otherwise.
    alias: Vec<(u32, u32)>,
    rng: foxy_base::Rng,
}

impl Popular {
    /// Returns random draws from `objects`, which must not be empty. The first object is drawn most often.
    /// `alpha` is the exponent.
    #[must_use]
    pub fn new(objects: Vec<RequestSpec>, alpha: f64, rng: foxy_base::Rng) -> Self {
        let weights: Vec<f64> = (1..=objects.len())
            .map(|rank| (rank as f64).powf(-alpha))
            .collect();
        Self {
            alias: alias_table(&weights),
            objects,
            rng,
        }
    }
}

/// Computes the alias table. Probabilities have units of 2^-32. See A. J. Walker, "An efficient method for
/// generating discrete random variables with general distributions", ACM TOMS 3(3), 1977.
fn alias_table(weights: &[f64]) -> Vec<(u32, u32)> {
    let scale = weights.len() as f64 / weights.iter().sum::<f64>();
    let mut left: Vec<f64> = weights.iter().map(|w| w * scale).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..left.len()).partition(|at| left[*at] < 1.0);
    let mut table = vec![(u32::MAX, 0); weights.len()];
    while let (Some(low), Some(high)) = (small.pop(), large.last().copied()) {
        table[low] = ((left[low] * f64::from(u32::MAX)) as u32, high as u32);
        left[high] -= 1.0 - left[low];
        if left[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    for at in small.into_iter().chain(large) {
        table[at] = (u32::MAX, at as u32);
    }
    table
}

impl Iterator for Popular {
    type Item = RequestSpec;

    fn next(&mut self) -> Option<RequestSpec> {
        let at = self.rng.below(self.objects.len() as u64) as usize;
        let (stay, other) = *self.alias.get(at)?;
        let coin = (self.rng.next_u64() >> 32) as u32;
        let at = if coin <= stay { at } else { other as usize };
        self.objects.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_sizes_are_versions() {
        let request = |size, version| Request {
            object: 9,
            size,
            version,
            ..Request::default()
        };
        let stream = [
            request(0, 0),
            request(5, 0),
            request(0, 0),
            request(7, 0),
            request(7, 4),
            request(100, 4),
        ];
        let got: Vec<_> = FromTrace::new(stream.into_iter(), 3, 50)
            .map(|w| (w.server, w.size, w.version))
            .collect();
        assert_eq!(
            got,
            [
                (1, 0, 0),
                (1, 5, 0),
                (1, 5, 0),
                (1, 7, 1),
                (1, 7, 4),
                (1, 50, 5)
            ]
        );
    }

    #[test]
    fn popular_follows_zipf() {
        let objects = (0..50)
            .map(|id| RequestSpec {
                id,
                ..RequestSpec::default()
            })
            .collect();
        let draws = Popular::new(objects, 0.8, foxy_base::Rng::new(3));
        let mut counts = [0f64; 50];
        for spec in draws.take(400_000) {
            counts[spec.id as usize] += 1.0;
        }
        let total: f64 = (1..=50).map(|k| f64::from(k).powf(-0.8)).sum();
        for rank in [0usize, 3, 20, 49] {
            let want = 400_000.0 * (rank as f64 + 1.0).powf(-0.8) / total;
            assert!(
                (counts[rank] - want).abs() < 6.0 * want.sqrt(),
                "{rank}: {}",
                counts[rank]
            );
        }
    }

    #[test]
    fn threads_share_a_source() {
        let source: Source = Box::new((0..100).map(|id| RequestSpec {
            id,
            ..RequestSpec::default()
        }));
        let mut a = SharedSource::new(source);
        let mut b = a.clone();
        let mut seen: Vec<u64> = Vec::new();
        while let Some(spec) = a.next().or_else(|| b.next()) {
            seen.push(spec.id);
            seen.extend(b.next().map(|w| w.id));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
    }
}
