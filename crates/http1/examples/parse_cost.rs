//! Prints the cost of the codec per message, for comparisons before and after a change:
//! `cargo run --release -p foxy-http1 --example parse_cost`. It is not a test and checks nothing.

use std::hint::black_box;

use foxy_base::{Clock, SystemClock, WallTime};
use foxy_http1::{
    BodyFraming, BodyReader, BodyStep, DateCache, FieldSlots, HeadScanner, Limits, RequestHead,
    ResponseHead, Scheme, write,
};

const REQUEST: &[u8] = b"GET http://www.example.com/images/logo.png?v=12 HTTP/1.1\r\n\
    Host: www.example.com\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n\
    Accept: image/avif,image/webp,*/*;q=0.8\r\nAccept-Encoding: gzip, deflate, br\r\n\
    Connection: keep-alive\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
    Server: x\r\nContent-Type: image/png\r\nContent-Length: 4096\r\n\
    Cache-Control: max-age=3600\r\nETag: \"0123456789abcdef\"\r\n\
    Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\nConnection: keep-alive\r\n\r\n";

fn main() {
    let limits = Limits::default();
    let (mut scanner, mut slots) = (HeadScanner::new(), FieldSlots::new());
    let mut out = Vec::with_capacity(4096);
    report("request head, parsed", || {
        let head = RequestHead::parse(black_box(REQUEST), &mut scanner, &mut slots, &limits);
        black_box(head.is_ok());
    });
    report("request head, parsed, URL written", || {
        out.clear();
        let head = RequestHead::parse(black_box(REQUEST), &mut scanner, &mut slots, &limits);
        if let Ok(Some(url)) = head.map(|head| head.and_then(|head| head.url(Scheme::Http))) {
            url.write_normalised(&mut out);
        }
        black_box(&out);
    });
    report("response head, parsed, fields forwarded", || {
        out.clear();
        let head = ResponseHead::parse(black_box(RESPONSE), &mut scanner, &mut slots, &limits);
        if let Ok(Some(head)) = head {
            write::fields(&mut out, head.forward_fields());
        }
        black_box(&out);
    });
    let mut date = DateCache::new();
    report("status line and date, written", || {
        out.clear();
        write::status_line(&mut out, 200);
        write::field(&mut out, b"Date", date.get(WallTime::from_secs(1)));
        black_box(&out);
    });
    let mut body = b"1000\r\n".to_vec();
    body.resize(body.len() + 4096, b'x');
    body.extend_from_slice(b"\r\n0\r\n\r\n");
    report("chunked body of one 4 KiB chunk, decoded", || {
        black_box(decode(black_box(&body), &limits));
    });
}

fn decode(mut input: &[u8], limits: &Limits) -> usize {
    let mut reader = BodyReader::new(BodyFraming::Chunked, limits);
    let mut total = 0;
    while let Ok(BodyStep::Data { consumed, data }) = reader.step(input) {
        total += data.len();
        input = &input[consumed..];
    }
    total
}

/// Prints the time of the best of ten runs, in nanoseconds per call.
fn report(what: &str, mut call: impl FnMut()) {
    const CALLS: u32 = 100_000;
    let clock = SystemClock::default();
    let mut best = u128::MAX;
    for _ in 0..10 {
        let start = clock.mono();
        (0..CALLS).for_each(|_| call());
        best = best.min(clock.mono().since(start).as_nanos());
    }
    println!("{what}: {:.0} ns", best as f64 / f64::from(CALLS));
}
