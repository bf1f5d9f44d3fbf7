//! Admission: rules that decide which objects may enter a cache level (memory or disk).
//!
//! Sources: The size limit is LRU-TH of the Foxy papers (documents over a threshold are not cached). With the
//! filter "second use", objects that are requested only once are not written to disks (Maltzahn 1999, flash
//! caches today). The byte budget is a token bucket that limits the writes. A filter is asked only if the
//! bucket has too few bytes for an object. The reason is that, with a real proxy log, a second-use filter
//! that is always applied lowers the hit ratio by up to ten percentage points.

use std::time::Duration;

use foxy_base::MonoTime;

use crate::cache::Key;
use crate::{Ghost, Sketch};

/// The answer of an [`Admission`] rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    /// The object may enter.
    Yes,
    /// The object is larger than the limit.
    TooLarge,
    /// The key was requested too seldom, as far as the rule remembers: never before ([`SecondUse`]), or too
    /// few times ([`Frequency`]).
    FirstUse,
    /// The byte budget is exhausted.
    OverBudget,
}

impl Admit {
    /// True for [`Admit::Yes`].
    #[must_use]
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes)
    }
}

/// A rule that decides for each object if it may enter a cache level.
pub trait Admission<K: Key> {
    /// Decides if an object of `size` bytes may enter at `now`. The call counts as a use of `key`. If the
    /// answer is yes, the call spends budget.
    fn admit(&mut self, key: K, size: u64, now: MonoTime) -> Admit;
}

/// Admits every object.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl<K: Key> Admission<K> for AdmitAll {
    fn admit(&mut self, _key: K, _size: u64, _now: MonoTime) -> Admit {
        Admit::Yes
    }
}

/// The size threshold of LRU-TH: objects larger than `max_bytes` are not admitted.
#[derive(Clone, Copy, Debug)]
pub struct SizeLimit {
    /// The largest object that enters.
    pub max_bytes: u64,
}

impl<K: Key> Admission<K> for SizeLimit {
    fn admit(&mut self, _key: K, size: u64, _now: MonoTime) -> Admit {
        if size <= self.max_bytes {
            Admit::Yes
        } else {
            Admit::TooLarge
        }
    }
}

/// Admits an object at its second use, if the rule still remembers the first use. It remembers the last
/// `remembered` keys that were used once.
#[derive(Debug)]
pub struct SecondUse<K> {
    seen: Ghost<K>,
}

impl<K: Key> SecondUse<K> {
    /// Creates a rule that remembers `remembered` keys that were used once.
    #[must_use]
    pub fn new(remembered: usize) -> Self {
        Self {
            seen: Ghost::new(remembered as u64),
        }
    }

    /// Creates a rule that remembers as many keys as fit into `bytes` of memory.
    #[must_use]
    pub fn within(bytes: u64) -> Self {
        /// Memory for a remembered key: its entries in a queue and in a table.
        const KEY_BYTES: u64 = 96;
        Self::new((bytes / KEY_BYTES) as usize)
    }
}

impl<K: Key> SecondUse<K> {
    /// Counts a use of `key`, but decides nothing. Callers use this when a stored object is replaced or
    /// deleted. The next version of the object then counts as used before.
    pub fn used(&mut self, key: K) {
        self.seen.insert(key, 1);
    }
}

impl<K: Key> Admission<K> for SecondUse<K> {
    fn admit(&mut self, key: K, _size: u64, _now: MonoTime) -> Admit {
        if self.seen.remove(&key) {
            return Admit::Yes;
        }
        self.seen.insert(key, 1);
        Admit::FirstUse
    }
}

/// An object enters when it was requested often enough lately; the current request counts too.
#[derive(Debug)]
pub struct Frequency {
    uses: Sketch,
    least: u64,
}

impl Frequency {
    /// Creates a rule that counts the uses of about `objects` keys. An object enters after `least` uses
    /// (1 to 15).
    #[must_use]
    pub fn new(objects: usize, least: u64) -> Self {
        Self {
            uses: Sketch::new(objects),
            least,
        }
    }

    /// Creates a rule that admits keys that were requested three times. Its counters take `bytes` of memory.
    #[must_use]
    pub fn often_within(bytes: u64) -> Self {
        /// Memory for the counters of one key.
        const KEY_BYTES: u64 = 4;
        Self::new((bytes / KEY_BYTES) as usize, 3)
    }

    /// Counts a use of `key`, but decides nothing.
    pub fn used<K: Key>(&mut self, key: K) {
        self.uses.add(&key);
    }
}

impl<K: Key> Admission<K> for Frequency {
    fn admit(&mut self, key: K, _size: u64, _now: MonoTime) -> Admit {
        self.uses.add(&key);
        if self.uses.estimate(&key) >= self.least {
            Admit::Yes
        } else {
            Admit::FirstUse
        }
    }
}

/// A budget that grows by a number of bytes per second, up to a limit (the burst). It is counted in whole
/// bytes; fractions of a byte are carried over.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket {
    bytes_per_sec: u64,
    burst_bytes: u64,
    tokens: u64,
    remainder: u128,
    last: MonoTime,
}

const NANOS: u128 = 1_000_000_000;

impl TokenBucket {
    /// Creates a full bucket. `burst_bytes` is also the largest amount that one call can take.
    #[must_use]
    pub const fn new(bytes_per_sec: u64, burst_bytes: u64, now: MonoTime) -> Self {
        Self {
            bytes_per_sec,
            burst_bytes,
            tokens: burst_bytes,
            remainder: 0,
            last: now,
        }
    }

    /// Changes the rate from `now` on. The budget earned until then is kept.
    pub fn set_rate(&mut self, bytes_per_sec: u64, now: MonoTime) {
        self.refill(now);
        self.bytes_per_sec = bytes_per_sec;
    }

    /// Takes `bytes` if they are available; takes nothing otherwise.
    pub fn try_take(&mut self, bytes: u64, now: MonoTime) -> bool {
        self.refill(now);
        if bytes > self.tokens {
            return false;
        }
        self.tokens -= bytes;
        true
    }

    /// Time until `bytes` are available: zero if they already are, `None` if they never will be.
    pub fn wait_for(&mut self, bytes: u64, now: MonoTime) -> Option<Duration> {
        self.refill(now);
        let Some(missing) = bytes.checked_sub(self.tokens).filter(|m| *m > 0) else {
            return Some(Duration::ZERO);
        };
        if self.bytes_per_sec == 0 || bytes > self.burst_bytes {
            return None;
        }
        let owed = u128::from(missing) * NANOS - self.remainder;
        let nanos = owed.div_ceil(u128::from(self.bytes_per_sec));
        Some(Duration::from_nanos(
            u64::try_from(nanos).unwrap_or(u64::MAX),
        ))
    }

    /// Bytes that could be taken at `now`.
    pub fn available(&mut self, now: MonoTime) -> u64 {
        self.refill(now);
        self.tokens
    }

    fn refill(&mut self, now: MonoTime) {
        let elapsed = now.since(self.last).as_nanos();
        self.last = self.last.max(now);
        let earned = elapsed * u128::from(self.bytes_per_sec) + self.remainder;
        let room = self.burst_bytes - self.tokens;
        let bytes = earned / NANOS;
        if bytes >= u128::from(room) {
            self.tokens = self.burst_bytes;
            self.remainder = 0;
        } else {
            self.tokens += bytes as u64;
            self.remainder = earned % NANOS;
        }
    }
}

/// The rule that the store uses. While the byte budget lasts, every object enters. After that, an object
/// enters if a second rule admits it, as long as a separate credit (a token bucket) lasts. After that,
/// nothing enters.
#[derive(Debug)]
pub struct Budgeted<A> {
    budget: TokenBucket,
    credit: TokenBucket,
    filter: A,
}

impl<A> Budgeted<A> {
    /// Creates a rule. Every object is charged to `budget`. When `budget` is exhausted, objects that `filter`
    /// admits are charged to `credit`.
    #[must_use]
    pub const fn new(budget: TokenBucket, credit: TokenBucket, filter: A) -> Self {
        Self {
            budget,
            credit,
            filter,
        }
    }
}

impl<A> Budgeted<A> {
    /// The rule that decides about objects while the budget is exhausted.
    pub const fn filter_mut(&mut self) -> &mut A {
        &mut self.filter
    }
}

impl<K: Key, A: Admission<K>> Admission<K> for Budgeted<A> {
    fn admit(&mut self, key: K, size: u64, now: MonoTime) -> Admit {
        if self.budget.try_take(size, now) {
            return Admit::Yes;
        }
        match self.filter.admit(key, size, now) {
            Admit::Yes if self.credit.try_take(size, now) => Admit::Yes,
            Admit::Yes => Admit::OverBudget,
            refused => refused,
        }
    }
}
