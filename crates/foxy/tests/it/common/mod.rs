//! An origin for tests that start the program.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// Starts an origin that answers each request with 200, these fields (each with CRLF) and this body.
/// Returns its URL and the heads that it is sent, in small letters.
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
                // The test may not want them.
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
