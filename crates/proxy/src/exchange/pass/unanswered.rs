//! Unsafe requests without an answer: the origin may have carried them out.

use std::cell::Cell;
use std::rc::Rc;

use crate::cache::owned_request::OwnedRequest;
use crate::origin::UpstreamError;
use crate::state::local::Local;

/// A value that exists while an unsafe request is in progress. When dropped, it invalidates the stored
/// answers of the request's URL (RFC 9111 section 4.4). It invalidates nothing if an answer has arrived, or
/// if the request certainly has not reached the origin. It is also dropped if the request ends because the
/// client left.
pub(super) struct Unanswered<'a> {
    local: Rc<Local>,
    req: &'a OwnedRequest,
    open: Cell<bool>,
}

impl<'a> Unanswered<'a> {
    pub(super) fn new(local: &Rc<Local>, req: &'a OwnedRequest) -> Self {
        let method = foxy_http_rules::Method::of(req.head().method_text());
        Self {
            local: Rc::clone(local),
            req,
            open: Cell::new(method.invalidates()),
        }
    }

    /// Notes that the final answer has arrived.
    pub(super) fn answered(&self) {
        self.open.set(false);
    }

    /// Notes that no answer will arrive. `replayed` is true if the request may have been sent twice.
    pub(super) fn failed(&self, error: UpstreamError, replayed: bool) {
        if !error.may_have_reached_it(replayed) {
            self.open.set(false);
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.open.get() {
            let proxy = &self.local.proxy;
            proxy.forget(self.req.base_hash, &self.req.base);
        }
    }
}
