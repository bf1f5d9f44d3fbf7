//! The store on a real file and on real block devices, with the features that the kernel offers: direct I/O
//! and an `io_uring` if possible.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{FieldBlock, SystemClock, key_hash};
use foxy_disk::{AlignedBuf, Disk, FileDisk, OpenOptions};
use foxy_store::{
    Admission, Durable, Engine, EngineConfig, Lookup, NewObject, Object, ObjectMeta, OpenError,
    StoreOptions, Writer,
};

/// The same allocator as in production. The system's allocator would write zeros to all of the index's
/// reserved memory.
#[global_allocator]
static ALLOCATOR: foxy_disk::Allocator = foxy_disk::Allocator;

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

fn get(engine: &Engine, n: u64) -> Option<Arc<Object>> {
    let key = format!("forward GET http://example.com/{n}");
    match engine
        .reads()
        .lookup(key_hash(key.as_bytes()), key.as_bytes())
    {
        Lookup::Memory(object) => Some(object),
        Lookup::Miss => None,
        Lookup::Disk(plan) => {
            let disk = engine.fleet().disk(plan.store).unwrap();
            let blocks = u64::from(disk.block_bytes());
            assert!(plan.at.is_multiple_of(blocks) && u64::from(plan.len).is_multiple_of(blocks));
            let mut buf = AlignedBuf::new(plan.len as usize);
            disk.read_at(plan.at, &mut buf).unwrap();
            engine.reads().finish_read(&plan, key.as_bytes(), buf).ok()
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
    run_until(&mut writer, |w| w.is_idle());
    for n in 0..OBJECTS {
        let object = get(&engine, n).unwrap_or_else(|| panic!("{n} lost"));
        assert_eq!(object.body(), &body(n));
    }
    assert_eq!(engine.stats().counts.disk_hits, OBJECTS);
    assert!(writer.drain(Duration::from_secs(10)));
    drop((engine, writer));

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

/// A loop device over a file; it is removed when this value is dropped.
struct Loop(String);

impl Loop {
    /// Makes a loop device of 32 MiB with blocks of `block` bytes, or returns the reason why that
    /// failed.
    fn new(file: &Path, block: u32) -> Result<Self, String> {
        let made = std::fs::File::create(file).and_then(|file| file.set_len(32 << 20));
        made.map_err(|error| error.to_string())?;
        let block = block.to_string();
        let mut attach = Command::new("losetup");
        attach.args(["-f", "--show", "-b", &block]).arg(file);
        let done = attach
            .output()
            .map_err(|error| format!("losetup: {error}"))?;
        match done.status.success() {
            true => Ok(Self(
                String::from_utf8_lossy(&done.stdout).trim().to_owned(),
            )),
            false => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

/// Makes an engine with a store on each device, in the same way as Foxy does when it starts.
fn open_devices(devices: &[Loop], seed: u64) -> (Arc<Engine>, Vec<Writer>) {
    let disk = |device: &Loop| {
        let opened = FileDisk::open(Path::new(&device.0), &OpenOptions::default());
        Arc::new(opened.unwrap()) as Arc<dyn Disk>
    };
    let disks: Vec<_> = devices.iter().map(disk).collect();
    let sizes: Vec<_> = disks.iter().map(|disk| disk.block_bytes()).collect();
    assert_eq!(sizes, [512, 4096]);
    let config = EngineConfig::new(64 << 20, seed);
    let engine = Engine::new(config, Arc::new(SystemClock::default()));
    let options = StoreOptions::default();
    engine.compare_memberships(&disks, &options).unwrap();
    let open = |disk| engine.open_store(disk, options.clone()).unwrap();
    let mut writers: Vec<_> = disks.into_iter().map(open).collect();
    engine.join(&mut writers).unwrap();
    (engine, writers)
}

fn run_all_until(writers: &mut [Writer], mut done: impl FnMut(&[Writer]) -> bool) {
    for _ in 0..100_000 {
        for writer in &mut *writers {
            let turn = writer.turn();
            writer.park(turn);
        }
        if done(writers) {
            return;
        }
    }
    panic!("not done: {writers:?}");
}

#[test]
fn two_stores_on_devices_with_blocks_of_512_and_4096_bytes_come_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let device = |block: u32| Loop::new(&folder.path().join(block.to_string()), block);
    let devices: Result<Vec<_>, _> = [512, 4096].into_iter().map(device).collect();
    let devices = match devices {
        Ok(devices) => devices,
        Err(why) => {
            // The note bypasses the capture of test output, because readers of the log must see that
            // this was not tested.
            let note = format!("SKIPPED: stores on loop devices: needs root and losetup: {why}\n");
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            return;
        }
    };
    let (engine, mut writers) = open_devices(&devices, 1);
    assert!((0..OBJECTS).all(|n| put(&engine, n) == Admission::Disk));
    let ticket = engine.sync();
    run_all_until(&mut writers, |_| ticket.is_done());
    assert_eq!(ticket.outcome(), Some(Durable::Yes));
    drop((engine, writers));

    let (engine, mut writers) = open_devices(&devices, 2);
    run_all_until(&mut writers, |all| all.iter().all(Writer::is_idle));
    for n in 0..OBJECTS {
        let object = get(&engine, n).unwrap_or_else(|| panic!("{n} lost"));
        assert_eq!(object.body(), &body(n));
    }
    let stats = engine.stats();
    assert_eq!(stats.counts.disk_hits, OBJECTS);
    // The number of entries that each store takes depends on the speed of the machine at that moment.
    let loaded = stats.stores.iter().map(|store| store.counts.loaded);
    assert!(loaded.clone().all(|loaded| loaded > 0), "{stats:?}");
    assert_eq!(loaded.sum::<u64>(), OBJECTS);
}
