//! An HTTP client that reports everything it receives: interim answers, fields, and truncated bodies.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time;

use super::{BufferedConn, Head};

/// The destination of requests: the address of the proxy, and the name of the origin.
#[derive(Clone, Debug)]
pub struct Target {
    /// Address of the proxy.
    pub proxy: SocketAddr,
    /// The origin's authority, the value of Host.
    pub origin: String,
    /// Scheme of the absolute URL in requests, as a forward proxy needs it. With `None`, requests contain
    /// only the path.
    pub scheme: Option<&'static str>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct ClientRequest {
    /// Method of the request.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// Fields besides Host and Connection. A POST request also gets `Content-Length: 0`.
    pub fields: Vec<(&'static str, String)>,
    /// Source address; `None`: the system chooses the address.
    pub from: Option<IpAddr>,
}

impl ClientRequest {
    /// Returns a GET request with no fields except Host and Connection.
    #[must_use]
    pub const fn get(path: String) -> Self {
        Self {
            method: "GET",
            path,
            fields: Vec::new(),
            from: None,
        }
    }

    /// Adds a field to the request.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    fn text(&self, target: &Target) -> String {
        let Target { origin, .. } = target;
        let request_target = match target.scheme {
            Some(scheme) => format!("{scheme}://{origin}{}", self.path),
            None => self.path.clone(),
        };
        let mut text = format!(
            "{} {request_target} HTTP/1.1\r\nHost: {origin}\r\n",
            self.method
        );
        for (name, value) in &self.fields {
            text += &format!("{name}: {value}\r\n");
        }
        if self.method == "POST" {
            text += "Content-Length: 0\r\n";
        }
        text + "Connection: close\r\n\r\n"
    }
}

pub(super) async fn connect(from: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
    let Some(from) = from else {
        return TcpStream::connect(to).await;
    };
    let socket = match to {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.bind((from, 0).into())?;
    socket.connect(to).await
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Interim answers that came before the answer.
    pub interim: Vec<Head>,
    /// Status line and fields of the answer.
    pub head: Head,
    /// Body of the answer, decoded.
    pub body: Vec<u8>,
    /// True if the body is complete.
    pub whole: bool,
}

/// The progress of a request, for a task that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// Nothing was sent.
    Before,
    /// The complete request was sent.
    Sent,
    /// The answer's head has arrived.
    Head,
}

impl ClientRequest {
    /// Sends the request on a new connection and returns the answer.
    ///
    /// # Errors
    /// An error if no head came: the connection was refused, closed or broken, or `timeout` has passed.
    pub async fn send(
        &self,
        target: &Target,
        timeout: Duration,
        progress: Option<watch::Sender<Progress>>,
    ) -> Result<Answer, String> {
        let mut answer = Answer::default();
        let tell = |at| progress.as_ref().map(|to| to.send_replace(at));
        let exchange = async {
            let stream = connect(self.from, target.proxy).await?;
            let mut conn = BufferedConn::new(stream);
            conn.write(self.text(target).as_bytes()).await?;
            tell(Progress::Sent);
            loop {
                let Some(head) = conn.head().await? else {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                };
                if head.status() / 100 != 1 {
                    answer.head = head;
                    break;
                }
                answer.interim.push(head);
            }
            tell(Progress::Head);
            let (head, body) = (&answer.head, &mut answer.body);
            if self.method == "HEAD" || matches!(head.status(), 204 | 304) {
                return Ok(());
            }
            match head.length() {
                _ if head.is_chunked() => conn.chunked(body).await,
                Some(length) => conn.counted(length, body).await,
                None => conn.until_close(body).await,
            }
        };
        let ended = time::timeout(timeout, exchange).await;
        match ended {
            Ok(Ok(())) => answer.whole = true,
            _ if answer.head.status() > 0 => {}
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err(format!("no answer in {} s", timeout.as_secs())),
        }
        Ok(answer)
    }
}
