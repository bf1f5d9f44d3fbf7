//! The choice of the fill that fetches missing bytes of a large object. If a running fill will fetch a byte,
//! requests wait for that fill and do not fetch the byte again.

use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{KeyHash, rule};

use super::{End, Fill, FillMap, FillWriter, Follower, State};

/// The range of bytes that a fill fetches for a large object whose head (fields and length) is already
/// stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cover {
    /// Hash of the key of the object.
    pub(crate) hash: KeyHash,
    /// Version of the object.
    pub(crate) version: u64,
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Offset after the last byte.
    pub(crate) end: u64,
    /// True if the body continues after `end`, but another fill fetches the rest.
    pub(crate) continues: bool,
    /// True if the fill may stop early, because range requests can fetch the rest.
    pub(crate) divisible: bool,
}

/// A request for bytes of a large object that are not stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GapWanted<'a> {
    /// The cache key of the object, and its hash.
    pub(crate) key: &'a Bytes,
    pub(crate) hash: KeyHash,
    /// Hash of the primary key.
    pub(crate) base: KeyHash,
    pub(crate) version: u64,
    /// Offset of the first byte needed. `until` is the offset after the last byte.
    pub(crate) at: u64,
    pub(crate) until: u64,
    /// Size of a fragment in bytes.
    pub(crate) unit: u64,
}

/// The result of a search for a fill that fetches a missing byte.
#[derive(Debug)]
pub(crate) enum Gap<H> {
    /// A running fill fetches the byte.
    Follows(Follower<H>),
    /// A new fill. It begins with the fragment that contains the byte. It ends before the first later
    /// fragment that is stored, that another fill fetches, or that the request does not need. It fetches at
    /// most [`RUN_MAX`] bytes.
    Starts(FillWriter<H>, Follower<H>, Cover),
}

/// Largest distance in bytes between the position of a running fill and the bytes of a request that waits for
/// this fill. If the wanted bytes are further ahead, and range requests can fetch the rest of the body
/// ([`Cover::divisible`]), the request does not wait for this fill.
const FAR: u64 = 4 << 20;
/// Largest number of missing bytes that one new fill fetches.
const RUN_MAX: u64 = 256 << 20;

impl<H> State<H> {
    /// Returns true if a follower can begin at offset `at`: the window has the byte, or the fill will fetch
    /// it.
    pub(super) fn can_follow(&self, at: u64) -> bool {
        let comes = match self.end {
            None => self.cover.is_none_or(|cover| at < cover.end),
            Some(End::Complete(_)) => at <= self.window.end(),
            Some(End::Stopped | End::Failed(_)) => at < self.window.end(),
        };
        comes && at >= self.window.base()
    }
}

impl<H> Fill<H> {
    fn follow(self: &Arc<Self>, wanted: &GapWanted<'_>) -> Option<Follower<H>> {
        let mut state = self.state.lock();
        let cover = state.cover?;
        let same = rule!(
            "fill: bytes come from a fetch of the same version",
            cover.hash == wanted.hash && cover.version == wanted.version,
            true
        );
        let inside = cover.start <= wanted.at && wanted.at < cover.end;
        let spent = state.end.is_some() && wanted.at >= state.window.end();
        if !same || !inside || spent || !state.can_follow(wanted.at) {
            return None;
        }
        let first = wanted.at - wanted.at % wanted.unit;
        if cover.divisible && first > state.window.end().saturating_add(FAR) {
            // From now on, the running fill ends at `first`. Another fill fetches the bytes from `first` on
            // for the request.
            state.cover = Some(Cover {
                end: first,
                continues: true,
                ..cover
            });
            return None;
        }
        let id = state.enter(wanted.at);
        drop(state);
        Some(Follower::joining(Arc::clone(self), id, false))
    }

    /// Returns the offset at which this fill begins to fetch bytes of the wanted object, if this offset is
    /// after `wanted.at`.
    fn begins_after(&self, wanted: &GapWanted<'_>) -> Option<u64> {
        let state = self.state.lock();
        let cover = state.cover.filter(|_| state.end.is_none())?;
        let same = cover.hash == wanted.hash && cover.version == wanted.version;
        (same && cover.start > wanted.at).then_some(cover.start)
    }
}

impl<H> FillMap<H> {
    /// Returns true if a running fill will fetch the byte at `wanted.at`, or has it in memory.
    pub(crate) fn brings(&self, wanted: &GapWanted<'_>) -> bool {
        let same = |cover: &Cover| {
            cover.hash == wanted.hash
                && cover.version == wanted.version
                && (cover.start..cover.end).contains(&wanted.at)
        };
        self.of(wanted.base).iter().any(|fill| {
            let state = fill.state.lock();
            state.cover.as_ref().is_some_and(same) && state.can_follow(wanted.at)
        })
    }

    /// Returns a follower of a running fill that fetches the byte at `wanted.at`; `None` if there is no such
    /// fill.
    pub(crate) fn bringing(&self, wanted: &GapWanted<'_>) -> Option<Follower<H>> {
        let fills = self.of(wanted.base);
        fills.iter().find_map(|fill| fill.follow(wanted))
    }

    /// Returns a fill for the byte at `wanted.at`: a running fill, or a new one. A new fill fetches
    /// consecutive fragments for which `absent` returns true. The fragment with the byte itself is known to
    /// be missing, so `absent` is not called for it.
    pub(crate) fn gap(&self, wanted: &GapWanted<'_>, absent: impl Fn(u32) -> bool) -> Gap<H> {
        let mut shard = self.shard(wanted.base).lock();
        let running = &mut shard.by_base.entry(wanted.base).or_default().fills;
        if let Some(follower) = running.iter().find_map(|fill| fill.follow(wanted)) {
            return Gap::Follows(follower);
        }
        let start = wanted.at - wanted.at % wanted.unit;
        let next = running.iter().filter_map(|fill| fill.begins_after(wanted));
        let limit = next
            .chain([wanted.until.next_multiple_of(wanted.unit), start + RUN_MAX])
            .min()
            .unwrap_or(wanted.until);
        let mut end = start + wanted.unit;
        while end < limit && absent(u32::try_from(end / wanted.unit).unwrap_or(u32::MAX)) {
            end += wanted.unit;
        }
        let (writer, follower) = Fill::start(wanted.hash, wanted.key.clone(), wanted.base);
        let cover = Cover {
            hash: wanted.hash,
            version: wanted.version,
            start,
            end,
            continues: false,
            divisible: true,
        };
        writer.begin(start, Some(cover));
        follower.resume(wanted.at);
        running.push(Arc::clone(writer.fill()));
        self.judge(writer.fill());
        Gap::Starts(writer, follower, cover)
    }
}
