//! The packages of one installation, requested many times. Foxy and verdaccio each run on one core.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::client::{Source, replay};
use super::fixture::{Server, Setup};
use super::registry::{Package, Registry};
use super::report::Report;
use super::{Mirrors, npm, verdaccio};
use crate::kit::peers::install::ensure;
use crate::kit::{Child, cpu_time};

/// Number of connections that npm opens.
const CONNECTIONS: usize = 15;
/// Number of times that all packages are requested during the measurement: from Foxy, and from verdaccio.
const TIMES: (usize, usize) = (40, 3);
/// Goal for the ratio of Foxy's rate to verdaccio's rate.
const RATIO: f64 = 3.0;

/// Number of requests that one core can handle per second. It is computed from the processor time of the
/// measured requests.
struct Core(f64);

pub(super) async fn measure(options: &Mirrors, folder: &Path) -> Result<Report, String> {
    ensure(&[("taskset", "util-linux")])?;
    let mut report = Report::new("replay");
    let (count, times) = match options.quick {
        true => (100, (40, 10)),
        false => (1000, TIMES),
    };
    let packages = Package::drawn(options.seed, count).into_iter();
    let packages: Arc<Vec<_>> = Arc::new(packages.map(Arc::new).collect());
    let bytes: u64 = packages.iter().map(|package| package.length).sum();
    let registry = Arc::new(Registry::of(&packages));
    let server = Server::start(Arc::clone(&registry))?;
    report.line(format!(
        "{count} packages, artefacts of {:.1} MB in all, {CONNECTIONS} connections, one core",
        bytes as f64 / 1e6
    ));
    let setup = Setup {
        pinned: true,
        ..Setup::of_packages(options.program(), npm(&server.url(), "npm", "1h"))
    };
    let foxy = setup.start(folder)?;
    let from = Source::mirror(&foxy, "/npm", server.url());
    let load = Load {
        packages: &packages,
        registry: &registry,
    };
    let own = load
        .run("Foxy", &foxy, (&from, times.0), &mut report)
        .await?;
    drop(foxy);
    let peer = match verdaccio::start(options.verdaccio.as_deref(), folder, &server.url()) {
        Ok(peer) => peer,
        Err(problem) => {
            report.line(format!("no verdaccio, so no ratio: {problem}"));
            return Ok(report);
        }
    };
    let from = Source {
        to: peer.address(),
        prefix: "",
        exact: false,
        ..from
    };
    let other = load
        .run("verdaccio", &peer, (&from, times.1), &mut report)
        .await?;
    let ratio = own.0 / other.0;
    let missed = if ratio < RATIO { ": missed" } else { "" };
    report.line(format!(
        "Foxy's core answers {ratio:.1} times as many (target {RATIO}{missed})"
    ));
    Ok(report)
}

struct Load<'a> {
    packages: &'a Arc<Vec<Arc<Package>>>,
    registry: &'a Registry,
}

impl Load<'_> {
    /// Requests all packages once, and then `times` more times. The result follows from the processor time of
    /// the later requests only.
    async fn run(
        &self,
        name: &str,
        server: &Child,
        (from, times): (&Source, usize),
        report: &mut Report,
    ) -> Result<Core, String> {
        let cold = replay(from, self.packages, (CONNECTIONS, 1)).await;
        self.registry.take();
        let cpu = || cpu_time(server.pid()).ok_or_else(|| format!("{name} ended"));
        let before = cpu()?;
        let warm = replay(from, self.packages, (CONNECTIONS, times)).await;
        let spent = (cpu()? - before).max(Duration::from_millis(1));
        let seen = self.registry.take();
        let each = spent.as_secs_f64() / warm.requests.max(1) as f64;
        let core = Core(1.0 / each);
        report.line(format!(
            "{name}: cold {:.2} s; warm {} requests in {:.2} s ({:.0}/s), {:.0} us of the core each: \
             {:.0} requests/s of the core; {} documents and {} artefacts from the registry",
            cold.took.as_secs_f64(),
            warm.requests,
            warm.took.as_secs_f64(),
            warm.requests as f64 / warm.took.as_secs_f64(),
            each * 1e6,
            core.0,
            seen.documents,
            seen.artefacts,
        ));
        for wrong in cold.wrong.into_iter().chain(warm.wrong) {
            report.fault(format!("{name}: {wrong}"));
        }
        Ok(core)
    }
}
