//! A part of the table that has its own lock for writers. It uses linear hashing, and each entry has two
//! possible places (buckets).
//!
//! A lookup that finds nothing is trusted only if, during the lookup, no entry was moved into its two buckets
//! and the shard's growth did not change these buckets. Otherwise the lookup is repeated.

use std::ops::Range;
use std::sync::Arc;

use crate::address::Address;
use crate::arena::Arena;
use crate::bits::{BASE_BITS, Extent, FREQ_MASK, Fingerprint, Packed};
use crate::bucket::{Bucket, SLOTS};
use crate::chunks::Chunks;
use crate::entry::{Candidates, Entry, IndexStats, Insert};
use crate::home::{Home, Place};
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Load, in entries per 1,000 slots, above which the shard grows.
const LOAD_PERMILLE: u64 = 855;
/// Load, in entries per 1,000 slots, above which the shard grows if an entry found no free slot. It is not
/// zero, so that colliding keys of an attacker cannot make the table grow without limit.
const EARLY_PERMILLE: u64 = 600;
/// Number of buckets by which a shard grows when its load is too high. A split of several neighbouring
/// buckets takes little longer than a split of one bucket, because there is only one wait for their memory.
const GROWTH: u32 = if cfg!(loom) { 1 } else { 16 };
/// Greatest number of attempts to place an entry. The shard grows by a bucket after each failed attempt.
const EARLY_LINES_MAX: u32 = 16;
/// Greatest number of moves that free one slot. A move puts an entry into its other bucket; if that bucket is
/// full too, one of its entries must be moved first.
const CHAIN_MAX: u32 = 3;
/// Greatest number of times in a row that a lookup is repeated because an entry was moved. After that the
/// lookup waits for the writer.
const RETRIES_MAX: u32 = 16;

/// State that only the holder of the lock may access.
#[derive(Debug, Default)]
struct Writer {
    dropped: u64,
    displaced: u64,
    /// Address ranges whose entries a sweep is removing. An entry in one of them is dropped instead of moved,
    /// since it could be moved to a bucket that the sweep has already passed.
    condemned: Vec<Range<u64>>,
}

#[derive(Debug)]
pub(crate) struct Shard {
    arena: Arc<Arena>,
    chunks: Chunks,
    /// Number of buckets in use (an `Extent`). The number grows after the new bucket is filled, and before
    /// the moved entries are removed from the bucket that was split.
    extent: AtomicU64,
    counted: Counted,
}

/// Fields that every change writes. They do not share a cache line with the fields that every lookup
/// reads.
#[derive(Debug)]
#[repr(align(64))]
struct Counted {
    len: AtomicU64,
    retried: AtomicU64,
    writer: Mutex<Writer>,
}

impl Shard {
    pub(crate) fn new(arena: Arc<Arena>) -> Self {
        Self {
            chunks: Chunks::new(&arena),
            arena,
            extent: AtomicU64::new(Extent::of(1 << BASE_BITS).0),
            counted: Counted {
                len: AtomicU64::new(0),
                retried: AtomicU64::new(0),
                writer: Mutex::new(Writer::default()),
            },
        }
    }

    #[inline(always)]
    fn bucket(&self, number: u32) -> Option<&Bucket> {
        self.chunks.bucket(number, &self.arena)
    }

    #[inline(always)]
    fn extent(&self) -> Extent {
        Extent(self.extent.load(Ordering::Acquire))
    }

    #[inline(always)]
    fn home(&self, fp: Fingerprint) -> Option<Home<'_>> {
        self.home_in(self.extent(), fp)
    }

    #[inline(always)]
    fn home_in(&self, extent: Extent, fp: Fingerprint) -> Option<Home<'_>> {
        let fps = [fp, fp.other()];
        let numbers = fps.map(|fp| fp.bucket(extent));
        let buckets = self.chunks.buckets(numbers, &self.arena)?;
        let place = |n: usize| Place {
            bucket: buckets[n],
            number: numbers[n],
            fp: fps[n],
        };
        Some(Home([place(0), place(1)]))
    }

    #[inline]
    pub(crate) fn lookup(&self, fp: Fingerprint) -> Candidates {
        self.try_lookup(fp).unwrap_or_else(|| self.lookup_again(fp))
    }

    #[cold]
    #[inline(never)]
    fn lookup_again(&self, fp: Fingerprint) -> Candidates {
        for _ in 0..RETRIES_MAX {
            self.counted.retried.fetch_add(1, Ordering::Relaxed);
            if let Some(answer) = self.try_lookup(fp) {
                return answer;
            }
        }
        let _writer = self.counted.writer.lock();
        self.try_lookup(fp).unwrap_or_default()
    }

    /// Looks up the entries of `fp` once; `None` if a miss cannot be trusted.
    #[inline(always)]
    fn try_lookup(&self, fp: Fingerprint) -> Option<Candidates> {
        let extent = self.extent();
        let home = self.home_in(extent, fp)?;
        // Reads both versions first, so that the memory of both buckets is requested at the same time.
        let versions = home.versions();
        let found = home.find();
        let believed = || self.still_leads_to(extent, fp) && home.versions() == versions;
        (!found.is_empty() || believed()).then_some(found)
    }

    /// True if the buckets of `fp` are still the same as they were with `extent`.
    #[inline(always)]
    fn still_leads_to(&self, extent: Extent, fp: Fingerprint) -> bool {
        let now = self.extent();
        now == extent
            || [fp, fp.other()]
                .iter()
                .all(|fp| fp.bucket(now) == fp.bucket(extent))
    }

    /// Requests the buckets of `fp` for the processor's cache.
    pub(crate) fn warm(&self, fp: Fingerprint) {
        if let Some(home) = self.home(fp) {
            home.0.iter().for_each(|place| self.ask_for(place.bucket));
        }
    }

    /// Requests a bucket for the processor's cache. If there is no function for prefetching, the bucket is
    /// read. Nothing waits for the value, but each read occupies one of the few hundred slots that a core has
    /// for unfinished instructions. So fewer reads than prefetches can be under way at the same time.
    #[inline]
    fn ask_for(&self, bucket: &Bucket) {
        match self.arena.prefetch() {
            Some(prefetch) => prefetch(std::ptr::from_ref(bucket).cast()),
            None => drop(std::hint::black_box(bucket.version())),
        }
    }

    pub(crate) fn touch(&self, fp: Fingerprint, address: Address) {
        if let Some(home) = self.home(fp) {
            let _ =
                (home.tagged()).any(|(place, slot)| place.bucket.touch(place.fp, slot, address));
        }
    }

    pub(crate) fn insert(&self, fp: Fingerprint, entry: Entry, keep: bool) -> Insert {
        let mut writer = self.counted.writer.lock();
        let mut home = self.home(fp);
        if let Some(done) = home.as_ref().and_then(|h| h.settle_present(entry, keep)) {
            return done;
        }
        // A small shard may have no free slot for an entry although its load is low. Then it grows early
        // instead of dropping the entry.
        for _ in 0..EARLY_LINES_MAX {
            if home.is_some_and(|home| self.place_new(&mut writer, &home, entry)) {
                self.add_len(1);
                self.grow(LOAD_PERMILLE, GROWTH);
                return Insert::Stored;
            }
            if !self.grow(EARLY_PERMILLE, 1) {
                break;
            }
            home = self.home(fp);
        }
        writer.dropped += 1;
        Insert::Dropped
    }

    fn place_new(&self, writer: &mut Writer, home: &Home<'_>, entry: Entry) -> bool {
        let Some((place, slot)) = self.find_room(writer, home) else {
            return false;
        };
        place
            .bucket
            .put(slot, place.fp.tag(), Packed::new(place.fp, entry));
        true
    }

    /// Returns a free slot in the bucket with more free slots. If both buckets are full, a slot is freed by
    /// moving an entry.
    fn find_room<'a>(
        &self,
        writer: &mut Writer,
        home: &'a Home<'a>,
    ) -> Option<(&'a Place<'a>, usize)> {
        let [first, second] = &home.0;
        let free = [first.bucket.free(), second.bucket.free()];
        let emptier = usize::from(free[1].count_ones() > free[0].count_ones());
        if free[emptier] != 0 {
            return Some((&home.0[emptier], free[emptier].trailing_zeros() as usize));
        }
        (1..=CHAIN_MAX).find_map(|chain| {
            home.0.iter().find_map(|place| {
                let slot = self.make_room(writer, place.number, chain)?;
                Some((place, slot))
            })
        })
    }

    /// Frees a slot of bucket `number` by moving an entry to its other bucket. `chain` is the number of
    /// moves. If it is more than 1, a slot of the other bucket is first freed in the same way.
    fn make_room(&self, writer: &mut Writer, number: u32, chain: u32) -> Option<usize> {
        let extent = self.extent();
        let bucket = self.bucket(number)?;
        if chain == 1 {
            // Some of these buckets will be read. Prefetching all of them makes the waits for memory overlap.
            let others = (0..SLOTS).map(|slot| bucket.fingerprint(number, slot));
            let others = others.filter_map(|fp| self.bucket(fp.other().bucket(extent)));
            others.for_each(|other| self.ask_for(other));
        }
        (0..SLOTS).find(|slot| {
            let packed = bucket.get(*slot);
            let other = bucket.fingerprint(number, *slot).other();
            self.move_out(
                writer,
                (bucket, *slot, packed),
                other,
                other.bucket(extent),
                chain,
            )
            .is_some()
        })
    }

    fn move_out(
        &self,
        writer: &mut Writer,
        (bucket, slot, packed): (&Bucket, usize, Packed),
        other: Fingerprint,
        target: u32,
        chain: u32,
    ) -> Option<()> {
        let entry = packed.entry()?;
        if writer.is_condemned(entry.address) {
            bucket.clear(slot);
            self.add_len(-1);
            return Some(());
        }
        let target_bucket = self.bucket(target)?;
        let free = match (chain, target_bucket.free()) {
            (1, 0) => return None,
            (1, free) => free.trailing_zeros() as usize,
            _ => self.make_room(writer, target, chain - 1)?,
        };
        // The chain of moves may have come back to this slot and changed it.
        let now = bucket.get(slot);
        if (now.word ^ packed.word) & !FREQ_MASK != 0 || now.aux != packed.aux {
            return None;
        }
        target_bucket.put(free, other.tag(), Packed::new(other, entry));
        target_bucket.announce_arrival();
        bucket.leave(slot);
        writer.displaced += 1;
        Some(())
    }

    /// Adds `more` buckets if the load is over `permille`, as far as the memory limit permits. True if at
    /// least one bucket was added.
    fn grow(&self, permille: u64, more: u32) -> bool {
        let buckets = self.extent().buckets();
        let slots = u64::from(buckets) * SLOTS as u64;
        self.len() * 1000 > slots * permille && self.grow_to(buckets + more)
    }

    /// Reserves slots for `more` entries: calls `by` with the number of buckets that the shard then needs.
    /// `by` is [`Shard::have_memory`] or [`Shard::grow_to`].
    pub(crate) fn reserve(&self, more: u64, by: impl FnOnce(&Self, u32) -> bool) {
        let _writer = self.counted.writer.lock();
        let entries = self.len() + more;
        let buckets = (entries * 1000).div_ceil(SLOTS as u64 * LOAD_PERMILLE);
        by(self, u32::try_from(buckets).unwrap_or(u32::MAX));
    }

    /// Gets memory for `target` buckets, as far as the memory limit permits; false if there is less memory.
    pub(crate) fn have_memory(&self, target: u32) -> bool {
        let mut buckets = self.extent().buckets();
        while buckets < target && self.have_chunk(buckets) {
            buckets = Chunks::end_of(buckets);
        }
        buckets >= target
    }

    fn have_chunk(&self, number: u32) -> bool {
        self.arena.charge(self.chunks.cost(number)) && self.chunks.ensure(number, &self.arena)
    }

    /// Grows to `target` buckets, as far as the memory limit permits; true if at least one bucket was added.
    pub(crate) fn grow_to(&self, target: u32) -> bool {
        let before = self.extent().buckets();
        let mut buckets = before;
        while buckets < target && self.have_chunk(buckets) {
            let end = Chunks::end_of(buckets).min(target);
            if (buckets..end).any(|number| self.split(number).is_none()) {
                break;
            }
            buckets = end;
        }
        self.extent().buckets() > before
    }

    /// Adds a bucket to a shard of `buckets` buckets, and fills it from the bucket that is split for it.
    fn split(&self, buckets: u32) -> Option<()> {
        let level = buckets.ilog2();
        let source_number = buckets - (1 << level);
        let source = self.bucket(source_number)?;
        let target = self.bucket(buckets)?;
        let mut moved = [false; SLOTS];
        let mut next = 0;
        for (slot, moved) in moved.iter_mut().enumerate() {
            let packed = source.get(slot);
            let goes = source.fingerprint(source_number, slot).bit(level);
            if packed.word != 0 && goes {
                target.put(next, source.tag(slot), packed);
                next += 1;
                *moved = true;
            }
        }
        let grown = Extent::of(buckets + 1).0;
        self.extent.store(grown, Ordering::Release);
        let left = (0..SLOTS).filter(|slot| moved[*slot]);
        left.for_each(|slot| source.leave(slot));
        Some(())
    }

    /// Removes every entry of `fp`, or only the entry at `address` if an address is given.
    pub(crate) fn remove(&self, fp: Fingerprint, address: Option<Address>) -> Candidates {
        let _writer = self.counted.writer.lock();
        let mut removed = Candidates::default();
        let Some(home) = self.home(fp) else {
            return removed;
        };
        while let Some((place, slot)) = home.position(address) {
            removed.push(place.bucket.clear(slot));
            self.add_len(-1);
        }
        removed
    }

    /// The entries in the slots that an entry of `fp` could use: its neighbours.
    pub(crate) fn neighbours(&self, fp: Fingerprint) -> [Option<Entry>; 2 * SLOTS] {
        let _writer = self.counted.writer.lock();
        let mut found = [None; 2 * SLOTS];
        let slots = self.home(fp).into_iter().flat_map(Home::slots);
        for (out, (bucket, slot)) in found.iter_mut().zip(slots) {
            *out = bucket.get(slot).entry();
        }
        found
    }

    /// Removes this neighbour of `fp`. If the neighbour was used, the uses of the other neighbours are set
    /// back to 0.
    pub(crate) fn evict(&self, fp: Fingerprint, neighbour: Entry) -> bool {
        let _writer = self.counted.writer.lock();
        let Some(home) = self.home(fp) else {
            return false;
        };
        // Uses may have been counted meanwhile, so they are not compared. Short records may have the same
        // address, but then their hints differ.
        let unused = |entry| Entry { freq: 0, ..entry };
        let is_it = |(bucket, slot): &(&Bucket, usize)| {
            let now = bucket.get(*slot).entry();
            now.map(unused) == Some(unused(neighbour))
        };
        let Some((bucket, slot)) = home.slots().find(is_it) else {
            return false;
        };
        let removed = bucket.clear(slot).entry();
        self.add_len(-1);
        if removed.is_some_and(|entry| entry.freq > 0) {
            home.slots().for_each(|(bucket, slot)| {
                let _ = bucket.take_freq(slot);
            });
        }
        true
    }

    pub(crate) fn replace_if(&self, fp: Fingerprint, old: Address, new: Entry) -> bool {
        let _writer = self.counted.writer.lock();
        let Some(home) = self.home(fp) else {
            return false;
        };
        let Some((place, slot)) = home.position(Some(old)) else {
            return false;
        };
        place.bucket.exchange(slot, Packed::new(place.fp, new));
        true
    }

    pub(crate) fn take_freq(&self, fp: Fingerprint, address: Address) -> Option<u8> {
        let _writer = self.counted.writer.lock();
        let home = self.home(fp)?;
        let (place, slot) = home.position(Some(address))?;
        place.bucket.take_freq(slot)
    }

    pub(crate) fn condemn(&self, sectors: &Range<u64>) {
        self.counted.writer.lock().condemned.push(sectors.clone());
    }

    pub(crate) fn acquit(&self, sectors: &Range<u64>) {
        let condemned = &mut self.counted.writer.lock().condemned;
        if let Some(at) = condemned.iter().position(|range| range == sectors) {
            condemned.swap_remove(at);
        }
    }

    /// Removes the entries with addresses in `sectors` from buckets `from..to`. Returns the number of removed
    /// entries; `None` if `from` is past the end.
    pub(crate) fn sweep(&self, sectors: &Range<u64>, from: u32, to: u32) -> Option<u64> {
        let _writer = self.counted.writer.lock();
        let buckets = self.extent().buckets();
        let mut removed = 0;
        for bucket in (from..to.min(buckets)).filter_map(|number| self.bucket(number)) {
            for slot in 0..SLOTS {
                let entry = bucket.get(slot).entry();
                if entry.is_some_and(|e| sectors.contains(&e.address.sectors())) {
                    bucket.clear(slot);
                    removed += 1;
                }
            }
        }
        self.add_len(-removed);
        (from < buckets).then_some(removed as u64)
    }

    pub(crate) fn for_each(&self, visit: &mut impl FnMut(Entry)) {
        let buckets = self.extent().buckets();
        for bucket in (0..buckets).filter_map(|number| self.bucket(number)) {
            for entry in (0..SLOTS).filter_map(|slot| bucket.get(slot).entry()) {
                visit(entry);
            }
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.counted.len.load(Ordering::Relaxed)
    }

    /// Changes the number of entries. Only the holder of the lock calls this, so a load and a store are
    /// enough.
    fn add_len(&self, by: i64) {
        let len = self.len().saturating_add_signed(by);
        self.counted.len.store(len, Ordering::Relaxed);
    }

    pub(crate) fn add_stats(&self, stats: &mut IndexStats) {
        let writer = self.counted.writer.lock();
        stats.len += self.len();
        stats.slots += u64::from(self.extent().buckets()) * SLOTS as u64;
        stats.dropped += writer.dropped;
        stats.displaced += writer.displaced;
        stats.retried += self.counted.retried.load(Ordering::Relaxed);
    }
}

impl Writer {
    fn is_condemned(&self, address: Address) -> bool {
        self.condemned
            .iter()
            .any(|range| range.contains(&address.sectors()))
    }
}
