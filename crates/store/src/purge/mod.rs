//! Purges of many objects at once, and soft ones: true at once, durable before they are
//! acknowledged, never undone by a restart.
//!
//! A purge is a note with a number. Every object carries the number of the newest purge at the time
//! its origin was asked, which stays when the object is written again. The object is compared with
//! newer notes, once with each, when somebody asks for it or when it is written. The objects that a
//! note covers are gone from the moment the note is published, wherever they lie. A sweep in the
//! background finds them all, counts them, and lets the note retire.
//!
//! Uses `removal`, `memory` and the rooms below them. `set` has the active purges, `patterns` and `key`
//! compare them with an object, `journal` writes them to a disk. The sweep is in `maintenance`, reading
//! a journal at the start in `recovery`.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod journal;
mod key;
mod limits;
mod patterns;
mod purges;
mod set;

use foxy_base::WallTime;
pub use foxy_format::PurgeKind;
use thiserror::Error;

pub use self::key::{KeyParts, for_each_tag};
pub use self::purges::Purges;

pub(crate) use self::journal::{Journal, block_at, half_blocks};
pub(crate) use self::set::Verdict;

use crate::Object;

/// A purge to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The kind of objects that it covers.
    pub kind: PurgeKind,
    /// Normalised URL, prefix (of URLs, with or without scheme), host (with or without port), tag
    /// or expression; empty for everything.
    pub text: Vec<u8>,
    /// Only objects of this partition; empty: of all.
    pub partition: String,
    /// Makes stale instead of removing.
    pub soft: bool,
}

/// Why a purge was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PurgeError {
    /// Longer than this number of bytes.
    #[error("is too long: at most {0} bytes are allowed")]
    TooLong(usize),
    /// No text where there must be one, or a text where there must be none.
    #[error("says nothing")]
    Empty,
    /// An expression that does not compile within bounds.
    #[error("is no usable regular expression: {0}")]
    Expression(String),
    /// As many expressions are active as there may be.
    #[error(
        "has to wait: {0} expressions are active already; purge by prefix, host or tag, or try again when the sweep is done"
    )]
    TooMany(usize),
    /// All places for active purges are taken.
    #[error(
        "has to wait: too many purges are active; try again when the sweep is done, or purge everything at once"
    )]
    Busy,
}

impl PurgeError {
    /// True if the same purge may be accepted later.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::TooMany(_) | Self::Busy)
    }
}

/// Classes of places for active purges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Places for all clients that may purge.
    Shared,
    /// Also the reserved places, so that a flood by clients cannot take the last one.
    Reserved,
}

/// How far a purge is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeStatus {
    /// Its number.
    pub number: u64,
    /// The kind of objects that it covers.
    pub kind: PurgeKind,
    /// As in [`Purge::text`].
    pub text: String,
    /// As in [`Purge::partition`].
    pub partition: String,
    /// As in [`Purge::soft`].
    pub soft: bool,
    /// When it was made.
    pub at: WallTime,
    /// Objects that it removed or made stale, as far as they were found yet. An object that several
    /// purges cover counts for the newest.
    pub objects: u64,
    /// Everything was looked through: `objects` is final.
    pub done: bool,
    /// The purge that took its place, which has the count.
    pub merged_into: Option<u64>,
}

impl Object {
    /// A soft purge covers it: it counts as stale from then on. Known when it came from a lookup.
    #[must_use]
    pub fn is_soft_purged(&self) -> bool {
        self.mark.is_stale()
    }

    /// The newest purge that it was compared with. An object made from this one gets that number.
    #[must_use]
    pub fn purge_checked(&self) -> u64 {
        self.mark.checked()
    }
}
