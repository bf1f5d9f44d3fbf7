//! The place where a worker puts the newest settings of a listener. The listener's connections look there
//! before each request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use foxy_tls::ListenerTls;
use tokio::sync::Notify;

use crate::client::conn::Door;
use crate::state::local::Local;

/// The newest settings of one listener on one worker.
#[derive(Debug)]
pub(crate) struct Post {
    current: RefCell<Posted>,
    /// A number that increases with each change of the settings, and when the listener is closed.
    number: Cell<u64>,
    closed: Rc<Cell<bool>>,
    closing: Notify,
}

/// Settings for a connection.
#[derive(Clone, Debug)]
pub(crate) struct Posted {
    pub(crate) local: Rc<Local>,
    pub(crate) door: Door,
    /// Certificates for new connections.
    pub(crate) tls: Option<ListenerTls>,
    /// True if trusted proxies name the client of a new connection in a PROXY header.
    pub(crate) named: bool,
}

impl Post {
    pub(crate) fn new(posted: Posted) -> Rc<Self> {
        Rc::new(Self {
            current: RefCell::new(posted),
            number: Cell::new(0),
            closed: Rc::default(),
            closing: Notify::new(),
        })
    }

    pub(crate) fn current(&self) -> Posted {
        self.current.borrow().clone()
    }

    /// Returns a number that increases with each change of the settings, and when the listener is closed.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number.get()
    }

    pub(crate) fn renew(&self, posted: Posted) {
        *self.current.borrow_mut() = posted;
        self.number.set(self.number.get() + 1);
    }

    /// Closes the listener, because it is no longer in the settings.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.number.set(self.number.get() + 1);
        self.closing.notify_waiters();
    }

    /// Returns a flag that is true once the listener is closed.
    pub(crate) fn closed(&self) -> &Rc<Cell<bool>> {
        &self.closed
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Waits until [`close`](Self::close) was called.
    pub(crate) async fn until_closed(&self) {
        while !self.is_closed() {
            self.closing.notified().await;
        }
    }
}
