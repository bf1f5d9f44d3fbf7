//! The memory of one fill, and the window that it keeps for its followers.

use foxy_base::rule;

use super::FillHead;
use crate::fill::Fill;
use crate::ledger::{Entry, Use};
use crate::local::Local;

/// A window where there is no memory for fragments.
const SMALL_WINDOW: usize = 64 << 10;
/// A window where there is no memory for that either.
const LEAST_WINDOW: usize = 16 << 10;
/// Estimated bytes of a long body that wait in the kernel, where the system chooses the queue's length.
const RECEIVE: usize = 64 << 10;

/// Memory of a fill.
#[derive(Debug)]
pub(super) struct Space {
    memory: Entry,
    window: usize,
}

impl Space {
    /// No memory, and no window.
    pub(super) fn none(local: &Local) -> Self {
        Self {
            memory: local.proxy.ledger.empty(Use::Fills),
            window: 0,
        }
    }

    /// Bytes that the fill keeps for its followers; `usize::MAX` while all are kept anyway.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// From now on all bytes are kept, and [`grow`](Self::grow) enters them.
    pub(super) fn keep_all(&mut self) {
        self.window = usize::MAX;
    }

    /// Enters further bytes; false, and nothing is entered, if there is no room.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        self.memory.grow(bytes)
    }

    /// From now on only a window is kept. Returns whether there is memory for fragments too.
    pub(super) fn open_window(&mut self, local: &Local, fill: &Fill<FillHead>) -> bool {
        let config = local.proxy.config.fill.window;
        // One fragment is gathered for the store; another one is kept readable until the store has it.
        let fragment = local.proxy.engine.fragment_bytes() as usize;
        let ahead = local.proxy.ledger.receive_bytes().unwrap_or(RECEIVE);
        let want = config.max(fragment) + fragment + ahead;
        if self.resize(want) {
            self.window = config;
            return true;
        }
        if rule!(
            "fetch: what several requests share is stored before what one request wants",
            fill.is_shared(),
            false
        ) && let Some(memory) = local.proxy.ledger.reserve(Use::SharedFills, want)
        {
            self.memory = memory;
            self.window = config;
            return true;
        }
        self.window = SMALL_WINDOW.min(config);
        if !self.resize(self.window + ahead) {
            self.window = LEAST_WINDOW.min(config);
            self.memory.set(self.window + ahead);
        }
        false
    }

    /// Has `want` bytes from now on; false, with at most that many, if there is no room for them.
    fn resize(&mut self, want: usize) -> bool {
        self.memory.shrink_to(want);
        self.memory.grow(want - self.memory.bytes())
    }
}

#[cfg(test)]
mod tests {
    use foxy_base::key_hash;

    use super::*;
    use crate::testing::with_worker;

    /// Windows of fills that nobody else wants, until there is no memory.
    #[test]
    fn windows_get_smaller_as_memory_of_fills_is_used() {
        with_worker(8 << 20, |local| async move {
            let hash = key_hash(b"k");
            let (writer, _follower) = local.proxy.fills.alone(hash, b"k", hash);
            let config = local.proxy.config.fill.window;
            let mut spaces = Vec::new();
            let mut seen = vec![(config, true)];
            while seen.last() != Some(&(LEAST_WINDOW, false)) {
                let mut space = Space::none(&local);
                let stored = space.open_window(&local, writer.fill());
                seen.push((space.window(), stored));
                spaces.push(space);
                assert!(local.proxy.fill_bytes() < 4 << 20);
            }
            seen.dedup();
            assert_eq!(
                seen,
                [(config, true), (SMALL_WINDOW, false), (LEAST_WINDOW, false)]
            );
            local.proxy.fills.leave(writer.fill());
        });
    }
}
