//! Maintenance in the background: passes over everything that is stored, driven step by step.
//!
//! Uses `put`, `read`, `purge` and the rooms below them. No request waits for what is here.
//!
//! | file | has |
//! |---|---|
//! | `walk` | the walk over memory and disks that the others are made of |
//! | `sweep` | compares everything with the active purges, and retires them |
//! | `scrub` | reads everything, and drops what has gone bad |
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
