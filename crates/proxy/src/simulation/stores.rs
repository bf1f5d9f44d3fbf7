//! The disks of the simulated machine, and the stores of the process on these disks. The stores are opened
//! together at the start of the process. A task for each store does the work of its thread. Stores are taken
//! out and put back in the same way as in the product.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::Rng;
use foxy_disk::{Disk, Fault, FaultPlan, FaultRule, Keep, MemDisk, OpClass};
use foxy_store::{Engine, EngineConfig, Grown, OpenError, StoreId, StoreOptions, Writer};
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::clock::SimulatedClock;
use super::profile::Profile;
use super::world::World;

/// Time limit for closing a store that is taken out or grown.
const CLOSE_MAX: Duration = Duration::from_millis(800);
/// Number of segments of an empty disk. The disk has many segments but little data.
const SEGMENTS: u64 = 24;

/// The simulated machine. It exists during the whole history. The process can end and start again several
/// times meanwhile.
#[derive(Debug)]
pub(super) struct Machine {
    disks: Vec<MemDisk>,
    roster: Rc<Roster>,
}

/// The roster: a list of the stores that were last present, by their identities. The product keeps such a
/// list in its state folder. `None` before the first start.
type Roster = RefCell<Option<Vec<[u8; 16]>>>;

impl Machine {
    /// Makes a machine with empty disks.
    pub(super) fn new(profile: &Profile, rng: &mut Rng) -> Self {
        Self {
            disks: (0..profile.stores)
                .map(|_| disk(profile, rng.next_u64()))
                .collect(),
            roster: Rc::default(),
        }
    }

    /// Ends the process and keeps the contents of its disks. If `rng` is given, the power fails, and all
    /// disks lose all or some of the writes that were not synced.
    pub(super) fn crash(&mut self, stores: &Stores, rng: Option<&mut Rng>) {
        let kept = stores.kept.borrow();
        let mut keep = rng.map(|rng| (rng.below(3), rng));
        let crash = |kept: &Kept| match &mut keep {
            None => kept.disk.kill(),
            Some((0, _)) => kept.disk.crash(Keep::Nothing),
            Some((_, rng)) => kept.disk.crash(Keep::Random(rng.next_u64())),
        };
        self.disks = kept.iter().map(crash).collect();
    }
}

/// Makes an empty disk.
fn disk(profile: &Profile, seed: u64) -> MemDisk {
    MemDisk::new(room(profile, SEGMENTS) + (64 << 10), 512, seed)
}

/// Returns the bytes that this number of segments needs.
fn room(profile: &Profile, segments: u64) -> u64 {
    let (segment, _, summary) = profile.geometry();
    segments * u64::from(segment + summary)
}

/// A disk, and the writer of the store on this disk. While the store is not open, the writer is `None`.
struct Kept {
    disk: MemDisk,
    writer: Rc<RefCell<Option<Writer>>>,
}

/// The stores of a process.
pub(super) struct Stores {
    pub(super) engine: Arc<Engine>,
    clock: Arc<SimulatedClock>,
    profile: Profile,
    kept: RefCell<Vec<Kept>>,
    roster: Rc<Roster>,
    rng: RefCell<Rng>,
}

impl Stores {
    /// Opens the stores at a start of the process. If faults prevent the start, it is repeated without
    /// faults, as an operator would do after a repair. If this fails too, all disks are replaced by empty
    /// disks.
    pub(super) fn open(
        world: &World,
        machine: &mut Machine,
        clock: &Arc<SimulatedClock>,
        rng: &mut Rng,
    ) -> Self {
        let profile = world.profile;
        for attempt in 0..3 {
            let disks: Vec<_> = (0..machine.disks.len())
                .map(|n| match attempt {
                    2 => disk(&profile, rng.next_u64()),
                    _ => machine.disks[n].kill(),
                })
                .map(|disk| prepared(disk, clock))
                .collect();
            if attempt == 0 {
                disks.iter().for_each(|d| d.set_faults(profile.faults(rng)));
            }
            // The disk with this number is missing at this start, like a disk that is not mounted.
            let away = attempt == 0 && disks.len() > 1 && profile.moves && rng.chance(0.4);
            let away = away.then(|| rng.below(disks.len() as u64) as usize);
            let roster = Rc::clone(&machine.roster);
            let stores = Self::of(profile, disks, roster, (clock, rng.next_u64()));
            match stores.open_together(away, world) {
                Ok(()) => {
                    if away.is_some() {
                        world.trace.note("a store is not there at this start");
                        world.counts.add("stores not there");
                    }
                    return stores;
                }
                Err(error) => {
                    let note = format!("the stores do not open: {error}");
                    world.trace.note(&note);
                }
            }
            machine.crash(&stores, None);
        }
        unreachable!("empty disks open");
    }

    fn of(
        profile: Profile,
        disks: Vec<MemDisk>,
        roster: Rc<Roster>,
        (clock, seed): (&Arc<SimulatedClock>, u64),
    ) -> Self {
        let config = EngineConfig {
            pending_bytes_max: profile.memory / 2,
            ..EngineConfig::new(profile.memory, seed)
        };
        let kept = disks.into_iter().map(|disk| Kept {
            disk,
            writer: Rc::default(),
        });
        Self {
            engine: Engine::new(config, Arc::<SimulatedClock>::clone(clock)),
            clock: Arc::clone(clock),
            profile,
            kept: RefCell::new(kept.collect()),
            roster,
            rng: RefCell::new(Rng::new(seed)),
        }
    }

    /// Carries out the steps of the product's start. If the disk of a store is faulty, the start continues
    /// without this store, as long as another store opens.
    fn open_together(&self, away: Option<usize>, world: &World) -> Result<(), OpenError> {
        let (mut found, mut failed) = (Vec::new(), None);
        let mut identities = Vec::new();
        for (n, kept) in self.kept.borrow().iter().enumerate() {
            if away == Some(n) {
                continue;
            }
            let disk = Arc::new(kept.disk.clone()) as Arc<dyn Disk>;
            match foxy_store::identity(&*disk, &self.options()) {
                Ok(identity) => {
                    identities.extend(identity);
                    found.push((n, disk));
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(known) = &*self.roster.borrow() {
            let new = identities.iter().filter(|uuid| !known.contains(uuid));
            self.engine.fleet().begin_empty(new.copied());
        }
        let disks: Vec<_> = found.iter().map(|(_, disk)| Arc::clone(disk)).collect();
        self.engine.compare_memberships(&disks, &self.options())?;
        let (mut writers, mut places) = (Vec::new(), Vec::new());
        for (n, disk) in found {
            match self.engine.open_store(disk, self.options()) {
                Ok(writer) => {
                    writers.push(writer);
                    places.push(n);
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            if writers.is_empty() {
                return Err(error);
            }
            let note = format!("a start without one store: {error}");
            world.trace.note(&note);
        }
        self.engine.join(&mut writers)?;
        self.write_roster(None);
        for (n, writer) in places.into_iter().zip(writers) {
            self.drive(n, writer);
        }
        Ok(())
    }

    fn options(&self) -> StoreOptions {
        let (segment, cluster, _) = self.profile.geometry();
        StoreOptions {
            segment_bytes: Some(segment),
            cluster_bytes: cluster,
            mean_object_bytes: 512,
            buffers: 4,
            buffer_bytes: 4 << 10,
            // Only a new store gets this identity. An existing store keeps its own.
            uuid: Some(u128::from(self.rng.borrow_mut().next_u64() | 1).to_be_bytes()),
            ..StoreOptions::default()
        }
    }

    /// Starts the task that does the work of a store's thread.
    fn drive(&self, n: usize, writer: Writer) {
        let rng = Rng::new(self.rng.borrow_mut().next_u64());
        // The previous writer's task may still sleep, and later look into the old cell. So the new writer
        // gets a new cell.
        let writer = Rc::new(RefCell::new(Some(writer)));
        self.kept.borrow_mut()[n].writer = Rc::clone(&writer);
        spawn_local(write(writer, rng));
    }

    /// Returns the number of disks.
    pub(super) fn count(&self) -> usize {
        self.kept.borrow().len()
    }

    /// Returns the store on disk `n`, while the store is open.
    pub(super) fn id(&self, n: usize) -> Option<StoreId> {
        let kept = self.kept.borrow();
        let writer = kept[n].writer.borrow();
        writer.as_ref().map(Writer::store_id)
    }

    /// Writes the present stores, except the store `leaving`, into the roster.
    fn write_roster(&self, leaving: Option<StoreId>) {
        let here = self.engine.stats().stores.into_iter();
        let here = here.filter(|store| Some(store.store) != leaving);
        *self.roster.borrow_mut() = Some(here.map(|store| store.uuid).collect());
    }

    /// Takes a store out. Returns true if all waiting data was written.
    pub(super) async fn take_out(&self, n: usize) -> bool {
        self.write_roster(self.id(n));
        let writer = self.kept.borrow()[n].writer.borrow_mut().take();
        let Some(writer) = writer else { return false };
        self.clock.blocking(|| writer.close(CLOSE_MAX)).await
    }

    /// Puts a store back while the process runs.
    pub(super) async fn put_in(&self, n: usize) -> Result<(), OpenError> {
        let disk = Arc::new(self.kept.borrow()[n].disk.clone());
        let mut writer = self.engine.open_store(disk, self.options())?;
        if let Err(error) = self.engine.join(std::slice::from_mut(&mut writer)) {
            self.clock.blocking(|| writer.close(CLOSE_MAX)).await;
            return Err(error);
        }
        self.drive(n, writer);
        self.write_roster(None);
        Ok(())
    }

    /// Grows a store by two segments.
    pub(super) async fn grow(&self, n: usize) -> bool {
        let writer = self.kept.borrow()[n].writer.borrow_mut().take();
        let Some(writer) = writer else { return false };
        let bytes = self.kept.borrow()[n].disk.len() + room(&self.profile, 2);
        let grown = self.clock.blocking(|| writer.grow(bytes, CLOSE_MAX));
        let Grown { writer, result } = grown.await;
        match writer {
            Some(writer) => self.drive(n, writer),
            None => self.write_roster(None),
        }
        result.is_ok()
    }

    /// If `dead` is true, all operations of disk `n` fail from now on. If it is false, the disk works again.
    pub(super) fn set_dead(&self, n: usize, dead: bool) {
        let rule = FaultRule::new(OpClass::Any, Fault::EIO);
        let plan = match dead {
            true => FaultPlan::none().and(rule),
            false => FaultPlan::none(),
        };
        self.kept.borrow()[n].disk.set_faults(plan);
    }
}

fn prepared(disk: MemDisk, clock: &Arc<SimulatedClock>) -> MemDisk {
    disk.with_clock(Arc::<SimulatedClock>::clone(clock))
        .with_longest_wait(Duration::from_millis(1))
}

/// Does the work of a store's thread.
async fn write(writer: Rc<RefCell<Option<Writer>>>, mut rng: Rng) {
    loop {
        let turn = writer.borrow_mut().as_mut().map(Writer::turn);
        let Some(turn) = turn else { return };
        let wait = match turn.busy {
            true => Duration::from_millis(1),
            false => turn.wait.unwrap_or(Duration::from_millis(100)),
        };
        let late = Duration::from_millis(rng.below(8) + 2);
        sleep(wait.clamp(late, Duration::from_millis(100))).await;
    }
}
