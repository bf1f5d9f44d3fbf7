//! The condition of a store: what the store can do at the moment, the reason, and the events that
//! change it.
//!
//! | event | consequence |
//! |---|---|
//! | a read fails in a segment three times | the segment is in quarantine, also after a restart: lookups of its records are misses, and nothing is written to it |
//! | 64 reads fail or return bytes that were not written there, with no good read between, or 16 reads if the store is read-only | offline: neither read nor written until the next start |
//! | three writes fail with no good write between, or one flush fails | read-only |
//! | the store's thread ends by a bug | offline |
//! | more than a quarter of the segments are in quarantine | read-only |
//! | half of the segments in use are in quarantine, if the store is read-only | offline |
//! | a caller gives up waiting for a read, or a write takes more than 5 seconds | slow: avoided until the late operation has ended and a pause has passed; the pause doubles each time |
//!
//! Each change is logged once, with the place, the error and what the operator can do. While a store is
//! open, its condition never improves. There are two exceptions: slowness ends, and an operator can have
//! segments in quarantine tried again.

mod failure;
mod slow;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use foxy_base::rule;
use parking_lot::Mutex;

pub(crate) use self::failure::Failure;
use self::slow::Slowness;
use crate::interface::Health;

/// The number of failed reads of a segment after which the segment is not used any more.
const SEGMENT_ERRORS_MAX: u8 = 3;
/// The number of failed or damaged reads, with no good read between, after which a store is not used
/// any more.
const READ_ERRORS_MAX: u32 = 64;
/// The limit in place of [`READ_ERRORS_MAX`] for a store that is read-only.
const READ_ERRORS_MAX_READ_ONLY: u32 = 16;
/// The number of failed writes, with no good write between, after which a store is only read.
const WRITE_ERRORS_MAX: u32 = 3;

/// The condition of a store after the failures of its disk. Shared by all threads.
#[derive(Debug)]
pub(crate) struct Condition {
    /// A [`Health`], without [`Health::Slow`].
    health: AtomicU8,
    read_errors: AtomicU32,
    /// The segment where a read last returned bytes that were not written there.
    damaged: AtomicU32,
    write_errors: AtomicU32,
    /// True if the last write failed because there was no room for it.
    full: AtomicBool,
    /// The number of failed reads per segment.
    segments: Box<[AtomicU8]>,
    quarantined: AtomicU32,
    /// The number of times that a segment has entered or left quarantine.
    quarantine_changes: AtomicU64,
    /// The number of reads that the callers gave up, but that the device has not completed.
    late: AtomicU32,
    /// The time until which the store is avoided, in nanoseconds; 0: it was never slow.
    slow_until: AtomicU64,
    slow: Mutex<Slowness>,
    /// The reason for the last change of the condition.
    reason: Mutex<Option<String>>,
}

impl Condition {
    pub(crate) fn new(segments: u32) -> Self {
        Self {
            health: AtomicU8::new(0),
            read_errors: AtomicU32::new(0),
            damaged: AtomicU32::new(u32::MAX),
            write_errors: AtomicU32::new(0),
            full: AtomicBool::new(false),
            segments: (0..segments).map(|_| AtomicU8::new(0)).collect(),
            quarantined: AtomicU32::new(0),
            quarantine_changes: AtomicU64::new(0),
            late: AtomicU32::new(0),
            slow_until: AtomicU64::new(0),
            slow: Mutex::default(),
            reason: Mutex::default(),
        }
    }

    /// Returns the health of the store, without regard to slowness.
    pub(crate) fn health(&self) -> Health {
        match self.health.load(Ordering::Relaxed) {
            h if h == Health::Good as u8 => Health::Good,
            h if h == Health::ReadOnly as u8 => Health::ReadOnly,
            _ => Health::Offline,
        }
    }

    /// Returns the reason for the last change of the condition, if the condition is not good.
    pub(crate) fn reason(&self) -> Option<String> {
        self.reason.lock().clone()
    }

    /// True if the last write failed because the file system, or a quota, has no room.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The number of segments in quarantine.
    pub(crate) fn quarantined(&self) -> u32 {
        self.quarantined.load(Ordering::Relaxed)
    }

    /// The number of times that a segment has entered or left quarantine. As long as this number does not
    /// change, the list of the segments in quarantine does not change.
    pub(crate) fn quarantine_changes(&self) -> u64 {
        self.quarantine_changes.load(Ordering::Acquire)
    }

    /// Notes that a segment has entered quarantine (`by` is 1) or left quarantine (`by` is -1).
    fn change_quarantined(&self, by: i32) {
        self.quarantined
            .fetch_add(by.cast_unsigned(), Ordering::Relaxed);
        self.quarantine_changes.fetch_add(1, Ordering::Release);
    }

    /// Takes over the quarantine that an earlier run recorded.
    pub(crate) fn restore_quarantine(&self, segments: &[u32]) {
        for segment in segments {
            if let Some(errors) = self.segments.get(*segment as usize) {
                rule!(
                    "quarantine: a restart knows of it",
                    errors.store(SEGMENT_ERRORS_MAX, Ordering::Relaxed),
                    ()
                );
                self.change_quarantined(1);
            }
        }
    }

    /// The numbers of the segments in quarantine, ascending.
    pub(crate) fn bad_segments(&self) -> Vec<u32> {
        let all = self.segments.iter().zip(0..);
        all.filter(|(errors, _)| errors.load(Ordering::Relaxed) >= SEGMENT_ERRORS_MAX)
            .map(|(_, segment)| segment)
            .collect()
    }

    /// Notes that a segment is usable again.
    pub(crate) fn forgive(&self, segment: u32) {
        if self.is_quarantined(segment)
            && let Some(errors) = self.segments.get(segment as usize)
        {
            errors.store(0, Ordering::Relaxed);
            self.change_quarantined(-1);
        }
    }

    pub(crate) fn is_quarantined(&self, segment: u32) -> bool {
        self.quarantined() > 0
            && self
                .segments
                .get(segment as usize)
                .is_some_and(|errors| errors.load(Ordering::Relaxed) >= SEGMENT_ERRORS_MAX)
    }

    /// Notes that a read returned the expected bytes.
    pub(crate) fn read_well(&self) {
        if self.read_errors.load(Ordering::Relaxed) > 0 {
            self.read_errors.store(0, Ordering::Relaxed);
        }
    }

    /// Notes that a read of this segment failed. `used` counts the segments in use.
    pub(crate) fn read_failed(
        &self,
        disk: &str,
        segment: Option<u32>,
        used: impl FnOnce() -> usize,
        failure: &Failure<'_>,
    ) {
        if let Some(segment) = segment {
            self.blame(disk, segment, used, failure);
        }
        self.count_failed_read(disk, failure);
    }

    /// Notes that a read of this segment returned bytes that were not written there. Several such reads
    /// in a row in one segment count as one, because perhaps only one region of the segment is lost.
    pub(crate) fn read_damage(&self, disk: &str, segment: u32, failure: &Failure<'_>) {
        if self.damaged.swap(segment, Ordering::Relaxed) != segment {
            self.count_failed_read(disk, failure);
        }
    }

    fn count_failed_read(&self, disk: &str, failure: &Failure<'_>) {
        let max = match self.health() {
            Health::ReadOnly => READ_ERRORS_MAX_READ_ONLY,
            _ => READ_ERRORS_MAX,
        };
        if self.read_errors.fetch_add(1, Ordering::Relaxed) + 1 >= max {
            self.degrade(disk, Health::Offline, &failure.to_string());
        }
    }

    /// Notes that the thread that writes the store has ended because of a bug in this program. The
    /// state that the thread kept in memory is lost.
    pub(crate) fn abandoned(&self, disk: &str) {
        let why = "the thread that writes it has ended by a mistake in Foxy";
        if self.worsen(Health::Offline, why) {
            tracing::error!(
                "{disk}: {why}: the store is now offline; its objects are fetched again; report \
                 what the log says before this, and restart"
            );
        }
    }

    fn blame(&self, disk: &str, segment: u32, used: impl FnOnce() -> usize, failure: &Failure<'_>) {
        let Some(errors) = self.segments.get(segment as usize) else {
            return;
        };
        if self.health() == Health::Offline {
            return;
        }
        let raise = |n: u8| (n < SEGMENT_ERRORS_MAX).then_some(n + 1);
        let before = errors.fetch_update(Ordering::Relaxed, Ordering::Relaxed, raise);
        if before != Ok(SEGMENT_ERRORS_MAX - 1) {
            return;
        }
        self.change_quarantined(1);
        tracing::warn!(
            "{disk}: {failure}: segment {segment} is now in quarantine, neither read nor written \
             any more; look at the device's own report of its health, then try `foxy store retry`"
        );
        self.judge(disk, used, failure);
    }

    /// Degrades the store if too many segments are in quarantine: to read-only, or to offline.
    fn judge(&self, disk: &str, used: impl FnOnce() -> usize, failure: &Failure<'_>) {
        let (count, all) = (self.quarantined() as usize, self.segments.len());
        let text = || format!("{failure}; {count} segments are in quarantine");
        let is_read_only = count > all / 4 || self.health() == Health::ReadOnly;
        // The limit is half of the segments in use. A store with few segments in use could never have half
        // of all segments in quarantine.
        if is_read_only && count > 0 && count * 2 >= used() {
            self.degrade(disk, Health::Offline, &text());
        } else if is_read_only {
            self.degrade(disk, Health::ReadOnly, &text());
        }
    }

    /// Notes that a write succeeded.
    pub(crate) fn wrote_well(&self) {
        self.write_errors.store(0, Ordering::Relaxed);
        self.full.store(false, Ordering::Relaxed);
    }

    /// Notes that a write or flush failed. Returns the number of failures in a row.
    pub(crate) fn write_failed(
        &self,
        disk: &str,
        used: impl FnOnce() -> usize,
        failure: &Failure<'_>,
    ) -> u32 {
        let count = self.write_errors.fetch_add(1, Ordering::Relaxed) + 1;
        // After a failed flush, the state of all earlier writes is unknown.
        let flush = rule!(
            "faults: a store whose flush failed is not written any more",
            failure.doing == "flush",
            false
        );
        // A full file system may get room again, and the disk is not broken. So the store never stops
        // trying to write.
        let full = matches!(
            failure.error.kind(),
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
        );
        self.full.store(full, Ordering::Relaxed);
        if full && count == WRITE_ERRORS_MAX {
            tracing::warn!(
                "{disk}: {failure}: nothing is stored until there is room on the file system"
            );
        }
        if flush || count >= WRITE_ERRORS_MAX && !full {
            let worse = self.degrade(disk, Health::ReadOnly, &failure.to_string());
            if worse {
                self.judge(disk, used, failure);
            }
        }
        count
    }

    /// Worsens the health, which never improves while a store is open. Returns whether it changed.
    fn worsen(&self, to: Health, why: &str) -> bool {
        let worse = self.health.fetch_max(to as u8, Ordering::Relaxed) < to as u8;
        if worse {
            *self.reason.lock() = Some(why.to_owned());
        }
        worse
    }

    /// Worsens the health because of a failure of the disk, and logs it. Returns whether the health
    /// changed.
    fn degrade(&self, disk: &str, to: Health, why: &str) -> bool {
        if !self.worsen(to, why) {
            return false;
        }
        let (state, follows) = match to {
            Health::ReadOnly => (
                "read-only",
                "new objects go to other stores or stay in memory; make room behind it or replace \
                 the device, then restart",
            ),
            _ => (
                "offline",
                "its objects are fetched again; replace the device, or take the store out of the \
                 configuration, then restart",
            ),
        };
        tracing::error!("{disk}: {why}: the store is now {state}; {follows}");
        true
    }
}
