//! Requests that Foxy answers itself: OPTIONS and TRACE that end here, and PURGE.

use std::sync::Arc;

use foxy_base::Fields;
use foxy_http1::{RequestParts, write};
use foxy_store::{Places, Purge};

use super::{Conn, Finish, purge_method};
use crate::Outcome;
use crate::ask::Ask;
use crate::net::Transport;
use crate::reply::{send_page, send_plain};
use crate::route::Refusal;

impl<T: Transport> Conn<T> {
    pub(super) async fn options(&mut self, parts: RequestParts, keep: bool) -> Finish {
        let keep = keep && parts.framing().is_empty();
        let fields =
            "Allow: GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH, PURGE\r\n";
        let own = (keep, parts.version());
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_plain(local, io, scratch, fields, b"", own).await;
        Finish {
            status: 200,
            keep: keep && sent.is_ok(),
            ..Finish::default()
        }
    }

    /// The request as received, without what might be secret (RFC 9110 section 9.3.8).
    pub(super) async fn trace(&mut self, parts: RequestParts, keep: bool) -> Finish {
        let head = parts.head(self.buf.filled(), &self.slots);
        let mut echo = Vec::new();
        write::request_line(
            &mut echo,
            head.method_text(),
            head.target_text(),
            head.version(),
        );
        for i in 0..head.count() {
            let (name, value) = head.field(i);
            let secret = ["authorization", "proxy-authorization", "cookie"];
            if !secret
                .iter()
                .any(|s| name.eq_ignore_ascii_case(s.as_bytes()))
            {
                write::field(&mut echo, name, value);
            }
        }
        write::end(&mut echo);
        let own = (keep, parts.version());
        let fields = "Content-Type: message/http\r\n";
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_plain(local, io, scratch, fields, &echo, own).await;
        Finish {
            status: 200,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Finish::default()
        }
    }

    /// Removes what is stored under the URL, all variants included, or what the request's fields
    /// name instead; durably.
    pub(super) async fn purge(&mut self, ask: &Ask, keep: bool) -> Finish {
        let keep = keep && ask.head().framing().is_empty();
        let client = self.client.ip().to_canonical();
        let access = &self.local.proxy.config.access;
        let allowed = access.purge_from.iter().any(|net| net.contains(&client));
        let (status, reason, outcome) = if allowed {
            match purge_method::of(ask) {
                Ok(Some(wanted)) => match self.purge_many(ask, &wanted, keep).await {
                    Ok(finish) => return finish,
                    Err(refused) => refused,
                },
                Ok(None) => match self.remove(ask, keep).await {
                    Ok(finish) => return finish,
                    Err(refused) => refused,
                },
                Err(reason) => (400, reason, Outcome::BadRequest),
            }
        } else {
            (403, "purge-not-allowed", Outcome::Denied)
        };
        let refusal = Refusal { status, reason };
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_page(local, io, scratch, refusal, Some(&ask.head()), keep).await;
        Finish {
            outcome,
            reason,
            status,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Finish::default()
        }
    }

    /// Purges what fields name, and answers with the numbers of the purges.
    async fn purge_many(
        &mut self,
        ask: &Ask,
        wanted: &[Purge],
        keep: bool,
    ) -> Result<Finish, (u16, &'static str, Outcome)> {
        let proxy = Arc::clone(&self.local.proxy);
        let mut numbers = Vec::new();
        for purge in wanted {
            match proxy.purge_many(purge, Places::Shared).await {
                Ok(began) if began.durable => numbers.push(began.number.to_string()),
                Ok(_) => return Err((500, "purge-not-durable", Outcome::Purge)),
                // Too many at once: refused, never widened.
                Err(error) if error.is_busy() => {
                    return Err((429, "too-many-purges", Outcome::Purge));
                }
                Err(_) => return Err((400, "bad-purge", Outcome::BadRequest)),
            }
        }
        let body = format!("{{\"purges\": [{}]}}\n", numbers.join(", "));
        Ok(self.purged(ask, &body, keep).await)
    }

    async fn purged(&mut self, ask: &Ask, body: &str, keep: bool) -> Finish {
        let own = (keep, ask.head().version());
        let fields = "Content-Type: application/json\r\n";
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_plain(local, io, scratch, fields, body.as_bytes(), own).await;
        Finish {
            outcome: Outcome::Purge,
            reason: "purged",
            status: 200,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Finish::default()
        }
    }

    /// Purges the URL, and answers with the count of objects.
    async fn remove(
        &mut self,
        ask: &Ask,
        keep: bool,
    ) -> Result<Finish, (u16, &'static str, Outcome)> {
        let proxy = Arc::clone(&self.local.proxy);
        let purged = proxy.purge_key(ask.base_hash, &ask.base).await;
        if !purged.durable {
            return Err((500, "purge-not-durable", Outcome::Purge));
        }
        if purged.objects == 0 {
            return Err((404, "not-stored", Outcome::Purge));
        }
        let counting = match purged.counting {
            Some(number) => format!(", \"variants_counted_by\": {number}"),
            None => String::new(),
        };
        let body = format!("{{\"objects\": {}{counting}}}\n", purged.objects);
        Ok(self.purged(ask, &body, keep).await)
    }
}
