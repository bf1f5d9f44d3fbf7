//! A shortage of memory as an operator sees it: in the metrics that the alert rules use, in the statistics of
//! `/stats`, and in `/readyz`. The test runs Foxy in a separate process, because the memory of the complete
//! process counts.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use foxy_base::{Clock, MonoTime, SystemClock};

use socket2::{Domain, Socket, Type};

use crate::common::Watched;

/// Sends a request for a page of `origin`. The request comes from an address whose last byte is `client`.
fn request(client: u8, to: SocketAddr, origin: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 1, client), 0)).into())?;
    socket.connect(&to.into())?;
    let mut stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(Duration::from_millis(20)))?;
    let port = stream.local_addr()?.port();
    write!(
        stream,
        "GET http://{origin}/{client}/{port} HTTP/1.1\r\nHost: {origin}\r\n\r\n"
    )?;
    Ok(stream)
}

/// Starts an origin that accepts connections and never answers.
fn silent_origin() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().collect::<Vec<_>>());
    address
}

/// True if all three pages show that memory is short.
fn is_seen(foxy: &Watched) -> bool {
    foxy.page("/readyz").contains("\nmemory is short: ")
        && foxy.page("/metrics").contains("\nfoxy_memory_short 1\n")
        && foxy.page("/stats").contains("\"short\": true")
}

#[test]
fn memory_that_is_short_is_seen() {
    let foxy = Watched::start(&["--memory", "48MiB", "--workers", "1"]);
    assert!(
        !foxy.page("/readyz").contains("memory"),
        "it is not short yet"
    );
    let (origin, mut held) = (silent_origin(), Vec::new());
    // An operator must see the shortage within 5 seconds. The time limit of this test is longer, because the
    // machine may be busy.
    let clock = SystemClock::default();
    while !is_seen(&foxy) {
        assert!(
            clock.mono().since(MonoTime::default()) < Duration::from_secs(60),
            "{}\n{}",
            foxy.page("/readyz"),
            foxy.page("/metrics")
        );
        // If Foxy has closed the connection of a client, the client opens a new connection.
        held.retain(|stream: &TcpStream| stream.peek(&mut [0]).is_err());
        for client in 1..=200 {
            if held.len() < 1000
                && let Ok(stream) = request(client, foxy.listen, origin)
            {
                stream.set_nonblocking(true).unwrap();
                held.push(stream);
            }
        }
    }
    println!(
        "FoxyMemoryShort: seen after {:?}",
        clock.mono().since(MonoTime::default())
    );
    let rules = include_str!("../../../../dist/prometheus/alerts.yaml");
    assert!(rules.contains("- alert: FoxyMemoryShort\n        expr: foxy_memory_short == 1\n"));
}
