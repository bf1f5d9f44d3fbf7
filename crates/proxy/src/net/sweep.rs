//! Deadlines without a timer each: a worker looks at all its waits a few times per second.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

/// The time between two sweeps.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// A number of sweeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticks(u64);

impl Ticks {
    const NEVER: Self = Self(u64::MAX);

    #[cfg(test)]
    pub(crate) fn at(tick: u64) -> Self {
        Self(tick)
    }

    /// From `earlier` to this tick; zero if `earlier` is later.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// At least `duration`, at most one tick more.
    pub(crate) fn of(duration: Duration) -> Self {
        let ticks = duration.as_millis().div_ceil(TICK.as_millis());
        Self(u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1))
    }
}

/// Which direction waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Read,
    Write,
}

/// The deadlines of one connection.
#[derive(Debug)]
pub(crate) struct Watch {
    now: Rc<Cell<Ticks>>,
    read: Cell<Ticks>,
    write: Cell<Ticks>,
    /// Closed at once when the worker drains.
    idle: Cell<bool>,
    draining: Rc<Cell<bool>>,
    waker: RefCell<Option<Waker>>,
}

impl Watch {
    /// The tick `after` from now.
    pub(crate) fn deadline(&self, after: Ticks) -> Ticks {
        Ticks(self.now.get().0.saturating_add(after.0))
    }

    /// The wait of `side` ends at `deadline`.
    pub(crate) fn arm(&self, side: Side, deadline: Ticks) {
        self.cell(side).set(deadline);
    }

    /// `side` does not wait any more.
    pub(crate) fn disarm(&self, side: Side) {
        self.cell(side).set(Ticks::NEVER);
    }

    /// Whether the deadline of `side` has passed.
    pub(crate) fn expired(&self, side: Side) -> bool {
        self.cell(side).get() <= self.now.get() || self.idle.get() && self.draining.get()
    }

    /// Whether nothing is under way.
    pub(crate) fn set_idle(&self, idle: bool) {
        self.idle.set(idle);
    }

    /// Who is to be woken when a deadline passes. All waits of one connection are in one task.
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
}

impl Default for Sweep {
    fn default() -> Self {
        Self {
            now: Rc::new(Cell::new(Ticks(0))),
            draining: Rc::default(),
            watches: RefCell::default(),
        }
    }
}

impl Sweep {
    /// The present tick.
    pub(crate) fn now(&self) -> Ticks {
        self.now.get()
    }

    /// A new connection's deadlines, none set.
    pub(crate) fn watch(&self) -> Rc<Watch> {
        let watch = Rc::new(Watch {
            now: Rc::clone(&self.now),
            read: Cell::new(Ticks::NEVER),
            write: Cell::new(Ticks::NEVER),
            idle: Cell::new(false),
            draining: Rc::clone(&self.draining),
            waker: RefCell::default(),
        });
        self.watches.borrow_mut().push(Rc::clone(&watch));
        watch
    }

    /// From now on idle connections end at the next tick.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
    }

    /// One tick: wakes every wait whose deadline has passed and forgets closed connections.
    pub(crate) fn tick(&self) {
        self.now.set(Ticks(self.now.get().0 + 1));
        let mut late = Vec::new();
        self.watches.borrow_mut().retain(|watch| {
            if Rc::strong_count(watch) == 1 {
                return false;
            }
            if watch.expired(Side::Read) || watch.expired(Side::Write) {
                late.extend(watch.waker.borrow_mut().take());
            }
            true
        });
        // Not under the borrow: waking may run code that opens connections.
        for waker in late {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_not_before_its_time_and_at_most_two_ticks_late() {
        let sweep = Sweep::default();
        let watch = sweep.watch();
        watch.arm(Side::Read, watch.deadline(Ticks::of(TICK * 4)));
        for _ in 0..4 {
            sweep.tick();
            assert!(!watch.expired(Side::Read));
        }
        sweep.tick();
        assert!(watch.expired(Side::Read));
        assert!(!watch.expired(Side::Write));
        watch.disarm(Side::Read);
        assert!(!watch.expired(Side::Read));
    }

    #[test]
    fn closed_connections_are_forgotten() {
        let sweep = Sweep::default();
        let watch = sweep.watch();
        drop(sweep.watch());
        sweep.tick();
        assert_eq!(sweep.watches.borrow().len(), 1);
        drop(watch);
    }

    #[test]
    fn draining_ends_idle_waits_alone() {
        let sweep = Sweep::default();
        let (idle, busy) = (sweep.watch(), sweep.watch());
        idle.set_idle(true);
        assert!(!idle.expired(Side::Read));
        sweep.drain();
        assert!(idle.expired(Side::Read) && !busy.expired(Side::Read));
    }
}
