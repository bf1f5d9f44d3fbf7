//! Parameters of the cache levels.

use std::str::FromStr;

use foxy_policy::PolicyKind;
use serde::{Serialize, Serializer};

/// Serialises the name of a policy.
fn name<S: Serializer>(policy: &PolicyKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(policy)
}

/// High and low water mark for the objects on disk (of the disk level, or of Squid), as shares of the
/// capacity. Eviction starts when the used share reaches `high` (in Squid: exceeds it), and stops at `low`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Watermarks {
    /// Share at which eviction stops, above 0 and at most `high`.
    pub low: f64,
    /// Share at which eviction starts, at most 1.
    pub high: f64,
}

impl Watermarks {
    /// Creates both marks, if 0 < low <= high <= 1.
    ///
    /// # Errors
    /// Returns a sentence that describes the mistake, if the marks do not meet this condition.
    pub fn new(low: f64, high: f64) -> Result<Self, String> {
        if 0.0 < low && low <= high && high <= 1.0 {
            Ok(Self { low, high })
        } else {
            Err(format!(
                "water marks {low} and {high} must be 0 < low <= high <= 1"
            ))
        }
    }
}

impl FromStr for Watermarks {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let both = text
            .split_once(':')
            .and_then(|(l, h)| Some((l.parse().ok()?, h.parse().ok()?)));
        let (low, high) = both.ok_or_else(|| format!("`{text}` is not LOW:HIGH"))?;
        Self::new(low, high)
    }
}

/// Parameters of the two cache levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelsConfig {
    /// Bytes of memory; 0: no memory level.
    pub ram: u64,
    /// Replacement policy of the memory level.
    #[serde(serialize_with = "name")]
    pub ram_policy: PolicyKind,
    /// Capacity for objects on disk, in bytes.
    pub disk: u64,
    /// Replacement policy of the disk level.
    #[serde(serialize_with = "name")]
    pub disk_policy: PolicyKind,
    /// Marks for eviction in batches; `None`: evict only as much as a new object needs.
    pub watermarks: Option<Watermarks>,
}

impl LevelsConfig {
    /// Creates two levels with the policy LRU, as in the papers.
    #[must_use]
    pub const fn lru(ram: u64, disk: u64) -> Self {
        Self {
            ram,
            ram_policy: PolicyKind::Lru,
            disk,
            disk_policy: PolicyKind::Lru,
            watermarks: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn water_marks_must_make_sense() {
        assert!(Watermarks::new(0.9, 0.95).is_ok());
        for (low, high) in [(0.0, 0.5), (0.6, 0.5), (0.5, 1.1), (f64::NAN, 1.0)] {
            assert!(Watermarks::new(low, high).is_err());
        }
    }
}
