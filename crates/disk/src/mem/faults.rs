//! Faults of a [`MemDisk`](super::MemDisk), and the rules that select operations for them.

use super::OpClass;
use foxy_base::Rng;
use std::ops::Range;
use std::time::Duration;

/// A fault: the result of one operation in place of the normal result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The operation fails with this `errno` and changes nothing. A flush that fails makes nothing
    /// durable.
    Errno(i32),
    /// At most this many bytes at the beginning of a write reach the disk, and the write fails with
    /// `WriteZero`. A read fails with `UnexpectedEof`. (A short transfer that the device continues later is
    /// not a fault.)
    Short(u32),
    /// A random part of the write's 512-byte sectors reaches the disk. The write is reported as done.
    Torn,
    /// As `Torn`, but reported as `EIO`.
    TornError,
    /// The write does not reach the disk, and is reported as done.
    Lost,
    /// The write goes to a position this many bytes (block-aligned) away, wrapping at the end of the disk.
    /// The position that the caller named keeps its old contents. A read returns the bytes of the wrong
    /// position. The operation is reported as done.
    Misdirected(i64),
    /// The write is reported as done, but reaches the disk only after this many later writes. It then
    /// overwrites their bytes.
    Late(u32),
    /// This many random bits in the range of the operation flip on the disk: before a read, or after a write.
    BitRot(u32),
    /// A flush reports success and makes nothing durable.
    FlushLies,
    /// The operation completes only when its queue has been checked (`reap` or `wait`) this many times after
    /// the execution.
    Looks(u32),
    /// The operation completes this much later by the disk's clock.
    Delay(Duration),
    /// The operation does not complete until [`MemDisk::unstick`](super::MemDisk::unstick).
    Stuck,
}

impl Fault {
    /// `EIO`: the device failed.
    pub const EIO: Self = Self::Errno(5);
    /// `ENOSPC`: no space is left.
    pub const ENOSPC: Self = Self::Errno(28);
}

/// A rule for faults. It selects operations, and states how many of them succeed first and how many are then
/// hit.
#[derive(Clone, Debug)]
pub struct FaultRule {
    /// Class of operations that the rule concerns.
    pub on: OpClass,
    /// Bytes that an operation must touch to be hit. The range does not matter for flushes.
    pub range: Range<u64>,
    /// Number of matching operations that succeed first.
    pub skip: u64,
    /// Number of matching operations that the rule hits after the skipped operations. Then the rule has no
    /// further effect.
    pub times: u64,
    /// Chance in 0..=1 that a matching operation is hit.
    pub chance: f64,
    /// Effect on a matching operation.
    pub fault: Fault,
}

impl FaultRule {
    /// A rule that hits every operation of the class, at any position, without limit.
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
    /// Limits the rule to operations that touch these bytes.
    #[must_use]
    pub fn within(mut self, range: Range<u64>) -> Self {
        self.range = range;
        self
    }
    /// Lets the first `skip` matching operations succeed.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }
    /// Limits the rule to `times` hits.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }
    /// Sets the chance of a hit.
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

/// Fault rules in their order. The first rule that hits an operation decides.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// The rules.
    pub rules: Vec<FaultRule>,
}

impl FaultPlan {
    /// A plan without faults.
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

    /// The fault that hits this operation, if any. The rule counts the operation.
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
