//! Maintenance in the background: passes over everything that is stored, driven step by step.
//!
//! This module uses `put`, `read`, `purge` and the modules below them. No request waits for anything in
//! this module.
//!
//! | file | has |
//! |---|---|
//! | `walk` | the walk over memory and disks, on which the other files are based |
//! | `sweep` | compares everything with the active purges, and retires them |
//! | `scrub` | reads everything, and drops damaged records |
//! | `drain` | moves the records of a store to the other stores |

mod drain;
mod scrub;
mod sweep;
mod walk;

pub(crate) use self::drain::Mover;
pub use self::drain::{Drain, DrainStep};
pub use self::scrub::{Scrub, ScrubStep};
pub use self::sweep::{Sweep, SweepStep};
pub use self::walk::{Place, Walk, WalkStep, Walked};
