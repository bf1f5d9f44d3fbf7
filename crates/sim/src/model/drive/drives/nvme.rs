//! A data-centre NVMe drive of today (class: PCIe 4.0, TLC, 3.84 TB, 1 drive write per day). [`super`]
//! explains the words *sheet*, *memory* and *derived* in the comments.

use super::super::FlashParams;

pub(super) fn params() -> FlashParams {
    FlashParams {
        name: "nvme",
        bytes: 3_840_755_982_336, // the usual capacity of drives sold as 3.84 TB
        read_us: 80,              // memory: 4 KiB random read at depth 1
        write_us: 15,             // memory: into the power-safe buffer
        parallel: 64,             // derived: 800 k reads/s x 80 us
        read_mb: 6_500,           // memory: class values
        write_mb: 3_500,
        page: 4_096,
        erase_block: 16 << 20, // derived: one block on each of the dies that a stripe uses
        spare: 0.07,           // 7 %: a drive of 3,840 GB has 4,096 GiB of flash, minus a reserve
    }
}
