//! One life of the process: stores, proxy and workers, started on the disks that the last one left.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;

use super::clock::SimulatedClock;
use super::stores::{Machine, Stores};
use super::workers;
use super::world::World;
use crate::{Config, FixedNames, Proxy, Role, Serves, Timeouts, Use};

/// The listener of the forward proxy.
pub(super) const FORWARD: ([u8; 4], u16) = ([127, 0, 0, 1], 3128);

fn config(world: &World) -> Config {
    let seconds = Duration::from_secs;
    let mut config = Config {
        timeouts: Timeouts {
            head: seconds(5),
            idle: seconds(20),
            progress: seconds(10),
            connect: seconds(3),
            first_byte: seconds(8),
            upstream_progress: seconds(6),
            ..Timeouts::default()
        },
        seed: 7,
        ..Config::default()
    };
    config.headers.instance = "simulated".into();
    config.rules.stale_on_disconnect_s = (super::ON_FAILURE / 1000) as u32;
    config.upstream.idle_max = seconds(10);
    if world.profile.short {
        config.limits.memory = 1 << 20;
        config.fill.memory = 256 << 10;
    }
    config
}

/// A process.
pub(super) struct Life {
    pub(super) proxy: Arc<Proxy>,
    pub(super) stores: Rc<Stores>,
}

impl Life {
    /// Starts everything on the present `LocalSet`.
    pub(super) fn start(
        world: &Rc<World>,
        machine: &mut Machine,
        clock: &Arc<SimulatedClock>,
        rng: &mut Rng,
    ) -> Self {
        let stores = Stores::open(world, machine, clock, rng);
        let names = FixedNames::default().with("origin.sim", &[IpAddr::from([127, 0, 0, 1])]);
        let engine = Arc::clone(&stores.engine);
        let own = Arc::<SimulatedClock>::clone(clock);
        let workers = world.profile.workers;
        let proxy = Proxy::new(config(world), engine, own, Arc::new(names), workers);
        let listeners = vec![(SocketAddr::from(FORWARD), Serves::One(Role::Forward))];
        let started = (0..workers).map(|index| {
            let rng = Rng::new(rng.next_u64());
            workers::start(world, &proxy, (index, &listeners), rng)
        });
        let (doors, _renewers): (_, Vec<_>) = started.unzip();
        *world.doors.borrow_mut() = doors;
        Self {
            proxy,
            stores: Rc::new(stores),
        }
    }

    /// Work that is left, by name; empty when the process rests.
    pub(super) fn left(&self) -> Vec<(&'static str, usize)> {
        let proxy = &self.proxy;
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
