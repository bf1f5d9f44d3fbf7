//! The credentials of the admin listener, and the rights that each credential has.

use foxy_base::Fields;
use foxy_proxy::Token;

use crate::config::Right;

/// Tokens, and rights without a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    /// The token that permits everything.
    pub(crate) operate: Option<Token>,
    /// The token that permits reading and purging.
    pub(crate) purge: Option<Token>,
    /// The token that permits reading.
    pub(crate) read: Option<Token>,
    /// Rights of requests over TCP without a token.
    pub(crate) network: Right,
    /// Rights of requests over the unix socket without a token.
    pub(crate) socket: Right,
}

impl Keys {
    /// Returns the right of the token in the request; `Nothing` without a token.
    pub(super) fn of_token<F: Fields + ?Sized>(&self, fields: &F) -> Right {
        let all = [
            (&self.operate, Right::Operate),
            (&self.purge, Right::Purge),
            (&self.read, Right::Read),
        ];
        // All tokens are compared, so that the duration does not depend on which token matches.
        let fitting = all.map(|(token, right)| match token {
            Some(token) if token.is_in(fields) => right,
            _ => Right::Nothing,
        });
        fitting.into_iter().max().unwrap_or_default()
    }
}
