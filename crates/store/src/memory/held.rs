//! Versions of large objects that requests are reading. When a segment is reused, the fragments of these
//! versions are kept, up to a limit. If the limit is too low for all versions, this file determines which
//! versions are kept.

use std::collections::HashSet;
use std::sync::Arc;

use foxy_base::KeyHash;
use foxy_format::fragment_hash;

use super::hold::{Hold, Holds};
use super::shards::Shards;

impl Holds {
    /// Returns the hashes of the fragments whose version a request is reading. This includes versions that
    /// are still the present versions of their keys. The bytes of a present version could be fetched again,
    /// but by then the origin may have another version, or may not support ranges. The returned fragments
    /// have at most `room` bytes together.
    pub(crate) fn fragments(&self, shards: &Shards, mut room: u64) -> HashSet<KeyHash> {
        let all = self.all().into_iter();
        let mut read: Vec<_> = all
            .filter_map(|hold| Some((hold.use_of(shards)?, hold.bytes, hold)))
            .collect();
        // Only a limited number of bytes may be kept, because a segment must become free. Versions that
        // cannot be fetched again come first. Within each kind, short versions come first, because more
        // versions then fit into the limit.
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
    /// Returns the kind of use of the version, or `None` if no request reads the version and only the
    /// head in memory refers to the hold.
    fn use_of(self: &Arc<Self>, shards: &Shards) -> Option<Use> {
        let shard = shards.of(self.hash).read();
        let head = shard.in_memory(self.hash);
        let Some(present) = head.filter(|head| head.meta().version == self.version) else {
            return Some(Use::Replaced);
        };
        // One reference to the head is in the shard. Two references to the hold exist even without a request:
        // one in that head, and `self`. Every further reference belongs to a request. (While the head waits
        // to be written, the shard may have two references to it. The version then counts as being read.)
        let read = Arc::strong_count(present) > 1 || Arc::strong_count(self) > 2;
        read.then_some(Use::Present)
    }
}

/// The kind of use of a version. The kind whose fragments are needed most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// A request is reading a version that memory does not show as the present version of the key. The
    /// version was probably replaced after the request came.
    Replaced,
    /// A request is reading the version that the key holds.
    Present,
}
