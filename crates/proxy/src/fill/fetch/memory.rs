//! The memory of one fill (a fetch), and its window: the bytes of the body that it keeps in memory for its
//! followers (the requests that share the fetch).

use foxy_base::rule;

use super::FillHead;
use crate::fill::Fill;
use crate::state::ledger::{Entry, Use};
use crate::state::local::Local;

/// Size of a small window in bytes. A fill gets it if there is no memory for a window of the configured size.
/// A fill that stores its body also gets it if there is no memory for the fragments that are being stored.
const SMALL_WINDOW: usize = 64 << 10;
/// Size of a window in bytes, if there is no memory for [`SMALL_WINDOW`] either.
const LEAST_WINDOW: usize = 16 << 10;
/// Estimated bytes of a long body in the kernel's receive queue, if the system chooses the length of this
/// queue.
const RECEIVE: usize = 64 << 10;

/// The memory of a fill: its entry in the ledger (the count of the memory for requests), and its window.
#[derive(Debug)]
pub(super) struct FillMemory {
    memory: Entry,
    window: usize,
}

impl FillMemory {
    /// Returns the memory of a fill that has neither memory nor a window yet.
    pub(super) fn none(local: &Local) -> Self {
        Self {
            memory: local.proxy.ledger.empty(Use::Fills),
            window: 0,
        }
    }

    /// Returns the number of bytes that the fill keeps for its followers; `usize::MAX` while it keeps all
    /// bytes.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    /// Keeps all bytes of the body from now on. The caller must enter them in the ledger by
    /// [`grow`](Self::grow) when they arrive.
    pub(super) fn keep_all(&mut self) {
        self.window = usize::MAX;
    }

    /// Adds a number of bytes to the ledger entry. If there is no memory for them, leaves the entry unchanged
    /// and returns false.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        self.memory.grow(bytes)
    }

    /// Keeps a window from now on, and the fragments that are being stored. Returns true if there is memory
    /// for the fragments. Otherwise only a window is kept.
    pub(super) fn open_stored(&mut self, local: &Local, fill: &Fill<FillHead>) -> bool {
        // The bytes of one fragment are collected for the store. Until this fragment is complete, followers
        // that read from the store get its bytes from the window. So the window is at least as long as a
        // fragment.
        let fragment = local.proxy.engine.fragment_bytes() as usize;
        let window = local.proxy.config.fill.window.max(fragment);
        let want = window + fragment + ahead(local);
        if self.resize(want) {
            self.window = window;
            return true;
        }
        if rule!(
            "fetch: what several requests share is stored before what one request wants",
            fill.is_shared(),
            false
        ) && let Some(memory) = local.proxy.ledger.reserve(Use::SharedFills, want)
        {
            self.memory = memory;
            self.window = window;
            return true;
        }
        if !fill.is_shared() {
            fill.turn_away();
        }
        self.open_small(local);
        false
    }

    /// Keeps only a window from now on: the body is not stored.
    pub(super) fn open_window(&mut self, local: &Local) {
        let window = local.proxy.config.fill.window;
        if self.resize(window + ahead(local)) {
            self.window = window;
        } else {
            self.open_small(local);
        }
    }

    /// Opens a small window. If there is no memory for a small window, opens the smallest window in any case.
    fn open_small(&mut self, local: &Local) {
        let (most, ahead) = (local.proxy.config.fill.window, ahead(local));
        self.window = SMALL_WINDOW.min(most);
        if !self.resize(self.window + ahead) {
            self.window = LEAST_WINDOW.min(most);
            self.memory.set(self.window + ahead);
        }
    }

    /// Sets the entry to `want` bytes. If there is no memory for a larger entry, leaves the entry unchanged
    /// and returns false.
    fn resize(&mut self, want: usize) -> bool {
        self.memory.shrink_to(want);
        self.memory.grow(want - self.memory.bytes())
    }
}

/// Returns the number of body bytes that the kernel may have received and the fill has not read yet.
fn ahead(local: &Local) -> usize {
    local.proxy.ledger.receive_bytes().unwrap_or(RECEIVE)
}

#[cfg(test)]
mod tests {
    use foxy_base::key_hash;

    use super::*;
    use crate::fill::Joined;
    use crate::testing::with_worker;

    const MEMORY: usize = 32 << 20;

    /// Calls `open` for new fills until a fill gets the smallest window. Returns the window of each fill and
    /// the result of `open`, in order and without repetitions.
    fn opened(local: &Local, mut open: impl FnMut(&mut FillMemory) -> bool) -> Vec<(usize, bool)> {
        let mut fills = Vec::new();
        let mut seen = Vec::new();
        while seen.last() != Some(&(LEAST_WINDOW, false)) {
            let mut fill = FillMemory::none(local);
            let stored = open(&mut fill);
            seen.push((fill.window(), stored));
            fills.push(fill);
            assert!(local.proxy.fill_bytes() < MEMORY / 2, "{seen:?}");
        }
        seen.dedup();
        seen
    }

    #[test]
    fn windows_get_smaller_as_memory_of_fills_is_used() {
        with_worker(MEMORY, |local| async move {
            let hash = key_hash(b"k");
            let (writer, _follower) = local.proxy.fills.uncollapsed(hash, b"k", hash);
            let config = local.proxy.config.fill.window;
            let (small, least) = ((SMALL_WINDOW, false), (LEAST_WINDOW, false));
            let stored = opened(&local, |fill| fill.open_stored(&local, writer.fill()));
            assert_eq!(stored, [(config, true), small, least]);
            let passed = opened(&local, |fill| {
                fill.open_window(&local);
                false
            });
            assert_eq!(passed, [(config, false), small, least]);
            local.proxy.fills.leave(writer.fill());
        });
    }

    /// Only one request follows the fill. Other fills use all of the memory that fills with one request may
    /// use.
    #[test]
    fn a_fill_without_memory_to_store_takes_nobody_in() {
        with_worker(MEMORY, |local| async move {
            let hash = key_hash(b"k");
            let fills = &local.proxy.fills;
            let Joined::Starts(first, _one) = fills.join(hash, b"k", hash) else {
                panic!("nothing was running");
            };
            let _others = local.proxy.ledger.take(Use::Fills, MEMORY);
            let mut poor = FillMemory::none(&local);
            assert!(!poor.open_stored(&local, first.fill()));
            let Joined::Starts(next, _two) = fills.join(hash, b"k", hash) else {
                panic!("the first one is not stored");
            };
            let mut shared = FillMemory::none(&local);
            assert!(shared.open_stored(&local, next.fill()));
            let _shared = local.proxy.ledger.take(Use::SharedFills, MEMORY);
            assert!(!FillMemory::none(&local).open_stored(&local, next.fill()));
            let third = fills.join(hash, b"k", hash);
            assert!(matches!(third, Joined::Follows(_)), "not one fetch each");
            fills.leave(first.fill());
            fills.leave(next.fill());
        });
    }

    /// Several requests follow the fill. Other fills use all of the memory that fills with one request may
    /// use.
    #[test]
    fn memory_for_shared_fills_is_for_those_that_are_stored() {
        with_worker(MEMORY, |local| async move {
            let hash = key_hash(b"k");
            let Joined::Starts(writer, _first) = local.proxy.fills.join(hash, b"k", hash) else {
                panic!("nothing was running");
            };
            let Joined::Follows(_second) = local.proxy.fills.join(hash, b"k", hash) else {
                panic!("it can be joined");
            };
            let ledger = &local.proxy.ledger;
            let _others = ledger.take(Use::Fills, MEMORY);
            let mut passed = FillMemory::none(&local);
            passed.open_window(&local);
            assert_eq!(
                (passed.window(), ledger.used(Use::SharedFills)),
                (LEAST_WINDOW, 0)
            );
            let mut stored = FillMemory::none(&local);
            assert!(stored.open_stored(&local, writer.fill()));
            assert!(ledger.used(Use::SharedFills) > 0);
            local.proxy.fills.leave(writer.fill());
        });
    }
}
