//! The origin of this load. It waits for random times before the head and inside bodies, and it sometimes
//! fails. It records the version and the time of each answer.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use foxy_base::Rng;

use super::buffered_conn::{BufferedConn, field};
use super::record::Event;
use super::world::{Resource, World};

/// Listens on a free port. Returns the listener and the port.
pub(super) fn bind() -> io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Handles connections until the process ends.
pub(super) fn serve(listener: TcpListener, world: Arc<World>, seed: u64) {
    let drawn = AtomicU64::new(0);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let number = drawn.fetch_add(1, Ordering::Relaxed);
            let rng = Rng::new(seed ^ number << 20);
            let world = Arc::clone(&world);
            thread::spawn(move || {
                // The proxy may disconnect at any time.
                let _ = connection(stream, &world, rng);
            });
        }
    });
}

fn connection(stream: TcpStream, world: &World, mut rng: Rng) -> io::Result<()> {
    let mut conn = BufferedConn::of(stream)?;
    while let Some(head) = conn.head()? {
        let whole = conn.request_body(&head)?;
        let mut words = head.split(' ');
        let (method, target) = (words.next(), words.next().unwrap_or_default());
        let Some(resource) = world.find(target).filter(|_| whole) else {
            return Ok(());
        };
        let go_on = match method {
            Some(method @ ("GET" | "HEAD")) => OneResponse {
                resource,
                world,
                rng: &mut rng,
            }
            .give(&mut conn, &head, method == "HEAD")?,
            _ => change(&mut conn, resource, world, &mut rng)?,
        };
        if !go_on {
            return Ok(());
        }
    }
    Ok(())
}

/// A random pause, usually short.
fn pause(rng: &mut Rng) {
    let millis = match rng.below(20) {
        0 => rng.below(900),
        1..=5 => rng.below(120),
        6..=10 => rng.below(10),
        _ => return,
    };
    thread::sleep(Duration::from_millis(millis));
}

/// Answers a request that changes the resource. Some requests get a 503 and change nothing. Every other
/// request creates a new version, and a few of these requests get no answer.
fn change(
    conn: &mut BufferedConn,
    resource: &Resource,
    world: &World,
    rng: &mut Rng,
) -> io::Result<bool> {
    pause(rng);
    if rng.below(20) == 0 {
        conn.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")?;
        return Ok(true);
    }
    let version = resource.publish(world);
    pause(rng);
    if rng.below(10) == 0 {
        return Ok(false);
    }
    let head = format!("HTTP/1.1 200 OK\r\nX-Version: {version}\r\nContent-Length: 0\r\n\r\n");
    conn.send(head.as_bytes())?;
    Ok(true)
}

/// The answer to one GET or HEAD request, and the data from which it is made.
struct OneResponse<'a> {
    resource: &'a Resource,
    world: &'a World,
    rng: &'a mut Rng,
}

impl OneResponse<'_> {
    /// Sends the answer. Returns true if the connection can carry another request.
    fn give(&mut self, conn: &mut BufferedConn, head: &str, bodiless: bool) -> io::Result<bool> {
        if self.rng.chance(0.5) {
            pause(self.rng);
        }
        let resource = self.resource;
        // The version of the answer is fixed here, even if the answer arrives much later.
        let version = resource.now();
        let etag = resource.etag(version);
        let length = resource.length(version);
        let mut fields = format!(
            "ETag: {etag}\r\nCache-Control: {}\r\nCache-Tag: t{}\r\n",
            resource.life.control(),
            resource.tag(),
        );
        let known = field(head, "If-None-Match").is_some_and(|tags| tags.contains(&etag));
        let same = field(head, "If-Range").is_none_or(|tag| tag == etag);
        let range = field(head, "Range").filter(|_| same && !bodiless);
        let range = range.and_then(|text| resolve(text, length));
        let failing = self.rng.below(60);
        let (status, span) = match (known, range) {
            _ if failing == 0 => ("503 Busy", (0, 0)),
            (true, _) => ("304 Not Modified", (0, 0)),
            (false, Some((from, to))) => {
                let to = to.min(from.saturating_add(resource.most));
                ("206 Partial Content", (from, to))
            }
            (false, None) => ("200 OK", (0, length)),
        };
        match status.as_bytes()[0..3] {
            [b'5', ..] => fields = "Cache-Control: no-store\r\n".to_owned(),
            [b'2', _, b'6'] => {
                let (from, to) = (span.0, span.1 - 1);
                fields += &format!("Content-Range: bytes {from}-{to}/{length}\r\n");
            }
            _ => {}
        }
        let what = format!("{status} {}-{}", span.0, span.1);
        let at = self.world.time();
        resource.note(Event::Fetched { at, version, what });
        pause(self.rng);
        if failing == 1 {
            return Ok(false);
        }
        let announced = span.1 - span.0;
        if !status.starts_with("304") {
            fields += &format!("Content-Length: {announced}\r\n");
        }
        conn.send(format!("HTTP/1.1 {status}\r\n{fields}\r\n").as_bytes())?;
        if bodiless || announced == 0 {
            return Ok(true);
        }
        let cut = match failing {
            2 => span.0 + self.rng.below(announced),
            _ => span.1,
        };
        self.body(conn, version, (span.0, cut))?;
        Ok(cut == span.1)
    }

    fn body(&mut self, conn: &mut BufferedConn, version: u64, span: (u64, u64)) -> io::Result<()> {
        let mut at = span.0;
        while at < span.1 {
            let end = (at + 20_000 + self.rng.below(200_000)).min(span.1);
            conn.send(&self.resource.bytes(version, at, end))?;
            at = end;
            if self.rng.below(4) == 0 {
                pause(self.rng);
            }
        }
        Ok(())
    }
}

/// Returns the position of the first byte of a range, and the position after its last byte. Returns `None` if
/// `text` is not exactly one range, or if the body has no such bytes.
fn resolve(text: &str, length: u64) -> Option<(u64, u64)> {
    let range = text.strip_prefix("bytes=").filter(|r| !r.contains(','))?;
    let (from, to) = range.split_once('-')?;
    let span = match from.is_empty() {
        true => (length.saturating_sub(to.parse().ok()?), length),
        false => {
            let to = to.parse().map_or(length, |to: u64| (to + 1).min(length));
            (from.parse().ok()?, to)
        }
    };
    (span.0 < span.1).then_some(span)
}
