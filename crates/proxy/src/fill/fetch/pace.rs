//! Lets fetches wait while a store is congested. A congested store may soon have no memory for new objects,
//! and would then not store them. A short wait gives the store time to write.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::state::local::Local;

/// Time between two checks of the stores.
const LOOK: Duration = Duration::from_millis(2);
/// Longest wait of a body that is not longer than a fragment.
const SHORT: Duration = Duration::from_millis(20);
/// Longest total wait of a longer body.
const LONG: Duration = Duration::from_secs(2);

/// Time that one fill has waited for the stores.
#[derive(Debug)]
pub(crate) struct Pace {
    begun: Instant,
    waited: Duration,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            waited: Duration::ZERO,
        }
    }

    /// Waits while the stores are congested, before more of a long body is read. All waits together take at
    /// most as long as the rest of the transfer. This limit is at least [`SHORT`] and at most [`LONG`].
    /// So a slow disk does not slow clients down for long.
    pub(crate) async fn between_pieces(&mut self, local: &Local) {
        while local.proxy.engine.is_congested() {
            let own = self.begun.elapsed().saturating_sub(self.waited);
            if self.waited >= own.clamp(SHORT, LONG) {
                return;
            }
            self.wait().await;
        }
    }

    /// Waits while the stores are congested, before a short body is put into them.
    pub(crate) async fn before_put(&mut self, local: &Local) {
        while local.proxy.engine.is_congested() && self.waited < SHORT {
            self.wait().await;
        }
    }

    async fn wait(&mut self) {
        let now = Instant::now();
        sleep(LOOK).await;
        self.waited += now.elapsed();
    }
}
