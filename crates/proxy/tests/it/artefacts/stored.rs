//! Artefacts that were stored before: parts, crowds, and restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use foxy_proxy::Event;

use super::{FILE, INDEX, Registry, download, fails, file, gets, hex, index, renew_index, stores};
use crate::common::{Origin, Stored};
use crate::mirrors::{config, get, mirror, start};

#[test]
fn a_wrong_beginning_is_not_completed_again_and_again() {
    let right = file(13, 40_000);
    let mut wrong = right.clone();
    wrong[100] ^= 1;
    let turn = Arc::new(AtomicUsize::new(0));
    let (count, whole) = (Arc::clone(&turn), right.clone());
    let origin = Origin::start(move |asked| {
        if asked.path() == "/simple/a/" {
            index(asked, &hex(&whole));
            return true;
        }
        let n = whole.len();
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            let head = format!("HTTP/1.1 200 OK\r\nETag: \"same\"\r\nContent-Length: {n}\r\n\r\n");
            asked.raw([head.as_bytes(), &wrong[..n / 2]].concat());
            return false;
        }
        match asked.field("Range") {
            Some(range) => {
                let from: usize = range[6..range.len() - 1].parse().unwrap();
                let fields = format!(
                    "ETag: \"same\"\r\nContent-Range: bytes {from}-{}/{n}\r\n",
                    n - 1
                );
                asked.reply("206 Partial Content", &fields, &whole[from..]);
            }
            None => asked.reply("200 OK", "ETag: \"same\"\r\n", &whole),
        }
        true
    });
    let foxy = start("pypi", &origin);
    // No index was there yet, so the beginning was kept.
    fails(&foxy, "it breaks off");
    assert_eq!(get(&foxy, INDEX, "").status, 200);
    let part = get(&foxy, FILE, "Range: bytes=90-110\r\n");
    assert!(
        part.body == right || part.body == right[90..=110],
        "bytes of the wrong beginning"
    );
    gets(&foxy, &right, "");
}

#[test]
fn a_crowd_waits_for_one_comparison() {
    // The longest that stays in memory.
    let right = file(14, 2 << 20);
    let registry = Registry::new(&right, &right);
    let origin = registry.origin();
    let foxy = start("pypi", &origin);
    stores(&foxy, &right);
    assert_eq!(get(&foxy, INDEX, "").status, 200);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| assert!(download(&foxy, FILE) == (right.clone(), true)));
        }
    });
    let compared = foxy.proxy.totals().event(Event::MirrorCompared);
    assert!((1..=2).contains(&compared), "{compared}");
    assert_eq!(registry.asked(), (1, 0));
}

/// On a disk, with another process after the first: the digest is in the record.
#[test]
fn a_restart_keeps_digests_of_stored_artefacts() {
    for (size, named_first) in [
        (1000, true),
        (600 << 10, true),
        (1000, false),
        (600 << 10, false),
    ] {
        let (old, new) = (file(15, size), file(16, size));
        let registry = Registry::new(&old, &old);
        let origin = registry.origin();
        let started = || config(vec![mirror("pypi", &origin)]);
        let first = Stored::start_as(started(), 2 << 20, 64 << 20, 1);
        if named_first {
            assert_eq!(get(&first.foxy, INDEX, "").status, 200);
        }
        stores(&first.foxy, &old);
        first.settle(0);
        let disk = Arc::clone(&first.disk);
        drop(first);
        let again = Stored::on(disk, started(), 2 << 20, 1);
        let foxy = &again.foxy;
        // No index was fetched since the start.
        gets(foxy, &old, "hit");
        assert_eq!(get(foxy, INDEX, "").status, 200);
        gets(foxy, &old, "hit");
        let compared = foxy.proxy.totals().event(Event::MirrorCompared);
        assert_eq!(compared, u64::from(!named_first), "{size}");
        registry.set(|state| {
            state.named.clone_from(&new);
            state.sent.clone_from(&new);
        });
        renew_index(foxy, 1);
        gets(foxy, &new, "fwd=uri-miss");
        assert_eq!(registry.asked().0, 2, "{size}");
    }
}
