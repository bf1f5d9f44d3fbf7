//! The clients of a load: their number, their source addresses and the time at which they stop.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::conn::{Conn, Fault};
use super::fixture::{Client, Fixture};
use super::tally::Tally;

/// Largest number of connections that a load opens at the same time.
const OPENING: usize = 256;
/// Longest time for which requests may continue after the end of the load.
const GRACE: Duration = Duration::from_secs(25);

/// Source addresses of a load's clients.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sources {
    /// Each client has a separate address 127.N.x.y. The value of this variant is N.
    Own(u8),
    /// All clients share this address.
    One(Ipv4Addr),
}

/// Clients of a load.
#[derive(Clone, Debug)]
pub(super) struct Clients {
    pub(super) fixture: Arc<Fixture>,
    pub(super) sources: Sources,
    pub(super) count: usize,
    /// No request begins after this moment.
    pub(super) until: Instant,
    opening: Arc<Semaphore>,
}

impl Clients {
    pub(super) fn new(
        fixture: &Arc<Fixture>,
        sources: Sources,
        count: usize,
        until: Instant,
    ) -> Self {
        Self {
            fixture: Arc::clone(fixture),
            sources,
            count,
            until,
            opening: Arc::new(Semaphore::new(OPENING)),
        }
    }

    /// Source address of a client.
    pub(super) fn source(&self, client: usize) -> Ipv4Addr {
        match self.sources {
            Sources::Own(network) => {
                let (third, fourth) = ((client / 200) as u8, (client % 200) as u8);
                Ipv4Addr::new(127, network, third, 1 + fourth)
            }
            Sources::One(address) => address,
        }
    }

    /// True if no request may begin any more.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Returns the well-behaved client with this number.
    pub(super) fn client(&self, number: usize) -> Client {
        Client::new(self.source(number), self.fixture.proxy)
    }

    /// Runs an operation that opens a connection. Before that, waits until fewer than [`OPENING`] such
    /// operations run.
    pub(super) async fn opening<T>(&self, open: impl Future<Output = T>) -> T {
        let _permit = self.opening.acquire().await;
        open.await
    }

    /// Opens a connection for a client.
    pub(super) async fn open(&self, number: usize) -> Result<Conn, Fault> {
        self.opening(Conn::open(self.source(number), self.fixture.proxy))
            .await
    }

    /// Runs `client` for each client and adds the results.
    pub(super) async fn all<F>(self, client: impl Fn(Arc<Self>, usize) -> F) -> Tally
    where
        F: Future<Output = Tally> + Send + 'static,
    {
        let clients = Arc::new(self);
        let mut running = JoinSet::new();
        for number in 0..clients.count {
            running.spawn(client(Arc::clone(&clients), number));
        }
        let mut tally = Tally::default();
        let ended = timeout_at(clients.until + GRACE, async {
            while let Some(result) = running.join_next().await {
                tally.merge(result.unwrap_or_default());
            }
        });
        if ended.await.is_err() {
            let left = running.len() as u64;
            running.shutdown().await;
            *tally.faults.entry(Fault::Unfinished).or_default() += left;
        }
        tally
    }
}
