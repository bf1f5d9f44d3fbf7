//! Files longer than half a cluster of the store. They are written in parts, and found as one file.

use std::sync::Arc;

use foxy_store::{DropReason, NewLarge, NewObject, Put};

use crate::library::Inner;
use crate::write::NOMEM;

/// Largest number of attempts to write a long file. An attempt fails if other files take the memory for which
/// this file waited.
const ATTEMPTS: u32 = 8;

impl Inner {
    /// Stores a long file. Lookups find the older file of the name until the last part is stored.
    pub(crate) fn put_long(self: &Arc<Self>, new: &NewObject) -> Put {
        let mut attempt = 1;
        loop {
            let large = self
                .engine
                .put_large(NewLarge::of(new, Some(new.body.len() as u64)));
            let mut large = if new.meta.flags & NOMEM != 0 {
                large.past_memory()
            } else {
                large
            };
            for part in new.body.chunks(self.engine.fragment_bytes() as usize) {
                self.wait_for_room();
                if !large.append(part) {
                    break;
                }
            }
            if attempt < ATTEMPTS && large.dropped() == Some(DropReason::PendingFull) {
                attempt += 1;
                continue;
            }
            let _held = self.names.hold(new.hash);
            return large.finish();
        }
    }
}
