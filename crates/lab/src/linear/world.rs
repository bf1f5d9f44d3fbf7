//! The resources of the origin. The URL, the version and the offset determine every byte. So the bytes of an
//! answer show its version, and whether the answer is correct.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use foxy_base::{Clock, SystemClock, hash64};

use super::record::{Event, Record};

/// The folders in the paths of resources that change.
const FOLDERS: [&str; 3] = ["a", "b", "c"];
/// Number of tags that resources share.
pub(super) const TAGS: u64 = 5;
/// Number of objects that do not change. Clients request them, so that other objects are evicted from memory.
const FILLERS: u64 = 4000;
const FILLER_BYTES: u64 = 60_000;

/// Lifetime of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// One hour.
    Long,
    /// One second; after it, the answer must be validated.
    Short,
    /// The answer must be validated at each use.
    Validated,
}

impl Life {
    /// Value of Cache-Control. It forbids stale answers, because the rules could judge a permitted stale
    /// answer as wrong.
    pub(super) const fn control(self) -> &'static str {
        match self {
            Self::Long => "max-age=3600, must-revalidate",
            Self::Short => "max-age=1, must-revalidate",
            Self::Validated => "no-cache",
        }
    }
}

/// One URL.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) number: u64,
    pub(super) host: String,
    pub(super) path: String,
    pub(super) life: Life,
    /// Greatest number of bytes that the origin sends for a request with a range.
    pub(super) most: u64,
    /// Greatest length of any version.
    bytes: u64,
    version: AtomicU64,
    pub(super) record: Mutex<Record>,
}

impl Resource {
    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.host, self.path)
    }

    pub(super) fn tag(&self) -> u64 {
        self.number % TAGS
    }

    pub(super) fn etag(&self, version: u64) -> String {
        format!("\"{}-{version}\"", self.number)
    }

    /// The version that an ETag contains.
    pub(super) fn version_of(&self, etag: &str) -> Option<u64> {
        let text = etag.strip_prefix('"')?.strip_suffix('"')?;
        let (number, version) = text.split_once('-')?;
        (number.parse() == Ok(self.number)).then(|| version.parse().ok())?
    }

    /// Length of a version.
    pub(super) fn length(&self, version: u64) -> u64 {
        let quarter = self.bytes / 4;
        self.bytes - hash64(self.number, &version.to_le_bytes()) % quarter.max(1)
    }

    /// The bytes `from..to` of a version.
    pub(super) fn bytes(&self, version: u64, from: u64, to: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity((to - from) as usize);
        let mut block = from / 8;
        while block * 8 < to {
            let seed = self.number << 40 ^ version;
            let word = hash64(seed, &block.to_le_bytes()).to_le_bytes();
            let start = from.saturating_sub(block * 8).min(8) as usize;
            let end = (to - block * 8).min(8) as usize;
            out.extend_from_slice(&word[start..end]);
            block += 1;
        }
        out
    }

    /// The current version.
    pub(super) fn now(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Creates a new version and returns its number.
    pub(super) fn publish(&self, world: &World) -> u64 {
        let mut record = lock(&self.record);
        let version = self.version.fetch_add(1, Ordering::SeqCst) + 1;
        record.published(world.time(), version);
        version
    }

    pub(super) fn note(&self, event: Event) {
        lock(&self.record).note(event);
    }
}

/// Locks the mutex, even if another thread panicked while it held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// All resources, and the clock of the run.
#[derive(Debug)]
pub(super) struct World {
    clock: SystemClock,
    pub(super) resources: Vec<Resource>,
}

impl World {
    /// Creates `count` resources that change, and fillers that do not change, at an origin on `port`.
    pub(super) fn new(count: u64, port: u16) -> Self {
        let resource = |number: u64, path: String, bytes: u64| Resource {
            number,
            host: match number % 3 {
                0 => format!("localhost:{port}"),
                _ => format!("127.0.0.1:{port}"),
            },
            path,
            life: match number % 5 {
                0 => Life::Validated,
                1 => Life::Short,
                _ => Life::Long,
            },
            most: match number % 7 {
                3 => 50_000,
                _ => u64::MAX,
            },
            bytes,
            version: AtomicU64::new(1),
            record: Mutex::new(Record::default()),
        };
        let changing = (0..count).map(|number| {
            let bytes = [3_000, 40_000, 300_000, 1_500_000][(number / 2 % 4) as usize];
            let folder = FOLDERS[(number % 3) as usize];
            resource(number, format!("/{folder}/{number}"), bytes)
        });
        let fillers = (count..count + FILLERS).map(|number| Resource {
            life: Life::Long,
            ..resource(number, format!("/fill/{number}"), FILLER_BYTES)
        });
        Self {
            resources: changing.chain(fillers).collect(),
            clock: SystemClock::default(),
        }
    }

    /// Microseconds since the beginning of the run.
    pub(super) fn time(&self) -> u64 {
        self.clock.mono().0 / 1000
    }

    /// Resources that change.
    pub(super) fn changing(&self) -> &[Resource] {
        &self.resources[..self.resources.len() - FILLERS as usize]
    }

    /// Resources that do not change.
    pub(super) fn fillers(&self) -> &[Resource] {
        &self.resources[self.resources.len() - FILLERS as usize..]
    }

    /// Finds a resource by the number at the end of its path.
    pub(super) fn find(&self, target: &str) -> Option<&Resource> {
        let number: usize = target.rsplit('/').next()?.parse().ok()?;
        self.resources.get(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_from_version_and_offset() {
        let world = World::new(8, 80);
        let resource = &world.resources[5];
        let whole = resource.bytes(3, 0, 1000);
        assert_eq!(whole.len(), 1000);
        for (from, to) in [(0, 1), (3, 8), (7, 9), (16, 24), (500, 999)] {
            let part = resource.bytes(3, from, to);
            assert_eq!(part, whole[from as usize..to as usize], "{from}..{to}");
        }
        assert_ne!(resource.bytes(4, 0, 1000), whole);
        assert_ne!(world.resources[6].bytes(3, 0, 1000), whole);
        assert_eq!(resource.version_of(&resource.etag(12)), Some(12));
        assert_eq!(resource.version_of("\"6-12\""), None);
    }
}
