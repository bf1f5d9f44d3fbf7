//! State of one worker. Only the thread of that worker uses it, so it needs no locks.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{MonoTime, Rng, WallTime, hash64};
use foxy_http1::{DateCache, Limits};

use crate::cache::disk::DiskReader;
use crate::cache::serve::fragments::Fragments;
use crate::http::net::{Sweep, Ticks};
use crate::mirrors::Roles;
use crate::origin::UpstreamError;
use crate::origin::exchange::Upstream;
use crate::origin::pool::Pool;
use crate::state::entrance::Entrance;
use crate::state::poll_budgets::PollBudgets;
use crate::state::proxy::Proxy;
use crate::{Counters, Event, LogSink, Timeouts};

/// Largest value of [`TimeoutTicks::quiet`].
const QUIET: Duration = Duration::from_secs(3);

/// Largest number of connections that one call of [`Local::shed`] or [`Local::shed_stalled`] closes.
const SHED: usize = 16;

/// The configured timeouts, counted in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeoutTicks {
    pub(crate) head: Ticks,
    pub(crate) idle: Ticks,
    pub(crate) progress: Ticks,
    pub(crate) first_byte: Ticks,
    pub(crate) upstream: Ticks,
    /// Time of silence in a body after which the rest of the body is requested on another connection.
    pub(crate) quiet: Ticks,
    pub(crate) tunnel: Ticks,
    pub(crate) linger: Ticks,
    /// Time after which an idle connection releases its memory.
    pub(crate) rest: Ticks,
}

impl TimeoutTicks {
    fn of(timeouts: &Timeouts) -> Self {
        Self {
            head: Ticks::of(timeouts.head),
            idle: Ticks::of(timeouts.idle),
            progress: Ticks::of(timeouts.progress),
            first_byte: Ticks::of(timeouts.first_byte),
            upstream: Ticks::of(timeouts.upstream_progress),
            quiet: Ticks::of(timeouts.upstream_progress.min(QUIET)),
            tunnel: Ticks::of(timeouts.tunnel),
            linger: Ticks::of(Duration::from_secs(2)),
            rest: Ticks::of(Duration::from_millis(250)),
        }
    }
}

/// The state of one worker that does not depend on settings. A reload keeps it.
#[derive(Debug)]
pub(crate) struct Lasting {
    pub(crate) index: usize,
    pub(crate) sweep: Sweep,
    pub(crate) entrance: Entrance,
    pub(crate) poll_budgets: Rc<PollBudgets>,
    pub(crate) pool: Pool<Upstream>,
    pub(crate) disk: DiskReader,
    pub(crate) fragments: Fragments,
    pub(crate) log: RefCell<Box<dyn LogSink>>,
    /// Number of client connections and fills (fetches) of this worker that are in progress.
    pub(crate) busy: Cell<usize>,
    /// Number of connections that the worker has accepted so far.
    connections: Cell<u64>,
    dates: RefCell<DateCache>,
    rng: RefCell<Rng>,
}

/// The state of one worker, and its settings.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) proxy: Arc<Proxy>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: TimeoutTicks,
    /// True if the log sink wants records.
    pub(crate) logs: bool,
    /// True if the log sink wants `Details` in its records.
    pub(crate) details: bool,
    /// The roles of requests for mirrors.
    pub(crate) roles: Roles,
    lasting: Rc<Lasting>,
}

impl Deref for Local {
    type Target = Lasting;

    fn deref(&self) -> &Lasting {
        &self.lasting
    }
}

impl Local {
    pub(crate) fn new(proxy: Arc<Proxy>, index: usize, log: Box<dyn LogSink>) -> Rc<Self> {
        let config = &proxy.config;
        let seed = hash64(
            config.seed ^ index as u64,
            &proxy.clock.wall().0.to_le_bytes(),
        );
        let sweep = Sweep::new(&proxy.ledger);
        let lasting = Lasting {
            entrance: Entrance::default(),
            poll_budgets: Rc::new(PollBudgets::new(sweep.turns())),
            sweep,
            pool: Pool::new(&config.upstream),
            disk: DiskReader::new(
                Arc::clone(&proxy.engine),
                Arc::clone(&proxy.clock),
                config.limits.memory,
                proxy.workers(),
            ),
            fragments: Fragments::default(),
            connections: Cell::new(0),
            log: RefCell::new(log),
            busy: Cell::new(0),
            dates: RefCell::new(DateCache::new()),
            rng: RefCell::new(Rng::new(seed)),
            index,
        };
        Self::with(proxy, Rc::new(lasting))
    }

    /// Returns the same worker with new settings.
    pub(crate) fn renewed(&self, proxy: Arc<Proxy>) -> Rc<Self> {
        self.log.borrow_mut().renew();
        self.pool.set_limits(&proxy.config.upstream);
        Self::with(proxy, Rc::clone(&self.lasting))
    }

    fn with(proxy: Arc<Proxy>, lasting: Rc<Lasting>) -> Rc<Self> {
        let config = &proxy.config;
        let limits = Limits {
            head_bytes: config.limits.head_bytes,
            fields: config.limits.head_fields,
            ..Limits::default()
        };
        let (logs, details) = {
            let log = lasting.log.borrow();
            (log.wanted(), log.wanted() && log.wants_details())
        };
        Rc::new(Self {
            limits,
            timeouts: TimeoutTicks::of(&config.timeouts),
            logs,
            details,
            roles: Roles::default(),
            lasting,
            proxy,
        })
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.proxy.counters(self.index)
    }

    pub(crate) fn count(&self, event: Event) {
        self.counters().add(event, 1);
    }

    /// Counts a failure of an origin.
    pub(crate) fn origin_failed(&self, error: UpstreamError) {
        if let Some(trouble) = error.trouble() {
            self.counters().origin.failed(trouble);
        }
    }

    pub(crate) fn wall(&self) -> WallTime {
        self.proxy.clock.wall()
    }

    pub(crate) fn mono(&self) -> MonoTime {
        self.proxy.clock.mono()
    }

    /// Appends the field `Date: ...` for `now`.
    pub(crate) fn push_date(&self, now: WallTime, out: &mut Vec<u8>) {
        foxy_http1::write::field(out, b"Date", self.dates.borrow_mut().get(now));
    }

    /// Returns a `Date` value for `now`.
    pub(crate) fn date(&self, now: WallTime) -> [u8; 29] {
        *self.dates.borrow_mut().get(now)
    }

    /// Returns the number of a new connection of this worker.
    pub(crate) fn next_connection(&self) -> u64 {
        let number = self.connections.get();
        self.connections.set(number + 1);
        number
    }

    /// Returns a random number, never 0.
    pub(crate) fn nonce(&self) -> u64 {
        self.rng.borrow_mut().next_u64() | 1
    }

    /// Closes connections of this worker that are not needed. This function is called when memory or the
    /// permitted number of connections is used up. Returns the number of closed connections.
    pub(crate) fn shed(&self) -> usize {
        self.shed_for(SHED)
    }

    /// Does the same as [`shed`](Self::shed), but closes at most `waiting` connections: one for each
    /// connection that waits to be served.
    pub(crate) fn shed_for(&self, waiting: usize) -> usize {
        let most = waiting.min(SHED);
        self.counted(self.sweep.shed(most, self.entrance.waiting()))
    }

    /// Does the same as [`shed`](Self::shed), for a new connection above the permitted number. If no
    /// connection was closed, closes an idle connection, even if it has been idle only briefly. Returns true
    /// if a connection was closed.
    pub(crate) fn shed_for_new(&self) -> bool {
        self.shed() > 0 || self.counted(self.sweep.shed_idle(1)) > 0
    }

    /// Does the same as [`shed`](Self::shed), but closes enough connections so that memory is no longer used
    /// up. Each worker closes its part of these connections.
    pub(crate) fn shed_surplus(&self) {
        let surplus = self.proxy.ledger.surplus() / self.proxy.workers();
        let closed = self.sweep.shed(surplus.max(SHED), self.entrance.waiting());
        self.entrance.withhold(self.counted(closed).min(surplus));
    }

    /// Ends waiting requests if connections use all memory. These requests wait for memory that becomes free
    /// only when other clients read their answers. All workers together end enough requests to free memory.
    /// Each worker ends its part of these requests.
    pub(crate) fn shed_queued(&self) {
        let surplus = self.proxy.ledger.overfull();
        if surplus > 0 {
            self.counted(
                self.sweep
                    .shed_queued(surplus.div_ceil(self.proxy.workers())),
            );
        }
    }

    /// Does the same as [`shed`](Self::shed), but closes only connections of clients that do not read their
    /// answers.
    pub(crate) fn shed_stalled(&self) {
        self.counted(self.sweep.shed_stalled(SHED, self.entrance.waiting()));
    }

    /// Does the same as [`shed`](Self::shed), but closes only connections of one client, and at most `most`.
    pub(crate) fn shed_client(&self, client: u64, most: usize) -> usize {
        self.counted(self.sweep.shed_client(client, most))
    }

    fn counted(&self, shed: usize) -> usize {
        self.counters().add(Event::ConnectionsShed, shed as u64);
        shed
    }

    /// Counts one piece of work until the returned guard is dropped. A worker that shuts down waits for the
    /// counted work.
    pub(crate) fn busy(&self) -> Busy {
        self.busy.set(self.busy.get() + 1);
        Busy(Rc::clone(&self.lasting))
    }
}

/// A piece of work in progress.
#[derive(Debug)]
pub(crate) struct Busy(Rc<Lasting>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.set(self.0.busy.get() - 1);
    }
}
