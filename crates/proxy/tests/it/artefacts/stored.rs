//! Stored artefacts (package files) of mirrors and their digests: parts, many clients, and restarts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use foxy_base::WallTime;
use foxy_proxy::Event;

use super::{
    FILE, INDEX, Registry, download, fails, file, gets, hex, index, renew_index, repr, stores,
};
use crate::common::{Answer, Foxy, NOON, Origin, Stored, until};
use crate::mirrors::{config, get, mirror, start};

#[test]
fn a_wrong_prefix_is_not_completed_again_and_again() {
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
    // No index was fetched yet, so Foxy does not know the digest of the file. The origin truncates the file,
    // and Foxy keeps the bytes that have arrived.
    fails(&foxy, "it is truncated");
    assert_eq!(get(&foxy, INDEX, "").status, 200);
    let part = get(&foxy, FILE, "Range: bytes=90-110\r\n");
    assert!(
        part.body == right || part.body == right[90..=110],
        "bytes of the wrong prefix"
    );
    gets(&foxy, &right, "");
}

#[test]
fn a_crowd_waits_for_one_comparison() {
    // This is the longest file that stays in memory.
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

/// A second process uses the store of the first process. If the first process knew the digest of a stored
/// artefact, the second process also knows it, because the artefact's record on disk contains it.
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

const JSON: &str = "application/vnd.pypi.simple.v1+json";

/// Fetches the index with the configured host name of Foxy, which does not change with a restart (the port of
/// the test's listener does).
fn page(foxy: &Foxy, accept: &str) -> Answer {
    foxy.ask(&format!(
        "GET {INDEX} HTTP/1.1\r\nHost: cache.test:3128\r\nAccept: {accept}\r\n\r\n"
    ))
}

/// The file that a registry sends. The flag is true if the registry answers requests for the index with an
/// error.
type State = Arc<Mutex<(Vec<u8>, bool)>>;

/// A registry whose index has the media type `accept` and at least `length` bytes. The index contains the
/// digest of the file `named`.
fn registry(accept: &'static str, length: usize, named: &[u8], state: &State) -> Origin {
    let (named, state) = (hex(named), Arc::clone(state));
    Origin::start(move |asked| {
        let filler = "x".repeat(length);
        let json = format!(
            "{{\"x\":\"{filler}\",\"files\":[{{\"url\":\"/packages/a.whl\",\"hashes\":{{\"sha256\":\"{named}\"}}}}]}}"
        );
        let html = format!("{filler}<a href=\"/packages/a.whl#sha256={named}\">a</a>");
        let state = state.lock().unwrap();
        match asked.path() {
            "/simple/a/" if state.1 => asked.reply("503 Down", "", ""),
            "/simple/a/" if accept == JSON => {
                asked.reply("200 OK", &format!("Content-Type: {JSON}\r\n"), json);
            }
            "/simple/a/" => asked.reply("200 OK", "Content-Type: text/html\r\n", html),
            _ => asked.reply("200 OK", "", &state.0),
        }
        true
    })
}

/// A second process uses the store of the first process. It knows the digests in a stored document as soon as
/// a client gets the document, even if the document is stale.
#[test]
fn a_restart_keeps_what_stored_documents_name() {
    for (accept, length, fresh) in [
        ("text/html", 0, true),
        ("text/html", 700 << 10, false),
        (JSON, 0, false),
        (JSON, 700 << 10, true),
    ] {
        let right = file(17, 1000);
        let mut wrong = right.clone();
        wrong[500] ^= 1;
        let state = State::new(Mutex::new((wrong, false)));
        let origin = registry(accept, length, &right, &state);
        let started = || config(vec![mirror("pypi", &origin)]);
        let first = Stored::start_as(started(), 4 << 20, 64 << 20, 1);
        let before = page(&first.foxy, accept);
        until(|| page(&first.foxy, accept).cache().contains("hit"));
        first.settle(0);
        let disk = Arc::clone(&first.disk);
        drop(first);
        let again = Stored::on(disk, started(), 4 << 20, 1);
        let foxy = &again.foxy;
        if !fresh {
            foxy.clock.set_wall(WallTime::from_secs(NOON + 3600));
            state.lock().unwrap().1 = true;
        }
        assert!(page(foxy, accept).body == before.body);
        assert_eq!(
            origin.asked(),
            1 + usize::from(!fresh),
            "it is in the store"
        );
        assert!(!download(foxy, FILE).1, "{accept} {length}: another digest");
        foxy.counts(Event::MirrorMismatch, 1);
        state.lock().unwrap().0.clone_from(&right);
        let file = gets(foxy, &right, "fwd=uri-miss");
        assert_eq!(file.field("Repr-Digest"), Some(&repr(&right)[..]));
    }
}
