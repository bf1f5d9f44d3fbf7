//! Idle connections to origins, which are kept for later requests. Each worker has its own pool, without a
//! lock.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;

use crate::UpstreamConfig;
use crate::http::destination::Destination;
use crate::http::net::Ticks;

/// Time after which an idle connection frees its buffer. If the destination has more connections than
/// permitted, the connection is closed at this time. Connections beyond the limit are not closed earlier,
/// because concurrent requests may soon use them, and would otherwise open new connections.
const RESTING: Duration = Duration::from_secs(1);

/// Idle connections by destination. `C` is the type of a connection. Tests use a type without sockets.
#[derive(Debug)]
pub(crate) struct Pool<C> {
    idle: RefCell<Shelves<C>>,
    limits: Cell<Limits>,
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    idle_max: Ticks,
    age_max: Ticks,
    per_destination: usize,
    total: usize,
}

impl Limits {
    fn of(config: &UpstreamConfig) -> Self {
        Self {
            idle_max: Ticks::of(config.idle_max),
            age_max: Ticks::of(config.age_max),
            per_destination: config.idle_per_destination,
            total: config.idle_total,
        }
    }

    /// Returns true if the connection may still be used. It must not have been idle for too long, and must
    /// not be too old.
    fn allow<C>(&self, idle: &Idle<C>, now: Ticks) -> bool {
        now.since(idle.since) <= self.idle_max && now.since(idle.born) <= self.age_max
    }
}

#[derive(Debug)]
struct Shelves<C> {
    by_destination: HashMap<Destination, VecDeque<Idle<C>>>,
    count: usize,
}

#[derive(Debug)]
struct Idle<C> {
    connection: C,
    born: Ticks,
    since: Ticks,
}

/// A connection from the pool, and the time at which it was opened.
#[derive(Debug)]
pub(crate) struct Pooled<C> {
    pub(crate) connection: C,
    pub(crate) born: Ticks,
}

impl<C> Pool<C> {
    pub(crate) fn new(config: &UpstreamConfig) -> Self {
        Self {
            idle: RefCell::new(Shelves {
                by_destination: HashMap::new(),
                count: 0,
            }),
            limits: Cell::new(Limits::of(config)),
        }
    }

    /// Sets new limits. The next sweep closes connections that are too old, and connections beyond the limit
    /// for one destination. If the pool has too many connections for all destinations together, a connection
    /// is closed when it is put back.
    pub(crate) fn set_limits(&self, config: &UpstreamConfig) {
        self.limits.set(Limits::of(config));
    }

    /// Returns the most recently used connection to `to` that may still be used.
    pub(crate) fn take(&self, to: &Destination, now: Ticks) -> Option<Pooled<C>> {
        let limits = self.limits.get();
        let mut shelves = self.idle.borrow_mut();
        let shelf = shelves.by_destination.get_mut(to)?;
        let mut found = None;
        let mut taken = 0;
        while let Some(idle) = shelf.pop_back() {
            taken += 1;
            if limits.allow(&idle, now) {
                found = Some(Pooled {
                    connection: idle.connection,
                    born: idle.born,
                });
                break;
            }
        }
        if shelf.is_empty() {
            shelves.by_destination.remove(to);
        }
        shelves.count -= taken;
        found
    }

    /// Takes back a connection that can carry another request.
    pub(crate) fn put(&self, to: &Destination, pooled: Pooled<C>, now: Ticks) {
        let limits = self.limits.get();
        if now.since(pooled.born) > limits.age_max || limits.per_destination == 0 {
            return;
        }
        let mut shelves = self.idle.borrow_mut();
        if shelves.count >= limits.total {
            return;
        }
        shelves.count += 1;
        let shelf = match shelves.by_destination.get_mut(to) {
            Some(shelf) => shelf,
            None => shelves.by_destination.entry(to.clone()).or_default(),
        };
        shelf.push_back(Idle {
            connection: pooled.connection,
            born: pooled.born,
            since: now,
        });
    }

    /// Closes connections that are idle for too long or too old. Calls `rest` for the connections that have
    /// been idle for [`RESTING`], so that they free their buffers.
    pub(crate) fn sweep(&self, now: Ticks, rest: impl Fn(&mut C)) {
        let limits = self.limits.get();
        let mut shelves = self.idle.borrow_mut();
        let mut left = 0;
        let resting = Ticks::of(RESTING);
        shelves.by_destination.retain(|_, shelf| {
            shelf.retain(|idle| limits.allow(idle, now));
            // The connections that have been idle for the longest time are at the front.
            while shelf.len() > limits.per_destination
                && let Some(_) = shelf.pop_front_if(|idle| now.since(idle.since) >= resting)
            {
            }
            let idle = shelf.iter_mut();
            // The connections are ordered by the time of their last use, the earliest first. So the loop ends
            // at the first connection that has been idle for less than [`RESTING`].
            idle.take_while(|idle| now.since(idle.since) >= resting)
                .for_each(|idle| rest(&mut idle.connection));
            left += shelf.len();
            !shelf.is_empty()
        });
        shelves.count = left;
    }

    /// Closes all connections.
    pub(crate) fn clear(&self) {
        let mut shelves = self.idle.borrow_mut();
        shelves.by_destination.clear();
        shelves.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::destination::to;
    use crate::http::net::TICK;
    use foxy_tls::OriginTls;

    fn pool() -> Pool<u32> {
        Pool::new(&UpstreamConfig {
            idle_max: TICK * 10,
            age_max: TICK * 100,
            idle_per_destination: 2,
            idle_total: 3,
            ..UpstreamConfig::default()
        })
    }

    fn pooled(connection: u32, born: u64) -> Pooled<u32> {
        Pooled {
            connection,
            born: Ticks::at(born),
        }
    }

    #[test]
    fn the_last_used_comes_first_and_exemption_is_part_of_the_destination() {
        let pool = pool();
        pool.put(&to("a"), pooled(1, 0), Ticks::at(0));
        pool.put(&to("a"), pooled(2, 0), Ticks::at(1));
        let exempt = Destination {
            exempt: true,
            ..to("a")
        };
        assert!(pool.take(&exempt, Ticks::at(1)).is_none());
        assert_eq!(pool.take(&to("a"), Ticks::at(1)).unwrap().connection, 2);
        assert_eq!(pool.take(&to("a"), Ticks::at(1)).unwrap().connection, 1);
        assert!(pool.take(&to("a"), Ticks::at(1)).is_none());
    }

    #[test]
    fn connections_under_other_settings_of_tls_are_not_used() {
        let pool = pool();
        let under = |tls: Option<OriginTls>| Destination { tls, ..to("a") };
        let (one, other) = (OriginTls::system(), OriginTls::system());
        pool.put(&under(Some(one.clone())), pooled(1, 0), Ticks::at(0));
        assert!(pool.take(&under(None), Ticks::at(0)).is_none());
        assert!(pool.take(&under(Some(other)), Ticks::at(0)).is_none());
        assert!(pool.take(&under(Some(one)), Ticks::at(0)).is_some());
        pool.put(&under(None), pooled(2, 0), Ticks::at(0));
        assert!(
            pool.take(&under(Some(OriginTls::system())), Ticks::at(0))
                .is_none()
        );
    }

    #[test]
    fn idle_and_age_limits_hold_at_take_and_at_sweep() {
        let pool = pool();
        pool.put(&to("a"), pooled(1, 0), Ticks::at(0));
        assert!(pool.take(&to("a"), Ticks::at(12)).is_none());
        pool.put(&to("a"), pooled(2, 0), Ticks::at(102));
        assert!(pool.take(&to("a"), Ticks::at(102)).is_none(), "too old");
        pool.put(&to("a"), pooled(3, 0), Ticks::at(0));
        pool.sweep(Ticks::at(12), |_| {});
        assert_eq!(pool.idle.borrow().count, 0);
    }

    #[test]
    fn the_number_of_idle_connections_is_bounded() {
        let pool = pool();
        for n in 0..5 {
            pool.put(&to("a"), pooled(n, 0), Ticks::at(0));
        }
        assert_eq!(pool.idle.borrow().count, 3);
        assert_eq!(pool.take(&to("a"), Ticks::at(0)).unwrap().connection, 2);
        for n in 0..5 {
            pool.put(&to(&n.to_string()), pooled(n, 0), Ticks::at(0));
        }
        assert_eq!(pool.idle.borrow().count, 3);
    }

    #[test]
    fn other_limits_hold_for_connections_that_wait() {
        let pool = pool();
        pool.put(&to("a"), pooled(1, 0), Ticks::at(0));
        pool.put(&to("a"), pooled(2, 0), Ticks::at(0));
        pool.set_limits(&UpstreamConfig {
            idle_max: TICK * 2,
            idle_per_destination: 2,
            idle_total: 2,
            ..UpstreamConfig::default()
        });
        pool.put(&to("b"), pooled(3, 0), Ticks::at(0));
        assert!(pool.take(&to("b"), Ticks::at(0)).is_none(), "two at most");
        assert_eq!(pool.take(&to("a"), Ticks::at(3)).unwrap().connection, 2);
        assert!(
            pool.take(&to("a"), Ticks::at(4)).is_none(),
            "idle for too long"
        );
    }

    #[test]
    fn a_crowd_keeps_its_connections_for_a_second_and_then_those_it_may() {
        let pool = pool();
        let to = to("a");
        for n in 0..3 {
            pool.put(&to, pooled(n, 0), Ticks::at(n.into()));
        }
        pool.sweep(Ticks::at(4), |_| {});
        assert_eq!(pool.idle.borrow().count, 3);
        pool.sweep(Ticks::at(5), |_| {});
        let rest = || pool.take(&to, Ticks::at(5)).map(|one| one.connection);
        assert_eq!([rest(), rest(), rest()], [Some(2), Some(1), None]);
    }

    #[test]
    fn what_is_idle_for_a_while_rests_and_stays() {
        let pool = pool();
        let to = to("a");
        pool.put(&to, pooled(1, 0), Ticks::at(0));
        pool.put(&to, pooled(2, 0), Ticks::at(3));
        let rested = RefCell::new(Vec::new());
        let sweep = |at| {
            pool.sweep(Ticks::at(at), |n| rested.borrow_mut().push(*n));
            rested.take()
        };
        assert_eq!(sweep(4), [0; 0], "less than a second");
        assert_eq!(sweep(5), [1]);
        assert_eq!(sweep(8), [1, 2]);
        assert!(pool.take(&to, Ticks::at(8)).is_some());
    }
}
