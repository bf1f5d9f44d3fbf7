//! What more memory, more disk or another policy would do to an operator's own log.
//!
//! Method: spatially hashed sampling (SHARDS: Waldspurger and others, FAST 2015; as miniature
//! caches: the same, USENIX ATC 2017). A request is taken if the hash of its object is below a
//! threshold; a cache of S bytes is then imitated by one of S * R bytes, R being the sampled
//! share. The threshold falls while the log is read, so that the sample stays bounded and logs
//! that fit are exact. SHARDS' correction is applied: where fewer or more requests than R of all
//! were sampled, the difference is the most popular objects', hence hits.

mod advice;
mod sample;

pub use sample::Sampler;

use foxy_policy::Evicted;
use serde::Serialize;

use crate::{
    figure::{Figure, Scale, Series},
    levels::{PolicyKind, ratio},
    report::{Align, Table},
};

/// What to find out.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeOptions {
    /// Policies to compare.
    pub policies: Vec<PolicyKind>,
    /// Cache sizes in bytes; empty: powers of two up to all that the log asks for.
    pub sizes: Vec<u64>,
    /// Most requests that are kept as the sample.
    pub sample: usize,
    /// Threads; 0: one.
    pub threads: usize,
}

impl Default for SizeOptions {
    fn default() -> Self {
        Self {
            policies: vec![PolicyKind::Lru, PolicyKind::S3Fifo, PolicyKind::Fifo],
            sizes: Vec::new(),
            sample: 1 << 20,
            threads: 1,
        }
    }
}

/// A cache of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Its bytes.
    pub bytes: u64,
    /// Share of requests that it answers.
    pub hit_ratio: f64,
    /// Share of bytes that it answers.
    pub byte_hit_ratio: f64,
}

/// A policy at all sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Its name.
    pub policy: String,
    /// By size, rising.
    pub points: Vec<Point>,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeReport {
    /// Requests that a cache may answer.
    pub requests: u64,
    /// Their bytes.
    pub request_bytes: u64,
    /// Requests that it may not.
    pub bypassed: u64,
    /// Share of objects that were sampled; 1: the answer is exact.
    pub sampled: f64,
    /// Requests in the sample.
    pub sample_requests: u64,
    /// Distinct objects (versions apart), estimated by the sample.
    pub objects: u64,
    /// Their bytes, likewise.
    pub object_bytes: u64,
    /// What an endless cache would answer.
    pub ceiling: f64,
    /// The same in bytes.
    pub byte_ceiling: f64,
    /// A curve for each policy.
    pub curves: Vec<Curve>,
    /// One sentence.
    pub advice: String,
}

/// Fewest mean objects that a miniature cache has room for; smaller ones say nothing.
const MINIATURE_LEAST: f64 = 50.0;

impl SizeReport {
    /// Evaluates a sample; `progress` hears of each finished cache (done, of all).
    #[must_use]
    pub fn new(
        sampler: &Sampler,
        options: &SizeOptions,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Self {
        let sample = sampler.sample();
        let endless = sample::endless(sample);
        let rate = sampler.rate();
        let objects = (endless.objects as f64 / rate) as u64;
        let object_bytes = (endless.object_bytes as f64 / rate) as u64;
        let mean = ratio(endless.object_bytes, endless.objects).max(1.0);
        let usual = || sizes_up_to(object_bytes);
        let all = if options.sizes.is_empty() {
            usual()
        } else {
            options.sizes.clone()
        };
        let sizes: Vec<u64> = all
            .into_iter()
            .filter(|s| *s as f64 * rate >= MINIATURE_LEAST * mean)
            .collect();
        let totals = sampler.totals();
        let corrected = |hits: u64| sampler.corrected(hits);
        let mut report = Self {
            requests: totals.requests,
            request_bytes: totals.bytes,
            bypassed: totals.bypassed,
            sampled: rate,
            sample_requests: sample.len() as u64,
            objects,
            object_bytes,
            ceiling: corrected(endless.hits),
            byte_ceiling: ratio(endless.hit_bytes, endless.bytes),
            curves: curves(sampler, options, &sizes, progress),
            advice: String::new(),
        };
        report.advice = advice::sentence(&report);
        report
    }

    /// One row for each size, columns for each policy.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut names = vec![("size".to_owned(), Align::Right)];
        for curve in &self.curves {
            names.push((format!("{} hits %", curve.policy), Align::Right));
            names.push((format!("{} bytes %", curve.policy), Align::Right));
        }
        let columns: Vec<_> = names
            .iter()
            .map(|(name, align)| (name.as_str(), *align))
            .collect();
        let mut table = Table::new(&columns);
        let first = self
            .curves
            .first()
            .map(|c| c.points.as_slice())
            .unwrap_or_default();
        for (row, point) in first.iter().enumerate() {
            let mut cells = vec![readable(point.bytes)];
            for p in self.curves.iter().filter_map(|curve| curve.points.get(row)) {
                cells.push(format!("{:.2}", 100.0 * p.hit_ratio));
                cells.push(format!("{:.2}", 100.0 * p.byte_hit_ratio));
            }
            table.row(cells);
        }
        table
    }

    /// Miss ratios over size: of requests, or of bytes.
    #[must_use]
    pub fn figure(&self, of_bytes: bool) -> Figure {
        let (what, ceiling) = if of_bytes {
            ("bytes", self.byte_ceiling)
        } else {
            ("requests", self.ceiling)
        };
        let miss = |p: &Point| {
            100.0
                * (1.0
                    - if of_bytes {
                        p.byte_hit_ratio
                    } else {
                        p.hit_ratio
                    })
        };
        let mut series: Vec<_> = self
            .curves
            .iter()
            .map(|c| {
                let points = c.points.iter().map(|p| (p.bytes as f64, miss(p)));
                Series::new(c.policy.clone(), points.collect())
            })
            .collect();
        if let Some([first, .., last]) = self.curves.first().map(|c| c.points.as_slice()) {
            let floor = 100.0 * (1.0 - ceiling);
            let line = vec![(first.bytes as f64, floor), (last.bytes as f64, floor)];
            series.push(Series::new("a cache without end", line).as_reference());
        }
        Figure {
            title: format!("Missed {what} by cache size"),
            note: format!(
                "{} requests, {} objects, {} in all{}",
                self.requests,
                self.objects,
                readable(self.object_bytes),
                if self.sampled < 1.0 {
                    format!("; {:.2} % sampled", 100.0 * self.sampled)
                } else {
                    String::new()
                }
            ),
            x: "cache size".into(),
            y: format!("missed {what}, %"),
            x_scale: Scale::Log,
            x_bytes: true,
            series,
            ..Figure::default()
        }
    }
}

/// `1.5 GiB`.
pub(crate) fn readable(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 99.95 && value.fract() > 0.04);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// Powers of two from 1 MiB to the first that holds everything.
fn sizes_up_to(object_bytes: u64) -> Vec<u64> {
    let mut sizes = vec![1u64 << 20];
    while sizes
        .last()
        .is_some_and(|s| *s < object_bytes && *s < 1 << 60)
    {
        sizes.push(sizes[sizes.len() - 1] * 2);
    }
    sizes
}

fn curves(
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
        point(sampler, *policy, *size)
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

/// One miniature cache over the sample.
fn point(sampler: &Sampler, policy: PolicyKind, size: u64) -> Point {
    let capacity = (size as f64 * sampler.rate()) as u64;
    let mut cache = policy.build::<(u32, u32)>(capacity.max(1));
    let mut evicted: Vec<Evicted<u64, (u32, u32)>> = Vec::new();
    let (mut hits, mut hit_bytes, mut bytes) = (0, 0, 0);
    for request in sampler.sample() {
        let stamp = (request.size, request.version);
        bytes += u64::from(request.size);
        if cache.get(&request.object) == Some(&stamp) {
            hits += 1;
            hit_bytes += u64::from(request.size);
        } else {
            let _ = cache.insert(request.object, stamp, u64::from(request.size), &mut evicted);
            evicted.clear();
        }
    }
    Point {
        bytes: size,
        hit_ratio: sampler.corrected(hits),
        byte_hit_ratio: ratio(hit_bytes, bytes),
    }
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

#[cfg(test)]
mod tests;
