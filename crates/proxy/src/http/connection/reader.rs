//! Detects clients that do not read their answers.
//!
//! The kernel of such a client acknowledges bytes until its receive buffer is full. Meanwhile the TCP window
//! that this kernel announces shrinks by the bytes that the client's program leaves unread.
//!
//! The window of a client that reads may shrink too, if the client's kernel has too little memory. A kernel
//! never takes back a window that it has announced. So such a kernel announces no more bytes until the
//! announced window is used up. After that, it announces more bytes only if the client's program reads.

use crate::http::net::{Io, Transport};

/// Fraction of a client's window that is sent in one time slice, until Foxy knows that the client reads. The
/// two numbers are the numerator and the denominator. If the client reads none of these bytes, less than half
/// of its window is left.
const TRIAL: (u64, u64) = (5, 8);
/// Smallest number of bytes of a time slice that is limited by [`TRIAL`], so that each time slice makes
/// progress.
const TRIAL_MIN: u64 = 4 << 10;

/// The behaviour of a client during one answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    /// Number of bytes that the connection had sent before the answer.
    from: u64,
    /// The largest window in bytes that the client has announced during the answer. After a time slice
    /// has used up the window, earlier windows no longer count.
    window: u64,
    /// True if the present time slice may use up the client's window. This is needed if sending only a part
    /// of the window has not shown whether the client reads.
    uses_up: bool,
}

impl Reader {
    /// Returns the state of a client at the beginning of an answer.
    pub(super) fn of<T: Transport>(io: &Io<T>) -> Self {
        Self {
            from: io.sent(),
            window: 0,
            uses_up: false,
        }
    }

    /// Returns true if the client announces at least half of its largest window, or if the system does not
    /// report the window. A client that has announced a smaller window and then reads must announce a larger
    /// window as soon as half of its buffer is free (RFC 9293 section 3.8.6.2.2). If the last time slice has
    /// used up the window, any new window shows that the client has read.
    pub(super) fn has_read<T: Transport>(&mut self, io: &Io<T>) -> bool {
        let Some(window) = self.look(io) else {
            return true;
        };
        if self.uses_up && window > 0 {
            self.window = window;
            self.uses_up = false;
        }
        window > 0 && window >= self.window / 2
    }

    /// Lets the next time slice use up the window, if the client has announced a window and the last time slice
    /// has not used it up. Otherwise returns false.
    pub(super) fn use_up<T: Transport>(&mut self, io: &Io<T>) -> bool {
        let uses_up = !self.uses_up && self.look(io).is_some_and(|window| window > 0);
        self.uses_up |= uses_up;
        uses_up
    }

    /// Returns the largest number of bytes of the next time slice. Returns `None` (no limit) if the system
    /// does not report the window, or if the client has received at least twice its largest window. In the
    /// second case, at least half of these bytes have left the client's receive buffer, so the client reads.
    /// Before the call, the client must have acknowledged all bytes that were sent.
    pub(super) fn trial<T: Transport>(&mut self, io: &Io<T>) -> Option<u64> {
        let window = self.look(io)?;
        if self.uses_up {
            return Some(window);
        }
        let reads = io.sent() - self.from >= 2 * self.window;
        (!reads).then(|| (window / TRIAL.1 * TRIAL.0).max(TRIAL_MIN))
    }

    /// Returns the present window.
    fn look<T: Transport>(&mut self, io: &Io<T>) -> Option<u64> {
        let window = io.window()?;
        self.window = self.window.max(window);
        Some(window)
    }
}
