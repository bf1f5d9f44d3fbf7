//! The versions of large objects that are read at the moment, in the order in which reuse keeps them.

use std::collections::HashSet;
use std::sync::Arc;

use foxy_base::KeyHash;
use foxy_format::fragment_hash;

use super::hold::{Hold, Holds};
use super::shards::Shards;

impl Holds {
    /// The fragments of versions that somebody is reading. This includes present versions: their
    /// missing bytes could be fetched again, but the origin may have another version by then, or not
    /// give ranges. Together they are no more than `room` bytes.
    pub(crate) fn fragments(&self, shards: &Shards, mut room: u64) -> HashSet<KeyHash> {
        let all = self.all().into_iter();
        let mut read: Vec<_> = all
            .filter_map(|hold| Some((hold.use_of(shards)?, hold.bytes, hold)))
            .collect();
        // Reuse must get on, so the room is limited. Versions that cannot be fetched again come
        // first, then short ones, because that serves most readers.
        read.sort_by_key(|(how, bytes, hold)| (*how, *bytes, hold.version));
        read.retain(|(_, bytes, _)| {
            let left = room.checked_sub(*bytes);
            room = left.unwrap_or(room);
            left.is_some()
        });
        let of = |hold: &Arc<Hold>| {
            let (hash, version) = (hold.hash, hold.version);
            (0..hold.fragments).map(move |n| fragment_hash(hash, version, n))
        };
        read.iter().flat_map(|(.., hold)| of(hold)).collect()
    }
}

impl Hold {
    /// Returns the use of the version; `None` if only the memory that has its head needs it.
    fn use_of(self: &Arc<Self>, shards: &Shards) -> Option<Use> {
        let shard = shards.of(self.hash).read();
        let head = shard.in_memory(self.hash);
        let Some(present) = head.filter(|head| head.meta().version == self.version) else {
            return Some(Use::Replaced);
        };
        // Counts beyond the reference in the shard, and beyond the hold in that head and `self`.
        let read = Arc::strong_count(present) > 1 || Arc::strong_count(self) > 2;
        read.then_some(Use::Present)
    }
}

/// The readers of a version, in order of need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// Requests that came before it was replaced, as far as memory tells.
    Replaced,
    /// Requests for what the key holds.
    Present,
}
