//! Cache systems: they own their memory and their replacement, are fed the requests themselves,
//! and are compared at equal memory, equal disk and equal requests.

mod counts;
pub mod squid;

pub use counts::{SystemCounts, SystemResult};
pub use squid::{Squid, SquidConfig};

use foxy_trace::{Request, TraceError};

use crate::{
    levels::Outcome,
    model::{FsCounters, FsError, SimTime},
    run::RunError,
};

/// A whole cache.
pub trait CacheSystem {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// One request, until the object is read (a hit) or handed to the system (a miss).
    ///
    /// # Errors
    /// What the file system or partition below refuses, want of space apart.
    fn request(&mut self, request: &Request) -> Result<Outcome, FsError>;

    /// Waits until everything is on the drive.
    ///
    /// # Errors
    /// As [`CacheSystem::request`].
    fn finish(&mut self) -> Result<(), FsError>;

    /// The moment the process has reached.
    fn now(&self) -> SimTime;

    /// What it cost the drive.
    fn counters(&self) -> FsCounters;
}

/// Feeds a stream to a system back to back, as fast as the system goes (THROTTLE).
///
/// # Errors
/// The stream's, or the file system's.
pub fn run_system(
    system: &mut dyn CacheSystem,
    requests: impl Iterator<Item = Result<Request, TraceError>>,
) -> Result<SystemResult, RunError> {
    let fs = |error| RunError::Layout(crate::layout::LayoutError::Fs(error));
    let (start, before) = (system.now(), system.counters());
    let mut counts = SystemCounts::default();
    for request in requests {
        let request = request?;
        let begin = system.now();
        let outcome = system.request(&request).map_err(fs)?;
        counts.add(&request, outcome, system.now() - begin);
    }
    system.finish().map_err(fs)?;
    let span = system.now() - start;
    Ok(SystemResult::new(
        system.name(),
        counts,
        span,
        &before,
        &system.counters(),
    ))
}

#[cfg(test)]
mod tests;
