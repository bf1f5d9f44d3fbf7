//! An engine with one store in a file or on a device. The store's writer runs on its own thread. The key and
//! the body of each object follow from the object's number.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::load::cpu;
use bytes::Bytes;
use foxy_base::{Clock, FieldBlock, FieldBlockBuilder, KeyHash, key_hash};
use foxy_disk::{Disk, FileDisk, OpenOptions};
use foxy_store::{
    Admission, Engine, EngineConfig, NewObject, ObjectMeta, StoreCounts, StoreOptions, WakeHandle,
    Writer,
};

/// The engine under measurement.
pub(super) struct Harness {
    pub(super) engine: Arc<Engine>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) clock: Arc<dyn Clock>,
    fields: FieldBlock,
    stock: Bytes,
    stop: Arc<AtomicBool>,
    /// Processor time of the writer's thread in nanoseconds.
    writer_cpu: Arc<AtomicU64>,
    wake: WakeHandle,
    thread: Option<JoinHandle<()>>,
}

/// Parameters of a store for a run.
#[derive(Clone, Debug)]
pub(super) struct StoreParams<'a> {
    pub(super) path: &'a Path,
    /// Size of a new file. `None`: the store is a device or an existing file.
    pub(super) size: Option<u64>,
    pub(super) memory: u64,
    pub(super) options: StoreOptions,
}

/// Opens an engine with its store, but starts no thread. The caller must run the returned writer.
pub(super) fn open(
    params: &StoreParams<'_>,
    clock: &Arc<dyn Clock>,
) -> io::Result<(Arc<Engine>, Writer, Arc<dyn Disk>)> {
    let options = OpenOptions {
        create_len: params.size,
        ..OpenOptions::default()
    };
    let disk =
        FileDisk::open(params.path, &options).map_err(|e| io::Error::other(e.to_string()))?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let engine = Engine::new(EngineConfig::new(params.memory, 1), clock.clone());
    let opened = engine.open_store(disk.clone(), params.options.clone());
    let writer = opened.map_err(|e| io::Error::other(e.to_string()))?;
    Ok((engine, writer, disk))
}

impl Harness {
    /// Opens an engine with its store, and starts the writer's thread.
    pub(super) fn start(params: &StoreParams<'_>, clock: &Arc<dyn Clock>) -> io::Result<Self> {
        let (engine, mut writer, disk) = open(params, clock)?;
        let stop = Arc::new(AtomicBool::new(false));
        let wake = writer.wake_handle();
        let flag = stop.clone();
        let writer_cpu = Arc::new(AtomicU64::new(0));
        let used = writer_cpu.clone();
        let thread = std::thread::Builder::new()
            .name("writer".into())
            .spawn(move || {
                while !flag.load(Ordering::Relaxed) {
                    let turn = writer.turn();
                    let nanos = cpu::of_this_thread().as_nanos() as u64;
                    used.store(nanos, Ordering::Relaxed);
                    writer.park(turn);
                }
                writer.drain(Duration::from_secs(20));
            })?;
        Ok(Self {
            engine,
            disk,
            clock: clock.clone(),
            fields: usual_fields(),
            stock: stock(),
            stop,
            writer_cpu,
            wake,
            thread: Some(thread),
        })
    }

    /// Stores object `number` with a body of `bytes` bytes. While the writer's queue is full, this function
    /// sleeps and tries again. During one sleep the writer takes only a few megabytes from its queue, so the
    /// queue never becomes empty. While this function sleeps, the engine can use all processors.
    pub(super) fn put(&self, number: u64, bytes: usize) {
        self.put_in(group(number), number, bytes);
    }

    /// As [`put`](Self::put), but stores the object together with the other objects of `group`.
    pub(super) fn put_in(&self, group: u64, number: u64, bytes: usize) {
        while self.try_put_in(group, number, bytes) != Admission::Disk {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Processor time of the writer's thread so far.
    pub(super) fn writer_cpu(&self) -> Duration {
        Duration::from_nanos(self.writer_cpu.load(Ordering::Relaxed))
    }

    /// Stores object `number` if the writer's queue has space.
    pub(super) fn try_put(&self, number: u64, bytes: usize) -> Admission {
        self.try_put_in(group(number), number, bytes)
    }

    fn try_put_in(&self, group: u64, number: u64, bytes: usize) -> Admission {
        let body = body(&self.stock, number, bytes);
        let new = NewObject {
            group,
            ..object(number, body, self.fields.clone())
        };
        self.engine.put(new).admitted
    }

    /// Waits until everything that was stored before this call is durable.
    pub(super) fn sync(&self) {
        let ticket = self.engine.sync();
        while !ticket.is_done() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Counters of the store.
    pub(super) fn counts(&self) -> StoreCounts {
        let stats = self.engine.stats();
        stats.stores.first().map(|s| s.counts).unwrap_or_default()
    }

    /// Bytes of the segments that contain data.
    pub(super) fn used_bytes(&self) -> u64 {
        let stats = self.engine.stats();
        stats.stores.first().map_or(0, |s| s.used_bytes)
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.wake();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has already printed a message.
            let _ = thread.join();
        }
    }
}

/// Group of an object: sixteen consecutive objects are placed together, unless the caller chooses another
/// group.
const fn group(number: u64) -> u64 {
    number / 16
}

/// Key of object `number`. It has some 50 bytes, like a key of a forward proxy.
pub(super) fn key(number: u64) -> Bytes {
    Bytes::from(format!(
        "forward GET http://origin{}.example/object/{number}",
        number % 200
    ))
}

/// Key of object `number`, and its hash.
pub(super) fn keyed(number: u64) -> (Bytes, KeyHash) {
    let key = key(number);
    let hash = key_hash(&key);
    (key, hash)
}

/// The fields of a typical answer, some 200 bytes.
pub(super) fn usual_fields() -> FieldBlock {
    let mut builder = FieldBlockBuilder::default();
    for (name, value) in [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Cache-Control", "public, max-age=3600"),
        ("ETag", "\"6f1e2d3c4b5a69788796a5b4\""),
        ("Last-Modified", "Fri, 20 Nov 2020 20:20:20 GMT"),
        ("Server", "origin"),
    ] {
        // All names above are valid.
        let _ = builder.push(name.as_bytes(), value.as_bytes());
    }
    builder.finish()
}

/// Random bytes. Each body is a part of them.
pub(super) fn stock() -> Bytes {
    let mut rng = foxy_base::Rng::new(7);
    let words = (0..256 << 10).flat_map(|_| rng.next_u64().to_le_bytes());
    Bytes::from(words.collect::<Vec<u8>>())
}

/// The body of object `number`. Objects with successive numbers have different bodies.
pub(super) fn body(stock: &Bytes, number: u64, bytes: usize) -> Bytes {
    let bytes = bytes.min(stock.len() - 4096);
    let from = (number.wrapping_mul(64) % 4096) as usize;
    stock.slice(from..from + bytes)
}

pub(super) fn object(number: u64, body: Bytes, fields: FieldBlock) -> NewObject {
    let (key, hash) = keyed(number);
    NewObject {
        key,
        hash,
        group: group(number),
        meta: ObjectMeta::default(),
        vary: Bytes::new(),
        tags: Bytes::new(),
        fields,
        body,
    }
}
