//! Unsafe requests that are never answered: nobody knows whether the origin carried them out.

use std::cell::Cell;
use std::rc::Rc;

use crate::ask::Ask;
use crate::local::Local;
use crate::upstream::UpstreamError;

/// An unsafe request on its way. Unless an answer settles what it changed, or it is known not to
/// have reached the origin, what is stored under its URL goes when this is dropped (RFC 9111
/// section 4.4): also when the client has left meanwhile.
pub(super) struct Unanswered<'a> {
    local: Rc<Local>,
    ask: &'a Ask,
    open: Cell<bool>,
}

impl<'a> Unanswered<'a> {
    pub(super) fn new(local: &Rc<Local>, ask: &'a Ask) -> Self {
        let method = foxy_http_rules::Method::of(ask.head().method_text());
        Self {
            local: Rc::clone(local),
            ask,
            open: Cell::new(method.invalidates()),
        }
    }

    /// The final answer has come.
    pub(super) fn answered(&self) {
        self.open.set(false);
    }

    /// There will be no answer; `replayed` if the request may have been sent twice.
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
            proxy.forget(self.ask.base_hash, &self.ask.base);
        }
    }
}
