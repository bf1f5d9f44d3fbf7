//! The simulated network between Foxy and its origin. When Foxy opens a connection to an origin, this module
//! makes a connection in memory instead.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use foxy_base::Rng;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

use super::pipe::{Cut, Manner};
use super::profile::Profile;
use super::wire::{Wire, pair};

thread_local! {
    /// The network of the history (the run of the simulation) on this thread.
    static NETWORK: RefCell<Option<Rc<Network>>> = const { RefCell::new(None) };
}

/// The network of one history.
#[derive(Debug)]
pub(crate) struct Network {
    rng: RefCell<Rng>,
    origin: UnboundedSender<Wire>,
    profile: Profile,
}

/// A guard that exists while a history runs. When it is dropped, the network is removed from the thread.
pub(super) struct Connected;

impl Drop for Connected {
    fn drop(&mut self) {
        NETWORK.set(None);
    }
}

impl Network {
    pub(super) fn new(rng: Rng, origin: UnboundedSender<Wire>, profile: Profile) -> Rc<Self> {
        Rc::new(Self {
            rng: RefCell::new(rng),
            origin,
            profile,
        })
    }

    pub(super) fn connected(self: &Rc<Self>) -> Connected {
        NETWORK.set(Some(Rc::clone(self)));
        Connected
    }

    /// Returns a random behaviour for one direction of a connection. `cuts` is the probability that the
    /// direction breaks.
    pub(super) fn manner(profile: &Profile, rng: &mut Rng, cuts: f64) -> Manner {
        let cut = rng.chance(cuts).then(|| {
            let at = match rng.below(3) {
                0 => rng.below(600),
                1 => rng.below(8000),
                _ => rng.below(200_000),
            };
            (
                at + 1,
                if rng.chance(0.5) {
                    Cut::End
                } else {
                    Cut::Reset
                },
            )
        });
        // Long bodies in very small pieces would take too long.
        let least = if profile.wide { 4000 } else { 40 };
        let pieces: [usize; 4] = [40, 900, 9000, 9000];
        Manner {
            piece: pieces[rng.below(4) as usize].max(least),
            delay: [0, 3, 40][rng.below(3) as usize],
            cut,
        }
    }

    async fn dial(&self, to: SocketAddr) -> io::Result<(Wire, SocketAddr)> {
        let (wait, refused, wires) = {
            let mut rng = self.rng.borrow_mut();
            let wait = match self.profile.network && rng.chance(0.02) {
                true => 60_000,
                false => rng.below(30),
            };
            let refused = self.profile.network && rng.chance(0.04);
            let cuts = if self.profile.network { 0.15 } else { 0.0 };
            let manners = [
                Self::manner(&self.profile, &mut rng, cuts / 3.0),
                Self::manner(&self.profile, &mut rng, cuts),
            ];
            let own = SocketAddr::from(([127, 0, 0, 1], 4000));
            (wait, refused, pair(&mut rng, manners, [own, to]))
        };
        sleep(Duration::from_millis(wait)).await;
        let [own, other] = wires;
        if refused {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        // This fails if the history has ended, because there is no origin any more.
        let _ = self.origin.send(other);
        Ok((own, to))
    }
}

/// Opens a connection to the first of these addresses. Returns `None` outside a history.
pub(crate) async fn dial(addresses: &[SocketAddr]) -> Option<io::Result<(Wire, SocketAddr)>> {
    let network = NETWORK.with_borrow(Clone::clone)?;
    let to = *addresses.first()?;
    Some(network.dial(to).await)
}

/// Returns true while a history runs on this thread.
pub(crate) fn is_running() -> bool {
    NETWORK.with_borrow(Option::is_some)
}
