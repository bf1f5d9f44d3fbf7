//! Handling of one request that cannot be answered immediately from memory. It begins when the request is
//! copied, and ends with the end of the answer.
//!
//! An exchange owns the copy of the request, and borrows the connection that gets the answer. It looks the
//! object up, joins or starts a fetch, judges the answer for its own request, and sends the answer. When the
//! exchange has ended, the connection continues with the next request.
//!
//! This room (top-level module) may use every other room except `client`.

mod body;
mod failing;
mod follow;
mod images;
mod join;
mod large;
mod not_modified;
mod objects;
mod pass;
mod purge_method;
mod purger;
mod purges;
mod ranged;
mod rest;
mod stream;
mod supply;

use std::rc::Rc;

use crate::cache::owned_request::OwnedRequest;
use crate::http::connection::Link;
use crate::http::net::Transport;
use crate::state::finish::Finish;
use crate::state::local::Local;

pub(crate) use join::{Want, revalidate};
pub(crate) use large::spans;
pub(crate) use objects::{lost, unfit};

/// A request, and the connection that gets its answer.
#[derive(Debug)]
pub(crate) struct Exchange<'c, T> {
    link: &'c mut Link<T>,
    local: Rc<Local>,
    req: Rc<OwnedRequest>,
    /// True if the request allows the connection to carry another request.
    keep: bool,
}

impl<'c, T: Transport> Exchange<'c, T> {
    pub(crate) fn new(
        link: &'c mut Link<T>,
        local: &Rc<Local>,
        req: Rc<OwnedRequest>,
        keep: bool,
    ) -> Self {
        Self {
            link,
            local: Rc::clone(local),
            req,
            keep,
        }
    }
}
