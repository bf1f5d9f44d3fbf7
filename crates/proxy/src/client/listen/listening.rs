//! The listeners of one worker. They are opened at the start, and renewed and closed by reloads.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use foxy_tls::ListenerTls;
use hashbrown::HashMap;
use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::conn::{Door, Sites};
use crate::client::listen::accept::accept;
use crate::client::listen::listener::BACKLOG;
use crate::client::listen::post::{Post, Posted};
use crate::origin::origins::check;
use crate::state::local::Local;
use crate::{Origins, Renewal, RenewedListener, Role, Serves};

/// Largest number of newcomers of one listener of a worker: accepted connections that wait for the turn of
/// their client.
const NEWCOMERS_MAX: usize = 1024;
/// The newcomers of one listener, in all workers, are at most this part of the connections that clients may
/// have.
const NEWCOMERS_PART: usize = 8;

/// The listeners, and the present settings.
pub(crate) struct Listening {
    local: Rc<Local>,
    open: HashMap<SocketAddr, Open>,
    /// Tasks that accept the last connections of closed listeners.
    closed: Vec<JoinHandle<()>>,
    /// The sets of origins that are checked regularly, and the tasks that check them.
    checks: Vec<(Origins, Vec<JoinHandle<()>>)>,
}

/// Certificates of a listener. The flag is true if trusted proxies name the client of each connection (PROXY
/// protocol).
type Way = (Option<ListenerTls>, bool);

struct Open {
    post: Rc<Post>,
    accepting: Vec<JoinHandle<()>>,
}

impl Listening {
    pub(crate) fn new(local: Rc<Local>) -> Self {
        Self {
            local,
            open: HashMap::new(),
            closed: Vec::new(),
            checks: Vec::new(),
        }
    }

    /// Starts to accept connections on a socket.
    pub(crate) fn open(
        &mut self,
        address: SocketAddr,
        socket: std::net::TcpListener,
        (serves, way): (Serves, Way),
    ) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from_std(socket)?;
        // Accepted sockets inherit the buffer size. With a small memory budget, the unread bytes of one
        // client must not fill megabytes of kernel memory.
        if let Some(bytes) = self.local.proxy.config.limits.receive_bytes() {
            let _ = SockRef::from(&socket).set_recv_buffer_size(bytes);
        }
        let proxy = &self.local.proxy;
        let workers = proxy.workers().max(1);
        let (backlog, newcomers) = proxy.ledger.backlog(workers);
        let newcomers = newcomers_max(newcomers, proxy.config.limits.connections / workers);
        let backlog = backlog - newcomers;
        let backlog = i32::try_from(backlog).map_or(BACKLOG, |most| most.min(BACKLOG));
        // The socket listens already. This second call only changes the length of its queue.
        SockRef::from(&socket).listen(backlog)?;
        // There may already be a socket for this address, because a service manager may pass several.
        let known = self.open.remove(&address);
        let mut open = known.unwrap_or_else(|| Open {
            post: Post::new(self.posted(serves.clone(), way)),
            accepting: Vec::new(),
        });
        let accepting = accept(Rc::clone(&open.post), socket, newcomers);
        open.accepting.push(tokio::task::spawn_local(accepting));
        self.open.insert(address, open);
        self.check(&serves);
        Ok(())
    }

    /// Opens a listener without a socket. A test passes its connections.
    #[cfg(test)]
    pub(crate) fn open_without_socket(&mut self, address: SocketAddr, serves: Serves) -> Rc<Post> {
        let post = Post::new(self.posted(serves, (None, false)));
        let open = Open {
            post: Rc::clone(&post),
            accepting: Vec::new(),
        };
        self.open.insert(address, open);
        post
    }

    fn posted(&self, serves: Serves, (tls, named): Way) -> Posted {
        Posted {
            local: Rc::clone(&self.local),
            door: door(serves),
            tls,
            named,
        }
    }

    /// Starts the checks of origins that are not checked yet. All workers share the state of origins, so only
    /// the first worker checks them.
    fn check(&mut self, serves: &Serves) {
        if self.local.index != 0 {
            return;
        }
        for origins in serves.origins() {
            if !self.checks.iter().any(|(known, _)| known == origins) {
                let tasks = check::spawn(&self.local, origins);
                self.checks.push((origins.clone(), tasks));
            }
        }
    }

    /// Ends the checks of those origins that no listener uses any more.
    fn end_checks(&mut self, used: &[Origins]) {
        self.checks.retain(|(origins, tasks)| {
            let keep = used.contains(origins);
            if !keep {
                tasks.iter().for_each(JoinHandle::abort);
            }
            keep
        });
    }

    /// Applies new settings. Every request that begins later has the new settings.
    pub(crate) fn renew(&mut self, renewal: Renewal) {
        self.local = self.local.renewed(Arc::clone(&renewal.proxy));
        let mut before = std::mem::take(&mut self.open);
        let mut used = Vec::new();
        for listener in renewal.listeners {
            let RenewedListener {
                address,
                socket,
                serves,
                tls,
                proxy_protocol,
            } = listener;
            let way = (tls, proxy_protocol);
            used.extend(serves.origins().cloned());
            match (before.remove(&address), socket) {
                (Some(open), _) => {
                    self.check(&serves);
                    open.post.renew(self.posted(serves, way));
                    self.open.insert(address, open);
                }
                (None, Some(socket)) => {
                    if let Err(error) = self.open(address, socket, (serves, way)) {
                        tracing::error!(%error, %address, "a new listener could not be set up");
                    }
                }
                (None, None) => tracing::error!(%address, "a listener is not there any more"),
            }
        }
        for open in before.into_values() {
            open.post.close();
            self.closed.extend(open.accepting);
        }
        self.closed.retain(|task| !task.is_finished());
        self.end_checks(&used);
    }

    /// Waits until the tasks that accept connections have ended, and returns the present settings. The tasks
    /// end because the proxy shuts down. All connections that they have accepted are then being served.
    pub(crate) async fn stop(self) -> Rc<Local> {
        let open = self.open.into_values().flat_map(|open| open.accepting);
        for task in open.chain(self.closed) {
            let _ = task.await;
        }
        self.local
    }
}

/// Returns the largest number of newcomers of one listener of a worker. There is memory for `newcomers`.
/// `connections` is the worker's part of the connections that all clients may have.
fn newcomers_max(newcomers: usize, connections: usize) -> usize {
    newcomers
        .min(connections / NEWCOMERS_PART)
        .min(NEWCOMERS_MAX)
}

/// Converts the roles of a listener to a [`Door`]. Its roles are in `Rc`, because only this thread uses them.
fn door(serves: Serves) -> Door {
    match serves {
        Serves::One(role) => Door {
            role: Rc::new(role),
            sites: None,
        },
        Serves::Sites(table, sites) => {
            let none = Rc::new(Role::Undecided);
            let role = |(site, tls)| (Rc::new(Role::Site(site)), tls);
            let sites = Sites {
                table,
                roles: sites.into_iter().map(role).collect(),
                none: Rc::clone(&none),
            };
            Door {
                role: none,
                sites: Some(Rc::new(sites)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcomers use a part of the memory, and a part of the open files that clients may use.
    #[test]
    fn newcomers_have_limits() {
        assert_eq!(newcomers_max(2000, 16_384), 1024);
        assert_eq!(newcomers_max(200, 16_384), 200);
        assert_eq!(newcomers_max(2000, 256), 32);
        assert_eq!(newcomers_max(2000, 1), 0);
    }
}
