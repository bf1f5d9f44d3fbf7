//! Tests of the check of one answer: correct answers are accepted, and each kind of wrong answer is reported
//! as the correct fault.

use super::*;

const MODE: Mode = Mode::Forward { port: 80 };
const SPEC: RequestSpec = RequestSpec {
    server: 1,
    id: 7,
    size: 300,
    version: 2,
    no_store: false,
};

fn body(version: u32, size: u64) -> Vec<u8> {
    let mut body = vec![0; size as usize];
    Identity {
        host: b"127.1.0.1",
        id: 7,
        version,
        size,
    }
    .key()
    .fill(0, &mut body);
    body
}

fn answer(framing: &str, version: u32, size: u64) -> Vec<u8> {
    format!(
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n{framing}\
         Bench-Object: 127.1.0.1 7 {version} {size}\r\nCache-Status: Foxy; hit\r\n\r\n"
    )
    .into_bytes()
}

/// Passes `bytes` to a new exchange, `step` bytes at a time. Unused bytes are passed again, as from the
/// buffer of a socket.
fn receive(bytes: &[u8], step: usize, versions: RangeInclusive<u32>, full: bool) -> Fed {
    let mut exchange = Exchange::new(Expect {
        spec: SPEC,
        versions,
        full,
    });
    let (mut from, mut to) = (0, 0);
    while to < bytes.len() {
        to = bytes.len().min(to + step);
        match exchange.feed(&MODE, &bytes[from..to]) {
            Fed::More(n) => from += n,
            Fed::Done(n, done) => return Fed::Done(from + n, done),
            wrong @ Fed::Wrong(..) => return wrong,
        }
    }
    exchange.end()
}

fn fault(bytes: &[u8], versions: RangeInclusive<u32>) -> Fault {
    match receive(bytes, 50, versions, true) {
        Fed::Wrong(fault, _) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn right_answers_pass_in_any_pieces_and_framing() {
    let mut plain = answer("Content-Length: 300\r\n", 2, 300);
    plain.extend(body(2, 300));
    let mut chunked = answer("Transfer-Encoding: chunked\r\n", 2, 300);
    let all = body(2, 300);
    for (size, piece) in [("64", &all[..100]), ("c8", &all[100..])] {
        chunked.extend(format!("{size}\r\n").bytes().chain(piece.iter().copied()));
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let mut until_close = answer("", 2, 300);
    until_close.extend(body(2, 300));
    for text in [plain, chunked, until_close] {
        for step in [1, 7, 100, 10_000] {
            match receive(&text, step, 2..=2, true) {
                Fed::Done(_, done) => {
                    assert_eq!(
                        (done.served, done.version, done.body),
                        (Served::Hit, 2, 300)
                    );
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn every_kind_of_lie_has_its_name() {
    let with = |framing: &str, version, size, body: &[u8]| {
        [&answer(framing, version, size)[..], body].concat()
    };
    let length = "Content-Length: 300\r\n";
    let good = body(2, 300);
    assert_eq!(
        fault(&with(length, 2, 300, &good[..299]), 2..=2),
        Fault::Cut
    );
    assert_eq!(fault(&with("", 2, 300, &good[..299]), 2..=2), Fault::Cut);
    assert_eq!(
        fault(&with(length, 2, 300, &body(1, 300)), 2..=2),
        Fault::Bytes
    );
    assert_eq!(
        fault(&with(length, 1, 300, &body(1, 300)), 2..=3),
        Fault::Superseded
    );
    assert_eq!(
        fault(&with(length, 4, 300, &body(4, 300)), 2..=3),
        Fault::Identity
    );
    assert_eq!(
        fault(&with(length, 2, 299, &body(2, 299)), 2..=2),
        Fault::Identity
    );
    assert_eq!(
        fault(&with("Content-Length: 200\r\n", 2, 300, &good), 2..=2),
        Fault::Length
    );
    assert_eq!(
        fault(&with("", 2, 300, &[&good[..], b"x"].concat()), 2..=2),
        Fault::Length
    );
    let chunked = "Transfer-Encoding: chunked\r\n";
    assert_eq!(
        fault(&with(chunked, 2, 300, b"zz\r\n"), 2..=2),
        Fault::Framing
    );
    assert_eq!(
        fault(&with(chunked, 2, 300, b"0\r\n\r\n"), 2..=2),
        Fault::Length
    );
    assert_eq!(
        fault(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 2..=2),
        Fault::Status
    );
    assert_eq!(
        fault(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 2..=2),
        Fault::Identity
    );
    assert_eq!(fault(b"garbage\r\n\r\n", 2..=2), Fault::Head);
}

#[test]
fn unchecked_bodies_may_be_skipped() {
    let mut exchange = Exchange::new(Expect {
        spec: SPEC,
        versions: 2..=2,
        full: false,
    });
    let head = answer("Content-Length: 300\r\n", 2, 300);
    assert_eq!(exchange.skippable(), 0);
    assert_eq!(exchange.feed(&MODE, &head), Fed::More(head.len()));
    assert_eq!(exchange.skippable(), 300);
    assert_eq!(exchange.skip(299), None);
    assert_eq!(exchange.skip(1).map(|d| d.body), Some(300));
}
