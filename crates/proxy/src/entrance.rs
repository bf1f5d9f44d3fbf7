//! The way in for connections while memory is spent: one after the other, and slowly. A connection that
//! waits here costs a socket and a small task; one that is served costs buffers too. Once as many
//! connections wait as there is memory for, the worker accepts no more: further ones wait in the kernel's
//! queue, or on the client's side if that queue is full.

use std::cell::Cell;
use std::time::Duration;

use foxy_base::MonoTime;
use tokio::sync::Mutex;

use crate::local::Local;

/// While memory stays spent for longer than this, one connection enters per [`LOOK`]: it may be
/// refused, but it is not left without an answer.
const OVER: Duration = Duration::from_secs(1);
/// Time between two looks at the memory.
const LOOK: Duration = Duration::from_millis(10);

/// The queues of one worker. Each holds the time since which memory has been spent for it.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    few: Mutex<Option<MonoTime>>,
    many: Mutex<Option<MonoTime>>,
    /// Connections in both queues.
    waiting: Cell<usize>,
    /// Connections that were closed for others, less those that have entered in their place.
    closed: Cell<usize>,
}

impl Entrance {
    /// Waits until a connection may be served; `connections` is the number of connections of its client.
    /// The wait also ends when the proxy shuts down.
    pub(crate) async fn enter(&self, local: &Local, connections: usize) {
        let ledger = &local.proxy.ledger;
        if !ledger.is_over() {
            return;
        }
        let _waiting = Waiting::new(&self.waiting);
        let queue = match connections <= ledger.few() {
            true => &self.few,
            false => &self.many,
        };
        let mut waiting_since = queue.lock().await;
        while ledger.is_over() {
            let since = *waiting_since.get_or_insert_with(|| local.mono());
            if self.takes_place(local) {
                return;
            }
            tokio::time::sleep(LOOK).await;
            if local.proxy.is_shutting_down() || local.mono().since(since) >= OVER {
                return;
            }
        }
        *waiting_since = None;
        self.closed.set(0);
    }

    /// Takes the place of a connection that was closed for others. If no such place is left, closes more
    /// connections; false if none can be closed.
    fn takes_place(&self, local: &Local) -> bool {
        if self.closed.get() == 0 {
            self.closed.set(local.shed());
        }
        let left = self.closed.get().checked_sub(1);
        left.inspect(|left| self.closed.set(*left)).is_some()
    }

    /// Connections that wait here.
    pub(crate) const fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Waits until one more connection may wait here. Cancel safe.
    pub(crate) async fn room(&self, local: &Local) {
        if !local.proxy.ledger.is_over() {
            return;
        }
        // Lets the connections that were accepted before count themselves first.
        tokio::task::yield_now().await;
        let most = || local.proxy.ledger.waiting_max(local.proxy.workers());
        while self.waiting.get() >= most() && !local.proxy.is_shutting_down() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Counts a waiting connection, until it is dropped.
struct Waiting<'a>(&'a Cell<usize>);

impl<'a> Waiting<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
