//! Gathering: items from the inbox go to locality buffers, each of which collects the items of one group.
//! Full or old buffers go to the ready queue, from which clusters are made.

use std::collections::VecDeque;
use std::time::Duration;

use foxy_base::MonoTime;
use foxy_format::cluster_table_bytes;
use foxy_policy::{BufferId, GroupId, LocalityBuffers, LocalityConfig};

use super::objects::Objects;
use super::records::Chosen;
use crate::StoreOptions;
use crate::shared::{Item, Numbered};

/// The objects and removals that wait to be put into a cluster. Arrivals and departures are counted. A ticket
/// (on which a caller waits for durability) notes the number of arrivals at its beginning. Once that number
/// has departed, everything for which the ticket waits is in clusters.
#[derive(Debug)]
pub(super) struct Gather {
    locality: LocalityBuffers,
    buffers: Vec<Vec<Item>>,
    ready: VecDeque<Item>,
    ready_bytes: u64,
    ready_since: Option<MonoTime>,
    removals: VecDeque<Numbered>,
    removals_since: Option<MonoTime>,
    flush_age: Duration,
    tombstone_delay: Duration,
    /// The number of items and removals that have left so far.
    left: QueuePosition,
    /// The number of items and removals that have arrived so far. Items in buffers do not count yet.
    came: QueuePosition,
}

/// A position in the queue of items and the queue of removals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueuePosition {
    pub(super) items: u64,
    pub(super) removals: u64,
}

impl QueuePosition {
    /// Returns whether this position is at or after `other` in the queue of items and in the queue of
    /// removals.
    pub(super) const fn covers(self, other: Self) -> bool {
        self.items >= other.items && self.removals >= other.removals
    }
}

impl Gather {
    pub(super) fn new(options: &StoreOptions) -> Self {
        let buffers = options.buffers.max(1);
        Self {
            locality: LocalityBuffers::new(LocalityConfig {
                buffers,
                buffer_bytes: options.buffer_bytes,
                age_max: options.flush_age,
            }),
            buffers: vec![Vec::new(); buffers as usize],
            ready: VecDeque::new(),
            ready_bytes: 0,
            ready_since: None,
            removals: VecDeque::new(),
            removals_since: None,
            flush_age: options.flush_age,
            tombstone_delay: options.tombstone_delay,
            left: QueuePosition::default(),
            came: QueuePosition::default(),
        }
    }

    /// Takes an item into the buffer of its group.
    pub(super) fn item(&mut self, item: Item, now: MonoTime) {
        let place = self
            .locality
            .place(GroupId(item.group), u64::from(item.bytes), now);
        if let Some(buffer) = place.flush_before {
            self.move_to_ready(buffer, now);
        }
        self.buffers[place.buffer.0 as usize].push(item);
        if place.flush_after {
            self.move_to_ready(place.buffer, now);
        }
    }

    /// Puts an item directly into the ready queue, without a locality buffer.
    pub(super) fn item_at_once(&mut self, item: Item, now: MonoTime) {
        self.line_up(item);
        self.ready_since.get_or_insert(now);
    }

    fn line_up(&mut self, item: Item) {
        self.came.items += 1;
        self.ready_bytes += u64::from(item.bytes);
        self.ready.push_back(item);
    }

    pub(super) fn removal(&mut self, removal: Numbered, now: MonoTime) {
        self.came.removals += 1;
        self.removals.push_back(removal);
        self.removals_since.get_or_insert(now);
    }

    /// Puts back the removals of a cluster that could not be written.
    pub(super) fn removals_again(&mut self, removals: Vec<Numbered>, now: MonoTime) {
        for removal in removals.into_iter().rev() {
            self.removals.push_front(removal);
            self.left.removals = self.left.removals.saturating_sub(1);
        }
        // If two clusters failed, the removals of the later cluster may have been put back first.
        self.removals.make_contiguous().sort_by_key(|r| r.number);
        self.removals_since = (!self.removals.is_empty()).then_some(now);
    }

    /// Moves buffers that have reached their maximum age to the ready queue.
    pub(super) fn expire(&mut self, now: MonoTime) {
        while let Some(buffer) = self.locality.expire(now) {
            self.move_to_ready(buffer, now);
            // These items have already waited for the maximum time.
            self.ready_since = Some(MonoTime(0));
        }
    }

    /// Moves buffers to the ready queue, oldest first, until `bytes` bytes are ready.
    pub(super) fn fill_up(&mut self, bytes: u64, now: MonoTime) {
        while self.ready_bytes < bytes
            && let Some(buffer) = self.locality.flush_any()
        {
            self.move_to_ready(buffer, now);
        }
    }

    fn move_to_ready(&mut self, buffer: BufferId, now: MonoTime) {
        let mut items = std::mem::take(&mut self.buffers[buffer.0 as usize]);
        for item in items.drain(..) {
            self.line_up(item);
        }
        self.buffers[buffer.0 as usize] = items;
        if !self.ready.is_empty() {
            self.ready_since.get_or_insert(now);
        }
    }

    /// Takes the next item from the ready queue, if it has at most `room` bytes.
    pub(super) fn pop(&mut self, room: u64) -> Option<Item> {
        let item = self
            .ready
            .pop_front_if(|item| u64::from(item.bytes) <= room)?;
        self.left.items += 1;
        self.ready_bytes -= u64::from(item.bytes);
        if self.ready.is_empty() {
            self.ready_since = None;
        }
        Some(item)
    }

    /// Takes up to `max` removals, oldest first.
    pub(super) fn pop_removals(&mut self, max: usize, now: MonoTime) -> Vec<Numbered> {
        let taken: Vec<_> = self
            .removals
            .drain(..max.min(self.removals.len()))
            .collect();
        self.left.removals += taken.len() as u64;
        self.removals_since = (!self.removals.is_empty()).then_some(now);
        taken
    }

    /// Takes items from the ready queue for a cluster, and drops superseded items. The cluster has at most
    /// `limit` bytes, including the entries of `removals` removals. `room` returns the number of bytes that
    /// the segment has for a cluster with a given number of entries.
    pub(super) fn choose(
        &mut self,
        removals: usize,
        limit: usize,
        objects: &Objects,
        room: impl Fn(usize) -> usize,
    ) -> Vec<Chosen> {
        let mut chosen = Vec::new();
        let mut records = 0;
        loop {
            let entries = removals + chosen.len() + 1;
            let table = cluster_table_bytes(entries);
            let limit = limit.min(room(entries));
            let Some(room) = limit.checked_sub(table + records) else {
                break;
            };
            let Some(item) = self.pop(room as u64) else {
                break;
            };
            if let Some(object) = objects.waiting(&item) {
                chosen.push((item, object));
                records += item.bytes as usize;
            }
        }
        chosen
    }

    /// Returns whether there is a reason to write a cluster: `full` bytes are in the ready queue, or an item
    /// or removal has waited for its maximum time. If `forced` is true, any waiting item or removal is a
    /// reason. If `pressed` returns true, any waiting removal is a reason.
    pub(super) fn wants_cluster(
        &mut self,
        full: u64,
        forced: bool,
        pressed: impl FnOnce() -> bool,
        now: MonoTime,
    ) -> bool {
        let items = self.items_due(now) || forced;
        if items {
            self.fill_up(full, now);
        }
        let ready = self.ready_bytes;
        ready >= full
            || (items && ready > 0)
            || self.removals_due(now)
            || (!self.removals.is_empty() && pressed())
            || (forced && !self.removals.is_empty())
    }

    /// Memory of the queues in bytes, without the waiting objects.
    pub(super) fn memory_bytes(&self) -> usize {
        let items: usize = self.buffers.iter().map(Vec::capacity).sum();
        (items + self.ready.capacity()) * size_of::<Item>()
            + self.removals.capacity() * size_of::<Numbered>()
    }

    pub(super) const fn left(&self) -> QueuePosition {
        self.left
    }
    pub(super) const fn came(&self) -> QueuePosition {
        self.came
    }
    pub(super) fn next_bytes(&self) -> Option<u32> {
        self.ready.front().map(|item| item.bytes)
    }
    /// Number of the oldest removal that waits.
    pub(super) fn first_removal(&self) -> Option<u64> {
        self.removals.front().map(|r| r.number)
    }
    pub(super) fn removals(&self) -> usize {
        self.removals.len()
    }
    pub(super) const fn ready_bytes(&self) -> u64 {
        self.ready_bytes
    }
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.removals.is_empty() && self.locality.used_total() == 0
    }

    /// Returns whether items in the ready queue have waited for their maximum time.
    fn items_due(&self, now: MonoTime) -> bool {
        self.ready_since
            .is_some_and(|since| now >= since + self.flush_age)
    }
    /// Returns whether removals have waited for their maximum time.
    fn removals_due(&self, now: MonoTime) -> bool {
        self.removals_since
            .is_some_and(|since| now >= since + self.tombstone_delay)
    }

    /// The time when the waiting items or removals will be due.
    pub(super) fn next_due(&self) -> Option<MonoTime> {
        let items = self.ready_since.map(|since| since + self.flush_age);
        let removals = self
            .removals_since
            .map(|since| since + self.tombstone_delay);
        [items, removals, self.locality.next_expiry()]
            .into_iter()
            .flatten()
            .min()
    }
}

#[cfg(test)]
mod tests {
    use foxy_format::LogPosition;

    use super::*;
    use crate::shared::Removal;
    use crate::writer::stand::{NOW, item};

    fn gather() -> Gather {
        Gather::new(&StoreOptions {
            buffers: 1,
            buffer_bytes: 1000,
            flush_age: Duration::from_secs(2),
            tombstone_delay: Duration::from_secs(1),
            ..StoreOptions::default()
        })
    }

    fn removal(number: u64) -> Numbered {
        Numbered {
            removal: Removal::Place(LogPosition(number)),
            number,
        }
    }

    #[test]
    fn a_cluster_is_wanted_when_it_is_full_or_something_has_waited() {
        let mut gather = gather();
        let wants = |gather: &mut Gather, forced, pressed, later: u64| {
            let now = NOW + Duration::from_secs(later);
            gather.wants_cluster(5000, forced, || pressed, now)
        };
        assert!(!wants(&mut gather, true, true, 9), "there is nothing");
        gather.item_at_once(item(400), NOW);
        assert!(!wants(&mut gather, false, true, 1));
        assert!(wants(&mut gather, false, false, 2), "it has waited");
        assert!(wants(&mut gather, true, false, 0), "it is forced");
        gather.item_at_once(item(4600), NOW);
        assert!(wants(&mut gather, false, false, 0), "it is full");
        while gather.pop(u64::MAX).is_some() {}
        gather.removal(removal(1), NOW);
        assert!(!wants(&mut gather, false, false, 0));
        assert!(wants(&mut gather, false, true, 0), "the log is pressed");
        assert!(
            wants(&mut gather, false, false, 1),
            "the removal has waited"
        );
    }

    #[test]
    fn removals_that_come_again_stand_in_order() {
        let mut gather = gather();
        for number in 1..=4 {
            gather.removal(removal(number), NOW);
        }
        let first = gather.pop_removals(2, NOW);
        let second = gather.pop_removals(2, NOW);
        assert!(gather.left().covers(gather.came()) && gather.is_empty());
        gather.removals_again(second, NOW);
        gather.removals_again(first, NOW);
        assert!(!gather.left().covers(gather.came()));
        assert_eq!(gather.first_removal(), Some(1));
        let numbers = gather.pop_removals(9, NOW);
        let numbers: Vec<_> = numbers.iter().map(|r| r.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
    }
}
