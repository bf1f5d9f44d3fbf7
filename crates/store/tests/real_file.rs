//! The store on a real file, through whatever the kernel offers: direct I/O and a ring if it can.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{FieldBlock, SystemClock, key_hash};
use foxy_disk::{AlignedBuf, Disk, FileDisk, OpenOptions};
use foxy_store::{
    Admission, Durable, Engine, EngineConfig, Lookup, NewObject, Object, ObjectMeta, OpenError,
    StoreOptions, Writer,
};

/// As in production. The system's would write zeros all over the index's reserved memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const OBJECTS: u64 = 2000;

fn open(path: &Path, seed: u64) -> (Arc<Engine>, Writer) {
    let options = OpenOptions {
        create_len: Some(32 << 20),
        ..OpenOptions::default()
    };
    let disk = Arc::new(FileDisk::open(path, &options).unwrap());
    let engine = Engine::new(
        EngineConfig::new(64 << 20, seed),
        Arc::new(SystemClock::default()),
    );
    let writer = engine.open_store(disk, StoreOptions::default()).unwrap();
    (engine, writer)
}

fn body(n: u64) -> Vec<u8> {
    let len = 100 + (n * 7919) % 9000;
    (0..len).map(|i| (n * 31 + i) as u8).collect()
}

fn put(engine: &Arc<Engine>, n: u64) -> Admission {
    let key = Bytes::from(format!("forward GET http://example.com/{n}"));
    let new = NewObject {
        hash: key_hash(&key),
        key,
        group: n % 20,
        meta: ObjectMeta::default(),
        vary: Bytes::new(),
        tags: Bytes::new(),
        fields: FieldBlock::empty(),
        body: body(n).into(),
    };
    engine.put(new).admitted
}

fn get(engine: &Engine, disk: &dyn Disk, n: u64) -> Option<Arc<Object>> {
    let key = format!("forward GET http://example.com/{n}");
    match engine.lookup(key_hash(key.as_bytes()), key.as_bytes()) {
        Lookup::Memory(object) => Some(object),
        Lookup::Miss => None,
        Lookup::Disk(plan) => {
            let mut buf = AlignedBuf::new(plan.len as usize);
            disk.read_at(plan.at, &mut buf).unwrap();
            engine.finish_read(&plan, key.as_bytes(), buf).ok()
        }
    }
}

fn run_until(writer: &mut Writer, mut done: impl FnMut(&Writer) -> bool) {
    for _ in 0..100_000 {
        let turn = writer.turn();
        if done(writer) {
            return;
        }
        writer.park(turn);
    }
    panic!("not done: {writer:?}");
}

#[test]
fn survives_being_dropped_without_a_drain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let (engine, mut writer) = open(&path, 1);
    assert!((0..OBJECTS).all(|n| put(&engine, n) == Admission::Disk));
    let ticket = engine.sync();
    run_until(&mut writer, |_| ticket.is_done());
    assert_eq!(ticket.outcome(), Some(Durable::Yes));
    drop((engine, writer));

    let (engine, mut writer) = open(&path, 2);
    let disk = engine.disk(writer.store_id()).unwrap();
    run_until(&mut writer, |w| w.is_idle());
    for n in 0..OBJECTS {
        let object = get(&engine, &*disk, n).unwrap_or_else(|| panic!("{n} lost"));
        assert_eq!(object.body(), &body(n));
    }
    assert_eq!(engine.stats().counts.disk_hits, OBJECTS);
    assert!(writer.drain(Duration::from_secs(10)));
    drop((engine, writer, disk));

    let (engine, mut writer) = open(&path, 3);
    run_until(&mut writer, |w| w.is_idle());
    assert_eq!(engine.stats().disk_objects, OBJECTS);
}

#[test]
fn another_programs_file_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = b"these are my notes\n".repeat(1_000_000);
    std::fs::write(&path, &text).unwrap();
    let disk = Arc::new(FileDisk::open(&path, &OpenOptions::default()).unwrap());
    let engine = Engine::new(
        EngineConfig::new(64 << 20, 1),
        Arc::new(SystemClock::default()),
    );
    let error = engine
        .open_store(disk, StoreOptions::default())
        .unwrap_err();
    assert!(matches!(error, OpenError::Foreign { .. }));
    assert!(error.to_string().contains("--force-format"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), text);
}
