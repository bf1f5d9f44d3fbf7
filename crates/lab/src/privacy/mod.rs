//! The privacy matrix. It checks that no user gets an answer that was fetched for another user.
//!
//! The proxy is between the users and an origin that makes every page for the user of the request. The file
//! `table.txt` was written by hand and defines the permitted sharing. No code of the proxy takes part in the
//! judgement.

mod cell;
mod cli;
mod judge;
mod mark;
mod matrix;
mod report;
mod site;
mod table;
mod traffic;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use foxy_base::{Clock, Rng, SystemClock};
use tokio::net::TcpListener;

use crate::kit::{self, Child, Target, serve};
use cell::RunState;
use site::Site;

pub use cli::Privacy;
pub use matrix::{Counts, Foreign, Matrix, Name};
pub use report::{json, text};
pub use table::{Pair, Set, Sharing, TIMINGS, Timing, table};
pub use traffic::{PAGES, VISITS, Visits};

/// Scope of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Seed of the order of cells and visits.
    pub seed: u64,
    /// Number of rounds of the matrix.
    pub rounds: u32,
    /// Least duration of the matrix. After `rounds` rounds, more rounds run until this time has passed.
    pub at_least: Duration,
    /// Number of users in a cell besides the first.
    pub others: usize,
    /// True if the traffic on per-user pages is measured too.
    pub traffic: bool,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            seed: 1,
            rounds: 1,
            at_least: Duration::ZERO,
            others: 3,
            traffic: true,
        }
    }
}

/// Findings for one proxy.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Results of the matrix.
    pub matrix: Matrix,
    /// Results of the traffic, by header set (the fields that the origin sends with a page).
    pub traffic: BTreeMap<String, Visits>,
}

impl Findings {
    /// Number of answers that the table forbids, in matrix and traffic.
    #[must_use]
    pub fn foreign(&self) -> u64 {
        let visits: u64 = self.traffic.values().map(|visits| visits.foreign).sum();
        self.matrix.foreign_answers() + visits
    }

    /// True if more than one answer in a hundred is missing. Then the proxy cannot be judged.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        let visits: u64 = self.traffic.values().map(|visits| visits.missing).sum();
        let all = self.matrix.requests() + VISITS * self.traffic.len() as u64;
        (self.matrix.missing_answers() + visits) * 100 > all
    }
}

/// The measured proxy. It ends when this value is dropped.
pub trait Front {
    /// Address that users connect to.
    fn address(&self) -> SocketAddr;

    /// Port of the origin that requests must contain. With TLS, this is the port of the bridge in front of
    /// the origin, and not the origin's own `port`.
    fn origin(&self, port: u16) -> u16 {
        port
    }
}

impl Front for Child {
    fn address(&self) -> SocketAddr {
        Self::address(self)
    }
}

#[cfg(feature = "tls")]
impl Front for kit::Secured {
    fn address(&self) -> SocketAddr {
        Self::address(self)
    }

    fn origin(&self, _: u16) -> u16 {
        Self::origin(self)
    }
}

/// Measures the proxy that `start` starts in front of the origin on the given port. `scheme`: scheme of the
/// absolute URLs in requests; `None` if requests contain only paths.
///
/// # Errors
/// An error if the proxy does not start, or if the table is not well-formed.
pub fn measure<F: Front>(
    scope: &Scope,
    scheme: Option<&'static str>,
    start: impl FnOnce(u16) -> Result<F, String>,
) -> Result<Findings, String> {
    let runtime = kit::runtime()?;
    let sets: Vec<_> = table()?.into_iter().map(Arc::new).collect();
    let clock = SystemClock::default();
    let now = u64::try_from(clock.wall().secs()).map_err(|_| "the clock is not set")?;
    let site = Arc::new(Site::new(now));
    let listener = runtime
        .block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .map_err(|error| format!("the origin has no port: {error}"))?;
    let port = listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    let proxy = start(port)?;
    let state = Arc::new(RunState {
        target: Target {
            proxy: proxy.address(),
            origin: format!("127.0.0.1:{}", proxy.origin(port)),
            scheme,
        },
        site: Arc::clone(&site),
        ids: AtomicU64::new(1),
        settle: Duration::from_millis(40),
        others: scope.others,
    });
    let mut findings = Findings::default();
    runtime.block_on(async {
        tokio::spawn(serve(listener, site));
        let mut rng = Rng::new(scope.seed);
        let visits = rng.fork("visits");
        let matrix = async {
            let begun = clock.mono();
            let mut round = 0;
            while round < scope.rounds || clock.mono().since(begun) < scope.at_least {
                let cells = matrix::cells(&sets, round, &mut rng);
                matrix::run(cells, &state, &mut findings.matrix).await;
                round += 1;
            }
        };
        let traffic = async {
            if scope.traffic {
                traffic::run(&sets, &state, &visits).await
            } else {
                BTreeMap::new()
            }
        };
        ((), findings.traffic) = tokio::join!(matrix, traffic);
    });
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The origin itself in place of a proxy: users connect to the origin.
    struct Nothing(SocketAddr);

    impl Front for Nothing {
        fn address(&self) -> SocketAddr {
            self.0
        }
    }

    #[test]
    fn without_a_proxy_nothing_is_shared() {
        let scope = Scope {
            others: 2,
            ..Scope::default()
        };
        let direct = |port| Ok(Nothing((Ipv4Addr::LOCALHOST, port).into()));
        let findings = measure(&scope, None, direct).unwrap();
        let report = text("no proxy", &findings);
        assert_eq!(findings.foreign(), 0, "{report}");
        assert!(!findings.is_broken(), "{report}");
        let counts = findings.matrix.timings[&Timing::Concurrent];
        assert_eq!(counts.shared, 0, "{report}");
        assert!(counts.lost > 50, "{report}");
    }
}
