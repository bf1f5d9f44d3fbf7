//! Parameters of the cache levels, and how a policy is named.

use std::{fmt, str::FromStr};

use foxy_base::ByteSize;
use foxy_policy::{
    CachePolicy, Clock, Fifo, LfuAging, Lru, LruTh, S3Fifo, Sieve, SizeLimited, WTinyLfu,
    WTinyLfuConfig, WTinyLfuRule,
};
use serde::{Serialize, Serializer};

/// A replacement policy of a level, named as [`PolicyKind::CHOICES`] says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// Least recently used goes first.
    #[default]
    Lru,
    /// LRU for objects up to this many bytes; larger ones are not cached.
    LruTh(u64),
    /// Oldest goes first.
    Fifo,
    /// Second chance.
    Clock,
    /// SIEVE.
    Sieve,
    /// S3-FIFO with its authors' defaults.
    S3Fifo,
    /// Fewest uses goes first, counts halved at times.
    LfuAging,
    /// W-TinyLFU with its authors' defaults.
    WTinyLfu,
}

/// A cache of objects under any policy.
pub type AnyCache<V> = Box<dyn CachePolicy<u64, V> + Send>;

/// Bytes of a mean object, to size the sketch of W-TinyLFU.
const MEAN_OBJECT: u64 = 8 << 10;

impl PolicyKind {
    /// The names of all, for people.
    pub const CHOICES: &'static str =
        "lru, lru-th:SIZE, fifo, clock, sieve, s3-fifo, lfu-aging or w-tinylfu";

    /// An empty cache of `capacity` bytes.
    #[must_use]
    pub fn build<V: Send + 'static>(self, capacity: u64) -> AnyCache<V> {
        self.build_part(capacity, capacity)
    }

    /// An empty cache of `capacity` bytes that stands for one of `whole` bytes: limits on the size of
    /// an object are those of the whole.
    #[must_use]
    pub fn build_part<V: Send + 'static>(self, capacity: u64, whole: u64) -> AnyCache<V> {
        match self {
            Self::Lru => Box::new(Lru::new(capacity)),
            Self::LruTh(most) => Box::new(LruTh::new(capacity, most)),
            Self::Fifo => Box::new(Fifo::new(capacity)),
            Self::Clock => Box::new(Clock::new(capacity)),
            Self::Sieve => Box::new(Sieve::new(capacity)),
            // As its authors' simulator: what the small queue cannot hold is refused.
            Self::S3Fifo => {
                let small = (whole / 10).saturating_sub(1);
                let cache = S3Fifo::new(capacity);
                Box::new(SizeLimited::with_cache(cache, small, "s3-fifo"))
            }
            Self::LfuAging => Box::new(LfuAging::new(capacity)),
            Self::WTinyLfu => {
                let objects = (capacity / MEAN_OBJECT).clamp(64, 1 << 28) as usize;
                let config = WTinyLfuConfig {
                    objects,
                    ..WTinyLfuConfig::default()
                };
                Box::new(WTinyLfu::with_rule(capacity, WTinyLfuRule::new(config)))
            }
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lru => f.write_str("lru"),
            Self::LruTh(most) => write!(f, "lru-th:{}", ByteSize(*most)),
            Self::Fifo => f.write_str("fifo"),
            Self::Clock => f.write_str("clock"),
            Self::Sieve => f.write_str("sieve"),
            Self::S3Fifo => f.write_str("s3-fifo"),
            Self::LfuAging => f.write_str("lfu-aging"),
            Self::WTinyLfu => f.write_str("w-tinylfu"),
        }
    }
}

impl FromStr for PolicyKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("policy `{text}` is not known; choose {}", Self::CHOICES);
        if let Some(size) = text.strip_prefix("lru-th:") {
            let size: ByteSize = size.parse().map_err(|error| format!("{error}"))?;
            return Ok(Self::LruTh(size.bytes()));
        }
        Ok(match text {
            "lru" => Self::Lru,
            "fifo" => Self::Fifo,
            "clock" => Self::Clock,
            "sieve" => Self::Sieve,
            "s3-fifo" => Self::S3Fifo,
            "lfu-aging" => Self::LfuAging,
            "w-tinylfu" => Self::WTinyLfu,
            _ => return Err(unknown()),
        })
    }
}

impl Serialize for PolicyKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// When a replacement daemon evicts: at `high` it begins, at `low` it stops, both as shares of
/// the capacity (the papers' high and low water mark).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Watermarks {
    /// Share at which it stops, 0 to `high`.
    pub low: f64,
    /// Share at which it begins, up to 1.
    pub high: f64,
}

impl Watermarks {
    /// Both marks, if 0 < low <= high <= 1.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
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

/// Parameters of the two levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LevelsConfig {
    /// Bytes of memory; 0: no such level.
    pub ram: u64,
    /// Policy of the memory.
    pub ram_policy: PolicyKind,
    /// Bytes of objects on disk.
    pub disk: u64,
    /// Policy of the disk.
    pub disk_policy: PolicyKind,
    /// Evict in batches between these marks; `None`: just what a new object needs.
    pub watermarks: Option<Watermarks>,
}

impl LevelsConfig {
    /// LRU over LRU, as in the papers.
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
    fn names_read_back() {
        for kind in [
            PolicyKind::Lru,
            PolicyKind::LruTh(1 << 20),
            PolicyKind::Fifo,
            PolicyKind::Clock,
            PolicyKind::Sieve,
            PolicyKind::S3Fifo,
            PolicyKind::LfuAging,
            PolicyKind::WTinyLfu,
        ] {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(kind.build::<u32>(100).capacity(), 100);
        }
        assert!(
            "lfu"
                .parse::<PolicyKind>()
                .unwrap_err()
                .contains("lfu-aging")
        );
        assert!("lru-th:x".parse::<PolicyKind>().is_err());
    }

    #[test]
    fn water_marks_must_make_sense() {
        assert!(Watermarks::new(0.9, 0.95).is_ok());
        for (low, high) in [(0.0, 0.5), (0.6, 0.5), (0.5, 1.1), (f64::NAN, 1.0)] {
            assert!(Watermarks::new(low, high).is_err());
        }
    }
}
