//! The library: opening, closing, and lifetimes of files. Section numbers are those of the Hummingbird paper.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use foxy_base::{Clock, KeyHash, SystemClock, key_hash};
use foxy_disk::{Disk, FileDisk, OpenOptions};
use foxy_store::{Engine, Object, Writer};
use parking_lot::Mutex;

use crate::driver::Threads;
use crate::file::Names;
use crate::stats::Counters;
use crate::{Config, DiskPath, Driver, Error, MAX_NAME_BYTES};

/// The file system. Clones are the same file system. When the last clone is dropped, the file system is
/// closed as by [`Hummingbird::close`].
#[derive(Clone, Debug)]
pub struct Hummingbird {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) names: Arc<Names>,
    pub(crate) counters: Counters,
    pub(crate) replicas: bool,
    /// True if the library's own threads call [`Driver::turn`].
    pub(crate) driven: bool,
    pack_age: Duration,
    /// Lifetime in milliseconds; `FOR_EVER` means no limit.
    file_lifetime: AtomicU64,
    cluster_lifetime: AtomicU64,
    threads: Mutex<Option<Threads>>,
}

/// A name and its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) hash: KeyHash,
}

impl<'a> Name<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes.is_empty() || bytes.len() > MAX_NAME_BYTES {
            return Err(Error::Name);
        }
        let hash = key_hash(bytes);
        Ok(Self { bytes, hash })
    }
}

impl Hummingbird {
    /// Opens the disks, formats empty disks, recovers their contents (section 4.6), and starts the daemons
    /// (section 4.5), one thread for each disk. After the return, a file is found as soon as recovery has
    /// loaded it ([`crate::Statistics::recovering`]). Deleted and replaced files are never returned.
    ///
    /// # Errors
    /// Returns [`Error::Config`], [`Error::Disk`], [`Error::Store`] or [`Error::Thread`]. The text of the
    /// error tells the user what to do.
    pub fn open(config: &Config) -> Result<Self, Error> {
        config.check()?;
        let open = |disk: &DiskPath| -> Result<Arc<dyn Disk>, Error> {
            let options = OpenOptions {
                create_len: disk.bytes,
                ..OpenOptions::default()
            };
            Ok(Arc::new(FileDisk::open(&disk.path, &options)?))
        };
        let disks = config
            .disks
            .iter()
            .map(open)
            .collect::<Result<Vec<_>, _>>()?;
        // `RandomState` takes its keys from the system's random numbers, so this hash of no data is a random
        // seed.
        let seed = RandomState::new().build_hasher().finish();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let (library, writers) = Self::assemble(config, &disks, clock, seed, true)?;
        *library.inner.threads.lock() = Some(Threads::start(writers)?);
        Ok(library)
    }

    /// Opens the library on disks that are already open, and starts no threads. It returns one driver for
    /// each disk, and the caller calls [`Driver::turn`] of each driver. All random choices follow from
    /// `seed`, so that a run can be repeated.
    ///
    /// # Errors
    /// Returns [`Error::Config`] or [`Error::Store`].
    pub fn on_disks(
        config: &Config,
        disks: &[Arc<dyn Disk>],
        clock: Arc<dyn Clock>,
        seed: u64,
    ) -> Result<(Self, Vec<Driver>), Error> {
        config.check()?;
        let (library, writers) = Self::assemble(config, disks, clock, seed, false)?;
        Ok((library, writers.into_iter().map(Driver::new).collect()))
    }

    fn assemble(
        config: &Config,
        disks: &[Arc<dyn Disk>],
        clock: Arc<dyn Clock>,
        seed: u64,
        driven: bool,
    ) -> Result<(Self, Vec<Writer>), Error> {
        if disks.is_empty() {
            let (what, why) = ("disks", "one at least");
            return Err(Error::Config { what, why });
        }
        let options = config.store();
        let engine = Engine::new(config.engine(seed), Arc::clone(&clock));
        engine.compare_memberships(disks, &options)?;
        let open = |disk: &Arc<dyn Disk>| engine.open_store(Arc::clone(disk), options.clone());
        let mut writers = disks.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        engine.join(&mut writers)?;
        let library = Self {
            inner: Arc::new(Inner {
                engine,
                clock,
                names: Names::new(),
                counters: Counters::default(),
                replicas: config.replicas,
                driven,
                pack_age: config.pack_age,
                file_lifetime: AtomicU64::new(FOR_EVER),
                cluster_lifetime: AtomicU64::new(FOR_EVER),
                threads: Mutex::new(None),
            }),
        };
        library.update_file_lifetime(config.file_lifetime);
        library.update_cluster_lifetime(config.cluster_lifetime);
        Ok((library, writers))
    }

    /// Packs and writes all files, and ends the daemons. Returns true if everything is durable. Returns false
    /// if this takes longer than 20 seconds, or if a disk refuses writes. Later calls on clones still use
    /// memory and the contents of the disks, but a file that such a call writes is no longer packed.
    #[must_use]
    pub fn close(self) -> bool {
        let threads = self.inner.threads.lock().take();
        threads.is_none_or(|mut threads| threads.end())
    }

    /// Changes the lifetime of files (section 4.2). This includes existing files.
    pub fn update_file_lifetime(&self, lifetime: Option<Duration>) {
        let millis = millis(lifetime);
        self.inner.file_lifetime.store(millis, Ordering::Relaxed);
    }

    /// Changes the lifetime of clusters (section 4.2). This includes existing clusters.
    pub fn update_cluster_lifetime(&self, lifetime: Option<Duration>) {
        let millis = millis(lifetime);
        self.inner.cluster_lifetime.store(millis, Ordering::Relaxed);
    }
}

/// The value for "no limit", in milliseconds. 0 is a valid lifetime, which ends immediately.
const FOR_EVER: u64 = u64::MAX;

fn millis(lifetime: Option<Duration>) -> u64 {
    lifetime.map_or(FOR_EVER, |life| {
        u64::try_from(life.as_millis()).unwrap_or(FOR_EVER)
    })
}

impl Inner {
    /// Milliseconds that a file lives after it was written; `None` if there is no limit.
    pub(crate) fn life(&self) -> Option<i64> {
        let files = self.file_lifetime.load(Ordering::Relaxed);
        let clusters = self.cluster_lifetime.load(Ordering::Relaxed);
        let pack = u64::try_from(self.pack_age.as_millis()).unwrap_or(u64::MAX);
        let least = match clusters {
            FOR_EVER => files,
            _ => files.min(clusters.saturating_add(pack)),
        };
        (least != FOR_EVER).then(|| i64::try_from(least).unwrap_or(i64::MAX))
    }

    /// True if a file is past its lifetime.
    pub(crate) fn is_over(&self, file: &Object) -> bool {
        let written = file.meta().response_time.millis();
        // If the clock was set back, the age is 0, never negative.
        let age = self.clock.wall().millis().saturating_sub(written).max(0);
        self.life().is_some_and(|life| age >= life)
    }
}
