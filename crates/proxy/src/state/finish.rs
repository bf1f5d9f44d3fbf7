//! The result of a request, for the log and the counters.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use foxy_base::{FieldBlock, WallTime};
use foxy_store::Object;

use crate::access::refusal::Refusal;
use crate::{Outcome, Recent};

/// The result of a request.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    pub(crate) outcome: Outcome,
    pub(crate) reason: &'static str,
    /// Status sent to the client. 0 if no status was sent.
    pub(crate) status: u16,
    /// Body bytes sent.
    pub(crate) body: u64,
    pub(crate) origin_status: u16,
    pub(crate) origin: Option<SocketAddr>,
    /// Fields of the answer. `None` if the answer was a stored object.
    pub(crate) fields: Option<FieldBlock>,
    /// The stored object that was sent.
    pub(crate) object: Option<Arc<Object>>,
    /// Remaining lifetime in seconds of an answer that was fetched.
    pub(crate) ttl: Option<i64>,
    /// True if the connection can carry another request.
    pub(crate) keep: bool,
}

impl Default for Finish {
    fn default() -> Self {
        Self {
            outcome: Outcome::Local,
            reason: "",
            status: 0,
            body: 0,
            origin_status: 0,
            origin: None,
            fields: None,
            object: None,
            ttl: None,
            keep: false,
        }
    }
}

impl Finish {
    /// Returns the result of a request that Foxy answered with a page of its own. `sent` is the result of
    /// sending the page.
    pub(crate) fn refused(
        refusal: Refusal,
        outcome: Outcome,
        keep: bool,
        sent: io::Result<u64>,
    ) -> Self {
        Self {
            outcome,
            reason: refusal.reason,
            status: refusal.status,
            keep: keep && sent.is_ok(),
            body: sent.unwrap_or(0),
            ..Self::default()
        }
    }

    /// Returns the part of the result that the table of recent results keeps.
    pub(crate) const fn recent(&self, at: WallTime) -> Recent {
        Recent {
            at,
            outcome: self.outcome,
            reason: self.reason,
            status: self.status,
            origin_status: self.origin_status,
        }
    }

    /// Replaces the outcome of the result with `outcome`. If the client left before the end, returns the
    /// result unchanged.
    pub(crate) fn if_sent(self, outcome: Outcome) -> Self {
        match self.outcome {
            Outcome::ClientGone => self,
            _ => Self { outcome, ..self },
        }
    }

    /// Returns the result of a request whose client left or stopped reading. `status` is the status of its
    /// answer.
    pub(crate) fn gone(status: u16) -> Self {
        Self {
            outcome: Outcome::ClientGone,
            status,
            ..Self::default()
        }
    }
}
