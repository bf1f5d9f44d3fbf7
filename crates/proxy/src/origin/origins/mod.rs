//! The origins of one site. This module chooses an origin, leaves failing origins out, asks another origin
//! after an error, and keeps figures about origins. For a site with one origin, this module only keeps the
//! figures.
//!
//! The decisions are in `group`, which uses `balance`, `health` and `budget`, and does no I/O. This file
//! makes one group usable by all workers. `ask` connects to origins. `check` sends requests that test whether
//! origins work.

mod ask;
mod balance;
mod budget;
pub(crate) mod check;
mod group;
mod health;
mod record;

use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;

use foxy_base::{KeyHash, MonoTime};
use foxy_tls::OriginTls;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::access::gatekeeper::Reachable;
use crate::http::destination::Destination;
use crate::origin::UpstreamError;
use crate::state::counters::SiteCounters;
use crate::state::local::Local;
use crate::{OriginTimeouts, Outcome as RequestOutcome, SiteTotals};
pub(crate) use ask::{ask, open};
pub use balance::Balance;
use balance::Draw;
pub use check::Check;
use group::{Group, Nobody, Result as Outcome, Tried};
pub use group::{ORIGINS_MAX, OriginCounts};
pub use health::{HealthRules, HealthState};
pub use record::{Ailment, Recently};

/// An origin of a site.
#[derive(Clone, Debug)]
pub struct Origin {
    /// A host name, or an address without brackets.
    pub host: String,
    /// Port of the origin.
    pub port: u16,
    /// Weight of the origin, at least 1. It determines the origin's share of requests, relative to the sum of
    /// all weights.
    pub weight: u32,
    /// Largest number of requests under way at the origin. `None` means no limit.
    pub connections: Option<u32>,
    /// The name for people, which is the URL of the origin.
    pub name: String,
}

/// The settings of a site's origins.
#[derive(Clone, Debug)]
pub struct OriginsConfig {
    /// Name of the site.
    pub site: String,
    /// The origins. There are at most [`ORIGINS_MAX`].
    pub origins: Vec<Origin>,
    /// TLS settings for the origins. `None` means plain connections.
    pub tls: Option<OriginTls>,
    /// Longest times for which Foxy waits for the origins.
    pub timeouts: OriginTimeouts,
    /// The way in which requests are distributed.
    pub balance: Balance,
    /// Rules for leaving out an origin.
    pub health: HealthRules,
    /// Settings of checks. `None` means that only requests show the health of origins.
    pub check: Option<Check>,
}

/// The origins of a site. All copies share one state, over all workers.
#[derive(Clone, Debug)]
pub struct Origins(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    site: String,
    members: Vec<(Destination, String)>,
    check: Option<Check>,
    /// True if at least one origin has a limit of requests under way.
    limited: bool,
    group: Mutex<Group>,
    /// Signalled when a request ends. Requests wait for this signal if the limits of all origins are
    /// reached.
    freed: Notify,
    /// Counts of requests of the site.
    requests: SiteCounters,
}

impl Inner {
    /// Returns true if there is only one origin, without a limit. Then no choice is needed.
    fn is_only(&self) -> bool {
        self.members.len() == 1 && !self.limited
    }
}

/// The present state of one origin.
#[derive(Clone, Debug)]
pub struct OriginState {
    /// URL of the origin.
    pub origin: String,
    /// The health, which decides whether the origin gets requests.
    pub health_state: HealthState,
    /// Number of requests under way.
    pub outstanding: u32,
    /// Counts of the origin since the start.
    pub counts: OriginCounts,
    /// Figures about the last requests to the origin.
    pub recently: Recently,
}

impl Origins {
    /// Makes the origins for this number of workers. All origins are up.
    #[must_use]
    pub fn new(config: OriginsConfig, workers: usize) -> Self {
        Self::with(config, SiteCounters::new(workers))
    }

    /// Makes the origins of the same site for new settings. All origins are up. The figures about the site's
    /// requests continue.
    #[must_use]
    pub fn renewed(&self, config: OriginsConfig) -> Self {
        Self::with(config, self.0.requests.clone())
    }

    fn with(config: OriginsConfig, requests: SiteCounters) -> Self {
        let limited = config.origins.iter().any(|of| of.connections.is_some());
        let limits = config.origins.iter().map(|origin| {
            let limit = origin.connections.unwrap_or(u32::MAX);
            (origin.weight, limit)
        });
        let group = Group::new(config.health, config.balance, limits);
        let member = |origin: Origin| {
            let to = Destination {
                host: origin.host.to_ascii_lowercase().into(),
                port: origin.port,
                exempt: true,
                tls: config.tls.clone(),
                timeouts: config.timeouts,
                reach: Reachable::default(),
                parent: None,
            };
            (to, origin.name)
        };
        Self(Arc::new(Inner {
            site: config.site,
            limited,
            group: Mutex::new(group),
            members: config.origins.into_iter().map(member).collect(),
            check: config.check,
            freed: Notify::new(),
            requests,
        }))
    }

    /// Returns the name of the site.
    #[must_use]
    pub fn site(&self) -> &str {
        &self.0.site
    }

    /// Returns the present state of each origin, in the order of the configuration.
    #[must_use]
    pub fn states(&self, now: MonoTime) -> Vec<OriginState> {
        let group = self.0.group.lock();
        let members = self.0.members.iter().enumerate();
        members
            .map(|(at, (_, name))| {
                let (outstanding, counts) = group.counts(at);
                OriginState {
                    origin: name.clone(),
                    health_state: group.health_state(at, now),
                    outstanding,
                    counts,
                    recently: group.recently(at, now),
                }
            })
            .collect()
    }

    /// Returns the counts of finished requests of the site.
    #[must_use]
    pub fn requests(&self) -> SiteTotals {
        self.0.requests.totals()
    }

    /// Counts a finished request of the site.
    #[inline]
    pub(crate) fn finished(&self, local: &Local, outcome: RequestOutcome, status: u16) {
        self.0.requests.finished(local.index, outcome, status);
    }

    /// Counts a request as under way at the only origin. Returns `None` if an origin must be chosen: if there
    /// are several origins, or if the only origin has a limit.
    pub(crate) fn only(&self) -> Option<OutstandingRequest> {
        if !self.0.is_only() {
            return None;
        }
        self.0.group.lock().begin(0);
        Some(self.outstanding_at(0))
    }

    /// Returns the number of requests that were sent to another origin after an error.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.0.group.lock().retries()
    }

    /// Chooses an origin that was not tried before, and counts the request as under way there. If all
    /// connections are in use, the first attempt waits for a free connection, for at most the connect
    /// timeout. Cancel safe.
    async fn begin(
        &self,
        local: &Local,
        key: KeyHash,
        tried: Tried,
    ) -> Result<OutstandingRequest, UpstreamError> {
        let limit = local.proxy.config.timeouts.connect;
        let wait = async {
            loop {
                let mut freed = pin!(self.0.freed.notified());
                freed.as_mut().enable();
                let draw = Draw {
                    key: key.low(),
                    random: [local.nonce(), local.nonce()],
                };
                let chosen = self.0.group.lock().choose(local.mono(), tried, draw);
                match chosen {
                    Ok(at) => return Ok(self.outstanding_at(at)),
                    Err(Nobody::Busy) if tried == Tried::default() => freed.await,
                    Err(_) => return Err(UpstreamError::Busy),
                }
            }
        };
        let outstanding = tokio::time::timeout(limit, wait).await;
        outstanding.unwrap_or(Err(UpstreamError::Busy))
    }

    fn outstanding_at(&self, at: usize) -> OutstandingRequest {
        OutstandingRequest {
            origins: self.clone(),
            at,
            asked: Cell::new(None),
        }
    }

    /// Returns the settings of checks.
    pub(crate) fn check(&self) -> Option<&Check> {
        self.0.check.as_ref()
    }
}

/// Two values are equal if they share their state.
impl PartialEq for Origins {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Origins {}

/// A request under way at an origin. When the value is dropped, the request no longer counts as under way.
#[derive(Debug)]
pub(crate) struct OutstandingRequest {
    origins: Origins,
    at: usize,
    /// Time since which the request waits for an answer.
    asked: Cell<Option<MonoTime>>,
}

impl OutstandingRequest {
    /// Returns the origin, if it was chosen. Returns `None` if it is the only origin and has no limit,
    /// because then no choice is needed.
    pub(crate) fn chosen(&self) -> Option<&Destination> {
        let only = self.origins.0.is_only();
        (!only).then(|| self.destination())
    }

    /// Returns the origin.
    pub(super) fn destination(&self) -> &Destination {
        &self.origins.0.members[self.at].0
    }

    /// Notes that the request waits for the origin's answer from now on. The caller uses this function just
    /// before it sends a request without a body.
    pub(crate) fn wait(&self, local: &Local) {
        let now = local.mono();
        self.asked.set(Some(now));
        if let Some(record) = self.origins.0.group.lock().record(self.at) {
            record.wait(now);
        }
    }

    /// Notes the status of the answer, unless the answer is interim.
    pub(crate) fn answered(&self, local: &Local, status: u16) {
        let result = match status {
            0..=199 => return self.end_wait(local.mono()),
            200..=499 => Outcome::Good,
            _ => Outcome::Error,
        };
        self.note(local, result, "status-5xx");
    }

    /// Notes that there was no answer.
    pub(crate) fn failed(&self, local: &Local, error: UpstreamError) {
        let ours = matches!(
            error,
            UpstreamError::GivenUp | UpstreamError::Busy | UpstreamError::Forbidden(_)
        );
        match ours {
            true => self.end_wait(local.mono()),
            false => self.note(local, Outcome::Failed, error.reason()),
        }
    }

    /// Notes a result. `reason` is the reason of a failure.
    fn note(&self, local: &Local, outcome: Outcome, reason: &'static str) {
        let inner = &self.origins.0;
        let now = local.mono();
        let asked = self.asked.take();
        let ejected = {
            let mut group = inner.group.lock();
            if let Some(record) = group.record(self.at) {
                if let Some(asked) = asked {
                    record.waited(now);
                    if outcome != Outcome::Failed {
                        record.answered(now.since(asked));
                    }
                }
                record.note((outcome != Outcome::Good).then_some(reason), now);
            }
            group.note(self.at, outcome, now)
        };
        if ejected {
            let (site, origin) = (&inner.site, &inner.members[self.at].1);
            tracing::warn!(%site, %origin, "requests to this origin fail: it is left out for a time");
        }
    }

    /// Notes that the request no longer waits for an answer. This counts neither as a success nor as a
    /// failure of the origin.
    fn end_wait(&self, now: MonoTime) {
        if self.asked.take().is_some()
            && let Some(record) = self.origins.0.group.lock().record(self.at)
        {
            record.waited(now);
        }
    }
}

impl Drop for OutstandingRequest {
    fn drop(&mut self) {
        let mut group = self.origins.0.group.lock();
        if self.asked.take().is_some()
            && let Some(record) = group.record(self.at)
        {
            record.given_up();
        }
        group.end(self.at);
        drop(group);
        self.origins.0.freed.notify_one();
    }
}
