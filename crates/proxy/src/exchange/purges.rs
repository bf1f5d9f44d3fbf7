//! Requests with the method PURGE.

use std::sync::Arc;

use foxy_store::{Places, Purge};

use super::purger::{Purger, TOO_MANY, not_accepted, purger, within_rights};
use super::{Exchange, Finish, purge_method};
use crate::Outcome;
use crate::access::refusal::Refusal;
use crate::cache::owned_request::OwnedRequest;
use crate::http::connection::Ends;
use crate::http::net::Transport;
use crate::http::reply::send_plain;
use crate::state::local::Local;

/// Refusal for a purge that is not durable: the purge is valid only until this process ends.
const NOT_DURABLE: Refusal = Refusal {
    status: 500,
    reason: "purge-not-durable",
};

impl<T: Transport> Exchange<'_, T> {
    /// Removes durably the objects stored under the URL, all variants included. If the request's fields name
    /// other objects, purges these objects instead.
    pub(crate) async fn purge(&mut self) -> Finish {
        self.keep &= self.req.head().framing().is_empty();
        let refusal = match purged(&self.local, &self.req).await {
            Ok(body) => return self.purged(&body).await,
            Err(refusal) => refusal,
        };
        let outcome = match refusal.status {
            400 => Outcome::BadRequest,
            403 | 429 => Outcome::Denied,
            _ => Outcome::Purge,
        };
        self.refused(refusal, outcome).await
    }

    async fn purged(&mut self, body: &str) -> Finish {
        let (local, own) = (&self.local, (self.keep, &self.req.head()));
        let fields = "Content-Type: application/json\r\n";
        let Ends { io, scratch, .. } = self.link.ends();
        let sent = send_plain(local, io, scratch, fields, body.as_bytes(), own).await;
        Finish {
            outcome: Outcome::Purge,
            reason: "purged",
            status: 200,
            keep: self.keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Finish::default()
        }
    }
}

/// Carries out the purges that a request orders, and returns the body of the answer.
async fn purged(local: &Local, req: &OwnedRequest) -> Result<String, Refusal> {
    match may_purge(local, req)? {
        (_, Some(wanted)) => purge_many(local, &wanted).await,
        (purger, None) => remove(local, req, purger).await,
    }
}

/// Returns the rights of the sender, and the purges that the request orders. `None` means a hard purge of the
/// URL itself.
fn may_purge(local: &Local, req: &OwnedRequest) -> Result<(Purger, Option<Vec<Purge>>), Refusal> {
    let proxy = &local.proxy;
    let head = req.head();
    let purger = purger(&proxy.config.access, &req.client, &head)?;
    let bad = |reason| Refusal {
        status: 400,
        reason,
    };
    let wanted = purge_method::of(req).map_err(bad)?;
    within_rights(purger, wanted.as_deref().unwrap_or_default())?;
    if purger == Purger::Client {
        let taken = proxy.purge_rate.take(req.client.ip(), local.mono());
        taken.map_err(|_| TOO_MANY)?;
        if wanted.is_some() && !proxy.room_for_clients() {
            return Err(TOO_MANY);
        }
    }
    Ok((purger, wanted))
}

/// Carries out the purges `wanted`. The answer contains the numbers of the purges.
async fn purge_many(local: &Local, wanted: &[Purge]) -> Result<String, Refusal> {
    let proxy = Arc::clone(&local.proxy);
    let mut numbers = Vec::new();
    for purge in wanted {
        match proxy.purge_many(purge, Places::Shared).await {
            Ok(began) if began.durable => numbers.push(began.number.to_string()),
            Ok(_) => return Err(NOT_DURABLE),
            Err(error) => return Err(not_accepted(&error)),
        }
    }
    Ok(format!("{{\"purges\": [{}]}}\n", numbers.join(", ")))
}

/// Purges the URL with all its variants. The answer contains the number of removed objects.
async fn remove(local: &Local, req: &OwnedRequest, purger: Purger) -> Result<String, Refusal> {
    let proxy = Arc::clone(&local.proxy);
    let may_count = purger == Purger::Operator || proxy.room_for_clients();
    let purged = proxy.purge_key(req.base_hash, &req.base, may_count).await;
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
    Ok(format!("{{\"objects\": {}{counting}}}\n", purged.objects))
}
