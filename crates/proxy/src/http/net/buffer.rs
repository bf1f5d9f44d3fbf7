//! A read buffer that is reused during the life of a connection.

use std::io;
use std::sync::Arc;

use super::{Io, Ticks, Transport};
use crate::state::ledger::{Entry, Ledger, Pressure, Use};

/// Initial size of a buffer in bytes. It is many times as long as a usual head of a request or response.
const FIRST: usize = 16 << 10;
/// Initial size of a buffer in bytes when memory is short.
const SMALL: usize = 4 << 10;

/// The received bytes that are not used yet.
#[derive(Debug)]
pub(crate) struct ReadBuf {
    data: Vec<u8>,
    start: usize,
    end: usize,
    /// Entry of the buffer in the ledger (the count of the memory for requests), once the buffer has memory.
    entry: Option<Entry>,
}

impl ReadBuf {
    pub(crate) fn new() -> Self {
        Self {
            data: Vec::new(),
            start: 0,
            end: 0,
            entry: None,
        }
    }

    /// Returns the bytes in the buffer.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Marks the first `n` bytes as used.
    pub(crate) fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.end - self.start);
        self.start += n;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Replaces the first `n` bytes by `text`.
    pub(crate) fn replace(&mut self, n: usize, text: &[u8]) {
        debug_assert!(n <= self.end - self.start);
        let rest = self.start + n;
        if let Some(start) = rest.checked_sub(text.len()) {
            self.data[start..rest].copy_from_slice(text);
            self.start = start;
            return;
        }
        let mut data = [text, &self.data[rest..self.end]].concat();
        (self.start, self.end) = (0, data.len());
        // The buffer keeps its size, because the body is read into it after the head. A smaller buffer would
        // split the body into pieces that are as short as the head.
        data.resize(self.data.len().max(self.end), 0);
        if let Some(entry) = &mut self.entry {
            entry.set(data.len());
        }
        self.data = data;
    }

    /// Discards the bytes in the buffer.
    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }

    /// Frees the memory of an empty buffer that has grown beyond its initial size.
    pub(crate) fn shorten(&mut self) {
        if self.data.len() > FIRST {
            self.release();
        }
    }

    /// Frees all memory of an empty buffer. This is for connections that stay idle.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            self.data = Vec::new();
            self.entry = None;
        }
    }

    /// Returns free space for more bytes. If there is no free space at the end of the buffer, the unused
    /// bytes are moved to its front. If there is still no free space, the buffer grows, up to `max` bytes.
    ///
    /// # Errors
    /// Returns `OutOfMemory` if the buffer already has `max` bytes, and `QuotaExceeded` if there is no memory
    /// for more bytes.
    fn spare(&mut self, max: usize, ledger: &Arc<Ledger>) -> io::Result<&mut [u8]> {
        if self.end == self.data.len() && self.start > 0 {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.data.len() {
            let first = match ledger.pressure() {
                Pressure::Low => FIRST,
                _ => SMALL,
            };
            let size = (self.data.len() * 2).max(first).min(max.max(self.end));
            let more = size - self.data.len();
            if more == 0 {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            // The first memory of a buffer may exceed the limit of the ledger, because the first bytes of a
            // request matter more than an exact limit.
            let begins = self.data.is_empty();
            let entry = self.entry.get_or_insert_with(|| ledger.empty(Use::Buffers));
            match begins {
                true => entry.set(size),
                false if entry.grow(more) => {}
                false => return Err(io::ErrorKind::QuotaExceeded.into()),
            }
            self.data.resize(size, 0);
        }
        Ok(&mut self.data[self.end..])
    }

    /// Reads more bytes, up to `max` bytes in the buffer. Returns 0 at the end of the stream. Cancel safe.
    pub(crate) async fn fill<T: Transport>(
        &mut self,
        io: &Io<T>,
        max: usize,
        deadline: Ticks,
    ) -> io::Result<usize> {
        let spare = self.spare(max, io.ledger())?;
        let n = io.read(spare, deadline).await?;
        self.end += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_text_leaves_as_much_room_as_before() {
        let ledger = Ledger::new(1 << 20, 0);
        let mut buf = ReadBuf::new();
        buf.spare(FIRST, &ledger).unwrap()[..9].copy_from_slice(b"head-body");
        buf.end = 9;
        buf.replace(4, b"another");
        assert_eq!(buf.filled(), b"another-body");
        buf.consume(12);
        assert_eq!(buf.spare(FIRST, &ledger).unwrap().len(), FIRST);
    }

    #[test]
    fn keeps_what_is_unused_and_stops_at_the_limit() {
        let ledger = Ledger::new(1 << 20, 0);
        let mut buf = ReadBuf::new();
        let spare = |buf: &mut ReadBuf| buf.spare(FIRST * 2, &ledger).map(|s| s.len());
        assert_eq!(spare(&mut buf).unwrap(), FIRST);
        for (i, b) in buf.data.iter_mut().enumerate() {
            *b = (i % 251) as u8;
        }
        buf.end += FIRST;
        buf.consume(100);
        assert_eq!(buf.filled()[0], 100);
        assert_eq!(spare(&mut buf).unwrap(), 100);
        assert_eq!(buf.filled()[0], 100);
        buf.end += 100;
        assert_eq!(spare(&mut buf).unwrap(), FIRST);
        buf.end += FIRST;
        let full = spare(&mut buf).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::OutOfMemory);
        buf.consume(FIRST * 2);
        assert!(buf.is_empty());
        buf.shorten();
        assert_eq!(buf.data.len(), 0);
        spare(&mut buf).unwrap();
        buf.shorten();
        assert_eq!(buf.data.len(), FIRST);
        buf.release();
        assert_eq!(buf.data.len(), 0);
        assert_eq!(ledger.used(Use::Buffers), 0);
    }

    #[test]
    fn buffers_are_small_and_do_not_grow_where_memory_is_spent() {
        let ledger = Ledger::new(SMALL, 0);
        let _others = ledger.take(Use::Connections, SMALL);
        let mut buf = ReadBuf::new();
        assert_eq!(buf.spare(FIRST, &ledger).unwrap().len(), SMALL);
        buf.end = SMALL;
        let spent = buf.spare(FIRST, &ledger).unwrap_err();
        assert_eq!(spent.kind(), io::ErrorKind::QuotaExceeded);
    }
}
