//! Choice of the locality buffer for an object, and of the buffer that is written first.
//!
//! Source: LAZY-READS-LOC of the WebCoSM papers: B buffers, each bound to one origin server; an
//! object of a bound server joins its buffer, otherwise a victim (its choice is not published;
//! least recently used is the natural reading) is written and bound anew; a full buffer is
//! written. Binding to a page instead of an origin, and writing a buffer that grew too old, are ours.

use std::time::Duration;

use foxy_base::MonoTime;

/// A group of objects that are placed together: the objects of a page if it is known, else those of
/// an origin. The caller computes the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u64);

/// The number of a buffer, `0..buffers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// Sizes of the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalityConfig {
    /// Number of buffers (the papers: 8 to 128; 1 puts everything in order of arrival). At least 1.
    pub buffers: u32,
    /// Bytes in each (the papers: 64 KiB).
    pub buffer_bytes: u64,
    /// A buffer is written at most this long after its first object arrived.
    pub age_max: Duration,
}

/// Steps for an object, in this order: write `flush_before` if any, add the object to `buffer`,
/// write `buffer` if `flush_after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Placement {
    /// The buffer the object joins.
    pub buffer: BufferId,
    /// `buffer` itself, if its contents must be written first: the object does not fit, or the
    /// buffer was another group's and is bound anew.
    pub flush_before: Option<BufferId>,
    /// The buffer is full now. An object larger than a buffer fills one alone.
    pub flush_after: bool,
}

/// The state of all buffers; holds no bytes.
#[derive(Debug)]
pub struct LocalityBuffers {
    config: LocalityConfig,
    buffers: Vec<Buffer>,
    uses: u64,
    /// The buffer chosen last.
    last: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    group: Option<GroupId>,
    used: u64,
    opened: MonoTime,
    last_use: u64,
}

impl LocalityBuffers {
    /// All buffers empty and unbound.
    #[must_use]
    pub fn new(config: LocalityConfig) -> Self {
        Self {
            buffers: vec![Buffer::default(); config.buffers.max(1) as usize],
            config,
            uses: 0,
            last: 0,
        }
    }

    /// Chooses the buffer of an object of `bytes` bytes.
    pub fn place(&mut self, group: GroupId, bytes: u64, now: MonoTime) -> Placement {
        let number = self.bound(group).unwrap_or_else(|| self.victim());
        self.uses += 1;
        self.last = number;
        let room = self.config.buffer_bytes;
        let buffer = &mut self.buffers[number];
        let bound = buffer.group.replace(group) == Some(group);
        let flush_before = buffer.used > 0 && (!bound || buffer.used.saturating_add(bytes) > room);
        if flush_before || buffer.used == 0 {
            buffer.used = 0;
            buffer.opened = now;
        }
        buffer.last_use = self.uses;
        buffer.used = buffer.used.saturating_add(bytes);
        let flush_after = buffer.used >= room;
        if flush_after {
            buffer.used = 0;
        }
        let id = BufferId(number as u32);
        Placement {
            buffer: id,
            flush_before: flush_before.then_some(id),
            flush_after,
        }
    }

    /// The buffer of a group, if it has one. Objects of a page mostly arrive in a row, so the last
    /// buffer is tried first; then a scan of the 8 to 1,024 buffers, which costs less than the copy
    /// of the object.
    fn bound(&self, group: GroupId) -> Option<usize> {
        if self.buffers[self.last].group == Some(group) {
            return Some(self.last);
        }
        self.buffers.iter().position(|b| b.group == Some(group))
    }

    /// An unbound buffer, else an empty one, else the least recently used.
    fn victim(&self) -> usize {
        let order = |b: &Buffer| (b.group.is_some(), b.used > 0, b.last_use);
        let victim = self
            .buffers
            .iter()
            .enumerate()
            .min_by_key(|(_, b)| order(b));
        victim.map_or(0, |(number, _)| number)
    }

    /// Returns a buffer that is too old at `now` and marks it as written. Call until `None`.
    pub fn expire(&mut self, now: MonoTime) -> Option<BufferId> {
        if self.next_expiry()? > now {
            return None;
        }
        self.flush_any()
    }

    /// When [`LocalityBuffers::expire`] will return a buffer; `None` while all buffers are empty.
    #[must_use]
    pub fn next_expiry(&self) -> Option<MonoTime> {
        let oldest = self.buffers.iter().filter(|b| b.used > 0);
        oldest.map(|b| b.opened + self.config.age_max).min()
    }

    /// Returns the oldest buffer that is not empty and marks it as written (for a shutdown, or for
    /// filling up a cluster); `None` when all buffers are empty.
    pub fn flush_any(&mut self) -> Option<BufferId> {
        let (number, oldest) = self
            .buffers
            .iter_mut()
            .enumerate()
            .filter(|(_, b)| b.used > 0)
            .min_by_key(|(_, b)| (b.opened, b.last_use))?;
        oldest.used = 0;
        Some(BufferId(number as u32))
    }

    /// Bytes waiting in a buffer.
    #[must_use]
    pub fn used(&self, buffer: BufferId) -> u64 {
        self.buffers.get(buffer.0 as usize).map_or(0, |b| b.used)
    }

    /// Bytes waiting in all buffers.
    #[must_use]
    pub fn used_total(&self) -> u64 {
        self.buffers.iter().map(|b| b.used).sum()
    }
}
