//! The order of versions. A fetch draws a number when the origin is asked. An answer whose head
//! arrives after that of a fetch asked later is older (RFC 9111 section 4): it is neither stored
//! nor does it replace anything, and nobody joins it any more.
//!
//! The numbers do not prove it: the origin may have answered the earlier question last. Unless the
//! two are the same version, or `Date` says which is older, both are forgotten: what was served
//! once must not be followed by what may be an older one.
//!
//! What was published is remembered for as long as any fetch of the same primary key runs: a late
//! head can only come from one of those.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use foxy_base::WallTime;

use super::{Fill, FillMap};

/// A Vary list and the values of the request that an answer was selected by; `None` without Vary.
pub(crate) type Selection = Option<(Bytes, Bytes)>;

/// Published answers remembered for one primary key. Beyond, the oldest counts for every selection.
const PUBLISHED_MAX: usize = 32;

/// What tells which of two answers is older.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    /// The strong ETag.
    pub(crate) etag: Option<Bytes>,
    /// The Date field.
    pub(crate) date: Option<WallTime>,
    /// It was stored before the question was asked, so that a later question has brought nothing
    /// older.
    pub(crate) known_before: bool,
}

impl Version {
    /// Whether this answer, whose head came later, says nothing against `known`: it is the same
    /// version, or an older one.
    fn agrees_with(&self, known: &Self) -> bool {
        let same = self.etag.is_some() && self.etag == known.etag;
        let older = self
            .date
            .zip(known.date)
            .is_some_and(|(own, known)| own < known);
        self.known_before || same || older
    }
}

/// The place of an answer among those under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// No answer to a later question is there.
    Newest,
    /// One is, and it is newer.
    Late,
    /// One is, and nothing shows which of the two is newer.
    Unclear,
}

/// An answer that was published under a primary key.
#[derive(Debug)]
pub(super) struct Published {
    number: u64,
    selection: Selection,
    version: Version,
}

/// The running fills of a primary key, and what was published since the first of them began.
#[derive(Debug)]
pub(super) struct Family<H> {
    pub(super) fills: Vec<Arc<Fill<H>>>,
    published: Vec<Published>,
}

impl<H> Default for Family<H> {
    fn default() -> Self {
        Self {
            fills: Vec::new(),
            published: Vec::new(),
        }
    }
}

/// What a fill claims when its head arrives.
pub(crate) struct Claim<S, O> {
    /// The answer is storable: fetches that were asked earlier are older than it.
    pub(crate) storable: bool,
    /// What it was selected by.
    pub(crate) selection: Selection,
    pub(crate) version: Version,
    /// Whether the request is selected by the same values as a published answer.
    pub(crate) same: S,
    /// Whether a running answer with this head is replaced by this one.
    pub(crate) replaces: O,
}

impl<H> Family<H> {
    fn record(&mut self, number: u64, selection: Selection, version: Version) {
        if let Some(known) = self.published.iter_mut().find(|p| p.selection == selection) {
            if number >= known.number {
                (known.number, known.version) = (number, version);
            }
            return;
        }
        if self.published.len() >= PUBLISHED_MAX {
            let oldest = (0..self.published.len()).min_by_key(|i| self.published[*i].number);
            if let Some(oldest) = oldest {
                let Published { number, .. } = self.published.swap_remove(oldest);
                self.record(number, None, Version::default());
            }
        }
        self.published.push(Published {
            number,
            selection,
            version,
        });
    }
}

impl<H> FillMap<H> {
    /// The origin is about to be asked for `fill`: it draws the next number.
    pub(crate) fn asked(&self, fill: &Fill<H>) {
        let number = self.numbers.fetch_add(1, Ordering::AcqRel);
        fill.number.store(number, Ordering::Release);
    }

    /// The head of `fill` has arrived. Unless it is the newest, it must not be stored, and this is
    /// ensured. A storable head ends the storing of older answers under way; where the order is
    /// unclear, that of all others.
    pub(crate) fn publish<S, O>(&self, fill: &Arc<Fill<H>>, claim: Claim<S, O>) -> Order
    where
        S: Fn(&Selection) -> bool,
        O: Fn(&H) -> bool,
    {
        let number = fill.number().unwrap_or(u64::MAX);
        let (order, others) = {
            let mut shard = self.shard(fill.base).lock();
            let family = shard.by_base.entry(fill.base).or_default();
            let newer = |p: &&Published| p.number > number && (claim.same)(&p.selection);
            let newest = family
                .published
                .iter()
                .filter(newer)
                .max_by_key(|p| p.number);
            let order = match newest {
                None => Order::Newest,
                Some(known) if !claim.storable || claim.version.agrees_with(&known.version) => {
                    Order::Late
                }
                Some(_) => Order::Unclear,
            };
            if !claim.storable && order == Order::Newest {
                return order;
            }
            if order == Order::Newest {
                family.record(number, claim.selection, claim.version);
            }
            let affected = |other: &&Arc<Fill<H>>| match order {
                Order::Newest => other.number().is_some_and(|n| n < number),
                Order::Late => false,
                Order::Unclear => !Arc::ptr_eq(other, fill),
            };
            let others: Vec<_> = family.fills.iter().filter(affected).cloned().collect();
            (order, others)
        };
        if order != Order::Newest {
            self.close(fill);
            fill.forbid_storing();
        }
        for other in others {
            match other.published() {
                Some(head) if (claim.replaces)(&head) => {
                    self.close(&other);
                    other.forbid_storing();
                }
                Some(_) => {}
                // Who comes from now on must not wait for an answer that is older than this one.
                None if order == Order::Newest && other.hash == fill.hash => self.close(&other),
                // It may have been judged already, and be about to show its head.
                None if other.hash == fill.hash => {
                    self.close(&other);
                    other.forbid_storing();
                }
                None => {}
            }
        }
        order
    }
}
