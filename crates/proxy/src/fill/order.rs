//! The order of versions. A fetch draws a number when it asks the origin, and a second number when the head
//! of the answer arrives. All numbers come from one counter. If a fetch asked the origin after the head of
//! another answer had arrived, its own answer is newer than that answer. If the two exchanges overlap, the
//! numbers do not prove which answer the origin made first. Then the validator (ETag or Last-Modified) may
//! show that both answers are the same version, or `Date` may show which answer is older (RFC 9111 section
//! 4). Otherwise both answers are removed, so that clients never get an older version after a newer one.
//!
//! An answer is published when its head has arrived and was compared with earlier answers. Published answers
//! are remembered as long as any fetch of the same primary key runs. A fetch that starts after the end of
//! these fetches asks the origin after the heads of all published answers have arrived. So its answer is
//! newer.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic;

use bytes::Bytes;
use foxy_base::{WallTime, rule};

use super::{Fill, FillMap};

/// The Vary list of an answer and the request values that selected the answer; `None` if the answer has no
/// Vary field.
pub(crate) type Selection = Option<(Bytes, Bytes)>;

/// Largest number of published answers that are remembered for one primary key. If there are more, a single
/// entry without a version replaces all remembered answers.
const PUBLISHED_MAX: usize = 32;

/// Evidence for the order of two answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    /// ETag, or else Last-Modified.
    pub(crate) validator: Option<Bytes>,
    /// The Date field.
    pub(crate) date: Option<WallTime>,
    /// True if the answer is a 304. A 304 confirms a version that was stored before the request was sent. In
    /// a published answer, the flag means more: the version was stored before the oldest running fetch sent
    /// its request.
    pub(crate) known_before: bool,
    /// True if the answer is a part of a representation. It may be stored together with other parts of the
    /// same version.
    pub(crate) part: bool,
}

/// The position of an answer among the answers of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    /// No other answer is newer.
    Newest,
    /// Another answer is newer.
    Late,
    /// It is unknown whether another answer is newer.
    Unclear,
}

/// An answer that was published under a primary key.
#[derive(Debug)]
pub(super) struct Published {
    /// The number that the fetch drew when it asked the origin. `arrived` is the number that the fetch drew
    /// when the head arrived.
    asked: u64,
    arrived: u64,
    selection: Selection,
    version: Version,
}

impl Published {
    /// Returns the position of a new answer relative to this answer. The new answer's fetch drew the number
    /// `asked` when it asked the origin.
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
            // request apply.
            _ if same && asked < self.asked && !version.part => rule!(
                "order: of two answers of one version the one asked for later counts",
                Order::Late,
                Order::Newest
            ),
            _ if same => Order::Newest,
            // The 304 confirms a version that was stored before either request was sent. The published
            // version arrived after both requests had been sent, so it is newer.
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

/// The facts about a new answer by which [`FillMap::publish`] compares it with other answers of its key.
pub(crate) struct Claim<S, O> {
    /// True if later answers must be compared with this answer, because this answer is storable, or because
    /// it shows that stored answers are outdated.
    pub(crate) storable: bool,
    /// The Vary list and the request values that selected the answer.
    pub(crate) selection: Selection,
    pub(crate) version: Version,
    /// A function that gets the selection of a published answer. It returns true if the fill's request has
    /// the same selecting values, so that the published answer would also fit this request.
    pub(crate) same: S,
    /// A function that gets the head of an answer that another fetch is receiving. It returns true if the new
    /// answer replaces that answer.
    pub(crate) replaces: O,
}

impl<H> Family<H> {
    /// Remembers an answer. If several answers have the same selection, only the answer that arrived last is
    /// kept. This is sufficient: a request that was sent after the arrival of the last answer was also sent
    /// after the arrival of the earlier answers.
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

    /// True if a new version was published after the oldest running fetch had started. A 304 that arrives
    /// later may confirm this new version. So the 304 does not prove that its version was stored before the
    /// oldest running fetch sent its request.
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

    /// Draws the next number for `fill`. Called immediately before the fill asks the origin.
    pub(crate) fn asked(&self, fill: &Fill<H>) {
        fill.number.store(self.draw(), atomic::Ordering::Release);
    }

    /// Called when the head of `fill` has arrived. Returns the position of the answer among the answers of
    /// its key. If the answer is not [`Order::Newest`], it is not stored. If `claim` is `storable` and the
    /// position is not [`Order::Late`], the new answer may replace answers that other fetches are still
    /// receiving (`Claim::replaces`). The replaced answers are not stored.
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

    /// Closes `other` if it may deliver an older version than `newer`, so that later requests do not join it.
    /// If the answer of `other` was already compared with other answers, it may no longer be stored either.
    /// Called after the head of `newer` has been published, while `other` still runs.
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
    /// Returns this version. If the order of this answer is `unclear`, returns an empty version instead, so
    /// that it proves nothing about later answers.
    fn unless(self, unclear: bool) -> Self {
        match unclear {
            true => Self::default(),
            false => self,
        }
    }
}
