//! The origin of the flood: small objects, all with one tag.

use crate::kit::{AfterResponse, BufferedConn, ReceivedRequest, Respond};

#[derive(Debug)]
pub(super) struct Origin;

impl Respond for Origin {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let body = format!("{}\n", request.path);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nSurrogate-Key: all\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        match conn.write(answer.as_bytes()).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}
