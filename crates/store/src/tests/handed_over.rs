//! A store grows, or leaves and returns, while something is removed. There is one run for each moment at
//! which the store reads, writes or flushes its disk or uses its queue. The run makes the removal at that
//! moment. The removal must still be in effect when everything is loaded again.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{ManualClock, WallTime};
use foxy_disk::{
    AlignedBuf, Completion, Disk, Fault, FaultPlan, FaultRule, Keep, MemDisk, Nudge, Op, OpClass,
    Queue, QueueStats,
};
use parking_lot::Mutex;

use super::purges::purge;
use super::removal_log::with_old;
use super::rig::{Rig, SEGMENT, geometry, hash, object, options};
use crate::*;

const MEMORY: u64 = 256 << 10;
const AT_MOST: Duration = Duration::from_secs(60);

type Act = Box<dyn FnOnce() + Send>;

/// Counts moments, and carries out an action at one of them. A moment is the beginning of a call of the disk
/// or of its queue. Accesses to the removal log (`read_cached`, `write_cached`) are not moments.
#[derive(Clone, Default)]
struct Moments(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now: u64,
    /// The next action, and its moment.
    act: Option<(u64, Act)>,
}

impl std::fmt::Debug for Moments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "moment {}", self.0.lock().now)
    }
}

impl Moments {
    /// Begins to count moments. The action is carried out at moment `at`.
    fn begin(&self, at: u64, act: Act) {
        *self.0.lock() = State {
            now: 0,
            act: Some((at, act)),
        };
    }

    fn next(&self) {
        let mut state = self.0.lock();
        state.now += 1;
        let now = state.now;
        let due = state.act.take_if(|(at, _)| *at == now);
        // The lock is released first, because the action itself writes to this disk.
        drop(state);
        if let Some((_, act)) = due {
            act();
        }
    }

    /// Returns true if the action was carried out.
    fn is_over(&self) -> bool {
        self.0.lock().act.is_none()
    }
}

#[derive(Debug)]
struct Seen {
    disk: MemDisk,
    moments: Moments,
}

struct SeenQueue {
    queue: Box<dyn Queue>,
    moments: Moments,
}

impl Queue for SeenQueue {
    fn submit(&mut self, op: Op) {
        self.moments.next();
        self.queue.submit(op);
    }
    fn flush_submissions(&mut self) -> io::Result<()> {
        self.moments.next();
        self.queue.flush_submissions()
    }
    fn reap(&mut self, out: &mut Vec<Completion>) -> usize {
        self.moments.next();
        self.queue.reap(out)
    }
    fn wait(&mut self, timeout: Duration) -> io::Result<bool> {
        self.moments.next();
        self.queue.wait(timeout)
    }
    fn event_fd(&self) -> Option<BorrowedFd<'_>> {
        self.queue.event_fd()
    }
    fn nudge(&self) -> Option<Nudge> {
        self.queue.nudge()
    }
    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }
    fn stats(&self) -> QueueStats {
        self.queue.stats()
    }
}

impl Disk for Seen {
    fn len(&self) -> u64 {
        self.disk.len()
    }
    fn block_bytes(&self) -> u32 {
        self.disk.block_bytes()
    }
    fn describe(&self) -> String {
        self.disk.describe()
    }
    fn open_queue(&self, depth: u32) -> io::Result<Box<dyn Queue>> {
        let queue = self.disk.open_queue(depth)?;
        let moments = self.moments.clone();
        Ok(Box::new(SeenQueue { queue, moments }))
    }
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.moments.next();
        self.disk.read_at(at, into)
    }
    fn write_at(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.moments.next();
        self.disk.write_at(at, data)
    }
    fn write_cached(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write_cached(at, data)
    }
    fn read_cached(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.disk.read_cached(at, into)
    }
    fn flush(&self) -> io::Result<()> {
        self.moments.next();
        self.disk.flush()
    }
    fn grow(&self, new_len: u64) -> io::Result<()> {
        self.disk.grow(new_len)
    }
}

/// A store with `k` and `other`, on a disk that counts moments.
struct Scene {
    engine: Arc<Engine>,
    writer: Option<Writer>,
    clock: Arc<ManualClock>,
    disk: MemDisk,
    moments: Moments,
}

impl Scene {
    fn new() -> Self {
        let rig = with_old(8);
        let clock = Arc::new(ManualClock::new(WallTime::from_secs(1_000_000)));
        let mut scene = Self {
            engine: Engine::new(EngineConfig::new(MEMORY, 8), clock.clone()),
            writer: None,
            clock,
            disk: rig.disk.kill(),
            moments: Moments::default(),
        };
        scene.open();
        scene
    }

    fn open(&mut self) {
        let seen = Seen {
            disk: self.disk.clone(),
            moments: self.moments.clone(),
        };
        let writer = self.engine.open_store(Arc::new(seen), options());
        self.writer = Some(writer.unwrap());
        self.settle();
    }

    /// Returns a scene whose store has left and was opened again, and the new writer of the store. This
    /// writer has not run a turn yet.
    fn returning() -> (Self, Writer) {
        let mut scene = Self::new();
        assert!(scene.writer.take().unwrap().close(AT_MOST));
        let disk = Arc::new(scene.disk.clone());
        let writer = scene.engine.open_store(disk, options()).unwrap();
        (scene, writer)
    }

    fn settle(&mut self) {
        let writer = self.writer.as_mut().unwrap();
        for _ in 0..20_000 {
            writer.turn();
            if writer.is_idle() {
                return;
            }
            self.clock.advance(Duration::from_millis(20));
        }
        panic!("the writer does not come to rest: {writer:?}");
    }

    fn grow(&mut self) {
        let bytes = self.disk.len() + 2 * u64::from(SEGMENT + 4096);
        let writer = self.writer.take().unwrap();
        let grown = writer.grow(bytes, AT_MOST);
        grown.result.unwrap();
        self.writer = grown.writer;
        self.settle();
    }

    fn leave_and_return(&mut self) {
        assert!(self.writer.take().unwrap().close(AT_MOST));
        self.open();
    }

    /// Lets the store leave, and then purges everything. The purge must be acknowledged immediately.
    fn purge_all_while_detached(&mut self, soft: bool) {
        assert!(self.writer.take().unwrap().close(AT_MOST));
        let everything = purge(PurgeKind::All, "", soft);
        let purges = self.engine.purges();
        let (_, ticket) = purges.purge_many(&everything, Places::Reserved).unwrap();
        assert_eq!(ticket.outcome(), Some(Durable::Yes));
    }

    /// Returns true if a lookup finds `k`, in memory or on disk.
    fn knows(&self) -> bool {
        !matches!(self.engine.reads().lookup(hash("k"), b"k"), Lookup::Miss)
    }

    /// Returns true if a request gets `k`. A lookup does not show this: an object that a purge of many
    /// objects covers is removed only when it is read.
    fn gives(&self) -> bool {
        match self.engine.reads().lookup(hash("k"), b"k") {
            Lookup::Miss => false,
            Lookup::Memory(_) => true,
            Lookup::Disk(plan) => {
                let mut buf = AlignedBuf::new(plan.len as usize);
                self.disk.read_at(plan.at, &mut buf).unwrap();
                self.engine.reads().finish_read(&plan, b"k", buf).is_ok()
            }
        }
    }
}

/// A function that removes the object `k`, and the text that the object `other` must have afterwards. `None`:
/// the function removes `other` too.
type Removal = (fn(&Engine), Option<&'static str>);

/// Removes `k` at moment `at` of `work`, and checks that `k` stays removed. Returns false if `work` ended
/// before that moment.
fn holds(at: u64, work: fn(&mut Scene), (remove, other): Removal) -> bool {
    let mut scene = Scene::new();
    let acting = Arc::clone(&scene.engine);
    let act = Box::new(move || remove(&acting));
    scene.moments.begin(at, act);
    work(&mut scene);
    if !scene.moments.is_over() {
        return false;
    }
    let finds = match other {
        Some(_) => Scene::knows,
        None => Scene::gives,
    };
    assert!(!finds(&scene), "moment {at}: at once");
    let again = Rig::open(scene.disk.kill(), MEMORY, 9, options());
    let mut again = again.kill();
    again.settle();
    assert_eq!(again.text("k"), None, "moment {at}: after a kill");
    assert_eq!(again.text("other").as_deref(), other, "moment {at}");
    scene.leave_and_return();
    assert!(!finds(&scene), "moment {at}: when all is loaded anew");
    true
}

const REMOVALS: [Removal; 3] = [
    // While the store is detached, the index has no entry of `k`, so the engine must remember the removal.
    (
        |engine| {
            engine.supersede(hash("k"), b"k");
        },
        Some("other"),
    ),
    (|engine| drop(engine.purge(hash("k"), b"k")), Some("other")),
    (
        |engine| {
            let everything = purge(PurgeKind::All, "", false);
            let purged = engine.purges().purge_many(&everything, Places::Reserved);
            drop(purged.unwrap());
        },
        None,
    ),
];

fn at_every_moment(work: fn(&mut Scene)) {
    for remove in REMOVALS {
        let moments = (1..).take_while(|at| holds(*at, work, remove)).count();
        assert!((30..2000).contains(&moments), "{moments}");
    }
}

#[test]
fn a_removal_at_any_moment_of_a_growth_holds() {
    at_every_moment(Scene::grow);
}

#[test]
fn a_removal_at_any_moment_of_leaving_and_returning_holds() {
    at_every_moment(Scene::leave_and_return);
}

/// The inbox of a returning store overflows, and drops removals. In their place, all records that the log then
/// contains are dead at the next start. The end of the return does not make these records live again.
#[test]
fn an_overflow_of_removals_during_a_return_holds() {
    let mut while_loading = 0;
    for turns in 0.. {
        let (mut scene, mut writer) = Scene::returning();
        for _ in 0..turns {
            writer.turn();
            scene.clock.advance(Duration::from_millis(20));
        }
        while_loading += u32::from(writer.is_loading());
        let over = writer.is_idle();
        writer.raise_floor();
        scene.writer = Some(writer);
        scene.settle();
        let mut again = Rig::open(scene.disk.kill(), MEMORY, 9, options());
        again.settle();
        assert_eq!(again.text("other"), None, "after {turns} turns");
        if over {
            assert!(while_loading > 0 && turns > while_loading, "{turns}");
            return;
        }
    }
}

/// During a return, the disk begins to refuse writes to the segments, in each run after a different number of
/// turns. Then the store takes no writes, and records no removals. So its contents are dead at the next
/// start.
#[test]
fn contents_stay_dead_if_the_disk_refuses_writes_during_a_return() {
    let mut lost = 0;
    let segments = geometry(&with_old(8).engine).segment_at(0)..u64::MAX;
    for turns in 0..200 {
        let (scene, mut writer) = Scene::returning();
        for turn in 0..turns {
            if turn + 1 == turns {
                scene.engine.put(object("new", b"1"));
            }
            writer.turn();
            scene.clock.advance(Duration::from_millis(20));
        }
        let refuses = FaultRule::new(OpClass::Write, Fault::Errno(5)).within(segments.clone());
        scene.disk.set_faults(FaultPlan::none().and(refuses));
        for _ in 0..2000 {
            writer.turn();
            scene.clock.advance(Duration::from_millis(20));
        }
        let health = scene.engine.stats().stores[0].health;
        if health != Health::Good {
            lost += 1;
            scene.disk.set_faults(FaultPlan::none());
            let mut again = Rig::open(scene.disk.kill(), MEMORY, 9, options());
            again.settle();
            assert_eq!(again.text("other"), None, "after {turns} turns, {health:?}");
        }
    }
    assert!(lost > 100, "{lost}");
}

/// Purges everything while no store is open to record the purge. Then the store returns, and the process ends
/// at moment `moment` of the return, by a kill or by a `power` cut. The first `refused` writes to the journal
/// of the returning store fail. Returns true if the moment occurred.
fn holds_after(moment: u64, soft: bool, power: bool, refused: u64) -> bool {
    let mut scene = Scene::new();
    scene.purge_all_while_detached(soft);
    let places = geometry(&with_old(8).engine);
    let journal = places.journal_at()..places.removals_at();
    let refuses = FaultRule::new(OpClass::Write, Fault::Errno(5))
        .within(journal)
        .times(refused);
    scene.disk.set_faults(FaultPlan::none().and(refuses));
    let image = Arc::new(Mutex::new(None));
    let (taken, disk) = (Arc::clone(&image), scene.disk.clone());
    let act = move || {
        let left = if power { Keep::Nothing } else { Keep::All };
        *taken.lock() = Some(disk.crash(left));
    };
    scene.moments.begin(moment, Box::new(act));
    scene.open();
    let Some(left) = image.lock().take() else {
        return false;
    };
    let mut again = Rig::open(left, MEMORY, 9, options());
    again.settle();
    let found = again.get("k");
    let is_right = found.is_none_or(|object| soft && object.is_soft_purged());
    assert!(
        is_right,
        "moment {moment}, soft {soft}, power cut {power}, {refused} writes refused"
    );
    true
}

#[test]
fn a_purge_of_many_while_no_store_is_there_holds_when_one_is_back() {
    for soft in [false, true] {
        for power in [false, true] {
            for refused in 0..2 {
                let comes = |moment: &u64| holds_after(*moment, soft, power, refused);
                let moments = (1..).take_while(comes).count();
                assert!((20..2000).contains(&moments), "{moments}");
            }
        }
    }
}
