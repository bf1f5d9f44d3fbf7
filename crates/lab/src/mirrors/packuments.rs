//! Many clients request long packuments (npm's index documents) at the same time. Each client requests a
//! different document.
//!
//! Foxy's memory is filled with other objects first. So all later growth of resident memory belongs to the
//! documents.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;
use foxy_bench::Histogram;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::client::{Client, Source};
use super::document::{Document, Substitutions};
use super::fixture::{Baseline, Server, Setup};
use super::registry::{Package, Registry};
use super::report::Report;
use super::{Mirrors, npm};
use crate::kit::cpu_time;

/// Number of clients, and of documents.
const COUNT: usize = 20;
/// In each version of a package, this number of bytes belongs to fields that an installation does not need.
const ABOUT: usize = 2800;
/// Greatest permitted growth of resident memory during the load, in MiB.
const MEMORY: f64 = 64.0;
/// Number of objects of 1 MiB that Foxy stores before the load.
const OTHERS: usize = 320;
/// Time until fetched objects are on disk.
const SETTLE: Duration = Duration::from_secs(2);
/// Goal for the 99th percentile of the times of the requests.
const LIMIT: Duration = Duration::from_secs(1);

pub(super) async fn measure(options: &Mirrors, folder: &Path) -> Result<Report, String> {
    let mut report = Report::new("packuments");
    let length = if options.quick { 8 << 20 } else { 32 << 20 };
    let document = Arc::new(document(options.seed, length));
    let package = |number: usize| {
        let name = format!("long-{number:02}");
        Arc::new(Package::new(name, Arc::clone(&document), 1, 0))
    };
    let packages: Vec<_> = (0..COUNT).map(package).collect();
    let others = others();
    let registry = Arc::new(Registry::of(&[&packages[..], &others[..]].concat()));
    let server = Server::start(Arc::clone(&registry))?;
    let setup = Setup::of_packages(options.program(), npm(&server.url(), "npm", "1h"));
    let foxy = setup.start(folder)?;
    let from = Source::mirror(&foxy, "/npm", server.url());
    let mut client = Client::new(from.to);
    for other in &others {
        let right = client.artefact(&from, other).await?;
        report.expect(right, || format!("{} has other bytes", other.name));
    }
    sleep(SETTLE).await;
    for run in ["cold", "warm"] {
        let baseline = Baseline::of(foxy.pid());
        let cpu = cpu_time(foxy.pid()).unwrap_or_default();
        registry.take();
        let (times, took) = at_once(&from, &packages, &mut report).await;
        let seen = registry.take();
        let at = |share| times.quantile(share);
        let above = baseline.above();
        let cpu = cpu_time(foxy.pid()).unwrap_or_default().saturating_sub(cpu);
        report.line(format!(
            "{run}: {COUNT} of {} MiB, p50 {:.2} s, p99 {:.2} s (limit {} s{}), all {:.2} s, {:.2} s of processors, {} from the registry; \
             resident {:.0} MiB before, +{above:.1} MiB (limit {MEMORY} MiB)",
            length >> 20,
            at(0.5).as_secs_f64(),
            at(0.99).as_secs_f64(),
            LIMIT.as_secs(),
            if at(0.99) > LIMIT { ": missed" } else { "" },
            took.as_secs_f64(),
            cpu.as_secs_f64(),
            seen.documents,
            baseline.resident(),
        ));
        report.expect(above <= MEMORY, || format!("{run}: +{above:.1} MiB"));
        sleep(SETTLE).await;
    }
    Ok(report)
}

/// Packages whose artefacts together are larger than Foxy's memory.
fn others() -> Vec<Arc<Package>> {
    let other = |number| {
        let name = format!("other-{number}");
        Arc::new(Package::new(name, Arc::default(), 1, 1 << 20))
    };
    (0..OTHERS).map(other).collect()
}

/// A packument with at least this length.
fn document(seed: u64, length: usize) -> Document {
    let mut rng = Rng::new(seed);
    let substitutions = Substitutions {
        name: "long-00",
        artefacts: "http://127.0.0.1:12345",
        registry: "http://127.0.0.1:12345",
    };
    // The number of versions follows from the length of one version.
    let one = Document::packument(&mut rng, 100, ABOUT, "").length(&substitutions) / 100;
    Document::packument(&mut rng, length / one + 1, ABOUT, "")
}

/// Requests all documents at the same time. Returns the times of the correct answers, and the time until the
/// last request has ended.
async fn at_once(
    from: &Source,
    packages: &[Arc<Package>],
    report: &mut Report,
) -> (Histogram, Duration) {
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for package in packages {
        let (from, package) = (from.clone(), Arc::clone(package));
        clients.spawn(async move {
            let begun = Instant::now();
            let got = Client::new(from.to).document(&from, &package).await;
            (package.name.clone(), got, begun.elapsed())
        });
    }
    let mut times = Histogram::default();
    while let Some(ended) = clients.join_next().await {
        match ended {
            Ok((_, Ok(true), took)) => times.add(took.as_nanos() as u64),
            Ok((name, Ok(false), _)) => report.fault(format!("{name} has other bytes")),
            Ok((_, Err(error), _)) => report.fault(error),
            Err(error) => report.fault(error.to_string()),
        }
    }
    (times, begun.elapsed())
}
