//! Miniature caches over the sample: one for each candidate and size.

use foxy_policy::Evicted;

use super::{
    Candidate, Curve, Gate, Point, SizeOptions,
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

/// Groups of objects that the sampling error is estimated from.
const GROUPS: usize = 16;

/// Answers of a miniature cache.
#[derive(Default)]
struct Answered {
    hit_bytes: u64,
    bytes: u64,
    /// Bytes that went to the disk.
    written: u64,
    /// Hits and requests of each group.
    groups: [(u64, u64); GROUPS],
}

impl Answered {
    fn count(&mut self, request: &Sampled, hit: bool) {
        let size = request.sent();
        self.bytes += size;
        self.hit_bytes += u64::from(hit) * size;
        let group = &mut self.groups[request.group(GROUPS)];
        *group = (group.0 + u64::from(hit), group.1 + 1);
    }

    fn hits(&self) -> u64 {
        self.groups.iter().map(|g| g.0).sum()
    }

    /// Standard error of the hit ratio as an estimate of that of all objects: how far the groups
    /// are from each other, as much as they are not all there is.
    fn error(&self, rate: f64) -> f64 {
        let all: u64 = self.groups.iter().map(|g| g.1).sum();
        if all == 0 {
            return 0.0;
        }
        let mean = self.hits() as f64 / all as f64;
        let off = |g: &(u64, u64)| (g.0 as f64 - mean * g.1 as f64).powi(2);
        let sum: f64 = self.groups.iter().map(off).sum();
        let spread = sum * GROUPS as f64 / (GROUPS - 1) as f64;
        spread.sqrt() / all as f64 * (1.0 - rate).max(0.0).sqrt()
    }
}

/// One candidate at one size.
fn point(sampler: &Sampler, options: &SizeOptions, candidate: Candidate, size: u64) -> Point {
    let ratio_of = |answered: &Answered| sampler.corrected(answered.hits());
    let (answered, between) = match candidate {
        Candidate::Policy(policy) => (policy_alone(sampler, policy, size), None),
        Candidate::Foxy(gate) => {
            let foxy = |heads, refused| store(sampler, options, (size, gate), heads, refused);
            let (worse, better) = (foxy(2.0, REFUSED), foxy(0.5, 0));
            (foxy(1.0, 0), Some((ratio_of(&worse), ratio_of(&better))))
        }
    };
    let hit_ratio = ratio_of(&answered);
    let error = 2.0 * answered.error(sampler.rate());
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

/// Of a busy disk: one of this many new objects is not stored.
const REFUSED: u64 = 10;

fn policy_alone(sampler: &Sampler, policy: PolicyKind, size: u64) -> Answered {
    let capacity = (size as f64 * sampler.rate()) as u64;
    let mut cache = policy.build::<(u32, u32)>(capacity.max(1));
    let mut evicted: Vec<Evicted<u64, (u32, u32)>> = Vec::new();
    let mut answered = Answered::default();
    for request in sampler.sample() {
        let stamp = (request.size, request.version);
        let hit = cache.get(&request.object) == Some(&stamp);
        answered.count(request, hit);
        if !hit {
            let size = u64::from(request.size);
            let inserted = cache.insert(request.object, stamp, size, &mut evicted);
            answered.written += u64::from(inserted.stored) * size;
            evicted.clear();
        }
    }
    answered
}

/// Foxy of this size, with heads `heads` times as long as assumed; one of `refused` new objects
/// is not stored.
fn store(
    sampler: &Sampler,
    options: &SizeOptions,
    (size, gate): (u64, Gate),
    heads: f64,
    refused: u64,
) -> Answered {
    let plan = Plan::of(size, options.memory, (options.head as f64 * heads) as u64);
    let mut cache = StoreCache::new(plan.scaled(sampler.rate()), gate, refused);
    let mut answered = Answered::default();
    for request in sampler.sample() {
        let hit = cache.request(request);
        answered.count(request, hit);
    }
    answered.written = cache.written();
    answered
}

/// Results in the order of the jobs.
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
