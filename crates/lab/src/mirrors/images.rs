//! A registry of container images with one large layer. The registry requires tokens, and the URLs of its
//! storage are signed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};

use crate::kit::{AfterResponse, Body, BufferedConn, ReceivedRequest, Respond};

/// Path of the layer at the storage, with the signature of its URL.
const SIGNED: &str = "/storage/layer?sig=1";
/// The name from which the bytes of the layer are computed.
const NAME: &str = "layer";
const TOKEN: &str = "Bearer t";

/// The image layer that clients pull.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) length: u64,
    /// Digest of the layer's contents. The registry uses it as the layer's name.
    pub(super) digest: String,
}

impl Layer {
    pub(super) fn new(length: u64) -> Self {
        let (mut body, mut left, mut digest) = (Self::body(), length, Sha256::new());
        while left > 0 {
            let piece = body.next(usize::try_from(left).unwrap_or(usize::MAX));
            digest.update(piece);
            left -= piece.len() as u64;
        }
        let hex: String = digest
            .finalize()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        Self {
            length,
            digest: format!("sha256:{hex}"),
        }
    }

    /// Bytes of the layer.
    pub(super) fn body() -> Body {
        Body::of(NAME)
    }

    /// Path of the layer at the registry.
    pub(super) fn path(&self) -> String {
        format!("/v2/team/app/blobs/{}", self.digest)
    }
}

/// The registry.
#[derive(Debug)]
pub(super) struct Images {
    layer: Arc<Layer>,
    /// URL of the storage.
    storage: String,
}

impl Images {
    pub(super) const fn new(layer: Arc<Layer>, storage: String) -> Self {
        Self { layer, storage }
    }
}

impl Respond for Images {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        let host = request.head.get("Host").unwrap_or_default();
        let (status, fields, body) = if request.path.starts_with("/token?") {
            let token = "{\"token\":\"t\",\"expires_in\":300}";
            (
                "200 OK",
                "Content-Type: application/json\r\n".to_owned(),
                token,
            )
        } else if request.head.get("Authorization") != Some(TOKEN) {
            let scope = "repository:team/app:pull";
            let fields = format!(
                "WWW-Authenticate: Bearer realm=\"http://{host}/token\",service=\"r\",scope=\"{scope}\"\r\n"
            );
            ("401 Unauthorized", fields, "{}")
        } else if request.path == self.layer.path() {
            let fields = format!("Location: {}{SIGNED}\r\n", self.storage);
            ("307 Temporary Redirect", fields, "moved")
        } else {
            ("404 Not Found", String::new(), "{\"errors\":[]}")
        };
        let length = body.len();
        let body = if request.method == "HEAD" { "" } else { body };
        let text = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        match conn.write(text.as_bytes()).await {
            Ok(()) => AfterResponse::Keep,
            Err(_) => AfterResponse::Close,
        }
    }
}

/// The registry's storage. The registry redirects requests for the layer to a signed URL of this server.
#[derive(Debug)]
pub(super) struct Storage {
    layer: Arc<Layer>,
    pub(super) transfers: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// Number of requests to the storage that contained credentials.
    pub(super) leaks: AtomicU64,
}

impl Storage {
    pub(super) fn of(layer: Arc<Layer>) -> Self {
        Self {
            layer,
            transfers: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            leaks: AtomicU64::new(0),
        }
    }
}

impl Respond for Storage {
    async fn respond(&self, request: &ReceivedRequest, conn: &mut BufferedConn) -> AfterResponse {
        if request.head.get("Authorization").is_some() {
            self.leaks.fetch_add(1, Ordering::Relaxed);
        }
        if request.path != SIGNED {
            let text = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
            return match conn.write(text.as_bytes()).await {
                Ok(()) => AfterResponse::Keep,
                Err(_) => AfterResponse::Close,
            };
        }
        let mut left = self.layer.length;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n");
        if conn.write(head.as_bytes()).await.is_err() {
            return AfterResponse::Close;
        }
        if request.method == "HEAD" {
            return AfterResponse::Keep;
        }
        self.transfers.fetch_add(1, Ordering::Relaxed);
        let mut body = Layer::body();
        while left > 0 {
            let piece = body.next(usize::try_from(left).unwrap_or(usize::MAX));
            if conn.write(piece).await.is_err() {
                return AfterResponse::Close;
            }
            left -= piece.len() as u64;
            self.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        AfterResponse::Keep
    }
}
