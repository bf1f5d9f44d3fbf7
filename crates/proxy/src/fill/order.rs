//! The order of versions. A fetch draws a number when the origin is asked, and another one when its
//! head arrives. An answer that was asked for after the head of another had arrived is newer than
//! that one. Of two whose exchanges overlap, neither order proves which the origin made first: the
//! validator may show that they are one version, `Date` which is older (RFC 9111 section 4).
//! Otherwise both are forgotten, so that what was served once is not followed by an older version.
//!
//! What was published is remembered for as long as any fetch of the same primary key runs: a head
//! that overlaps with it can only come from one of those.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic;

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
    /// ETag, else Last-Modified.
    pub(crate) validator: Option<Bytes>,
    /// The Date field.
    pub(crate) date: Option<WallTime>,
    /// A 304: this version was stored before the question was asked. As published: before the
    /// question of every fetch that still runs.
    pub(crate) known_before: bool,
    /// A part, which is kept beside other parts of the same version.
    pub(crate) part: bool,
}

/// The place of an answer among those under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// No other answer is newer.
    Newest,
    /// Another one is newer.
    Late,
    /// Nothing shows which of two is newer.
    Unclear,
}

/// An answer that was published under a primary key.
#[derive(Debug)]
pub(super) struct Published {
    /// Drawn when the origin was asked, and when the head arrived.
    asked: u64,
    arrived: u64,
    selection: Selection,
    version: Version,
}

impl Published {
    /// The order of an answer that was asked for with the number `asked`, compared with this one.
    fn order_of(&self, asked: u64, version: &Version) -> Order {
        if asked > self.arrived {
            return Order::Newest;
        }
        let validators = version
            .validator
            .as_ref()
            .zip(self.version.validator.as_ref());
        let same = validators.is_some_and(|(own, known)| own == known);
        let dates = version.date.zip(self.version.date);
        match (version.known_before, self.version.known_before) {
            // Their fields may differ: those of the later question count.
            _ if same && asked < self.asked && !version.part => Order::Late,
            _ if same => Order::Newest,
            // A version that was stored before both is older than one that came since.
            (true, false) => Order::Late,
            (false, true) => Order::Newest,
            _ => match dates.map(|(own, known)| own.cmp(&known)) {
                Some(Ordering::Less) => Order::Late,
                Some(Ordering::Greater) => Order::Newest,
                Some(Ordering::Equal) | None => Order::Unclear,
            },
        }
    }
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
    /// Remembers an answer. Of those selected alike, the last one to arrive counts: who was asked
    /// after it was asked after the others too.
    fn record(&mut self, new: Published) {
        let alike = |known: &Published| known.selection == new.selection;
        if let Some(known) = self.published.iter_mut().find(|known| alike(known)) {
            *known = new;
            return;
        }
        if self.published.len() >= PUBLISHED_MAX {
            // Too many to tell apart: one that stands for all, and agrees with none.
            let arrived = self.published.drain(..).map(|known| known.arrived).max();
            self.published.push(Published {
                asked: u64::MAX,
                arrived: arrived.unwrap_or_default(),
                selection: None,
                version: Version::default(),
            });
        }
        self.published.push(new);
    }

    /// A new version was published while the oldest running fetch ran. A 304 that came later may
    /// be about that one, which was not stored when the oldest was asked for.
    fn has_brought(&self, same: impl Fn(&Selection) -> bool) -> bool {
        let alike = |p: &&Published| same(&p.selection);
        let published = self.published.iter();
        published.filter(alike).any(|p| !p.version.known_before)
    }
}

impl<H> FillMap<H> {
    fn draw(&self) -> u64 {
        self.numbers.fetch_add(1, atomic::Ordering::AcqRel)
    }

    /// The origin is about to be asked for `fill`: it draws the next number.
    pub(crate) fn asked(&self, fill: &Fill<H>) {
        fill.number.store(self.draw(), atomic::Ordering::Release);
    }

    /// The head of `fill` has arrived. Unless it is the newest, it must not be stored, and this is
    /// ensured. A storable one ends the storing of other answers under way, unless it is late.
    pub(crate) fn publish<S, O>(&self, fill: &Arc<Fill<H>>, claim: Claim<S, O>) -> Order
    where
        S: Fn(&Selection) -> bool,
        O: Fn(&H) -> bool,
    {
        let asked = fill.number().unwrap_or(u64::MAX);
        let (order, others) = {
            let mut shard = self.shard(fill.base).lock();
            let family = shard.by_base.entry(fill.base).or_default();
            let alike = family
                .published
                .iter()
                .filter(|p| (claim.same)(&p.selection));
            let orders = alike.map(|p| p.order_of(asked, &claim.version));
            let order = orders.max().unwrap_or(Order::Newest);
            let others = match order {
                _ if !claim.storable => Vec::new(),
                Order::Late => Vec::new(),
                Order::Newest | Order::Unclear => {
                    let unclear = order == Order::Unclear;
                    let mut version = claim.version.unless(unclear);
                    version.known_before &= !family.has_brought(&claim.same);
                    family.record(Published {
                        asked,
                        arrived: self.draw(),
                        selection: claim.selection,
                        version,
                    });
                    fill.judged.store(true, atomic::Ordering::Release);
                    let others = family.fills.iter();
                    others
                        .filter(|other| !Arc::ptr_eq(other, fill))
                        .cloned()
                        .collect()
                }
            };
            (order, others)
        };
        for other in others {
            self.end(&other, fill, &claim.replaces);
        }
        self.outdated(fill, order)
    }

    /// Ensures that an answer which is not the newest is neither stored nor joined.
    fn outdated(&self, fill: &Arc<Fill<H>>, order: Order) -> Order {
        if order != Order::Newest {
            self.close(fill);
            fill.forbid_storing();
        }
        order
    }

    /// `newer` has been published: `other`, which runs beside it, may bring what is older.
    fn end(&self, other: &Arc<Fill<H>>, newer: &Fill<H>, replaces: impl Fn(&H) -> bool) {
        let judged = other.judged.load(atomic::Ordering::Acquire);
        match other.published() {
            Some(head) if replaces(&head) => {
                self.close(other);
                other.forbid_storing();
            }
            Some(_) => {}
            None if other.hash != newer.hash => {}
            None => {
                // Who comes from now on must not wait for it. It is compared when its head comes,
                // unless that has happened already.
                self.close(other);
                if judged {
                    other.forbid_storing();
                }
            }
        }
    }
}

impl Version {
    /// This version; or none that is known, if it is `unclear` which of two counts.
    fn unless(self, unclear: bool) -> Self {
        match unclear {
            true => Self::default(),
            false => self,
        }
    }
}
