//! The credentials of the admin listener and what each permits.

use foxy_base::Fields;
use foxy_proxy::Token;

use crate::config::Right;

/// Tokens, and rights without a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    /// Permits everything.
    pub(crate) operate: Option<Token>,
    /// Permits to read and purge.
    pub(crate) purge: Option<Token>,
    /// Permits to read.
    pub(crate) read: Option<Token>,
    /// Rights of requests over TCP without a token.
    pub(crate) network: Right,
    /// Rights of requests over the unix socket without a token.
    pub(crate) socket: Right,
}

impl Keys {
    /// The right that a token of the request gives; `Nothing` without one.
    pub(super) fn of_token<F: Fields + ?Sized>(&self, fields: &F) -> Right {
        let all = [
            (&self.operate, Right::Operate),
            (&self.purge, Right::Purge),
            (&self.read, Right::Read),
        ];
        // All are compared, whichever fits.
        let fitting = all.map(|(token, right)| match token {
            Some(token) if token.is_in(fields) => right,
            _ => Right::Nothing,
        });
        fitting.into_iter().max().unwrap_or_default()
    }
}
