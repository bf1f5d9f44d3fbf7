//! The order of versions. A fetch draws a number when the origin is asked, and another when its
//! head arrives. If it was asked after another head had arrived, its answer is newer than that one.
//! If the two exchanges overlap, the numbers do not prove which answer the origin made first. The
//! validator may show that both are one version, and `Date` which is older (RFC 9111 section 4).
//! Otherwise both are removed, so that no older version follows one that was served.
//!
//! Published answers are remembered for as long as any fetch of the same primary key runs: only the
//! heads of these fetches can overlap with them.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic;

use bytes::Bytes;
use foxy_base::{WallTime, rule};

use super::{Fill, FillMap};

/// The Vary list and the request values that selected an answer; `None` without Vary.
pub(crate) type Selection = Option<(Bytes, Bytes)>;

/// Published answers remembered for one primary key. Beyond that, one entry stands for all.
const PUBLISHED_MAX: usize = 32;

/// Evidence for the order of two answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    /// ETag, else Last-Modified.
    pub(crate) validator: Option<Bytes>,
    /// The Date field.
    pub(crate) date: Option<WallTime>,
    /// The answer is a 304: this version was stored before the request was sent. In a published answer:
    /// before the request of every fetch that still runs.
    pub(crate) known_before: bool,
    /// A part, which is stored beside other parts of the same version.
    pub(crate) part: bool,
}

/// Place of an answer among those of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// No other answer is newer.
    Newest,
    /// Another answer is newer.
    Late,
    /// The order of two answers is unknown.
    Unclear,
}

/// An answer that was published under a primary key.
#[derive(Debug)]
pub(super) struct Published {
    /// Numbers drawn when the origin was asked, and when the head arrived.
    asked: u64,
    arrived: u64,
    selection: Selection,
    version: Version,
}

impl Published {
    /// Order of an answer with number `asked`, compared with this one.
    fn order_of(&self, asked: u64, version: &Version) -> Order {
        if rule!(
            "order: an answer is newer than all that came before it was asked for",
            asked > self.arrived,
            true
        ) {
            return Order::Newest;
        }
        let validators = version
            .validator
            .as_ref()
            .zip(self.version.validator.as_ref());
        let same = validators.is_some_and(|(own, known)| own == known);
        let dates = version.date.zip(self.version.date);
        match (version.known_before, self.version.known_before) {
            // Their fields may differ: those of the later request count.
            _ if same && asked < self.asked && !version.part => rule!(
                "order: of two answers of one version the one asked for later counts",
                Order::Late,
                Order::Newest
            ),
            _ if same => Order::Newest,
            // A version that was stored before both is older than one that came since.
            (true, false) => rule!(
                "order: a 304 is older than a version that came meanwhile",
                Order::Late,
                Order::Newest
            ),
            (false, true) => Order::Newest,
            _ => match dates.map(|(own, known)| own.cmp(&known)) {
                Some(Ordering::Less) => rule!(
                    "order: Date tells the older of two answers",
                    Order::Late,
                    Order::Newest
                ),
                Some(Ordering::Greater) => Order::Newest,
                Some(Ordering::Equal) | None => rule!(
                    "order: two answers without a proof have no order",
                    Order::Unclear,
                    Order::Newest
                ),
            },
        }
    }
}

/// The running fills of a primary key, and the answers published since the first of them began.
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

/// Claims of a fill when its head arrives.
pub(crate) struct Claim<S, O> {
    /// The answer is storable: fetches with an earlier number are older.
    pub(crate) storable: bool,
    /// Request values that selected it.
    pub(crate) selection: Selection,
    pub(crate) version: Version,
    /// Tells whether the request is selected by the same values as a published answer.
    pub(crate) same: S,
    /// Tells whether this answer replaces a running one with this head.
    pub(crate) replaces: O,
}

impl<H> Family<H> {
    /// Remembers an answer. Of the answers with one selection only the last to arrive is kept: a number
    /// that is later than its own is later than those of the others as well.
    fn record(&mut self, new: Published) {
        let alike = |known: &Published| known.selection == new.selection;
        if let Some(known) = self.published.iter_mut().find(|known| alike(known)) {
            *known = new;
            return;
        }
        if self.published.len() >= PUBLISHED_MAX {
            // Too many to keep apart: one entry stands for all, and agrees with none.
            let all = self.published.drain(..).map(|known| known.arrived);
            let arrived = rule!(
                "order: answers that are too many to remember count as one",
                all.max(),
                all.min()
            );
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

    /// Draws the next number for `fill`: the origin is about to be asked.
    pub(crate) fn asked(&self, fill: &Fill<H>) {
        fill.number.store(self.draw(), atomic::Ordering::Release);
    }

    /// The head of `fill` has arrived. Unless it is the newest, storing it is forbidden. A storable
    /// head that is not late ends the storing of other running answers.
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
                    version.known_before &= rule!(
                        "order: a 304 after a new version may be about that one",
                        !family.has_brought(&claim.same),
                        true
                    );
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

    /// Forbids storing and joining an answer that is not the newest.
    fn outdated(&self, fill: &Arc<Fill<H>>, order: Order) -> Order {
        if rule!(
            "order: an answer that is not the newest is not stored",
            order != Order::Newest,
            false
        ) {
            self.close(fill);
            fill.forbid_storing();
        }
        order
    }

    /// `newer` has been published: `other`, which runs beside it, may bring an older version.
    fn end(&self, other: &Arc<Fill<H>>, newer: &Fill<H>, replaces: impl Fn(&H) -> bool) {
        let judged = other.judged.load(atomic::Ordering::Acquire);
        match other.published() {
            Some(head)
                if rule!(
                    "order: a newer answer ends the storing of one that runs",
                    replaces(&head),
                    false
                ) =>
            {
                self.close(other);
                other.forbid_storing();
            }
            Some(_) => {}
            None if other.hash != newer.hash => {}
            None => {
                // Later requests must not wait for `other`. It is compared when its head arrives,
                // unless that has happened already.
                self.close(other);
                if rule!(
                    "order: an answer that is judged and not yet there is not stored either",
                    judged,
                    false
                ) {
                    other.forbid_storing();
                }
            }
        }
    }
}

impl Version {
    /// This version; an unknown one if it is `unclear` which of two counts.
    fn unless(self, unclear: bool) -> Self {
        match unclear {
            true => Self::default(),
            false => self,
        }
    }
}
