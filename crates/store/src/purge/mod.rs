//! Purges of many objects at once, and soft ones: true at once, durable before they are
//! acknowledged, never undone by a restart.
//!
//! A purge is a note with a number. Every object carries the number of the newest purge at the
//! time its origin was asked, unchanged when it is written again; it is compared with the notes
//! that are newer, once for each new note, when somebody asks for it or when it is written. What
//! a note covers is gone from the moment the note is published, wherever it lies. A sweep in the
//! background finds it all, counts it, and lets the note retire.

#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod journal;
mod key;
mod limits;
mod mark;
mod patterns;
mod recall;
mod set;
mod sweep;
mod walk;

use std::sync::Arc;

use foxy_base::{WallTime, rule};
pub use foxy_format::PurgeKind;
use thiserror::Error;

pub use self::key::{KeyParts, for_each_tag};
pub use self::sweep::{Sweep, SweepStep};
pub use self::walk::{Place, Walk, WalkStep, Walked};

pub(crate) use self::journal::{Journal, JournalInbox};
pub(crate) use self::mark::PurgeMark;
pub(crate) use self::recall::{Recalled, first_block, recall};
pub(crate) use self::set::{Purges, Verdict};
pub(crate) use self::walk::WalkFault;

use crate::stats::add;
use crate::ticket::SyncTicket;
use crate::{Engine, Object, StoreId};

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
    /// No text where there must be one, or the other way round.
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
    /// Objects that it removed or made stale, as far as they were found yet. One that several
    /// purges cover counts for the newest.
    pub objects: u64,
    /// Everything was looked through: `objects` is final.
    pub done: bool,
    /// The purge that took its place, which has the count.
    pub merged_into: Option<u64>,
}

impl Engine {
    /// Purges what `purge` covers. When this returns, no lookup gives it any more (or gives it as
    /// stale), and nothing that was fetched before will be stored; once the ticket is done, that
    /// survives a power cut. Never blocks on a disk. The number is that of the purge.
    ///
    /// # Errors
    /// The purge is not accepted; nothing was done.
    pub fn purge_many(
        &self,
        purge: &Purge,
        places: Places,
    ) -> Result<(u64, SyncTicket), PurgeError> {
        let stores = self.stores();
        let now = self.clock.wall();
        let note = self.purges.publish(purge, places, now, &stores)?;
        add(&self.counters.purges, 1);
        if rule!(
            "purge: not durable while a store is missing that nobody can note",
            self.fleet.trust().is_unnoted(),
            false
        ) {
            return Ok((note.sequence, SyncTicket::failed()));
        }
        let (ticket, parts) = SyncTicket::new(stores.len() as u32);
        for (store, part) in stores.iter().zip(parts) {
            store.journal.lock().ask(part);
            store.bell.ring();
        }
        Ok((note.sequence, ticket))
    }

    /// A store writes no removals any more: what it holds may be out of date when it comes back.
    /// The others note that, so that the next start does not believe it. (If it is the only one
    /// there is nobody to note it.)
    pub(crate) fn leave_behind(&self, store: StoreId) {
        self.purges.leave_behind();
        let able = |s: &&Arc<crate::shared::StoreShared>| s.id != store && s.takes_writes();
        for other in self.stores().iter().filter(able) {
            other.journal.lock().snapshot = true;
            other.bell.ring();
        }
    }

    /// The number of the newest purge. Read it before the origin is asked, and store it with the
    /// answer ([`crate::ObjectMeta::purge_sequence`]).
    #[must_use]
    pub fn purge_sequence(&self) -> u64 {
        self.purges.latest()
    }

    /// How far the purge of this number is; `None` if it is not known (any more).
    #[must_use]
    pub fn purge_status(&self, number: u64) -> Option<PurgeStatus> {
        self.purges.status(number)
    }

    /// The latest purges, newest first.
    #[must_use]
    pub fn purge_statuses(&self, limit: usize) -> Vec<PurgeStatus> {
        self.purges.statuses(limit)
    }

    /// Purges that objects are compared with at present.
    #[must_use]
    pub fn active_purges(&self) -> usize {
        self.purges.active()
    }

    /// The object, unless a purge covers it; then it is taken away.
    pub(crate) fn unless_purged(&self, object: Arc<Object>) -> Option<Arc<Object>> {
        match self.purges.verdict(&object) {
            Verdict::Clean | Verdict::Stale => Some(object),
            Verdict::Gone(number) => {
                self.take_away_purged(&object, number);
                None
            }
        }
    }

    /// Takes away an object that purge `number` covers, unless another took its place.
    #[cold]
    fn take_away_purged(&self, object: &Object, number: u64) {
        let mut shard = self.tables.shard(object.hash()).write();
        let other = shard
            .in_memory(object.hash())
            .is_some_and(|present| present.meta().version != object.meta().version);
        let replaced = rule!(
            "purge: what took the place of a purged object stays",
            other,
            false
        );
        if !replaced && self.catalogue.supersede_locked(&mut shard, object.hash()) {
            drop(shard);
            add(&self.counters.purged_by_many, 1);
            self.purges.count(number, 1);
        }
    }
}

impl Object {
    /// A soft purge covers it: it counts as stale from then on. Known when it came from a lookup.
    #[must_use]
    pub fn is_soft_purged(&self) -> bool {
        self.mark.is_stale()
    }

    /// The newest purge that it was compared with: what is made of it is as old.
    #[must_use]
    pub fn purge_checked(&self) -> u64 {
        self.mark.checked()
    }
}
