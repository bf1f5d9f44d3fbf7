//! Hits that come from a store's disk.

mod common;

use common::{Origin, Stored};
use foxy_proxy::{Event, Outcome};

/// Objects asked for: far more bytes than the memory holds.
const OBJECTS: usize = 400;

fn body(path: &str) -> Vec<u8> {
    let n = path.len() * 1000 + 9000;
    path.bytes().cycle().take(n).collect()
}

#[test]
fn what_left_memory_comes_from_disk_byte_for_byte() {
    let stored = Stored::start(2 << 20, 64 << 20, 2);
    let foxy = &stored.foxy;
    let origin = Origin::start(|asked| {
        let body = body(asked.path());
        asked.reply("200 OK", "Cache-Control: max-age=86400\r\n", body);
        true
    });
    for n in 0..OBJECTS {
        let path = format!("/{n}");
        assert!(foxy.get(&origin, &path).body == body(&path));
        // The writer must keep up: what does not fit into its queue is not stored.
        stored.settle(400_000);
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
}
