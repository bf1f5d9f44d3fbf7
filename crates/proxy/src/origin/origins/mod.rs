//! The origins of one site: which is asked, which is left out, which is asked instead, and the figures
//! about them. A site of one origin has only the figures.
//!
//! The decisions are pure: `group` over `balance`, `health` and `budget`. This file shares them among
//! the workers, `ask` connects, `check` asks the origins by itself.

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
pub use health::{HealthRules, Standing};
pub use record::{Ailment, Recently};

/// One of a site's origins.
#[derive(Clone, Debug)]
pub struct Origin {
    /// A name, or an address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its share of requests among the weights of all; at least 1.
    pub weight: u32,
    /// Requests that may be under way there; `None`: no limit.
    pub connections: Option<u32>,
    /// The name for people: its URL.
    pub name: String,
}

/// The origins of a site and how they are used.
#[derive(Clone, Debug)]
pub struct OriginsConfig {
    /// The site.
    pub site: String,
    /// At most [`ORIGINS_MAX`].
    pub origins: Vec<Origin>,
    /// How TLS is spoken to them; `None`: it is not.
    pub tls: Option<OriginTls>,
    /// How long they are waited for.
    pub timeouts: OriginTimeouts,
    /// How requests are spread.
    pub balance: Balance,
    /// When one is left out.
    pub health: HealthRules,
    /// How they are checked; `None`: by requests alone.
    pub check: Option<Check>,
}

/// The origins of a site. Copies share their state, over all workers.
#[derive(Clone, Debug)]
pub struct Origins(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    site: String,
    members: Vec<(Destination, String)>,
    check: Option<Check>,
    /// One of them has a limit of its own.
    limited: bool,
    group: Mutex<Group>,
    /// A request has ended.
    freed: Notify,
    /// The requests of the site.
    requests: SiteCounters,
}

impl Inner {
    /// One origin, without a limit: there is nothing to choose.
    fn is_only(&self) -> bool {
        self.members.len() == 1 && !self.limited
    }
}

/// The present state of one origin.
#[derive(Clone, Debug)]
pub struct OriginState {
    /// Its URL.
    pub origin: String,
    /// The standing, which decides whether it gets requests.
    pub standing: Standing,
    /// Requests under way.
    pub outstanding: u32,
    /// Counts since the start.
    pub counts: OriginCounts,
    /// Figures about its last requests.
    pub recently: Recently,
}

impl Origins {
    /// The origins, all of them up, for this many workers.
    #[must_use]
    pub fn new(config: OriginsConfig, workers: usize) -> Self {
        Self::with(config, SiteCounters::new(workers))
    }

    /// Other origins of the same site, all of them up. The figures of its requests go on.
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

    /// The site.
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
                    standing: group.standing(at, now),
                    outstanding,
                    counts,
                    recently: group.recently(at, now),
                }
            })
            .collect()
    }

    /// Finished requests of the site.
    #[must_use]
    pub fn requests(&self) -> SiteTotals {
        self.0.requests.totals()
    }

    /// Counts a finished request of the site.
    #[inline]
    pub(crate) fn finished(&self, local: &Local, outcome: RequestOutcome, status: u16) {
        self.0.requests.finished(local.index, outcome, status);
    }

    /// A request at the only origin, which is asked without a choice; `None` if there are several, or
    /// if it has a limit.
    pub(crate) fn only(&self) -> Option<Turn> {
        if !self.0.is_only() {
            return None;
        }
        self.0.group.lock().begin(0);
        Some(self.taken(0))
    }

    /// Requests that were sent to another origin after an error.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.0.group.lock().retries()
    }

    /// An origin for a request, other than those tried. The first attempt waits for a free
    /// connection where all are in use, for as long as connecting may take. Cancel safe.
    async fn turn(&self, local: &Local, key: KeyHash, tried: Tried) -> Result<Turn, UpstreamError> {
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
                    Ok(at) => return Ok(self.taken(at)),
                    Err(Nobody::Busy) if tried == Tried::default() => freed.await,
                    Err(_) => return Err(UpstreamError::Busy),
                }
            }
        };
        let turn = tokio::time::timeout(limit, wait).await;
        turn.unwrap_or(Err(UpstreamError::Busy))
    }

    fn taken(&self, at: usize) -> Turn {
        Turn {
            origins: self.clone(),
            at,
            asked: Cell::new(None),
        }
    }

    /// How the origins are checked.
    pub(crate) fn check(&self) -> Option<&Check> {
        self.0.check.as_ref()
    }
}

/// Two are the same if they share their state.
impl PartialEq for Origins {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Origins {}

/// A request under way at an origin, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    origins: Origins,
    at: usize,
    /// Since when it waits for an answer.
    asked: Cell<Option<MonoTime>>,
}

impl Turn {
    /// The origin, if it was chosen, and not asked as the only one.
    pub(crate) fn chosen(&self) -> Option<&Destination> {
        let only = self.origins.0.is_only();
        (!only).then(|| self.destination())
    }

    /// The origin.
    pub(super) fn destination(&self) -> &Destination {
        &self.origins.0.members[self.at].0
    }

    /// From now on the request waits only for the origin.
    pub(crate) fn wait(&self, local: &Local) {
        let now = local.mono();
        self.asked.set(Some(now));
        if let Some(record) = self.origins.0.group.lock().record(self.at) {
            record.wait(now);
        }
    }

    /// Notes the status of the answer, unless it is interim.
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

    /// Notes a result; `reason` is that of a failure.
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

    /// Ends the wait of the request, without a result for the origin.
    fn end_wait(&self, now: MonoTime) {
        if self.asked.take().is_some()
            && let Some(record) = self.origins.0.group.lock().record(self.at)
        {
            record.waited(now);
        }
    }
}

impl Drop for Turn {
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
