//! Random faults of every kind at the same time, determined by a seed. No client gets a wrong byte, and no
//! work is left at the end.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::common::{Client, Foxy, Origin, Stored};
use foxy_base::{Rng, hash64};

const SEED: u64 = 0x05ee_d0f0;
const CLIENTS: u64 = 8;
const REQUESTS: u64 = 60;
const PATHS: u64 = 40;

/// Returns the body for a path.
fn body(path: &str) -> Vec<u8> {
    let mut rng = Rng::new(hash64(SEED, path.as_bytes()));
    let largest = [0, 900, 30_000, 700_000][rng.below(4) as usize];
    let len = rng.below(largest + 1) as usize;
    let step = rng.below(250) as usize + 1;
    (0..len).map(|i| (i * step % 251) as u8).collect()
}

/// An origin that fails. The point of failure is chosen at random for each request.
fn origin() -> Origin {
    let drawn = std::sync::atomic::AtomicU64::new(SEED);
    Origin::start(move |asked| {
        let mut rng = Rng::new(drawn.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
        let path = asked.path().to_owned();
        if asked.head.starts_with("POST") && rng.below(3) > 0 {
            let length = asked.field("Content-Length").unwrap().parse().unwrap();
            if asked.client.exactly(length).len() < length {
                return false;
            }
        }
        let whole = body(&path);
        let fields = match hash64(SEED, path.as_bytes()) % 4 {
            0 => "Cache-Control: no-store\r\n",
            1 => "Cache-Control: max-age=60\r\nETag: \"strong\"\r\n",
            2 => "Cache-Control: max-age=0\r\nETag: W/\"weak\"\r\n",
            _ => "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n",
        };
        let text = answer(&mut rng, fields, &whole);
        let end = match rng.below(4) {
            0 => rng.below(text.len() as u64 + 1) as usize,
            _ => text.len(),
        };
        let stop = rng.below(end as u64 + 1) as usize;
        asked.raw(&text[..stop]);
        if rng.below(8) == 0 {
            std::thread::sleep(Duration::from_millis(20));
        }
        asked.raw(&text[stop..end]);
        end == text.len() && rng.below(6) > 0
    })
}

fn answer(rng: &mut Rng, fields: &str, whole: &[u8]) -> Vec<u8> {
    let len = whole.len();
    let head = match rng.below(6) {
        0 => {
            let mut text = format!("HTTP/1.1 200 OK\r\n{fields}Transfer-Encoding: chunked\r\n\r\n")
                .into_bytes();
            for piece in whole.chunks(10_000) {
                text.extend(format!("{:x}\r\n", piece.len()).bytes());
                text.extend(piece);
                text.extend(b"\r\n");
            }
            text.extend(b"0\r\n\r\n");
            return text;
        }
        1 => format!(
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n{fields}Content-Length: {len}\r\n\r\n"
        ),
        2 if len > 0 => return b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nxx".to_vec(),
        _ => format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {len}\r\n\r\n"),
    };
    [head.as_bytes(), whole].concat()
}

/// Sends one request and reads until the answer or the connection ends.
fn request(rng: &mut Rng, addr: std::net::SocketAddr, authority: &str) {
    let path = format!("/{}", rng.below(PATHS));
    let language = ["de", "en"][rng.below(2) as usize];
    let fields = format!("Host: x\r\nAccept-Language: {language}\r\n");
    let upload = rng.below(8) == 0;
    let text = if upload {
        let part = "x".repeat(rng.below(5000) as usize);
        format!(
            "POST http://{authority}{path} HTTP/1.1\r\n{fields}Content-Length: 5000\r\n\r\n{part}"
        )
    } else {
        format!("GET http://{authority}{path} HTTP/1.1\r\n{fields}\r\n")
    };
    let sent = match rng.below(8) {
        0 => rng.below(text.len() as u64) as usize,
        _ => text.len(),
    };
    if upload || sent < text.len() || rng.below(3) == 0 {
        return abort(rng, addr, &text.as_bytes()[..sent]);
    }
    let mut client = Client::to(addr);
    client.send(&text);
    if rng.below(4) == 0 {
        // An error is ignored: this call fails if a reset has already ended the connection.
        let _ = client.stream.shutdown(Shutdown::Write);
    }
    let answer = client.answer();
    let until_close =
        answer.field("Content-Length").is_none() && answer.field("Transfer-Encoding").is_none();
    if answer.status == 200 && answer.whole && !until_close {
        assert!(answer.body == body(&path), "{path}: {}", answer.head);
    }
}

/// Sends a request, reads little or nothing, and disconnects, sometimes with a reset.
fn abort(rng: &mut Rng, addr: std::net::SocketAddr, text: &[u8]) {
    let mut stream = TcpStream::connect(addr).unwrap();
    let _ = stream.write_all(text);
    if rng.below(2) == 0 {
        stream
            .set_read_timeout(Some(Duration::from_millis(30)))
            .unwrap();
        let mut some = vec![0; rng.below(100_000) as usize + 1];
        let _ = stream.read(&mut some);
    }
}

fn chaos(foxy: &Foxy) {
    let origin = origin();
    let authority = origin.authority();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (addr, authority) = (foxy.addr, authority.clone());
            scope.spawn(move || {
                let mut rng = Rng::new(SEED ^ client << 32);
                for _ in 0..REQUESTS {
                    request(&mut rng, addr, &authority);
                }
            });
        }
    });
    let left = || {
        let proxy = &foxy.proxy;
        [
            proxy.connections(),
            proxy.fills(),
            proxy.followers(),
            proxy.fill_bytes(),
        ]
    };
    let mut tries = 2000;
    while left() != [0; 4] {
        tries -= 1;
        assert!(
            tries > 0,
            "left behind (connections, fills, followers, bytes): {:?}",
            left()
        );
        std::thread::sleep(Duration::from_millis(25));
    }
    assert!(origin.asked() > 100);
}

#[test]
fn nothing_is_left_behind_without_a_store() {
    chaos(&Foxy::start(
        foxy_proxy::Role::Forward,
        foxy_proxy::Config::default(),
        2,
    ));
}

#[test]
fn nothing_is_left_behind_with_a_store() {
    let stored = Stored::start(4 << 20, 32 << 20, 2);
    chaos(&stored.foxy);
    stored.settle(0);
}
