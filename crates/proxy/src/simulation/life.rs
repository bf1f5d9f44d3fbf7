//! One life of the process: store, proxy and listener, started on the disk that the last one left.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, Rng};
use foxy_disk::{Disk, FaultPlan, MemDisk};
use foxy_store::{Engine, EngineConfig, OpenError, StoreOptions, Writer};
use tokio::sync::mpsc;
use tokio::task::spawn_local;
use tokio::time::sleep;

use super::world::World;
use crate::conn::{Conn, Door};
use crate::local::Local;
use crate::post::{Post, Posted};
use crate::{Config, FixedNames, NoLog, Proxy, Role, Timeouts, Use, worker};

/// Geometry of the store: many segments and clusters in little data.
const SEGMENT: u32 = 64 << 10;
const SEGMENTS: u64 = 24;

/// An empty disk.
pub(super) fn disk(seed: u64) -> MemDisk {
    MemDisk::new(SEGMENTS * u64::from(SEGMENT + 4096) + (64 << 10), 512, seed)
}

fn options() -> StoreOptions {
    StoreOptions {
        segment_bytes: Some(SEGMENT),
        cluster_bytes: 16 << 10,
        mean_object_bytes: 512,
        buffers: 4,
        buffer_bytes: 4 << 10,
        uuid: Some(*b"simulated store!"),
        ..StoreOptions::default()
    }
}

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
    pub(super) disk: MemDisk,
}

impl Life {
    /// Starts everything on the present `LocalSet`.
    pub(super) fn start(
        world: &Rc<World>,
        disk: &MemDisk,
        clock: &Arc<dyn Clock>,
        rng: &mut Rng,
    ) -> Self {
        let (disk, (engine, writer)) = open(world, disk, clock, rng);
        let names = FixedNames::default().with("origin.sim", &[IpAddr::from([127, 0, 0, 1])]);
        let clock = Arc::clone(clock);
        let proxy = Proxy::new(config(world), engine, clock, Arc::new(names), 1);
        let local = Local::new(Arc::clone(&proxy), 0, Box::new(NoLog));
        spawn_local(worker::sweep(Rc::clone(&local)));
        spawn_local(write(writer, Rng::new(rng.next_u64())));
        let door = Door {
            role: Rc::new(Role::Forward),
            sites: None,
        };
        let post = Post::new(Posted {
            local,
            door,
            tls: None,
            named: false,
        });
        let (sender, mut accepted) = mpsc::unbounded_channel::<(super::wire::Wire, SocketAddr)>();
        *world.door.borrow_mut() = Some(sender);
        let world = Rc::clone(world);
        spawn_local(async move {
            while let Some((wire, peer)) = accepted.recv().await {
                let serving = spawn_local(Box::pin(Conn::new(&post, wire, peer).serve()));
                let world = Rc::clone(&world);
                spawn_local(async move {
                    if serving.await.is_err_and(|error| error.is_panic()) {
                        world
                            .trace
                            .wrong("liveness", "a connection's task has panicked");
                    }
                });
            }
        });
        Self { proxy, disk }
    }

    /// Work that is left, by name; empty when the process rests.
    pub(super) fn left(&self) -> Vec<(&'static str, usize)> {
        let proxy = &self.proxy;
        let memory = Use::ALL.map(|of| (of.name(), proxy.memory_used(of)));
        let work = [("fetches", proxy.fills()), ("followers", proxy.followers())];
        let all = work.into_iter().chain(memory);
        all.filter(|(_, left)| *left > 0).collect()
    }
}

/// The store on this disk. A start that faults prevent is made again without them, as an operator does it;
/// a disk that cannot be opened at all is replaced by an empty one.
fn open(
    world: &World,
    left: &MemDisk,
    clock: &Arc<dyn Clock>,
    rng: &mut Rng,
) -> (MemDisk, (Arc<Engine>, Writer)) {
    let plans = [world.profile.faults(rng), FaultPlan::none()];
    let mut disks = vec![left.kill(), left.kill(), disk(rng.next_u64())];
    let seed = rng.next_u64();
    for (n, disk) in disks.drain(..).enumerate() {
        let disk = disk
            .with_clock(Arc::clone(clock))
            .with_longest_wait(Duration::from_millis(1));
        disk.set_faults(plans[n.min(1)].clone());
        match try_open(world, &disk, clock, seed) {
            Ok(opened) => return (disk, opened),
            Err(error) => world
                .trace
                .note(&format!("the store does not open: {error}")),
        }
    }
    unreachable!("an empty disk opens");
}

fn try_open(
    world: &World,
    disk: &MemDisk,
    clock: &Arc<dyn Clock>,
    seed: u64,
) -> Result<(Arc<Engine>, Writer), OpenError> {
    let config = EngineConfig {
        pending_bytes_max: world.profile.memory / 2,
        ..EngineConfig::new(world.profile.memory, seed)
    };
    let engine = Engine::new(config, Arc::clone(clock));
    let met = [Arc::new(disk.clone()) as Arc<dyn Disk>];
    engine.meet(&met, &options())?;
    let [disk] = met;
    let mut writers = [engine.open_store(disk, options())?];
    engine.join(&mut writers)?;
    let [writer] = writers;
    Ok((engine, writer))
}

/// The writer's thread.
async fn write(mut writer: Writer, mut rng: Rng) {
    loop {
        let turn = writer.turn();
        let wait = match turn.busy {
            true => Duration::from_millis(1),
            false => turn.wait.unwrap_or(Duration::from_millis(100)),
        };
        let late = Duration::from_millis(rng.below(8) + 2);
        sleep(wait.clamp(late, Duration::from_millis(100))).await;
    }
}
