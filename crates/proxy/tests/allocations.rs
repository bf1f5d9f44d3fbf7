//! Checks that a hit in memory allocates nothing, from the first byte of the request to the log record.

#![allow(clippy::unwrap_used, reason = "a helper outside a test function")]

#[path = "it/common/mod.rs"]
mod common;

use std::alloc::System;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use common::{Foxy, Origin};
use foxy_proxy::{Config, Listener, NoLog, Proxy, Role, Worker, bind};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of requests that are measured at a time.
const REQUESTS: usize = 200;
/// Number of measurements. The smallest result counts.
const TIMES: usize = 20;

/// Sends a request and reads its answer into `buf`. Returns the status.
fn ask(client: &mut std::net::TcpStream, buf: &mut [u8], request: &str) -> [u8; 3] {
    client.write_all(request.as_bytes()).unwrap();
    let mut have = 0;
    loop {
        have += client.read(&mut buf[have..]).unwrap();
        let text = &buf[..have];
        let end = text.windows(4).position(|w| w == b"\r\n\r\n");
        let body = match &text[9..12] {
            b"200" => 4096,
            b"206" => 10,
            _ => 0,
        };
        if end.is_some_and(|end| have >= end + 4 + body) {
            return [text[9], text[10], text[11]];
        }
    }
}

#[test]
fn a_memory_hit_allocates_nothing() {
    let origin = Origin::start(|asked| {
        let fields = "Cache-Control: max-age=600\r\nETag: \"v1\"\r\nVary: Accept-Encoding\r\nContent-Type: text/html\r\n";
        asked.reply("200 OK", fields, vec![b'x'; 4096]);
        true
    });
    let foxy = Foxy::forward();
    let proxy = Proxy::new(
        Config::default(),
        foxy.engine.clone(),
        foxy.clock.clone(),
        std::sync::Arc::new(
            foxy_proxy::FixedNames::default().with("origin.test", &[[127, 0, 0, 1].into()]),
        ),
        1,
    );
    let socket = bind("127.0.0.1:0".parse().unwrap(), 1).unwrap().remove(0);
    let addr = socket.local_addr().unwrap();
    let worker = Worker {
        proxy: proxy.clone(),
        index: 0,
        listeners: vec![Listener {
            tls: None,
            socket,
            serves: foxy_proxy::Serves::One(Role::Forward),
            proxy_protocol: false,
        }],
        log: Box::new(NoLog),
        renewals: foxy_proxy::Renewals::none(),
    };
    let thread = std::thread::spawn(move || worker.run().unwrap());
    let get = format!(
        "GET http://{}/page HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nUser-Agent: test\r\n\r\n",
        origin.authority()
    );
    let not_modified = get.replace("\r\n\r\n", "\r\nIf-None-Match: \"v1\"\r\n\r\n");
    let part = get.replace("\r\n\r\n", "\r\nRange: bytes=10-19\r\n\r\n");
    let mut client = std::net::TcpStream::connect(addr).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut buf = vec![0; 65536];
    for _ in 0..3 {
        for request in [&get, &not_modified, &part] {
            ask(&mut client, &mut buf, request);
        }
    }
    for (request, status) in [(&get, *b"200"), (&not_modified, *b"304"), (&part, *b"206")] {
        // Other threads of the process sometimes allocate. Moreover, if this thread is late with the next
        // request, the connection frees its buffers and must allocate them again. So the smallest count
        // decides. If hits allocated, every count would show it.
        let fewest = (0..TIMES)
            .map(|_| {
                let region = Region::new(ALLOCATOR);
                for _ in 0..REQUESTS {
                    assert_eq!(ask(&mut client, &mut buf, request), status);
                }
                region.change().allocations
            })
            .min();
        assert_eq!(fewest, Some(0), "{request}");
    }
    assert_eq!(origin.asked(), 1);
    idle_connections_hold_little(&proxy, addr, &get);
    proxy.shutdown();
    thread.join().unwrap();
}

/// Checks that idle connections use little memory: a thousand clients send one request each and stay
/// connected.
fn idle_connections_hold_little(proxy: &Proxy, addr: std::net::SocketAddr, get: &str) {
    const CLIENTS: usize = 1000;
    let mut buf = vec![0; 65536];
    let mut clients = Vec::with_capacity(CLIENTS);
    let region = Region::new(ALLOCATOR);
    for _ in 0..CLIENTS {
        let mut client = std::net::TcpStream::connect(addr).unwrap();
        assert_eq!(ask(&mut client, &mut buf, get), *b"200");
        clients.push(client);
    }
    assert!(proxy.connections() >= CLIENTS);
    let held = |region: &Region<'_, System>| {
        let change = region.change();
        (change
            .bytes_allocated
            .saturating_sub(change.bytes_deallocated))
            / CLIENTS
    };
    let busy = held(&region);
    let mut tries = 1200;
    while held(&region) > 6 << 10 && tries > 0 {
        tries -= 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    let idle = held(&region);
    println!("bytes per connection: {busy} at once, {idle} when idle");
    assert!(idle <= 6 << 10, "{idle} bytes per idle connection");
    // The idle clients still get answers.
    for client in &mut clients {
        assert_eq!(ask(client, &mut buf, get), *b"200");
    }
}
