//! The rule for who fetches which bytes of a large object: a byte that a running fill will bring is
//! waited for, not fetched again.

use std::sync::Arc;

use bytes::Bytes;
use foxy_base::{KeyHash, rule};

use super::{End, Fill, FillMap, FillWriter, Follower, State};

/// The bytes of a stored large object that a fill brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cover {
    /// Key of the object.
    pub(crate) hash: KeyHash,
    /// Its version.
    pub(crate) version: u64,
    /// First byte.
    pub(crate) start: u64,
    /// One past the last byte.
    pub(crate) end: u64,
    /// The body continues after `end`, but another fill brings the rest.
    pub(crate) cut: bool,
    /// The fill may stop early: the rest can be fetched by range requests.
    pub(crate) divisible: bool,
}

/// Bytes of a large object that are not stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GapWanted<'a> {
    /// Full key, and its hash.
    pub(crate) key: &'a Bytes,
    pub(crate) hash: KeyHash,
    /// Hash of the primary key.
    pub(crate) base: KeyHash,
    pub(crate) version: u64,
    /// The first byte needed, and one past the last.
    pub(crate) at: u64,
    pub(crate) until: u64,
    /// Bytes in a fragment.
    pub(crate) unit: u64,
}

/// The result of asking for a missing byte.
#[derive(Debug)]
pub(crate) enum Gap<H> {
    /// A running fill brings the byte.
    Follows(Follower<H>),
    /// A new fill, from the fragment with the byte up to the first that is there or on its way.
    Starts(FillWriter<H>, Follower<H>, Cover),
}

/// A reader this far ahead of a running fill does not wait for it.
const FAR: u64 = 4 << 20;
/// Longest run that is fetched in one go.
const RUN_MAX: u64 = 256 << 20;

impl<H> State<H> {
    /// Returns whether a follower can begin at `at`.
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
            // The running fill will stop there; the asking request fetches what follows.
            state.cover = Some(Cover {
                end: first,
                cut: true,
                ..cover
            });
            return None;
        }
        let id = state.enter(wanted.at);
        drop(state);
        Some(Follower::joining(Arc::clone(self), id, false))
    }

    /// Where this fill begins to bring bytes of the same object, if that is after `at`.
    fn begins_after(&self, wanted: &GapWanted<'_>) -> Option<u64> {
        let state = self.state.lock();
        let cover = state.cover.filter(|_| state.end.is_none())?;
        let same = cover.hash == wanted.hash && cover.version == wanted.version;
        (same && cover.start > wanted.at).then_some(cover.start)
    }
}

impl<H> FillMap<H> {
    /// Returns whether a running fill brings the byte at `wanted.at`, or has it in memory.
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

    /// The running fill that brings the byte at `wanted.at`.
    pub(crate) fn bringing(&self, wanted: &GapWanted<'_>) -> Option<Follower<H>> {
        let fills = self.of(wanted.base);
        fills.iter().find_map(|fill| fill.follow(wanted))
    }

    /// A fill for the byte at `wanted.at`: a running one, or a new one for the run of fragments
    /// that `absent` says are not stored (the first one is known not to be).
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
            cut: false,
            divisible: true,
        };
        writer.begin(start, Some(cover));
        follower.resume(wanted.at);
        running.push(Arc::clone(writer.fill()));
        self.judge(writer.fill());
        Gap::Starts(writer, follower, cover)
    }
}
