//! Faults of a [`MemDisk`](super::MemDisk), and when they strike.

use super::OpClass;
use foxy_base::Rng;
use std::ops::Range;
use std::time::Duration;

/// Result of one operation in place of the normal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fails with this `errno` and changes nothing. On a flush: nothing becomes durable.
    Errno(i32),
    /// A write reaches the disk up to this many bytes and fails with `WriteZero`; a read fails with
    /// `UnexpectedEof`. (A device that transfers in parts and then continues is not a fault.)
    Short(u32),
    /// A random part of the write's 512-byte sectors arrives; reported as done.
    Torn,
    /// As `Torn`, but reported as `EIO`.
    TornError,
    /// The write does not arrive; reported as done.
    Lost,
    /// The write goes to a place this many bytes (block-aligned) away, wrapping at the end of the
    /// disk; its own place stays as it was. A read is taken from that other place. Reported as done.
    Misdirected(i64),
    /// The write is acknowledged at once, but arrives after this many later writes and overwrites
    /// them.
    Late(u32),
    /// This many random bits under the operation flip on the medium: before a read, after a write.
    BitRot(u32),
    /// A flush that reports success and makes nothing durable.
    FlushLies,
    /// Completes only at the n-th look (`reap` or `wait`) of its queue from now.
    Looks(u32),
    /// Completes this much later by the disk's clock.
    Delay(Duration),
    /// Never completes, until [`MemDisk::unstick`](super::MemDisk::unstick).
    Stuck,
}

impl Fault {
    /// `EIO`: the device gave up.
    pub const EIO: Self = Self::Errno(5);
    /// `ENOSPC`: no room.
    pub const ENOSPC: Self = Self::Errno(28);
}

/// One kind of trouble: which operations, from when on, how often.
#[derive(Clone, Debug)]
pub struct FaultRule {
    /// Matching operations.
    pub on: OpClass,
    /// Operations touching these bytes; flushes always match.
    pub range: Range<u64>,
    /// Number of matching operations that pass first.
    pub skip: u64,
    /// Number of operations that fail after that; then the rule is spent.
    pub times: u64,
    /// Chance in 0..=1 that a matching operation is hit.
    pub chance: f64,
    /// Effect on a matching operation.
    pub fault: Fault,
}

impl FaultRule {
    /// Hits every operation of the class, everywhere, always.
    #[must_use]
    pub fn new(on: OpClass, fault: Fault) -> Self {
        Self {
            on,
            range: 0..u64::MAX,
            skip: 0,
            times: u64::MAX,
            chance: 1.0,
            fault,
        }
    }
    /// Only operations that touch these bytes.
    #[must_use]
    pub fn within(mut self, range: Range<u64>) -> Self {
        self.range = range;
        self
    }
    /// Lets the first `skip` pass.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }
    /// Hits no more than `times`.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }
    /// Hits with this chance.
    #[must_use]
    pub fn chance(mut self, chance: f64) -> Self {
        self.chance = chance;
        self
    }

    fn matches(&self, class: OpClass, at: u64, len: u64) -> bool {
        let kind = self.on == OpClass::Any || self.on == class;
        let place = class == OpClass::Flush
            || (at < self.range.end && at.saturating_add(len) > self.range.start);
        kind && place
    }
}

/// Rules in order: the first that hits decides.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// The rules.
    pub rules: Vec<FaultRule>,
}

impl FaultPlan {
    /// Nothing goes wrong.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }
    /// Appends a rule.
    #[must_use]
    pub fn and(mut self, rule: FaultRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// The fault that hits this operation, if any; counts it.
    pub(super) fn strike(
        &mut self,
        rng: &mut Rng,
        class: OpClass,
        at: u64,
        len: u64,
    ) -> Option<Fault> {
        for rule in &mut self.rules {
            if !rule.matches(class, at, len) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
            } else if rule.times > 0 && rng.chance(rule.chance) {
                rule.times -= 1;
                return Some(rule.fault);
            }
        }
        None
    }
}

impl From<FaultRule> for FaultPlan {
    fn from(rule: FaultRule) -> Self {
        Self { rules: vec![rule] }
    }
}
