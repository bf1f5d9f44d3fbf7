//! A worker for tests.

use std::cell::Cell;
use std::net::{Ipv4Addr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foxy_base::{Clock, SystemClock};
use foxy_store::{Engine, EngineConfig};
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::client::worker;
use crate::http::connection::Link;
use crate::state::local::Local;
use crate::{Config, FixedNames, NoLog, Proxy};

/// Time limit of a test. No test takes that long.
const LONG: Duration = Duration::from_secs(20);

/// Runs a test together with the tasks that a worker needs beside its connections. The worker has `memory`
/// bytes for requests.
pub(crate) fn with_worker<F: Future<Output = ()>>(
    memory: usize,
    test: impl FnOnce(Rc<Local>) -> F,
) {
    with_worker_at(Arc::new(SystemClock::default()), memory, test);
}

/// Runs a test as [`with_worker`] does, with this clock.
pub(crate) fn with_worker_at<F: Future<Output = ()>>(
    clock: Arc<dyn Clock>,
    memory: usize,
    test: impl FnOnce(Rc<Local>) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let mut config = Config::default();
        config.limits.memory = memory;
        config.fill.memory = memory / 2;
        let engine = Engine::new(EngineConfig::new(64 << 20, 1), Arc::clone(&clock));
        let names = Arc::new(FixedNames::default());
        let proxy = Proxy::new(config, engine, clock, names, 1);
        let local = Local::new(proxy, 0, Box::new(NoLog));
        worker::spawn_tasks(&local);
        timeout(LONG, test(local)).await.unwrap();
    });
}

/// Returns a client, and the proxy's side of its connection.
pub(crate) async fn connection(local: &Local) -> (TcpStream, Link<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap());
    let client = client.await.unwrap();
    let (served, _) = listener.accept().unwrap();
    served.set_nonblocking(true).unwrap();
    let served = TcpStream::from_std(served).unwrap();
    let link = Link::new(local, served, &Rc::new(Cell::new(false)));
    (client, link)
}
