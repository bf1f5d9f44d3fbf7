//! Artefacts (package files) of mirrors, and their digests in index documents. No client gets a complete file
//! whose digest differs from the digest in the documents.

mod archives;
mod crates;
mod faults;
mod stored;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use foxy_base::WallTime;
use foxy_proxy::Event;
use sha2::{Digest as _, Sha256};

use crate::common::{Answer, Asked, Foxy, NOON, Origin, until};
use crate::mirrors::{get, start};

const INDEX: &str = "/pypi/simple/a/";
const FILE: &str = "/pypi/packages/a.whl";

/// Lengths of a file that is stored in memory, and of a file that is stored in fragments.
const SIZES: [usize; 2] = [1000, 600 << 10];

/// Returns a different file for each seed.
fn file(seed: u8, size: usize) -> Vec<u8> {
    (0..size).map(|n| (n % 251) as u8 ^ seed).collect()
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

fn repr(bytes: &[u8]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(Sha256::digest(bytes)))
}

/// A fake registry. The test changes its state while it runs.
struct Registry<S = State>(Arc<Mutex<S>>);

impl<S> Registry<S> {
    fn of(state: S) -> Self {
        Self(Arc::new(Mutex::new(state)))
    }

    fn set(&self, change: impl FnOnce(&mut S)) {
        change(&mut self.0.lock().unwrap());
    }
}

/// State of a registry. Its index contains the digest of the file `named`, but its storage sends the file
/// `sent`.
struct State {
    named: Vec<u8>,
    sent: Vec<u8>,
    /// Fields of answers with the file.
    fields: String,
    /// Number of requests for the file, and number of these requests that have `no-cache`.
    asked: (usize, usize),
}

impl Registry {
    fn new(named: &[u8], sent: &[u8]) -> Self {
        Self::of(State {
            named: named.to_vec(),
            sent: sent.to_vec(),
            fields: "ETag: \"same\"\r\nAccept-Ranges: bytes\r\n".into(),
            asked: (0, 0),
        })
    }

    fn asked(&self) -> (usize, usize) {
        self.0.lock().unwrap().asked
    }

    fn origin(&self) -> Origin {
        let state = Arc::clone(&self.0);
        Origin::start(move |asked| {
            let mut state = state.lock().unwrap();
            if asked.path() == "/simple/a/" {
                index(asked, &hex(&state.named));
                return true;
            }
            assert_eq!(
                asked.field("Range"),
                None,
                "no part can be compared with a digest"
            );
            state.asked.0 += 1;
            state.asked.1 += usize::from(asked.field("Cache-Control") == Some("no-cache"));
            asked.reply("200 OK", &state.fields, &state.sent);
            true
        })
    }
}

fn index(asked: &mut Asked, digest: &str) {
    let port = asked.client.stream.local_addr().unwrap().port();
    let page = format!("<a href=\"http://127.0.0.1:{port}/packages/a.whl#sha256={digest}\">a</a>");
    asked.reply("200 OK", "Content-Type: text/html\r\n", page);
}

/// Requests a file. Returns the received bytes. The flag is true if the status is 200 and the client has
/// received all bytes that the head announced.
fn download(foxy: &Foxy, path: &str) -> (Vec<u8>, bool) {
    let mut client = foxy.connect();
    let host = foxy.addr;
    client.send(format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    ));
    let all = client.to_end();
    let Some(end) = all.windows(4).position(|w| w == b"\r\n\r\n") else {
        return (Vec::new(), false);
    };
    let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
    let body = all[end + 4..].to_vec();
    let said = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let whole = said.is_some_and(|said| said.parse() == Ok(body.len()));
    (body, head.starts_with("http/1.1 200") && whole)
}

/// Checks that a download of the file does not arrive completely.
fn fails(foxy: &Foxy, why: &str) {
    assert!(!download(foxy, FILE).1, "{why}");
}

/// Checks that the client gets these bytes, and that `Cache-Status` contains this word.
fn gets(foxy: &Foxy, expected: &[u8], word: &str) -> Answer {
    let answer = get(foxy, FILE, "");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.body == expected, "{word}: other bytes");
    assert!(answer.cache().contains(word), "{word}: {}", answer.cache());
    answer
}

/// Checks that the file is fetched, and that a later request is a hit.
fn stores(foxy: &Foxy, expected: &[u8]) {
    gets(foxy, expected, "fwd=uri-miss");
    until(|| get(foxy, FILE, "").cache().contains("hit"));
}

/// Checks that a range returns the last bytes of the file.
fn has_tail(foxy: &Foxy, expected: &[u8]) -> Answer {
    let tail = get(foxy, FILE, "Range: bytes=-4\r\n");
    let right = tail.status == 206 && tail.body == expected[expected.len() - 4..];
    assert!(right, "{} {}", tail.status, tail.cache());
    tail
}

/// Lets time pass, and requests the index again.
fn renew_index(foxy: &Foxy, hours: i64) {
    foxy.clock
        .set_wall(WallTime::from_secs(NOON + hours * 3600));
    assert_eq!(get(foxy, INDEX, "").status, 200);
}

#[test]
fn another_digest_reaches_nobody_whole_and_the_next_request_is_right() {
    for size in SIZES {
        let right = file(0, size);
        let mut wrong = right.clone();
        // The wrong byte is in the middle, so all bytes after it are right.
        wrong[size / 2] ^= 1;
        let registry = Registry::new(&right, &wrong);
        let origin = registry.origin();
        let foxy = start("pypi", &origin);
        assert_eq!(get(&foxy, INDEX, "").status, 200);
        fails(&foxy, "one byte is another");
        foxy.counts(Event::MirrorMismatch, 1);
        registry.set(|state| state.sent.clone_from(&right));
        gets(&foxy, &right, "fwd=uri-miss");
        foxy.counts(Event::FillsStored, 2);
        let tail = has_tail(&foxy, &right);
        assert_eq!(tail.field("Repr-Digest"), Some(&repr(&right)[..]));
        assert_eq!(
            registry.asked(),
            (2, 1),
            "caches on the way are passed by once"
        );
        foxy.counts(Event::MirrorMismatch, 1);
    }
}

#[test]
fn a_range_of_an_artefact_that_is_not_stored_brings_the_whole() {
    let (right, wrong) = (file(0, 1 << 20), file(1, 1 << 20));
    let registry = Registry::new(&right, &wrong);
    let origin = registry.origin();
    let foxy = start("pypi", &origin);
    assert_eq!(get(&foxy, INDEX, "").status, 200);
    let mut client = foxy.connect();
    let host = foxy.addr;
    client.send(format!(
        "GET {FILE} HTTP/1.1\r\nHost: {host}\r\nRange: bytes=0-9\r\nConnection: close\r\n\r\n"
    ));
    let _ = client.to_end();
    foxy.counts(Event::MirrorMismatch, 1);
    registry.set(|state| state.sent.clone_from(&right));
    assert!(get(&foxy, FILE, "").body == right);
}

#[test]
fn a_newer_index_invalidates_an_artefact() {
    for size in SIZES {
        let (old, new) = (file(1, size), file(2, size));
        let registry = Registry::new(&old, &old);
        let origin = registry.origin();
        let foxy = start("pypi", &origin);
        assert_eq!(get(&foxy, INDEX, "").status, 200);
        stores(&foxy, &old);
        let answer = gets(&foxy, &old, "hit");
        assert_eq!(answer.field("Repr-Digest"), Some(&repr(&old)[..]));
        // The registry replaces the file. A cache between Foxy and the registry does not have the new file
        // yet.
        registry.set(|state| state.named.clone_from(&new));
        gets(&foxy, &old, "hit");
        renew_index(&foxy, 1);
        fails(&foxy, "the stored file is not the one of the index");
        foxy.counts(Event::MirrorReplaced, 1);
        foxy.counts(Event::MirrorMismatch, 1);
        registry.set(|state| state.sent.clone_from(&new));
        stores(&foxy, &new);
        gets(&foxy, &new, "hit");
        assert_eq!(registry.asked(), (3, 2), "{size}");
    }
}

#[test]
fn what_was_stored_before_its_digest_was_named_is_compared_once() {
    for size in SIZES {
        let (right, wrong) = (file(3, size), file(4, size));
        // A stored file with the right digest needs no request to the registry. So it is served even if the
        // registry is down.
        let registry = Registry::new(&right, &right);
        let origin = registry.origin();
        let foxy = start("pypi", &origin);
        stores(&foxy, &right);
        assert_eq!(get(&foxy, INDEX, "").status, 200);
        for _ in 0..3 {
            gets(&foxy, &right, "hit");
        }
        has_tail(&foxy, &right);
        assert_eq!(registry.asked(), (1, 0), "{size}");
        foxy.counts(Event::MirrorMismatch, 0);
        // A file with a wrong digest is removed, whether the next request is for the complete file or for a
        // range of the file.
        for range in ["", "Range: bytes=0-3\r\n"] {
            let registry = Registry::new(&right, &wrong);
            let origin = registry.origin();
            let foxy = start("pypi", &origin);
            stores(&foxy, &wrong);
            assert_eq!(get(&foxy, INDEX, "").status, 200);
            registry.set(|state| state.sent.clone_from(&right));
            let answer = get(&foxy, FILE, range);
            assert!(answer.body == right, "{size} {range}");
            foxy.counts(Event::MirrorMismatch, 1);
            assert_eq!(registry.asked(), (2, 1), "{size}");
        }
    }
}

#[test]
fn the_index_of_one_package_says_nothing_about_files_of_another() {
    let right = file(12, 2000);
    let (named, sent) = (hex(&right), right.clone());
    let origin = Origin::start(move |asked| {
        match asked.path() {
            "/simple/a/" => index(asked, &named),
            // The publisher of another package has written this document. It contains a wrong digest for a
            // file of the package `a`, so that Foxy would refuse this file.
            "/simple/evil/" => index(asked, &"0".repeat(64)),
            _ => asked.reply("200 OK", "", &sent),
        }
        true
    });
    let foxy = start("pypi", &origin);
    for page in ["/pypi/simple/evil/", INDEX, "/pypi/simple/evil/?again"] {
        assert_eq!(get(&foxy, page, "").status, 200);
        assert!(get(&foxy, FILE, "").body == right, "{page}");
    }
    foxy.counts(Event::MirrorMismatch, 0);
    foxy.counts(Event::MirrorReplaced, 0);
}

#[test]
fn a_digest_of_the_registrys_own_is_checked() {
    let (right, wrong) = (file(5, 5000), file(6, 5000));
    for name in ["Repr-Digest", "Content-Digest"] {
        let registry = Registry::new(&right, &wrong);
        let fields = format!("{name}: md5=:AAAA:, {}\r\n", repr(&right));
        registry.set(|state| state.fields.push_str(&fields));
        let origin = registry.origin();
        let foxy = start("pypi", &origin);
        fails(&foxy, name);
        foxy.counts(Event::MirrorMismatch, 1);
        registry.set(|state| state.sent.clone_from(&right));
        gets(&foxy, &right, "fwd=uri-miss");
    }
    // Only the registry itself sends the index, but files may come from any server. So the digest in the
    // index decides, and not the field `Repr-Digest` that comes with the file.
    let registry = Registry::new(&right, &wrong);
    let fields = format!("Repr-Digest: {}\r\n", repr(&wrong));
    registry.set(|state| state.fields.push_str(&fields));
    let origin = registry.origin();
    let foxy = start("pypi", &origin);
    assert_eq!(get(&foxy, INDEX, "").status, 200);
    fails(&foxy, "the index names another digest");
    registry.set(|state| state.sent.clone_from(&right));
    let answer = gets(&foxy, &right, "fwd=uri-miss");
    assert_eq!(answer.field("Repr-Digest"), Some(&repr(&right)[..]));
}

#[test]
fn a_head_gives_no_digest_to_stored_bytes() {
    let (old, new) = (file(7, 3000), file(8, 3000));
    let registry = Registry::new(&old, &old);
    let origin = registry.origin();
    let foxy = start("pypi", &origin);
    assert_eq!(get(&foxy, INDEX, "").status, 200);
    stores(&foxy, &old);
    registry.set(|state| state.named.clone_from(&new));
    renew_index(&foxy, 1);
    let mut client = foxy.connect();
    client.send(format!(
        "HEAD {FILE} HTTP/1.1\r\nHost: {}\r\n\r\n",
        foxy.addr
    ));
    assert_eq!(client.answer_to("HEAD").status, 200);
    fails(&foxy, "the stored bytes are the old ones");
}

#[test]
fn a_part_that_nobody_asked_for_and_a_short_answer_are_errors() {
    let right = file(9, 40_000);
    let turn = Arc::new(AtomicUsize::new(0));
    let (body, count) = (right.clone(), Arc::clone(&turn));
    let origin = Origin::start(move |asked| {
        if asked.path() == "/simple/a/" {
            index(asked, &hex(&body));
            return true;
        }
        let n = body.len();
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => asked.reply(
                "206 Partial Content",
                &format!("Content-Range: bytes 0-999/{n}\r\n"),
                &body[..1000],
            ),
            1 => asked.reply(
                "206 Partial Content",
                &format!("Content-Range: bytes 0-{}/{n}\r\n", n - 1),
                &body,
            ),
            // The last byte is missing in this answer and in the next answer. Only this answer has
            // Content-Length.
            2 => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n");
                asked.raw([head.as_bytes(), &body[..n - 1]].concat());
                return false;
            }
            3 => {
                asked.raw([b"HTTP/1.1 200 OK\r\n\r\n", &body[..n - 1]].concat());
                return false;
            }
            _ => asked.reply("200 OK", "", &body),
        }
        true
    });
    let foxy = start("pypi", &origin);
    assert_eq!(get(&foxy, INDEX, "").status, 200);
    for case in 0..4 {
        let host = foxy.addr;
        let mut client = foxy.connect();
        let range = if case == 0 {
            "Range: bytes=0-999\r\n"
        } else {
            ""
        };
        client.send(format!(
            "GET {FILE} HTTP/1.1\r\nHost: {host}\r\n{range}Connection: close\r\n\r\n"
        ));
        let all = client.to_end();
        let says = String::from_utf8_lossy(&all);
        assert!(!says.starts_with("HTTP/1.1 206"), "{case}");
        assert!(
            says.starts_with("HTTP/1.1 502") || all.len() < right.len(),
            "{case}: {}",
            all.len()
        );
    }
    gets(&foxy, &right, "fwd=uri-miss");
}

#[test]
fn a_request_that_knows_the_digest_does_not_join_a_fetch_that_does_not() {
    // A long file is stored while it arrives. A short file is only in the memory of its fetch until it is
    // complete.
    for length in [300_000, 3_000] {
        knows_the_digest(length);
    }
}

fn knows_the_digest(length: usize) {
    let (right, wrong) = (file(10, length), file(11, length));
    let (hold, count) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (named, held, turn) = (hex(&right), Arc::clone(&hold), Arc::clone(&count));
    let (first, later) = (wrong.clone(), right.clone());
    let origin = Origin::start(move |asked| {
        if asked.path() == "/simple/a/" {
            index(asked, &named);
            return true;
        }
        if turn.fetch_add(1, Ordering::SeqCst) > 0 {
            asked.reply("200 OK", "", &later);
            return true;
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", first.len());
        asked.raw([head.as_bytes(), &first[..1000]].concat());
        while held.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        asked.raw(&first[1000..]);
        true
    });
    let foxy = start("pypi", &origin);
    std::thread::scope(|scope| {
        let unknowing = scope.spawn(|| download(&foxy, FILE));
        until(|| count.load(Ordering::SeqCst) == 1);
        assert_eq!(get(&foxy, INDEX, "").status, 200);
        gets(&foxy, &right, "fwd");
        hold.store(1, Ordering::SeqCst);
        // The first client sent its request before an index was fetched. At that time no digest was known, so
        // this client gets the wrong file.
        assert!(unknowing.join().unwrap() == (wrong.clone(), true));
    });
    for _ in 0..2 {
        assert!(get(&foxy, FILE, "").body == right);
    }
}
