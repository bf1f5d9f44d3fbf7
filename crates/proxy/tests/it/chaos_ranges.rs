//! Random ranges, replaced versions, purges and truncated answers at the same time, determined by a seed. All
//! bytes of a complete answer are of one version. The answer to a reload (a request that must reach the
//! origin) is never a version that was replaced before the reload was sent. After a purge, no purged version
//! is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Answer, Asked, Client, Foxy, Origin, Stored};
use foxy_base::Rng;

const SEEDS: [u64; 3] = [1, 2, 3];
const CLIENTS: u64 = 6;
const REQUESTS: u64 = 50;
const FILMS: u64 = 4;
const LEN: u64 = 900_017;

/// Returns the byte at offset `at` of a version of a film (a test object).
fn byte(film: u64, version: u64, at: u64) -> u8 {
    (at.wrapping_mul(31) ^ at >> 9) as u8 ^ (version.wrapping_mul(37) + film * 101) as u8
}

fn bytes(film: u64, version: u64, from: u64, to: u64) -> Vec<u8> {
    (from..to).map(|at| byte(film, version, at)).collect()
}

/// The state of the films, which are the objects of this test. It contains the version that each film has at
/// the origin, and the number of answers that were checked.
#[derive(Default)]
struct Films {
    now: [AtomicU64; FILMS as usize],
    drawn: AtomicU64,
    checked: AtomicU64,
}

impl Films {
    fn serve(&self, seed: u64, asked: &mut Asked) -> bool {
        let mut rng = Rng::new(seed ^ self.drawn.fetch_add(1, Ordering::SeqCst) << 16);
        let film: u64 = asked.path()[1..].parse().unwrap();
        let version = self.now[film as usize].load(Ordering::SeqCst);
        let etag = format!("\"{version}\"");
        let fields =
            format!("Cache-Control: max-age=60\r\nETag: {etag}\r\nX-Version: {version}\r\n");
        if asked.field("If-None-Match") == Some(&etag) {
            asked.raw(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"));
            return true;
        }
        let same = asked.field("If-Range").is_none_or(|tag| tag == etag);
        let range = asked.field("Range").and_then(|r| r.strip_prefix("bytes="));
        let range = range.filter(|_| same && rng.below(8) > 0);
        let (status, from, to) = match range.and_then(resolve) {
            Some((from, to)) => ("206 Partial Content", from, to),
            None => ("200 OK", 0, LEN),
        };
        let part = match range {
            Some(_) if status.starts_with("206") => {
                format!("Content-Range: bytes {from}-{}/{LEN}\r\n", to - 1)
            }
            _ => String::new(),
        };
        let body = bytes(film, version, from, to);
        let end = match rng.below(4) {
            0 => rng.below(body.len() as u64 + 1) as usize,
            _ => body.len(),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\n{fields}{part}Content-Length: {}\r\n\r\n",
            body.len()
        );
        asked.raw(head);
        for piece in body[..end].chunks(100_000) {
            if rng.below(4) == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
            asked.raw(piece);
        }
        end == body.len()
    }
}

fn resolve(range: &str) -> Option<(u64, u64)> {
    let (from, to) = range.split_once('-')?;
    if from.is_empty() {
        return Some((LEN.saturating_sub(to.parse().ok()?), LEN));
    }
    let to = to.parse().map_or(LEN, |to: u64| (to + 1).min(LEN));
    Some((from.parse().ok()?, to)).filter(|(from, to)| from < to)
}

/// Sends one request, and checks its result.
fn request(rng: &mut Rng, foxy: &Foxy, films: &Films, authority: &str) {
    let film = rng.below(FILMS);
    let from = rng.below(LEN);
    let to = (from + 1 + rng.below(300_000)).min(LEN);
    // All versions older than `known` were replaced before the client sends its request.
    let known = films.now[film as usize].load(Ordering::SeqCst);
    let (range, reload) = match rng.below(10) {
        0 => (String::new(), false),
        1 => (String::new(), true),
        2 => (format!("Range: bytes=-{}\r\n", LEN - from), false),
        3 => (format!("Range: bytes={from}-\r\n"), false),
        4 => {
            let back = LEN - 1 - from / 2;
            (
                format!("Range: bytes={}-{},{back}-\r\n", from / 4, from / 4 + 99),
                false,
            )
        }
        _ => (format!("Range: bytes={from}-{}\r\n", to - 1), false),
    };
    let control = if reload {
        "Cache-Control: no-cache\r\n"
    } else {
        ""
    };
    let mut client = Client::to(foxy.addr);
    client.send(format!(
        "GET http://{authority}/{film} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{control}{range}\r\n"
    ));
    if rng.below(6) == 0 {
        let _ = client.exactly(rng.below(60_000) as usize);
        return;
    }
    let answer = client.answer();
    if answer.status == 502 || !answer.whole {
        return;
    }
    let version = check(&answer, film);
    films.checked.fetch_add(1, Ordering::SeqCst);
    assert!(
        !reload || version >= known,
        "a reload gave {version}, older than {known}"
    );
}

/// Checks that all bytes are of the version that the head names.
fn check(answer: &Answer, film: u64) -> u64 {
    let version: u64 = answer.field("X-Version").unwrap().parse().unwrap();
    let right = |from: u64, body: &[u8]| {
        let wrong = (from..)
            .zip(body)
            .find(|(at, b)| byte(film, version, *at) != **b);
        assert!(wrong.is_none(), "film {film}: {wrong:?}: {}", answer.head);
    };
    let kind = answer.field("Content-Type").unwrap_or_default();
    match (answer.status, answer.field("Content-Range")) {
        (200, _) => {
            assert_eq!(answer.body.len() as u64, LEN);
            right(0, &answer.body);
        }
        (206, Some(range)) => right(start_of(range), &answer.body),
        (206, None) => {
            let boundary = kind.split("boundary=").nth(1).unwrap().trim_matches('"');
            parts(&answer.body, boundary, right);
        }
        _ => panic!("{}", answer.head),
    }
    version
}

fn start_of(range: &str) -> u64 {
    let from = range.strip_prefix("bytes ").unwrap().split('-').next();
    from.unwrap().parse().unwrap()
}

fn parts(mut rest: &[u8], boundary: &str, right: impl Fn(u64, &[u8])) {
    let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|w| w == what);
    let line = format!("--{boundary}");
    let mut seen = 0;
    while let Some(at) = find(rest, b"Content-Range: ") {
        let head = String::from_utf8_lossy(&rest[at + 15..(at + 80).min(rest.len())]).into_owned();
        let range = head.split("\r\n").next().unwrap().to_owned();
        let to: u64 = range.split(['-', '/']).nth(1).unwrap().parse().unwrap();
        let start = at + find(&rest[at..], b"\r\n\r\n").unwrap() + 4;
        let length = (to + 1 - start_of(&range)) as usize;
        right(start_of(&range), &rest[start..start + length]);
        rest = &rest[start + length..];
        assert!(
            rest.starts_with(format!("\r\n{line}").as_bytes()),
            "parts do not end"
        );
        seen += 1;
    }
    assert!(seen > 0, "no part");
}

fn chaos(foxy: &Foxy, seed: u64) {
    let films = Arc::new(Films::default());
    let served = Arc::clone(&films);
    let origin = Origin::start(move |asked| served.serve(seed, asked));
    let authority = origin.authority();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (films, authority) = (&films, &authority);
            scope.spawn(move || {
                let mut rng = Rng::new(seed ^ client << 40);
                for _ in 0..REQUESTS {
                    request(&mut rng, foxy, films, authority);
                    if client == 0 && rng.below(6) == 0 {
                        replace(&mut rng, foxy, films, authority);
                    }
                }
            });
        }
    });
    let checked = films.checked.load(Ordering::SeqCst);
    assert!(checked > CLIENTS * REQUESTS / 4, "{checked} answers only");
    let left = || {
        (
            foxy.proxy.connections(),
            foxy.proxy.fills(),
            foxy.proxy.fill_bytes(),
        )
    };
    for _ in 0..2000 {
        if left() == (0, 0, 0) {
            return;
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    panic!("left behind (connections, fills, bytes): {:?}", left());
}

/// Gives a film a new version, and purges the old version. After that, no older version may be sent.
fn replace(rng: &mut Rng, foxy: &Foxy, films: &Films, authority: &str) {
    let film = rng.below(FILMS);
    let version = films.now[film as usize].fetch_add(1, Ordering::SeqCst) + 1;
    let purged = foxy.ask(&format!(
        "PURGE http://{authority}/{film} HTTP/1.1\r\nHost: x\r\n\r\n"
    ));
    assert!(matches!(purged.status, 200 | 404), "{}", purged.head);
    let mut client = Client::to(foxy.addr);
    client.send(format!(
        "GET http://{authority}/{film} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Range: bytes=5-99\r\n\r\n"
    ));
    let answer = client.answer();
    if answer.whole && answer.status != 502 {
        let got = check(&answer, film);
        assert!(
            got >= version,
            "version {got} after {version} was purged for"
        );
    }
}

#[test]
fn parts_are_never_mixed_nor_old_in_memory() {
    for seed in SEEDS {
        chaos(&Foxy::forward(), seed);
    }
}

#[test]
fn parts_are_never_mixed_nor_old_on_a_small_disk() {
    for seed in SEEDS {
        let stored = Stored::start(4 << 20, 32 << 20, 2);
        chaos(&stored.foxy, seed);
        stored.settle(0);
    }
}
