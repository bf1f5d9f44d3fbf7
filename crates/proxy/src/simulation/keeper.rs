//! The keeper of the stores, which does the operator's work with disks. While the simulated process runs, the
//! keeper takes stores out, drains them (moves their objects to other stores), puts them back and grows them.
//! The keeper also makes a disk fail, mostly for a while.

use std::rc::Rc;
use std::time::Duration;

use foxy_base::Rng;
use foxy_store::DrainStep;
use tokio::time::sleep;

use super::profile::DiskTrouble;
use super::stores::Stores;
use super::world::World;

/// The keeper waits for a drain for a random number of steps, which is below this limit. After these steps,
/// the keeper takes the store out or lets it serve again, even if the drain is not complete.
const STEPS: u64 = 400;

/// Does the keeper's work until the process ends.
pub(super) async fn run(world: Rc<World>, stores: Rc<Stores>, mut rng: Rng) {
    while !world.is_over.get() {
        sleep(Duration::from_millis(500 + rng.below(6000))).await;
        let n = rng.below(stores.count() as u64) as usize;
        let keeper = Keeper {
            world: &world,
            stores: &stores,
            n,
        };
        if stores.id(n).is_none() {
            keeper.put_in().await;
            continue;
        }
        match rng.below(8) {
            0 => keeper.grow().await,
            1 | 2 => keeper.drain(&mut rng).await,
            3 if world.profile.disk != DiskTrouble::None => keeper.die(&mut rng).await,
            _ => keeper.take_out().await,
        }
    }
}

/// The values for the keeper's work on one store.
struct Keeper<'a> {
    world: &'a World,
    stores: &'a Stores,
    n: usize,
}

impl Keeper<'_> {
    fn note(&self, what: &'static str) {
        self.world.trace.note(&format!("store {}: {what}", self.n));
        self.world.counts.add(what);
    }

    async fn take_out(&self) {
        let written = self.stores.take_out(self.n).await;
        let word = match written {
            true => "stores taken out",
            false => "stores taken out unwritten",
        };
        self.note(word);
    }

    async fn put_in(&self) {
        let before = self.stores.engine.stats().disk_objects;
        match self.stores.put_in(self.n).await {
            Ok(()) => self.note("stores put in"),
            Err(error) => {
                let note = format!("store {} is not put in: {error}", self.n);
                return self.world.trace.note(&note);
            }
        }
        // During this pause, the engine loads the entries of the store's segments.
        sleep(Duration::from_millis(400)).await;
        if self.stores.engine.stats().disk_objects > before {
            self.note("stores back with contents");
        }
    }

    async fn grow(&self) {
        if self.stores.grow(self.n).await {
            self.note("stores grown");
        }
    }

    /// Drains the store, and takes it out or lets it serve again.
    async fn drain(&self, rng: &mut Rng) {
        let fleet = self.stores.engine.fleet();
        let Some(id) = self.stores.id(self.n) else {
            return;
        };
        if fleet.drain_store(id).is_err() {
            return;
        }
        let mut steps = rng.below(STEPS);
        let mut under_way = None;
        while steps > 0 {
            steps -= 1;
            sleep(Duration::from_millis(rng.below(8) + 1)).await;
            let drain = match &mut under_way {
                Some(drain) => drain,
                none => match self.stores.engine.begin_drain() {
                    Some(drain) => none.insert(drain),
                    None => continue,
                },
            };
            if drain.step() == DrainStep::Done {
                self.note("stores drained");
                break;
            }
        }
        if rng.chance(0.3) {
            // This call fails if the disk failed after the drain began, because a failed store is taken out.
            if fleet.resume_store(id).is_ok() {
                self.note("stores serving again");
            }
            return;
        }
        self.take_out().await;
    }

    /// Makes the disk fail. Mostly makes it work again after a while.
    async fn die(&self, rng: &mut Rng) {
        self.stores.set_dead(self.n, true);
        self.note("disks dead");
        sleep(Duration::from_millis(rng.below(8000))).await;
        if rng.chance(0.5) {
            self.take_out().await;
        }
        if rng.chance(0.7) {
            self.stores.set_dead(self.n, false);
        }
    }
}
