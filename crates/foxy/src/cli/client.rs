//! A small client for the admin listener of a running Foxy.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::admin_args::{Admin, AdminArgs};

const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(60);
/// Largest size of an answer in bytes.
const ANSWER_MAX: u64 = 64 << 20;

/// Sends one request, and returns status and body.
///
/// # Errors
/// Returns a sentence that tells the user what to do.
pub(super) fn ask(args: &AdminArgs, method: &str, target: &str) -> Result<(u16, String), String> {
    let mut answer = Vec::new();
    let to = args.resolve()?;
    let stream = send(&to, method, target)?;
    let admin = &to.address;
    let read = stream.take(ANSWER_MAX).read_to_end(&mut answer);
    read.map_err(|error| format!("{admin} did not answer: {error}"))?;
    parse(&answer).ok_or_else(|| format!("{admin} is not the admin address of a Foxy; {ADVICE}"))
}

const ADVICE: &str = "is Foxy running? `--admin` names its admin address";

/// A TCP connection or a connection of a unix socket.
trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

fn send(to: &Admin, method: &str, target: &str) -> Result<Box<dyn Stream>, String> {
    let admin = &to.address;
    let connected = match admin.strip_prefix(SOCKET) {
        Some(path) => local(path),
        None => connect(admin),
    };
    let mut stream =
        connected.map_err(|error| format!("no connection to {admin}: {error}; {ADVICE}"))?;
    let token = match &to.token {
        Some(token) => format!("Authorization: Bearer {token}\r\n"),
        None => String::new(),
    };
    let host = if admin.starts_with(SOCKET) {
        "localhost"
    } else {
        admin
    };
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: {host}\r\nX-Foxy-Admin: 1\r\n{token}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let sent = stream.write_all(request.as_bytes());
    sent.map_err(|error| format!("{admin} did not answer: {error}"))?;
    Ok(stream)
}

/// Sends one request. Returns the status, and a reader for the body.
///
/// # Errors
/// Returns a sentence that tells the user what to do.
pub(super) fn open(
    args: &AdminArgs,
    method: &str,
    target: &str,
) -> Result<(u16, impl BufRead + use<>), String> {
    let to = args.resolve()?;
    let admin = &to.address;
    let failed = |error: std::io::Error| format!("{admin} did not answer: {error}");
    let mut answer = BufReader::new(send(&to, method, target)?);
    let mut line = String::new();
    answer.read_line(&mut line).map_err(failed)?;
    let status = line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|l| l.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| format!("{admin} is not the admin address of a Foxy"))?;
    while line.trim_end() != "" {
        line.clear();
        answer.read_line(&mut line).map_err(failed)?;
    }
    Ok((status, answer))
}

/// Prefix of the path of a unix socket.
pub(super) const SOCKET: &str = "unix:";

fn local(path: &str) -> std::io::Result<Box<dyn Stream>> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER))?;
    Ok(Box::new(stream))
}

fn connect(admin: &str) -> std::io::Result<Box<dyn Stream>> {
    let mut last = std::io::Error::new(std::io::ErrorKind::InvalidInput, "no such address");
    for address in admin.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(ANSWER))?;
                return Ok(Box::new(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn parse(answer: &[u8]) -> Option<(u16, String)> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, body.to_owned()))
}
