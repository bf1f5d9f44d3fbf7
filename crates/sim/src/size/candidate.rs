//! Candidates of a comparison: a replacement policy over bare objects (only their bodies take space), or
//! Foxy.

use std::{fmt, str::FromStr};

use foxy_policy::AdmissionRule;

use super::admission_filter::choices;
use super::{AdmissionFilter, Sampler};
use crate::levels::PolicyKind;

/// A candidate: a policy over bare objects, or `foxy`. `foxy` is a memory tier before the production store.
/// Its results include the overhead of records and segments, and the effect of reinsertion (used records are
/// written again). The comment at each variant states to which bytes the size of the cache refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// Foxy. The size of the cache is the size of its store.
    Foxy(AdmissionFilter),
    /// A policy. The size of the cache limits only the bytes of the bodies.
    Policy(PolicyKind),
}

impl Candidate {
    /// Foxy without an admission rule.
    pub const FOXY: Self = Self::Foxy(AdmissionFilter::ADMIT_ALL);

    /// The candidates if the user names none: Foxy, Foxy with the admission rule `second-use`, Foxy with each
    /// size limit of `Sampler::limits`, LRU and S3-FIFO.
    #[must_use]
    pub fn usual(sampler: &Sampler) -> Vec<Self> {
        let limits = sampler.limits().into_iter();
        let limits = limits.map(|bytes| Self::Foxy(AdmissionFilter::MaxSize(bytes)));
        [
            Self::FOXY,
            Self::Foxy(AdmissionFilter::Rule(AdmissionRule::SecondUse)),
        ]
        .into_iter()
        .chain(limits)
        .chain([PolicyKind::Lru, PolicyKind::S3Fifo].map(Self::Policy))
        .collect()
    }
}

/// Name of Foxy, and the first part of the names of Foxy with a filter.
pub(super) const FOXY: &str = "foxy";
pub(super) const FILTERED: &str = "foxy:";

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            &Self::FOXY => f.write_str(FOXY),
            Self::Foxy(filter) => write!(f, "{FILTERED}{filter}"),
            Self::Policy(policy) => policy.fmt(f),
        }
    }
}

impl FromStr for Candidate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == FOXY {
            return Ok(Self::FOXY);
        }
        if let Some(filter) = text.strip_prefix(FILTERED) {
            return filter.parse().map(Self::Foxy);
        }
        text.parse()
            .map(Self::Policy)
            .map_err(|error| format!("{error}; or foxy, {}", choices()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_what_is_not_known_is_refused_with_the_choices() {
        for name in [
            "foxy",
            "foxy:second-use",
            "foxy:frequency",
            "foxy:max_size:64KiB",
            "s3-fifo",
        ] {
            let candidate: Candidate = name.parse().unwrap();
            assert_eq!(candidate.to_string(), name);
        }
        assert_eq!("foxy:open".parse(), Ok(Candidate::FOXY));
        for bad in ["foxy:", "foxy:third-use", "foxy:max_size:much", "belady"] {
            let error = bad.parse::<Candidate>().unwrap_err();
            assert!(
                error.contains("foxy:second-use") || error.contains("much"),
                "{error}"
            );
        }
    }
}
