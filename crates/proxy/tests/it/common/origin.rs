//! An origin that calls a closure.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::{Client, over_tls};

/// A request that the origin has received.
pub struct Asked {
    pub head: String,
    pub client: Client,
}

impl Asked {
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (n, value) = line.split_once(':')?;
            n.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Sends an answer with these fields (each line ends with CRLF) and this body.
    pub fn reply(&mut self, status: &str, fields: &str, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        let head = format!(
            "HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n",
            body.len()
        );
        // The proxy may have closed the connection.
        let _ = self
            .client
            .stream
            .write_all(&[head.as_bytes(), body].concat());
    }

    pub fn raw(&mut self, text: impl AsRef<[u8]>) {
        let _ = self.client.stream.write_all(text.as_ref());
    }
}

/// A gate that blocks an origin until the test opens it.
#[derive(Clone, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    pub fn wait(&self) {
        while !self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn close(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// An origin with a thread per connection. The thread calls a closure for each request.
pub struct Origin {
    pub addr: SocketAddr,
    pub requests: Arc<AtomicUsize>,
    pub connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

impl Origin {
    /// Starts an origin. `serve` answers a request, and returns true if the connection remains open.
    pub fn start(serve: impl Fn(&mut Asked) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut addr = listener.local_addr().unwrap();
        if over_tls::is_on() {
            addr = over_tls::front(addr);
        }
        let requests = Arc::new(AtomicUsize::new(0));
        let connections = Arc::new(AtomicUsize::new(0));
        let closed = Arc::new(AtomicUsize::new(0));
        let (count, opened, ended) = (requests.clone(), connections.clone(), closed.clone());
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                opened.fetch_add(1, Ordering::SeqCst);
                let (serve, count, ended) = (serve.clone(), count.clone(), ended.clone());
                std::thread::spawn(move || {
                    converse(Client::of(stream), &count, &*serve);
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            addr,
            requests,
            connections,
            closed,
        }
    }

    /// Returns the number of connections that the origin has closed.
    pub fn closed(&self) -> usize {
        self.closed.load(Ordering::SeqCst)
    }

    pub fn asked(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub fn authority(&self) -> String {
        format!("origin.test:{}", self.addr.port())
    }
}

/// Answers the requests on a connection until one side closes it.
fn converse(mut client: Client, count: &AtomicUsize, serve: &dyn Fn(&mut Asked) -> bool) {
    loop {
        let head = client.head();
        if head.is_empty() {
            return;
        }
        count.fetch_add(1, Ordering::SeqCst);
        let mut asked = Asked { head, client };
        if !serve(&mut asked) {
            return;
        }
        client = asked.client;
    }
}
