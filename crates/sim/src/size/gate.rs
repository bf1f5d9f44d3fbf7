//! Admission to the disk, as if the write budget were always spent.
//!
//! The rules are those of crate `policy`, with the memory that the production store gives them. There
//! they decide at the end of a budget, here about everything: a store with a budget lies between
//! this and one that lets everything in.

use std::{fmt, str::FromStr};

use foxy_base::{ByteSize, MonoTime};
use foxy_policy::{Admission, Frequency, SecondUse, SizeLimit};

/// Objects that may enter the disk. Memory before it takes everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// Everything.
    #[default]
    Open,
    /// Objects that were requested before: `when_spent = "second-use"`.
    SecondUse,
    /// Objects that were requested three times lately: `when_spent = "frequency"`.
    Frequency,
    /// Objects up to this number of bytes: `max_size`.
    MaxSize(u64),
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open => f.write_str("open"),
            Self::SecondUse => f.write_str("second-use"),
            Self::Frequency => f.write_str("frequency"),
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
        match text {
            "open" => Ok(Self::Open),
            "second-use" => Ok(Self::SecondUse),
            "frequency" => Ok(Self::Frequency),
            _ => Err(format!(
                "admission `{text}` is not known; choose foxy:second-use, foxy:frequency or \
                 foxy:max_size:SIZE"
            )),
        }
    }
}

/// A gate at work.
pub(super) enum Rule {
    Open,
    SecondUse(SecondUse<u64>),
    Frequency(Frequency),
    MaxSize(SizeLimit),
}

/// Bytes that count more keys than a sample usually has requests.
const PLENTY: u64 = 4 << 20;

/// No rule looks at the time.
const NOW: MonoTime = MonoTime(0);

impl Rule {
    /// With `memory` bytes to remember uses in; `None`: as many as it wants.
    pub(super) fn new(gate: Gate, memory: Option<u64>) -> Self {
        match gate {
            Gate::Open => Self::Open,
            Gate::SecondUse => {
                let all = || SecondUse::new(usize::MAX);
                Self::SecondUse(memory.map_or_else(all, SecondUse::within))
            }
            Gate::Frequency => Self::Frequency(Frequency::often_within(memory.unwrap_or(PLENTY))),
            Gate::MaxSize(max_bytes) => Self::MaxSize(SizeLimit { max_bytes }),
        }
    }

    /// True if an object may enter that takes this many bytes.
    pub(super) fn admits(&mut self, object: u64, bytes: u64) -> bool {
        match self {
            Self::Open => true,
            Self::SecondUse(rule) => rule.admit(object, bytes, NOW).is_yes(),
            Self::Frequency(rule) => rule.admit(object, bytes, NOW).is_yes(),
            Self::MaxSize(rule) => rule.admit(object, bytes, NOW).is_yes(),
        }
    }

    /// An object was in the cache until now: what comes in its place is used again.
    pub(super) fn used(&mut self, object: u64) {
        match self {
            Self::SecondUse(rule) => rule.used(object),
            Self::Frequency(rule) => rule.used(object),
            Self::Open | Self::MaxSize(_) => {}
        }
    }
}
