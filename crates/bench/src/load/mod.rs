//! The load generator. It requests objects of the origin, directly or through a proxy. It checks the
//! answers and measures their times.

mod answer;
pub mod cpu;
mod engine;
mod exchange;
mod pace;
mod record;
mod report;
mod request_spec;
mod shared;
mod stats;
mod timeline;
mod version_tracker;
mod wire;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use foxy_base::{Clock, MonoTime};
use parking_lot::Mutex;

use crate::{OriginCounters, parse_counters};
use engine::{Engine, Finished};
use record::Recorder;
use report::ExtraMeasurements;
use request_spec::SharedSource;
use shared::Shared;
use version_tracker::VersionTracker;

pub use answer::Served;
pub use pace::Pace;
pub use record::{Known, Outcome, read_record};
pub use report::{CpuPerRequest, Report, Restart, Times};
pub use request_spec::{FromTrace, Popular, RequestSpec, Source};
pub use stats::{FAULTS, Fault, Stats};
pub use timeline::{STEP_MS, Timeline};
pub use wire::{Mode, Style, server_address, write_url};

/// Options of a load.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Address that receives the requests: a proxy, or an origin.
    pub target: SocketAddr,
    /// Form of the requests: how they name the origin server and the version, and what is added to their URLs
    /// and fields.
    pub style: Style,
    /// Number of connections of all threads together.
    pub connections: usize,
    /// Number of generator threads.
    pub threads: usize,
    /// The rule that determines when requests are sent.
    pub pace: Pace,
    /// Share of answers whose bytes are all compared, 0 to 1. For the other answers, only head and length are
    /// checked.
    pub check: f64,
    /// Greatest number of measured requests.
    pub requests: u64,
    /// Greatest duration of the measurement.
    pub duration: Option<Duration>,
    /// Number of requests before the measurement.
    pub warm_up_requests: u64,
    /// Duration of the load before the measurement.
    pub warm_up: Duration,
    /// After the measured time, the load continues until all requests of the measured time are answered,
    /// but not longer than this time. Later answers are not counted.
    pub cool_down: Duration,
    /// True if the generator polls for answers and never sleeps. Then no server uses CPU time to wake the
    /// generator.
    pub poll: bool,
    /// Longest permitted time for one answer.
    pub timeout: Duration,
    /// Seed of all random values.
    pub seed: u64,
    /// Process whose CPU time is measured, with its descendants.
    pub pid: Option<u32>,
    /// Origin whose counters are read before and after the measurement.
    pub origin: Option<SocketAddr>,
    /// File that gets a line for each answer.
    pub record: Option<PathBuf>,
    /// Objects that were stored before the run, each with its version. With [`Style::same_url`], an answer
    /// must not contain an older version of its object.
    pub known: Vec<RequestSpec>,
    /// True if the report also contains the number of answers and hits over time.
    pub timeline: bool,
    /// True if the load waits while the target refuses connections, and does not count this as faults.
    pub patient: bool,
    /// True if a progress line is shown on standard error.
    pub progress: bool,
}

impl LoadConfig {
    /// Options of a closed loop with 64 connections, without limits. All answers are checked.
    #[must_use]
    pub const fn new(target: SocketAddr, style: Style) -> Self {
        Self {
            target,
            style,
            connections: 64,
            threads: 1,
            pace: Pace::Closed,
            check: 1.0,
            poll: false,
            requests: u64::MAX,
            duration: None,
            warm_up_requests: 0,
            warm_up: Duration::ZERO,
            cool_down: Duration::ZERO,
            timeout: Duration::from_secs(30),
            seed: 1,
            pid: None,
            origin: None,
            record: None,
            known: Vec::new(),
            timeline: false,
            patient: false,
            progress: false,
        }
    }
}

/// Runs a load until the source is empty or a limit is reached. Blocks until then.
///
/// # Errors
/// Returned if the system refuses threads or sockets, or if the record file cannot be written. Faults of the
/// target are not errors here; the report contains them.
pub fn run(config: &LoadConfig, source: Source, clock: &Arc<dyn Clock>) -> io::Result<Report> {
    let start = clock.mono().nanos();
    let measuring = config.warm_up.is_zero();
    let mut shared = Shared::new(start, config.warm_up_requests, config.requests, measuring);
    if config.style.same_url {
        let mut tracker = VersionTracker::default();
        for spec in &config.known {
            tracker.know(spec);
        }
        shared.tracker = Some(Mutex::new(tracker));
    }
    if let Some(path) = &config.record {
        shared.record = Some(Mutex::new(Recorder::create(path, clock.clone())?));
    }
    let source = SharedSource::new(source);
    // Without a warm-up, the measurement begins with the first request. So the counters must be read before
    // the threads start.
    let first = (measuring && config.warm_up_requests == 0).then(|| Snapshot::take(config, clock));
    let (finished, extra) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..config.threads.max(1))
            .map(|thread| {
                let (source, clock, shared) = (source.clone(), clock.clone(), &shared);
                scope.spawn(move || run_thread(config, shared, source, &clock, thread))
            })
            .collect();
        let over = || threads.iter().all(|t| t.is_finished());
        let extra = supervise(config, &shared, clock, first, over);
        shared.stop();
        let mut all = Finished::default();
        let mut busiest = 0.0f64;
        for thread in threads {
            let (finished, cpu) = thread
                .join()
                .map_err(|_| io::Error::other("a generator thread panicked"))??;
            all.stats.merge(&finished.stats);
            all.timeline.merge(&finished.timeline);
            busiest = busiest.max(cpu);
        }
        Ok::<_, io::Error>((
            all,
            ExtraMeasurements {
                busy: busiest,
                ..extra
            },
        ))
    })?;
    if let Some(record) = shared.record {
        record.into_inner().finish()?;
    }
    let timeline = config.timeline.then_some(&finished.timeline);
    Ok(Report::new(&finished.stats, timeline, &extra))
}

/// Runs one generator thread to its end. Also returns the fraction of wall time in which the thread was busy.
/// The time of polls that found nothing does not count as busy.
fn run_thread(
    config: &LoadConfig,
    shared: &Shared,
    source: SharedSource,
    clock: &Arc<dyn Clock>,
    thread: usize,
) -> io::Result<(Finished, f64)> {
    let start = clock.mono();
    let cpu = cpu::of_this_thread();
    let finished = Engine::new(config, shared, source, clock.clone(), thread)?.run()?;
    let wall = clock.mono().since(start).as_secs_f64().max(1e-9);
    let used = cpu::of_this_thread().saturating_sub(cpu);
    let worked = used.saturating_sub(finished.empty_polls);
    Ok((finished, worked.as_secs_f64() / wall))
}

/// Counters that are read at the beginning and at the end of the measurement.
#[derive(Clone, Copy, Debug)]
struct Snapshot {
    time: MonoTime,
    cpu: Option<cpu::CpuTime>,
    origin: Option<OriginCounters>,
}

impl Snapshot {
    fn take(config: &LoadConfig, clock: &Arc<dyn Clock>) -> Self {
        Self {
            time: clock.mono(),
            cpu: config.pid.and_then(cpu::of_process_tree),
            // If the origin does not answer, only its counts are missing from the report.
            origin: config
                .origin
                .and_then(|address| read_counters(address).ok()),
        }
    }
}

/// Waits for the end of warm-up and measurement. If there is no warm-up, `first` is the snapshot at the
/// start of the measurement.
fn supervise(
    config: &LoadConfig,
    shared: &Shared,
    clock: &Arc<dyn Clock>,
    mut first: Option<Snapshot>,
    over: impl Fn() -> bool,
) -> ExtraMeasurements {
    let bar = progress_bar(config);
    let begun = clock.mono();
    loop {
        let now = clock.mono();
        if first.is_none() && now.since(begun) >= config.warm_up {
            shared.measure();
            if shared.warm() || over() {
                first = Some(Snapshot::take(config, clock));
            }
        }
        let time_up = first.is_some_and(|first| {
            config
                .duration
                .is_some_and(|limit| now.since(first.time) >= limit)
        });
        if over() || time_up {
            break;
        }
        show_progress(&bar, shared, now.since(begun));
        std::thread::sleep(Duration::from_millis(5));
    }
    bar.finish_and_clear();
    let last = Snapshot::take(config, clock);
    cool_down(config, shared, &over);
    let first = first.unwrap_or(last);
    ExtraMeasurements {
        wall: last.time.since(first.time),
        cpu: last
            .cpu
            .zip(first.cpu)
            .map(|(after, before)| after.since(before)),
        origin: last
            .origin
            .zip(first.origin)
            .map(|(after, before)| after.minus(&before)),
        busy: 0.0,
    }
}

/// Waits until the requests of the measured time are answered. The load continues during this time.
fn cool_down(config: &LoadConfig, shared: &Shared, over: impl Fn() -> bool) {
    const STEP: Duration = Duration::from_millis(5);
    shared.cool_down();
    let mut left = config.cool_down;
    while !left.is_zero() && !shared.all_ended() && !over() {
        std::thread::sleep(STEP.min(left));
        left = left.saturating_sub(STEP);
    }
}

/// Reads the counters of an origin.
///
/// # Errors
/// Returned if the origin cannot be reached, or if its answer has no counters.
pub fn read_counters(origin: SocketAddr) -> io::Result<OriginCounters> {
    let mut stream = TcpStream::connect_timeout(&origin, Duration::from_secs(20))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(b"GET /__counters HTTP/1.0\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let body = answer
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .map_or(0, |at| at + 4);
    Ok(parse_counters(&answer[body..])?)
}

fn progress_bar(config: &LoadConfig) -> indicatif::ProgressBar {
    if config.progress {
        indicatif::ProgressBar::new_spinner()
    } else {
        indicatif::ProgressBar::hidden()
    }
}

fn show_progress(bar: &indicatif::ProgressBar, shared: &Shared, since: Duration) {
    if bar.is_hidden() {
        return;
    }
    let (answered, failed) = (shared.answered.load(Relaxed), shared.failed.load(Relaxed));
    let seconds = since.as_secs_f64();
    let rate = answered as f64 / seconds.max(1e-3);
    bar.set_message(format!(
        "{seconds:.1} s: {answered} answers, {rate:.0}/s, {failed} faults"
    ));
    bar.tick();
}

#[cfg(test)]
mod tests;
