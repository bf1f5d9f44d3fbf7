//! Data sheet of a disk or a flash drive.

use super::{Zone, seek::SeekTimes};

/// A mechanical disk. Times are in milliseconds, as data sheets give them.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskParams {
    /// Short name, lower case.
    pub name: &'static str,
    /// Turns per minute.
    pub rpm: f64,
    /// Recording surfaces.
    pub heads: u32,
    /// Zones, outermost first.
    pub zones: Vec<Zone>,
    /// Seek before a read.
    pub read_seek: SeekTimes,
    /// Seek before a write: the head must settle more exactly.
    pub write_seek: SeekTimes,
    /// To another surface of the same cylinder.
    pub head_switch: f64,
    /// Allowance of the skew over the switch itself.
    pub skew_margin: f64,
    /// Time to decode a command and set up its transfer.
    pub overhead: f64,
    /// Host interface, MB/s.
    pub bus_mb: u64,
    /// True if commands are queued in the drive, so that `overhead` overlaps the one before.
    pub queued: bool,
    /// Segments of the read buffer; 0 = none.
    pub segments: usize,
    /// Bytes of each.
    pub segment_bytes: u64,
    /// Bytes read on after a read, if nothing else is asked for.
    pub read_ahead: u64,
    /// Bytes of write cache; 0 = a write is done when it is on the platter.
    pub write_cache: u64,
}

impl DiskParams {
    /// The nearest parameters that a drive can have: something turns and holds a sector.
    pub(super) fn clamped(mut self) -> Self {
        self.rpm = if self.rpm.is_finite() {
            self.rpm.clamp(60.0, 1e6)
        } else {
            7_200.0
        };
        self.heads = self.heads.clamp(1, 1_024);
        self.zones
            .retain(|zone| zone.cylinders > 0 && zone.sectors > 0);
        if self.zones.is_empty() {
            self.zones.push(Zone {
                cylinders: 1,
                sectors: 1,
            });
        }
        self.bus_mb = self.bus_mb.max(1);
        self
    }
}

/// A flash drive.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashParams {
    /// Short name, lower case.
    pub name: &'static str,
    /// Bytes offered to the host.
    pub bytes: u64,
    /// Latency of a small read, microseconds.
    pub read_us: u64,
    /// Latency of a small write (into the power-safe buffer), microseconds.
    pub write_us: u64,
    /// Requests served at the same time.
    pub parallel: usize,
    /// Sequential read, MB/s over the whole drive.
    pub read_mb: u64,
    /// Sequential write, MB/s over the whole drive.
    pub write_mb: u64,
    /// Bytes read and written at least.
    pub page: u64,
    /// Bytes erased together.
    pub erase_block: u64,
    /// Spare flash as a share of `bytes`.
    pub spare: f64,
}

impl FlashParams {
    /// The nearest parameters that a drive can have.
    pub(super) fn clamped(mut self) -> Self {
        self.parallel = self.parallel.clamp(1, 4_096);
        self.read_mb = self.read_mb.max(1);
        self.write_mb = self.write_mb.max(1);
        self.page = self.page.clamp(512, 1 << 20);
        self.erase_block = self.erase_block.clamp(self.page, 1 << 31);
        self
    }
}
