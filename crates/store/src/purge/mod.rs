//! The purges of many objects (for example, of all objects with a tag), and the soft purges. They take effect
//! immediately, are durable before they are acknowledged, and no restart undoes them.
//!
//! A purge is a note with a number. Every object carries the number of the newest purge at the time when
//! its request was sent to the origin. The object keeps this number when it is written again. The object is
//! compared once with each note that has a greater number, when it is requested or when it is written. The
//! objects that a note covers count as removed from the moment when the note is published, wherever they
//! are stored. A sweep in the background finds all covered objects and counts them. Then the note of a hard
//! purge can retire: objects are not compared with it any more. The note of a soft purge stays until all
//! segments that may contain objects from before the purge are reused, or until it becomes hard (`limits`).
//!
//! This module uses `removal`, `memory` and the modules below them. `set` has the active purges,
//! `patterns` and `key` compare them with an object, and `journal` writes them to a disk. The sweep is
//! in `maintenance`; the reading of a journal at the start is in `recovery`.

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

/// A purge that is to be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purge {
    /// The kind of the purge: it states how `text` selects objects.
    pub kind: PurgeKind,
    /// A normalised URL, a prefix (of URLs, with or without scheme), a host (with or without port), a
    /// tag or an expression; empty for a purge of everything.
    pub text: Vec<u8>,
    /// The partition whose objects are purged; empty: all partitions.
    pub partition: String,
    /// True if the objects become stale instead of being removed.
    pub soft: bool,
}

/// The reason why a purge was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PurgeError {
    /// The text is longer than this number of bytes.
    #[error("is too long: at most {0} bytes are allowed")]
    TooLong(usize),
    /// The kind of the purge needs a text and there is none, or the kind takes no text and there is one.
    #[error("says nothing")]
    Empty,
    /// The expression does not compile within the bounds.
    #[error("is no usable regular expression: {0}")]
    Expression(String),
    /// The maximum number of expressions is active.
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
    /// True if the same purge may be accepted at a later time.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self, Self::TooMany(_) | Self::Busy)
    }
}

/// The places that a new purge may take among the limited places for active purges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// The places that are open to all clients that may purge.
    Shared,
    /// All places, including those that are reserved for operators. Purges by clients cannot take the
    /// reserved places.
    Reserved,
}

/// The progress of a purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeStatus {
    /// The number of the purge.
    pub number: u64,
    /// As in [`Purge::kind`].
    pub kind: PurgeKind,
    /// As in [`Purge::text`].
    pub text: String,
    /// As in [`Purge::partition`].
    pub partition: String,
    /// As in [`Purge::soft`].
    pub soft: bool,
    /// The time at which the purge was made.
    pub at: WallTime,
    /// The number of objects found so far that the purge removed or made stale. If several purges cover an
    /// object, it counts for the newest purge.
    pub objects: u64,
    /// True if a sweep for the purge has ended: then `objects` is final.
    pub done: bool,
    /// The number of the later purge that replaced this purge. Objects are counted for the later purge
    /// from then on.
    pub merged_into: Option<u64>,
}

impl Object {
    /// Returns whether a soft purge covers the object, so that the object counts as stale. The result
    /// is up to date for an object that a lookup has just returned, because the lookup compared the
    /// object with all purges.
    #[must_use]
    pub fn is_soft_purged(&self) -> bool {
        self.mark.is_stale()
    }

    /// The number of the newest purge with which the object was compared. An object that is made from
    /// this object gets the same number.
    #[must_use]
    pub fn purge_checked(&self) -> u64 {
        self.mark.checked()
    }
}
