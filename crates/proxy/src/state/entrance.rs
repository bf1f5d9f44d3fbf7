//! Delays new connections while the connections that are being served use too much memory. During this time,
//! Foxy admits the new connections slowly, one after the other. A waiting connection needs only a socket and
//! a small task. A served connection needs buffers too. If too many connections wait, the worker stops
//! accepting connections. Further connections then wait in the kernel's queue, or on the client's side if
//! that queue is full.

use std::cell::Cell;
use std::time::Duration;

use foxy_base::MonoTime;
use tokio::sync::Mutex;

use crate::state::local::Local;

/// Time for which connections wait while no memory becomes free. After this time, one connection is admitted
/// in each interval of [`LOOK`]. Its request may be refused, but the client gets an answer.
const OVER: Duration = Duration::from_secs(1);
/// Time between two checks of the memory.
const LOOK: Duration = Duration::from_millis(10);

/// The queues of one worker: one for clients with few connections, and one for clients with many. A queue is
/// a lock, for which the connections wait in the order of their arrival. It contains the time since which its
/// connections have waited for memory.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    few: Mutex<Option<MonoTime>>,
    many: Mutex<Option<MonoTime>>,
    /// Number of connections in both queues.
    waiting: Cell<usize>,
    /// Number of waiting connections that may be admitted as replacements. It increases when a served
    /// connection ends while others wait, and decreases when a waiting connection is admitted as a
    /// replacement. Connections that Foxy closes to release memory must not be replaced. So Foxy subtracts
    /// them beforehand (see `withhold`), and the number can be negative.
    free: Cell<isize>,
}

impl Entrance {
    /// Waits until a new connection may be served. `connections` is the number of connections of the client.
    /// The wait also ends when the proxy shuts down.
    pub(crate) async fn enter(&self, local: &Local, connections: usize) {
        let ledger = &local.proxy.ledger;
        if !ledger.is_over() {
            return;
        }
        let _waiting = Waiting::at(self);
        let queue = match connections <= ledger.few() {
            true => &self.few,
            false => &self.many,
        };
        let mut waiting_since = queue.lock().await;
        while ledger.is_over() {
            let since = *waiting_since.get_or_insert_with(|| local.mono());
            if self.replaces_ended(local) {
                return;
            }
            tokio::time::sleep(LOOK).await;
            if local.proxy.is_shutting_down() || local.mono().since(since) >= OVER {
                return;
            }
        }
        *waiting_since = None;
        self.free.set(0);
    }

    /// Returns true if the waiting connection may replace a served connection that has ended. If there is no
    /// such served connection, closes served connections that are not needed, and returns false. Waiting
    /// connections can replace them at the next check.
    fn replaces_ended(&self, local: &Local) -> bool {
        let free = self.free.get();
        if free <= 0 {
            local.shed_for(self.waiting.get());
            return false;
        }
        self.free.set(free - 1);
        true
    }

    /// Notes that a served connection has ended, so that a waiting connection may replace it.
    pub(crate) fn leave(&self) {
        self.add_free(1);
    }

    /// Notes that Foxy is about to close this number of connections to release memory. Waiting connections
    /// may not replace them.
    pub(crate) fn withhold(&self, connections: usize) {
        self.add_free(-isize::try_from(connections).unwrap_or(isize::MAX));
    }

    fn add_free(&self, connections: isize) {
        if self.waiting.get() > 0 {
            self.free.set(self.free.get().saturating_add(connections));
        }
    }

    /// Returns true if the number of waiting connections is at least half of the largest permitted number.
    /// The callers then end new connections after their first answer, and connections that have carried many
    /// requests after their present answer, so that waiting connections can be admitted.
    #[inline]
    pub(crate) fn is_crowded(&self, local: &Local) -> bool {
        let waiting = self.waiting.get();
        waiting > 0 && waiting >= most_waiting(local) / 2
    }

    /// Returns the number of connections that wait to be served.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Counts one more waiting connection until the result is dropped.
    #[cfg(test)]
    pub(crate) fn count_waiting(&self) -> impl Drop {
        Waiting::at(self)
    }

    /// Waits until the number of waiting connections is below its limit. Cancel safe.
    pub(crate) async fn room(&self, local: &Local) {
        if !local.proxy.ledger.is_over() {
            return;
        }
        // First lets the tasks of the connections run that were accepted earlier. These tasks count their
        // connections as waiting.
        tokio::task::yield_now().await;
        while self.waiting.get() >= most_waiting(local) && !local.proxy.is_shutting_down() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Returns the largest number of connections that may wait in one worker.
fn most_waiting(local: &Local) -> usize {
    local.proxy.ledger.waiting_max(local.proxy.workers())
}

/// Counts a waiting connection until this guard is dropped.
struct Waiting<'a>(&'a Entrance);

impl<'a> Waiting<'a> {
    fn at(entrance: &'a Entrance) -> Self {
        entrance.waiting.set(entrance.waiting.get() + 1);
        Self(entrance)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Entrance { waiting, free, .. } = self.0;
        waiting.set(waiting.get() - 1);
        if waiting.get() == 0 {
            free.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_connections_are_counted_while_connections_wait() {
        let entrance = Entrance::default();
        entrance.leave();
        assert_eq!(entrance.free.get(), 0, "no connection waits");
        let first = Waiting::at(&entrance);
        let second = Waiting::at(&entrance);
        entrance.leave();
        entrance.leave();
        assert_eq!(entrance.free.get(), 2);
        drop(first);
        entrance.withhold(3);
        assert_eq!(entrance.free.get(), -1);
        entrance.leave();
        entrance.leave();
        assert_eq!(entrance.free.get(), 1, "two ends, one of them withheld");
        drop(second);
        assert_eq!(
            entrance.free.get(),
            0,
            "connections of the past are not kept"
        );
        entrance.withhold(1);
        assert_eq!(entrance.free.get(), 0);
    }
}
