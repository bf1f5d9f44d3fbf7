//! wg-Hummingbird, the load generator of the Hummingbird papers. It reads a request log and makes the calls
//! that a proxy would make.
//!
//! Rule: each event calls read_file. A hit ends with done_read_file, a miss with write_file. A bounded table
//! contains the last HTML page of each client (the client's page). After the write of an object that is not a
//! page, a hint tells the library to put the object beside the client's page. According to the published
//! text, any request for a page sets the client's page. According to the pseudo-code, only the write of a
//! page sets the client's page. The configuration selects one of these rules.

use foxy_policy::{CachePolicy, Lru};
use foxy_trace::{Class, Request};

use super::{Hummingbird, HummingbirdConfig, HummingbirdError};
use crate::{
    levels::Outcome,
    model::{FsCounters, FsError, Raw, SimTime},
    systems::{CacheSystem, Extras},
};

/// Options of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WgConfig {
    /// Number of clients that are remembered.
    pub clients: u64,
    /// True if hints are given.
    pub hints: bool,
    /// True if only a written page becomes the client's page (the pseudo-code).
    pub pages_by_write: bool,
    /// True if objects that are too large for a cluster are stored, on disk only. If false, they are not
    /// stored.
    pub large: bool,
}

impl Default for WgConfig {
    fn default() -> Self {
        Self {
            clients: 10_000,
            hints: true,
            pages_by_write: false,
            large: false,
        }
    }
}

/// Hummingbird with its generator, as a cache system.
#[derive(Debug)]
pub struct WgHummingbird {
    library: Hummingbird,
    config: WgConfig,
    pages: Lru<u32, u64>,
    /// Number of misses that could not be stored.
    refused: u64,
}

impl WgHummingbird {
    /// Creates an empty cache on a partition.
    #[must_use]
    pub fn new(raw: Raw, library: HummingbirdConfig, config: WgConfig) -> Self {
        Self::over(Hummingbird::new(raw, library), config)
    }

    /// Creates a cache over a library that was filled or recovered before.
    #[must_use]
    pub fn over(library: Hummingbird, config: WgConfig) -> Self {
        Self {
            library,
            config,
            pages: Lru::new(config.clients),
            refused: 0,
        }
    }

    /// The library.
    #[must_use]
    pub const fn library(&self) -> &Hummingbird {
        &self.library
    }

    /// Returns the library, to shut it down or to crash it.
    #[must_use]
    pub fn into_library(self) -> Hummingbird {
        self.library
    }

    fn set_page(&mut self, request: &Request) {
        let mut gone = Vec::new();
        let _ = self
            .pages
            .insert(request.client, request.object, 1, &mut gone);
    }

    fn event(&mut self, request: &Request) -> Result<Outcome, HummingbirdError> {
        let page = request.class == Class::Html;
        let mut outcome = Outcome::Miss;
        match self.library.read_file(request.object) {
            Ok(found) => {
                self.library.done_read_file(request.object)?;
                let fresh = (found.version, found.size) == (request.version, request.size);
                if fresh {
                    if page && !self.config.pages_by_write {
                        self.set_page(request);
                    }
                    return Ok(if found.from_memory {
                        Outcome::RamHit
                    } else {
                        Outcome::DiskHit
                    });
                }
                self.library.delete_file(request.object)?;
                outcome = Outcome::Modified;
            }
            Err(HummingbirdError::NotFound) => {}
            Err(error) => return Err(error),
        }
        if !self.write(request)? {
            self.refused += 1;
            return Ok(outcome);
        }
        if page {
            self.set_page(request);
        } else if self.config.hints
            && let Some(page) = self.pages.get(&request.client).copied()
        {
            // The hint may fail; a failure is ignored.
            let _ = self.library.collocate_files(page, request.object);
        }
        Ok(outcome)
    }

    /// Stores the object of a miss. Returns false if the object is too large for a cluster and was not
    /// stored.
    fn write(&mut self, request: &Request) -> Result<bool, HummingbirdError> {
        let (name, size, version) = (request.object, request.size, request.version);
        match self.library.write_file(name, size, version) {
            Ok(_) => Ok(true),
            Err(HummingbirdError::TooLarge) if self.config.large => {
                match self.library.write_nomem_file(name, size, version) {
                    Ok(_) => Ok(true),
                    Err(HummingbirdError::NoCluster) => Ok(false),
                    Err(error) => Err(error),
                }
            }
            Err(HummingbirdError::TooLarge) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Converts an error of the library into an error that ends a run.
const fn stop(error: HummingbirdError) -> FsError {
    match error {
        HummingbirdError::NoCluster => FsError::NoSpace,
        HummingbirdError::Disk(error) => error,
        _ => FsError::Io,
    }
}

impl CacheSystem for WgHummingbird {
    fn name(&self) -> &'static str {
        "hummingbird"
    }

    fn request(&mut self, request: &Request) -> Result<Outcome, FsError> {
        if !request.is_cacheable() || request.size == 0 {
            return Ok(Outcome::Bypass);
        }
        let outcome = self.event(request).map_err(stop)?;
        self.library.tick().map_err(stop)?;
        Ok(outcome)
    }

    fn idle(&mut self, until: SimTime) -> Result<(), FsError> {
        self.library.idle(until).map_err(stop)
    }

    fn finish(&mut self) -> Result<(), FsError> {
        self.library.disk.flush();
        Ok(())
    }

    fn now(&self) -> SimTime {
        self.library.now()
    }

    fn counters(&self) -> FsCounters {
        self.library.device()
    }

    fn extras(&self) -> Extras {
        let counts = self.library.counts();
        Extras {
            prefetched: counts.prefetched,
            prefetch_hits: counts.prefetch_hits,
            table_bytes: self.library.metadata_bytes(),
            refused: self.refused,
        }
    }
}
