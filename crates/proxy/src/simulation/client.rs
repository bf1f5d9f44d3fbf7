//! The simulated clients. Each client has a connection, sends one request after the other, and passes the
//! answers to the oracle, which checks them.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use foxy_base::Rng;
use tokio::time::{sleep, timeout};

use super::content::Made;
use super::message::{Head, ends_with_connection, read_body, read_head};
use super::network::Network;
use super::oracle::{self, Ending};
use super::origin;
use super::pipe::Cut;
use super::request::Asked;
use super::settings;
use super::spot::{Part, Spot};
use super::wire::{Wire, pair};
use super::world::World;
use crate::http::net::Transport as _;

/// Time after which a request without an answer counts as forgotten by Foxy, which is an error.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(150);
/// Longest pause between two requests on one connection, in milliseconds. After a longer pause, a new
/// connection is opened.
const RESTS: u64 = 15_000;
/// Longest body that is read, in bytes.
const MOST: usize = 1 << 20;

/// The bytes of an answer that have arrived.
#[derive(Debug)]
pub(super) struct Got {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    pub(super) whole: bool,
}

struct Connection {
    wire: Wire,
    /// Bytes that were read after the last answer. They belong to the next answer.
    buf: Vec<u8>,
    life: u32,
    worker: usize,
    listener: usize,
    /// Time of the last use, in milliseconds of the history.
    used: u64,
}

pub(super) struct Client {
    world: Rc<World>,
    rng: Rng,
    number: u8,
    connection: Option<Connection>,
    /// The spot (partition, page and query) of the last complete answer to GET, and the entity tag of that
    /// answer.
    known: Option<(Spot, String)>,
}

impl Client {
    pub(super) fn new(world: &Rc<World>, number: u8) -> Self {
        Self {
            rng: world.fork(),
            world: Rc::clone(world),
            number,
            connection: None,
            known: None,
        }
    }

    /// Sends this number of requests.
    pub(super) async fn run(mut self, requests: u32) {
        for _ in 0..requests {
            let pause = match self.rng.below(10) {
                0..4 => self.rng.below(30),
                4..8 => self.rng.below(1500),
                8 => self.rng.below(6000),
                _ => self.rng.below(25_000),
            };
            sleep(Duration::from_millis(pause)).await;
            if self.world.trace.is_wrong() {
                break;
            }
            let spot = self.spot();
            self.world.latest.set(Some(spot));
            let asked = Asked::draw(&self.world, &mut self.rng, spot, self.known.clone());
            self.ask(asked).await;
        }
    }

    /// Chooses the spot (partition, page and query) of the next request. Often this is the spot of the last
    /// request of any client, so that several clients request the same spot at about the same time.
    fn spot(&mut self) -> Spot {
        match self.world.latest.get() {
            Some(spot) if self.rng.chance(0.25) => spot,
            _ => {
                let part = self.part();
                Spot::draw(&self.world.profile, part, &mut self.rng)
            }
        }
    }

    /// Chooses the partition (forward proxy or site) of the next request. A client stays with one listener
    /// for some time.
    fn part(&mut self) -> Part {
        if !self.world.profile.sites {
            return Part::Forward;
        }
        let connection = self.connection.as_ref();
        let listener = connection.map(|one| one.listener);
        match (listener, self.rng.below(8)) {
            (Some(0), 0..6) | (_, 6) => Part::Forward,
            (_, drawn) if drawn % 2 == 0 => Part::Plain,
            _ => Part::Users,
        }
    }

    /// Sends a request, and passes its answer to the oracle.
    async fn ask(&mut self, asked: Asked) {
        if !self.connect(asked.spot.part.listener()) {
            return;
        }
        let worker = self.connection.as_ref().map_or(0, |one| one.worker);
        self.world.note_worker(asked.number, worker);
        let line = format!(
            "client {} asks worker {worker} #{} {}",
            self.number,
            asked.number,
            asked.text()
        );
        self.world.trace.note(&line.replace("\r\n", " "));
        let got = timeout(ANSWER_TIMEOUT, self.exchange(&asked)).await;
        let ending = match got {
            Err(_) => Ending::Forgotten,
            Ok(None) => Ending::Nothing,
            Ok(Some(got)) => Ending::Got(got),
        };
        self.end(&asked, ending);
    }

    fn end(&mut self, asked: &Asked, ending: Ending) {
        oracle::judge(&self.world, asked, &ending);
        let Ending::Got(got) = ending else {
            self.connection = None;
            return;
        };
        let last = asked.rude || !got.whole || got.head.field("connection") == Some("close");
        match &mut self.connection {
            Some(connection) if !last => connection.used = self.world.trace.now(),
            connection => *connection = None,
        }
        let made = got.head.field("x-made").and_then(Made::parse);
        // An answer may arrive after the process that sent it has ended. Such an answer does not count,
        // because the end of the process may have undone the change that the answer reports.
        let counts = got.head.status == 200 && got.whole && !oracle::has_ended(&self.world, asked);
        if let Some(made) = made.filter(|_| counts) {
            if asked.method == "POST" {
                // The POST changes the page with exactly this query. If settings drop queries, later requests
                // get the page without the query, which the POST did not change. So the change counts only if
                // no settings drop the query of this request.
                let eras = self.world.eras.since(asked.started);
                if eras.iter().all(|era| era.effective(made.spot) == made.spot) {
                    self.world.bar(origin::changed(&self.world, &made));
                }
            } else if asked.method == "GET" {
                self.known = made.etag().map(|tag| (asked.spot, tag));
                if oracle::speaks_for_others(asked) {
                    self.world.bar(oracle::seen(&self.world, &made));
                }
            }
        }
    }

    /// Opens a connection to this listener, unless the present connection can be used again. Returns false if
    /// no process accepts the connection.
    fn connect(&mut self, listener: usize) -> bool {
        let (now, life) = (self.world.trace.now(), self.world.life.get());
        // Foxy may close a connection that has been idle for long, and a request on it would get no answer.
        // The oracle demands an answer to each request. So a connection is used again only if its pause was
        // shorter than `RESTS`.
        let good = |one: &Connection| {
            one.life == life && one.listener == listener && now - one.used < RESTS
        };
        if self.connection.as_ref().is_some_and(good) {
            return true;
        }
        let cuts = if self.world.profile.network {
            0.06
        } else {
            0.0
        };
        let profile = self.world.profile;
        let mut manners = [0.0, cuts].map(|cuts| Network::manner(&profile, &mut self.rng, cuts));
        if let Some((_, cut)) = &mut manners[1].cut {
            // A broken network does not end a connection to a client in an orderly way. So a cut is always a
            // reset here.
            *cut = Cut::Reset;
        }
        let own = SocketAddr::from(([127, 0, 0, self.number + 10], 5000));
        let foxy = settings::address(listener);
        let [mine, other] = pair(&mut self.rng, manners, [own, foxy]);
        // Each connection goes to a random worker, as if the kernel distributed the connections.
        let worker = self.rng.below(self.world.profile.workers as u64) as usize;
        if !self.world.connect((worker, listener), (other, own)) {
            return false;
        }
        self.connection = Some(Connection {
            wire: mine,
            buf: Vec::new(),
            life,
            worker,
            listener,
            used: now,
        });
        true
    }

    /// Sends a request and reads its answer. Returns `None` if no complete head arrives.
    async fn exchange(&mut self, asked: &Asked) -> Option<Got> {
        let Connection { wire, buf, .. } = self.connection.as_mut()?;
        let text = asked.text();
        // An error is ignored: even if the request could not be sent completely, an answer may have arrived.
        let _ = wire.write(text.as_bytes()).await;
        if asked.rude {
            match self.rng.below(3) {
                0 => wire.shutdown_write(),
                _ => {
                    sleep(Duration::from_millis(self.rng.below(400))).await;
                    self.connection = None;
                    return None;
                }
            }
        }
        let head = loop {
            let head = read_head(wire, buf).await?;
            if head.status >= 200 {
                break head;
            }
            if asked.old {
                let wrong = "an interim answer for HTTP/1.0";
                self.world.trace.wrong("bytes", wrong);
            }
        };
        let slow = if self.world.profile.wide { 0.25 } else { 0.05 };
        if self.rng.chance(slow) {
            // The client waits before it reads. So the answer fills the buffer of the connection.
            sleep(Duration::from_millis(self.rng.below(4000))).await;
        }
        let mut body = Vec::new();
        let bodiless = asked.method == "HEAD" || matches!(head.status, 204 | 304);
        let mut whole = bodiless || read_body(wire, buf, &head, (MOST, &mut body)).await;
        if !bodiless && ends_with_connection(&head) {
            // The kernel ends the connections of a killed process in an orderly way, without a reset. So if
            // the process has ended, a body that ends with the connection does not count as complete.
            whole &= !oracle::has_ended(&self.world, asked);
        }
        Some(Got { head, body, whole })
    }
}
