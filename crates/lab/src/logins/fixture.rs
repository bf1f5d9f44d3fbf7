//! A Foxy with users, its origin, and clients with and without logins.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

use crate::kit::{
    self, AfterResponse, BufferedConn, Child, Launch, ReceivedRequest, Respond, free_port, serve,
};

/// Number of users whose passwords have cheap hashes, so that a password check is short.
pub(super) const USERS: usize = 50;
/// Name of a user whose password has a hash of the usual cost, so that a password check takes as long as in
/// real use.
pub(super) const VICTIM: &str = "victim";
/// Number of threads that check passwords.
pub(super) const THREADS: usize = 1;
/// The password of all users.
const PASSWORD: &str = "right";
/// The bcrypt hash of [`PASSWORD`] with the least cost.
const SHORT: &str = "$2b$04$abcdefghijklmnopqrstuuFmEfrkTQnczNzw475xE2VhDrK1uwJiC";
/// The bcrypt hash of [`PASSWORD`] with the usual cost.
const USUAL: &str = "$2b$10$abcdefghijklmnopqrstuu1VS0P7v3ZJmd2gzBFIzgfN7OOl6Rl52";

/// Length of `/small`, in bytes.
pub(super) const SMALL: usize = 1 << 10;
/// Length of `/large`, in bytes.
pub(super) const LARGE: usize = 1 << 20;

/// A running Foxy with its users.
#[derive(Debug)]
pub(super) struct Fixture {
    foxy: Child,
    origin: u16,
    _folder: TempDir,
}

impl Fixture {
    /// Starts Foxy. `limits` contains sections that are appended to its configuration.
    pub(super) async fn start(program: &Path, limits: &str) -> Result<Self, String> {
        let folder = kit::folder()?;
        let problem = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(|error| format!("the origin has no port: {error}"))?;
        let origin = listener.local_addr().map_err(problem)?.port();
        tokio::spawn(serve(listener, Arc::new(Origin)));
        let (port, users) = (free_port()?, folder.path().join("users"));
        let mut text = format!("{VICTIM}:{USUAL}\n");
        for user in 0..USERS {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "user{user}:{SHORT}");
        }
        // Only the flood uses the users `late0`, `late1` and so on, so Foxy has never seen their logins
        // before.
        for user in 0..USERS {
            let _ = writeln!(text, "late{user}:{SHORT}");
        }
        std::fs::write(&users, text).map_err(problem)?;
        let (store, file) = (folder.path().join("store"), folder.path().join("foxy.toml"));
        let config = format!(
            "listen = \"127.0.0.1:{port}\"\nadmin = \"off\"\nworkers = 1\nmemory = \"256MiB\"\n\
             [log]\naccess = \"off\"\n\
             [[store]]\npath = \"{}\"\nsize = \"256MiB\"\n\
             [login]\npassword_file = \"{}\"\nthreads = {THREADS}\n{limits}",
            store.display(),
            users.display()
        );
        std::fs::write(&file, config).map_err(problem)?;
        let args = ["serve".to_owned(), format!("--config={}", file.display())];
        let launch = Launch::new(program.to_path_buf(), args);
        Ok(Self {
            foxy: Child::start(&launch, folder.path(), port)?,
            origin,
            _folder: folder,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.foxy.pid()
    }

    pub(super) fn client(&self) -> Client {
        Client {
            proxy: self.foxy.address(),
            origin: self.origin,
            conn: None,
            body: Vec::new(),
        }
    }
}

/// The value of `Proxy-Authorization` for a user and a password.
pub(super) fn login(user: &str, password: &str) -> String {
    let text = STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {text}")
}

/// The login of a user with the right password.
pub(super) fn right(user: &str) -> String {
    login(user, PASSWORD)
}

/// A client with one connection. If Foxy has closed the connection, the client opens a new one.
#[derive(Debug)]
pub(super) struct Client {
    proxy: SocketAddr,
    origin: u16,
    conn: Option<BufferedConn>,
    body: Vec<u8>,
}

impl Client {
    /// Requests a path and reads the complete answer. Returns the status and the length of the body in
    /// bytes.
    pub(super) async fn get(
        &mut self,
        path: &str,
        login: Option<&str>,
    ) -> Result<(u16, usize), String> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => {
                let stream = TcpStream::connect(self.proxy).await;
                BufferedConn::new(stream.map_err(|error| error.to_string())?)
            }
        };
        let field = login.map_or_else(String::new, |login| {
            format!("Proxy-Authorization: {login}\r\n")
        });
        let host = format!("127.0.0.1:{}", self.origin);
        let text = format!("GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n");
        let problem = |error: std::io::Error| format!("{path}: {error}");
        conn.write(text.as_bytes()).await.map_err(problem)?;
        let head = conn.head().await.map_err(problem)?;
        let head = head.ok_or_else(|| format!("{path}: closed without an answer"))?;
        let length = head.length().ok_or("an answer without a length")?;
        self.body.clear();
        let body = conn.counted(length, &mut self.body).await;
        body.map_err(problem)?;
        let close = head.get("Connection").unwrap_or_default();
        if !close.eq_ignore_ascii_case("close") {
            self.conn = Some(conn);
        }
        Ok((head.status(), self.body.len()))
    }

    /// As [`Self::get`], but any answer other than a complete body with status 200 is an error.
    pub(super) async fn take(
        &mut self,
        (path, size): (&str, usize),
        login: Option<&str>,
    ) -> Result<(), String> {
        match self.get(path, login).await? {
            (200, bytes) if bytes == size => Ok(()),
            (status, bytes) => Err(format!("{path} gave {status} with {bytes} bytes")),
        }
    }
}

/// The origin. Its objects stay fresh.
#[derive(Debug)]
struct Origin;

impl Respond for Origin {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let size = match request.path.ends_with("/large") {
            true => LARGE,
            false => SMALL,
        };
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=6000\r\nContent-Length: {size}\r\n\r\n"
        )
        .into_bytes();
        answer.resize(answer.len() + size, b'x');
        match conn.write(&answer).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}
