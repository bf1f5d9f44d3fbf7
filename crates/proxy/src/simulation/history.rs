//! One history: the process lives several times, one life after the other, while clients, operator and
//! origin go on.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, Rng};
use foxy_disk::{Keep, MemDisk};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

use super::client::Client;
use super::clock::SimulatedClock;
use super::life::{self, Life};
use super::network::Network;
use super::profile::{Ends, Profile};
use super::world::World;
use super::{operator, oracle, origin};

const CLIENTS: u8 = 6;
/// Requests of each client.
const REQUESTS: u64 = 25;
/// Time for everything to come to rest after the last request.
const REST: Duration = Duration::from_secs(120);

/// The result of a history.
pub(super) struct Done {
    pub(super) wrong: Option<String>,
    pub(super) hash: u64,
    pub(super) counts: BTreeMap<&'static str, u64>,
}

/// A history under way.
pub(super) struct History {
    world: Rc<World>,
    rng: Rng,
    clock: Arc<dyn Clock>,
    disk: MemDisk,
    clients: Vec<JoinHandle<()>>,
}

impl History {
    /// The history of this seed.
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
        let network = Network::new(Rng::new(rng.next_u64()), sender, profile.network);
        let connected = network.connected();
        let world = World::new(profile, Rng::new(rng.next_u64()));
        spawn_local(origin::run(Rc::clone(&world), dialled));
        let requests = |rng: &mut Rng| (REQUESTS / 2 + rng.below(REQUESTS)) as u32;
        let clients = (0..CLIENTS)
            .map(|number| spawn_local(Client::new(&world, number).run(requests(&mut rng))))
            .collect();
        let mut history = Self {
            disk: life::disk(rng.next_u64()),
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
            _ => 2 + self.rng.below(3),
        };
        for number in 1..=lives {
            self.world.life.set(number as u32);
            let tasks = LocalSet::new();
            tasks.run_until(self.live(number == lives)).await;
            *self.world.door.borrow_mut() = None;
            // The process is gone, whatever was under way.
            drop(tasks);
            let down = Duration::from_millis(self.rng.below(500));
            sleep(down).await;
        }
    }

    /// A life; what its disk holds at the end is left in `self`.
    async fn live(&mut self, last: bool) {
        let life = Life::start(&self.world, &self.disk, &self.clock, &mut self.rng);
        let rng = Rng::new(self.rng.next_u64());
        let works = operator::run(Rc::clone(&self.world), Arc::clone(&life.proxy), rng);
        spawn_local(works);
        if last {
            for client in std::mem::take(&mut self.clients) {
                if client.await.is_err() {
                    self.world
                        .trace
                        .wrong("simulation", "a client has panicked");
                }
            }
            self.world.is_over.set(true);
            return self.rest(&life).await;
        }
        let time = match self.rng.below(3) {
            0 => self.rng.below(3000),
            _ => self.rng.below(30_000),
        };
        sleep(Duration::from_millis(time)).await;
        let power = self.world.profile.ends == Ends::PowerCuts && self.rng.chance(0.6);
        let keep = match self.rng.below(3) {
            _ if !power => Keep::All,
            0 => Keep::Nothing,
            _ => Keep::Random(self.rng.next_u64()),
        };
        let word = if power { "power cut" } else { "kill" };
        self.world.trace.note(word);
        self.world.counts.add(word);
        let world = &self.world;
        world.crash(|barrier| oracle::survives(world, barrier, power));
        self.disk = life.disk.crash(keep);
    }

    /// Nothing is left after the last request.
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
