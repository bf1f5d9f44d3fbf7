//! Purges a tag that very many objects have, and measures three things: the time until the purge is
//! acknowledged, whether it is effective immediately, and whether it is still effective after a SIGKILL at
//! that moment.
//!
//! `cargo run --release -p foxy-store --example purge -- FILE [OBJECTS]` (default: a million objects).

#![expect(clippy::unwrap_used, reason = "a tool that may panic")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use foxy_base::{Clock, FieldBlockBuilder, SystemClock, key_hash};
use foxy_disk::{FileDisk, OpenOptions};
use foxy_store::*;

const BODY: usize = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = arguments.first().expect("name a file for the store");
    let objects: u64 = arguments.get(1).map_or(1_000_000, |n| n.parse().unwrap());
    match arguments.get(2).map(String::as_str) {
        Some("fill") => fill(file, objects),
        _ => run(file, objects),
    }
}

/// Fills a store and purges it in a child process, kills the process when the purge is acknowledged, and
/// checks the store.
fn run(file: &str, objects: u64) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([file, &objects.to_string(), "fill"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let last = lines.by_ref().map(Result::unwrap).find(|line| {
        println!("{line}");
        line.starts_with("acknowledged")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(last.is_some(), "the purge was acknowledged");
    let store = Store::open(file, objects);
    let after = (0..objects).filter(|n| store.has(*n)).count();
    println!("after SIGKILL: {after} of {objects} are there");
    store.stop();
    std::fs::remove_file(file).unwrap();
    assert_eq!(after, 0);
}

fn fill(file: &str, objects: u64) {
    let clock = SystemClock::default();
    let store = Store::open(file, objects);
    for n in 0..objects {
        // Objects are put as fast as the disk takes them, so that none is dropped.
        while store.engine.stats().pending_bytes > 8 << 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        store.put(n);
    }
    let ticket = store.engine.sync();
    while ticket.outcome().is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let on_disk = store.engine.stats().disk_objects;
    let sample = |store: &Store| (0..objects).step_by(997).filter(|n| store.has(*n)).count();
    println!(
        "{on_disk} of {objects} objects are on disk, {} of a sample are hits",
        sample(&store)
    );
    let purge = Purge {
        kind: PurgeKind::Tag,
        text: b"news".to_vec(),
        partition: String::new(),
        soft: false,
    };
    let began = clock.mono();
    let (_, ticket) = store
        .engine
        .purges()
        .purge_many(&purge, Places::Reserved)
        .unwrap();
    let published = clock.mono().since(began);
    while ticket.outcome().is_none() {
        std::thread::sleep(Duration::from_micros(20));
    }
    let took = clock.mono().since(began);
    let hits = sample(&store);
    assert_eq!((ticket.outcome(), hits), (Some(Durable::Yes), 0));
    println!(
        "true for every lookup after {:.3} ms",
        published.as_secs_f64() * 1e3
    );
    println!("acknowledged after {:.3} ms", took.as_secs_f64() * 1e3);
    std::io::stdout().flush().unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

/// A store and a thread that drives it.
struct Store {
    engine: Arc<Engine>,
    disk: Arc<FileDisk>,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Store {
    fn open(file: &str, objects: u64) -> Self {
        let clock = Arc::new(SystemClock::default());
        let engine = Engine::new(EngineConfig::new(256 << 20, 1), clock);
        let options = OpenOptions {
            create_len: Some(objects * 1300 + (256 << 20)),
            ..OpenOptions::default()
        };
        let disk = Arc::new(FileDisk::open(file, &options).unwrap());
        let mut writer = engine
            .open_store(disk.clone(), StoreOptions::default())
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let turn = writer.turn();
                writer.park(turn);
            }
        });
        let store = Self {
            engine,
            disk,
            stop,
            thread,
        };
        while store.engine.stats().stores[0].loading {
            std::thread::sleep(Duration::from_millis(5));
        }
        store
    }

    fn key(n: u64) -> String {
        format!("forward GET http://site-{}.test/articles/{n}", n % 1000)
    }

    fn put(&self, n: u64) {
        let key = Self::key(n);
        let mut fields = FieldBlockBuilder::default();
        fields.push(b"Surrogate-Key", b"front news all").unwrap();
        fields.push(b"Content-Type", b"text/html").unwrap();
        let put = self.engine.put(NewObject {
            hash: key_hash(key.as_bytes()),
            key: key.into(),
            group: n % 1000,
            meta: ObjectMeta {
                purge_sequence: self.engine.purges().purge_sequence(),
                ..ObjectMeta::default()
            },
            vary: Bytes::new(),
            tags: Bytes::new(),
            fields: fields.finish(),
            body: vec![b'x'; BODY].into(),
        });
        assert!(put.admitted.is_visible());
    }

    fn has(&self, n: u64) -> bool {
        use foxy_disk::{AlignedBuf, Disk};
        let key = Self::key(n);
        match self
            .engine
            .reads()
            .lookup(key_hash(key.as_bytes()), key.as_bytes())
        {
            Lookup::Memory(_) => true,
            Lookup::Miss => false,
            Lookup::Disk(plan) => {
                let mut buf = AlignedBuf::new(plan.len as usize);
                self.disk.read_at(plan.at, &mut buf).unwrap();
                self.engine
                    .reads()
                    .finish_read(&plan, key.as_bytes(), buf)
                    .is_ok()
            }
        }
    }

    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}
