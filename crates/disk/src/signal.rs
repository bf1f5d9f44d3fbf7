//! A descriptor that becomes readable, and the inbox of completions that makes the descriptor readable.

use parking_lot::{Condvar, Mutex};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A flag that epoll can see: an eventfd, or a pipe on systems without eventfd.
pub(crate) struct Signal {
    read: OwnedFd,
    #[cfg(not(target_os = "linux"))]
    write: OwnedFd,
}

impl Signal {
    #[cfg(target_os = "linux")]
    fn new() -> io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let read = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { read })
    }

    #[cfg(not(target_os = "linux"))]
    fn new() -> io::Result<Self> {
        use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
        let (read, write) = rustix::pipe::pipe()?;
        for end in [&read, &write] {
            fcntl_setfd(end, FdFlags::CLOEXEC)?;
            ioctl_fionbio(end, true)?;
        }
        Ok(Self { read, write })
    }

    fn raise(&self) {
        #[cfg(target_os = "linux")]
        let end = &self.read;
        #[cfg(not(target_os = "linux"))]
        let end = &self.write;
        // If the counter or pipe is full, the descriptor is readable already.
        while rustix::io::write(end, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    fn clear(&self) {
        let mut sink = [0u8; 8];
        while rustix::io::read(&self.read, &mut sink) == Err(Errno::INTR) {}
    }
}

/// Mailbox in which other threads put results for the owner of a queue.
///
/// Signal and list change together under the lock. So the descriptor is readable exactly while
/// results are waiting (or after a nudge), and it is written once for each batch, not for each
/// result.
pub(crate) struct Inbox<T> {
    list: Mutex<List<T>>,
    arrived: Condvar,
    signal: Signal,
}

struct List<T> {
    ready: Vec<T>,
    raised: bool,
}

impl<T> Inbox<T> {
    pub(crate) fn new() -> io::Result<Self> {
        let list = Mutex::new(List {
            ready: Vec::new(),
            raised: false,
        });
        Ok(Self {
            list,
            arrived: Condvar::new(),
            signal: Signal::new()?,
        })
    }

    /// Adds a result and wakes the owner.
    pub(crate) fn push(&self, item: T) {
        let mut list = self.list.lock();
        list.ready.push(item);
        self.raise(&mut list);
        self.arrived.notify_all();
    }

    /// Makes the descriptor readable although no result is waiting.
    pub(crate) fn nudge(&self) {
        self.raise(&mut self.list.lock());
    }

    fn raise(&self, list: &mut List<T>) {
        if !list.raised {
            list.raised = true;
            self.signal.raise();
        }
    }

    /// Passes all results to `take` and lowers the signal. Returns their number.
    pub(crate) fn drain(&self, take: impl FnMut(T)) -> usize {
        let mut list = self.list.lock();
        if list.raised {
            list.raised = false;
            self.signal.clear();
        }
        let count = list.ready.len();
        list.ready.drain(..).for_each(take);
        count
    }

    /// Blocks until at least `count` results are in the list; false on timeout.
    pub(crate) fn wait(&self, count: usize, timeout: Duration) -> bool {
        let mut list = self.list.lock();
        self.arrived
            .wait_while_for(&mut list, |list| list.ready.len() < count, timeout);
        list.ready.len() >= count
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.signal.read.as_fd()
    }
}
