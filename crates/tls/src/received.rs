//! Bytes that were read from a socket and are not decrypted yet. The sessions of a thread share one buffer. A
//! session takes the buffer when it reads from the socket, and returns the buffer when all bytes in the
//! buffer are consumed.

use std::cell::RefCell;
use std::io;

use crate::Wire;

/// Smallest buffer for one read from the socket, in bytes.
const LEAST: usize = 4 << 10;
/// Largest number of bytes that one read from the socket returns.
const MOST: usize = 64 << 10;

thread_local! {
    static SHARED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Received bytes that are not decrypted yet.
#[derive(Debug, Default)]
pub(crate) struct Received {
    buf: Vec<u8>,
    at: usize,
    end: usize,
}

impl Received {
    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// Bytes of memory that this value uses.
    pub(crate) fn bytes(&self) -> usize {
        self.buf.len()
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.buf[self.at..self.end]
    }

    /// Marks `n` bytes as consumed.
    pub(crate) fn consume(&mut self, n: usize) {
        self.at += n;
        if self.is_empty() {
            self.give_back();
        }
    }

    /// Reads about `want` bytes if there are no bytes in the buffer. Returns the number of bytes read, or 0
    /// at the end of the stream.
    pub(crate) fn fill<W: Wire>(&mut self, wire: &W, want: usize) -> io::Result<usize> {
        if self.buf.is_empty() {
            self.buf = SHARED.take();
        }
        let size = want.clamp(LEAST, MOST);
        if self.buf.len() < size {
            self.buf.resize(size, 0);
        }
        let read = wire.read(&mut self.buf[..size]);
        match read {
            Ok(n) if n > 0 => (self.at, self.end) = (0, n),
            _ => self.give_back(),
        }
        read
    }

    fn give_back(&mut self) {
        (self.at, self.end) = (0, 0);
        let buf = std::mem::take(&mut self.buf);
        SHARED.with_borrow_mut(|shared| {
            if shared.len() < buf.len() {
                *shared = buf;
            }
        });
    }
}
