//! Requests for layers of container images. A client gets a layer only if the registry allows it.

use std::rc::Rc;

use foxy_http1::RequestParts;

use super::answer::Instead;
use super::{Conn, Finish};
use crate::access::refusal::Refusal;
use crate::exchange::Exchange;
use crate::http::net::Transport;
use crate::{Outcome, mirrors};

impl<T: Transport> Conn<T> {
    /// Finds out whether the client may have the layer. If it may, looks the layer up.
    pub(super) async fn proven(
        &mut self,
        parts: &RequestParts,
        keep: bool,
    ) -> Result<Finish, Instead> {
        let refusal = match self.ask(parts) {
            Some(req) => {
                let mut exchange = Exchange::new(&mut self.link, &self.local, Rc::new(req), keep);
                exchange.may_have().await
            }
            None => Some(Refusal {
                status: 400,
                reason: "missing-host",
            }),
        };
        if let Some(refusal) = refusal {
            return Err(Instead::Refuse(refusal, Outcome::Denied));
        }
        if let Some(role) = mirrors::proven(self.context.role()) {
            self.context.prove(role);
        }
        self.short(parts, keep).await
    }
}
