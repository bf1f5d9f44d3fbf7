//! The order of versions. A fetch draws a number when the origin is asked. An answer whose head
//! arrives after that of a fetch asked later is older (RFC 9111 section 4): it is neither stored
//! nor does it replace anything, and nobody joins it any more.
//!
//! What was published is remembered for as long as any fetch of the same primary key runs: a late
//! head can only come from one of those.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::{Fill, FillMap};

/// A Vary list and the values of the request that an answer was selected by; `None` without Vary.
pub(crate) type Selection = Option<(Bytes, Bytes)>;

/// Published answers remembered for one primary key. Beyond, the oldest counts for every selection.
const PUBLISHED_MAX: usize = 32;

/// An answer that was published under a primary key.
#[derive(Debug)]
pub(super) struct Published {
    number: u64,
    selection: Selection,
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
    /// Whether the request is selected by the same values as a published answer.
    pub(crate) same: S,
    /// Whether a running answer with this head is replaced by this one.
    pub(crate) replaces: O,
}

impl<H> Family<H> {
    fn record(&mut self, number: u64, selection: Selection) {
        if let Some(known) = self.published.iter_mut().find(|p| p.selection == selection) {
            known.number = known.number.max(number);
            return;
        }
        if self.published.len() >= PUBLISHED_MAX {
            let oldest = (0..self.published.len()).min_by_key(|i| self.published[*i].number);
            if let Some(oldest) = oldest {
                let number = self.published.swap_remove(oldest).number;
                self.record(number, None);
            }
        }
        self.published.push(Published { number, selection });
    }
}

impl<H> FillMap<H> {
    /// The origin is about to be asked for `fill`: it draws the next number.
    pub(crate) fn asked(&self, fill: &Fill<H>) {
        let number = self.numbers.fetch_add(1, Ordering::AcqRel);
        fill.number.store(number, Ordering::Release);
    }

    /// The head of `fill` has arrived. True if it is the newest so far; otherwise it must not be
    /// stored, and this is ensured. A storable head ends the storing of older answers under way.
    pub(crate) fn publish<S, O>(&self, fill: &Arc<Fill<H>>, claim: Claim<S, O>) -> bool
    where
        S: Fn(&Selection) -> bool,
        O: Fn(&H) -> bool,
    {
        let number = fill.number().unwrap_or(u64::MAX);
        let older: Vec<_> = {
            let mut shard = self.shard(fill.base).lock();
            let family = shard.by_base.entry(fill.base).or_default();
            let newer = |p: &Published| p.number > number && (claim.same)(&p.selection);
            if family.published.iter().any(newer) {
                drop(shard);
                self.close(fill);
                fill.forbid_storing();
                return false;
            }
            if !claim.storable {
                return true;
            }
            family.record(number, claim.selection);
            let older = |other: &&Arc<Fill<H>>| other.number().is_some_and(|n| n < number);
            family.fills.iter().filter(older).cloned().collect()
        };
        for other in older {
            match other.published() {
                Some(head) if (claim.replaces)(&head) => {
                    self.close(&other);
                    other.forbid_storing();
                }
                Some(_) => {}
                // Who comes from now on must not wait for an answer that is older than this one.
                None if other.hash == fill.hash => self.close(&other),
                None => {}
            }
        }
        true
    }
}
