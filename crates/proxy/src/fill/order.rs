//! The order of versions. A fetch draws one number when the origin is asked, and another number when its head
//! arrives. If the origin was asked after another head had arrived, the answer is newer than the answer with
//! that head. If the two exchanges overlap, the numbers do not prove which answer the origin made first. The
//! validator may show that both answers are one version, and `Date` may show which answer is older (RFC 9111
//! section 4). Otherwise both answers are removed, so that clients never get an older version after a newer
//! one.
//!
//! Published answers are remembered as long as any fetch of the same primary key runs. Only the heads of
//! these fetches can overlap with the published answers.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic;

use bytes::Bytes;
use foxy_base::{WallTime, rule};

use super::{Fill, FillMap};

/// The Vary list and the request values that selected an answer; `None` without Vary.
pub(crate) type Selection = Option<(Bytes, Bytes)>;

/// Largest number of published answers that are remembered for one primary key. If there are more, one entry
/// replaces all of them.
const PUBLISHED_MAX: usize = 32;

/// Evidence for the order of two answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    /// ETag, or else Last-Modified.
    pub(crate) validator: Option<Bytes>,
    /// The Date field.
    pub(crate) date: Option<WallTime>,
    /// True if the answer is a 304, so that this version was stored before the request was sent. In a
    /// published answer, the flag means that this version was stored before the requests of all running
    /// fetches were sent.
    pub(crate) known_before: bool,
    /// True if the answer is a part, which is stored next to other parts of the same version.
    pub(crate) part: bool,
}

/// The place of an answer among the answers of its key.
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
    /// The number drawn when the origin was asked. `arrived` is the number drawn when the head arrived.
    asked: u64,
    arrived: u64,
    selection: Selection,
    version: Version,
}

impl Published {
    /// Returns the order of an answer with number `asked`, compared with this answer.
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
            // Two answers of one version may have different fields. The fields of the answer to the later
            // request count.
            _ if same && asked < self.asked && !version.part => rule!(
                "order: of two answers of one version the one asked for later counts",
                Order::Late,
                Order::Newest
            ),
            _ if same => Order::Newest,
            // A version that was stored before both requests is older than a version that came later.
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

/// The running fills of a primary key, and the answers published since the first of these fills began.
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

/// The claims of a fill when its head arrives.
pub(crate) struct Claim<S, O> {
    /// True if other answers are compared with this answer. This is the case if the answer is storable, or if
    /// it shows that stored answers are outdated.
    pub(crate) storable: bool,
    /// Request values that selected the answer.
    pub(crate) selection: Selection,
    pub(crate) version: Version,
    /// A function that returns true if the fill's request has the values that selected a published answer.
    pub(crate) same: S,
    /// A function that gets the head of a running answer, and returns true if this answer replaces the
    /// running answer.
    pub(crate) replaces: O,
}

impl<H> Family<H> {
    /// Remembers an answer. Of the answers with one selection, only the answer that arrived last is kept.
    /// This is sufficient: a request that was sent after its arrival was also sent after the arrival of the
    /// earlier answers.
    fn record(&mut self, new: Published) {
        let alike = |known: &Published| known.selection == new.selection;
        if let Some(known) = self.published.iter_mut().find(|known| alike(known)) {
            *known = new;
            return;
        }
        if self.published.len() >= PUBLISHED_MAX {
            // There are too many answers to remember each of them. One entry without a version replaces all
            // of them.
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

    /// True if a new version was published while the oldest running fetch ran. A 304 that came later may be
    /// about that version, which was not stored when the oldest fetch was sent.
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

    /// Draws the next number for `fill`, because the origin is about to be asked.
    pub(crate) fn asked(&self, fill: &Fill<H>) {
        fill.number.store(self.draw(), atomic::Ordering::Release);
    }

    /// Called when the head of `fill` has arrived. Unless the answer is the newest, storing it is forbidden.
    /// If the answer is not late and its claim is `storable`, running answers that it replaces are not stored
    /// either.
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

    /// Called after `newer` has been published. `other`, which runs at the same time, may deliver an older
    /// version.
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
                // Later requests must not wait for `other`. If the head of `other` has not arrived yet,
                // `other` is compared with `newer` when the head arrives.
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
    /// Returns this version; an unknown version if it is `unclear` which of two versions counts.
    fn unless(self, unclear: bool) -> Self {
        match unclear {
            true => Self::default(),
            false => self,
        }
    }
}
