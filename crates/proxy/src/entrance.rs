//! The way in for connections while memory is spent: one after the other, and slowly. A connection
//! that waits here costs a socket and a small task; one that is served costs buffers too.

use std::time::Duration;

use foxy_base::MonoTime;
use tokio::sync::Mutex;

use crate::local::Local;

/// Longest time for which nobody enters. After that one connection enters per [`LOOK`]: it may be
/// refused, but it is not left without an answer.
const OVER: Duration = Duration::from_secs(1);
/// Time between two looks at the memory.
const LOOK: Duration = Duration::from_millis(10);
/// Clients with at most this many connections, or this part of what one client may have, do not
/// wait behind clients with more.
const FEW: usize = 16;
const FEW_PART: usize = 8;

/// The queues of one worker. Each holds the time since which its first connection has waited.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    few: Mutex<Option<MonoTime>>,
    many: Mutex<Option<MonoTime>>,
}

impl Entrance {
    /// Waits until a connection may be served; `number` is the count of its client's connections.
    /// The wait ends too when the proxy shuts down.
    pub(crate) async fn enter(&self, local: &Local, number: usize) {
        let ledger = &local.proxy.ledger;
        if !ledger.is_over() {
            return;
        }
        let few = FEW.max(ledger.connections_of_one() / FEW_PART);
        let queue = if number <= few { &self.few } else { &self.many };
        let mut waiting_since = queue.lock().await;
        while ledger.is_over() {
            let since = *waiting_since.get_or_insert_with(|| local.mono());
            local.shed();
            tokio::time::sleep(LOOK).await;
            if local.proxy.is_shutting_down() || local.mono().since(since) >= OVER {
                return;
            }
        }
        *waiting_since = None;
    }
}
