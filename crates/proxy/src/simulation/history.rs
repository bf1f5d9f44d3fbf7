//! One history, which is one run of the simulation. The simulated process can end and start again several
//! times: it has several lives. Clients and origin continue through all lives.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::clock::SimulatedClock;
use super::life::Life;
use super::network::Network;
use super::profile::{Ends, Profile};
use super::stores::Machine;
use super::world::World;
use super::{keeper, operator, oracle, origin, sweeper};

const CLIENTS: u8 = 6;
/// Mean number of requests of each client, approximately.
const REQUESTS: u64 = 25;
/// Time limit for all work to end after the last request.
const REST: Duration = Duration::from_secs(120);

/// The result of a history.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) wrong: Option<String>,
    pub(super) hash: u64,
    pub(super) counts: BTreeMap<&'static str, u64>,
}

/// A history that is running.
pub(super) struct History {
    world: Rc<World>,
    rng: Rng,
    clock: Arc<SimulatedClock>,
    machine: Machine,
    clients: Vec<JoinHandle<()>>,
}

impl History {
    /// Runs the history of this seed.
    pub(super) fn run(seed: u64) -> Done {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        LocalSet::new().block_on(&runtime, Self::all(seed))
    }

    async fn all(seed: u64) -> Done {
        let mut rng = Rng::new(seed);
        let profile = Profile::of(seed, &mut rng);
        let clock = Arc::new(SimulatedClock::start());
        let (sender, dialled) = mpsc::unbounded_channel();
        let network = Network::new(Rng::new(rng.next_u64()), sender, profile);
        let connected = network.connected();
        let world = World::new(profile, Rng::new(rng.next_u64()));
        spawn_local(origin::run(Rc::clone(&world), dialled));
        let requests = |rng: &mut Rng| (REQUESTS / 2 + rng.below(REQUESTS)) as u32;
        let clients = (0..CLIENTS)
            .map(|number| spawn_local(Client::new(&world, number).run(requests(&mut rng))))
            .collect();
        let mut history = Self {
            machine: Machine::new(&world.profile, &mut rng),
            world,
            rng,
            clock,
            clients,
        };
        history.lives().await;
        drop(connected);
        Done {
            wrong: history.world.trace.first_wrong(),
            hash: history.world.trace.hash(),
            counts: history.world.counts.all(),
        }
    }

    async fn lives(&mut self) {
        let lives = match self.world.profile.ends {
            Ends::None => 1,
            _ => self.world.profile.lives(&mut self.rng),
        };
        for number in 1..=lives {
            self.world.life.set(number as u32);
            let tasks = LocalSet::new();
            tasks.run_until(self.live(number == lives)).await;
            self.world.doors.borrow_mut().clear();
            // The process has ended, and its running tasks are dropped.
            drop(tasks);
            let down = Duration::from_millis(self.rng.below(500));
            sleep(down).await;
        }
    }

    /// Runs a life of the process. At the end of the life, the contents of the disks remain in
    /// `self.machine`.
    async fn live(&mut self, last: bool) {
        let (world, machine) = (Rc::clone(&self.world), &mut self.machine);
        let life = Life::start(&world, machine, &self.clock, &mut self.rng);
        let mut rng = || Rng::new(self.rng.next_u64());
        spawn_local(operator::run(Rc::clone(&world), Rc::clone(&life), rng()));
        let engine = Arc::clone(&life.stores.engine);
        spawn_local(sweeper::run(Rc::clone(&world), engine, rng()));
        if world.profile.reloads {
            spawn_local(operator::reload(Rc::clone(&world), Rc::clone(&life), rng()));
        }
        if world.profile.moves {
            let stores = Rc::clone(&life.stores);
            spawn_local(keeper::run(Rc::clone(&world), stores, rng()));
        }
        if last {
            for client in std::mem::take(&mut self.clients) {
                if client.await.is_err() {
                    self.world
                        .trace
                        .wrong("simulation", "a client has panicked");
                }
            }
            self.world.is_over.set(true);
            self.rest(&life).await;
            return life.count(&world);
        }
        let time = self.world.profile.life(&mut self.rng);
        sleep(time).await;
        let power = self.world.profile.ends == Ends::PowerCuts && self.rng.chance(0.6);
        let word = if power { "power cut" } else { "kill" };
        self.world.trace.note(word);
        self.world.counts.add(word);
        world.crash(|barrier| oracle::survives(&world, barrier, power));
        life.count(&world);
        let cut = power.then_some(&mut self.rng);
        self.machine.crash(&life.stores, cut);
    }

    /// Checks that no work is left after the last request.
    async fn rest(&self, life: &Life) {
        let rests = async {
            while !life.left().is_empty() {
                sleep(Duration::from_millis(500)).await;
            }
        };
        if timeout(REST, rests).await.is_err() {
            let text = format!("left behind: {:?}", life.left());
            self.world.trace.wrong("leaks", &text);
        }
    }
}
