//! A 20 TB helium drive of today (class of the Seagate Exos X20, WD Gold 20 TB). [`super`] explains the words
//! *sheet*, *memory* and *derived* in the comments.

use super::super::{DiskParams, even_zones, seek::SeekTimes};

pub(super) fn params() -> DiskParams {
    DiskParams {
        name: "hdd20t",
        rpm: 7_200.0,
        heads: 20, // memory: 10 discs
        // memory: 285 MB/s at the outer edge, about half of that at the inner edge; the number of cylinders
        // is derived from the capacity.
        zones: even_zones(545_000, 30, 4_890, 2_280),
        read_seek: SeekTimes {
            single: 0.5,
            average: 8.0,
            full: 15.0,
        }, // memory: class values
        write_seek: SeekTimes {
            single: 0.6,
            average: 8.8,
            full: 16.0,
        },
        head_switch: 0.5, // memory
        skew_margin: 0.05,
        overhead: 0.1,
        bus_mb: 600, // SATA 6 Gbit/s
        queued: true,
        segments: 32,
        segment_bytes: 4 << 20,
        read_ahead: 2 << 20,
        write_cache: 64 << 20, // memory: 256 MB buffer, part of it for writes
    }
}
