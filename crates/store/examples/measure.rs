//! Rough figures of a store in a file: writing, restarting, reading back.
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

fn open(path: &str, len: u64, clock: &Arc<SystemClock>) -> Option<(Arc<Engine>, Writer)> {
    let options = OpenOptions {
        create_len: Some(len),
        ..OpenOptions::default()
    };
    let disk = FileDisk::open(path, &options)
        .map_err(|e| eprintln!("{e}"))
        .ok()?;
    let engine = Engine::new(EngineConfig::new(256 << 20, 1), clock.clone());
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

fn write(engine: &Arc<Engine>, writer: &mut Writer, objects: u64) {
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
    }
    let ticket = engine.sync();
    while !ticket.is_done() {
        let turn = writer.turn();
        writer.park(turn);
    }
}

fn read_back(engine: &Engine, writer: &Writer, objects: u64) -> (u64, u64) {
    let Some(disk) = engine.disk(writer.store_id()) else {
        return (0, 0);
    };
    let mut rng = Rng::new(2);
    let (mut hits, mut asked) = (0, 0);
    for _ in 0..20_000 {
        let n = rng.below(objects);
        let key = key(n);
        asked += 1;
        match engine.lookup(key_hash(&key), &key) {
            Lookup::Memory(_) => hits += 1,
            Lookup::Disk(plan) => {
                let mut buf = AlignedBuf::new(plan.len as usize);
                let read = disk.read_at(plan.at, &mut buf);
                hits += u64::from(read.is_ok() && engine.finish_read(&plan, &key, buf).is_ok());
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
    write(&engine, &mut writer, objects);
    let took = clock.mono().since(start);
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
    println!(
        "mean cluster {} KiB",
        counts.cluster_bytes / counts.clusters.max(1) / 1024
    );
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
