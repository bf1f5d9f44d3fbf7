//! Hits that come from a store's disk.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Foxy, NOON, Origin};
use foxy_base::{ManualClock, WallTime};
use foxy_disk::MemDisk;
use foxy_proxy::{Config, Event, Outcome, Role};
use foxy_store::{Engine, EngineConfig, StoreOptions};

/// Objects asked for: far more bytes than the memory holds.
const OBJECTS: usize = 400;

fn body(path: &str) -> Vec<u8> {
    let n = path.len() * 1000 + 9000;
    path.bytes().cycle().take(n).collect()
}

#[test]
fn what_left_memory_comes_from_disk_byte_for_byte() {
    let clock = Arc::new(ManualClock::new(WallTime::from_secs(NOON)));
    let engine = Engine::new(EngineConfig::new(2 << 20, 3), clock.clone());
    let disk = Arc::new(MemDisk::new(64 << 20, 512, 1));
    let mut writer = engine.open_store(disk, StoreOptions::default()).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, time) = (stop.clone(), clock.clone());
    let thread = std::thread::spawn(move || {
        while !stopped.load(Ordering::SeqCst) {
            writer.turn();
            time.advance(Duration::from_millis(1));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let foxy = Foxy::with_engine(Role::Forward, Config::default(), 2, engine, clock);
    let origin = Origin::start(|asked| {
        let body = body(asked.path());
        asked.reply("200 OK", "Cache-Control: max-age=86400\r\n", body);
        true
    });
    for n in 0..OBJECTS {
        let path = format!("/{n}");
        assert!(foxy.get(&origin, &path).body == body(&path));
        // The writer must keep up: what does not fit into its queue is not stored.
        while foxy.engine.stats().pending_bytes > 400_000 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let misses = origin.asked();
    for n in 0..OBJECTS {
        let path = format!("/{n}");
        assert!(foxy.get(&origin, &path).body == body(&path), "{path}");
    }
    let totals = foxy.proxy.totals();
    let again = origin.asked() - misses;
    assert!(
        again < OBJECTS / 20,
        "{again} of {OBJECTS} were fetched again"
    );
    assert!(
        totals.outcome(Outcome::DiskHit) > OBJECTS as u64 / 2,
        "{totals:?}"
    );
    assert_eq!(totals.event(Event::DiskReadMisses), 0);
    stop.store(true, Ordering::SeqCst);
    thread.join().unwrap();
}
