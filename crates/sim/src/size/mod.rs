//! Predicts the effect of more memory, more disk or another policy on an operator's own log.
//!
//! Method: SHARDS, a sample of the objects by hash (Waldspurger and others, FAST 2015), and miniature caches
//! over this sample (the same authors, USENIX ATC 2017). A request is sampled if the hash of its object is
//! below a threshold. A cache of S bytes is then imitated by a cache of S * R bytes, where R is the sampled
//! share. The threshold falls while the log is read, so that the sample stays bounded. Results are exact for
//! logs that fit into the sample completely. SHARDS' correction is applied. If the sample has fewer requests
//! than the share R of all requests, the sample lacks requests for the most popular objects. The difference
//! is then added to the hits. If the sample has more requests than this share, the difference is subtracted.

mod admission_filter;
mod advice;
mod candidate;
mod curves;
mod left_out;
mod plan;
mod sample;
mod store;
mod table;

pub use admission_filter::AdmissionFilter;
pub use candidate::Candidate;
pub use left_out::LeftOut;
pub use sample::Sampler;
pub use table::Share;

use curves::curves;
use serde::Serialize;

use crate::{
    figure::{Figure, Scale, Series},
    levels::{PolicyKind, ratio},
    report::readable,
};

/// Options of the prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeOptions {
    /// Candidates to compare.
    pub policies: Vec<Candidate>,
    /// Cache sizes in bytes; empty: powers of two up to the size of all requested objects.
    pub sizes: Vec<u64>,
    /// Maximum number of requests in the sample.
    pub sample: usize,
    /// Number of threads; 0 means 1.
    pub threads: usize,
    /// Memory budget of [`Candidate::Foxy`], bytes; 0: only its disk is simulated.
    pub memory: u64,
    /// Bytes of the URL and header lines of a stored response; logs do not contain this size.
    pub head: u64,
}

impl Default for SizeOptions {
    fn default() -> Self {
        let policies = [PolicyKind::Lru, PolicyKind::S3Fifo, PolicyKind::Fifo];
        Self {
            policies: policies.map(Candidate::Policy).into(),
            sizes: Vec::new(),
            sample: 1 << 20,
            threads: 1,
            memory: 0,
            head: 300,
        }
    }
}

/// Result of a cache of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Size of the cache in bytes.
    pub bytes: u64,
    /// Share of requests that the cache answers.
    pub hit_ratio: f64,
    /// Share of bytes that the cache answers.
    pub byte_hit_ratio: f64,
    /// Bytes written per requested byte, including rewritten objects.
    pub written: f64,
    /// Lower and upper bound of `hit_ratio` (see [`SizeReport`]).
    pub between: (f64, f64),
}

/// Results of a policy for all sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Name of the policy.
    pub policy: String,
    /// Results in ascending order of size.
    pub points: Vec<Point>,
}

/// Requested bytes per second. This is the load on the disk of a cache that answers all these requests from
/// disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Mean of the whole log, bytes per second; 0 if the log has no times.
    pub mean: f64,
    /// Mean of the busiest minute, bytes per second.
    pub busiest: f64,
}

/// Result of the prediction.
///
/// Uncertainty: the result is estimated from a sample of the objects. The bounds of each point are three
/// standard errors of the sample below and above the point. Foxy's bounds are wider. For the lower bound, one
/// in ten new objects is not stored, as on a disk that cannot keep up, and heads are twice as long as
/// expected. For the upper bound, heads are half as long as expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeReport {
    /// Number of requests that a cache may answer.
    pub requests: u64,
    /// Bytes of these requests.
    pub request_bytes: u64,
    /// The requests that a cache may not answer.
    pub left_out: LeftOut,
    /// Share of objects that were sampled; 1: the result is exact.
    pub sampled: f64,
    /// Number of requests in the sample.
    pub sample_requests: u64,
    /// Number of distinct objects (not counting versions separately), estimated from the sample.
    pub objects: u64,
    /// Bytes of these objects, estimated from the sample.
    pub object_bytes: u64,
    /// Share of requests that a cache of unlimited size answers.
    pub ceiling: f64,
    /// Share of bytes that a cache of unlimited size answers.
    pub byte_ceiling: f64,
    /// Requested bytes per second.
    pub load: Load,
    /// The smallest cache size for which the sample gives a result, in bytes.
    pub least: u64,
    /// Requested sizes below `least`; there are no results for them.
    pub too_small: Vec<u64>,
    /// A curve for each policy.
    pub curves: Vec<Curve>,
    /// Advice in a few sentences.
    pub advice: String,
}

/// Approximate number of bytes that a record takes besides the body and the head of the response.
const HEAD: u64 = 96;
/// Least size of a miniature cache, in objects of mean size. Results of smaller miniature
/// caches are meaningless.
const MINIATURE_LEAST: f64 = 50.0;

impl SizeReport {
    /// Evaluates a sample. `progress` is called after each finished miniature cache, with the number of
    /// finished caches and the number of all caches.
    #[must_use]
    pub fn new(
        sampler: &mut Sampler,
        options: &SizeOptions,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Self {
        sampler.settle();
        let sampler = &*sampler;
        let sample = sampler.sample();
        let endless = sample::endless(sample);
        let rate = sampler.rate();
        let objects = (endless.objects as f64 / rate) as u64;
        let object_bytes = (endless.object_bytes as f64 / rate) as u64;
        let mean = ratio(endless.object_bytes, endless.objects).max(1.0);
        // Foxy stores heads besides the bodies, and keeps some space free.
        let usual = || sizes_up_to((object_bytes + objects * (options.head + HEAD)) * 5 / 4);
        let all = if options.sizes.is_empty() {
            usual()
        } else {
            options.sizes.clone()
        };
        let least = (MINIATURE_LEAST * mean / rate).ceil() as u64;
        let (sizes, mut too_small): (Vec<u64>, _) = all.into_iter().partition(|s| *s >= least);
        if options.sizes.is_empty() {
            too_small.clear();
        }
        let totals = sampler.totals();
        let corrected = |hits: u64| sampler.corrected(hits);
        let mut report = Self {
            requests: totals.requests,
            request_bytes: totals.bytes,
            left_out: totals.left_out,
            sampled: rate,
            sample_requests: sample.len() as u64,
            objects,
            object_bytes,
            ceiling: corrected(endless.hits),
            byte_ceiling: ratio(endless.hit_bytes, endless.bytes),
            load: sampler.load(),
            least,
            too_small,
            curves: curves(sampler, options, &sizes, progress),
            advice: String::new(),
        };
        report.advice = advice::sentences(&report);
        report
    }

    /// A figure of the miss ratios of requests or of bytes over the cache size.
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
                let series = Series::new(c.policy.clone(), points.collect());
                if of_bytes {
                    return series;
                }
                let missed = |p: &Point| (100.0 - 100.0 * p.between.1, 100.0 - 100.0 * p.between.0);
                series.with_errors(c.points.iter().map(missed).collect())
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

/// Powers of two from 1 MiB to the first power that is large enough for all objects.
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

#[cfg(test)]
mod tests;
