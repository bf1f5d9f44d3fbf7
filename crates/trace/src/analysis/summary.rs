//! Runs all analyses of `trace info` in one pass, with one table as the result.

use std::fmt;

use crate::Request;

use super::{
    Infinite, InfiniteReport, Pages, PagesReport, SizeCounts, StackDistances, ZipfFit, zipf_fit,
};

/// Feeds requests to all analyses.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    infinite: Infinite,
    sizes: SizeCounts,
    stack: StackDistances,
    pages: Pages,
    clients: std::collections::HashSet<u32>,
    servers: std::collections::HashSet<u32>,
    times: Option<(i64, i64)>,
}

/// Results of all analyses.
#[derive(Clone, Debug)]
pub struct SummaryReport {
    /// Results of the infinite cache.
    pub infinite: InfiniteReport,
    /// Sizes of the requests whose size is known.
    pub request_sizes: SizeCounts,
    /// Sizes of the objects whose size is known.
    pub object_sizes: SizeCounts,
    /// Zipf exponents of the popularity.
    pub zipf: ZipfFit,
    /// Stack distances of repeats.
    pub stack: StackDistances,
    /// Locality sets of pages, if the log has clients.
    pub pages: Option<PagesReport>,
    /// Number of clients; 0 if the log has none.
    pub clients: usize,
    /// Number of servers; 0 if the log has none.
    pub servers: usize,
    /// Time from the first to the last request, ms.
    pub span_ms: i64,
}

impl Summary {
    /// Counts one request.
    pub fn add(&mut self, request: &Request) {
        let size = self.infinite.add(request);
        if size > 0 {
            self.sizes.add(size);
        }
        self.stack.add(request.object);
        if request.client != 0 {
            self.clients.insert(request.client);
            self.pages.add(request, size);
        }
        if request.server != 0 {
            self.servers.insert(request.server);
        }
        let time = request.time_ms;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }

    /// Returns all results.
    #[must_use]
    pub fn report(self) -> SummaryReport {
        let mut object_sizes = SizeCounts::default();
        for size in self.infinite.sizes().filter(|size| *size > 0) {
            object_sizes.add(size);
        }
        let has_clients = !self.clients.is_empty();
        SummaryReport {
            infinite: self.infinite.report(),
            zipf: zipf_fit(self.infinite.references()),
            request_sizes: self.sizes,
            object_sizes,
            stack: self.stack,
            pages: has_clients.then(|| self.pages.report()),
            clients: self.clients.len(),
            servers: self.servers.len(),
            span_ms: self.times.map_or(0, |(first, last)| last - first),
        }
    }
}

impl fmt::Display for SummaryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = &self.infinite;
        writeln!(
            f,
            "requests {}, objects {}, asked for once {}",
            i.requests, i.objects, i.one_timers
        )?;
        writeln!(
            f,
            "clients {}, servers {}, time span {:.0} s",
            known(self.clients),
            known(self.servers),
            self.span_ms as f64 / 1000.0
        )?;
        writeln!(
            f,
            "bytes {}, of distinct objects {}",
            i.bytes, i.distinct_bytes
        )?;
        writeln!(
            f,
            "infinite cache: hit ratio {:.3} (same size {:.3}), byte hit ratio {:.3}",
            i.hit_ratio(),
            i.same_size_ratio(),
            i.byte_hit_ratio()
        )?;
        for (name, s) in [
            ("request", &self.request_sizes),
            ("object", &self.object_sizes),
        ] {
            writeln!(
                f,
                "size per {name}: mean {:.0}, median {}, p90 {}, p99 {}, max {}; under 8 KiB {:.3}, \
                 over 64 KiB {:.3}",
                s.mean(),
                s.quantile(0.5),
                s.quantile(0.9),
                s.quantile(0.99),
                s.max(),
                s.below(8192),
                1.0 - s.below(65_537)
            )?;
        }
        writeln!(
            f,
            "Zipf slope {:.2} (all), {:.2} (asked twice or more), {:.2} (log-spaced)",
            self.zipf.all, self.zipf.repeated, self.zipf.spaced
        )?;
        self.write_locality(f)
    }
}

impl SummaryReport {
    fn write_locality(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = &self.stack;
        write!(
            f,
            "stack distance of repeats: median {}, p75 {}, p90 {}; under 100 {:.2}",
            s.quantile(0.5),
            s.quantile(0.75),
            s.quantile(0.9),
            s.below(100)
        )?;
        if let Some(p) = &self.pages {
            write!(
                f,
                "\npages {}: objects mean {:.2}, p85 {}, p95 {}; asked again {:.2}; references to \
                 sets under 20 {:.2}, under 40 {:.2}; sets within 32/64/128 KiB {:.2}/{:.2}/{:.2}",
                p.sets,
                p.mean,
                p.p85,
                p.p95,
                p.again,
                p.under_20,
                p.under_40,
                p.kib_32,
                p.kib_64,
                p.kib_128
            )?;
        }
        Ok(())
    }
}
/// A number of clients or servers as text; a note if the log has none.
fn known(number: usize) -> String {
    if number == 0 {
        "not in the log".into()
    } else {
        number.to_string()
    }
}
