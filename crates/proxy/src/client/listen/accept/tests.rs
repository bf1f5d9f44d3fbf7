//! Tests of the order in which connections are accepted and served.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpStream as StdStream};
use std::pin::pin;

use socket2::{Domain, Type};
use tokio::io::AsyncReadExt;

use super::*;
use crate::client::listen::listening::Listening;
use crate::state::counters::Event;
use crate::state::local::Local;
use crate::testing::with_worker;
use crate::{Role, Serves};

const CROWD: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// A listener of a worker, on a free port.
fn accepting(local: &Rc<Local>, most: usize) -> Accepting {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap();
    let mut listening = Listening::new(Rc::clone(local));
    let post = listening.open_without_socket(address, Serves::One(Role::Forward));
    Accepting::new(post, TcpListener::from_std(socket).unwrap(), most)
}

fn connect(from: Ipv4Addr, to: &Accepting) -> StdStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    let to = to.socket.local_addr().unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// A listener that has at most 30 newcomers, after one client has opened `count` connections, and these
/// connections.
async fn with_crowd(local: &Rc<Local>, count: usize) -> (Accepting, Vec<StdStream>) {
    let mut accepting = accepting(local, 30);
    let clients = (0..count).map(|_| connect(CROWD, &accepting)).collect();
    accepting.accept().await.unwrap();
    (accepting, clients)
}

async fn two_clients_are_active(local: &Rc<Local>) {
    for client in [1, 2] {
        local.poll_budgets.take(client, pin!(async {})).await;
    }
}

#[test]
fn a_connection_overtakes_those_of_a_client_that_opens_many() {
    with_worker(64 << 20, |local| async move {
        let (mut accepting, mut clients) = with_crowd(&local, 40).await;
        assert_eq!(
            accepting.newcomers.len(),
            30,
            "the others wait in the kernel"
        );
        accepting.most = 100;
        clients.push(connect(OTHER, &accepting));
        accepting.accept().await.unwrap();
        assert_eq!(accepting.newcomers.len(), 41);
        two_clients_are_active(&local).await;
        let mut chosen = |others| {
            accepting.choose();
            let next: Vec<_> = accepting.next.drain(..).collect();
            let found = next.iter().filter(|next| next.peer.ip() == OTHER).count();
            assert_eq!(found, others);
            next.len()
        };
        assert_eq!(chosen(1), OF_ONE + 1);
        assert_eq!(chosen(0), OF_ONE);
    });
}

/// If there are too many newcomers, the connections of other clients wait in the kernel's queue.
#[test]
fn more_connections_are_served_in_a_row_if_there_are_too_many_newcomers() {
    with_worker(64 << 20, |local| async move {
        let (mut accepting, _clients) = with_crowd(&local, 40).await;
        two_clients_are_active(&local).await;
        accepting.choose();
        assert_eq!(accepting.next.len(), IN_A_ROW);
        accepting.choose();
        assert_eq!(accepting.next.len(), IN_A_ROW + OF_ONE);
    });
}

#[test]
fn one_active_client_has_more_connections_in_a_row() {
    with_worker(64 << 20, |local| async move {
        let (mut accepting, _clients) = with_crowd(&local, 20).await;
        accepting.choose();
        assert_eq!(accepting.next.len(), IN_A_ROW);
    });
}

/// A worker that ends answers the requests of all connections that it has accepted.
#[test]
fn newcomers_get_their_answers_when_foxy_ends() {
    with_worker(64 << 20, |local| async move {
        let (accepting, clients) = with_crowd(&local, 20).await;
        for mut client in &clients {
            client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        }
        local.proxy.shutdown();
        accepting.until_closed().await;
        for client in clients {
            client.set_nonblocking(true).unwrap();
            let mut client = TcpStream::from_std(client).unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
        }
    });
}

#[test]
fn newcomers_do_not_wait_after_an_error() {
    with_worker(64 << 20, |local| async move {
        let (mut accepting, _clients) = with_crowd(&local, 20).await;
        two_clients_are_active(&local).await;
        // From now on, each call of `accept` fails.
        let socket = SockRef::from(&accepting.socket);
        socket.shutdown(Shutdown::Both).unwrap();
        tokio::task::spawn_local(async move { accepting.run().await });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let served = local.proxy.totals().event(Event::ConnectionsAccepted);
        assert_eq!(served, 20);
    });
}

/// A worker with newcomers and a worker without serve all connections, also those that are in the kernel's
/// queue when the listener closes.
#[test]
fn all_connections_are_served() {
    for most in [0, 10] {
        with_worker(64 << 20, |local| async move {
            let accepting = accepting(&local, most);
            let clients = |count| -> Vec<_> {
                let addresses = (0..count).flat_map(|_| [CROWD, OTHER]);
                addresses.map(|from| connect(from, &accepting)).collect()
            };
            let served = || local.proxy.totals().event(Event::ConnectionsAccepted);
            let (first, last) = (clients(20), clients(20));
            let post = Rc::clone(&accepting.post);
            let task = tokio::task::spawn_local(accepting.until_closed());
            for _ in 0..10_000 {
                if served() >= first.len() as u64 {
                    break;
                }
                tokio::task::yield_now().await;
            }
            assert!(served() >= first.len() as u64, "{most}");
            post.close();
            task.await.unwrap();
            assert_eq!(served(), (first.len() + last.len()) as u64, "{most}");
        });
    }
}
