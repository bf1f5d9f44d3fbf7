//! Bytes both ways: CONNECT tunnels and upgraded connections.

use std::cell::Cell;
use std::io::{self, IoSlice};

use foxy_base::rule;
use foxy_http1::RequestParts;

use super::{Conn, Finish};
use crate::OriginTimeouts;
use crate::Outcome;
use crate::local::Local;
use crate::net::{Io, ReadBuf, Ticks, Transport};
use crate::parents::tunnel_through;
use crate::reply::send_page;
use crate::rewriting::Recipient;
use crate::route::{Refusal, host_text};
use crate::upstream::Destination;
use crate::upstream::exchange::Leased;

/// Bytes read at once.
const PIECE: usize = 64 << 10;

impl<T: Transport> Conn<T> {
    /// Answers CONNECT. The connection cannot carry requests afterwards.
    pub(super) async fn connect(
        &mut self,
        parts: RequestParts,
        started: foxy_base::MonoTime,
    ) -> bool {
        let head = parts.head(self.buf.filled(), &self.slots);
        let to = head.target().authority.map(|authority| Destination {
            host: host_text(&authority),
            port: authority.port.unwrap_or(0),
            exempt: false,
            tls: None,
            timeouts: OriginTimeouts::default(),
            reach: self.client.reach(),
            parent: None,
        });
        let ports = &self.local.proxy.config.access.connect_ports;
        let leased = match to {
            Some(to)
                if rule!(
                    "guard: tunnels lead to the ports of the list only",
                    ports.contains(&to.port),
                    true
                ) =>
            {
                let parents = self
                    .client
                    .pass
                    .as_ref()
                    .and_then(|pass| pass.parents.clone());
                let leased = match parents {
                    None => Leased::get(&self.local, &to, true).await,
                    Some(parents) => Box::pin(tunnel_through(&self.local, &parents, to)).await,
                };
                leased.map_err(|error| (error.status(), error.reason(), error.outcome()))
            }
            _ => Err((403, "connect-port", Outcome::Denied)),
        };
        let finish = match leased {
            Ok(leased) => self.tunnel_to(parts, leased).await,
            Err((status, reason, outcome)) => {
                let refusal = Refusal { status, reason };
                let head = parts.head(self.buf.filled(), &self.slots);
                let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
                let sent = send_page(
                    local,
                    io,
                    scratch,
                    (refusal, Recipient::new(&self.role, &self.client)),
                    Some(&head),
                    false,
                )
                .await;
                Finish::refused(refusal, outcome, false, sent)
            }
        };
        let head = parts.head(self.buf.filled(), &self.slots);
        self.finished(Some(&head), started, &finish);
        self.buf.clear();
        false
    }

    async fn tunnel_to(&mut self, parts: RequestParts, mut leased: Leased) -> Finish {
        let patience = self.local.patience.progress;
        let established = b"HTTP/1.1 200 Connection established\r\n\r\n";
        if self.io.write(established, patience).await.is_err() {
            return Finish::gone(200);
        }
        // The head stays in the buffer for the log; what follows it belongs to the tunnel.
        let early = self.buf.filled()[parts.len()..].to_vec();
        let before = self.io.sent();
        let mut client_buf = ReadBuf::new();
        if leased.up.io.write(&early, patience).await.is_ok() {
            let (origin_io, origin_buf) = (&*leased.up.io, &mut leased.up.buf);
            relay(
                &self.local,
                (&self.io, &mut client_buf),
                (origin_io, origin_buf),
            )
            .await;
        }
        leased.count(&self.local);
        Finish {
            outcome: Outcome::Tunnel,
            status: 200,
            body: self.io.sent() - before,
            origin: Some(leased.up.peer),
            ..Finish::default()
        }
    }
}

/// Copies both ways until both ends are closed, one fails, or nothing moves for too long. What
/// is in the buffers goes first.
pub(super) async fn relay<A: Transport, B: Transport>(
    local: &Local,
    a: (&Io<A>, &mut ReadBuf),
    b: (&Io<B>, &mut ReadBuf),
) {
    let moved = Cell::new(local.sweep.now());
    let (a_io, a_buf) = a;
    let (b_io, b_buf) = b;
    let up = copy(local, a_io, a_buf, b_io, &moved);
    let down = copy(local, b_io, b_buf, a_io, &moved);
    // An error in one direction ends both; an end of stream only its own.
    let _ = tokio::try_join!(up, down);
}

async fn copy<A: Transport, B: Transport>(
    local: &Local,
    from: &Io<A>,
    buf: &mut ReadBuf,
    to: &Io<B>,
    moved: &Cell<Ticks>,
) -> io::Result<()> {
    let patience = local.patience.tunnel;
    loop {
        if !buf.is_empty() {
            let len = buf.filled().len();
            to.write_all(&mut [IoSlice::new(buf.filled())], patience)
                .await?;
            buf.consume(len);
            moved.set(local.sweep.now());
        }
        match buf.fill(from, PIECE, from.deadline(patience)).await {
            Ok(0) => {
                to.transport().shutdown_write();
                return Ok(());
            }
            Ok(_) => moved.set(local.sweep.now()),
            // Silence in this direction is fine while the other one moves.
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                if local.sweep.now().since(moved.get()) >= patience {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}
