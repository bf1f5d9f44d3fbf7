//! Modelled drives. The cost of a request depends on the position of the head and the contents of the buffer.
//!
//! A disk has zones, skewed tracks, and a platter whose angle depends on the time. Its seek curve goes
//! through the three seek times of its data sheet. The disk also has a segmented buffer with read-ahead, and
//! a write cache if the original disk used a write cache. A flash drive has latency, parallel requests, one
//! shared path, and copying before erasing. [`Queue`] is the driver's request queue (elevator) in front of a
//! drive of either kind.
//!
//! The model leaves out the following behaviour of real drives:
//!
//! - spare sectors and errors;
//! - tracks that alternate direction;
//! - reads of a track that begin with the sector under the head instead of the first requested sector;
//! - reordering by the drive itself, except for cached writes.

mod buffer;
mod disk;
mod drives;
mod flash;
mod geometry;
mod params;
mod queue;
mod request;
mod seek;
mod stats;
#[cfg(test)]
mod tests;

pub use geometry::{Zone, even_zones};
pub use params::{DiskParams, FlashParams};
pub use queue::{Owner, Queue};
pub use request::{Op, Request, Schedule};
pub use seek::SeekTimes;
pub use stats::{DriveStats, TraceEntry};

use crate::model::SimTime;
use disk::Disk;
use drives::Params;
use flash::Flash;

/// Bytes of a sector, the unit of every drive here.
pub const SECTOR: u64 = 512;

#[derive(Clone, Debug)]
enum Kind {
    Disk(Box<Disk>),
    Flash(Box<Flash>),
}

/// A modelled drive. It completes one call of [`Drive::serve`] before the next call.
#[derive(Clone, Debug)]
pub struct Drive {
    name: &'static str,
    kind: Kind,
    stats: DriveStats,
}

impl Drive {
    /// The names that [`Drive::named`] accepts.
    pub const NAMES: [&'static str; 8] = drives::NAMES;

    /// Creates a drive by its name, with the head at the first cylinder and empty buffers; `None` for a name
    /// that is not in [`Drive::NAMES`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        drives::params(name).map(|params| match params {
            Params::Disk(params) => Self::disk(params),
            Params::Flash(params) => Self::flash(params),
        })
    }

    /// Creates a mechanical disk with the caller's parameters.
    #[must_use]
    pub fn disk(params: DiskParams) -> Self {
        let name = params.name;
        Self {
            name,
            kind: Kind::Disk(Box::new(Disk::new(params))),
            stats: DriveStats::default(),
        }
    }

    /// Creates a flash drive with the caller's parameters.
    #[must_use]
    pub fn flash(params: FlashParams) -> Self {
        let name = params.name;
        Self {
            name,
            kind: Kind::Flash(Box::new(Flash::new(params))),
            stats: DriveStats::default(),
        }
    }

    /// The parameters of a named disk, for callers that vary them; `None` for flash and unknown names.
    #[must_use]
    pub fn disk_params(name: &str) -> Option<DiskParams> {
        match drives::params(name)? {
            Params::Disk(params) => Some(params),
            Params::Flash(_) => None,
        }
    }

    /// Name of the drive.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Capacity of the drive in bytes.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match &self.kind {
            Kind::Disk(disk) => disk.bytes(),
            Kind::Flash(flash) => flash.bytes(),
        }
    }

    /// Position of the head: the byte address after the last transfer.
    #[must_use]
    pub const fn head(&self) -> u64 {
        match &self.kind {
            Kind::Disk(disk) => disk.at(),
            Kind::Flash(flash) => flash.at(),
        }
    }

    /// Time at which the drive can begin the next request.
    #[must_use]
    pub fn ready_at(&self) -> SimTime {
        match &self.kind {
            Kind::Disk(disk) => disk.ready_at(),
            Kind::Flash(flash) => flash.ready_at(),
        }
    }

    /// Time of one revolution of the platter; zero for flash.
    #[must_use]
    pub fn revolution(&self) -> SimTime {
        match &self.kind {
            Kind::Disk(disk) => disk.revolution(),
            Kind::Flash(_) => SimTime::ZERO,
        }
    }

    /// Number of cylinders; 0 for flash.
    #[must_use]
    pub const fn cylinders(&self) -> u32 {
        match &self.kind {
            Kind::Disk(disk) => disk.cylinders(),
            Kind::Flash(_) => 0,
        }
    }

    /// Serves `request`, which reached the drive at `now`. Returns the time at which the request is done for
    /// the host (a cached write is done when its data is in the drive's buffer). The part of the request
    /// beyond the end of the drive is cut off. If no bytes remain, the request is done as soon as the drive
    /// is ready.
    pub fn serve(&mut self, now: SimTime, request: Request) -> SimTime {
        let end = request.end().min(self.capacity());
        let request = Request {
            len: end.saturating_sub(request.at),
            ..request
        };
        if request.len == 0 {
            return now.max(self.ready_at());
        }
        let before = self.head();
        let (start, end) = match &mut self.kind {
            Kind::Disk(disk) => disk.serve(now, request, &mut self.stats),
            Kind::Flash(flash) => flash.serve(now, request, &mut self.stats),
        };
        self.stats.count(
            TraceEntry {
                start,
                end,
                op: request.op,
                at: request.at,
                len: request.len,
            },
            before,
        );
        end
    }

    /// Waits until the drive's write cache is on the medium. Returns the time at which this is done.
    pub fn flush(&mut self, now: SimTime) -> SimTime {
        match &mut self.kind {
            Kind::Disk(disk) => disk.flush(now, &mut self.stats),
            Kind::Flash(flash) => now.max(flash.ready_at()),
        }
    }

    /// Makes a flash drive behave like a drive that was completely written once; disks do not age.
    pub fn age(&mut self) {
        if let Kind::Flash(flash) = &mut self.kind {
            flash.age();
        }
    }

    /// The counts of the drive so far.
    #[must_use]
    pub const fn stats(&self) -> &DriveStats {
        &self.stats
    }

    /// The counts of the drive, as a mutable reference. A caller can reset the sums after a warm-up, or
    /// start a head trace (a list of the next requests).
    pub const fn stats_mut(&mut self) -> &mut DriveStats {
        &mut self.stats
    }
}
