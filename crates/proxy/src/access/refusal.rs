//! A request that is refused: the status and the reason word of its answer.

use foxy_http1::Reject;

/// A request that is answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
}

impl From<Reject> for Refusal {
    fn from(reject: Reject) -> Self {
        Self {
            status: reject.status,
            reason: reject.reason,
        }
    }
}
