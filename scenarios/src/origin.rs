//! The origin of a scene. It plays the prepared reply for the path of each request, and records the requests.

use std::collections::HashMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use foxy_base::{Clock, ManualClock};
use foxy_http1::DateCache;

use crate::client::Client;
use crate::reply::{Reply, Step};

/// A request that reached the origin.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Request line and fields, as received.
    pub head: String,
    /// The body, decoded if it was chunked; trailers are appended to `head`.
    pub body: Vec<u8>,
}

impl Asked {
    /// The target of the request.
    #[must_use]
    pub fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// The first field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        crate::answer::field(&self.head, name)
    }
}

#[derive(Debug, Default)]
struct Script {
    replies: HashMap<String, Vec<Reply>>,
    asked: Vec<Asked>,
}

/// A server on a loopback port.
#[derive(Debug)]
pub struct Origin {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl Origin {
    pub(crate) fn start(clock: Arc<ManualClock>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let address = listener.local_addr().expect("a bound address");
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = Arc::clone(&script);
        // Nothing stops this thread. It ends with the process, which runs only for a short time.
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (script, clock) = (Arc::clone(&shared), Arc::clone(&clock));
                thread::spawn(move || serve(stream, &script, &clock));
            }
        });
        Self { address, script }
    }

    fn script(&self) -> std::sync::MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays this reply for every request for `path`. The reply replaces an earlier reply for this path.
    pub fn plays(&self, path: &str, reply: Reply) {
        self.script().replies.insert(path.to_owned(), vec![reply]);
    }

    /// Plays these replies in turn. The last reply is repeated.
    pub fn plays_in_turn(&self, path: &str, mut replies: Vec<Reply>) {
        replies.reverse();
        self.script().replies.insert(path.to_owned(), replies);
    }

    /// The requests received so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.script().asked.clone()
    }

    /// The last request received.
    #[must_use]
    pub fn last(&self) -> Asked {
        self.asked().pop().expect("the origin was asked")
    }

    /// Checks the number of requests received so far.
    #[track_caller]
    pub fn was_asked(&self, times: usize) {
        let asked = self.asked();
        assert_eq!(asked.len(), times, "requests at the origin: {asked:#?}");
    }

    /// Address of the listener.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The origin's authority, `origin.test:port`.
    #[must_use]
    pub fn authority(&self) -> String {
        format!("origin.test:{}", self.address.port())
    }
}

fn serve(stream: TcpStream, script: &Mutex<Script>, clock: &ManualClock) {
    let mut client = Client::over(stream);
    while let Some((head, body)) = client.request() {
        let asked = Asked { head, body };
        let reply = {
            let mut script = script.lock().unwrap_or_else(PoisonError::into_inner);
            script.asked.push(asked.clone());
            next_reply(&mut script, asked.path())
        };
        if !play(&reply, &asked, &mut client, clock) {
            return;
        }
    }
}

fn next_reply(script: &mut Script, path: &str) -> Reply {
    match script.replies.get_mut(path) {
        Some(replies) if replies.len() > 1 => replies.pop(),
        Some(replies) => replies.last().cloned(),
        None => None,
    }
    .unwrap_or_else(|| Reply::new("404 Not Found", "no such scene"))
}

/// Plays the steps of a reply. Returns false when the connection must end. If the client has disconnected,
/// the remaining steps are skipped.
fn play(reply: &Reply, asked: &Asked, client: &mut Client, clock: &ManualClock) -> bool {
    for step in &reply.steps {
        let sent = match step {
            Step::Head => client.stream.write_all(&ordinary(reply, asked, clock)),
            Step::Raw(bytes) => client.stream.write_all(bytes),
            Step::Pause(time) => {
                thread::sleep(*time);
                Ok(())
            }
            Step::Gate(gate) => {
                drop(gate.lock());
                Ok(())
            }
            Step::Close => return false,
            Step::Echo(bytes) => {
                let heard = client.exactly(*bytes);
                client.stream.write_all(&heard)
            }
        };
        if sent.is_err() {
            return false;
        }
    }
    true
}

fn ordinary(reply: &Reply, asked: &Asked, clock: &ManualClock) -> Vec<u8> {
    let unchanged = reply
        .value("ETag")
        .is_some_and(|tag| asked.field("If-None-Match") == Some(tag));
    let status = if unchanged {
        "304 Not Modified"
    } else {
        &reply.status
    };
    let mut dates = DateCache::default();
    let date = String::from_utf8_lossy(dates.get(clock.wall())).into_owned();
    let mut head = format!("HTTP/1.1 {status}\r\nDate: {date}\r\n");
    for (name, value) in &reply.fields {
        head += &format!("{name}: {value}\r\n");
    }
    if !unchanged
        && reply.value("Transfer-Encoding").is_none()
        && reply.value("Content-Length").is_none()
    {
        head += &format!("Content-Length: {}\r\n", reply.body.len());
    }
    head += "\r\n";
    let mut bytes = head.into_bytes();
    if !unchanged && !asked.head.starts_with("HEAD ") {
        bytes.extend_from_slice(&reply.body);
    }
    bytes
}
