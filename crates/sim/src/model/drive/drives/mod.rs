//! The parameters of the drives: one drive per file, with the source of each value beside it.
//!
//! The comment on a value usually begins with its source. *sheet*: data sheet or product manual as quoted in
//! the papers. *memory*: recalled from the maker's manual, which was not available when the parameters were
//! written. *derived*: computed from other values.

mod atlas10k2;
mod hdd20t;
mod nvme;
mod st118202fc;
mod st15150wc;
mod st318203fsun18g;
mod st318275lc;

use super::{DiskParams, FlashParams};

/// Parameters of a drive of either kind.
pub(super) enum Params {
    Disk(DiskParams),
    Flash(FlashParams),
}

/// The names that [`params`] accepts.
pub(super) const NAMES: [&str; 8] = [
    "st15150wc",
    "st118202fc",
    "st318275lc",
    "st318203fsun18g",
    "atlas10k2",
    "atlas10k2-x3",
    "hdd20t",
    "nvme",
];

/// The parameters of a drive.
pub(super) fn params(name: &str) -> Option<Params> {
    Some(match name {
        "st15150wc" => Params::Disk(st15150wc::params()),
        "st118202fc" => Params::Disk(st118202fc::params()),
        "st318275lc" => Params::Disk(st318275lc::params()),
        "st318203fsun18g" => Params::Disk(st318203fsun18g::params()),
        "atlas10k2" => Params::Disk(atlas10k2::params("atlas10k2", 1)),
        "atlas10k2-x3" => Params::Disk(atlas10k2::params("atlas10k2-x3", 3)),
        "hdd20t" => Params::Disk(hdd20t::params()),
        "nvme" => Params::Flash(nvme::params()),
        _ => return None,
    })
}
