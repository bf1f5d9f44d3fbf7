//! The order in which pending reads go to a disk, and the merging of neighbouring reads.
//!
//! Source: the method LAZY-READS of the WebCoSM papers. Reads are queued. When N reads are queued (N = 10) or
//! a timeout (below a second) has passed, all queued reads are sent, sorted by position. Two additions are
//! ours: the elevator (alternately upwards and downwards), and the merging of neighbours.

use std::time::Duration;

use foxy_base::MonoTime;

/// The order in which a batch is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    /// In order of arrival (SSD).
    Arrival,
    /// By position, always upwards: the rule of the papers.
    Ascending,
    /// By position, alternately upwards and downwards, so that the head does not move back without reading.
    Elevator,
}

/// Parameters of the read order of one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOrderConfig {
    /// A batch is due when this number of reads wait. If it is 1 or less, each read is due immediately.
    pub batch: usize,
    /// A batch is due when its oldest read has waited for this time; zero: immediately.
    pub timeout: Duration,
    /// The order inside a batch.
    pub order: ReadOrder,
    /// Reads that are no further apart than this become one read.
    pub merge_gap_bytes: u64,
    /// No merged read is longer than this. (A single read may be longer.)
    pub merge_max_bytes: u64,
}

/// A read that waits; `tag` identifies its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRead<T> {
    /// Start in bytes.
    pub at: u64,
    /// Length in bytes.
    pub len: u32,
    /// The caller's name for the read.
    pub tag: T,
}

/// One disk read that serves one or more pending reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergedRead {
    /// Start in bytes.
    pub at: u64,
    /// Length in bytes.
    pub len: u64,
    /// Index of the first covered read: the merged read covers `batch[first..first + count]`.
    pub first: usize,
    /// Number of reads covered.
    pub count: usize,
}

/// Reads that wait to be sent to the disk.
#[derive(Debug)]
pub struct ReadQueue<T> {
    config: ReadOrderConfig,
    waiting: Vec<PendingRead<T>>,
    oldest: Option<MonoTime>,
    downwards: bool,
}

impl<T> ReadQueue<T> {
    /// Creates an empty queue.
    #[must_use]
    pub const fn new(config: ReadOrderConfig) -> Self {
        Self {
            config,
            waiting: Vec::new(),
            oldest: None,
            downwards: false,
        }
    }

    /// Queues a read.
    pub fn push(&mut self, read: PendingRead<T>, now: MonoTime) {
        self.oldest.get_or_insert(now);
        self.waiting.push(read);
    }

    /// True if a batch should be sent at `now`.
    #[must_use]
    pub fn is_due(&self, now: MonoTime) -> bool {
        let full = !self.waiting.is_empty() && self.waiting.len() >= self.config.batch;
        full || self.due_at().is_some_and(|due| due <= now)
    }

    /// Time at which the waiting reads are due at the latest; `None` if no read waits.
    #[must_use]
    pub fn due_at(&self) -> Option<MonoTime> {
        self.oldest.map(|oldest| oldest + self.config.timeout)
    }

    /// Takes all waiting reads in order into `batch` (cleared first), whether or not they are due: a caller
    /// may take them because the disk is idle.
    pub fn take(&mut self, batch: &mut Vec<PendingRead<T>>) {
        batch.clear();
        std::mem::swap(batch, &mut self.waiting);
        self.oldest = None;
        match self.config.order {
            ReadOrder::Arrival => {}
            ReadOrder::Ascending => batch.sort_by_key(|r| r.at),
            ReadOrder::Elevator => self.sweep(batch),
        }
    }

    fn sweep(&mut self, batch: &mut [PendingRead<T>]) {
        batch.sort_by_key(|r| r.at);
        if self.downwards {
            batch.reverse();
        }
        self.downwards = !self.downwards;
    }

    /// Number of waiting reads.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if no read waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Disk reads that serve `batch` (as returned by [`ReadQueue::take`]), in the order of the batch.
    pub fn merge<'a>(
        &self,
        batch: &'a [PendingRead<T>],
    ) -> impl Iterator<Item = MergedRead> + use<'a, T> {
        merge(
            batch,
            self.config.merge_gap_bytes,
            self.config.merge_max_bytes,
        )
    }
}

/// Joins reads that follow each other in `batch`, in either direction on the disk. Joined reads are at most
/// `gap` bytes apart, and together they are at most `max` bytes long.
pub fn merge<T>(
    batch: &[PendingRead<T>],
    gap: u64,
    max: u64,
) -> impl Iterator<Item = MergedRead> + use<'_, T> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let first = next;
        let (mut start, mut end) = span(batch.get(first)?);
        next += 1;
        while let Some((from, to)) = batch.get(next).map(span) {
            let joined = (start.min(from), end.max(to));
            let near = from <= end.saturating_add(gap) && start <= to.saturating_add(gap);
            if !near || joined.1 - joined.0 > max {
                break;
            }
            (start, end) = joined;
            next += 1;
        }
        Some(MergedRead {
            at: start,
            len: end - start,
            first,
            count: next - first,
        })
    })
}

const fn span<T>(read: &PendingRead<T>) -> (u64, u64) {
    (read.at, read.at.saturating_add(read.len as u64))
}
