//! An origin for measurements. Each measurement defines the origin's answers.

use std::future::Future;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::{BufferedConn, Head};

/// A request as the origin received it.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Method of the request.
    pub method: String,
    /// Path and query, even if the request contains the absolute URL.
    pub path: String,
    /// The complete head.
    pub head: Head,
}

/// The use of the connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterResponse {
    /// The connection waits for the next request.
    Keep,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
}

/// Defines the answers of an origin.
pub trait Respond: Send + Sync + 'static {
    /// Writes an answer to `request`. Returns the use of the connection after the answer. If the connection
    /// failed, returns [`AfterResponse::Close`].
    fn respond(
        &self,
        request: &ReceivedRequest,
        conn: &mut BufferedConn,
    ) -> impl Future<Output = AfterResponse> + Send;
}

/// Handles every connection until the runtime ends.
pub async fn serve<P: Respond>(listener: TcpListener, responder: Arc<P>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(
                    BufferedConn::new(stream),
                    Arc::clone(&responder),
                ));
            }
            // No file descriptor is free. Connections that end will release file descriptors.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    }
}

async fn connection<P: Respond>(mut conn: BufferedConn, responder: Arc<P>) {
    while let Ok(Some(head)) = conn.head().await {
        let mut body = Vec::new();
        let read = match head.length() {
            _ if head.is_chunked() => conn.chunked(&mut body).await,
            Some(length) => conn.counted(length, &mut body).await,
            None => Ok(()),
        };
        if read.is_err() {
            return;
        }
        let mut words = head.start.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let request = ReceivedRequest {
            method,
            path: path_of(target).to_owned(),
            head,
        };
        match responder.respond(&request, &mut conn).await {
            AfterResponse::Keep => {}
            AfterResponse::Close => return,
            AfterResponse::Reset => return conn.reset(),
        }
    }
}

/// The path of a target. The target may be an absolute URL.
fn path_of(target: &str) -> &str {
    let Some((_, rest)) = target.split_once("://") else {
        return target;
    };
    rest.find('/').map_or("/", |slash| &rest[slash..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_urls_have_a_path() {
        assert_eq!(path_of("/a?b"), "/a?b");
        assert_eq!(path_of("http://h:1/a?b"), "/a?b");
        assert_eq!(path_of("http://h"), "/");
    }
}
