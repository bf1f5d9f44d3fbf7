//! Clients that install packages. A client requests each document, and then the artefact that the document
//! names.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::document::{Compared, Substitutions};
use super::registry::Package;
use crate::kit::{Body, BufferedConn, Child, Head};

/// Longest duration of a request.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The `Accept` field that npm sends.
const ACCEPT: &str =
    "Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*\r\n";

/// A client with a connection that stays open.
#[derive(Debug)]
pub(super) struct Client {
    to: SocketAddr,
    conn: Option<BufferedConn>,
}

impl Client {
    pub(super) const fn new(to: SocketAddr) -> Self {
        Self { to, conn: None }
    }

    /// Requests a path and passes the pieces of the body to `take`. Returns the head.
    ///
    /// # Errors
    /// An error if there is no answer, or if the answer is incomplete.
    pub(super) async fn get(
        &mut self,
        path: &str,
        fields: &str,
        take: impl FnMut(&[u8]),
    ) -> Result<Head, String> {
        let exchange = async {
            let mut conn = match self.conn.take() {
                Some(conn) => conn,
                None => BufferedConn::new(TcpStream::connect(self.to).await?),
            };
            let to = self.to;
            let text = format!("GET {path} HTTP/1.1\r\nHost: {to}\r\n{fields}\r\n");
            conn.write(text.as_bytes()).await?;
            let head = conn.head().await?;
            let head = head.ok_or(std::io::ErrorKind::UnexpectedEof)?;
            conn.pieces(&head, take).await?;
            if head.get("Connection") != Some("close") {
                self.conn = Some(conn);
            }
            Ok::<_, std::io::Error>(head)
        };
        match timeout(TIMEOUT, exchange).await {
            Ok(Ok(head)) => Ok(head),
            Ok(Err(error)) => Err(format!("{path}: {error}")),
            Err(_) => Err(format!("{path}: no answer in {} s", TIMEOUT.as_secs())),
        }
    }

    /// Requests a package's document. Returns true if the document is correct. The check depends on
    /// [`Source::exact`].
    ///
    /// # Errors
    /// The same errors as those of [`get`](Self::get).
    pub(super) async fn document(&mut self, from: &Source, of: &Package) -> Result<bool, String> {
        let path = format!("{}/{}", from.prefix, of.name);
        let artefacts = format!("http://{}{}", self.to, from.prefix);
        let substitutions = Substitutions {
            name: &of.name,
            artefacts: &artefacts,
            registry: &from.registry,
        };
        let mut compared = Compared::with(of.document.parts(substitutions));
        let mut length = 0;
        let head = self.get(&path, ACCEPT, |piece| {
            length += piece.len();
            if from.exact {
                compared.push(piece);
            }
        });
        let head = head.await?;
        let right = if from.exact {
            compared.ends_right()
        } else {
            length > 0
        };
        Ok(head.status() == 200 && right)
    }

    /// Requests a package's artefact. Returns true if the artefact is correct.
    ///
    /// # Errors
    /// The same errors as those of [`get`](Self::get).
    pub(super) async fn artefact(&mut self, from: &Source, of: &Package) -> Result<bool, String> {
        let name = of.artefact();
        let (mut body, mut right, mut length) = (Body::of(&name), true, 0);
        let path = format!("{}{name}", from.prefix);
        let head = self.get(&path, "", |piece| {
            right &= body.continues(piece);
            length += piece.len() as u64;
        });
        let head = head.await?;
        Ok(head.status() == 200 && right && length == of.length)
    }
}

/// A server of packages: a registry, or a mirror of a registry.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) to: SocketAddr,
    /// Prefix before the paths of the registry.
    pub(super) prefix: &'static str,
    /// URL of the registry.
    pub(super) registry: String,
    /// True if every byte of a document is compared with the form that a mirror must send. Otherwise a
    /// document is only required not to be empty.
    pub(super) exact: bool,
}

impl Source {
    /// Returns the mirror that Foxy offers below `prefix` for the registry with the URL `registry`.
    pub(super) fn mirror(foxy: &Child, prefix: &'static str, registry: String) -> Self {
        Self {
            to: foxy.address(),
            prefix,
            registry,
            exact: true,
        }
    }
}

/// The results of requesting all packages (see [`replay`]).
#[derive(Clone, Debug, Default)]
pub(super) struct Replayed {
    pub(super) requests: u64,
    pub(super) took: Duration,
    /// Descriptions of the first wrong answers.
    pub(super) wrong: Vec<String>,
}

/// Requests every package `times` times over this number of connections.
pub(super) async fn replay(
    from: &Source,
    packages: &Arc<Vec<Arc<Package>>>,
    (connections, times): (usize, usize),
) -> Replayed {
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        let (from, packages) = (from.clone(), Arc::clone(packages));
        let next = Arc::clone(&next);
        clients.spawn(async move {
            let (mut client, mut replayed) = (Client::new(from.to), Replayed::default());
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= packages.len() * times {
                    return replayed;
                }
                let package = &packages[number % packages.len()];
                let got = [
                    client.document(&from, package).await,
                    client.artefact(&from, package).await,
                ];
                for (what, got) in ["document", "artefact"].into_iter().zip(got) {
                    replayed.requests += 1;
                    let name = &package.name;
                    match got {
                        Ok(true) => {}
                        Ok(false) => replayed.wrong.push(format!("{what} of {name} is wrong")),
                        Err(error) => replayed.wrong.push(error),
                    }
                }
            }
        });
    }
    let mut all = Replayed::default();
    while let Some(ended) = clients.join_next().await {
        match ended {
            Ok(one) => {
                all.requests += one.requests;
                all.wrong.extend(one.wrong);
            }
            Err(error) => all.wrong.push(error.to_string()),
        }
    }
    all.took = begun.elapsed();
    all
}
