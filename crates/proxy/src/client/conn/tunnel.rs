//! CONNECT tunnels.

use foxy_base::{MonoTime, rule};
use foxy_http1::RequestParts;

use super::{Conn, Finish};
use crate::access::refusal::Refusal;
use crate::http::destination::{Destination, host_text};
use crate::http::net::{ReadBuf, Transport, relay};
use crate::http::reply::Extra;
use crate::origin::exchange::Leased;
use crate::origin::parents::tunnel_through;
use crate::{OriginTimeouts, Outcome};

impl<T: Transport> Conn<T> {
    /// Answers CONNECT. After that, the connection cannot carry requests.
    pub(super) async fn connect(&mut self, parts: &RequestParts, started: MonoTime) -> bool {
        let (local, client) = (&self.local, self.context.client());
        let head = self.link.head(parts);
        let to = head.target().authority.map(|authority| Destination {
            host: host_text(&authority),
            port: authority.port.unwrap_or(0),
            exempt: false,
            tls: None,
            timeouts: OriginTimeouts::default(),
            reach: client.reach(),
            parent: None,
        });
        let ports = &local.proxy.config.access.connect_ports;
        let leased = match to {
            Some(to)
                if rule!(
                    "guard: tunnels lead to the ports of the list only",
                    ports.contains(&to.port),
                    true
                ) =>
            {
                let parents = client.pass.as_ref().and_then(|pass| pass.parents.clone());
                let leased = match parents {
                    None => Leased::get(local, &to, true).await,
                    Some(parents) => Box::pin(tunnel_through(local, &parents, to)).await,
                };
                leased.map_err(|error| (error.status(), error.reason(), error.outcome()))
            }
            _ => Err((403, "connect-port", Outcome::Denied)),
        };
        let finish = match leased {
            Ok(leased) => self.tunnel_to(parts, leased).await,
            Err((status, reason, outcome)) => {
                let refusal = Refusal { status, reason };
                let sent = self.page(refusal, &Extra::default(), parts, false).await;
                Finish::refused(refusal, outcome, false, sent)
            }
        };
        let head = self.link.head(parts);
        self.finished(Some(&head), started, &finish);
        self.link.clear();
        false
    }

    async fn tunnel_to(&mut self, parts: &RequestParts, mut leased: Leased) -> Finish {
        let (local, link) = (&self.local, &self.link);
        let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
        if link.send(local, established).await.is_err() {
            return Finish::gone(200);
        }
        // The head stays in the buffer for the log. The bytes after the head belong to the tunnel.
        let early = link.after(parts).to_vec();
        let before = link.io().sent();
        let mut client_buf = ReadBuf::new();
        let origin = &leased.up.io;
        if origin.write(&early, local.timeouts.progress).await.is_ok() {
            let (origin_io, origin_buf) = (&*leased.up.io, &mut leased.up.buf);
            relay(local, (link.io(), &mut client_buf), (origin_io, origin_buf)).await;
        }
        leased.count(local);
        Finish {
            outcome: Outcome::Tunnel,
            status: 200,
            body: self.link.io().sent() - before,
            origin: Some(leased.up.peer),
            ..Finish::default()
        }
    }
}
