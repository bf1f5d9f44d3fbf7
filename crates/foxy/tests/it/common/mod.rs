//! An origin, and a Foxy with its admin pages, for tests that start the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Starts an origin that answers each request with 200, these fields (each with CRLF) and this body. Returns
/// its URL, and a channel with the heads of the requests that it gets, in lower case.
pub(crate) fn origin(fields: &'static str, body: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let sender = sender.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let lines = lines.map_while(Result::ok);
                let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
                // The test may have dropped the receiver.
                let _ = sender.send(head.join("\n").to_lowercase());
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    (format!("http://{address}"), receiver)
}

/// A running Foxy with an admin address. It is killed when this value is dropped.
pub(crate) struct Watched {
    child: Child,
    pub(crate) listen: SocketAddr,
    admin: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Watched {
    /// Starts a Foxy with a store, a log and these options.
    pub(crate) fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
        command.env_clear().env("STATE_DIRECTORY", folder.path());
        command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.args(["--store-size", "32MiB", "--access-log"]);
        command.arg(folder.path().join("log")).args(options);
        command.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let headline = said.find_map(|line| line.ok().filter(|line| line.starts_with("foxy ")));
        // This thread reads and drops Foxy's later messages. Otherwise the reading end of the pipe would be
        // closed, and Foxy could not write messages any more.
        std::thread::spawn(move || said.for_each(drop));
        let headline = headline.expect("it starts");
        let after = |text: &str| {
            let rest = headline.split(text).nth(1).unwrap();
            let end = rest.find([',', '/', ' ']).unwrap_or(rest.len());
            rest[..end].parse().unwrap()
        };
        Self {
            listen: after(" on "),
            admin: after("status on http://"),
            child,
            _folder: folder,
        }
    }

    /// Returns a page of the admin address, head included.
    pub(crate) fn page(&self, path: &str) -> String {
        ask(self.admin, &format!("GET {path}"), "Host: localhost\r\n")
    }

    /// Returns the answer of the admin address to a change, head included.
    pub(crate) fn change(&self, path: &str) -> String {
        let fields = "Host: localhost\r\nX-Foxy-Admin: 1\r\nContent-Length: 0\r\n";
        ask(self.admin, &format!("POST {path}"), fields)
    }
}

/// Returns the answer to a request, head included.
pub(crate) fn ask(address: SocketAddr, what: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("{what} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
