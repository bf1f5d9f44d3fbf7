//! Report of a run, as a table and as JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::{Histogram, OriginCounters};

use super::cpu::CpuTime;
use super::stats::{FAULTS, Stats};
use super::timeline::{STEP_MS, Timeline};

/// The results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Measured time, seconds.
    pub seconds: f64,
    /// Number of correct answers.
    pub answers: u64,
    /// Correct answers per second.
    pub rate: f64,
    /// Body bytes per second.
    pub bytes_per_second: f64,
    /// Number of body bytes.
    pub bytes: u64,
    /// Number of correct answers whose bytes were all compared.
    pub checked: u64,
    /// Number of all faults.
    pub errors: u64,
    /// Number of faults of each kind, by the name of the kind. Kinds that did not happen are missing.
    pub faults: std::collections::BTreeMap<&'static str, u64>,
    /// Number of answers with wrong bytes, with wrong length, of another object, or of a superseded
    /// version.
    pub wrong: u64,
    /// Descriptions of the first faults.
    pub described: Vec<String>,
    /// Number of connections that were opened.
    pub connections: u64,
    /// Number of requests that were sent again on a new connection, because an idle connection had been
    /// closed.
    pub resent: u64,
    /// Response times of hits.
    pub hits: Times,
    /// Response times of misses.
    pub misses: Times,
    /// Response times of answers that do not state their source.
    pub unknown: Times,
    /// Share of hits among the correct answers, as the answers state it; `None` if no answer states it.
    pub hit_ratio: Option<f64>,
    /// Share of requests that did not reach the origin, according to the origin's counters.
    pub origin_hit_ratio: Option<f64>,
    /// The origin's counts during the run.
    pub origin: Option<OriginCounters>,
    /// CPU time of the watched process per correct answer.
    pub cpu_us: Option<CpuPerRequest>,
    /// Fraction of wall time in which the busiest generator thread used its CPU, 0 to 1.
    pub generator_busy: f64,
    /// True if the generator was below 90 % busy. Then the results show the server and not the generator.
    pub valid: bool,
    /// The answers over time. If a cache starts at the beginning of the run, they show how fast its hits
    /// return. `None` without [`LoadConfig::timeline`](super::LoadConfig::timeline).
    pub restart: Option<Restart>,
}

/// CPU time per answer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CpuPerRequest {
    /// CPU time in the program, microseconds.
    pub user: f64,
    /// CPU time in the kernel, microseconds.
    pub system: f64,
    /// Sum of user and system time, microseconds.
    pub total: f64,
    /// Number of cores that were busy on average.
    pub cores: f64,
}

/// Response times, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    /// Number of answers.
    pub count: u64,
    /// Mean time.
    pub mean: f64,
    /// Median time.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Longest time.
    pub max: f64,
}

/// The answers over time. The values are useful if a cache restarts at the start of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Restart {
    /// Seconds from the start of the run to the first correct answer.
    pub first_answer: Option<f64>,
    /// Seconds from the start of the run to the first hit.
    pub first_hit: Option<f64>,
    /// Seconds from the start of the run until the share of hits is 90 % of `later_level`.
    pub ninety: Option<f64>,
    /// Share of hits in the second half of the run.
    pub later_level: f64,
    /// Number of answers and hits in each step of 10 ms.
    pub steps: Vec<(u32, u32)>,
}

/// Measurements that the answers themselves do not contain.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtraMeasurements {
    pub(crate) wall: Duration,
    pub(crate) cpu: Option<CpuTime>,
    pub(crate) origin: Option<OriginCounters>,
    pub(crate) busy: f64,
}

impl Times {
    fn of(histogram: &Histogram) -> Self {
        let us = |time: Duration| (time.as_secs_f64() * 1e7).round() / 10.0;
        Self {
            count: histogram.count(),
            mean: us(histogram.mean()),
            p50: us(histogram.quantile(0.5)),
            p90: us(histogram.quantile(0.9)),
            p99: us(histogram.quantile(0.99)),
            p999: us(histogram.quantile(0.999)),
            max: us(histogram.max()),
        }
    }
}

impl Report {
    pub(crate) fn new(
        stats: &Stats,
        timeline: Option<&Timeline>,
        extra: &ExtraMeasurements,
    ) -> Self {
        let seconds = extra.wall.as_secs_f64().max(1e-9);
        let told = stats.hits.count() + stats.misses.count();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let named = FAULTS.into_iter().filter(|f| stats.faults_of(*f) > 0);
        Self {
            seconds,
            answers: stats.answers,
            rate: stats.answers as f64 / seconds,
            bytes_per_second: stats.bytes as f64 / seconds,
            bytes: stats.bytes,
            checked: stats.checked,
            errors: stats.errors(),
            faults: named.map(|f| (f.name(), stats.faults_of(f))).collect(),
            wrong: stats.wrong_answers(),
            described: stats.described.clone(),
            connections: stats.connections,
            resent: stats.resent,
            hits: Times::of(&stats.hits),
            misses: Times::of(&stats.misses),
            unknown: Times::of(&stats.unknown),
            hit_ratio: (told > 0).then(|| share(stats.hits.count(), told)),
            origin_hit_ratio: extra
                .origin
                .map(|origin| 1.0 - share(origin.requests, stats.answers + stats.errors())),
            origin: extra.origin,
            cpu_us: extra.cpu.map(|cpu| {
                let each = |time: Duration| time.as_secs_f64() * 1e6 / stats.answers.max(1) as f64;
                CpuPerRequest {
                    user: each(cpu.user),
                    system: each(cpu.system),
                    total: each(cpu.total()),
                    cores: cpu.total().as_secs_f64() / seconds,
                }
            }),
            generator_busy: extra.busy,
            valid: extra.busy < 0.9,
            restart: timeline.map(Restart::of),
        }
    }

    /// True if every answer was correct.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.errors == 0
    }
}

impl Restart {
    fn of(timeline: &Timeline) -> Self {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        let level = timeline.later_level();
        Self {
            first_answer: timeline.first_answer.map(seconds),
            first_hit: timeline.first_hit.map(seconds),
            ninety: timeline.reaches(0.9, level).map(|ms| ms as f64 / 1000.0),
            later_level: level,
            steps: timeline.steps.clone(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} answers in {:.2} s: {:.0} req/s, {:.1} MB/s; {} checked in full",
            self.answers,
            self.seconds,
            self.rate,
            self.bytes_per_second / 1e6,
            self.checked
        )?;
        writeln!(f, "errors {} (wrong answers {})", self.errors, self.wrong)?;
        for (name, count) in &self.faults {
            writeln!(f, "  {name:<12} {count}")?;
        }
        for text in &self.described {
            writeln!(f, "  - {text}")?;
        }
        writeln!(
            f,
            "{:<8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "ms", "count", "mean", "p50", "p90", "p99", "p99.9", "max"
        )?;
        for (name, t) in [
            ("hits", self.hits),
            ("misses", self.misses),
            ("unknown", self.unknown),
        ] {
            if t.count > 0 {
                write!(f, "{name:<8} {:>10}", t.count)?;
                for us in [t.mean, t.p50, t.p90, t.p99, t.p999, t.max] {
                    write!(f, " {:>10.3}", us / 1000.0)?;
                }
                writeln!(f)?;
            }
        }
        self.write_rest(f)
    }
}

impl Report {
    fn write_rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = |v: Option<f64>, digits: usize| {
            v.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"))
        };
        writeln!(
            f,
            "hit ratio {} (as answered), {} (at the origin)",
            optional(self.hit_ratio, 4),
            optional(self.origin_hit_ratio, 4)
        )?;
        if let Some(cpu) = &self.cpu_us {
            writeln!(
                f,
                "CPU per request {:.2} us (user {:.2}, system {:.2}), {:.2} cores",
                cpu.total, cpu.user, cpu.system, cpu.cores
            )?;
        }
        if let Some(r) = &self.restart {
            writeln!(
                f,
                "first answer after {} s, first hit {} s, 90 % of hits {} s (steps of {STEP_MS} ms); \
                 later share of hits {:.4}",
                optional(r.first_answer, 3),
                optional(r.first_hit, 3),
                optional(r.ninety, 2),
                r.later_level
            )?;
        }
        write!(
            f,
            "generator {:.0} % busy{}; {} connections, {} requests resent",
            self.generator_busy * 100.0,
            if self.valid {
                ""
            } else {
                ": too much, the results are not the server's"
            },
            self.connections,
            self.resent
        )
    }
}
