//! One life of the simulated process: the time from its start to its end. Stores, proxy and workers start
//! with the disks as the previous life has left them.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

use foxy_base::Rng;
use tokio::time::sleep;

use super::clock::SimulatedClock;
use super::profile::Profile;
use super::settings::{self, Settings};
use super::stores::{Machine, Stores};
use super::workers;
use super::world::World;
use crate::{Event, FixedNames, Proxy, Renewal, RenewedListener, Renewer, Use};

/// The parts of a running process.
pub(super) struct Life {
    profile: Profile,
    /// The present proxy, and its settings.
    now: RefCell<(Arc<Proxy>, Settings)>,
    renewers: Vec<Renewer>,
    pub(super) stores: Rc<Stores>,
}

impl Life {
    /// Starts stores, proxy and workers on the present `LocalSet`.
    pub(super) fn start(
        world: &Rc<World>,
        machine: &mut Machine,
        clock: &Arc<SimulatedClock>,
        rng: &mut Rng,
    ) -> Rc<Self> {
        let stores = Stores::open(world, machine, clock, rng);
        let names = FixedNames::default().with("origin.sim", &[IpAddr::from([127, 0, 0, 1])]);
        let engine = Arc::clone(&stores.engine);
        let own = Arc::<SimulatedClock>::clone(clock);
        let profile = world.profile;
        let settings = match profile.reloads && rng.chance(0.5) {
            true => Settings::draw(rng),
            false => world.eras.last(),
        };
        world.eras.begin(settings, Some(world.trace.now()));
        world.trace.note(&format!("start with {settings:?}"));
        let config = settings.config(&profile);
        let proxy = Proxy::new(config, engine, own, Arc::new(names), profile.workers);
        let listeners = settings::listeners(&profile);
        let started = (0..profile.workers).map(|index| {
            let rng = Rng::new(rng.next_u64());
            workers::start(world, &proxy, (index, &listeners), rng)
        });
        let (doors, renewers) = started.unzip();
        *world.doors.borrow_mut() = doors;
        Rc::new(Self {
            profile,
            now: RefCell::new((proxy, settings)),
            renewers,
            stores: Rc::new(stores),
        })
    }

    /// Returns the present proxy, and its settings.
    pub(super) fn now(&self) -> (Arc<Proxy>, Settings) {
        self.now.borrow().clone()
    }

    /// Gives all workers new settings, in the same way as the product does, and waits until each worker has
    /// them.
    pub(super) async fn reload(&self, settings: Settings, memory: u64) {
        let (proxy, old) = self.now();
        self.stores.engine.set_memory(memory);
        let alike = settings.is_like(old);
        let proxy = proxy.renewed(settings.config(&self.profile), alike);
        let listeners = settings::listeners(&self.profile);
        let sent = self.renewers.iter().map(|renewer| {
            let listeners = listeners.iter().map(|(address, serves)| RenewedListener {
                address: *address,
                socket: None,
                serves: serves.clone(),
                tls: None,
                proxy_protocol: false,
            });
            renewer.send(Renewal {
                proxy: Arc::clone(&proxy),
                listeners: listeners.collect(),
            })
        });
        let sent: Vec<_> = sent.collect();
        for applied in sent {
            while applied.try_recv() == Err(TryRecvError::Empty) {
                sleep(Duration::from_millis(3)).await;
            }
        }
        *self.now.borrow_mut() = (proxy, settings);
    }

    /// Adds the events that the process itself has counted to the counts of the history.
    pub(super) fn count(&self, world: &World) {
        let totals = self.now().0.totals();
        let counts = [
            ("followers", Event::Followers),
            ("released", Event::FollowersReleased),
            ("disk reads", Event::DiskReads),
        ];
        for (name, event) in counts {
            world.counts.add_many(name, totals.event(event));
        }
        if self.profile.wide {
            let released = totals.event(Event::FollowersReleased);
            world.counts.add_many("released from windows", released);
        }
    }

    /// Returns the kinds of work that are still in progress, and their amounts. The list is empty if the
    /// process is idle.
    pub(super) fn left(&self) -> Vec<(&'static str, usize)> {
        let (proxy, _) = self.now();
        let memory = Use::ALL.map(|of| (of.name(), proxy.memory_used(of)));
        let work = [
            ("connections", proxy.connections()),
            ("fetches", proxy.fills()),
            ("followers", proxy.followers()),
        ];
        let all = work.into_iter().chain(memory);
        all.filter(|(_, left)| *left > 0).collect()
    }
}
