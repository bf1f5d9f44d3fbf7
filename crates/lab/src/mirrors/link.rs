//! Measures the time to get packages from a registry behind a slow link. The packages are requested from the
//! registry itself, from a first mirror, and from a second mirror. Each mirror is used twice: first it has
//! stored nothing (cold), and then it has stored everything (warm). In the second mirror, documents stay
//! fresh for only one second. So its warm run must request the documents from the registry again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::client::{Source, replay};
use super::fixture::{Server, Setup};
use super::registry::{Package, Registry};
use super::relay::{DELAY, RATE, relay};
use super::report::Report;
use super::{Mirrors, npm};

const CONNECTIONS: usize = 8;
/// Goal for a warm run: it takes at most this fraction of the time without a mirror.
const SHARE: f64 = 0.1;
/// A wait after which the documents of the second mirror are no longer fresh.
const SHORT: Duration = Duration::from_millis(1200);

pub(super) async fn measure(options: &Mirrors, folder: &Path) -> Result<Report, String> {
    let mut report = Report::new("relay");
    let count = if options.quick { 20 } else { 200 };
    let packages = Package::drawn(options.seed, count).into_iter();
    let packages: Arc<Vec<_>> = Arc::new(packages.map(Arc::new).collect());
    let registry = Arc::new(Registry::of(&packages));
    let server = Server::start(Arc::clone(&registry))?;
    let to = server.address();
    let slow = Server::with(move |listener| relay(listener, to))?;
    let mirrors = npm(&slow.url(), "npm", "1h") + &npm(&slow.url(), "brief", "1s");
    let setup = Setup::of_packages(options.program(), mirrors);
    let foxy = setup.start(folder)?;
    report.line(format!(
        "{count} packages, {CONNECTIONS} connections, {} ms each way, {} Mbit/s",
        DELAY.as_millis(),
        RATE / 1_000_000
    ));
    let mirror = |prefix| Source::mirror(&foxy, prefix, slow.url());
    let direct = Source {
        to: slow.address(),
        ..mirror("")
    };
    let runs = [
        ("without a mirror", direct, false),
        ("cold", mirror("/npm"), false),
        ("warm", mirror("/npm"), true),
        ("cold, documents fresh for 1 s", mirror("/brief"), false),
        ("warm, documents asked for again", mirror("/brief"), true),
    ];
    let mut without = Duration::ZERO;
    for (name, from, is_warm) in runs {
        if is_warm {
            sleep(SHORT).await;
        }
        let took = run(
            (name, is_warm),
            (&from, &packages),
            (&registry, without),
            &mut report,
        )
        .await;
        if from.prefix.is_empty() {
            without = took;
        }
    }
    Ok(report)
}

/// Requests all packages once, and returns the time that this takes. The report also contains this time as a
/// fraction of `without`, the time without a mirror.
async fn run(
    (name, is_warm): (&str, bool),
    (from, packages): (&Source, &Arc<Vec<Arc<Package>>>),
    (registry, without): (&Registry, Duration),
    report: &mut Report,
) -> Duration {
    registry.take();
    let replayed = replay(from, packages, (CONNECTIONS, 1)).await;
    let (seen, took) = (registry.take(), replayed.took);
    let share = match without.is_zero() {
        true => 1.0,
        false => took.as_secs_f64() / without.as_secs_f64(),
    };
    let target = match is_warm {
        true if share > SHARE => format!(" (target {SHARE}: missed)"),
        true => format!(" (target {SHARE})"),
        false => String::new(),
    };
    report.line(format!(
        "{name}: {:.2} s, {share:.3} of that without{target}; from the registry: {} documents, {} artefacts, \
         {:.1} MB of them",
        took.as_secs_f64(),
        seen.documents,
        seen.artefacts,
        seen.bytes as f64 / 1e6,
    ));
    report.expect(!is_warm || seen.bytes == 0, || {
        format!(
            "{name}: {} bytes of artefacts were fetched again",
            seen.bytes
        )
    });
    for wrong in replayed.wrong {
        report.fault(format!("{name}: {wrong}"));
    }
    took
}
