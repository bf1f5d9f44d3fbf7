//! Seagate ST318203FSUN18G (Cheetah 18LP as sold by Sun, 1999): the disk of the proxy benchmark. [`super`]
//! explains the words *sheet*, *memory* and *derived* in the comments.

use super::super::{DiskParams, even_zones, seek::SeekTimes};

pub(super) fn params() -> DiskParams {
    DiskParams {
        name: "st318203fsun18g",
        rpm: 10_016.0, // memory
        heads: 12,     // memory: 6 discs
        // memory: 18.2 GB, 9,801 cylinders; sectors derived from the capacity.
        zones: even_zones(9_801, 12, 355, 251),
        read_seek: SeekTimes {
            single: 0.78,
            average: 5.2,
            full: 10.8,
        }, // memory
        write_seek: SeekTimes {
            single: 1.06,
            average: 6.0,
            full: 11.6,
        }, // memory
        head_switch: 0.8, // memory
        skew_margin: 0.1,
        overhead: 0.3, // memory
        bus_mb: 100,   // Fibre Channel loop
        queued: true,
        segments: 4, // memory: 1 MB
        segment_bytes: 256 << 10,
        read_ahead: 256 << 10,
        write_cache: 0, // memory: Sun ships its drives with the write cache off
    }
}
