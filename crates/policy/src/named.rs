//! Replacement policies by their names, for programs that let people choose.

use std::{fmt, str::FromStr};

use foxy_base::ByteSize;

use crate::{
    CachePolicy, Clock, Fifo, LfuAging, Lru, LruTh, S3Fifo, Sieve, SizeLimited, WTinyLfu,
    WTinyLfuConfig, WTinyLfuRule,
};

/// A replacement policy. [`PolicyKind::CHOICES`] lists the names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PolicyKind {
    /// The least recently used object is evicted first.
    #[default]
    Lru,
    /// LRU for objects up to this many bytes; larger objects are not cached.
    LruTh(u64),
    /// The oldest object is evicted first.
    Fifo,
    /// CLOCK (second chance).
    Clock,
    /// SIEVE.
    Sieve,
    /// S3-FIFO with its authors' defaults.
    S3Fifo,
    /// The object with the fewest uses is evicted first. Counts are halved when their mean exceeds a maximum.
    LfuAging,
    /// W-TinyLFU with its authors' defaults.
    WTinyLfu,
}

/// A cache of objects under any policy.
pub type AnyCache<V> = Box<dyn CachePolicy<u64, V> + Send>;

/// Assumed mean size of an object in bytes, for the size of W-TinyLFU's sketch.
const MEAN_OBJECT: u64 = 8 << 10;

impl PolicyKind {
    /// One example of each policy. Tests check the properties of a cache for all of them.
    pub const EACH: [Self; 8] = [
        Self::Lru,
        Self::LruTh(64 << 10),
        Self::Fifo,
        Self::Clock,
        Self::Sieve,
        Self::S3Fifo,
        Self::LfuAging,
        Self::WTinyLfu,
    ];

    /// The names of all policies, for people.
    pub const CHOICES: &'static str =
        "lru, lru-th:SIZE, fifo, clock, sieve, s3-fifo, lfu-aging or w-tinylfu";

    /// Creates an empty cache of `capacity` bytes.
    #[must_use]
    pub fn build<V: Send + 'static>(self, capacity: u64) -> AnyCache<V> {
        self.build_part(capacity, capacity)
    }

    /// Creates an empty cache of `capacity` bytes for a simulation that uses only a sample of the keys. The
    /// cache imitates a cache of `whole` bytes for all keys. So limits on the size of an object follow from
    /// `whole`.
    #[must_use]
    pub fn build_part<V: Send + 'static>(self, capacity: u64, whole: u64) -> AnyCache<V> {
        match self {
            Self::Lru => Box::new(Lru::new(capacity)),
            Self::LruTh(most) => Box::new(LruTh::new(capacity, most)),
            Self::Fifo => Box::new(Fifo::new(capacity)),
            Self::Clock => Box::new(Clock::new(capacity)),
            Self::Sieve => Box::new(Sieve::new(capacity)),
            // Objects that the small queue cannot hold are refused, as in the simulator of S3-FIFO's authors.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for kind in PolicyKind::EACH {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert_eq!(kind.build::<u32>(100).capacity(), 100);
            let name = kind.to_string();
            let shown = name.split(':').next().unwrap_or_default();
            assert!(PolicyKind::CHOICES.contains(shown), "{name}");
        }
        let unknown = "lfu".parse::<PolicyKind>().unwrap_err();
        assert!(unknown.contains("lfu-aging"));
        assert!("lru-th:x".parse::<PolicyKind>().is_err());
    }
}
