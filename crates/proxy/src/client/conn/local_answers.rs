//! Answers that Foxy itself makes. Foxy answers those OPTIONS and TRACE requests that it does not send to an
//! origin. It also sends the file by which browsers find the proxy (PAC), and the answer by which a registry
//! of container images identifies itself.

use foxy_access::HostPattern;
use foxy_base::{Fields, rule};
use foxy_http1::{Method, RequestHead, RequestParts, Scheme, write};

use super::{Conn, Finish};
use crate::TOKEN_FIELD;
use crate::client::conn::pac;
use crate::http::net::Transport;
use crate::http::reply::send_plain;

/// Field lines and body of an answer with status 200.
pub(super) type Plain = (&'static str, Vec<u8>);

impl<T: Transport> Conn<T> {
    /// Sends an answer that Foxy makes itself. If the request has a body, the connection ends, because the
    /// body is not read.
    pub(super) async fn plain(
        &mut self,
        parts: &RequestParts,
        (fields, body): Plain,
        keep: bool,
    ) -> Finish {
        let keep = keep && parts.framing().is_empty();
        let ends = self.link.ends();
        let own = (keep, &ends.received.head(parts));
        let sent = send_plain(&self.local, ends.io, ends.scratch, fields, &body, own).await;
        Finish {
            status: 200,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Finish::default()
        }
    }
}

pub(super) const fn options() -> Plain {
    let fields = "Allow: GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH, PURGE\r\n";
    (fields, Vec::new())
}

/// Returns the file by which browsers find the proxy (PAC). The file names the proxy by the host and port in
/// this request. `direct` contains the hosts that browsers ask without the proxy.
pub(super) fn pac_file(head: &RequestHead<'_>, secure: bool, direct: &[HostPattern]) -> Plain {
    let spoken = match secure {
        true => Scheme::Https,
        false => Scheme::Http,
    };
    let mut name = Vec::new();
    if let Some(url) = head.url(spoken) {
        url.authority.write_with_port(spoken, &mut name);
    }
    let name = String::from_utf8_lossy(&name);
    let text = match head.method() {
        Method::Head => String::new(),
        _ => pac::text(&name, secure, direct),
    };
    let fields = "Content-Type: application/x-ns-proxy-autoconfig\r\nCache-Control: no-cache\r\n";
    (fields, text.into_bytes())
}

/// Returns an answer whose body is the request as received, without fields that might be secret (RFC 9110
/// section 9.3.8).
pub(super) fn trace(head: &RequestHead<'_>) -> Plain {
    let mut echo = Vec::new();
    let (method, target) = (head.method_text(), head.target_text());
    write::request_line(&mut echo, method, target, head.version());
    for i in 0..head.count() {
        let (name, value) = head.field(i);
        let secret = [
            "authorization",
            "proxy-authorization",
            "cookie",
            TOKEN_FIELD,
        ];
        let is_secret = |s: &&str| name.eq_ignore_ascii_case(s.as_bytes());
        if rule!(
            "trace: secrets are not sent back",
            !secret.iter().any(is_secret),
            true
        ) {
            write::field(&mut echo, name, value);
        }
    }
    write::end(&mut echo);
    ("Content-Type: message/http\r\n", echo)
}

/// Returns the answer by which a registry of container images identifies itself.
pub(super) fn registry() -> Plain {
    let fields =
        "Content-Type: application/json\r\nDocker-Distribution-Api-Version: registry/2.0\r\n";
    (fields, b"{}".to_vec())
}
