//! The origin of the flood: small objects, all with one tag.

use crate::kit::{Asked, Play, Then, Wire};

#[derive(Debug)]
pub(super) struct Origin;

impl Play for Origin {
    async fn play(&self, asked: &Asked, wire: &mut Wire) -> Then {
        let body = format!("{}\n", asked.path);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nSurrogate-Key: all\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        match wire.write(answer.as_bytes()).await {
            Ok(()) => Then::Keep,
            Err(_) => Then::Close,
        }
    }
}
