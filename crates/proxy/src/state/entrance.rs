//! Delays new connections while the connections that are being served use too much memory. During this time,
//! Foxy admits the new connections slowly. A waiting connection needs only a socket and a small task. A
//! served connection needs buffers too. If too many connections wait, the worker stops accepting connections.
//! Further connections then wait in the kernel's queue, or on the client's side if that queue is full.
//!
//! One task of each worker admits the waiting connections. At each check, it admits all connections for which
//! there is memory. If each admitted connection had to admit the next one instead, a busy worker would need
//! seconds for a long line (queue), and memory would stay free meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use foxy_base::MonoTime;
use tokio::sync::Notify;

use crate::state::local::Local;

/// Time of a shortage of memory after which [`LATE`] connections are admitted in each interval of [`LOOK`],
/// although memory is still short. Their requests may be refused, but the clients get answers.
const OVER: Duration = Duration::from_secs(1);
/// Time between two checks of the memory.
const LOOK: Duration = Duration::from_millis(10);
/// Number of accepted connections that a worker starts to serve in a row before the requests of other
/// connections are polled. If at most this number of further connections may wait, the worker starts with one
/// connection at a time.
pub(crate) const IN_A_ROW: usize = 16;
/// Number of connections that are admitted in each interval of [`LOOK`], when memory has been short for
/// [`OVER`].
const LATE: usize = 2;

/// The connections of one worker that wait to be served.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    line: RefCell<Line>,
    /// Number of waiting connections that may be admitted as replacements of served connections. It increases
    /// when a served connection ends while others wait, and decreases when waiting connections are admitted
    /// as replacements. Connections that Foxy closes to release memory must not be replaced. So Foxy
    /// subtracts them beforehand (see `withhold`), and the number can be negative.
    free: Cell<isize>,
    /// Time at which the present shortage of memory was first noticed.
    over_since: Cell<Option<MonoTime>>,
    /// Wakes the task that admits connections.
    arrived: Notify,
}

/// The waiting connections by their numbers, which are in the order of arrival. There are two queues: one for
/// clients with few connections, and one for clients with many connections. Connections are admitted from the
/// two queues in turn.
#[derive(Debug, Default)]
struct Line {
    few: BTreeMap<u64, Waker>,
    many: BTreeMap<u64, Waker>,
    last: u64,
    /// True if the next connection comes from `many`.
    turn_of_many: bool,
}

impl Line {
    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    fn queue(&mut self, is_few: bool) -> &mut BTreeMap<u64, Waker> {
        match is_few {
            true => &mut self.few,
            false => &mut self.many,
        }
    }

    /// Removes the connection that is admitted next.
    fn next(&mut self) -> Option<Waker> {
        let from_many = match (self.few.is_empty(), self.many.is_empty()) {
            (false, false) => self.turn_of_many,
            (no_few, _) => no_few,
        };
        self.turn_of_many = !from_many;
        self.queue(!from_many).pop_first().map(|(_, waker)| waker)
    }
}

/// A connection in the line. It leaves the line when it is admitted or dropped.
struct Place<'a> {
    entrance: &'a Entrance,
    number: u64,
    is_few: bool,
}

impl Place<'_> {
    /// Waits until the connection is admitted.
    async fn admitted(&self) {
        poll_fn(|cx| {
            let mut line = self.entrance.line.borrow_mut();
            match line.queue(self.is_few).get_mut(&self.number) {
                Some(waker) => {
                    waker.clone_from(cx.waker());
                    Poll::Pending
                }
                None => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut line = self.entrance.line.borrow_mut();
        line.queue(self.is_few).remove(&self.number);
        drop(line);
        self.entrance.forget_free();
    }
}

impl Entrance {
    /// True if a new connection must wait: memory is short, or other connections wait already.
    #[inline]
    pub(crate) fn must_wait(&self, local: &Local) -> bool {
        let is_over = local.proxy.ledger.is_over();
        if !is_over {
            self.over_since.set(None);
        }
        is_over || self.waiting() > 0
    }

    /// Waits until a new connection that [must wait](Self::must_wait) may be served. `connections` is the
    /// number of connections of the client. The wait also ends when the proxy shuts down. Cancel safe.
    pub(crate) async fn enter(&self, local: &Local, connections: usize) {
        let is_few = connections <= local.proxy.ledger.few();
        let place = self.join(is_few);
        self.arrived.notify_one();
        place.admitted().await;
    }

    fn join(&self, is_few: bool) -> Place<'_> {
        let mut line = self.line.borrow_mut();
        line.last += 1;
        let number = line.last;
        line.queue(is_few).insert(number, Waker::noop().clone());
        Place {
            entrance: self,
            number,
            is_few,
        }
    }

    /// Admits connections as long as the worker runs.
    pub(crate) async fn run(local: Rc<Local>) {
        loop {
            local.entrance.arrived.notified().await;
            while local.entrance.waiting() > 0 {
                local.entrance.look(&local);
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// Admits the connections that may be served now. If others must wait, closes served connections that are
    /// not needed. Waiting connections can replace them at the next check.
    fn look(&self, local: &Local) {
        if local.proxy.is_shutting_down() {
            self.admit(usize::MAX);
            return;
        }
        if let Some(room) = local.proxy.ledger.entrance_room(local.proxy.workers()) {
            self.over_since.set(None);
            self.free.set(0);
            self.admit(room.max(1));
            return;
        }
        let now = local.mono();
        let since = self.over_since.get().unwrap_or(now);
        self.over_since.set(Some(since));
        let late = match now.since(since) >= OVER {
            true => LATE,
            false => 0,
        };
        let free = self.free.get();
        self.free.set(free.min(0));
        self.admit(usize::try_from(free).unwrap_or(0).max(late));
        local.shed_for(self.waiting());
    }

    /// Admits the first connections of the line, at most `most`.
    fn admit(&self, most: usize) {
        let mut line = self.line.borrow_mut();
        for _ in 0..most {
            match line.next() {
                Some(waker) => waker.wake(),
                None => break,
            }
        }
        drop(line);
        self.forget_free();
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
        if self.waiting() > 0 {
            self.free.set(self.free.get().saturating_add(connections));
        }
    }

    /// If no connection waits, resets the number of replacements to 0.
    fn forget_free(&self) {
        if self.waiting() == 0 {
            self.free.set(0);
        }
    }

    /// Returns true if the number of waiting connections is at least half of the largest permitted number.
    /// In this case, the callers close two kinds of connections after the present answer: new connections,
    /// and connections that have carried many requests. So waiting connections can be admitted.
    #[inline]
    pub(crate) fn is_crowded(&self, local: &Local) -> bool {
        let waiting = self.waiting();
        waiting > 0 && waiting >= most_waiting(local) / 2
    }

    /// Returns the number of connections that wait to be served.
    pub(crate) fn waiting(&self) -> usize {
        self.line.borrow().len()
    }

    /// Counts one more waiting connection until the result is dropped.
    #[cfg(test)]
    pub(crate) fn count_waiting(&self) -> impl Drop {
        self.join(true)
    }

    /// Returns the number of waiting connections that may be admitted as replacements.
    #[cfg(test)]
    pub(crate) const fn free(&self) -> isize {
        self.free.get()
    }

    /// Waits until the number of waiting connections is below its limit. Cancel safe.
    pub(crate) async fn room(&self, local: &Local) {
        if self.waiting() + IN_A_ROW >= most_waiting(local) && self.must_wait(local) {
            // The tasks of the connections that were accepted earlier run first. They enter the line, so that
            // these connections are counted.
            tokio::task::yield_now().await;
        }
        while self.waiting() >= most_waiting(local) && !local.proxy.is_shutting_down() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Returns the largest number of connections that may wait in one worker.
fn most_waiting(local: &Local) -> usize {
    local.proxy.ledger.waiting_max(local.proxy.workers())
}

#[cfg(test)]
mod tests;
