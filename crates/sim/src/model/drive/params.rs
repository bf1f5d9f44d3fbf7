//! Data sheet of a mechanical disk or of a flash drive.

use super::{Zone, seek::SeekTimes};

/// Parameters of a mechanical disk. Times are in milliseconds, as in data sheets.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskParams {
    /// Short name, lower case.
    pub name: &'static str,
    /// Revolutions per minute.
    pub rpm: f64,
    /// Recording surfaces.
    pub heads: u32,
    /// Zones, outermost first.
    pub zones: Vec<Zone>,
    /// Seek times before a read.
    pub read_seek: SeekTimes,
    /// Seek times before a write, for which the head must settle more exactly.
    pub write_seek: SeekTimes,
    /// Time of a switch to another surface of the same cylinder.
    pub head_switch: f64,
    /// Time that is added to the time of a head or cylinder switch to get the skew between two tracks.
    pub skew_margin: f64,
    /// Time to decode a command and set up its transfer.
    pub overhead: f64,
    /// Host interface, MB/s.
    pub bus_mb: u64,
    /// True if commands are queued in the drive, so that `overhead` overlaps the previous command.
    pub queued: bool,
    /// Number of segments of the read buffer; 0: there is no read buffer.
    pub segments: usize,
    /// Bytes of each segment.
    pub segment_bytes: u64,
    /// Bytes that are read ahead after a read, if no other request arrives.
    pub read_ahead: u64,
    /// Bytes of the write cache; 0: there is no write cache, and a write is done only when it is on the
    /// platter.
    pub write_cache: u64,
}

impl DiskParams {
    /// Replaces impossible parameters by the nearest possible values, so that the platter turns and the disk
    /// has at least one sector.
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

/// Parameters of a flash drive.
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
    /// Number of requests served at the same time.
    pub parallel: usize,
    /// Sequential read, MB/s over the whole drive.
    pub read_mb: u64,
    /// Sequential write, MB/s over the whole drive.
    pub write_mb: u64,
    /// Smallest unit of reads and writes, bytes.
    pub page: u64,
    /// Bytes that are erased together.
    pub erase_block: u64,
    /// Spare flash as a share of `bytes`.
    pub spare: f64,
}

impl FlashParams {
    /// Replaces impossible parameters by the nearest possible values.
    pub(super) fn clamped(mut self) -> Self {
        self.parallel = self.parallel.clamp(1, 4_096);
        self.read_mb = self.read_mb.max(1);
        self.write_mb = self.write_mb.max(1);
        self.page = self.page.clamp(512, 1 << 20);
        self.erase_block = self.erase_block.clamp(self.page, 1 << 31);
        self
    }
}
