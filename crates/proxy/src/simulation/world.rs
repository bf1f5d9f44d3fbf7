//! The state that the simulated origin, clients and operator share with the oracle, which checks the answers.
//! It contains the origin's answers, and the barriers. A barrier forbids older answers after a purge, after a
//! change, or after a client has received a newer version.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use foxy_base::Rng;

use super::clock;
use super::content::{Made, Personal, Tag};
use super::profile::Profile;
use super::settings::Eras;
use super::spot::Spot;
use super::trace::Trace;
use super::workers::{Arrival, Doors};

/// Longest duration of a request, in milliseconds.
const LONGEST: u64 = 160_000;

/// An answer of the origin.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) made: Made,
    /// Time of the answer in milliseconds of the history, like all times in this module.
    pub(super) at: u64,
    /// Number of the request to which the origin gave this answer.
    pub(super) asked_by: u64,
    /// True if that request had Authorization.
    pub(super) login: bool,
    /// Lifetime in milliseconds. `None` means that each use needs the origin.
    pub(super) lifetime: Option<u64>,
}

/// Reason why a barrier forbids older answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Purge,
    SoftPurge,
    Change,
    /// A client has received a newer version.
    Newer,
}

/// A barrier: requests that begin after `since` must not get older answers for the spot. For the causes
/// `Purge`, `SoftPurge` and `Change`, these are the answers with a number below `serial`. For `Newer`, these
/// are the versions below `serial`.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    pub(super) spot: Spot,
    pub(super) cause: Cause,
    pub(super) serial: u64,
    pub(super) since: u64,
    /// True if a power failure does not undo the barrier.
    pub(super) durable: bool,
    /// User and variant to which the barrier applies (only for `Newer`).
    pub(super) body: Option<(String, String)>,
}

/// The user behind a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum User {
    Nobody,
    Cookie(&'static str),
    Login(&'static str),
}

impl User {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nobody => "-",
            Self::Cookie(name) | Self::Login(name) => name,
        }
    }
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) profile: Profile,
    pub(super) trace: Trace,
    pub(super) counts: Counts,
    pub(super) eras: Eras,
    rng: RefCell<Rng>,
    versions: RefCell<Vec<u64>>,
    said: RefCell<Vec<Said>>,
    barriers: RefCell<BTreeMap<Spot, Vec<Barrier>>>,
    /// The listeners to which clients connect, by worker. The list is empty while the process does not run.
    pub(super) doors: RefCell<Vec<Doors>>,
    /// The worker of each request, by number of the request.
    asked: RefCell<BTreeMap<u64, usize>>,
    /// Number of the present life of the process.
    pub(super) life: Cell<u32>,
    requests: Cell<u64>,
    /// The spot of the last request of any client.
    pub(super) latest: Cell<Option<Spot>>,
    pub(super) is_over: Cell<bool>,
}

/// Number of events in a history, by kind.
#[derive(Debug, Default)]
pub(super) struct Counts {
    names: RefCell<BTreeMap<&'static str, u64>>,
}

impl Counts {
    pub(super) fn add(&self, name: &'static str) {
        self.add_many(name, 1);
    }

    pub(super) fn add_many(&self, name: &'static str, count: u64) {
        *self.names.borrow_mut().entry(name).or_default() += count;
    }

    pub(super) fn all(&self) -> BTreeMap<&'static str, u64> {
        self.names.borrow().clone()
    }
}

impl World {
    pub(super) fn new(profile: Profile, rng: Rng) -> Rc<Self> {
        Rc::new(Self {
            profile,
            trace: Trace::new(),
            counts: Counts::default(),
            eras: Eras::default(),
            rng: RefCell::new(rng),
            versions: RefCell::new(vec![1; Spot::ALL]),
            said: RefCell::default(),
            barriers: RefCell::default(),
            doors: RefCell::default(),
            asked: RefCell::default(),
            life: Cell::new(0),
            requests: Cell::new(0),
            latest: Cell::new(None),
            is_over: Cell::new(false),
        })
    }

    /// Returns a separate random generator, for example for one client.
    pub(super) fn fork(&self) -> Rng {
        Rng::new(self.rng.borrow_mut().next_u64())
    }

    pub(super) fn next_request(&self) -> u64 {
        self.requests.set(self.requests.get() + 1);
        self.requests.get()
    }

    /// Passes a connection to a listener of a worker. Returns false if no process listens.
    pub(super) fn connect(&self, (worker, listener): (usize, usize), arrival: Arrival) -> bool {
        let doors = self.doors.borrow();
        let door = doors.get(worker).and_then(|own| own.get(listener));
        door.is_some_and(|door| door.send(arrival).is_ok())
    }

    /// Returns true if no process runs.
    pub(super) fn is_down(&self) -> bool {
        self.doors.borrow().is_empty()
    }

    /// Notes that the request goes to this worker.
    pub(super) fn note_worker(&self, request: u64, worker: usize) {
        self.asked.borrow_mut().insert(request, worker);
    }

    /// Returns true if these requests went to different workers.
    pub(super) fn differ(&self, one: u64, other: u64) -> bool {
        let asked = self.asked.borrow();
        asked.get(&one) != asked.get(&other)
    }

    pub(super) fn version(&self, spot: Spot) -> u64 {
        self.versions.borrow()[spot.number()]
    }

    /// Changes the content of a page: raises its version.
    pub(super) fn publish(&self, spot: Spot) {
        let mut versions = self.versions.borrow_mut();
        let version = &mut versions[spot.number()];
        *version += 1;
        let (part, target) = (spot.part.name(), spot.target());
        let text = format!("publish {part} {target} v{version}");
        self.trace.note(&text);
    }

    /// Returns the number of the origin's next answer.
    pub(super) fn next_serial(&self) -> u64 {
        self.said.borrow().len() as u64
    }

    /// Notes an answer that the origin makes now.
    pub(super) fn say(
        &self,
        spot: Spot,
        user: User,
        variant: &str,
        (asked_by, version): (u64, u64),
    ) -> Made {
        let at = spot.page();
        let named = match (at.personal, user) {
            (Personal::No, _) => "-",
            (Personal::Cookie, User::Login(_)) => "-",
            (Personal::Login, User::Cookie(_)) => "-",
            (_, user) => user.name(),
        };
        let made = Made {
            spot,
            version,
            user: named.to_owned(),
            variant: if at.varies { variant } else { "-" }.to_owned(),
            serial: self.next_serial(),
        };
        let lifetime = match at.tag {
            Tag::Modified if named != "-" => Some(0),
            Tag::Modified => {
                let old = clock::wall().0 - clock::modified(version).0;
                Some(old as u64 / 10)
            }
            _ => at.lifetime,
        };
        self.said.borrow_mut().push(Said {
            made: made.clone(),
            at: self.trace.now(),
            asked_by,
            login: matches!(user, User::Login(_)),
            lifetime,
        });
        made
    }

    pub(super) fn said(&self, serial: u64) -> Option<Said> {
        self.said.borrow().get(serial as usize).cloned()
    }

    /// Finds the latest answer since `started` in which the origin has sent or confirmed exactly this body.
    /// Returns the number of this answer, or `None` if there is none.
    pub(super) fn confirmed(&self, made: &Made, started: u64) -> Option<u64> {
        let said = self.said.borrow();
        let mut since = said.iter().rev().take_while(|said| said.at >= started);
        let same = |said: &&Said| said.made.identity() == made.identity();
        since.find(same).map(|said| said.made.serial)
    }

    pub(super) fn bar(&self, barrier: Barrier) {
        let mut barriers = self.barriers.borrow_mut();
        let own = barriers.entry(barrier.spot).or_default();
        let long_ago = barrier.since.saturating_sub(LONGEST);
        own.retain(|old| {
            // A new barrier replaces older barriers with the same cause and body. A durable barrier is not
            // replaced by one that is not durable. With the cause `Newer`, an older barrier is replaced
            // immediately. With other causes, it is replaced only if it is more than `LONGEST` older. Until
            // then, it is needed for requests that began between the two barriers.
            let covered = old.cause == barrier.cause
                && old.body == barrier.body
                && old.serial <= barrier.serial
                && (barrier.durable || !old.durable);
            !(covered && (barrier.cause == Cause::Newer || old.since < long_ago))
        });
        own.push(barrier);
    }

    /// Returns a barrier that forbids this answer for a request that began at `started`, if there is one.
    pub(super) fn barred(&self, made: &Made, started: u64) -> Option<Barrier> {
        let barriers = self.barriers.borrow();
        let own = barriers.get(&made.spot)?.iter();
        let mut own = own.filter(|barrier| barrier.since < started);
        own.find(|barrier| match (barrier.cause, &barrier.body) {
            (Cause::Newer, Some((user, variant))) => {
                *user == made.user && *variant == made.variant && made.version < barrier.serial
            }
            _ => made.serial < barrier.serial,
        })
        .cloned()
    }

    /// Keeps only the barriers that still apply in the next life of the process.
    pub(super) fn crash(&self, keeps: impl Fn(&Barrier) -> bool) {
        let mut barriers = self.barriers.borrow_mut();
        barriers.values_mut().for_each(|own| own.retain(&keeps));
    }
}
