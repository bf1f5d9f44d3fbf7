//! The simulated origin. Its pages have versions. It answers conditional requests and range requests, and
//! sometimes it fails.

use std::fmt::Write as _;
use std::rc::Rc;
use std::time::Duration;

use foxy_base::Rng;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::clock;
use super::content::{Made, Tag};
use super::message::{self, Head};
use super::spot::{Part, Spot};
use super::wire::Wire;
use super::world::{Barrier, Cause, User, World};

/// Accepts connections and serves each of them, until the history ends.
pub(super) async fn run(world: Rc<World>, mut wires: UnboundedReceiver<Wire>) {
    while let Some(wire) = wires.recv().await {
        let world = Rc::clone(&world);
        tokio::task::spawn_local(async move {
            let rng = world.fork();
            let mut connection = Connection { world, wire, rng };
            while connection.answer().await.unwrap_or(false) {}
        });
    }
}

struct Connection {
    world: Rc<World>,
    wire: Wire,
    rng: Rng,
}

/// An answer that is not sent yet.
struct Answer {
    head: String,
    body: Vec<u8>,
    /// True if the request was HEAD, or if the status has no body.
    bodiless: bool,
}

impl Connection {
    /// Answers one request. Returns true if another request may follow.
    async fn answer(&mut self) -> Option<bool> {
        let mut buf = Vec::new();
        let head = message::read_head(&self.wire, &mut buf).await?;
        let length = head.number("content-length").unwrap_or(0);
        while (buf.len() as u64) < length {
            let mut part = [0; 4096];
            let n = self.wire.read(&mut part).await.ok().filter(|n| *n > 0)?;
            buf.extend_from_slice(&part[..n]);
        }
        let before = self.pause();
        let after = self.pause();
        sleep(before).await;
        if self.rng.chance(0.05) {
            let hint = "HTTP/1.1 103 Early Hints\r\nLink: </style>; rel=preload\r\n\r\n";
            self.wire.write(hint.as_bytes()).await.ok()?;
        }
        let failing = self.world.profile.network && self.rng.chance(0.08);
        if failing && self.rng.chance(0.5) {
            return self.fail(after).await;
        }
        let answer = self.make(&head)?;
        sleep(after).await;
        self.send(answer, failing).await
    }

    /// Returns the length of a pause. It is mostly short, but sometimes so long that other clients send
    /// requests meanwhile.
    fn pause(&mut self) -> Duration {
        let millis = match self.rng.below(12) {
            0 => self.rng.below(3000),
            1..4 => self.rng.below(300),
            _ => self.rng.below(20),
        };
        Duration::from_millis(millis)
    }

    /// Fails in a random way: sends an error, sends nothing, or closes the connection.
    async fn fail(&mut self, after: Duration) -> Option<bool> {
        sleep(after).await;
        match self.rng.below(3) {
            0 => {
                sleep(Duration::from_secs(60)).await;
                Some(false)
            }
            1 => Some(false),
            _ => {
                let status = ["500 Error", "503 Busy", "504 Late"][self.rng.below(3) as usize];
                let text = format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nerror");
                self.wire.write(text.as_bytes()).await.ok()?;
                Some(true)
            }
        }
    }

    fn make(&mut self, head: &Head) -> Option<Answer> {
        let spot = self.spot(head)?;
        let user = user_of(head);
        let number = head.number("x-request").unwrap_or(0);
        let variant = head.field("x-variant").unwrap_or("none").to_owned();
        let changes = !matches!(&head.method[..], "GET" | "HEAD");
        if changes {
            self.world.publish(spot);
        }
        let version = self.world.version(spot);
        let made = self.world.say(spot, user, &variant, (number, version));
        let text = made.text();
        let trace = &self.world.trace;
        trace.note(&format!("origin {} #{number} {text}", head.method));
        if changes {
            let head = format!(
                "HTTP/1.1 200 OK\r\nX-Made: {text}\r\nDate: {}\r\n",
                clock::date(clock::wall())
            );
            let body = b"done".to_vec();
            return Some(Answer {
                head,
                body,
                bodiless: false,
            });
        }
        Some(self.of_page(head, &made, user))
    }

    /// Returns the spot (partition, page and query) that the request is for. The request must contain the
    /// name of the partition, because two partitions have the same origin.
    fn spot(&self, head: &Head) -> Option<Spot> {
        let named = head.field("x-part");
        let mut parts = Part::ALL.into_iter();
        let part = parts.find(|part| Some(part.name()) == named)?;
        let wrong = |text: &str| self.world.trace.wrong("owner", text);
        if head.field("host") != Some(part.origin()) {
            wrong("a request for another host");
        }
        if part == Part::Users && head.field("authorization").is_some() {
            wrong("a login for Foxy reached the origin");
        }
        Spot::at(part, &head.target)
    }

    fn of_page(&mut self, head: &Head, made: &Made, user: User) -> Answer {
        let page = made.spot.page();
        let mut fields = format!(
            "Date: {}\r\nX-Made: {}\r\n",
            clock::date(clock::wall()),
            made.text()
        );
        if !page.control.is_empty() {
            let _ = write!(fields, "Cache-Control: {}\r\n", page.control);
        }
        fields.push_str(&page.fields.replace("{user}", user.name()));
        let etag = made.etag();
        if let Some(etag) = &etag {
            let _ = write!(fields, "ETag: {etag}\r\n");
        }
        let modified = clock::date(clock::modified(made.version));
        if page.tag == Tag::Modified {
            let _ = write!(fields, "Last-Modified: {modified}\r\n");
        }
        let answer = |status: &str, more: &str, body: Vec<u8>| Answer {
            head: format!("HTTP/1.1 {status}\r\n{fields}{more}"),
            bodiless: head.method == "HEAD" || status.starts_with("304"),
            body,
        };
        let known = head.field("if-none-match");
        let same = known.is_some_and(|known| {
            etag.as_deref()
                .is_some_and(|etag| known.split(", ").any(|one| one == etag))
        });
        // If-Modified-Since is ignored, because pages of different users have the same date.
        if same {
            return answer("304 Not Modified", "", Vec::new());
        }
        let body = made.body();
        let condition = head.field("if-range");
        let may =
            page.tag == Tag::Strong && condition.is_none_or(|tag| Some(tag) == etag.as_deref());
        match head.field("range").filter(|_| may).and_then(message::range) {
            None => answer("200 OK", "", body),
            Some((from, _)) if from >= body.len() as u64 => {
                let more = format!("Content-Range: bytes */{}\r\n", body.len());
                answer("416 Range Not Satisfiable", &more, Vec::new())
            }
            Some((from, to)) => {
                let to = to.min(body.len() as u64 - 1);
                let more = format!("Content-Range: bytes {from}-{to}/{}\r\n", body.len());
                let part = body[from as usize..=to as usize].to_vec();
                answer("206 Partial Content", &more, part)
            }
        }
    }

    /// Sends an answer. If `failing` is true, sends only a part of the answer.
    async fn send(&mut self, answer: Answer, failing: bool) -> Option<bool> {
        let Answer {
            mut head,
            body,
            bodiless,
        } = answer;
        let chunked = !bodiless && self.rng.chance(0.25);
        let last = self.rng.chance(0.1);
        if last {
            head.push_str("Connection: close\r\n");
        }
        match chunked {
            true => head.push_str("Transfer-Encoding: chunked\r\n\r\n"),
            false if head.starts_with("HTTP/1.1 304") => head.push_str("\r\n"),
            false => {
                let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
            }
        }
        let mut text = head.into_bytes();
        match (bodiless, chunked) {
            (true, _) => {}
            (false, false) => text.extend(&body),
            (false, true) => {
                for piece in body.chunks(self.rng.below(9000) as usize + 500) {
                    text.extend(format!("{:x}\r\n", piece.len()).bytes());
                    text.extend(piece);
                    text.extend(b"\r\n");
                }
                text.extend(b"0\r\n\r\n");
            }
        }
        if failing {
            text.truncate(self.rng.below(text.len() as u64) as usize);
        }
        let pauses = self.rng.chance(0.1);
        let middle = if pauses { text.len() / 2 } else { text.len() };
        self.wire.write(&text[..middle]).await.ok()?;
        if pauses {
            sleep(self.pause()).await;
            self.wire.write(&text[middle..]).await.ok()?;
        }
        Some(!failing && !last)
    }
}

fn user_of(head: &Head) -> User {
    let known = |text: &str| {
        super::request::USERS
            .iter()
            .copied()
            .find(|user| *user == text)
    };
    if let Some(user) = head.field("authorization").and_then(known) {
        return User::Login(user);
    }
    let cookie = head.field("cookie").and_then(known);
    cookie.map_or(User::Nobody, User::Cookie)
}

/// Returns the barrier that applies after a client has received the answer to a POST that changes a page: it
/// forbids answers from before the change.
pub(super) fn changed(world: &World, made: &Made) -> Barrier {
    Barrier {
        spot: made.spot,
        cause: Cause::Change,
        serial: made.serial,
        since: world.trace.now(),
        durable: false,
        body: None,
    }
}
