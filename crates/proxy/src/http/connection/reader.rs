//! Detects clients that do not read their answers.
//!
//! The kernel of such a client acknowledges bytes until its receive buffer is full. Meanwhile the window that
//! it announces shrinks by the bytes that the client's program leaves unread.

use crate::http::net::{Io, Transport};

/// Part of a client's window that is sent in one time slice, until Foxy knows that the client reads. The part
/// is five eighths, as numerator and denominator. If the client reads none of these bytes, less than half of
/// its window is left.
const TRIAL: (u64, u64) = (5, 8);
/// Smallest number of bytes of such a time slice, so that each time slice makes progress.
const TRIAL_MIN: u64 = 4 << 10;

/// The behaviour of a client during one answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    /// Number of bytes that the connection had sent before the answer.
    from: u64,
    /// The largest window in bytes that the client has announced during the answer.
    window: u64,
}

impl Reader {
    /// Begins an answer.
    pub(super) fn of<T: Transport>(io: &Io<T>) -> Self {
        Self {
            from: io.sent(),
            window: 0,
        }
    }

    /// Returns true if the client announces at least half of its largest window, or if the system does not
    /// report the window. After a smaller window, a client that reads must announce a larger window as soon
    /// as half of its buffer is free (RFC 9293 section 3.8.6.2.2).
    pub(super) fn has_read<T: Transport>(&mut self, io: &Io<T>) -> bool {
        self.look(io).is_none_or(|window| window >= self.window / 2)
    }

    /// Returns the number of bytes of the next time slice. Returns `None` if the client has received at least
    /// twice its largest window. At least half of these bytes have then left its receive buffer, so the
    /// client reads. Before the call, the client must have acknowledged all bytes that were sent.
    pub(super) fn trial<T: Transport>(&mut self, io: &Io<T>) -> Option<u64> {
        let window = self.look(io)?;
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
