//! Admission filters for the disk. They are applied as if the write budget were always spent.
//!
//! The rules are those of the crate `foxy-policy`, with the memory that the production store gives them. In
//! the store the rules decide only when the write budget is spent; here they always decide. So the result of
//! a store with a budget lies between the result here and the result of a store that admits everything.

use std::{fmt, str::FromStr};

use foxy_base::{ByteSize, MonoTime};
use foxy_policy::{Admission, AdmissionRule, Filter, SizeLimit};

/// The rule for objects that may enter the disk. The memory before the disk accepts all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionFilter {
    /// Admits objects according to a rule of the setting `when_spent`.
    Rule(AdmissionRule),
    /// Admits objects of up to this many bytes (setting `max_size`).
    MaxSize(u64),
}

impl AdmissionFilter {
    /// Admits everything.
    pub const ADMIT_ALL: Self = Self::Rule(AdmissionRule::Anything);
}

impl fmt::Display for AdmissionFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::MaxSize(bytes) => write!(f, "max_size:{}", ByteSize(*bytes)),
        }
    }
}

impl FromStr for AdmissionFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(size) = text.strip_prefix("max_size:") {
            let size: ByteSize = size.parse().map_err(|error| format!("{error}"))?;
            return Ok(Self::MaxSize(size.bytes()));
        }
        if text == "open" {
            return Ok(Self::ADMIT_ALL);
        }
        let rule = text.parse().map(Self::Rule);
        rule.map_err(|_| format!("admission `{text}` is not known; choose {}", choices()))
    }
}

/// The names of all filters except the filter that admits everything, as used in names of candidates.
pub(super) fn choices() -> String {
    let rules = AdmissionRule::ALL.into_iter();
    let rules = rules.filter(|rule| AdmissionFilter::Rule(*rule) != AdmissionFilter::ADMIT_ALL);
    let names: Vec<_> = rules.map(|rule| format!("foxy:{rule}")).collect();
    format!("{} or foxy:max_size:SIZE", names.join(", "))
}

/// A filter with its state.
pub(super) enum Rule {
    Filter(Filter<u64>),
    MaxSize(SizeLimit),
}

/// A constant time, because no rule uses the time.
const NOW: MonoTime = MonoTime(0);

impl Rule {
    /// Creates a rule that remembers uses in `memory` bytes; `None`: in as much memory as the rule needs.
    pub(super) fn new(filter: AdmissionFilter, memory: Option<u64>) -> Self {
        match filter {
            AdmissionFilter::Rule(rule) => Self::Filter(Filter::new(rule, memory)),
            AdmissionFilter::MaxSize(max_bytes) => Self::MaxSize(SizeLimit { max_bytes }),
        }
    }

    /// True if an object that takes `bytes` bytes may enter.
    pub(super) fn admits(&mut self, object: u64, bytes: u64) -> bool {
        match self {
            Self::Filter(rule) => rule.admit(object, bytes, NOW).is_yes(),
            Self::MaxSize(rule) => rule.admit(object, bytes, NOW).is_yes(),
        }
    }

    /// Counts a use of an object whose old version was removed from the cache just now. So the object's new
    /// version counts as used before.
    pub(super) fn used(&mut self, object: u64) {
        match self {
            Self::Filter(rule) => rule.used(object),
            Self::MaxSize(_) => {}
        }
    }
}
