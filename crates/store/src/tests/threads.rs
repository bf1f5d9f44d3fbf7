//! Real threads look up, store, remove and purge while stores grow, drain, leave and come back. Each
//! key has a window of versions that a lookup may return. A thread that replaces or removes a version
//! moves the beginning of the window afterwards. So a reader that reads the window before its lookup
//! knows the oldest version that it may get.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle, Scope};
use std::time::Duration;

use foxy_base::{Rng, SystemClock};
use foxy_disk::{AlignedBuf, Disk, MemDisk};
use parking_lot::Mutex;

use super::purges::{purge, tagged};
use super::rig::{SEGMENT, body, hash, options, version_of};
use crate::*;

const KEYS: usize = 96;
const MAX: u64 = 2_000;
const CHANGERS: usize = 2;
const AT_MOST: Duration = Duration::from_secs(60);

/// The versions that lookups of a key may return.
#[derive(Default)]
struct Window {
    /// The newest version that a thread began to store.
    newest: AtomicU64,
    /// All versions before this one are replaced or removed.
    oldest: AtomicU64,
}

/// State that all threads share.
struct World {
    engine: Arc<Engine>,
    keys: Vec<Window>,
    /// Objects that were fetched before this purge are removed.
    purged: AtomicU64,
    /// The numbers and tickets of the purges.
    tickets: Mutex<Vec<(u64, SyncTicket)>>,
    stop: AtomicBool,
    hits: AtomicU64,
    steps: AtomicU64,
}

impl World {
    fn new(seed: u64, keys: Vec<Window>, purged: u64) -> Arc<Self> {
        let config = EngineConfig {
            pending_bytes_max: 512 << 10,
            ..EngineConfig::new(1 << 20, seed)
        };
        Arc::new(Self {
            engine: Engine::new(config, Arc::new(SystemClock::default())),
            keys,
            purged: purged.into(),
            tickets: Mutex::default(),
            stop: false.into(),
            hits: 0.into(),
            steps: 0.into(),
        })
    }

    fn name(key: usize) -> String {
        format!("forward GET http://a.test/{key}")
    }

    fn put(&self, key: usize) {
        let window = &self.keys[key];
        let version = window.newest.load(Ordering::SeqCst) + 1;
        let asked = self.engine.purges().purge_sequence();
        window.newest.store(version, Ordering::SeqCst);
        let bytes = body(key as u64, version, MAX);
        let mut new = tagged(&Self::name(key), &bytes, "", asked);
        new.group = key as u64;
        if self.engine.put(new).admitted.is_visible() {
            window.oldest.store(version, Ordering::SeqCst);
        } else {
            self.remove(key, false);
        }
    }

    fn remove(&self, key: usize, purge: bool) {
        let (window, name) = (&self.keys[key], Self::name(key));
        if purge {
            drop(self.engine.purge(hash(&name), name.as_bytes()));
        } else {
            self.engine.supersede(hash(&name), name.as_bytes());
        }
        let next = window.newest.load(Ordering::SeqCst) + 1;
        window.oldest.store(next, Ordering::SeqCst);
    }

    fn purge_all(&self) {
        let all = purge(PurgeKind::All, "", false);
        if let Ok((number, ticket)) = self.engine.purges().purge_many(&all, Places::Reserved) {
            self.purged.fetch_max(number, Ordering::SeqCst);
            self.tickets.lock().push((number, ticket));
        }
    }

    fn check(&self, key: usize) {
        let (window, name) = (&self.keys[key], Self::name(key));
        let oldest = window.oldest.load(Ordering::SeqCst);
        let purged = self.purged.load(Ordering::SeqCst);
        let found = match self.engine.reads().lookup(hash(&name), name.as_bytes()) {
            Lookup::Memory(object) => Some(object),
            Lookup::Miss => None,
            Lookup::Disk(plan) => self.read(&plan, &name),
        };
        if let Some(object) = found {
            let version = version_of(key as u64, object.body(), MAX);
            let newest = window.newest.load(Ordering::SeqCst);
            assert!(
                (oldest..=newest).contains(&version),
                "key {key}: {version} is not in {oldest}..={newest}"
            );
            let asked = object.meta.purge_sequence;
            assert!(asked >= purged, "key {key}: {asked} is before {purged}");
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Carries out a read. Returns `None` if it is a miss, for example because the store left meanwhile.
    fn read(&self, plan: &ReadPlan, name: &str) -> Option<Arc<Object>> {
        let disk = self.engine.fleet().disk(plan.store)?;
        let mut buf = AlignedBuf::new(plan.len as usize);
        buf.set_len(plan.len as usize);
        disk.read_at(plan.at, &mut buf).unwrap();
        self.engine
            .reads()
            .finish_read(plan, name.as_bytes(), buf)
            .ok()
    }

    /// Returns whether a removal that is made now finds room in the removal logs. The log of such a small
    /// store has room for four hundred removals. Threads must not make removals faster than the writer takes
    /// them, even if the writer waits for a processor. Otherwise some removals find no room, and a kill may
    /// undo them; `removal_log.rs` tests that case.
    fn has_room_for_removals(&self) -> bool {
        let stores = self.engine.fleet().stores();
        stores.iter().all(|s| !s.removals.lock().is_pressed())
    }

    fn change(&self, owner: usize, rng: &mut Rng) {
        while !self.has_room_for_removals() {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            thread::yield_now();
        }
        let key = rng.below((KEYS / CHANGERS) as u64) as usize * CHANGERS + owner;
        // A purge of all objects is rare. Objects from before such a purge cannot come back, even if
        // another rule is broken, so frequent purges would hide the broken rule.
        match rng.below(4000) {
            0 => self.purge_all(),
            1..200 => self.remove(key, true),
            200..1600 => self.remove(key, false),
            1600..1800 => self.engine.context().memory.clear(),
            _ => self.put(key),
        }
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until the threads have made `steps` more changes, so that the operator's next action meets new
    /// contents.
    fn wait_for(&self, steps: u64) {
        let target = self.steps.load(Ordering::Relaxed) + steps;
        while self.steps.load(Ordering::Relaxed) < target && !self.stop.load(Ordering::Relaxed) {
            thread::yield_now();
        }
    }
}

enum Command {
    Close(Sender<bool>),
    Grow(u64, Sender<(StoreId, WakeHandle)>),
}

/// A store and the thread that drives it.
struct Driven {
    disk: MemDisk,
    id: StoreId,
    wake: WakeHandle,
    commands: Sender<Command>,
    thread: JoinHandle<()>,
}

impl Driven {
    fn begin(disk: MemDisk, writer: Writer) -> Self {
        let (commands, received) = channel();
        Self {
            disk,
            id: writer.store_id(),
            wake: writer.wake_handle(),
            commands,
            thread: thread::spawn(move || drive(writer, &received)),
        }
    }

    fn add(world: &World, disk: MemDisk, name: u8) -> Self {
        let options = StoreOptions {
            uuid: Some([name; 16]),
            ..options()
        };
        let opened = world.engine.open_store(Arc::new(disk.clone()), options);
        let mut writer = opened.unwrap();
        let joined = world.engine.join(std::slice::from_mut(&mut writer));
        joined.unwrap();
        Self::begin(disk, writer)
    }

    fn command(&self, command: Command) {
        self.commands.send(command).unwrap();
        self.wake.wake();
    }

    fn close(self) -> MemDisk {
        let (answer, answered) = channel();
        self.command(Command::Close(answer));
        assert!(answered.recv().unwrap(), "everything was written");
        self.thread.join().unwrap();
        self.disk
    }

    fn grow(&mut self) {
        let (answer, answered) = channel();
        let bytes = self.disk.len() + 2 * u64::from(SEGMENT + 4096);
        self.command(Command::Grow(bytes, answer));
        (self.id, self.wake) = answered.recv().unwrap();
    }

    /// Ends the thread as a crash would.
    fn end(self) -> MemDisk {
        drop(self.commands);
        self.wake.wake();
        self.thread.join().unwrap();
        self.disk
    }
}

fn drive(mut writer: Writer, commands: &Receiver<Command>) {
    loop {
        let turn = writer.turn();
        match commands.try_recv() {
            Err(TryRecvError::Empty) => writer.park(turn),
            Err(TryRecvError::Disconnected) => return,
            Ok(Command::Close(answer)) => {
                answer.send(writer.close(AT_MOST)).unwrap();
                return;
            }
            Ok(Command::Grow(bytes, answer)) => {
                let grown = writer.grow(bytes, AT_MOST);
                // A store that is still loading does not grow, and stays as it was.
                let _ = grown.result;
                writer = grown.writer.unwrap();
                let now = (writer.store_id(), writer.wake_handle());
                answer.send(now).unwrap();
            }
        }
    }
}

fn drain(world: &World, id: StoreId) {
    world.engine.fleet().drain_store(id).unwrap();
    let duty = || {
        let stats = world.engine.stats();
        stats
            .stores
            .into_iter()
            .find(|s| s.store == id)
            .unwrap()
            .duty
    };
    while duty() != Duty::Drained {
        match world.engine.begin_drain() {
            Some(mut drain) => while drain.step() != DrainStep::Done {},
            None => thread::yield_now(),
        }
    }
}

/// Makes the operator's changes one after another: one store grows, and another store leaves and comes back.
/// In every second round, the other store is drained before it leaves.
fn operate(world: &World, mut stores: Vec<Driven>, rounds: usize) -> Vec<Driven> {
    for round in 0..rounds {
        world.wait_for(800);
        stores[0].grow();
        world.wait_for(400);
        let mut leaving = stores.pop().unwrap();
        if round % 2 == 0 {
            drain(world, leaving.id);
        }
        let disk = leaving.close();
        // There are so few changes that most of the store's contents stay unchanged. Some contents
        // change.
        world.wait_for(60);
        leaving = Driven::add(world, disk, 9);
        stores.push(leaving);
        if let Some(mut sweep) = world.engine.purges().sweep() {
            while sweep.step() != SweepStep::Done {}
        }
    }
    world.wait_for(400);
    world.stop.store(true, Ordering::SeqCst);
    stores
}

/// Looks up and changes keys until the operator has ended; stops all threads if one of them fails.
fn work<'scope>(scope: &'scope Scope<'scope, '_>, world: &'scope World, seed: u64) {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    for n in 0..CHANGERS + 1 {
        let mut rng = Rng::new(seed * 100 + n as u64);
        scope.spawn(move || {
            let _stop = Stop(&world.stop);
            while !world.stop.load(Ordering::Relaxed) {
                if n < CHANGERS {
                    world.change(n, &mut rng);
                }
                world.check(rng.below(KEYS as u64) as usize);
            }
        });
    }
}

fn start(world: &World, disks: &[MemDisk]) -> Vec<Driven> {
    let met: Vec<_> = disks.iter().map(|d| Arc::new(d.clone()) as _).collect();
    world.engine.compare_memberships(&met, &options()).unwrap();
    let open = |(n, disk)| {
        let options = StoreOptions {
            uuid: Some([n as u8 + 1; 16]),
            ..options()
        };
        world.engine.open_store(disk, options).unwrap()
    };
    let mut writers: Vec<_> = met.into_iter().enumerate().map(open).collect();
    world.engine.join(&mut writers).unwrap();
    let both = disks.iter().zip(writers);
    both.map(|(disk, writer)| Driven::begin(disk.clone(), writer))
        .collect()
}

#[test]
fn threads_get_the_latest_or_nothing_while_stores_come_and_go() {
    let seeds = if super::is_long() { 40 } else { 3 };
    let (mut hits, mut kept) = (0, 0);
    for seed in 0..seeds {
        let disk = |n| {
            MemDisk::new(
                16 * u64::from(SEGMENT + 4096) + (64 << 10),
                512,
                seed * 10 + n,
            )
        };
        let keys = (0..KEYS).map(|_| Window::default()).collect();
        let world = World::new(seed, keys, 0);
        let stores = start(&world, &[disk(0), disk(1), disk(2)]);
        let stores = thread::scope(|scope| {
            work(scope, &world, seed);
            operate(&world, stores, 6)
        });
        // No thread works any more: all disks are as they were at one moment.
        let disks: Vec<_> = stores.into_iter().map(Driven::end).collect();
        let disks: Vec<_> = disks.iter().map(MemDisk::kill).collect();
        hits += world.hits.load(Ordering::Relaxed);
        let full = |s: &OneStoreStats| s.counts.removal_log_full;
        let full: u64 = world.engine.stats().stores.iter().map(full).sum();
        assert_eq!(full, 0, "no room for strictness");
        // After a kill, the same windows apply.
        let world = Arc::into_inner(world).unwrap();
        let tickets = world.tickets.into_inner().into_iter();
        let durable = tickets.filter(|(_, t)| t.outcome() == Some(Durable::Yes));
        let purged = durable.map(|(number, _)| number).max().unwrap_or(0);
        let again = World::new(seed, world.keys, purged);
        let stores = start(&again, &disks);
        for _ in 0..20 {
            (0..KEYS).for_each(|key| again.check(key));
        }
        kept += again.hits.load(Ordering::Relaxed);
        stores.into_iter().for_each(|store| drop(store.end()));
    }
    assert!(hits > 1_000 && kept > 20, "{hits} {kept}");
}
