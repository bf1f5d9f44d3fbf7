//! Reloads and broken files while a load and downloads run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use foxy_base::{Clock, Rng, SystemClock};
use foxy_bench::load::{LoadConfig, Mode, Pace, Report, RequestSpec, Style, run as run_load};
use foxy_bench::{Origin, OriginConfig};
use tokio::time::{Instant, sleep};

use super::downloads::{Downloads, Long};
use super::fixture::{Fixture, TIMEOUT, listener, target};
use super::settings::{Ports, Settings};
use super::{Findings, Reloads, broken};
use crate::kit::{ClientRequest, free_port};

/// Number of objects that are stored before the first reload.
const STORED: u64 = 500;
const SIZE: u64 = 4096;
/// One request in `NEW` requests is for an object that was not requested before.
const NEW: u64 = 100;
/// The lowest permitted share of hits. Without new objects, every request would be a hit. So the share of new
/// objects is subtracted. A small allowance is also subtracted, because the share of new objects among the
/// last requests depends on the order of these requests.
const HITS: f64 = 1.0 - 1.0 / NEW as f64 - 0.001;

/// Runs reloads and broken files while the load and the downloads run.
pub(super) async fn run(
    wanted: &Reloads,
    program: &Path,
    folder: &Path,
    findings: &mut Findings,
) -> Result<(), String> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let pages = Origin::start(OriginConfig::default(), &clock)
        .map_err(|error| format!("no origin: {error}"))?;
    let (socket, long_port) = listener().await?;
    let long = Long::start(socket);
    let ports = Ports {
        admin: free_port()?,
        main: free_port()?,
        forward: free_port()?,
        sides: [free_port()?, free_port()?, free_port()?],
        pages: pages.address().port(),
        long: long_port,
    };
    let store = folder.join("store").display().to_string();
    let mut settings = Settings::new(ports, store);
    let listeners = (ports.main, ports.admin);
    let fixture = Fixture::start(program, folder, &settings.text(), listeners)?;
    warm(ports).await?;
    let load = Load::start(wanted, ports, &clock);
    let mut targets = vec![target(ports.forward, &format!("127.0.0.1:{long_port}"))];
    targets[0].scheme = Some("http");
    targets.extend(ports.sides.map(|port| target(port, "side.test")));
    let downloads = Downloads::start(u64::from(wanted.downloads), &targets);
    downloads.under_way().await?;
    let mut rng = Rng::new(wanted.seed).fork("reloads");
    let times = reloads(
        wanted,
        (&fixture, ports),
        (&mut settings, &mut rng),
        findings,
    )
    .await?;
    broken::run((&fixture, &settings), (wanted.broken, &mut rng), findings).await?;
    long.finish();
    let cut = downloads.end().await;
    findings.result(format!(
        "downloads       {} of {} whole after the last reload",
        u64::from(wanted.downloads) - cut.len() as u64,
        wanted.downloads
    ));
    for fault in cut.into_iter().take(5) {
        findings.fault(format!("a download was cut: {fault}"));
    }
    let report = load.end()?;
    judge(&report, &times, findings);
    Ok(())
}

/// Requests each stored object once.
async fn warm(ports: Ports) -> Result<(), String> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let config = LoadConfig {
        connections: 8,
        ..LoadConfig::new(target(ports.main, "").proxy, style())
    };
    let source = Box::new((1..=STORED).map(object));
    let report = tokio::task::spawn_blocking(move || run_load(&config, source, &clock)).await;
    let report = report.map_err(|error| error.to_string())?;
    let report = report.map_err(|error| format!("no load: {error}"))?;
    match report.is_clean() {
        true => Ok(()),
        false => Err(format!("requests fail without any reload: {report}")),
    }
}

fn style() -> Style {
    let mode = Mode::Reverse {
        host: "main.test".to_owned(),
    };
    Style {
        mode,
        same_url: false,
        extra: String::new(),
        knobs: String::new(),
    }
}

fn object(id: u64) -> RequestSpec {
    RequestSpec {
        server: 1,
        id,
        size: SIZE,
        ..RequestSpec::default()
    }
}

/// A load: clients that send requests until it is stopped, at a steady rate or as fast as possible.
struct Load {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Report>>,
}

impl Load {
    fn start(wanted: &Reloads, ports: Ports, clock: &Arc<dyn Clock>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let config = LoadConfig {
            connections: 64,
            pace: match wanted.rate {
                0 => Pace::Closed,
                rate => Pace::Open(f64::from(rate)),
            },
            seed: wanted.seed,
            ..LoadConfig::new(target(ports.main, "").proxy, style())
        };
        let mut rng = Rng::new(wanted.seed).fork("load");
        let (over, unseen) = (Arc::clone(&stop), AtomicU64::new(STORED));
        let source = Box::new((1u64..).map_while(move |number| {
            let id = match number % NEW {
                0 => unseen.fetch_add(1, Ordering::Relaxed) + 1,
                _ => rng.below(STORED) + 1,
            };
            (!over.load(Ordering::Relaxed)).then(|| object(id))
        }));
        let clock = Arc::clone(clock);
        Self {
            stop,
            thread: std::thread::spawn(move || run_load(&config, source, &clock)),
        }
    }

    fn end(self) -> Result<Report, String> {
        self.stop.store(true, Ordering::Relaxed);
        let report = self.thread.join();
        let report = report.map_err(|_| "the load ended badly".to_owned())?;
        report.map_err(|error| format!("no load: {error}"))
    }
}

/// Reloads one configuration after the other. Returns the durations of the reloads, sorted.
async fn reloads(
    wanted: &Reloads,
    (fixture, ports): (&Fixture, Ports),
    (settings, rng): (&mut Settings, &mut Rng),
    findings: &mut Findings,
) -> Result<Vec<Duration>, String> {
    let mut times = Vec::new();
    for number in 0..wanted.reloads {
        settings.change(rng);
        let begun = Instant::now();
        let words = fixture.apply(&settings.text()).await?;
        times.push(begun.elapsed());
        findings.expect(words.starts_with("reloaded: "), || words.clone());
        findings.expect(
            !words.contains("nothing") && !words.contains("restart"),
            || format!("reload {number}: {words}"),
        );
        // Every request that begins after the answer to the reload is handled with the new settings.
        let request = ClientRequest::get(format!("/o/{}?s={SIZE}&h=1", 1 + number % 9));
        let target = target(ports.main, "main.test");
        let answer = match request.send(&target, TIMEOUT, None).await {
            Ok(answer) => answer,
            Err(error) => {
                findings.fault(format!("reload {number}: a request got no answer: {error}"));
                continue;
            }
        };
        let mark = settings.mark.to_string();
        findings.expect(answer.head.get("X-Mark") == Some(&mark), || {
            format!(
                "reload {number}: an answer with older settings: {:?}",
                answer.head
            )
        });
        sleep(Duration::from_millis(wanted.pause)).await;
    }
    times.sort_unstable();
    Ok(times)
}

fn judge(report: &Report, times: &[Duration], findings: &mut Findings) {
    let at = |share: f64| {
        let last = times.len().saturating_sub(1);
        let time = times.get((last as f64 * share).round() as usize);
        time.map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    findings.result(format!(
        "reloads         {}, ms: p50 {:.1}  p99 {:.1}  max {:.1}",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    ));
    let ratio = report.hit_ratio.unwrap_or(0.0);
    findings.result(format!(
        "load            {} requests, {:.0} per second, {} failed, {} sent again; hit ratio {ratio:.4} \
         (without reloads {:.4}); ms of hits: p99 {:.2}  max {:.2}",
        report.answers + report.errors,
        report.rate,
        report.errors,
        report.resent,
        1.0 - 1.0 / NEW as f64,
        report.hits.p99 / 1e3,
        report.hits.max / 1e3
    ));
    findings.expect(report.is_clean(), || {
        format!(
            "requests failed: {:?} {:?}",
            report.faults, report.described
        )
    });
    findings.expect(report.resent == 0, || {
        format!(
            "{} connections of waiting clients were closed",
            report.resent
        )
    });
    findings.expect(ratio >= HITS, || format!("hits were lost: {ratio:.4}"));
}
