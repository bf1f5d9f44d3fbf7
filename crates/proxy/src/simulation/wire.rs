//! Simulated connections in memory. A connection consists of two bounded pipes, one for each direction. Bytes
//! arrive in small pieces, with delays, and a connection may end early.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use foxy_base::Rng;
use tokio::time::{Sleep, sleep_until};

use super::pipe::{CAPACITY, Cut, Manner, Pipe};
use crate::http::net::Transport;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Wire {
    from: Rc<RefCell<Pipe>>,
    to: Rc<RefCell<Pipe>>,
    address: SocketAddr,
    abort: Cell<bool>,
    timer: RefCell<Option<Pin<Box<Sleep>>>>,
}

/// Makes a connection. Returns its two ends. The first end belongs to the side that connects. `manners`
/// contains the behaviour of the two directions. The first direction begins at the first end.
pub(crate) fn pair(rng: &mut Rng, manners: [Manner; 2], addresses: [SocketAddr; 2]) -> [Wire; 2] {
    let [first, second] = manners.map(|manner| {
        let pipe = Pipe::new(Rng::new(rng.next_u64()), manner);
        Rc::new(RefCell::new(pipe))
    });
    let end = |from: &Rc<_>, to: &Rc<_>, address| Wire {
        from: Rc::clone(from),
        to: Rc::clone(to),
        address,
        abort: Cell::new(false),
        timer: RefCell::new(None),
    };
    [
        end(&second, &first, addresses[0]),
        end(&first, &second, addresses[1]),
    ]
}

impl Wire {
    fn break_off(&self) {
        self.from.borrow_mut().break_off();
        self.to.borrow_mut().break_off();
    }

    /// Waits for bytes and reads them. Returns 0 at the end.
    pub(super) async fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.try_read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
            poll_fn(|cx| self.poll_readable(cx)).await?;
        }
    }

    /// Writes all bytes.
    pub(super) async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.try_write(&[IoSlice::new(bytes)]) {
                Ok(n) => bytes = &bytes[n..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    poll_fn(|cx| self.poll_writable(cx)).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Transport for Wire {
    fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.from.borrow_mut().give(into, false)
    }

    fn try_peek(&self) -> io::Result<usize> {
        self.from.borrow_mut().give(&mut [0], true)
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let (taken, cut) = self.to.borrow_mut().take(slices)?;
        match cut {
            None => {}
            Some(Cut::Reset) => self.break_off(),
            Some(Cut::End) => {
                self.to.borrow_mut().end();
            }
        }
        match taken {
            0 if slices.iter().any(|slice| !slice.is_empty()) => {
                Err(ErrorKind::ConnectionReset.into())
            }
            taken => Ok(taken),
        }
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut from = self.from.borrow_mut();
        if from.is_readable() {
            return Poll::Ready(Ok(()));
        }
        from.reader = Some(cx.waker().clone());
        let Some(at) = from.next() else {
            return Poll::Pending;
        };
        let mut timer = self.timer.borrow_mut();
        let timer = timer.insert(Box::pin(sleep_until(at)));
        timer.as_mut().poll(cx).map(Ok)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut to = self.to.borrow_mut();
        if to.reset || to.reader_left || to.ended || to.bytes < CAPACITY {
            return Poll::Ready(Ok(()));
        }
        to.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn shutdown_write(&self) {
        self.to.borrow_mut().end();
    }

    fn widen_receive(&self) {}
    fn limit_send(&self, _: usize) {}
    fn unacknowledged(&self) -> usize {
        0
    }
    fn window(&self) -> Option<u32> {
        None
    }
    fn is_reset(&self) -> bool {
        self.to.borrow().reset
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        Some(self.address)
    }

    fn reset_on_close(&self) {
        self.abort.set(true);
    }
}

impl Drop for Wire {
    /// Closes this end as the kernel does. After `reset_on_close`, the peer gets a reset. If there are bytes
    /// that this end has not read, the peer may get a reset. The reset may remove bytes that were sent to the
    /// peer before the peer has read them.
    fn drop(&mut self) {
        let mut from = self.from.borrow_mut();
        let unread = from.is_unread();
        from.reader_left = true;
        from.wake();
        let lost = self.abort.get() || unread && from.rng.chance(0.5);
        let mut to = self.to.borrow_mut();
        match lost {
            true => to.break_off(),
            false => to.end(),
        }
    }
}
