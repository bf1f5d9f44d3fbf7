//! The deadlines of waits. They need no timers, because each worker (network thread) checks all its waits a
//! few times per second. Such a check is called a sweep or a tick. This module also chooses the connections
//! that are closed when memory is short.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use hashbrown::HashSet;

use crate::state::ledger::Ledger;
use crate::state::turns::Turns;

/// The time between two sweeps.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Longest wait of a request for a reservation (memory in the kernel's send buffers) while connections use
/// all memory. It is longer than the usual wait for a time slice (the time for which an answer has a
/// reservation).
const QUEUED: Duration = Duration::from_secs(4);

/// Number of ticks without progress after which a peer counts as silent. The real time is one to two ticks
/// long, because a wait begins between two ticks.
const SILENT: Ticks = Ticks(2);

/// A time or a duration, counted in ticks of length [`TICK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticks(u64);

impl Ticks {
    const NEVER: Self = Self(u64::MAX);

    #[cfg(test)]
    pub(crate) fn at(tick: u64) -> Self {
        Self(tick)
    }

    /// Returns the ticks from `earlier` to this tick, or zero if `earlier` is later.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Returns a wait that is twice as long.
    pub(crate) fn twice(self) -> Self {
        Self(self.0.saturating_mul(2))
    }

    /// Returns the number of ticks for a wait of at least `duration`. One tick is added, because a wait
    /// begins between two ticks.
    pub(crate) fn of(duration: Duration) -> Self {
        let ticks = duration.as_millis().div_ceil(TICK.as_millis());
        Self(u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1))
    }
}

/// The direction of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// Activity of a connection. It decides which connections are closed when memory is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Activity {
    /// The connection waits for its next request.
    Idle,
    /// The connection receives a request head.
    Head,
    /// The connection carries out a TLS handshake.
    Handshake,
    /// The client's kernel has acknowledged all bytes that were sent, but the client's program does not read
    /// them. So the kernel of this machine keeps no bytes for this client.
    Unread,
    /// The connection waits for its client to read.
    Stalled,
    /// No byte of the answer is sent yet. The connection waits until earlier clients have read their answers.
    Queued,
    /// The connection does any other work.
    Work,
}

impl Activity {
    /// Returns the time for which a connection must have had this activity before it may be closed to make
    /// room for others. `None` means that a connection with this activity is not closed. For
    /// [`Head`](Self::Head), `waiting` is the number of connections that wait to be served, divided by the
    /// number of connections with this activity. For [`Stalled`](Self::Stalled), the connections that wait
    /// for a reservation ([`Queued`](Self::Queued)) count too. For [`Unread`](Self::Unread), `waiting` is the
    /// number of all connections that wait to be served. It has no effect on other activities.
    fn timeout(self, waiting: usize) -> Option<Ticks> {
        match self {
            // A client may be about to send its request.
            Self::Idle => Some(Ticks::of(Duration::from_millis(750))),
            // All bytes of a head of usual length arrive at the same time. If other connections wait to be
            // served, many slow heads would delay them for seconds.
            Self::Head => Some(Ticks::of(Duration::from_millis(match waiting {
                0 => 1000,
                _ => 250,
            }))),
            // The handshake needs an answer of the client, which may be far away.
            Self::Handshake => Some(Ticks::of(Duration::from_secs(1))),
            // The network is not the cause of this wait, because all bytes have arrived.
            Self::Unread => Some(Ticks::of(Duration::from_secs(match waiting {
                0 => 5,
                _ => 1,
            }))),
            // On a slow network or machine, a client that reads may be silent for seconds: four lost packets
            // in a row take three seconds. If other answers wait for the reservation of such a client, a
            // longer timeout would make more answers fail than it would save.
            Self::Stalled => Some(Ticks::of(match waiting {
                0 => Duration::from_secs(5),
                1..=3 => Duration::from_secs(2),
                _ => Duration::from_secs(1),
            })),
            Self::Queued => Some(Ticks::of(Duration::from_secs(30))),
            Self::Work => None,
        }
    }
}

/// The deadlines of one connection.
#[derive(Debug)]
pub(crate) struct Watch {
    now: Rc<Cell<Ticks>>,
    read: Cell<Ticks>,
    write: Cell<Ticks>,
    activity: Cell<Activity>,
    since: Cell<Ticks>,
    /// Number that distinguishes the client from other clients. 0 if the client is not counted.
    client: Cell<u64>,
    /// True if the connection was chosen to be closed, to make room for other connections. A change of its
    /// activity, such as a new request, sets this to false.
    doomed: Cell<bool>,
    draining: Rc<Cell<bool>>,
    /// True after the listener is closed.
    closed: OnceCell<Rc<Cell<bool>>>,
    /// The last tick in which a search found no idle connection.
    none_idle: Rc<Cell<Ticks>>,
    turns: Rc<Turns>,
    ledger: Arc<Ledger>,
    waker: RefCell<Option<Waker>>,
}

impl Watch {
    /// Returns the deadline of a wait that begins now and lasts for `after`.
    pub(crate) fn deadline(&self, after: Ticks) -> Ticks {
        Ticks(self.now.get().0.saturating_add(after.0))
    }

    /// Sets `deadline` as the end of the wait of `side`.
    pub(crate) fn arm(&self, side: Side, deadline: Ticks) {
        self.cell(side).set(deadline);
    }

    /// Ends the wait of `side`.
    pub(crate) fn disarm(&self, side: Side) {
        self.cell(side).set(Ticks::NEVER);
    }

    /// Returns true if the deadline of `side` has passed, or if the connection must end for another reason.
    pub(crate) fn expired(&self, side: Side) -> bool {
        self.cell(side).get() <= self.now.get()
            || self.doomed.get()
            || self.activity.get() == Activity::Idle && (self.draining.get() || self.is_left())
    }

    /// Sets the activity. An idle connection is closed when its worker drains (finishes its work before it
    /// ends).
    pub(crate) fn set_activity(&self, activity: Activity) {
        if self.activity.replace(activity) != activity {
            self.since.set(self.now.get());
            self.doomed.set(false);
            if activity == Activity::Idle {
                self.none_idle.set(Ticks::NEVER);
            }
        }
    }

    /// Returns true if the peer has read nothing for [`SILENT`].
    pub(crate) fn is_silent(&self) -> bool {
        self.silent_for() >= SILENT
    }

    /// Returns the number of ticks for which the connection has waited for its peer to read.
    fn silent_for(&self) -> Ticks {
        match self.activity.get() {
            Activity::Stalled => self.now.get().since(self.since.get()),
            _ => Ticks(0),
        }
    }

    /// Sets the number that distinguishes the client from other clients.
    pub(crate) fn set_client(&self, client: u64) {
        self.client.set(client);
    }

    /// Sets the flag of the listener. The connection ends when it is idle and `closed` is true.
    pub(crate) fn set_closed(&self, closed: &Rc<Cell<bool>>) {
        // A connection has only one listener, so the flag is set only once.
        let _ = self.closed.set(Rc::clone(closed));
    }

    fn is_left(&self) -> bool {
        self.closed.get().is_some_and(|closed| closed.get())
    }

    /// Returns true if the connection must end to make room for other connections.
    pub(crate) fn is_doomed(&self) -> bool {
        self.doomed.get()
    }

    /// Returns the present activity of the connection.
    pub(crate) fn activity(&self) -> Activity {
        self.activity.get()
    }

    /// Returns the ledger of the memory that all connections share.
    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Returns the turns of long answers.
    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Sets the task that is woken when a deadline passes. All waits of one connection are in one task.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut slot = self.waker.borrow_mut();
        match &mut *slot {
            Some(known) if known.will_wake(waker) => {}
            slot => *slot = Some(waker.clone()),
        }
    }

    fn cell(&self, side: Side) -> &Cell<Ticks> {
        match side {
            Side::Read => &self.read,
            Side::Write => &self.write,
        }
    }
}

/// All waits of one worker.
#[derive(Debug)]
pub(crate) struct Sweep {
    now: Rc<Cell<Ticks>>,
    draining: Rc<Cell<bool>>,
    watches: RefCell<Vec<Rc<Watch>>>,
    ledger: Arc<Ledger>,
    barren: Cell<Ticks>,
    barren_stalled: Cell<Ticks>,
    /// Clients for which a search in the present tick found no connection to close.
    barren_clients: RefCell<HashSet<u64>>,
    none_idle: Rc<Cell<Ticks>>,
    turns: Rc<Turns>,
}

impl Sweep {
    pub(crate) fn new(ledger: &Arc<Ledger>) -> Self {
        Self {
            now: Rc::new(Cell::new(Ticks(0))),
            draining: Rc::default(),
            watches: RefCell::default(),
            ledger: Arc::clone(ledger),
            barren: Cell::new(Ticks::NEVER),
            barren_stalled: Cell::new(Ticks::NEVER),
            barren_clients: RefCell::default(),
            none_idle: Rc::new(Cell::new(Ticks::NEVER)),
            turns: Rc::default(),
        }
    }

    /// Returns the turns of long answers.
    pub(crate) fn turns(&self) -> &Rc<Turns> {
        &self.turns
    }

    /// Returns the present tick.
    pub(crate) fn now(&self) -> Ticks {
        self.now.get()
    }

    /// Makes the [`Watch`] of a new connection. It has no deadlines yet.
    pub(crate) fn watch(&self) -> Rc<Watch> {
        let watch = Rc::new(Watch {
            now: Rc::clone(&self.now),
            read: Cell::new(Ticks::NEVER),
            write: Cell::new(Ticks::NEVER),
            activity: Cell::new(Activity::Work),
            since: Cell::new(self.now.get()),
            client: Cell::new(0),
            doomed: Cell::new(false),
            ledger: Arc::clone(&self.ledger),
            draining: Rc::clone(&self.draining),
            closed: OnceCell::new(),
            none_idle: Rc::clone(&self.none_idle),
            turns: Rc::clone(&self.turns),
            waker: RefCell::default(),
        });
        self.watches.borrow_mut().push(Rc::clone(&watch));
        watch
    }

    /// Begins to drain the worker: from now on, each idle connection ends at the next tick.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
    }

    /// Closes at most `most` connections to make room for others, the least needed connections first. Idle
    /// connections are closed first. Connections with slow heads, slow handshakes and clients that do not
    /// read follow in this order. Requests that wait until such clients read are closed last. Within each of
    /// these kinds, the oldest connections are closed first. `outside` is the number of connections that
    /// still wait to be served. Returns the number of closed connections.
    pub(crate) fn shed(&self, most: usize, outside: usize) -> usize {
        self.shed_where(most, outside, Some(&self.barren), |_| true)
    }

    /// Does the same as [`shed`](Self::shed), but closes only connections that wait for their clients to read
    /// ([`Activity::Stalled`]).
    pub(crate) fn shed_stalled(&self, most: usize, outside: usize) -> usize {
        let stalled = |watch: &Watch| watch.activity() == Activity::Stalled;
        self.shed_where(most, outside, Some(&self.barren_stalled), stalled)
    }

    /// Does the same as [`shed`](Self::shed), but closes only connections of one client. After a search that
    /// found no connection, there is no other search for this client until the next tick. So a client that
    /// opens thousands of connections cannot cause thousands of searches.
    pub(crate) fn shed_client(&self, client: u64, most: usize) -> usize {
        if self.barren_clients.borrow().contains(&client) {
            return 0;
        }
        let closed = self.shed_where(most, 0, None, |watch| watch.client.get() == client);
        if closed == 0 {
            self.barren_clients.borrow_mut().insert(client);
        }
        closed
    }

    /// Closes at most `most` idle connections, the oldest first. Even connections that have just become idle
    /// are closed, because a new client would be refused otherwise. Returns the number of closed connections.
    pub(crate) fn shed_idle(&self, most: usize) -> usize {
        let idle = |watch: &Watch| watch.activity() == Activity::Idle;
        self.close(most, Some(&self.none_idle), |_| idle)
    }

    /// Ends at most `most` requests whose answers wait for other clients to read. Ends only requests that
    /// have waited for [`QUEUED`], those with the longest wait first. The waiting requests use all memory, so
    /// no other request gets an answer until some of them end. The ended requests get a 503 answer, like a
    /// request that finds no memory. Returns the number of ended requests.
    pub(crate) fn shed_queued(&self, most: usize) -> usize {
        let now = self.now.get();
        let queued = move |watch: &Watch| {
            watch.activity() == Activity::Queued
                && now.since(watch.since.get()) >= Ticks::of(QUEUED)
        };
        self.close(most, None, |_| queued)
    }

    /// Closes connections that `which` accepts, if their activity has lasted for long enough.
    fn shed_where(
        &self,
        most: usize,
        outside: usize,
        barren: Option<&Cell<Ticks>>,
        which: impl Fn(&Watch) -> bool,
    ) -> usize {
        let now = self.now.get();
        self.close(most, barren, |watches| {
            let at = |activity| watches.iter().filter(|w| w.activity() == activity).count();
            let for_readers = (outside + at(Activity::Queued)) / at(Activity::Stalled).max(1);
            let for_heads = outside / at(Activity::Head).max(1);
            move |watch: &Watch| {
                let activity = watch.activity();
                let waiting = match activity {
                    Activity::Head => for_heads,
                    Activity::Unread => outside,
                    _ => for_readers,
                };
                let timeout = activity.timeout(waiting);
                timeout.is_some_and(|timeout| now.since(watch.since.get()) >= timeout)
                    && which(watch)
            }
        })
    }

    /// Closes the least needed connections that a filter accepts. `choice` makes the filter from all
    /// connections. `barren` is the last tick in which a search found no connection. The search is not
    /// repeated in this tick, so a thousand requests that wait for memory do not each search all connections.
    fn close<M: Fn(&Watch) -> bool>(
        &self,
        most: usize,
        barren: Option<&Cell<Ticks>>,
        choice: impl FnOnce(&[Rc<Watch>]) -> M,
    ) -> usize {
        let now = self.now.get();
        if barren.is_some_and(|barren| barren.get() == now) {
            return 0;
        }
        let open = |watch: &&Rc<Watch>| !watch.doomed.get() && Rc::strong_count(watch) > 1;
        let chosen: Vec<_> = {
            let watches = self.watches.borrow();
            let may = choice(&watches);
            let all = watches.iter().filter(open);
            let mut found: Vec<_> = all.filter(|watch| may(watch)).collect();
            let rank = |watch: &&Rc<Watch>| (watch.activity.get(), watch.since.get());
            if found.len() > most {
                found.select_nth_unstable_by_key(most, rank);
                found.truncate(most);
            }
            found.into_iter().cloned().collect()
        };
        for watch in &chosen {
            watch.doomed.set(true);
            let waker = watch.waker.borrow_mut().take();
            waker.into_iter().for_each(Waker::wake);
        }
        if let Some(barren) = barren.filter(|_| chosen.is_empty()) {
            barren.set(now);
        }
        chosen.len()
    }

    /// Advances by one tick. Wakes every wait whose deadline has passed, and forgets closed connections.
    pub(crate) fn tick(&self) {
        self.now.set(Ticks(self.now.get().0 + 1));
        self.barren_clients.borrow_mut().clear();
        let mut late = Vec::new();
        self.watches.borrow_mut().retain(|watch| {
            if Rc::strong_count(watch) == 1 {
                return false;
            }
            // The silence of a peer wakes its task only in the tick in which the peer becomes silent.
            let silent = watch.silent_for() == SILENT;
            if silent || watch.expired(Side::Read) || watch.expired(Side::Write) {
                late.extend(watch.waker.borrow_mut().take());
            }
            true
        });
        // The wakers are called after the borrow of `watches` has ended, because they may run code that opens
        // connections.
        for waker in late {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
