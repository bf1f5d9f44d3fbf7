//! Seagate ST318275LC (Barracuda 18LP, 1999): the disk of Hummingbird's measurements on a Sun Ultra 60.
//! [`super`] explains the words *sheet*, *memory* and *derived* in the comments.

use super::super::{DiskParams, even_zones, seek::SeekTimes};

pub(super) fn params() -> DiskParams {
    DiskParams {
        name: "st318275lc",
        rpm: 7_212.0, // sheet: 4.16 ms mean rotation
        heads: 12,    // memory: 6 discs
        // memory: 18.2 GB, about 11,200 cylinders. The papers' 12.5 MB/s is taken as the rate of the
        // innermost zone, because a maker can guarantee only this rate.
        zones: even_zones(11_200, 12, 308, 225),
        read_seek: SeekTimes {
            single: 0.8,
            average: 6.9,
            full: 15.0,
        }, // sheet: average; memory: single and full
        write_seek: SeekTimes {
            single: 1.1,
            average: 7.7,
            full: 16.5,
        }, // memory
        head_switch: 0.8, // memory
        skew_margin: 0.1,
        overhead: 0.3, // memory
        bus_mb: 40,    // Ultra 60: Ultra Wide SCSI
        queued: true,
        segments: 4, // memory: 1 MB
        segment_bytes: 256 << 10,
        read_ahead: 256 << 10,
        write_cache: 512 << 10, // papers: the cache was on in the measurements
    }
}
