//! Tests of the production store over the modelled drive.

use foxy_trace::Request;

use super::*;

fn store() -> Store {
    let drive = Drive::named("st118202fc").unwrap();
    Store::new(drive, 4 << 20, 64 << 20, 1).unwrap()
}

fn ask(store: &mut Store, object: u64, version: u32) -> Outcome {
    let request = Request {
        object,
        size: 5_000 + object % 100,
        version,
        server: 3,
        ..Request::default()
    };
    store.request(&request).unwrap()
}

#[test]
fn objects_come_back_from_memory_and_from_disk() {
    let mut store = store();
    for object in 0..4_000 {
        assert_eq!(ask(&mut store, object, 0), Outcome::Miss);
    }
    assert_eq!(ask(&mut store, 3_999, 0), Outcome::RamHit);
    let before = store.now();
    // The objects are requested in an order other than the order of writing. In the order of writing, the
    // drive's read-ahead would already have them.
    let disk = (0..4_000)
        .filter(|n| ask(&mut store, n * 1_237 % 4_000, 0) == Outcome::DiskHit)
        .count();
    assert!(disk > 2_000, "{disk}");
    let each = (store.now() - before).as_millis() / disk as f64;
    assert!((2.0..20.0).contains(&each), "{each} ms");
    assert_eq!(ask(&mut store, 7, 1), Outcome::Modified);
    assert_eq!(ask(&mut store, 7, 1), Outcome::RamHit);
    store.finish().unwrap();
    assert!(store.counters().drive.writes > 10 && store.extras().table_bytes > 0);
}

#[test]
fn idle_time_passes_and_is_used() {
    let mut store = store();
    for object in 0..100 {
        ask(&mut store, object, 0);
    }
    let until = store.now() + SimTime::from_secs(30.0);
    store.idle(until).unwrap();
    assert!(store.now() >= until);
    assert!(
        store.counters().drive.writes > 0,
        "what was put went to disk meanwhile"
    );
}
