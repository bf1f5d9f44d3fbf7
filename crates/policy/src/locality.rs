//! Choice of the locality buffer for an object, and of the buffer that is written next. A locality buffer
//! collects objects that are used together, so that one write puts them together on the disk.
//!
//! Source: the method LAZY-READS-LOC of the WebCoSM papers. There are B buffers; each is bound to one origin
//! server. If a buffer is bound to the server of an object, the object joins this buffer. For any other
//! object a victim buffer is written and then bound to the object's server. (The papers do not state how the
//! victim is chosen; the least recently used buffer is the natural choice.) A full buffer is written. Two
//! additions are ours: a buffer may be bound to a page instead of an origin, and a buffer that is too old is
//! written.

use std::time::Duration;

use foxy_base::MonoTime;

/// A group of objects that are placed together: the objects of a page if the page is known, otherwise the
/// objects of an origin. The caller computes the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u64);

/// The number of a buffer, `0..buffers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

/// Parameters of the buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalityConfig {
    /// Number of buffers, at least 1. (The papers use 8 to 128. With 1 buffer, all objects are written in
    /// order of arrival.)
    pub buffers: u32,
    /// Size of each buffer in bytes (64 KiB in the papers).
    pub buffer_bytes: u64,
    /// A buffer is written at most this long after its first object arrived.
    pub age_max: Duration,
}

/// The steps that store an object, in this order: write `flush_before` if any, add the object to `buffer`,
/// write `buffer` if `flush_after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Placement {
    /// The buffer that the object joins.
    pub buffer: BufferId,
    /// The same as `buffer` if the buffer's contents must be written first, because the object does not fit
    /// or because the buffer was bound to another group before. Otherwise `None`.
    pub flush_before: Option<BufferId>,
    /// True if the buffer is full now. An object that is larger than a buffer is alone in its buffer.
    pub flush_after: bool,
}

/// The state of all buffers, without their contents.
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
    /// Creates buffers that are all empty and unbound.
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

    /// Returns the buffer of a group, if the group has a buffer. Objects of a page mostly arrive in a row, so
    /// the last buffer is tried first. The scan of the 8 to 1,024 buffers after that takes less time than
    /// copying the object.
    fn bound(&self, group: GroupId) -> Option<usize> {
        if self.buffers[self.last].group == Some(group) {
            return Some(self.last);
        }
        self.buffers.iter().position(|b| b.group == Some(group))
    }

    /// Returns an unbound buffer, otherwise an empty buffer, otherwise the least recently used buffer.
    fn victim(&self) -> usize {
        let order = |b: &Buffer| (b.group.is_some(), b.used > 0, b.last_use);
        let victim = self
            .buffers
            .iter()
            .enumerate()
            .min_by_key(|(_, b)| order(b));
        victim.map_or(0, |(number, _)| number)
    }

    /// Returns a buffer that is too old at `now` and marks it as written. Callers repeat the call until it
    /// returns `None`.
    pub fn expire(&mut self, now: MonoTime) -> Option<BufferId> {
        if self.next_expiry()? > now {
            return None;
        }
        self.flush_any()
    }

    /// Time at which [`LocalityBuffers::expire`] will return a buffer; `None` while all buffers are empty.
    #[must_use]
    pub fn next_expiry(&self) -> Option<MonoTime> {
        let oldest = self.buffers.iter().filter(|b| b.used > 0);
        oldest.map(|b| b.opened + self.config.age_max).min()
    }

    /// Returns the oldest buffer that is not empty and marks it as written (for a shutdown, or if one disk
    /// write has room for more objects); `None` when all buffers are empty.
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
