//! Miniature caches, one for each candidate and size. A miniature cache represents a larger cache: it gets
//! the sampled requests, and its size is the sampled share of the larger cache's size.

use foxy_policy::Evicted;

use super::{
    AdmissionFilter, Candidate, Curve, Point, SizeOptions,
    plan::Plan,
    sample::{Sampled, Sampler},
    store::StoreCache,
};
use crate::levels::{PolicyKind, ratio};

pub(super) fn curves(
    sampler: &Sampler,
    options: &SizeOptions,
    sizes: &[u64],
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Vec<Curve> {
    let jobs: Vec<_> = options
        .policies
        .iter()
        .flat_map(|policy| sizes.iter().map(move |size| (*policy, *size)))
        .collect();
    let points = in_parallel(options.threads, &jobs, progress, |(policy, size)| {
        point(sampler, options, *policy, *size)
    });
    let names = options.policies.iter().map(ToString::to_string);
    let mut rest = points.as_slice();
    names
        .map(|policy| {
            let (mine, others) = rest.split_at(sizes.len());
            rest = others;
            Curve {
                policy,
                points: mine.to_vec(),
            }
        })
        .collect()
}

/// Number of groups of objects from which the sampling error is estimated.
const GROUPS: usize = 8;
/// The error bound is this number of standard errors. Student's t for 95 % with seven degrees of freedom is
/// 2.4. This factor is larger: sizes of objects have heavy tails, so that whole samples differ more than the
/// groups of one sample do. With 3.0 the exact answer is within the error bounds for 90 to 98 % of 200
/// samples (a test checks this).
const REACH: f64 = 3.0;

/// Sums over the requests that a miniature cache answered.
#[derive(Default)]
struct Answered {
    hits: u64,
    hit_bytes: u64,
    bytes: u64,
    /// Bytes that were written to the disk.
    written: u64,
}

impl Answered {
    fn count(&mut self, request: &Sampled, hit: bool) {
        let size = request.sent();
        self.bytes += size;
        self.hit_bytes += u64::from(hit) * size;
        self.hits += u64::from(hit);
    }
}

/// Error bound of the corrected hit ratio (see [`Sampler::corrected`]). For about 95 % of samples, the
/// difference between the estimated ratio and the ratio of all objects is smaller than this bound.
///
/// The sample is divided into [`GROUPS`] smaller samples, each with its own miniature cache. The spread of
/// their misses shows how strongly the random choice of objects changes the hit ratio. The choice changes the
/// misses in the sample and the space that the sampled objects need. (A popular object has few misses. So its
/// presence in the sample changes the corrected ratio only a little.) The variance is multiplied by the share
/// of objects that were not sampled.
fn error(sampler: &Sampler, policy: PolicyKind, size: u64) -> f64 {
    let rate = sampler.rate();
    let expected = sampler.expected() / GROUPS as f64;
    if rate >= 1.0 || expected <= 0.0 {
        return 0.0;
    }
    let capacity = (size as f64 * rate / GROUPS as f64) as u64;
    let mut caches: Vec<_> = (0..GROUPS)
        .map(|_| Miniature::new(policy, capacity, size))
        .collect();
    let mut misses = [0u64; GROUPS];
    for request in sampler.sample() {
        let group = request.group(GROUPS);
        misses[group] += u64::from(!caches[group].request(request));
    }
    let answers = misses.map(|misses| misses as f64 / expected);
    let mean = answers.iter().sum::<f64>() / GROUPS as f64;
    let spread: f64 = answers.iter().map(|a| (a - mean).powi(2)).sum();
    let variance = spread / (GROUPS * (GROUPS - 1)) as f64 * (1.0 - rate);
    REACH * variance.sqrt()
}

/// Evaluates one candidate at one size.
fn point(sampler: &Sampler, options: &SizeOptions, candidate: Candidate, size: u64) -> Point {
    let ratio_of = |answered: &Answered| sampler.corrected(answered.hits);
    let (answered, between) = match candidate {
        Candidate::Policy(policy) => (policy_alone(sampler, policy, size), None),
        Candidate::Foxy(filter) => {
            let foxy = |heads, refused| store(sampler, options, (size, filter), heads, refused);
            let (worse, better) = (foxy(2.0, REFUSED), foxy(0.5, 0));
            (foxy(1.0, 0), Some((ratio_of(&worse), ratio_of(&better))))
        }
    };
    let hit_ratio = ratio_of(&answered);
    // LRU's error is used for Foxy too, because the choice of objects affects Foxy like any cache of recent
    // objects. Foxy's own error cannot be computed: a miniature of Foxy has too few segments for eight
    // smaller caches.
    let error = match candidate {
        Candidate::Policy(policy) => error(sampler, policy, size),
        Candidate::Foxy(_) => error(sampler, PolicyKind::Lru, size),
    };
    let (worse, better) = between.unwrap_or((hit_ratio, hit_ratio));
    let between = (worse.min(hit_ratio), better.max(hit_ratio));
    Point {
        bytes: size,
        hit_ratio,
        byte_hit_ratio: ratio(answered.hit_bytes, answered.bytes),
        written: ratio(answered.written, answered.bytes),
        between: ((between.0 - error).max(0.0), (between.1 + error).min(1.0)),
    }
}

/// For the lower bound, one of every `REFUSED` new objects is not stored, as on a busy disk.
const REFUSED: u64 = 10;

/// A small cache under a policy, which represents a cache of `whole` bytes.
struct Miniature {
    cache: crate::levels::AnyCache<(u32, u32)>,
    evicted: Vec<Evicted<u64, (u32, u32)>>,
    written: u64,
}

impl Miniature {
    fn new(policy: PolicyKind, capacity: u64, whole: u64) -> Self {
        Self {
            cache: policy.build_part(capacity.max(1), whole),
            evicted: Vec::new(),
            written: 0,
        }
    }

    /// Handles a request; true if it was answered from the cache.
    fn request(&mut self, request: &Sampled) -> bool {
        let stamp = (request.size, request.version);
        let hit = self.cache.get(&request.object) == Some(&stamp);
        if !hit {
            let size = u64::from(request.size);
            let object = request.object;
            let inserted = self.cache.insert(object, stamp, size, &mut self.evicted);
            self.written += u64::from(inserted.stored) * size;
            self.evicted.clear();
        }
        hit
    }
}

fn policy_alone(sampler: &Sampler, policy: PolicyKind, size: u64) -> Answered {
    let capacity = (size as f64 * sampler.rate()) as u64;
    let mut cache = Miniature::new(policy, capacity, size);
    let mut answered = Answered::default();
    for request in sampler.sample() {
        let hit = cache.request(request);
        answered.count(request, hit);
    }
    answered.written = cache.written;
    answered
}

/// Simulates Foxy of this size. Heads are `heads` times as long as assumed, and one in `refused` new objects
/// is not stored.
fn store(
    sampler: &Sampler,
    options: &SizeOptions,
    (size, filter): (u64, AdmissionFilter),
    heads: f64,
    refused: u64,
) -> Answered {
    let plan = Plan::of(size, options.memory, (options.head as f64 * heads) as u64);
    let mut cache = StoreCache::new(plan.scaled(sampler.rate()), filter, refused);
    let mut answered = Answered::default();
    for request in sampler.sample() {
        let hit = cache.request(request);
        answered.count(request, hit);
    }
    answered.written = cache.written();
    answered
}

/// Runs jobs in parallel. Results are in the order of the jobs.
fn in_parallel<J: Sync, R: Send + Clone>(
    threads: usize,
    jobs: &[J],
    progress: &(dyn Fn(usize, usize) + Sync),
    work: impl Fn(&J) -> R + Sync,
) -> Vec<R> {
    use std::sync::{Mutex, PoisonError, atomic};
    let next = atomic::AtomicUsize::new(0);
    let results = Mutex::new(vec![None; jobs.len()]);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, atomic::Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { return };
                    let result = work(job);
                    let mut all = results.lock().unwrap_or_else(PoisonError::into_inner);
                    all[number] = Some(result);
                    progress(all.iter().flatten().count(), jobs.len());
                }
            });
        }
    });
    let all = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.into_iter().flatten().collect()
}
