//! A read buffer that is reused for the life of a connection.

use std::io;

use super::{Io, Ticks, Transport};

/// What a buffer starts with; one usual request or response head fits many times.
const FIRST: usize = 16 << 10;

/// Bytes received and not yet used.
#[derive(Debug)]
pub(crate) struct ReadBuf {
    data: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuf {
    pub(crate) fn new() -> Self {
        Self {
            data: Vec::new(),
            start: 0,
            end: 0,
        }
    }

    /// What is there.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Marks `n` bytes as used.
    pub(crate) fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        self.start += n;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Forgets what is there.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// Gives memory beyond the usual back if nothing is in it.
    pub(crate) fn shorten(&mut self) {
        if self.data.len() > FIRST {
            self.release();
        }
    }

    /// Gives all memory back if nothing is in it: for connections that stay idle.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            self.data = Vec::new();
        }
    }

    /// Room for more: moves what is there to the front, and grows when it is full, up to
    /// `max` bytes. Empty if `max` bytes are there already.
    fn spare(&mut self, max: usize) -> &mut [u8] {
        if self.end == self.data.len() && self.start > 0 {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.data.len() {
            let size = (self.data.len() * 2).max(FIRST).min(max.max(self.end));
            self.data.resize(size, 0);
        }
        &mut self.data[self.end..]
    }

    /// Reads more, keeping at most `max` bytes; 0 at the end of the stream. Cancel safe.
    pub(crate) async fn fill<T: Transport>(
        &mut self,
        io: &Io<T>,
        max: usize,
        deadline: Ticks,
    ) -> io::Result<usize> {
        let spare = self.spare(max);
        if spare.is_empty() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let n = io.read(spare, deadline).await?;
        self.end += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_unused_and_stops_at_the_limit() {
        let mut buf = ReadBuf::new();
        let room = buf.spare(FIRST * 2).len();
        assert_eq!(room, FIRST);
        for (i, b) in buf.spare(FIRST * 2).iter_mut().enumerate() {
            *b = (i % 251) as u8;
        }
        buf.end += FIRST;
        buf.consume(100);
        assert_eq!(buf.filled()[0], 100);
        assert_eq!(buf.spare(FIRST * 2).len(), 100);
        assert_eq!(buf.filled()[0], 100);
        buf.end += 100;
        assert_eq!(buf.spare(FIRST * 2).len(), FIRST);
        buf.end += FIRST;
        assert!(buf.spare(FIRST * 2).is_empty());
        buf.consume(FIRST * 2);
        assert!(buf.is_empty());
        buf.shorten();
        assert_eq!(buf.data.len(), 0);
        buf.spare(FIRST);
        buf.shorten();
        assert_eq!(buf.data.len(), FIRST);
        buf.release();
        assert_eq!(buf.data.len(), 0);
    }
}
