//! Clients that visit pages: a model with servers, pages and embedded objects, based on the published
//! descriptions of the DEC and Hummingbird traces.
//!
//! A client draws a page (by Zipf popularity, or from the pages that any client visited lately). The page
//! determines a server and a set of embedded objects; some of them are shared by the server's pages. A first
//! visit requests the complete set. A later visit requests each embedded object with a fixed probability.
//! Within a visit an embedded object may soon be requested again (a quick repeat). Each client has its own
//! think times, so consecutive requests of the stream rarely go to the same server.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use foxy_base::Rng;

use super::{Sizes, Zipf, dist};
use crate::{Class, Request};

/// Parameters of the model.
#[derive(Clone, Copy, Debug)]
pub struct SessionConfig {
    /// Number of requests in the stream.
    pub requests: u64,
    /// Number of clients active at the same time.
    pub clients: u32,
    /// Number of pages that can be visited.
    pub pages: u64,
    /// Zipf exponent of the popularity of pages.
    pub alpha: f64,
    /// Number of origin servers. (Pages are distributed over servers by Zipf with exponent 1.)
    pub servers: u32,
    /// Lognormal distribution of the number of embedded objects: median, and sigma of the logarithm.
    pub embedded: (f64, f64),
    /// Share of a page's embedded objects that other pages of the server contain too.
    pub shared: f64,
    /// Probability that a later visit requests an embedded object.
    pub again: f64,
    /// Probability that a client draws one of the `recent` lately visited pages.
    pub recency: f64,
    /// Number of lately visited pages from which clients draw.
    pub recent: usize,
    /// Probability that a request repeats an embedded object of the same visit.
    pub quick: f64,
    /// Probability that an object has been modified when it is requested again.
    pub modified: f64,
    /// Distributions of object sizes. The first is for objects of popular pages and for objects that pages
    /// share; the second is for all other objects.
    pub sizes: [Sizes; 2],
    /// Mean think time between two pages of a client, ms. This time and the number of clients determine the
    /// arrival rate.
    pub think_ms: f64,
    /// Mean time between the objects of one visit, ms.
    pub spacing_ms: f64,
}

/// Mean think time of the DEC stream, ms: the number of clients, divided by the number of visits a second.
/// There are 10,089 clients with 3,543,968 requests in a week, which is 5.86 requests a second. Each visit
/// has 3.36 requests on average.
const THINK_DEC: f64 = 5_800_000.0;
/// Mean think time of the ISP stream, ms. It follows from the number of clients, 4.8 million requests in four
/// days (13.9 requests a second) and about 11 requests in each visit.
const THINK_ISP: f64 = 2_350_000.0;
/// Mean think time of the NLANR stream, ms. It follows from the number of clients, 1.77 million requests in a
/// day (20.4 requests a second) and about 9 requests in each visit.
const THINK_NLANR: f64 = 1_270_000.0;
/// Mean time between the objects of one visit, ms. In the 1990s an answer took 3 to 4 seconds (USITS'99 3.1),
/// and browsers requested four objects at a time.
const SPACING: f64 = 900.0;

impl SessionConfig {
    /// The DEC proxy stream of 1996. By default it has 1,058,206 requests, because the published values are
    /// those of the first 1,058,206 GETs of the log.
    #[must_use]
    pub const fn dec() -> Self {
        let sizes = Sizes::Heavy {
            median: 3_000.0,
            sigma: 0.95,
            tail: 0.005,
            from: 32_768.0,
            alpha: 1.2,
            most: 8 << 20,
        };
        Self {
            requests: 1_058_206,
            clients: 10_089,
            pages: 20_000_000,
            alpha: 0.77,
            servers: 20_000,
            embedded: (2.0, 0.9),
            shared: 0.25,
            again: 0.47,
            recency: 0.30,
            recent: 5_000,
            quick: 0.0,
            modified: 0.01,
            sizes: [sizes, sizes],
            think_ms: THINK_DEC,
            spacing_ms: SPACING,
        }
    }

    /// The stream of a national ISP in 1999 (Hummingbird): 4.8 million requests. Decision 133 explains the
    /// sizes, sets and quick repeats.
    #[must_use]
    pub const fn isp() -> Self {
        let popular = Sizes::Heavy {
            median: 1_500.0,
            sigma: 0.9,
            tail: 0.005,
            from: 16_384.0,
            alpha: 1.4,
            most: 16 << 20,
        };
        let rare = Sizes::Heavy {
            median: 1_950.0,
            sigma: 1.4,
            tail: 0.11,
            from: 24_000.0,
            alpha: 1.5,
            most: 16 << 20,
        };
        Self {
            requests: 4_800_000,
            clients: 3_000,
            pages: 450_000,
            alpha: 0.90,
            servers: 30_000,
            embedded: (9.2, 0.92),
            shared: 0.3,
            again: 0.35,
            recency: 0.10,
            recent: 50_000,
            quick: 0.22,
            modified: 0.01,
            sizes: [popular, rare],
            think_ms: THINK_ISP,
            spacing_ms: SPACING,
        }
    }

    /// One day of requests to four proxies at the root of a hierarchy of caches (NLANR, 22 December 1997):
    /// 1.77 million requests. A cache without limits answers 36 % of the requests and 27 % of the bytes, and
    /// grows to 13.7 GB (Fan, Cao, Almeida and Broder, "Summary cache", table 1). Caches below these proxies
    /// answer quick repeats, and repeats of lately visited pages, so that the stream contains neither kind of
    /// repeat (decision 134).
    #[must_use]
    pub const fn nlanr() -> Self {
        let popular = Sizes::Heavy {
            median: 2_300.0,
            sigma: 1.0,
            tail: 0.02,
            from: 32_768.0,
            alpha: 1.4,
            most: 16 << 20,
        };
        let rare = Sizes::Heavy {
            median: 3_000.0,
            sigma: 1.25,
            tail: 0.06,
            from: 32_768.0,
            alpha: 1.3,
            most: 16 << 20,
        };
        Self {
            requests: 1_766_409,
            pages: 750_000,
            alpha: 0.75,
            embedded: (8.0, 0.75),
            recency: 0.0,
            quick: 0.0,
            sizes: [popular, rare],
            think_ms: THINK_NLANR,
            ..Self::isp()
        }
    }
}

/// The stream of requests.
#[derive(Debug)]
pub struct Sessions {
    config: SessionConfig,
    seed: u64,
    rng: Rng,
    pages: Zipf,
    servers: Zipf,
    clients: BinaryHeap<Reverse<(u64, u32)>>,
    pending: HashMap<u32, VecDeque<NextObject>>,
    /// Embedded objects that a client has requested in its current visit (filled only if there
    /// are quick repeats).
    had: HashMap<u32, Vec<NextObject>>,
    visited: HashSet<u64>,
    recent: VecDeque<u64>,
    versions: HashMap<u64, u32>,
    seen: HashSet<u64>,
    made: u64,
}

#[derive(Clone, Copy, Debug)]
struct NextObject {
    object: u64,
    page: u64,
    server: u32,
    class: Class,
}

/// Maximum number of embedded objects of a page.
const EMBEDDED_MOST: u64 = 250;
/// Number of objects that a server's pages share.
const SHARED_POOL: u64 = 40;
/// Share of all pages, by rank, that count as popular.
const POPULAR: f64 = 0.02;

impl Sessions {
    /// Creates the stream that `seed` defines.
    #[must_use]
    pub fn new(config: SessionConfig, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let clients = (1..=config.clients.max(1))
            .map(|client| Reverse(((rng.unit() * config.think_ms) as u64, client)))
            .collect();
        Self {
            pages: Zipf::new(config.pages, config.alpha),
            servers: Zipf::new(u64::from(config.servers.max(1)), 1.0),
            config,
            seed,
            rng,
            clients,
            pending: HashMap::new(),
            had: HashMap::new(),
            visited: HashSet::new(),
            recent: VecDeque::new(),
            versions: HashMap::new(),
            seen: HashSet::new(),
            made: 0,
        }
    }

    fn page(&mut self) -> u64 {
        if !self.recent.is_empty() && self.rng.chance(self.config.recency) {
            let reach = (self.recent.len() as f64).ln();
            let back = (self.rng.unit() * reach).exp() as usize;
            let at = self.recent.len() - back.clamp(1, self.recent.len());
            return self.recent.get(at).copied().unwrap_or(0);
        }
        self.pages.draw(&mut self.rng)
    }

    /// Returns the requests of a visit; the page is first.
    fn visit(&mut self, page: u64) -> VecDeque<NextObject> {
        self.recent.push_back(page);
        if self.recent.len() > self.config.recent {
            self.recent.pop_front();
        }
        let first = self.visited.insert(page);
        let mut fixed = Rng::new(self.seed ^ page.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let server = self.servers.draw(&mut fixed) as u32 + 1;
        let (median, sigma) = self.config.embedded;
        let count = dist::lognormal(&mut fixed, median.ln(), sigma).round() as u64;
        let html = NextObject {
            object: page << 8,
            page,
            server,
            class: Class::Html,
        };
        let mut objects = VecDeque::from([html]);
        for n in 1..=count.min(EMBEDDED_MOST) {
            let shared = fixed.chance(self.config.shared);
            let icon = fixed.below(SHARED_POOL);
            let image = fixed.chance(0.9);
            let object = if shared {
                1 << 63 | u64::from(server) << 8 | icon
            } else {
                page << 8 | n
            };
            if first || self.rng.chance(self.config.again) {
                let class = if image { Class::Image } else { Class::Other };
                objects.push_back(NextObject {
                    object,
                    page,
                    server,
                    class,
                });
            }
        }
        objects
    }

    /// For a quick repeat, draws one of the embedded objects that the client has requested in this visit.
    /// Returns `None` if there is no repeat.
    fn again(&mut self, client: u32) -> Option<NextObject> {
        if self.config.quick <= 0.0 {
            return None;
        }
        let had = self.had.get(&client).filter(|had| !had.is_empty())?;
        if !self.rng.chance(self.config.quick) {
            return None;
        }
        had.get(self.rng.below(had.len() as u64) as usize).copied()
    }

    /// Records an object that a client requested. A page starts a new visit.
    fn remember(&mut self, client: u32, next: NextObject) {
        if self.config.quick <= 0.0 {
            return;
        }
        let had = self.had.entry(client).or_default();
        if next.class == Class::Html {
            had.clear();
        } else {
            had.push(next);
        }
    }

    fn request(&mut self, time: u64, client: u32, next: NextObject) -> Request {
        let repeat = !self.seen.insert(next.object);
        if repeat && self.rng.chance(self.config.modified) {
            *self.versions.entry(next.object).or_insert(0) += 1;
        }
        let version = self.versions.get(&next.object).copied().unwrap_or(0);
        let popular =
            next.object >> 63 == 1 || (next.page as f64) < self.config.pages as f64 * POPULAR;
        let sizes = self.config.sizes[usize::from(!popular)];
        Request {
            time_ms: time as i64,
            object: next.object,
            size: sizes.of(self.seed, next.object, version),
            client,
            server: next.server,
            version,
            class: next.class,
            ..Request::default()
        }
    }
}

impl Iterator for Sessions {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.made >= self.config.requests {
            return None;
        }
        self.made += 1;
        let Reverse((time, client)) = self.clients.pop()?;
        let mut queue = self.pending.remove(&client).unwrap_or_default();
        if queue.is_empty() {
            self.had.remove(&client);
            let page = self.page();
            queue = self.visit(page);
        }
        let chosen = match self.again(client) {
            Some(chosen) => chosen,
            None => {
                let chosen = queue.pop_front()?;
                self.remember(client, chosen);
                chosen
            }
        };
        // The mean pause before the next embedded object is `spacing_ms`. The mean pause before the next
        // page, in which the user reads, is `think_ms`.
        let pause = if queue.is_empty() {
            self.config.think_ms
        } else {
            self.config.spacing_ms
        };
        let next = time + dist::exponential(&mut self.rng, pause) as u64 + 1;
        if !queue.is_empty() {
            self.pending.insert(client, queue);
        }
        self.clients.push(Reverse((next, client)));
        Some(self.request(time, client, chosen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_stream_in_order_of_time() {
        let config = SessionConfig {
            requests: 20_000,
            ..SessionConfig::isp()
        };
        let run = |seed| Sessions::new(config, seed).collect::<Vec<_>>();
        let all = run(1);
        assert_eq!(all, run(1));
        assert_ne!(all, run(2));
        assert_eq!(all.len(), 20_000);
        assert!(all.windows(2).all(|w| w[0].time_ms <= w[1].time_ms));
        let neighbours = all
            .windows(2)
            .filter(|w| w[0].server == w[1].server)
            .count();
        assert!(neighbours < 3_000, "{neighbours} neighbours share a server");
    }
}
