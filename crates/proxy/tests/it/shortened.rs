//! Stored answers whose lifetime a 304 has shortened. The lifetime must stay short when the object is read
//! from disk again, and after a restart.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Foxy, Origin, Stored};
use foxy_disk::{Disk, MemDisk};
use foxy_proxy::{Config, Role};
use foxy_store::{Engine, EngineConfig, StoreOptions};

/// An origin whose first answer has a lifetime of one day. A later 304 answer states a lifetime of ten
/// seconds, or no-cache.
fn origin() -> Origin {
    Origin::start(|asked| {
        let validated = asked.field("If-None-Match").is_some();
        let fields = match (validated, asked.path()) {
            (true, "/shorter") => "Cache-Control: max-age=10\r\nETag: \"v1\"\r\n",
            (true, "/no-cache") => "Cache-Control: no-cache\r\nETag: \"v1\"\r\n",
            _ => "Cache-Control: max-age=86400\r\nETag: \"v1\"\r\n",
        };
        if validated {
            asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"));
        } else {
            let n = if asked.path().starts_with("/fill") {
                20_000
            } else {
                100
            };
            asked.reply("200 OK", fields, "x".repeat(n));
        }
        true
    })
}

const PATHS: [&str; 2] = ["/shorter", "/no-cache"];

/// Stores both objects with the long lifetime. Then shortens the lifetime by a reload: a request that makes
/// Foxy validate the object.
fn shortened(stored: &Stored, origin: &Origin) {
    for path in PATHS {
        assert_eq!(stored.foxy.get(origin, path).status, 200);
        // Now the object is on disk with its long lifetime. After the 304, this lifetime must not be used
        // again.
        stored.settle(0);
        let reload = stored
            .foxy
            .get_with(origin, path, "Cache-Control: no-cache\r\n");
        assert!(reload.cache().contains("fwd-status=304"), "{reload:?}");
    }
    stored.settle(0);
}

/// Advances the clock by more than ten seconds. Then neither object may be sent without a request to the
/// origin.
fn check(foxy: &Foxy, origin: &Origin) {
    foxy.clock.advance(Duration::from_secs(11));
    for path in PATHS {
        let asked = origin.asked();
        let answer = foxy.get(origin, path);
        assert_eq!(origin.asked(), asked + 1, "{path}: {answer:?}");
    }
}

#[test]
fn after_eviction_from_memory() {
    let (stored, origin) = (Stored::start(2 << 20, 64 << 20, 1), origin());
    shortened(&stored, &origin);
    for n in 0..150 {
        stored.foxy.get(&origin, &format!("/fill/{n}"));
        stored.settle(400_000);
    }
    let held = stored.foxy.stored(&origin, "/shorter");
    assert!(held.is_none(), "it should have left memory");
    check(&stored.foxy, &origin);
}

#[test]
fn after_a_restart() {
    let (stored, origin) = (Stored::start(2 << 20, 64 << 20, 1), origin());
    shortened(&stored, &origin);
    let (disk, clock) = (stored.disk.clone(), stored.foxy.clock.clone());
    drop(stored);
    let engine = Engine::new(EngineConfig::new(2 << 20, 3), clock.clone());
    let again: Arc<MemDisk> = disk;
    assert!(again.len() > 0);
    let mut writer = engine.open_store(again, StoreOptions::default()).unwrap();
    for _ in 0..1000 {
        writer.turn();
        clock.advance(Duration::from_millis(1));
    }
    let foxy = Foxy::with_engine(Role::Forward, Config::default(), 1, engine, clock);
    check(&foxy, &origin);
    // The log shows that the objects were validated, and not fetched again. So they were not lost.
    let why = foxy.logged();
    assert!(
        why.iter().any(|line| line.starts_with("revalidated")),
        "{why:?}"
    );
}
