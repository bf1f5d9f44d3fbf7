//! Quantum Atlas 10K II (2000), the simulated disk of UCFS. There are two variants: the disk as sold, and the
//! disk with three times the sectors on each track. At the same rotational speed, the second variant also has
//! three times the media rate. [`super`] explains the words *sheet*, *memory* and *derived* in the comments.

use super::super::{DiskParams, even_zones, seek::SeekTimes};

pub(super) fn params(name: &'static str, factor: u32) -> DiskParams {
    DiskParams {
        name,
        rpm: 10_021.0, // product manual: mode page "medium rotation rate"
        heads: 20,     // memory: the 73.4 GB model, the largest sold
        // memory: 17,337 cylinders, 24 to 40 MB/s sustained; sectors derived from the capacity.
        zones: even_zones(17_337, 16, 528 * factor, 300 * factor),
        read_seek: SeekTimes {
            single: 0.6,
            average: 4.7,
            full: 12.0,
        }, // memory
        write_seek: SeekTimes {
            single: 0.9,
            average: 5.2,
            full: 12.8,
        }, // memory
        head_switch: 0.6, // memory
        skew_margin: 0.1,
        overhead: 0.2, // memory
        bus_mb: 160,   // product manual: Ultra 160
        queued: true,
        segments: 16, // memory: 8 MB
        segment_bytes: 512 << 10,
        read_ahead: 512 << 10,
        write_cache: 0, // DiskSim's default for its disks
    }
}
