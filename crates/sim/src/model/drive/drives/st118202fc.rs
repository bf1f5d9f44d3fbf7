//! Seagate ST118202FC (Cheetah 18, 1998): the disk of Hummingbird's measurements on a computer of SGI.
//! [`super`] explains the words *sheet*, *memory* and *derived* in the comments.

use super::super::{DiskParams, even_zones, seek::SeekTimes};

pub(super) fn params() -> DiskParams {
    DiskParams {
        name: "st118202fc",
        rpm: 10_033.0, // sheet: 2.99 ms mean rotation = half a revolution
        heads: 24,     // memory: 12 discs
        // memory: 18.2 GB, 6,962 cylinders; 19 MB/s (sheet) is taken as the outermost zone's rate.
        zones: even_zones(6_962, 12, 255, 171),
        read_seek: SeekTimes {
            single: 0.98,
            average: 5.2,
            full: 12.2,
        }, // sheet: average; memory: single and full
        write_seek: SeekTimes {
            single: 1.24,
            average: 6.0,
            full: 13.2,
        }, // memory
        head_switch: 0.8, // memory
        skew_margin: 0.1,
        overhead: 0.3, // memory
        bus_mb: 100,   // Fibre Channel loop
        queued: true,
        segments: 4, // memory: 1 MB
        segment_bytes: 256 << 10,
        read_ahead: 256 << 10,
        write_cache: 512 << 10, // papers: the cache was on in the measurements; assumed: half the buffer
    }
}
