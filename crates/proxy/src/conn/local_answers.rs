//! Requests that Foxy answers itself: OPTIONS and TRACE that end here, and PURGE.

use std::sync::Arc;

use foxy_base::{Fields, rule};
use foxy_http1::{Method, RequestParts, Scheme, write};
use foxy_store::{Places, Purge};

use super::purger::{Purger, TOO_MANY, not_accepted, purger, within_rights};
use super::{Conn, Finish, purge_method};
use crate::ask::Ask;
use crate::net::Transport;
use crate::reply::{send_page, send_plain};
use crate::rewriting::Recipient;
use crate::route::Refusal;
use crate::{Outcome, TOKEN_FIELD, pac};

/// The purge is not durable: it holds for this process only.
const NOT_DURABLE: Refusal = Refusal {
    status: 500,
    reason: "purge-not-durable",
};

impl<T: Transport> Conn<T> {
    pub(super) async fn options(&mut self, parts: RequestParts, keep: bool) -> Finish {
        let keep = keep && parts.framing().is_empty();
        let fields =
            "Allow: GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH, PURGE\r\n";
        let head = parts.head(self.buf.filled(), &self.slots);
        let own = (keep, &head);
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_plain(local, io, scratch, fields, b"", own).await;
        Finish {
            status: 200,
            keep: keep && sent.is_ok(),
            ..Finish::default()
        }
    }

    /// The file by which browsers find the proxy, under the name that this one has used.
    pub(super) async fn pac(&mut self, parts: RequestParts, keep: bool) -> Finish {
        let keep = keep && parts.framing().is_empty();
        let head = parts.head(self.buf.filled(), &self.slots);
        let spoken = match T::SECURE {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let mut name = Vec::new();
        if let Some(url) = head.url(spoken) {
            url.authority.write_with_port(spoken, &mut name);
        }
        let name = String::from_utf8_lossy(&name);
        let direct = self.local.proxy.config.pac.as_deref().unwrap_or_default();
        let text = pac::text(&name, T::SECURE, direct);
        let text = match head.method() {
            Method::Head => "",
            _ => &text[..],
        };
        let fields =
            "Content-Type: application/x-ns-proxy-autoconfig\r\nCache-Control: no-cache\r\n";
        let own = (keep, &head);
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_plain(local, io, scratch, fields, text.as_bytes(), own).await;
        Finish {
            status: 200,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
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
        let own = (keep, &head);
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
        let refusal = match self.may_purge(ask) {
            Ok((purger, wanted)) => {
                let done = match wanted {
                    Some(wanted) => self.purge_many(ask, &wanted, keep).await,
                    None => self.remove(ask, purger, keep).await,
                };
                match done {
                    Ok(finish) => return finish,
                    Err(refusal) => refusal,
                }
            }
            Err(refusal) => refusal,
        };
        let (local, io, scratch) = (&self.local, &self.io, &mut self.scratch);
        let sent = send_page(
            local,
            io,
            scratch,
            (refusal, Recipient::new(&self.role, &self.client)),
            Some(&ask.head()),
            keep,
        )
        .await;
        Finish::refused(
            refusal,
            match refusal.status {
                400 => Outcome::BadRequest,
                403 | 429 => Outcome::Denied,
                _ => Outcome::Purge,
            },
            keep,
            sent,
        )
    }

    /// The purger and the purge; `None` means a hard purge of the URL itself.
    fn may_purge(&self, ask: &Ask) -> Result<(Purger, Option<Vec<Purge>>), Refusal> {
        let proxy = &self.local.proxy;
        let head = ask.head();
        let purger = purger(&proxy.config.access, &ask.client, &head)?;
        let bad = |reason| Refusal {
            status: 400,
            reason,
        };
        let wanted = purge_method::of(ask).map_err(bad)?;
        within_rights(purger, wanted.as_deref().unwrap_or_default())?;
        if purger == Purger::Client {
            let taken = proxy.purge_rate.take(ask.client.ip(), self.local.mono());
            taken.map_err(|_| TOO_MANY)?;
            if wanted.is_some() && !proxy.room_for_clients() {
                return Err(TOO_MANY);
            }
        }
        Ok((purger, wanted))
    }

    /// Purges what fields name, and answers with the numbers of the purges.
    async fn purge_many(
        &mut self,
        ask: &Ask,
        wanted: &[Purge],
        keep: bool,
    ) -> Result<Finish, Refusal> {
        let proxy = Arc::clone(&self.local.proxy);
        let mut numbers = Vec::new();
        for purge in wanted {
            match proxy.purge_many(purge, Places::Shared).await {
                Ok(began) if began.durable => numbers.push(began.number.to_string()),
                Ok(_) => return Err(NOT_DURABLE),
                Err(error) => return Err(not_accepted(&error)),
            }
        }
        let body = format!("{{\"purges\": [{}]}}\n", numbers.join(", "));
        Ok(self.purged(ask, &body, keep).await)
    }

    async fn purged(&mut self, ask: &Ask, body: &str, keep: bool) -> Finish {
        let head = ask.head();
        let own = (keep, &head);
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
    async fn remove(&mut self, ask: &Ask, purger: Purger, keep: bool) -> Result<Finish, Refusal> {
        let proxy = Arc::clone(&self.local.proxy);
        let may_count = purger == Purger::Operator || proxy.room_for_clients();
        let purged = proxy.purge_key(ask.base_hash, &ask.base, may_count).await;
        if !purged.durable {
            return Err(NOT_DURABLE);
        }
        if purged.objects == 0 {
            return Err(Refusal {
                status: 404,
                reason: "not-stored",
            });
        }
        let counting = match purged.counting {
            Some(number) => format!(", \"variants_counted_by\": {number}"),
            None => String::new(),
        };
        let body = format!("{{\"objects\": {}{counting}}}\n", purged.objects);
        Ok(self.purged(ask, &body, keep).await)
    }
}
