//! Ranges of large objects. Only the needed bytes are fetched, in complete fragments, and no byte is fetched
//! twice. The client gets the right bytes even if the origin misbehaves.

mod faults;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Answer, Asked, Foxy, Origin, Stored, until};
use foxy_base::Rng;
use foxy_proxy::Event;

const LEN: u64 = 1_900_017;

/// Returns the byte at offset `at` of this version of the object.
fn byte(version: u8, at: u64) -> u8 {
    ((at * 7 + at / 251) % 253) as u8 ^ version
}

fn bytes(version: u8, from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|at| byte(version, at)).collect()
}

/// The state of the origin: the version of its object, its faults, and the ranges that it has sent.
#[derive(Default)]
struct Media {
    version: Mutex<u8>,
    given: Mutex<Vec<(u64, u64)>>,
    ignores_ranges: AtomicBool,
    length: Mutex<Option<u64>>,
}

impl Media {
    fn given(&self) -> Vec<(u64, u64)> {
        self.given.lock().unwrap().clone()
    }
    fn total(&self) -> u64 {
        self.given().iter().map(|(from, to)| to - from).sum()
    }
    /// Checks that no byte was sent twice.
    fn none_twice(&self) {
        let mut given = self.given();
        given.sort_unstable();
        for pair in given.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{pair:?} of {given:?}");
        }
    }
    fn serve(&self, asked: &mut Asked) -> bool {
        let version = *self.version.lock().unwrap();
        let length = self.length.lock().unwrap().unwrap_or(LEN);
        let etag = format!("\"v{version}\"");
        let fields = format!("Cache-Control: max-age=60\r\nETag: {etag}\r\n");
        let same = asked.field("If-Range").is_none_or(|tag| tag == etag);
        if asked.field("If-None-Match") == Some(&etag) {
            asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"));
            return true;
        }
        let range = asked.field("Range").and_then(|r| r.strip_prefix("bytes="));
        let range = range.filter(|_| same && !self.ignores_ranges.load(Ordering::SeqCst));
        let Some((from, to)) = range.and_then(|range| resolve(range, length)) else {
            self.given.lock().unwrap().push((0, length));
            asked.reply("200 OK", &fields, bytes(version, 0, length));
            return true;
        };
        self.given.lock().unwrap().push((from, to));
        let range = format!(
            "{fields}Content-Range: bytes {from}-{}/{length}\r\n",
            to - 1
        );
        asked.reply("206 Partial Content", &range, bytes(version, from, to));
        true
    }
}

fn resolve(range: &str, length: u64) -> Option<(u64, u64)> {
    let (from, to) = range.split_once('-')?;
    if from.is_empty() {
        return Some((length.saturating_sub(to.parse().ok()?), length));
    }
    let to = to.parse().map_or(length, |to: u64| (to + 1).min(length));
    Some((from.parse().ok()?, to))
}

fn media() -> (Origin, Arc<Media>) {
    let media = Arc::new(Media::default());
    let served = media.clone();
    (Origin::start(move |asked| served.serve(asked)), media)
}

fn range(foxy: &Foxy, origin: &Origin, range: &str) -> Answer {
    foxy.get_with(origin, "/film", &format!("Range: bytes={range}\r\n"))
}

fn check(answer: &Answer, version: u8, from: u64, to: u64) {
    let said = format!("bytes {from}-{}/{LEN}", to - 1);
    assert_eq!(
        answer.field("Content-Range"),
        Some(&*said),
        "{}",
        answer.head
    );
    assert_eq!(answer.status, 206);
    assert!(answer.whole && answer.body == bytes(version, from, to));
}

fn unit(foxy: &Foxy) -> u64 {
    u64::from(foxy.engine.fragment_bytes())
}

#[test]
fn a_range_costs_its_fragments_and_later_ones_what_is_missing() {
    let (foxy, (origin, media)) = (Foxy::forward(), media());
    let unit = unit(&foxy);
    check(
        &range(&foxy, &origin, "1000000-1000099"),
        0,
        1_000_000,
        1_000_100,
    );
    let first = 1_000_000 / unit * unit;
    assert_eq!(media.given(), [(first, first + unit)]);
    // The client has all its bytes before the rest of the fragment has arrived and is stored.
    until(|| {
        let inside = range(&foxy, &origin, "1000050-1000060");
        check(&inside, 0, 1_000_050, 1_000_061);
        inside.cache().contains("hit")
    });
    assert_eq!(origin.asked(), 1);
    // This range includes the stored part, so bytes are missing before and after this part.
    let around = range(
        &foxy,
        &origin,
        &format!("{}-{}", first - 10, first + unit + 9),
    );
    check(&around, 0, first - 10, first + unit + 10);
    assert!(around.cache().contains("fwd=partial"), "{}", around.cache());
    // The first request is for the end of the object. The second request is for the complete object. After
    // the second request, no fragment is missing.
    check(&range(&foxy, &origin, "-5"), 0, LEN - 5, LEN);
    let whole = foxy.get(&origin, "/film");
    assert!(whole.status == 200 && whole.whole && whole.body == bytes(0, 0, LEN));
    media.none_twice();
    assert_eq!(media.total(), LEN);
    let hit = foxy.get(&origin, "/film");
    assert!(hit.cache().contains("hit") && hit.body == bytes(0, 0, LEN));
}

#[test]
fn a_suffix_of_unknown_length_is_asked_for_as_it_is() {
    let (foxy, (origin, media)) = (Foxy::forward(), media());
    check(&range(&foxy, &origin, "-100"), 0, LEN - 100, LEN);
    assert_eq!(media.given(), [(LEN - 100, LEN)]);
    check(&range(&foxy, &origin, "7-9"), 0, 7, 10);
    let past = range(&foxy, &origin, &format!("{LEN}-"));
    assert_eq!((past.status, origin.asked()), (416, 2));
}

#[test]
fn several_ranges_come_as_parts_and_only_their_fragments_are_fetched() {
    let (foxy, (origin, media)) = (Foxy::forward(), media());
    let wanted = [(10u64, 20u64), (1_600_000, 1_600_100), (LEN - 7, LEN)];
    let answer = range(&foxy, &origin, "10-19,1600000-1600099,-7");
    assert_eq!(answer.status, 206);
    let kind = answer.field("Content-Type").unwrap();
    let boundary = kind
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let mut expected = Vec::new();
    for (i, (from, to)) in wanted.iter().enumerate() {
        let line = if i == 0 { "" } else { "\r\n" };
        let text = format!(
            "{line}--{boundary}\r\nContent-Range: bytes {from}-{}/{LEN}\r\n\r\n",
            to - 1
        );
        expected.extend(text.bytes());
        expected.extend(bytes(0, *from, *to));
    }
    expected.extend(format!("\r\n--{boundary}--\r\n").bytes());
    assert!(answer.whole && answer.body == expected);
    media.none_twice();
    assert!(media.total() <= 3 * unit(&foxy));
}

#[test]
fn random_readers_fetch_no_byte_twice_and_see_no_wrong_one() {
    let (foxy, (origin, media)) = (
        Foxy::start(foxy_proxy::Role::Forward, foxy_proxy::Config::default(), 2),
        media(),
    );
    check(&range(&foxy, &origin, "0-0"), 0, 0, 1);
    std::thread::scope(|scope| {
        for reader in 0..6 {
            let (foxy, origin) = (&foxy, &origin);
            scope.spawn(move || {
                let mut rng = Rng::new(0x5eed ^ reader << 8);
                for _ in 0..25 {
                    let from = rng.below(LEN);
                    let to = (from + 1 + rng.below(400_000)).min(LEN);
                    let answer = range(foxy, origin, &format!("{from}-{}", to - 1));
                    check(&answer, 0, from, to);
                }
            });
        }
    });
    media.none_twice();
}

#[test]
fn first_ranges_that_come_together_share_one_fetch() {
    let (foxy, (origin, media)) = (Foxy::forward(), media());
    std::thread::scope(|scope| {
        for reader in 0..8u64 {
            let (foxy, origin) = (&foxy, &origin);
            scope.spawn(move || {
                let from = reader * 1000;
                let answer = range(foxy, origin, &format!("{from}-{}", from + 99));
                check(&answer, 0, from, from + 100);
            });
        }
    });
    media.none_twice();
    assert_eq!(media.total(), unit(&foxy));
}

#[test]
fn fetches_of_missing_fragments_obey_the_limit_of_the_origin() {
    let media = Arc::new(Media::default());
    let (waiting, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let (served, counted) = (Arc::clone(&media), Arc::clone(&most));
    let origin = Origin::start(move |asked| {
        let now = waiting.fetch_add(1, Ordering::SeqCst) + 1;
        counted.fetch_max(now, Ordering::SeqCst);
        // Requests without a limit would all arrive in this time.
        std::thread::sleep(Duration::from_millis(50));
        waiting.fetch_sub(1, Ordering::SeqCst);
        served.serve(asked)
    });
    let mut config = foxy_proxy::Config::default();
    config.upstream.origin_concurrency = 1;
    let foxy = Foxy::start(foxy_proxy::Role::Forward, config, 2);
    check(&range(&foxy, &origin, "0-0"), 0, 0, 1);
    std::thread::scope(|scope| {
        for fragment in 1..6 {
            let (foxy, origin) = (&foxy, &origin);
            let from = fragment * unit(foxy);
            scope.spawn(move || {
                let answer = range(foxy, origin, &format!("{from}-{}", from + 9));
                check(&answer, 0, from, from + 10);
            });
        }
    });
    media.none_twice();
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[test]
fn a_fetch_of_missing_fragments_is_refused_if_the_queue_of_the_origin_is_full() {
    let (media, open) = (Arc::new(Media::default()), Arc::new(AtomicBool::new(false)));
    let (served, opened) = (Arc::clone(&media), Arc::clone(&open));
    let origin = Origin::start(move |asked| {
        if asked.path() == "/held" {
            until(|| opened.load(Ordering::SeqCst));
        }
        served.serve(asked)
    });
    let mut config = foxy_proxy::Config::default();
    (
        config.upstream.origin_concurrency,
        config.upstream.origin_queue,
    ) = (1, 0);
    let foxy = Foxy::start(foxy_proxy::Role::Forward, config, 2);
    check(&range(&foxy, &origin, "0-0"), 0, 0, 1);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| foxy.get(&origin, "/held"));
        until(|| origin.asked() == 2);
        assert_eq!(range(&foxy, &origin, "1600000-1600009").status, 503);
        open.store(true, Ordering::SeqCst);
        assert!(held.join().unwrap().whole);
    });
    let later = range(&foxy, &origin, "1600000-1600009");
    check(&later, 0, 1_600_000, 1_600_010);
}

#[test]
fn another_version_supersedes_the_old_fragments() {
    let (foxy, (origin, media)) = (Foxy::forward(), media());
    check(&range(&foxy, &origin, "0-99"), 0, 0, 100);
    *media.version.lock().unwrap() = 1;
    // The stored part is still fresh. But the origin's answer with the missing bytes shows that the stored
    // part is out of date.
    check(&range(&foxy, &origin, "0-99"), 0, 0, 100);
    let other = range(&foxy, &origin, "1600000-1600099");
    assert_eq!(
        (other.status, other.body.len()),
        (206, 100),
        "{}",
        other.head
    );
    assert!(other.body == bytes(1, 1_600_000, 1_600_100));
    check(&range(&foxy, &origin, "0-99"), 1, 0, 100);
    // The same again, but after the stored part has expired. Foxy validates the object with a range request,
    // and does not fetch it completely.
    let before = media.total();
    foxy.clock.advance(Duration::from_secs(100));
    *media.version.lock().unwrap() = 2;
    check(&range(&foxy, &origin, "0-99"), 2, 0, 100);
    assert!(media.total() - before <= unit(&foxy), "{:?}", media.given());
    check(
        &range(&foxy, &origin, "1600000-1600099"),
        2,
        1_600_000,
        1_600_100,
    );
}

#[test]
fn a_length_that_changes_under_one_tag_is_another_version() {
    let (foxy, (origin, media)) = (Foxy::forward(), media());
    check(&range(&foxy, &origin, "0-99"), 0, 0, 100);
    *media.length.lock().unwrap() = Some(LEN - 1000);
    let other = range(&foxy, &origin, "1600000-1600099");
    let said = format!("bytes 1600000-1600099/{}", LEN - 1000);
    assert_eq!(other.field("Content-Range"), Some(&*said));
    assert!(other.body == bytes(0, 1_600_000, 1_600_100));
}

#[test]
fn an_origin_without_ranges_is_believed() {
    let (foxy, (origin, media)) = (Foxy::forward(), media());
    media.ignores_ranges.store(true, Ordering::SeqCst);
    let whole = range(&foxy, &origin, "5-9");
    assert!(whole.status == 200 && whole.whole && whole.body == bytes(0, 0, LEN));
    check(&range(&foxy, &origin, "5-9"), 0, 5, 10);
    assert_eq!(origin.asked(), 1);
}

#[test]
fn an_origin_that_forgets_about_ranges_is_asked_for_the_whole() {
    let (foxy, (origin, media)) = (Foxy::forward(), media());
    check(&range(&foxy, &origin, "0-9"), 0, 0, 10);
    media.ignores_ranges.store(true, Ordering::SeqCst);
    let whole = range(&foxy, &origin, "1600000-1600009");
    assert!(whole.status == 200 && whole.whole && whole.body == bytes(0, 0, LEN));
}

#[test]
fn late_and_slow_clients_of_a_large_fill_read_back_what_they_missed() {
    let go = Arc::new(AtomicBool::new(false));
    let waits = go.clone();
    let origin = Origin::start(move |asked| {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v0\"\r\n";
        let chunked = asked.path() == "/chunked";
        let framing = match chunked {
            true => "Transfer-Encoding: chunked".to_owned(),
            false => format!("Content-Length: {LEN}"),
        };
        asked.raw(format!("HTTP/1.1 200 OK\r\n{fields}{framing}\r\n\r\n"));
        for from in (0..LEN).step_by(50_000) {
            if from == 1_500_000 {
                while !waits.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            let piece = bytes(0, from, (from + 50_000).min(LEN));
            let size = format!("{:x}\r\n", piece.len());
            if chunked {
                asked.raw(size);
            }
            asked.raw(&piece);
            if chunked {
                asked.raw("\r\n");
            }
        }
        if chunked {
            asked.raw("0\r\n\r\n");
        }
        true
    });
    for path in ["/plain", "/chunked"] {
        go.store(false, Ordering::SeqCst);
        let foxy = Foxy::start(foxy_proxy::Role::Forward, foxy_proxy::Config::default(), 2);
        let before = origin.asked();
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| foxy.get(&origin, path));
            while foxy.proxy.totals().event(Event::OriginBytesIn) < 1
                && foxy.engine.stats().ram_bytes < 1_000_000
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            let late = scope.spawn(|| foxy.get(&origin, path));
            while foxy.proxy.connections() < 2 {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(50));
            go.store(true, Ordering::SeqCst);
            for client in [slow, late] {
                let answer = client.join().unwrap();
                assert!(answer.whole && answer.body == bytes(0, 0, LEN), "{path}");
            }
        });
        assert_eq!(origin.asked() - before, 1, "{path}");
    }
}

#[test]
fn sparse_objects_live_on_disk() {
    let (stored, (origin, media)) = (Stored::start(16 << 20, 64 << 20, 1), media());
    let foxy = &stored.foxy;
    for from in [1_600_000u64, 0, 1_000_000] {
        let answer = range(foxy, &origin, &format!("{from}-{}", from + 99));
        check(&answer, 0, from, from + 100);
    }
    stored.settle(0);
    for from in [0u64, 1_000_000, 1_600_000] {
        let answer = range(foxy, &origin, &format!("{from}-{}", from + 99));
        check(&answer, 0, from, from + 100);
        assert!(answer.cache().contains("hit"), "{}", answer.cache());
    }
    assert_eq!(origin.asked(), 3);
    media.none_twice();
}

/// `Content-Digest` and `Content-MD5` cover all bytes of the origin's message. So they would be wrong for a
/// part. `Repr-Digest` always covers the complete representation.
#[test]
fn digests_of_the_whole_message_are_not_sent_with_a_part() {
    for length in [200, 600 << 10] {
        let body = bytes(0, 0, length);
        let origin = Origin::start(move |asked| {
            let fields = "Cache-Control: max-age=60\r\nContent-Digest: sha-256=:a:\r\nContent-MD5: b\r\nRepr-Digest: sha-256=:a:\r\n";
            asked.reply("200 OK", fields, &body);
            true
        });
        let foxy = Foxy::forward();
        let whole = foxy.get(&origin, "/x");
        foxy.counts(Event::FillsStored, 1);
        let stored = foxy.get(&origin, "/x");
        for answer in [whole, stored] {
            assert_eq!(answer.field("Content-Digest"), Some("sha-256=:a:"));
        }
        let far = format!("bytes={length}-");
        for (range, status) in [
            ("bytes=1-9", 206),
            ("bytes=0-0,5-9,20-29", 206),
            (&far[..], 416),
        ] {
            let part = foxy.get_with(&origin, "/x", &format!("Range: {range}\r\n"));
            let of = [part.field("Content-Digest"), part.field("Content-MD5")];
            assert_eq!(
                (part.status, of),
                (status, [None; 2]),
                "{range} of {length}"
            );
            assert_eq!(part.field("Repr-Digest"), Some("sha-256=:a:"), "{range}");
        }
        assert_eq!(origin.asked(), 1);
    }
}
