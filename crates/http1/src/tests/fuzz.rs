//! Seeded mutation fuzzing: valid messages are damaged at random. If the codec still accepts a message, the
//! message must keep the codec's promises. Every failure message contains the seed, with which the run can be
//! repeated.

use foxy_base::Rng;

use crate::fuzzing;

const SEEDS: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\n\r\n",
    b"GET http://user.example:8080/a/b?c=d HTTP/1.1\r\nHost: x\r\nConnection: close, te\r\nTE: trailers\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
    b"PUT /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
    b"OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-a\r\nX-A: 1\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HTTP/1.0 304 Not Modified\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n",
];

/// Texts that matter to parsers.
const WORDS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b"#",
    b"@",
    b"%00",
    b"//",
    b"*",
    b"Host: b\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 6\r\n",
    b"content-length:0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"transfer-encoding: gzip\r\n",
    b"Connection: host\r\n",
    b"HTTP/1.0",
    b"HTTP/1.1",
    b"HTTP/2.0",
    b"\xff",
    b"\x7f",
    b"0x",
    b"+",
    b"-1",
    b"\r\n ",
    b"\r\n\r\n",
];

fn mutate(rng: &mut Rng) -> Vec<u8> {
    let mut text = SEEDS[rng.below(SEEDS.len() as u64) as usize].to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(text.len() as u64 + 1) as usize;
        let end = (at + rng.below(8) as usize).min(text.len());
        let word = WORDS[rng.below(WORDS.len() as u64) as usize];
        match rng.below(6) {
            0 if at < text.len() => text[at] ^= 1 << rng.below(8),
            1 => drop(text.drain(at..end)),
            2 => drop(text.splice(at..end, word.iter().copied())),
            3 => {
                let copy = text[at..end].to_vec();
                drop(text.splice(at..at, copy));
            }
            4 => insert_line(&mut text, word, rng),
            _ => drop(text.splice(at..at, word.iter().copied())),
        }
    }
    text
}

/// Inserts `word` where a field line begins. The codec is most likely to accept this damage.
fn insert_line(text: &mut Vec<u8>, word: &[u8], rng: &mut Rng) {
    let lines: Vec<_> = text
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| *pair == b"\r\n")
        .map(|(at, _)| at + 2)
        .collect();
    if let Some(at) = lines.get(rng.below(lines.len() as u64) as usize) {
        text.splice(*at..*at, word.iter().copied());
    }
}

/// True if the text was accepted as a request or a response.
fn check(text: &[u8]) -> bool {
    let request = fuzzing::request_head(text);
    fuzzing::response_head(text) || request
}

#[test]
fn damaged_messages_are_refused_or_keep_every_promise() {
    let rounds = 400_000u64;
    let mut passed = 0;
    for seed in 0..rounds {
        let text = mutate(&mut Rng::new(seed));
        let outcome = std::panic::catch_unwind(|| check(&text));
        match outcome {
            Ok(ok) => passed += u64::from(ok),
            Err(_) => panic!("seed {seed}: {:?}", String::from_utf8_lossy(&text)),
        }
    }
    // Many texts must be accepted, and many texts must be refused. Otherwise the test would check only one of
    // these two cases.
    assert!(
        (rounds / 20..rounds * 19 / 20).contains(&passed),
        "{passed} of {rounds} passed"
    );
}

#[test]
fn noise_never_panics() {
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let mut text: Vec<u8> = (0..rng.below(60)).map(|_| rng.next_u64() as u8).collect();
        check(&text);
        text.splice(0..0, *b"GET / HTTP/1.1\r\nHost: a\r\n");
        text.extend_from_slice(b"\r\n\r\n");
        check(&text);
        fuzzing::chunked(&text);
    }
}

#[test]
fn damaged_chunks_end_alike_however_they_arrive() {
    let body = b"5;x=y\r\nhello\r\n00a\r\n0123456789\r\n0\r\nX: y\r\nContent-Length: 1\r\n\r\n";
    for seed in 0..100_000 {
        let mut rng = Rng::new(seed);
        let mut text = body.to_vec();
        for _ in 0..=rng.below(3) {
            let at = rng.below(text.len() as u64 + 1) as usize;
            let end = (at + rng.below(3) as usize).min(text.len());
            let word = WORDS[rng.below(WORDS.len() as u64) as usize];
            text.splice(at..end, word.iter().copied());
        }
        let outcome = std::panic::catch_unwind(|| fuzzing::chunked(&text));
        assert!(
            outcome.is_ok(),
            "seed {seed}: {:?}",
            String::from_utf8_lossy(&text)
        );
    }
}
