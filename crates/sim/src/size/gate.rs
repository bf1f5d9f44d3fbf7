//! Admission to the disk, as if the write budget were always spent.
//!
//! The rules are those of crate `policy`, with the memory that the production store gives them. In
//! the store they decide only when the budget is spent, here always. So the result of a store with a
//! budget lies between the result here and that of a store that admits everything.

use std::{fmt, str::FromStr};

use foxy_base::{ByteSize, MonoTime};
use foxy_policy::{Admission, AdmissionRule, Filter, SizeLimit};

/// Objects that may enter the disk. Memory before it takes everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Objects that this rule admits (setting `when_spent`).
    Rule(AdmissionRule),
    /// Objects up to this number of bytes (setting `max_size`).
    MaxSize(u64),
}

impl Gate {
    /// Everything.
    pub const OPEN: Self = Self::Rule(AdmissionRule::Anything);
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::MaxSize(bytes) => write!(f, "max_size:{}", ByteSize(*bytes)),
        }
    }
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(size) = text.strip_prefix("max_size:") {
            let size: ByteSize = size.parse().map_err(|error| format!("{error}"))?;
            return Ok(Self::MaxSize(size.bytes()));
        }
        if text == "open" {
            return Ok(Self::OPEN);
        }
        let rule = text.parse().map(Self::Rule);
        rule.map_err(|_| format!("admission `{text}` is not known; choose {}", choices()))
    }
}

/// The names of all gates that are not open, as candidates have them.
pub(super) fn choices() -> String {
    let rules = AdmissionRule::ALL.into_iter();
    let rules = rules.filter(|rule| Gate::Rule(*rule) != Gate::OPEN);
    let names: Vec<_> = rules.map(|rule| format!("foxy:{rule}")).collect();
    format!("{} or foxy:max_size:SIZE", names.join(", "))
}

/// A gate at work.
pub(super) enum Rule {
    Filter(Filter<u64>),
    MaxSize(SizeLimit),
}

/// No rule looks at the time.
const NOW: MonoTime = MonoTime(0);

impl Rule {
    /// With `memory` bytes to remember uses in; `None`: with as much as the rule needs.
    pub(super) fn new(gate: Gate, memory: Option<u64>) -> Self {
        match gate {
            Gate::Rule(rule) => Self::Filter(Filter::new(rule, memory)),
            Gate::MaxSize(max_bytes) => Self::MaxSize(SizeLimit { max_bytes }),
        }
    }

    /// True if an object may enter that takes this many bytes.
    pub(super) fn admits(&mut self, object: u64, bytes: u64) -> bool {
        match self {
            Self::Filter(rule) => rule.admit(object, bytes, NOW).is_yes(),
            Self::MaxSize(rule) => rule.admit(object, bytes, NOW).is_yes(),
        }
    }

    /// An object was in the cache until now, so that its new version counts as used before.
    pub(super) fn used(&mut self, object: u64) {
        match self {
            Self::Filter(rule) => rule.used(object),
            Self::MaxSize(_) => {}
        }
    }
}
