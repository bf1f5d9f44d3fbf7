//! Seagate ST15150WC (Barracuda 4, 1995): the disk of the measurements in the USITS'99 paper. [`super`]
//! explains the words *sheet*, *memory* and *derived* in the comments.

use super::super::{DiskParams, even_zones, seek::SeekTimes};

pub(super) fn params() -> DiskParams {
    DiskParams {
        name: "st15150wc",
        rpm: 7_200.0, // sheet
        heads: 21,    // memory: 11 discs, 21 surfaces with data
        // memory: 3,711 cylinders, 107 sectors per track on average, 8,388,315 sectors in all. derived: the
        // sectors per track of the outermost and innermost zone, from an internal rate of 47 to 77 Mbit/s.
        zones: even_zones(3_711, 11, 131, 84),
        // sheet: "9 ms average access", taken as the mean write seek. memory: the values of the read seek.
        read_seek: SeekTimes {
            single: 0.6,
            average: 8.0,
            full: 17.0,
        },
        write_seek: SeekTimes {
            single: 1.1,
            average: 9.0,
            full: 19.0,
        },
        head_switch: 0.8, // memory
        skew_margin: 0.2, // derived: whole sectors and servo tolerance
        overhead: 0.9,    // memory: command decoding and SCSI phases of the class, 0.5 to 1.2 ms
        bus_mb: 10,       // fast narrow SCSI of the Ultra-1 (memory)
        queued: false,    // decision 0010: without queueing, the model has the measured 4.7 MB/s
        segments: 4,      // memory: 1 MB buffer, adaptive segments
        segment_bytes: 256 << 10,
        read_ahead: 256 << 10,
        write_cache: 0, // decision 0010: the measured 20 ms for two synchronous writes exclude a cache
    }
}
