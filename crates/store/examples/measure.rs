//! Prints rough figures for three steps: writing to a store in a file, restarting it, and reading the
//! objects back.
//!
//! `cargo run --release -p foxy-store --example measure -- PATH [OBJECTS]`

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{Clock, FieldBlock, Rng, SystemClock, key_hash};
use foxy_disk::{AlignedBuf, FileDisk, OpenOptions};
use foxy_store::{
    Admission, Engine, EngineConfig, Lookup, NewObject, ObjectMeta, StoreOptions, Writer,
};

#[global_allocator]
static ALLOCATOR: foxy_disk::Allocator = foxy_disk::Allocator;

const MEMORY: u64 = 256 << 20;

/// Returns the resident bytes of this process, if the system reports them.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

fn memory(engine: &Engine, most: u64) {
    let mib = |bytes: u64| bytes >> 20;
    let stats = engine.stats();
    println!(
        "memory: resident {} MiB (most {}) of {}; tier {} of {} MiB, {} objects; {:?}",
        mib(resident()),
        mib(most),
        mib(stats.memory.budget),
        mib(stats.ram_bytes),
        mib(stats.ram_capacity),
        stats.ram_objects,
        stats.memory
    );
}

/// Measures the average duration of a call that removes a key, and counts the entries that these removals
/// add to the removal log.
fn removals(engine: &Engine, clock: &SystemClock, objects: u64) {
    let keys: Vec<_> = (0..objects.min(10_000))
        .map(|n| key(objects - 1 - n))
        .collect();
    let before = engine.stats().stores[0].counts.removals_logged;
    let start = clock.mono();
    let gone = keys
        .iter()
        .filter(|k| engine.supersede(key_hash(k), k))
        .count();
    let took = clock.mono().since(start);
    let logged = engine.stats().stores[0].counts.removals_logged - before;
    let each = took / keys.len().max(1) as u32;
    println!(
        "superseded {gone} of {}, {logged} logged, {each:?} each",
        keys.len()
    );
}

fn open(path: &str, len: u64, clock: &Arc<SystemClock>) -> Option<(Arc<Engine>, Writer)> {
    let options = OpenOptions {
        create_len: Some(len),
        ..OpenOptions::default()
    };
    let disk = FileDisk::open(path, &options)
        .map_err(|e| eprintln!("{e}"))
        .ok()?;
    let engine = Engine::new(EngineConfig::new(MEMORY, 1), clock.clone());
    let opened = engine.open_store(Arc::new(disk), StoreOptions::default());
    let writer = opened.map_err(|e| eprintln!("{e}")).ok()?;
    Some((engine, writer))
}

fn key(n: u64) -> Bytes {
    Bytes::from(format!(
        "forward GET http://origin{}.example/object/{n}",
        n % 200
    ))
}

fn write(engine: &Arc<Engine>, writer: &mut Writer, objects: u64) -> u64 {
    let mut most = 0;
    let mut rng = Rng::new(1);
    let data = Bytes::from(vec![0x5a; 64 << 10]);
    for n in 0..objects {
        let scale = 8 + rng.below(6);
        let len = 200 + rng.below(1 << scale) as usize;
        let put = |engine: &Arc<Engine>| {
            let new = NewObject {
                hash: key_hash(&key(n)),
                key: key(n),
                group: n % 200,
                meta: ObjectMeta::default(),
                vary: Bytes::new(),
                tags: Bytes::new(),
                fields: FieldBlock::empty(),
                body: data.slice(..len),
            };
            engine.put(new).admitted
        };
        while put(engine) != Admission::Disk {
            let turn = writer.turn();
            writer.park(turn);
        }
        if n % 64 == 0 {
            writer.turn();
        }
        if n % 8192 == 0 {
            most = resident().max(most);
        }
    }
    let ticket = engine.sync();
    while !ticket.is_done() {
        let turn = writer.turn();
        writer.park(turn);
    }
    most
}

fn read_back(engine: &Engine, writer: &Writer, objects: u64) -> (u64, u64) {
    let Some(disk) = engine.fleet().disk(writer.store_id()) else {
        return (0, 0);
    };
    let mut rng = Rng::new(2);
    let (mut hits, mut asked) = (0, 0);
    for _ in 0..20_000 {
        let n = rng.below(objects);
        let key = key(n);
        asked += 1;
        match engine.reads().lookup(key_hash(&key), &key) {
            Lookup::Memory(_) => hits += 1,
            Lookup::Disk(plan) => {
                let mut buf = AlignedBuf::new(plan.len as usize);
                let read = disk.read_at(plan.at, &mut buf);
                hits +=
                    u64::from(read.is_ok() && engine.reads().finish_read(&plan, &key, buf).is_ok());
            }
            Lookup::Miss => {}
        }
    }
    (hits, asked)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let Some(path) = args.next() else {
        return eprintln!("usage: measure PATH [OBJECTS]");
    };
    let objects = args.next().and_then(|n| n.parse().ok()).unwrap_or(300_000);
    let clock = Arc::new(SystemClock::default());
    let Some((engine, mut writer)) = open(&path, 4 << 30, &clock) else {
        return;
    };
    let start = clock.mono();
    let most = write(&engine, &mut writer, objects);
    let took = clock.mono().since(start);
    memory(&engine, most);
    let stats = engine.stats();
    let counts = stats.stores[0].counts;
    let megabytes = counts.cluster_bytes as f64 / 1e6;
    println!(
        "wrote {objects} objects, {megabytes:.0} MB in {took:?}: {:.0} MB/s",
        megabytes / took.as_secs_f64()
    );
    let admitted = stats.counts.put_bytes as f64;
    println!(
        "device bytes per admitted byte {:.3}",
        (counts.cluster_bytes + counts.meta_bytes) as f64 / admitted
    );
    let share = |bytes: u64| bytes as f64 / counts.payload_bytes.max(1) as f64;
    println!(
        "per byte of payload: record headers {:.3}, padding and cluster ends {:.3}, tables {:.3}, segment tails {:.3}, slots {:.3}",
        share(counts.record_bytes - counts.payload_bytes),
        share(counts.cluster_bytes - counts.record_bytes - counts.table_bytes),
        share(counts.table_bytes),
        share(counts.segment_tail_bytes),
        share(counts.meta_bytes)
    );
    println!(
        "mean cluster {} KiB",
        counts.cluster_bytes / counts.clusters.max(1) / 1024
    );
    removals(&engine, &clock, objects);
    drop((engine, writer));

    let start = clock.mono();
    let Some((engine, mut writer)) = open(&path, 4 << 30, &clock) else {
        return;
    };
    println!("open {:?}", clock.mono().since(start));
    while !writer.is_idle() {
        let turn = writer.turn();
        writer.park(turn);
    }
    println!(
        "loaded {} in {:?}",
        engine.stats().disk_objects,
        clock.mono().since(start)
    );
    println!(
        "index {} bytes per object",
        engine.stats().index_bytes / engine.stats().disk_objects.max(1)
    );
    let start = clock.mono();
    let (hits, asked) = read_back(&engine, &writer, objects);
    println!(
        "{hits} hits of {asked}, {:?} each",
        clock.mono().since(start) / 20_000
    );
    let drained = writer.drain(Duration::from_secs(10));
    println!("drained: {drained}");
}
